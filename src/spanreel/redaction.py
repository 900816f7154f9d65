"""What may leave the process: credentials are masked, in decoded values to any depth and in text.

The same functions run on what is recorded and, in a replay, on live values before they are compared; so they are
deterministic, and redacting again changes nothing. Personal data and digests have an issue of their own; `Policy` is
the seam for them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from opentelemetry.util.types import AttributeValue

from spanreel import conventions, json_text
from spanreel.credential_names import is_credential_name
from spanreel.detectors import DETECTORS, MASK, Detector, Search, find_all, make_search, places_in
from spanreel.memory import Memory
from spanreel.model import Json

KNOWN_BYTES: Final = 4 * 1024 * 1024
"""How much of what was redacted before is known again."""


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """What is redacted: values under names that ``is_credential`` knows, and what the search finds in text.

    ``known`` are texts that were redacted before.
    """

    name: str
    is_credential: Callable[[str], bool]
    search: Search
    key_ids: tuple[str, ...] = ()
    known: Memory[str] = field(default_factory=lambda: Memory(KNOWN_BYTES))


def make_policy(name: str, is_credential: Callable[[str], bool], detectors: tuple[Detector, ...]) -> Policy:
    """The policy of these rules."""
    return Policy(name, is_credential, make_search(detectors))


DEFAULT: Final = make_policy("spanreel.default/1", is_credential_name, DETECTORS)


@dataclass(frozen=True, slots=True)
class Redacted:
    """Attributes as they may leave; which of them changed, and how many could not be examined and are masked whole."""

    attributes: dict[str, AttributeValue]
    changed: frozenset[str]
    failures: int = 0


def redact_attributes(attributes: Mapping[str, AttributeValue], policy: Policy = DEFAULT) -> Redacted:
    """Redact the attributes of a span, an event, a link or a resource, ours and anybody's. Never raises."""
    redacted: dict[str, AttributeValue] = {}
    changed = set()
    failures = 0
    for name, value in attributes.items():
        if name in _OWN_MARKS:
            redacted[name] = value
            continue
        try:
            new_name, new = _key(name, policy), _under(name, value, policy)
        except Exception:  # noqa: BLE001 -- whatever a rule raises: what could not be examined does not leave
            new_name, new, failures = name, MASK, failures + 1
        redacted[new_name] = new
        if new is not value or new_name != name:
            changed.add(new_name)
    return Redacted(redacted, frozenset(changed), failures)


def redact_json(value: Json, policy: Policy = DEFAULT) -> tuple[Json, bool]:
    """Redact a JSON value; gives it back with whether something changed, the very same object where nothing did."""
    redacted = _walk(value, policy)
    return redacted, redacted is not value


def redact_text(text: str, policy: Policy = DEFAULT) -> str:
    """Redact what detectors find in text that is no JSON."""
    if len(text) < _SHORTEST:
        return text
    found = find_all(text, policy.search)
    if not found:
        return text
    parts, done = [], 0
    for finding in found:
        parts += [text[done : finding.start], MASK]
        done = finding.end
    return "".join([*parts, text[done:]])


@functools.lru_cache(4096)
def _name(name: str, policy: Policy) -> str:
    """`redact_text` of names of attributes and keys, which are few."""
    return redact_text(name, policy)


_OWN_MARKS: Final = frozenset({conventions.FIDELITY, conventions.REDACTION, conventions.LOSSES})
"""Attributes that say something about others, by name; they hold no content."""

_SHORTEST: Final = 5
_WORD: Final = 64
_SHORT: Final = 400
_FLAG: Final = "-"
_PLAIN: Final = frozenset({int, float, bool, type(None)})
_CLEAN: Final = ""
"""What is known of text in which nothing had to be redacted."""


def _walk(value: Any, policy: Policy) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is dict:
        return _mapping(value, policy)
    if kind is str:
        return _string(value, policy) if len(value) < _SHORT else _known(value, policy)
    if kind is json_text.Listed:
        return _listed(value, policy)
    if isinstance(value, str):
        return _string(value, policy)
    if isinstance(value, Mapping):
        return _mapping(value, policy)
    if isinstance(value, (bytes, bytearray)):
        text = value.decode("utf-8", "surrogateescape")
        redacted = _string(text, policy)
        return value if redacted is text else redacted.encode("utf-8", "surrogateescape")
    if isinstance(value, Sequence):
        return _sequence(value, policy)
    return value


def _listed(text: json_text.Listed, policy: Policy) -> str:
    """A list of objects, most of which were in the list before: each by itself, and once."""
    if not all(item[:1] == "{" for item in text.items):
        return _string(text, policy)  # other items can tell something about each other
    items = tuple(_known(item, policy) for item in text.items)
    return text if all(new is old for new, old in zip(items, text.items, strict=True)) else json_text.listed(items)


def _known(text: str, policy: Policy) -> str:
    """`_string` of text that may well come again."""
    known = policy.known.find(text)
    if known is None:
        redacted = _string(text, policy)
        policy.known.keep(text, _CLEAN if redacted is text else redacted)
        return redacted
    return text if known is _CLEAN else known


