"""What a failure was: the exception's parts, kept beside its text; and the exception of a recorded failure, made again.

The parts are what it was made of and its attributes, ``{"arguments": [...], "fields": {...}}``, and under ``type`` what
those were before they became JSON, as `shapes` says it. What an exception refers to (its cause, its traceback) is none.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar, cast, get_args

from spanreel import http_parts
from spanreel.errors import RecordedFailure
from spanreel.model import Json
from spanreel.point import RecordedError
from spanreel.rebuilding import plain
from spanreel.shapes import names_of_class, reshaped, shape_of
from spanreel.snapshot import snapshot


def name_of(error: BaseException) -> str:
    """The exception's full class name, as it is recorded: without the module where that is Python's own."""
    kind = type(error)
    bare = kind.__module__ in ("builtins", "asyncio.exceptions", "exceptions")
    return kind.__qualname__ if bare else f"{kind.__module__}.{kind.__qualname__}"


def is_exception(type: str) -> bool:
    """Whether the type of a recorded error is a class's name, as `name_of` gives it, and not a provider's word."""
    return "." in type or _exception(getattr(builtins, type, None)) is not None


def text_of(error: BaseException) -> str:
    """The exception's text; none where it has none."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - a user's exception may have any __str__
        return ""


EXCEPTIONS: Final = "exceptions"
"""In the parts of a group: the exceptions in it, each with its type, its text and its parts."""


CAUSE: Final = "cause"
"""In the parts of an exception: what it was raised from, as what that is recorded as."""
_CAUSES: Final = 3
"""So many, one behind the other, are kept."""


def parts_of(error: BaseException, causes: int = _CAUSES) -> dict[str, Json] | None:
    """The parts of an exception, as they are now; None where class and text say all."""
    own, cause = _own_parts(error), error.__cause__
    if causes and isinstance(cause, Exception):
        told: Json = {"type": name_of(cause), "message": text_of(cause), "parts": parts_of(cause, causes - 1)}
        return {**(own or {}), CAUSE: told}
    return own


def _own_parts(error: BaseException) -> dict[str, Json] | None:
    arguments, fields = _taken_apart(error)
    if isinstance(error, BaseExceptionGroup):
        return _parts_of_group(error, fields)
    if name_of(error) == _VALIDATION:
        return _parts_of_validation(error)
    if not fields and arguments in ((), (str(error),)):
        return None
    whole = {
        "arguments": [http_parts.to_json(one) for one in arguments],
        "fields": {name: http_parts.to_json(one) for name, one in fields.items()},
    }
    parts = snapshot(whole).value
    assert isinstance(parts, dict)
    shape = shape_of(whole, names_of_class(type(error)))
    return parts if shape is None else {**parts, "type": shape}


def _parts_of_group(group: BaseExceptionGroup[Any], fields: dict[str, Any]) -> dict[str, Json]:
    """Its text, and the exceptions in it as what each is recorded as."""
    inner: list[Json] = []
    for error in group.exceptions:
        inner.append({"type": name_of(error), "message": text_of(error), "parts": parts_of(error)})
    kept = snapshot({"arguments": [group.message], "fields": fields}).value
    assert isinstance(kept, dict)
    return {**kept, EXCEPTIONS: inner}


_VALIDATION: Final = "pydantic_core._pydantic_core.ValidationError"
"""The class that pydantic raises, which lets itself be made in one way only."""


def _parts_of_validation(error: Any) -> dict[str, Json]:
    """Which model it is about, and what is wrong where; what a validator raised, by its text."""
    errors = error.errors(include_url=False)
    for one in errors:
        if isinstance(raised := one.get("ctx", {}).get("error"), Exception):
            one["ctx"] = {**one["ctx"], "error": text_of(raised)}
    return {"title": error.title, "errors": snapshot(errors).value}


