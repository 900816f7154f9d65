"""A value that may not leave, without it: texts and numbers go, structure stays, as does what describes and is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final

from spanreel import json_text
from spanreel.detectors import MASK, find_all
from spanreel.digest import class_of, is_placeholder
from spanreel.policy import Policy
from spanreel.rules import Decision, Form


class Gone(Enum):
    """What stands where a value was dropped, until what is around it is made without it."""

    GONE = "gone"


GONE: Final = Gone.GONE

Examine = Callable[[Any], Any]


def conceal(decision: Decision, value: Any, policy: Policy, name: str, examine: Examine | None = None) -> Any:
    """A value that a decision is about; ``name`` is what it stands under.

    With ``examine``, JSON Schema of a parameter that has such a name is spared, and examined by that.
    """
    if decision.form is Form.KEEP or value is None or value is GONE:
        return value
    if decision.form is Form.DROP and not policy.labels:
        return GONE
    if isinstance(value, str):
        return _text(decision, value, policy, name)
    if isinstance(value, bool):
        return value if decision.lenient else _leaf(decision, value, policy, name)
    if isinstance(value, (int, float)):
        counts = decision.lenient and "token" in name.lower()
        return value if counts else _leaf(decision, value, policy, name)
    if isinstance(value, (bytes, bytearray)):
        return MASK
    if isinstance(value, Mapping):
        return _mapping(decision, value, policy, name, examine)
    concealed = [conceal(decision, item, policy, name, examine) for item in value]
    if all(new is old for new, old in zip(concealed, value, strict=True)):
        return value
    return tuple(concealed) if isinstance(value, tuple) else concealed


def _text(decision: Decision, text: str, policy: Policy, name: str) -> str:
    if text == "" or is_placeholder(text):
        return text
    if not decision.lenient and text.lstrip()[:1] in {"{", "["}:
        try:
            decoded = json_text.decode(text)
        except ValueError:
            return _leaf(decision, text, policy, name)
        concealed = conceal(decision, decoded, policy, name)
        return text if concealed is decoded else json_text.encode(concealed)
    return _leaf(decision, text, policy, name)


def _leaf(decision: Decision, leaf: Any, policy: Policy, name: str) -> str:
    return policy.put(decision, leaf, _class_of(leaf, policy, name) if decision.form is Form.DIGEST else "")


def _class_of(leaf: Any, policy: Policy, name: str) -> str:
    """What a detector calls the whole leaf, wherever it stands: it has the same digest in text; else its name."""
    if isinstance(leaf, str):
        found = find_all(leaf, policy.search)
        if len(found) == 1 and (found[0].start, found[0].end) == (0, len(leaf)):
            detector = found[0].detector.name
            return policy.found[detector].field_class or class_of(detector)
    return class_of(name)


def _mapping(decision: Decision, value: Mapping[Any, Any], policy: Policy, name: str, examine: Examine | None) -> Any:
    spared = _is_schema(value)
    concealed = {}
    for key, item in value.items():
        if examine is not None and spared and key not in _SCHEMA_VALUES:
            concealed[key] = examine(item)
        else:
            # A credential's parts are named by it; other values by what they stand under.
            inner = name if decision.lenient or not isinstance(key, str) else key
            concealed[key] = conceal(decision, item, policy, inner, examine)
    if any(new is not value[key] for key, new in concealed.items()):
        return concealed
    return value


def _is_schema(value: Mapping[Any, Any]) -> bool:
    """Whether this is JSON Schema, which describes a parameter that is called like a credential."""
    kinds = value.get("type")
    named = kinds if isinstance(kinds, (list, tuple)) else [kinds]
    return (
        not _SCHEMA_WORDS.isdisjoint(value)
        or any(isinstance(kind, str) and kind in _SCHEMA_TYPES for kind in named)
        or (bool(value) and _SCHEMA_NOTES.issuperset(value))
    )


_SCHEMA_WORDS: Final = frozenset({"$ref", "anyOf", "oneOf", "allOf", "enum", "const", "properties"})
_SCHEMA_TYPES: Final = frozenset({"string", "object", "array", "number", "integer", "boolean", "null"})
_SCHEMA_NOTES: Final = frozenset({"description", "title", "deprecated"})
_SCHEMA_VALUES: Final = frozenset({"default", "example", "examples"})
"""Where a schema holds values of what it describes."""
