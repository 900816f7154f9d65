"""A span on its way out: redacted in every place where content can stand, bounded, and such that OTLP can carry it.

The order has a meaning: content that is off goes first, then what is binary; the policy looks at what is left, whole;
only then is it cut, or kept elsewhere.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opentelemetry.attributes import BoundedAttributes
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, Status, StatusCode, TraceState
from opentelemetry.util.types import AttributeValue

from spanreel import conventions
from spanreel.bounds import bound, cut_text, size_of, tighten
from spanreel.encoded_sizes import attributes_size
from spanreel.fidelity import OWN_MARKS, mark
from spanreel.metadata import event_name, only_known, only_metadata, only_process
from spanreel.model import Fidelity
from spanreel.offloading import Offload
from spanreel.otlp_bytes import Pieces, WrittenSpan
from spanreel.redaction import Policy, header, policy_of, redact_attributes
from spanreel.safe_texts import (
    EVENT_BYTES,
    NAME_BYTES,
    STATUS_BYTES,
    attributes_without_binary,
    carriable,
    carried,
    safe_few,
    safe_name,
    safe_text,
)
from spanreel.settings import CaptureLevel, Settings
from spanreel.spans import OwnSpan
from spanreel.unchanged import unchanged


@dataclass(frozen=True, slots=True)
class Terms:
    """On what terms spans leave; large values are kept by ``offload``, where there is one."""

    settings: Settings
    policy: Policy
    offload: Offload | None = None


def finish(
    attributes: Mapping[str, AttributeValue],
    settings: Settings,
    policy: Policy | None = None,
    offload: Offload | None = None,
) -> dict[str, AttributeValue]:
    """A span's attributes as they may leave: redacted, bounded; ``spanreel.fidelity`` says both. Never raises."""
    return _finish(attributes, Terms(settings, policy or policy_of(settings), offload))[0]


def _finish(attributes: Mapping[str, AttributeValue], terms: Terms) -> tuple[dict[str, AttributeValue], Pieces | None]:
    """`finish`, and the attributes as they are written in a request where that is known."""
    settings, policy, offload = terms.settings, terms.policy, terms.offload
    leaving = attributes if settings.content else only_metadata(attributes)
    found = unchanged(leaving, settings, policy, offload)
    if len(found.attributes) == len(leaving) and found.size <= settings.max_span_bytes:
        return found.attributes, found.written
    return _change(leaving, found.attributes, terms), None


def _change(
    leaving: Mapping[str, AttributeValue], known: Mapping[str, AttributeValue], terms: Terms
) -> dict[str, AttributeValue]:
    """The long way of `finish`; ``known`` are the attributes that need not go it."""
    settings, policy, offload = terms.settings, terms.policy, terms.offload
    others = {name: value for name, value in leaving.items() if name not in known}
    plain, replaced, unread = attributes_without_binary(others, offload.keep_binary if offload is not None else None)
    redacted = redact_attributes(plain, policy)
    changed = {*redacted.changed, *(safe_text(name, NAME_BYTES, policy) for name in replaced)}
    finished = mark(redacted.attributes, changed, Fidelity.REDACTED)
    if redacted.changed:
        before = finished.get(conventions.REDACTION)
        finished[conventions.REDACTION] = header(policy, redacted.key_ids, before)
    if redacted.failures or unread:
        finished[conventions.REDACTION_FAILURES] = redacted.failures + unread
    if settings.capture is CaptureLevel.BOUNDED:
        tight = tighten(finished, settings.max_tool_characters, settings.max_payload_characters)
        finished = mark(tight.attributes, tight.truncated, Fidelity.TRUNCATED)
    if offload is not None:
        finished = offload.take(finished, OWN_MARKS)
    finished = {name: value for name, value in leaving.items() if name in known or name in finished} | finished
    bounded = bound(finished, settings.max_value_bytes, settings.max_span_bytes)
    finished = mark(bounded.attributes, bounded.truncated, Fidelity.TRUNCATED)
    finished = mark(finished, bounded.dropped, Fidelity.ABSENT)
    return {name if name in known else carried(name): carriable(value) for name, value in finished.items()}


