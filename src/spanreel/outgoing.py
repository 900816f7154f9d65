"""A span on its way out: redacted in every place where content can stand, bounded, and such that OTLP can carry it.

The order has a meaning: content that is off goes first, then what is binary; the policy looks at what is left, whole;
only then is it cut, or kept elsewhere.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from opentelemetry.attributes import BoundedAttributes
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, Status, StatusCode, TraceState
from opentelemetry.util.types import AttributeValue

from spanreel import conventions
from spanreel.binary import Keep, without_binary, without_binary_text
from spanreel.bounds import bound, cut_text, size_of, tighten
from spanreel.detectors import MASK
from spanreel.fidelity import OWN_MARKS, mark
from spanreel.metadata import event_name, only_known, only_metadata, only_process
from spanreel.model import Fidelity
from spanreel.offloading import Offload
from spanreel.redaction import (
    DEFAULT,
    Policy,
    Redacted,
    header,
    is_examined_quickly,
    is_harmless_scalar,
    policy_of,
    redact_attributes,
    redact_text,
)
from spanreel.settings import Capture, Settings
from spanreel.spans import OwnSpan

NAME_BYTES: Final = 1024
STATUS_BYTES: Final = 16 * 1024
EVENT_BYTES: Final = 64 * 1024
"""The most of one event's attribute (a stack trace) that is kept."""
SPAN_OVERHEAD: Final = 256
ATTRIBUTE_OVERHEAD: Final = 24
"""More than protobuf needs around a span, and around an attribute."""


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
    policy = policy or policy_of(settings)
    leaving = attributes if settings.content else only_metadata(attributes)
    known = {} if _looks_at_all(settings, policy, offload) else _known_to_leave(leaving, policy)
    others = {name: value for name, value in leaving.items() if name not in known}
    plain, replaced, unread = _without_binary(others, offload.keep_binary if offload is not None else None)
    redacted = redact_attributes(plain, policy)
    changed = {*redacted.changed, *(safe_text(name, NAME_BYTES, policy) for name in replaced)}
    finished = mark(redacted.attributes, changed, Fidelity.REDACTED)
    if redacted.changed:
        before = finished.get(conventions.REDACTION)
        finished[conventions.REDACTION] = header(policy, redacted.key_ids, before)
    if redacted.failures or unread:
        finished[conventions.REDACTION_FAILURES] = redacted.failures + unread
    if settings.capture is Capture.BOUNDED:
        tight = tighten(finished, settings.max_tool_characters, settings.max_payload_characters)
        finished = mark(tight.attributes, tight.truncated, Fidelity.TRUNCATED)
    if offload is not None:
        finished = offload.take(finished, OWN_MARKS)
    # What is known is too short to be cut.
    bounded = bound(finished, settings.max_value_bytes, settings.max_span_bytes - sum(map(size_of, known.values())))
    finished = mark(bounded.attributes, bounded.truncated, Fidelity.TRUNCATED)
    finished = mark(finished, bounded.dropped, Fidelity.ABSENT)
    carried = {_carried(name): _carriable(value) for name, value in finished.items()}
    return {name: value for name, value in leaving.items() if name in known or name in carried} | carried


def _looks_at_all(settings: Settings, policy: Policy, offload: Offload | None) -> bool:
    """Whether what becomes of an attribute depends on the others, or on more than what it says."""
    asked = bool(policy.tools) or offload is not None or settings.capture is Capture.BOUNDED
    return asked or settings.max_value_bytes < _SHORT


def _known_to_leave(attributes: Mapping[str, AttributeValue], policy: Policy) -> dict[str, AttributeValue]:
    """The attributes that leave as they are, told by what was found out of such before: most of a span's."""
    known: dict[str, AttributeValue] = {}
    for name, value in attributes.items():
        if type(value) is str:
            leaves = len(value) < _SHORT and _leaves(name, value, policy)
        elif type(value) is float:
            leaves = math.isfinite(value) and _leaves(name, "", policy)
        else:
            leaves = type(value) in _PLAIN and is_harmless_scalar(value) and _leaves(name, "", policy)
        if leaves:
            known[name] = value
        elif isinstance(value, (list, tuple)) and len(value) == 1:  # why a model stopped, say
            (item,) = value
            if type(item) is str and len(item) < _SHORT and _leaves(name, item, policy):
                known[name] = [item]
    return known


_SHORT: Final = 64


