"""How many values a message may hold: an empty one is two bytes on the wire, and many times that when it is decoded."""

from __future__ import annotations

from typing import Final, Literal

from spanreel_collector.otlp.wire_format import LENGTH, TooMany, read_fields

MOST_VALUES: Final = 200_000
_SMALL: Final = 128 * 1024
"""Bytes of a message that cannot hold so many that it matters."""
_DEEPEST: Final = 100
"""Levels at which protobuf itself gives up."""

# Which fields of which message are messages again, as opentelemetry-proto has them.
_NESTED: Final[dict[str, dict[int, str]]] = {
    "resource": {1: "Resource"},
    "scope": {1: "Scope"},
    "span": {9: "KeyValue", 11: "Event", 13: "Link"},
    "log": {5: "AnyValue", 6: "KeyValue"},
    "Resource": {1: "KeyValue"},
    "Scope": {3: "KeyValue"},
    "Event": {3: "KeyValue"},
    "Link": {4: "KeyValue"},
    "KeyValue": {2: "AnyValue"},
    "AnyValue": {5: "ArrayValue", 6: "KeyValueList"},
    "ArrayValue": {1: "AnyValue"},
    "KeyValueList": {1: "KeyValue"},
}


def check(data: bytes, kind: Literal["resource", "scope", "span", "log"]) -> None:
    """Return if a message holds no more than is read.

    Raises:
        ValueError: it does, or cannot be decoded.
    """
    if len(data) <= _SMALL:
        return
    left = MOST_VALUES
    waiting = [(kind + "", 0, len(data), 0)]
    while waiting:
        message, start, end, depth = waiting.pop()
        if depth > _DEEPEST:
            raise ValueError("nested too deeply")
        try:
            fields = read_fields(data, start, end, left)
        except TooMany as error:
            raise ValueError(f"more than {MOST_VALUES} values in one {kind}") from error
        left -= len(fields)
        nested = _NESTED[message]
        for field in fields:
            if field.wire == LENGTH and field.number in nested:
                waiting.append((nested[field.number], field.start, field.end, depth + 1))
