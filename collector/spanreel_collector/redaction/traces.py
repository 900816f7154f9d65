"""A policy applied to exported traces and logs, as OTLP/JSON writes them: to every text, and to attributes as such."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, Final

from spanreel import conventions as names
from spanreel.binary import without_binary
from spanreel.detectors import MASK
from spanreel.fidelity import mark
from spanreel.model import Fidelity, Json
from spanreel.policy import Policy
from spanreel.redaction import Redacted, header, redact_attributes, redact_text
from spanreel_collector.otlp.json_values import read_value

_TEXTS: Final = frozenset(
    {"name", "message", "traceState", "trace_state", "severityText", "severity_text", "eventName", "event_name"}
)
_IDS: Final = ("spanId", "span_id")
_STARTS: Final = ("startTimeUnixNano", "start_time_unix_nano")


def redact_request(request: Json, policy: Policy) -> Json:
    """An export request without what the policy finds in it; its spans say what was changed in them."""
    return _node(request, policy)


def _node(node: Any, policy: Policy) -> Any:
    if isinstance(node, list):
        return [_node(item, policy) for item in node]
    if not isinstance(node, dict):
        return node
    done: dict[str, Any] = {}
    for key, item in node.items():
        if key.lower().endswith("attributes") and isinstance(item, list):
            plain = {name: without_binary(value) for name, value in _read(item).items()}
            said = redact_attributes(plain, policy)
            done[key] = _write(item, said, policy, marked=_is_span(node) and not policy.labels)
        elif key == "body":
            done[key] = _body(item, policy)
        elif key in _TEXTS and isinstance(item, str):
            done[key] = redact_text(item, policy)
        else:
            done[key] = _node(item, policy)
    return done


def _is_span(node: Mapping[str, Any]) -> bool:
    return any(name in node for name in _IDS) and any(name in node for name in _STARTS)


def _body(body: Any, policy: Policy) -> Any:
    before = {"body": _value(body)}
    after = redact_attributes(before, policy).attributes
    return body if after == before else _any_value(after.get("body"))


def _read(pairs: list[Any]) -> dict[str, Any]:
    return {str(pair["key"]): _value(pair.get("value")) for pair in pairs if isinstance(pair, dict) and "key" in pair}


def _value(value: Any) -> Json:
    """What a pair says; what cannot be read cannot be examined, and does not leave."""
    try:
        return read_value(value)
    except ValueError:
        return MASK


def _write(pairs: list[Any], said: Redacted, policy: Policy, *, marked: bool) -> list[Any]:
    """The pairs again: those that stay as they were, those that changed; and what a span says of that."""
    before = _read(pairs)
    written = {str(pair["key"]): pair for pair in pairs if isinstance(pair, dict) and "key" in pair}
    same = {name for name, value in said.attributes.items() if name in before and before[name] == value != MASK}
    attributes: Mapping[str, Any] = said.attributes
    if marked:
        attributes = mark(attributes, said.changed | (attributes.keys() - same), Fidelity.REDACTED)
        earlier = attributes.get(names.REDACTION)
        attributes |= {names.REDACTION: header(policy, said.key_ids, earlier)} if said.changed else {}
        attributes |= {names.REDACTION_FAILURES: said.failures} if said.failures else {}
    return [
        written[name] if name in same and value == before[name] else {"key": name, "value": _any_value(value)}
        for name, value in attributes.items()
    ]


def _any_value(value: Any) -> dict[str, Any]:
    for kind, write in _KINDS:
        if isinstance(value, kind):
            return write(value)
    return {}


_KINDS: Final[tuple[tuple[type, Callable[[Any], dict[str, Any]]], ...]] = (
    (str, lambda value: {"stringValue": value}),
    (bool, lambda value: {"boolValue": value}),
    (int, lambda value: {"intValue": str(value)}),
    (float, lambda value: {"doubleValue": value}),
    (bytes, lambda value: {"bytesValue": base64.b64encode(value).decode()}),
    (list, lambda value: {"arrayValue": {"values": [_any_value(item) for item in value]}}),
    (tuple, lambda value: {"arrayValue": {"values": [_any_value(item) for item in value]}}),
    (
        dict,
        lambda value: {
            "kvlistValue": {"values": [{"key": key, "value": _any_value(item)} for key, item in value.items()]}
        },
    ),
)