def _string(text: str, policy: Policy) -> str:
    if len(text) < _SHORTEST:
        return text
    if text.lstrip()[:1] not in {"{", "[", '"'}:
        return redact_text(text, policy)
    escaped = "\\u" in text
    places = places_in(text, policy.search)
    if not places and not escaped:
        return text
    try:
        decoded = json_text.decode(text)
    except ValueError:
        return redact_text(text, policy)
    if not escaped and _are_harmless(_strings_at(text, places), policy):
        return text
    redacted = _walk(decoded, policy)
    if redacted is not decoded:
        return json_text.encode(redacted)
    # A key that stands twice: decoding shows its last value only, and writing it again drops the others.
    again = json_text.encode(decoded)
    return text if again == text or redact_text(text, policy) is text else again


def _are_harmless(strings: Iterator[str], policy: Policy) -> bool:
    """Whether the strings of a JSON text in which fragments stand are neither secrets nor names of some."""
    return all(_is_harmless(text, policy) for text in strings)


def _is_harmless(text: str, policy: Policy) -> bool:
    return _is_harmless_word(text, policy) if len(text) < _WORD else _leaves(text, policy)


def _leaves(text: str, policy: Policy) -> bool:
    return not policy.is_credential(text) and _string(text, policy) is text


_is_harmless_word = functools.lru_cache(4096)(_leaves)
"""Of keys, which are few and come again and again."""


def _strings_at(text: str, places: Sequence[int]) -> Iterator[str]:
    """The strings, decoded, that stand in a JSON text around these places."""
    end = 0
    for place in places:
        if place < end:
            continue
        start = text.rfind('"', 0, place)
        while _is_escaped(text, start):
            start = text.rfind('"', 0, start)
        end = text.find('"', place)
        while _is_escaped(text, end):
            end = text.find('"', end + 1)
        inside = text[start + 1 : end]
        yield str(json_text.decode(f'"{inside}"')) if "\\" in inside else inside


def _is_escaped(text: str, quote: int) -> bool:
    """Whether the quote belongs to the string that it stands in."""
    before = quote
    while text[before - 1 : before] == "\\":
        before -= 1
    return (quote - before) % 2 == 1


def _mapping(value: Mapping[Any, Any], policy: Policy) -> Any:
    redacted = {}
    changed = False
    for key, item in value.items():
        new_key = _key(key, policy) if isinstance(key, str) else key
        # The likelihoods of a model's tokens have the token itself under this name.
        new = _walk(item, policy) if key == "token" and "logprob" in value else _under(key, item, policy)
        redacted[new_key] = new
        changed = changed or new is not item or new_key != key
    name = next((value[key] for key in ("name", "key", "header") if isinstance(value.get(key), str)), None)
    if name is not None and isinstance(value.get("value"), str):
        redacted["value"] = _under(name, redacted["value"], policy)
        changed = changed or redacted["value"] != value["value"]
    kind = value.get("type")
    if isinstance(kind, str) and kind != "token" and policy.is_credential(kind):  # {"type": "api_key", "key": "..."}
        for place in ("key", "value"):
            if isinstance(value.get(place), str):
                redacted[place] = _conceal(kind, redacted[place], policy)
                changed = changed or redacted[place] != value[place]
    return redacted if changed else value


def _key(key: str, policy: Policy) -> str:
    return _name(key, policy) if len(key) < _SHORT else redact_text(key, policy)


def _sequence(value: Sequence[Any], policy: Policy) -> Any:
    redacted = [_walk(item, policy) for item in value]
    for place in range(1, len(redacted)):  # a command line: --api-key VALUE
        flag = value[place - 1]
        if isinstance(flag, str) and flag.startswith(_FLAG) and isinstance(value[place], str) and "=" not in flag:
            redacted[place] = _under(flag, redacted[place], policy)
    for place, pair in enumerate(redacted):  # headers as pairs
        if isinstance(pair, (list, tuple)) and len(pair) == 2 and all(isinstance(item, str) for item in pair):
            concealed = _under(pair[0], pair[1], policy)
            redacted[place] = pair if concealed is pair[1] else [pair[0], concealed]
    if all(new is old for new, old in zip(redacted, value, strict=True)):
        return value
    return tuple(redacted) if isinstance(value, tuple) else redacted


def _under(name: Any, value: Any, policy: Policy) -> Any:
    """The value as it may stand under this name."""
    if isinstance(name, str) and policy.is_credential(name):
        return _conceal(name, value, policy)
    return _walk(value, policy)


def _conceal(name: str, value: Any, policy: Policy) -> Any:
    """A credential's value without it: text and numbers go, structure stays, as does what describes and is none."""
    if isinstance(value, str):
        return value if value in {"", MASK} else MASK
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float)):
        return value if "token" in name.lower() else MASK
    if isinstance(value, (bytes, bytearray)):
        return MASK
    if isinstance(value, Mapping):
        spared = _is_schema(value)
        redacted = {
            key: _walk(item, policy) if spared and key not in _SCHEMA_VALUES else _conceal(name, item, policy)
            for key, item in value.items()
        }
        return _walk(value, policy) if redacted == value else redacted
    redacted_items = [_conceal(name, item, policy) for item in value]
    if redacted_items == list(value):
        return value
    return tuple(redacted_items) if isinstance(value, tuple) else redacted_items


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
