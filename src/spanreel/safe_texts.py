"""Texts beside a span's own attributes, and the few attributes of events, links and scopes, as they may leave."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from opentelemetry.util.types import AttributeValue

from spanreel import conventions
from spanreel.binary import Keep, without_binary, without_binary_text
from spanreel.bounds import bound, cut_text
from spanreel.detectors import MASK
from spanreel.fidelity import mark
from spanreel.model import Fidelity
from spanreel.redaction import DEFAULT, Policy, Redacted, header, redact_attributes, redact_text

NAME_BYTES: Final = 1024
STATUS_BYTES: Final = 16 * 1024
EVENT_BYTES: Final = 64 * 1024
"""The most of one event's attribute (a stack trace) that is kept."""


def safe_text(text: str, limit: int, policy: Policy = DEFAULT) -> str:
    """Text outside of attributes (names, status) as it may leave."""
    try:
        redacted = redact_text(without_binary_text(text), policy)
    except Exception:  # noqa: BLE001 -- whatever a rule raises: what could not be examined does not leave
        return MASK
    return carried(cut_text(redacted, limit))


def safe_name(name: str, policy: Policy = DEFAULT) -> str:
    """The name of a span as it may leave, where its caller waits."""
    return _known_name(name, policy) if len(name) <= _WORTH_KNOWING else safe_text(name, NAME_BYTES, policy)


def safe_attributes(attributes: Mapping[str, Any] | None, policy: Policy = DEFAULT) -> dict[str, AttributeValue]:
    """What a span says from its start, as it may leave; its caller waits, and most of it was said before."""
    safe: dict[str, AttributeValue] = {}
    changed: set[str] = set()
    key_ids: set[str] = set()
    for name, value in (attributes or {}).items():
        if type(value) in (int, bool, float):
            safe[safe_name(name, policy)] = carriable(value)
            continue
        known = type(value) is str and len(value) <= _WORTH_KNOWING
        redacted = _known_attribute(name, value, policy) if known else _redacted({name: value}, policy)
        safe |= redacted.attributes
        changed |= redacted.changed
        key_ids |= redacted.key_ids
    if changed:
        safe = mark(safe, changed, Fidelity.REDACTED)
        safe[conventions.REDACTION] = header(policy, key_ids, safe.get(conventions.REDACTION))
    return safe


_WORTH_KNOWING: Final = 256


@functools.lru_cache(1024)
def _known_name(name: str, policy: Policy) -> str:
    return safe_text(name, NAME_BYTES, policy)


@functools.lru_cache(2048)
def _known_attribute(name: str, value: str, policy: Policy) -> Redacted:
    return _redacted({name: value}, policy)


_PLAIN: Final = frozenset({int, float, bool})


def attributes_without_binary(
    attributes: Mapping[str, AttributeValue], keep: Keep | None
) -> tuple[dict[str, AttributeValue], list[str], int]:
    """The attributes with stand-ins for binary content, which of them have some, and how many could not be read."""
    plain: dict[str, AttributeValue] = {}
    replaced: list[str] = []
    unread = 0
    for name, value in attributes.items():
        if type(value) in _PLAIN:
            plain[name] = value
            continue
        try:
            new = without_binary_text(value, keep) if isinstance(value, str) else without_binary(value, keep)
        except Exception:  # noqa: BLE001 -- nested too deep, say: what could not be examined does not leave
            new, unread = MASK, unread + 1
        plain[name] = new
        if new is not value:
            replaced.append(name)
    return plain, replaced, unread


def safe_few(attributes: Mapping[str, Any] | None, policy: Policy) -> dict[str, AttributeValue]:
    """A few attributes as they may leave, within the bounds of an event's."""
    return _redacted(attributes or {}, policy).attributes


def _redacted(attributes: Mapping[str, Any], policy: Policy) -> Redacted:
    """What may leave of a few attributes, bounded."""
    redacted = redact_attributes(attributes_without_binary(attributes, None)[0], policy)
    bounded = bound(redacted.attributes, EVENT_BYTES, EVENT_BYTES).attributes
    return replace(redacted, attributes={carried(name): carriable(value) for name, value in bounded.items()})


def carriable(value: AttributeValue) -> Any:
    """The value as OTLP takes it: one that it refuses would cost the whole batch."""
    if isinstance(value, str):
        return carried(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, Mapping):
        return {carried(str(key)): carriable(item) for key, item in value.items()}
    return [carriable(item) for item in value]


def carried(text: str) -> str:
    """The text without lone surrogates."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
