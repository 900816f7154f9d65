"""A span on its way out: redacted in every place where content can stand, bounded, and such that OTLP can carry it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.trace import Link, Status, StatusCode
from opentelemetry.util.types import AttributeValue

from spanreel import conventions, json_text
from spanreel.bounds import bound, cut_text, size_of
from spanreel.detectors import MASK
from spanreel.fidelity import mark
from spanreel.model import Fidelity
from spanreel.redaction import DEFAULT, Policy, redact_attributes, redact_text
from spanreel.settings import Settings

NAME_BYTES: Final = 1024
STATUS_BYTES: Final = 16 * 1024
EVENT_BYTES: Final = 64 * 1024
"""The most of one event's attribute (a stack trace) that is kept."""
SPAN_OVERHEAD: Final = 256
ATTRIBUTE_OVERHEAD: Final = 24
"""More than protobuf needs around a span, and around an attribute."""


def finish(
    attributes: Mapping[str, AttributeValue], settings: Settings, policy: Policy = DEFAULT
) -> dict[str, AttributeValue]:
    """A span's attributes as they may leave: redacted, bounded; ``spanreel.fidelity`` says both. Never raises."""
    redacted = redact_attributes(attributes, policy)
    finished = mark(redacted.attributes, redacted.changed, Fidelity.REDACTED)
    if redacted.changed:
        applied = {"policy": policy.name, "key_ids": list(policy.key_ids)}
        finished[conventions.REDACTION] = json_text.encode(applied)
    if redacted.failures:
        finished[conventions.REDACTION_FAILURES] = redacted.failures
    bounded = bound(finished, settings.max_value_bytes, settings.max_span_bytes)
    finished = mark(bounded.attributes, bounded.truncated, Fidelity.TRUNCATED)
    finished = mark(finished, bounded.dropped, Fidelity.ABSENT)
    return {_carried(name): _carriable(value) for name, value in finished.items()}


def finish_span(
    span: ReadableSpan,
    resource: Resource,
    attributes: Mapping[str, AttributeValue],
    settings: Settings,
    policy: Policy = DEFAULT,
) -> ReadableSpan:
    """A copy of the span with these attributes and this finished resource, with nothing in it that may not leave."""
    finished = finish(attributes, settings, policy)
    return ReadableSpan(
        name=safe_text(span.name, NAME_BYTES, policy),
        context=span.context,
        parent=span.parent,
        resource=resource,
        attributes=finished,
        events=[_event(event, policy) for event in _within(span.events, settings.max_span_bytes // 4)],
        links=[Link(link.context, _small(link.attributes, policy)) for link in span.links],
        kind=span.kind,
        status=failure_in(finished, span.status) or Status(span.status.status_code, _description(span.status, policy)),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def finish_resource(resource: Resource, policy: Policy = DEFAULT) -> Resource:
    """The resource as it may leave."""
    return Resource(_small(resource.attributes, policy), resource.schema_url)


def safe_text(text: str, limit: int, policy: Policy = DEFAULT) -> str:
    """Text outside of attributes (names, status) as it may leave."""
    try:
        redacted = redact_text(text, policy)
    except Exception:  # noqa: BLE001 -- whatever a rule raises: what could not be examined does not leave
        return MASK
    return _carried(cut_text(redacted, limit))


def encoded_size(span: ReadableSpan) -> int:
    """At least the bytes that the span takes in an OTLP request."""
    size = SPAN_OVERHEAD + size_of(span.name) + size_of(span.status.description or "")
    size += _attributes_size(span.attributes)
    size += sum(64 + size_of(event.name) + _attributes_size(event.attributes) for event in span.events)
    return size + sum(64 + _attributes_size(link.attributes) for link in span.links)


def _attributes_size(attributes: Mapping[str, Any] | None) -> int:
    size = 0
    for name, value in (attributes or {}).items():
        items = len(value) if isinstance(value, Sequence) and not isinstance(value, (str, bytes)) else 1
        size += size_of(name) + size_of(value) + ATTRIBUTE_OVERHEAD * (1 + items)
    return size


def _within(events: Sequence[Event], limit: int) -> list[Event]:
    """The first events that fit: the newest are dropped."""
    kept = []
    for event in events:
        limit -= min(_attributes_size(event.attributes), EVENT_BYTES) + size_of(event.name)
        if limit < 0:
            break
        kept.append(event)
    return kept


def _event(event: Event, policy: Policy) -> Event:
    return Event(safe_text(event.name, NAME_BYTES, policy), _small(event.attributes, policy), event.timestamp)


def _small(attributes: Mapping[str, Any] | None, policy: Policy) -> dict[str, AttributeValue]:
    redacted = redact_attributes(attributes or {}, policy).attributes
    bounded = bound(redacted, EVENT_BYTES, EVENT_BYTES).attributes
    return {_carried(name): _carriable(value) for name, value in bounded.items()}


def failure_in(attributes: Mapping[str, AttributeValue], status: Status) -> Status | None:
    """The status of a span that said nothing of a failure found only when its answer was read, as a stream's is."""
    if status.status_code is not StatusCode.UNSET or conventions.ERROR_TYPE not in attributes:
        return None
    message = attributes.get(conventions.ERROR_MESSAGE)
    return Status(StatusCode.ERROR, cut_text(message, STATUS_BYTES) if isinstance(message, str) else None)


def _description(status: Status, policy: Policy) -> str | None:
    return safe_text(status.description, STATUS_BYTES, policy) if status.description else None


def _carriable(value: AttributeValue) -> Any:
    """The value as OTLP takes it: one that it refuses would cost the whole batch."""
    if isinstance(value, str):
        return _carried(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, Mapping):
        return {_carried(str(key)): _carriable(item) for key, item in value.items()}
    return [_carriable(item) for item in value]


def _carried(text: str) -> str:
    """The text without lone surrogates."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
