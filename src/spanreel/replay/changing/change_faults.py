"""What is wrong with changes, a sentence each: where, what stands there, and what may stand there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from spanreel.replay.changing.tool_policies import History, Passthrough, Static

SHOWN: Final = 60
"""Characters of a value that a sentence shows."""

_BY_TYPE: Final[dict[str, type[BaseModel]]] = {
    str(get_args(one.model_fields["type"].annotation)[0]): one for one in (History, Static, Passthrough)
}
_POLICIES: Final = tuple(_BY_TYPE)
_WORDS: Final = {
    "tuple_type": "a list is expected",
    "dict_type": "a table (an object) is expected",
    "model_type": "a table (an object) is expected",
    "model_attributes_type": "a table (an object) is expected",
    "bool_type": "true or false is expected",
    "string_type": "a text is expected",
    "int_type": "a whole number is expected",
    "int_from_float": "a whole number is expected",
    "float_type": "a number is expected",
    "finite_number": "a finite number is expected",
    "string_too_short": "a text that is not empty is expected",
    "too_short": "a list that is not empty is expected",
    "missing": "it is missing",
    "union_tag_not_found": f"its type is missing: one of {', '.join(_POLICIES)}",
}
_LLM: Final = "'llm' policies have a model make results up: answer with type 'history', or 'static' and its cases"


def faults(error: ValidationError, model: type[BaseModel]) -> list[str]:
    """The faults that validation has found in changes."""
    found = error.errors()
    places = [one["loc"] for one in found]
    # What holds something that is wrong is called too short for the lack of it.
    told = [
        one for one in found if not (one["type"] == "too_short" and any(_is_inside(one["loc"], at) for at in places))
    ]
    return list(dict.fromkeys(f"{place_of(one['loc'])}: {_said(one, model)}" for one in told))


def place_of(steps: Sequence[int | str]) -> str:
    """A place as people write it."""
    return ".".join(str(step) for step in steps if step != "[key]") or "all of it"


def _is_inside(outer: Sequence[int | str], place: Sequence[int | str]) -> bool:
    return len(place) > len(outer) and tuple(place[: len(outer)]) == tuple(outer)


def _said(one: ErrorDetails, model: type[BaseModel]) -> str:
    kind, given = one["type"], one["input"]
    if kind == "extra_forbidden":
        known = sorted(_fields_at(one["loc"][:-1], model))
        return f"unknown{'; known here: ' + ', '.join(known) if known else ''}"
    if kind == "union_tag_invalid":
        tag = one.get("ctx", {}).get("tag")
        return _LLM if tag == "llm" else f"type {tag!r} is none of {', '.join(_POLICIES)}"
    if kind in ("missing", "union_tag_not_found"):
        return _WORDS[kind]
    words = _WORDS.get(kind) or one["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return f"{words}, not {shown(given)}" if kind != "value_error" else words


def shown(value: Any) -> str:
    """A value, cut where it is long."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _fields_at(steps: Sequence[int | str], model: type[BaseModel]) -> Iterator[str]:
    """The names that may stand at a place, as far as it is one of models inside models."""
    found: Any = model
    for step in steps:
        if step in _BY_TYPE:
            found = _BY_TYPE[str(step)]
        elif _is_model(found) and step in found.model_fields:  # else it is a number, or a name of the user's
            found = next(_models_in(found.model_fields[step].annotation), None)
    if _is_model(found):
        yield from found.model_fields


def _models_in(annotation: Any) -> Iterator[Any]:
    if _is_model(annotation):
        yield annotation
    for inner in getattr(annotation, "__args__", ()):
        yield from _models_in(inner)


def _is_model(found: Any) -> bool:
    return isinstance(found, type) and issubclass(found, BaseModel)