@functools.lru_cache(8192)
def _leaves(name: str, text: str, policy: Policy) -> bool:
    if name in OWN_MARKS or not (name.isascii() and text.isascii()):
        return False
    return is_examined_quickly(name, text, policy) and without_binary_text(text) is text


def finish_span(
    span: OwnSpan | ReadableSpan,
    resource: Resource,
    attributes: Mapping[str, AttributeValue],
    terms: Terms,
) -> ReadableSpan:
    """A copy of the span with these attributes and this finished resource, with nothing in it that may not leave."""
    settings, policy = terms.settings, terms.policy
    finished = finish(attributes, settings, policy, terms.offload)
    content = settings.content
    events = [_event(event, policy, content=content) for event in _within(span.events, settings.max_span_bytes // 4)]
    links = [_link(link, policy, content=content) for link in span.links]
    dropped = getattr(span, "dropped_attributes", 0)
    return ReadableSpan(
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


def finish_resource(resource: Resource, terms: Terms) -> Resource:
    """The resource as it may leave."""
    attributes = resource.attributes if terms.settings.content else only_process(resource.attributes)
    return _Finished(_small(attributes, terms.policy), resource.schema_url)


class _Finished(Resource):
    """A resource whose hash, for which the SDK's encoder asks at each span, is worked out once."""

    def __init__(self, attributes: Mapping[str, Any], schema_url: str | None = None) -> None:
        super().__init__(attributes, schema_url)
        self._hash = super().__hash__()

    def __hash__(self) -> int:
        return self._hash


def safe_text(text: str, limit: int, policy: Policy = DEFAULT) -> str:
    """Text outside of attributes (names, status) as it may leave."""
    try:
        redacted = redact_text(without_binary_text(text), policy)
    except Exception:  # noqa: BLE001 -- whatever a rule raises: what could not be examined does not leave
        return MASK
    return _carried(cut_text(redacted, limit))


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
            safe[safe_name(name, policy)] = _carriable(value)
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


def encoded_size(span: ReadableSpan) -> int:
    """At least the bytes that the span takes in an OTLP request."""
    size = SPAN_OVERHEAD + size_of(span.name) + size_of(span.status.description or "")
    size += _attributes_size(span.attributes)
    size += sum(64 + size_of(event.name) + _attributes_size(event.attributes) for event in span.events)
    return size + sum(64 + _attributes_size(link.attributes) for link in span.links)


def _attributes_size(attributes: Mapping[str, Any] | None) -> int:
    size = 0
    for name, value in (attributes or {}).items():
        if type(value) in _PLAIN or (type(value) is str and value.isascii()):
            value_size = len(value) if type(value) is str else 8
            size += len(name) + value_size + 2 * ATTRIBUTE_OVERHEAD
            continue
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


def _event(event: Event, policy: Policy, *, content: bool) -> Event:
    name, attributes = event.name, event.attributes
    if not content:
        name, attributes = event_name(name), only_known(attributes)
    return Event(safe_text(name, NAME_BYTES, policy), _small(attributes, policy), event.timestamp)


def _link(link: Link, policy: Policy, *, content: bool) -> Link:
    attributes = link.attributes if content else only_known(link.attributes)
    return Link(_context(link.context, policy) or link.context, _small(attributes, policy))


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
        _small(scope.attributes, policy),
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


_PLAIN: Final = frozenset({int, float, bool})


def _without_binary(
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


def _small(attributes: Mapping[str, Any] | None, policy: Policy) -> dict[str, AttributeValue]:
    return _redacted(attributes or {}, policy).attributes


def _redacted(attributes: Mapping[str, Any], policy: Policy) -> Redacted:
    """What may leave of a few attributes, bounded."""
    redacted = redact_attributes(_without_binary(attributes, None)[0], policy)
    bounded = bound(redacted.attributes, EVENT_BYTES, EVENT_BYTES).attributes
    return replace(redacted, attributes={_carried(name): _carriable(value) for name, value in bounded.items()})


def failure_in(attributes: Mapping[str, AttributeValue], status: Status) -> Status | None:
    """The status of a span that said nothing of a failure found only when its answer was read, as a stream's is."""
    if status.status_code is not StatusCode.UNSET or conventions.ERROR_TYPE not in attributes:
        return None
    message = attributes.get(conventions.ERROR_MESSAGE)
    return Status(StatusCode.ERROR, cut_text(message, STATUS_BYTES) if isinstance(message, str) else None)


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