def _validation_of(found: Any, parts: Mapping[str, Json]) -> Exception | None:
    """The exception of pydantic's that had these parts; None where they are of none."""
    errors = plain(parts.get("errors"))
    if not (hasattr(found, "from_exception_data") and isinstance(errors, list)):
        return None
    with contextlib.suppress(Exception):  # the document may hold anything
        return cast("Exception", found.from_exception_data(str(parts.get("title")), list(map(_line_error, errors))))
    return None


def _line_error(one: Mapping[str, Any]) -> dict[str, Any]:
    """One thing that is wrong, as pydantic takes it: what it has no words for itself comes with its own."""
    core: Any = importlib.import_module("pydantic_core")
    kind, context = one["type"], one.get("ctx") or {}
    known = kind in get_args(importlib.import_module("pydantic_core.core_schema").ErrorType)
    if not known:
        words = str(one["msg"]).replace("{", "{{").replace("}", "}}") if not context else str(one["msg"])
        kind = core.PydanticCustomError(kind, words, context or None)
    raised = AssertionError if kind == "assertion_error" else ValueError
    told = {name: raised(text) if name == "error" else text for name, text in context.items()}
    of_kind = {"ctx": told} if known and told else {}
    return {"type": kind, "loc": tuple(one["loc"]), "input": one.get("input"), **of_kind}


def _group_of(found: type[Exception], parts: Mapping[str, Json]) -> Exception | None:
    """The group that these parts were of; None where they were of none."""
    told, arguments = parts.get(EXCEPTIONS), parts.get("arguments")
    if not (issubclass(found, ExceptionGroup) and isinstance(told, list) and told and isinstance(arguments, list)):
        return None
    inner = [rebuild_error(_read_inner(one)) for one in told if isinstance(one, dict)]
    with contextlib.suppress(Exception):  # a class of the user's, that takes something else
        return found(str(arguments[0]), inner)
    return None


def rebuild_error(recorded: RecordedError) -> Exception:
    """The exception of a recorded failure, and what it was raised from; see `_rebuild`."""
    error, cause = _rebuild(recorded), (recorded.parts or {}).get(CAUSE)
    if isinstance(cause, dict):
        error.__cause__ = rebuild_error(_read_inner(cause))
    return error


def _read_inner(told: Mapping[str, Any]) -> RecordedError:
    return RecordedError(str(told.get("type")), told.get("message"), parts=told.get("parts"))


def _rebuild(recorded: RecordedError) -> Exception:
    """The exception of a recorded failure: of its own class where that is at hand, with the recorded text.

    Its parts, where they are known, are the recorded ones too. A class that is missing, or that does not let itself be
    made from a text, becomes a `RecordedFailure`, which is what Python's own class behind it is caught as, and has the
    recorded attributes.
    """
    message = recorded.message or ""
    found = _find_class(recorded.type)
    if found is None:
        return _stand_in(recorded, Exception)
    if recorded.parts is not None:
        special = _group_of(found, recorded.parts) or _validation_of(found, recorded.parts)
        if (whole := special or _of_parts(found, recorded.parts, message)) is not None and str(whole) == message:
            return whole
    try:
        for arguments in _arguments_of(found, message):
            with contextlib.suppress(Exception):  # its text may be of what it was not made of
                error = _make(found, *arguments)
                if str(error) == message:
                    return _with_fields(error, recorded)
        # The text goes into the model's next request, so it has to be the recorded one to the letter.
        names = {"__module__": found.__module__, "__qualname__": found.__qualname__}
        told = type(found.__name__, (found,), {"__str__": lambda _: message, **names})
        error = _make(told, message)
        return _with_fields(error, recorded) if str(error) == message else _stand_in(recorded, found)
    except Exception:  # noqa: BLE001 - the class is the user's, and may do anything
        return _stand_in(recorded, found)


