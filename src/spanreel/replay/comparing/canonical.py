"""The form in which replay compares (`spanreel.canon/1`): what is equal has equal text. Decides nothing about matches.

Equal: key order, ``2`` and ``2.0``, tuple and list, defaults filled or not. Different: ``True`` and ``1``, ``"a"`` and
``"a "``, another list order, null and nothing (except where the tool's schema makes null the default).
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from spanreel.binary import without_binary
from spanreel.json_pointers import read_step, write_step
from spanreel.json_text import decode, encode, without_surrogates
from spanreel.model import Json
from spanreel.snapshot import snapshot

EXACT: Final = 2**53
"""Whole floats below this are whole numbers."""
_STAND_INS: Final = ("[redacted", "[binary ")
DEPTH: Final = 12
"""Schemas nest, and may nest themselves; deeper defaults are left alone."""


class Nothing(Enum):
    """Where one side has no value at all; null is a value."""

    NOTHING = "nothing"


NOTHING: Final = Nothing.NOTHING


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where two values differ, as a JSON pointer, and what stands there on either side."""

    pointer: str
    recorded: Json | Nothing
    live: Json | Nothing


def canonical(value: Any) -> Json:
    """Any value in canonical form."""
    return canonical_json(without_binary(snapshot(value).value))


def canonical_json(value: Json) -> Json:
    """A JSON value in canonical form. Binary content is its stand-in, as recordings keep it."""
    return _canonical(without_binary(value))


def _canonical(value: Json) -> Json:
    if isinstance(value, dict):
        return {unicodedata.normalize("NFC", key): _canonical(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT:
        return int(value)
    if isinstance(value, str) and any(sign in value for sign in _STAND_INS):
        value = _settled(value)
    # Documents cannot hold half a surrogate pair, so that the recorded side has lost it.
    return without_surrogates(value)


def _settled(text: str) -> str:
    """JSON inside of text in which something was replaced was written again then, in the recorder's own spacing."""
    if text.lstrip()[:1] not in {"{", "["}:
        return text
    try:
        return encode(canonical_json(decode(text)))
    except ValueError:
        return text


def canonical_arguments(arguments: Any, schema: Json = None) -> Json:
    """A tool's arguments in canonical form, JSON text read, defaults of its JSON Schema filled in; none is ``{}``."""
    value = canonical(_read(arguments))
    return fill_defaults(value, schema) if isinstance(schema, Mapping) else value


def text(value: Json) -> str:
    """A canonical value as text: equal texts are equal values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def first_difference(recorded: Json, live: Json, pointer: str = "") -> Difference | None:
    """Where two canonical values first differ; None where they are equal."""
    if isinstance(recorded, dict) and isinstance(live, dict):
        for key in sorted({*recorded, *live}, key=_prominence):
            below = f"{pointer}/{write_step(key)}"
            found = _step(recorded.get(key, NOTHING), live.get(key, NOTHING), below)
            if found is not None:
                return found
        return None
    if isinstance(recorded, list) and isinstance(live, list):
        for number in range(max(len(recorded), len(live))):
            one = recorded[number] if number < len(recorded) else NOTHING
            other = live[number] if number < len(live) else NOTHING
            found = _step(one, other, f"{pointer}/{number}")
            if found is not None:
                return found
        return None
    # Python says True == 1 and 1 == 1.0; JSON says neither.
    if type(recorded) is type(live) and recorded == live:
        return None
    return Difference(pointer, recorded, live)


def fill_defaults(value: Json, schema: Mapping[str, Any]) -> Json:
    """The value with the defaults of its JSON Schema where it says nothing, also inside objects and lists."""
    return _fill(value, schema, schema, DEPTH)


def _step(recorded: Json | Nothing, live: Json | Nothing, pointer: str) -> Difference | None:
    if recorded is NOTHING or live is NOTHING:
        return Difference(pointer, recorded, live)
    return first_difference(recorded, live, pointer)


def _prominence(key: str) -> tuple[bool, str]:
    # What a thing is tells more than what it holds, so it is compared first.
    return key not in ("role", "type", "name"), key


def _read(arguments: Any) -> Any:
    if arguments is None or arguments == "":
        return {}
    if isinstance(arguments, str):
        try:
            read = json.loads(arguments)
        except ValueError:
            return arguments
        return read if isinstance(read, dict) else arguments
    return arguments


def _fill(value: Json, schema: Any, root: Mapping[str, Any], depth: int) -> Json:
    schema = _resolve(schema, root, value)
    if schema is None or depth == 0:
        return value
    if isinstance(value, list):
        return [_fill(item, schema.get("items"), root, depth - 1) for item in value]
    properties = schema.get("properties")
    if not isinstance(value, dict) or not isinstance(properties, Mapping):
        return value
    filled = dict(value)
    for name, inner in properties.items():
        if name in filled:
            filled[name] = _fill(filled[name], inner, root, depth - 1)
        elif isinstance(inner, Mapping) and "default" in inner:
            filled[name] = canonical(inner["default"])
    return filled


def _resolve(schema: Any, root: Mapping[str, Any], value: Json) -> Mapping[str, Any] | None:
    """The schema behind a reference, or the one branch that the value can be of."""
    for _ in range(DEPTH):
        if not isinstance(schema, Mapping):
            return None
        if isinstance(reference := schema.get("$ref"), str):
            schema = _follow(reference, root)
            continue
        branches = [branch for branch in _branches(schema) if _fits(branch, root, value)]
        if not branches:
            return schema
        if len(branches) > 1:
            return None
        schema = branches[0]
    return None


def _branches(schema: Mapping[str, Any]) -> Iterator[Any]:
    for word in ("anyOf", "oneOf", "allOf"):
        if isinstance(found := schema.get(word), list):
            yield from found


def _fits(schema: Any, root: Mapping[str, Any], value: Json) -> bool:
    if isinstance(schema, Mapping) and isinstance(reference := schema.get("$ref"), str):
        schema = _follow(reference, root)
    if not isinstance(schema, Mapping):
        return False
    kind = schema.get("type")
    return (isinstance(value, dict) and (kind == "object" or "properties" in schema)) or (
        isinstance(value, list) and kind == "array"
    )


def _follow(reference: str, root: Mapping[str, Any]) -> Any:
    found: Any = root
    for step in reference.removeprefix("#/").split("/"):
        found = found.get(read_step(step)) if isinstance(found, Mapping) else None
    return found
