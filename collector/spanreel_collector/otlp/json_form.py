"""OTLP/JSON -> raw spans and logs.

As strict as the specification where ids are concerned, as lenient as the Collector elsewhere (snake_case, enum names,
either form of integers, missing fields). A span that cannot be decoded costs only itself.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import Any, TypeVar

from spanreel.model import Json
from spanreel_collector.span import Attributes, Batch, Fault, Origin, RawEvent, RawLink, RawLog, RawSpan

DEEPEST_VALUE = 40
"""Levels of nested AnyValues that are read; each takes up to four levels of JSON."""
_LARGEST = 2**64
_DIGITS = 20
"""Of the largest number; whatever has fewer is not out of range."""
_NUMERALS = frozenset({int, float, str})
"""Types of JSON that numbers are written in; true and false are of another."""
_HEX = re.compile("[0-9a-fA-F]*")
_WHOLE = re.compile("[+-]?[0-9]+")

_KINDS = {
    "SPAN_KIND_UNSPECIFIED": 0,
    "SPAN_KIND_INTERNAL": 1,
    "SPAN_KIND_SERVER": 2,
    "SPAN_KIND_CLIENT": 3,
    "SPAN_KIND_PRODUCER": 4,
    "SPAN_KIND_CONSUMER": 5,
}
_OLD_SCOPES = {"scopeSpans": "instrumentationLibrarySpans", "scopeLogs": "instrumentationLibraryLogs"}
"""What the protocol called them before version 0.15."""
_STATUS = {"STATUS_CODE_UNSET": 0, "STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}

_T = TypeVar("_T")


def read_request(document: Json, place: str) -> Batch:
    """Decode one export request of traces, logs or metrics, or a bare ResourceSpans or ResourceLogs.

    Raises:
        ValueError: this is no export request.
    """
    if not isinstance(document, dict):
        raise ValueError(f"not an OTLP export request: JSON of type {type(document).__name__}")
    known = ("resourceSpans", "scopeSpans", "resourceLogs", "scopeLogs", "resourceMetrics", "scopeMetrics")
    if str(document.get("schema")).startswith("spanreel.session/"):
        raise ValueError("a session document, which is converted already: spanreel show and replay take it")
    if document and not any(_has(document, key) for key in known):
        raise ValueError(f"not an OTLP export request: an object with {sorted(document)[:5]!r}")
    faults: list[Fault] = []
    resource_spans = [document] if _has(document, "scopeSpans") else _list(document, "resourceSpans")
    resource_logs = [document] if _has(document, "scopeLogs") else _list(document, "resourceLogs")
    spans = _read_all(_entries(resource_spans, "scopeSpans", "spans"), _read_span, f"{place}, span", faults)
    logs = _read_all(_entries(resource_logs, "scopeLogs", "logRecords"), _read_log, f"{place}, log", faults)
    skipped = Counter[str]()
    if _has(document, "resourceMetrics") or _has(document, "scopeMetrics"):
        skipped["metrics"] += 1
    return Batch(tuple(spans), tuple(logs), tuple(faults), skipped)


def _entries(resources: list[Any], scopes: str, items: str) -> Iterator[tuple[Any, Any, Any]]:
    """Each item with the resource and scope it stands under."""
    for resource in resources:
        if isinstance(resource, dict):
            for scope in _list(resource, scopes) or _list(resource, _OLD_SCOPES[scopes]):
                if isinstance(scope, dict):
                    named = _get(scope, "scope") or _get(scope, "instrumentationLibrary")
                    for item in _list(scope, items):
                        yield _get(resource, "resource"), named, item


def _read_all(
    entries: Iterator[tuple[Any, Any, Any]],
    read: Callable[[dict[str, Any], Origin, str], _T],
    place: str,
    faults: list[Fault],
) -> list[_T]:
    found: list[_T] = []
    origins: dict[tuple[int, int], Origin] = {}
    for index, (resource, scope, item) in enumerate(entries):
        where = f"{place} {index}"
        try:
            key = (id(resource), id(scope))
            if key not in origins:
                origins[key] = _read_origin(resource, scope)
            if not isinstance(item, dict):
                raise ValueError(f"expected an object, got {type(item).__name__}")
            found.append(read(item, origins[key], where))
        except ValueError as error:
            faults.append(Fault(where, str(error)))
    return found


def _read_origin(resource: Any, scope: Any) -> Origin:
    resource = resource if isinstance(resource, dict) else {}
    scope = scope if isinstance(scope, dict) else {}
    return Origin(_read_attributes(resource), _text(scope, "name"), _text(scope, "version"))


def _read_span(item: dict[str, Any], origin: Origin, place: str) -> RawSpan:
    item = _spelt(item)
    get = item.get
    status = get("status")
    return RawSpan(
        trace_id=_id(get("traceId"), "traceId", 32) or _refuse_absent("traceId"),
        span_id=_id(get("spanId"), "spanId", 16) or _refuse_absent("spanId"),
        parent_id=_id(get("parentSpanId"), "parentSpanId", 16),
        name=name if isinstance(name := get("name"), str) else "",
        kind=_enum(get("kind"), "kind", _KINDS),
        start=_unsigned(get("startTimeUnixNano"), "startTimeUnixNano"),
        end=_unsigned(get("endTimeUnixNano"), "endTimeUnixNano"),
        attributes=_attributes(get("attributes")),
        origin=origin,
        place=place,
        events=_read_events(item) if get("events") else (),
        links=_read_links(item) if get("links") else (),
        status=_enum(_get(status, "code"), "code", _STATUS) if status and isinstance(status, dict) else 0,
        status_message=_text(status, "message") if status and isinstance(status, dict) else "",
        dropped_attributes=_unsigned(get("droppedAttributesCount"), "droppedAttributesCount"),
    )


def _read_events(item: dict[str, Any]) -> tuple[RawEvent, ...]:
    return tuple(
        RawEvent(_text(event, "name"), _integer(event, "timeUnixNano"), _read_attributes(event))
        for event in _objects(item, "events")
    )


def _read_links(item: dict[str, Any]) -> tuple[RawLink, ...]:
    return tuple(
        RawLink(trace_id, span_id, _read_attributes(link))
        for link in _objects(item, "links")
        if (trace_id := _read_id(link, "traceId", 32)) and (span_id := _read_id(link, "spanId", 16))
    )


def _read_log(item: dict[str, Any], origin: Origin, place: str) -> RawLog:
    attributes = _read_attributes(item)
    name = _text(item, "eventName") or attributes.get("event.name")
    return RawLog(
        trace_id=_read_id(item, "traceId", 32),
        span_id=_read_id(item, "spanId", 16),
        event_name=name if isinstance(name, str) else "",
        time=_integer(item, "timeUnixNano") or _integer(item, "observedTimeUnixNano"),
        body=_read_value(_get(item, "body"), 0),
        attributes=attributes,
        origin=origin,
        place=place,
    )


def _read_id(item: dict[str, Any], field: str, digits: int) -> str | None:
    """An id as lower-case hex; None where there is none (absent, empty or all zeros)."""
    return _id(_get(item, field), field, digits)


def _id(value: Any, field: str, digits: int) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) != digits or not _HEX.fullmatch(value):
        raise ValueError(
            f"{field} {str(value)[:60]!r} is not {digits} hex digits (OTLP/JSON writes ids in hex, not base64)"
        )
    return value.lower() if value.strip("0") else None


def _refuse_absent(field: str) -> str:
    raise ValueError(f"{field} is missing or all zeros")


def _read_attributes(item: dict[str, Any]) -> Attributes:
    return _attributes(_get(item, "attributes"))


def _attributes(pairs: Any) -> Attributes:
    attributes: dict[str, Json] = {}
    for pair in pairs if isinstance(pairs, list) else ():
        if type(pair) is not dict:
            continue
        key, value = pair.get("key"), pair.get("value")
        if type(key) is not str:
            raise ValueError(f"an attribute's key is {type(key).__name__}, not text")
        # Most values are text: the way there is kept short.
        if type(value) is dict and len(value) == 1 and (text := value.get("stringValue")) is not None:
            attributes[key] = text
            continue
        try:
            attributes[key] = _read_value(value, 0)
        except ValueError as error:
            raise ValueError(f"attribute {key!r}: {error}") from error
    return attributes


def read_value(value: Any) -> Json:
    """Decode an AnyValue; None where it is empty.

    Raises:
        ValueError: it is none, or nested too deep.
    """
    return _read_value(value, 0)


def _read_value(value: Any, depth: int) -> Json:
    """Decode an AnyValue; None where it is empty."""
    if value is None or value == {}:
        return None
    if not isinstance(value, dict):
        raise ValueError(f"expected an AnyValue, got {type(value).__name__}")
    if depth > DEEPEST_VALUE:
        raise ValueError(f"nested more than {DEEPEST_VALUE} levels deep")
    kind, content = next(iter(value.items()))
    if len(value) > 1 and content is None:  # some writers list all kinds, with null in all but one
        kind, content = next(((kind, item) for kind, item in value.items() if item is not None), (kind, content))
    match kind:
        case "stringValue" | "boolValue" | "string_value" | "bool_value":
            return content
        case "intValue" | "int_value":
            return None if content is None else whole(content, "intValue")
        case "doubleValue" | "double_value":
            return None if content is None else _float(content)
        case "bytesValue" | "bytes_value":
            return _read_bytes(content)
        case "arrayValue" | "array_value":
            return [_read_value(item, depth + 1) for item in _list(content, "values")]
        case "kvlistValue" | "kvlist_value":
            pairs = _objects(content, "values")
            return {str(pair.get("key", "")): _read_value(pair.get("value"), depth + 1) for pair in pairs}
        case _:
            raise ValueError(f"unknown kind of value {kind!r}")


def _float(content: Any) -> float:
    """A double; "NaN", "Infinity" and "-Infinity" come as text."""
    if type(content) not in _NUMERALS:
        raise ValueError(f"doubleValue is {type(content).__name__}, not a number")
    try:
        return float(content)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"doubleValue {str(content)[:40]!r} is not a number") from error


def _read_bytes(content: Any) -> bytes | None:
    if content is None:
        return None
    try:
        text = str(content).replace("-", "+").replace("_", "/")
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ValueError(f"bytesValue is not base64: {error}") from error


def _get(item: dict[str, Any], key: str) -> Any:
    value = item.get(key)
    return item.get(_snake(key)) if value is None else value


def _spelt(item: dict[str, Any]) -> dict[str, Any]:
    """The object with its members named as OTLP/JSON names them, so that no other spelling need be looked for."""
    if "_" not in "".join(item):
        return item
    other = {_camel(key): value for key, value in item.items() if "_" in key}
    return {**other, **{key: value for key, value in item.items() if value is not None or key not in other}}


def _has(item: dict[str, Any], key: str) -> bool:
    return key in item or _snake(key) in item


@cache
def _snake(key: str) -> str:
    return re.sub("[A-Z]", lambda match: "_" + match.group().lower(), key)


@lru_cache(maxsize=256)
def _camel(key: str) -> str:
    return re.sub("_([a-z])", lambda match: match.group(1).upper(), key)


def _list(item: Any, key: str) -> list[Any]:
    value = _get(item, key) if isinstance(item, dict) else None
    return value if isinstance(value, list) else []


def _objects(item: Any, key: str) -> list[dict[str, Any]]:
    return [value for value in _list(item, key) if isinstance(value, dict)]


def _text(item: dict[str, Any], key: str) -> str:
    value = _get(item, key)
    return value if isinstance(value, str) else ""


def _enum(value: Any, key: str, names: dict[str, int]) -> int:
    if isinstance(value, str) and not value.isdecimal():
        # With its kind before it, as the protocol has it, or without, as people write it.
        return next((number for name, number in names.items() if name.endswith(f"_{value}") or name == value), 0)
    return _unsigned(value, key)


def _integer(item: dict[str, Any], key: str) -> int:
    return _unsigned(_get(item, key), key)


def _unsigned(value: Any, key: str) -> int:
    """An unsigned number, written as a number or as text; 0 where absent."""
    if value is None or value == "":
        return 0
    if type(value) is str and len(value) < _DIGITS and value.isascii() and value.isdecimal():
        return int(value)
    number = value if type(value) is int else whole(value, key)
    if not 0 <= number < _LARGEST:
        raise ValueError(f"{key} {number!r} is out of range")
    return number


def whole(value: Any, key: str) -> int:
    """A whole number, written as a number or as its digits.

    Raises:
        ValueError: it is none; what it is, which may be a secret, is not told.
    """
    if type(value) not in _NUMERALS:
        raise ValueError(f"{key} is {type(value).__name__}, not a number")
    if type(value) is str and not _WHOLE.fullmatch(value):
        raise ValueError(f"{key} is not a whole number")
    try:
        return int(value)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{key} is not a whole number") from error