def finish_span(
    span: OwnSpan | ReadableSpan,
    resource: Resource,
    attributes: Mapping[str, AttributeValue],
    terms: Terms,
) -> ReadableSpan:
    """A copy of the span with these attributes and this finished resource, with nothing in it that may not leave."""
    settings, policy = terms.settings, terms.policy
    finished, written = _finish(attributes, terms)
    content = settings.content
    events = [_event(event, policy, content=content) for event in _within(span.events, settings.max_span_bytes // 4)]
    links = [_link(link, policy, content=content) for link in span.links]
    dropped = getattr(span, "dropped_attributes", 0)
    leaving = WrittenSpan(
        name=safe_name(span.name, policy),
        context=_context(span.context, policy),
        parent=span.parent,
        resource=resource,
        attributes=_counted(finished, dropped) if dropped else finished,
        events=events,
        links=links,
        kind=span.kind,
        status=failure_in(finished, span.status) or _status(span.status, policy, content=content),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=_scope(span.instrumentation_scope, policy),
    )
    leaving.written = written
    return leaving


def finish_resource(resource: Resource, terms: Terms) -> Resource:
    """The resource as it may leave."""
    attributes = resource.attributes if terms.settings.content else only_process(resource.attributes)
    return _Finished(safe_few(attributes, terms.policy), resource.schema_url)


class _Finished(Resource):
    """A resource whose hash, for which the SDK's encoder asks at each span, is worked out once."""

    def __init__(self, attributes: Mapping[str, Any], schema_url: str | None = None) -> None:
        super().__init__(attributes, schema_url)
        self._hash = super().__hash__()

    def __hash__(self) -> int:
        return self._hash


def _within(events: Sequence[Event], limit: int) -> list[Event]:
    """The first events that fit: the newest are dropped."""
    kept = []
    for event in events:
        limit -= min(attributes_size(event.attributes), EVENT_BYTES) + size_of(event.name)
        if limit < 0:
            break
        kept.append(event)
    return kept


def _event(event: Event, policy: Policy, *, content: bool) -> Event:
    name, attributes = event.name, event.attributes
    if not content:
        name, attributes = event_name(name), only_known(attributes)
    return Event(safe_text(name, NAME_BYTES, policy), safe_few(attributes, policy), event.timestamp)


def _link(link: Link, policy: Policy, *, content: bool) -> Link:
    attributes = link.attributes if content else only_known(link.attributes)
    return Link(_context(link.context, policy) or link.context, safe_few(attributes, policy))


def _context(context: SpanContext | None, policy: Policy) -> SpanContext | None:
    """The ids, and of the trace state, which its vendors fill as they like, what the policy leaves as it is."""
    if context is None or not context.trace_state:
        return context
    kept = [
        (key, value)
        for key, value in context.trace_state.items()
        if safe_text(f"{key}={value}", NAME_BYTES, policy) == f"{key}={value}"
    ]
    return SpanContext(context.trace_id, context.span_id, context.is_remote, context.trace_flags, TraceState(kept))


@functools.lru_cache(256)
def _scope(scope: InstrumentationScope | None, policy: Policy) -> InstrumentationScope | None:
    if scope is None:
        return None
    return InstrumentationScope(
        safe_text(scope.name, NAME_BYTES, policy),
        safe_text(scope.version, NAME_BYTES, policy) if scope.version else scope.version,
        scope.schema_url,
        safe_few(scope.attributes, policy),
    )


def _status(status: Status, policy: Policy, *, content: bool) -> Status:
    if not content or not status.description:
        return Status(status.status_code)
    return Status(status.status_code, safe_text(status.description, STATUS_BYTES, policy))


def _counted(attributes: dict[str, AttributeValue], dropped: int) -> BoundedAttributes:
    """The attributes, with how many others the SDK's limits have cost."""
    counted = BoundedAttributes(attributes=attributes, immutable=False)
    counted.dropped = dropped
    return counted


def failure_in(attributes: Mapping[str, AttributeValue], status: Status) -> Status | None:
    """The status of a span that said nothing of a failure found only when its answer was read, as a stream's is."""
    if status.status_code is not StatusCode.UNSET or conventions.ERROR_TYPE not in attributes:
        return None
    message = attributes.get(conventions.ERROR_MESSAGE)
    return Status(StatusCode.ERROR, cut_text(message, STATUS_BYTES) if isinstance(message, str) else None)