def _stand_in(recorded: RecordedError, found: type[Exception]) -> RecordedFailure:
    message = recorded.message or ""
    kind: Any = RecordedFailure
    base = next(one for one in found.__mro__ if one.__module__ == "builtins")
    if base is not Exception:
        with contextlib.suppress(TypeError):  # two classes of Python's own that cannot be one
            kind = type(RecordedFailure.__name__, (RecordedFailure, base), {"__module__": RecordedFailure.__module__})
    try:
        failure: RecordedFailure = kind(recorded.type, message)
        failure = failure if str(failure) == message else RecordedFailure(recorded.type, message)
    except Exception:  # noqa: BLE001 - as some want more than a text
        failure = RecordedFailure(recorded.type, message)
    return _with_fields(failure, recorded)


Failure = TypeVar("Failure", bound=Exception)


def _with_fields(error: Failure, recorded: RecordedError) -> Failure:
    """The exception with the recorded attributes that it lacks."""
    fields = plain((recorded.parts or {}).get("fields"))
    for name, value in fields.items() if isinstance(fields, dict) else ():
        if not hasattr(error, name):
            setattr(error, name, http_parts.made_again(value))
    return error


def _of_parts(found: type[Exception], parts: Mapping[str, Json], message: str) -> Exception | None:
    """The exception as it was made; None where that does not come to the recorded text."""
    given = {name: parts.get(name) for name in ("arguments", "fields")}
    shape = parts.get("type")
    try:
        whole = reshaped(given, shape, names_of_class(found)) if isinstance(shape, str) else plain(given)
        arguments = tuple(map(http_parts.made_again, whole["arguments"]))
        fields = {name: http_parts.made_again(value) for name, value in whole["fields"].items()}
        error = _make(found, *arguments)
        if _taken_apart(error)[0] != arguments:  # a class that makes them of what it is given
            error.args = arguments
        vars(error).update(fields)
        return error if str(error) == message else None
    except Exception:  # noqa: BLE001 - the class is the user's, and the parts may have been anybody's
        return None


def _taken_apart(error: BaseException) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What an exception is made of, and its attributes, as the class of Python's own that it comes from says."""
    kind = next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")
    reduce: Any = kind.__reduce__
    _, arguments, *state = reduce(error)
    fields = state[0] if state and isinstance(state[0], dict) else {}
    return tuple(arguments), fields


def _arguments_of(found: type[Exception], message: str) -> Iterator[tuple[Any, ...]]:
    """What the exception may have been made of, the likeliest first."""
    if not message:
        yield ()
    if issubclass(found, OSError) and (read := _ERRNO.fullmatch(message)) is not None:
        number, text, file = read.groups()
        yield (int(number), text) if file is None else (int(number), text, file)
    if issubclass(found, KeyError):  # whose text is the repr of its key
        with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            yield (ast.literal_eval(message),)
    yield (message,)


_ERRNO: Final = re.compile(r"\[Errno (\d{1,6})\] ([^\n]*?)(?:: '([^\n]*)')?")
"""The text of an OSError: number, what it means, and the file it is about."""


def _make(found: type[Exception], *arguments: Any) -> Exception:
    try:
        return found(*arguments)
    except Exception:  # noqa: BLE001 - as above
        error = found.__new__(found)
        error.args = arguments
        return error


def _find_class(name: str) -> type[Exception] | None:
    steps = name.split(".")
    if len(steps) == 1:
        return _exception(getattr(builtins, name, None))
    for cut in range(len(steps) - 1, 0, -1):
        module: Any = _module(".".join(steps[:cut]))
        for step in steps[cut:]:
            module = getattr(module, step, None)
        if (found := _exception(module)) is not None:
            return found
    return None


def _module(name: str) -> Any:
    # A document must not make us import what the process does not use already.
    if name not in sys.modules and name.partition(".")[0] in sys.modules:
        try:
            return importlib.import_module(name)
        except Exception:  # noqa: BLE001 - a module runs when it is imported
            return None
    return sys.modules.get(name)


def _exception(found: Any) -> type[Exception] | None:
    return found if isinstance(found, type) and issubclass(found, Exception) else None
