"""Spans and log records as bytes: which trace each is of, and what tells it from others. What they say is not kept."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from typing import Final, Literal, NamedTuple

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from spanreel_collector.otlp import sizes
from spanreel_collector.stores.records import NO_TRACE

checksum: Callable[[bytes], int] = zlib.crc32
with suppress(ImportError):  # it has no wheel for every machine
    # The same in a fifth of the time.
    from isal.isal_zlib import crc32 as checksum

KeptSignal = Literal["traces", "logs"]
"""The signals that are kept."""

_NO_SPAN: Final = bytes(8)
_SPAN_BEGINS: Final = b"\x0a"
"""The first byte of a span with a trace id, and of no log record."""


class Item(NamedTuple):
    """A span or a log record as bytes; its trace, and what tells it from others of the trace."""

    trace: bytes
    identity: bytes
    data: bytes


class BadId(ValueError):
    """A span or log record whose ids are none."""


def digest_of(said: bytes, within: bytes = b"") -> bytes:
    """A digest (16 bytes) of what a resource says, or what a scope says within a resource that has this digest."""
    return blake2b(said, digest_size=16, salt=within).digest()


def read_span(data: bytes, under: bytes) -> Item:
    """A span's ids.

    Raises:
        ValueError, DecodeError: it has none, or cannot be decoded.
    """
    sizes.check(data, "span")
    span = Span.FromString(data)
    trace, identity, parent = span.trace_id, span.span_id, span.parent_span_id
    if len(trace) != 16 or trace == NO_TRACE:
        raise BadId(_bad("traceId", trace, 16))
    if len(identity) != 8 or identity == _NO_SPAN:
        raise BadId(_bad("spanId", identity, 8))
    if parent and len(parent) != 8:
        raise BadId(_bad("parentSpanId", parent, 8))
    return Item(trace, identity + checksum(data).to_bytes(4, "big"), data)


def read_log(data: bytes, under: bytes) -> Item:
    """A log record's trace, and a digest of all that it says, since it has no id; ``under`` is that of its scope.

    Raises:
        ValueError, DecodeError: it has bad ids, or cannot be decoded.
    """
    if data[:1] == _SPAN_BEGINS:
        raise ValueError("not a log record; spans go to /v1/traces")
    sizes.check(data, "log")
    record = LogRecord.FromString(data)
    trace, span = record.trace_id, record.span_id
    if trace and len(trace) != 16:
        raise BadId(_bad("traceId", trace, 16))
    if span and len(span) != 8:
        raise BadId(_bad("spanId", span, 8))
    return Item(trace or NO_TRACE, digest_of(data, under), data)


def _bad(name: str, value: bytes, size: int) -> str:
    if not value.strip(b"\0"):
        return f"{name} is missing or all zeros" if len(value) in (0, size) else f"{name} is of {len(value)} bytes"
    return f"{name} is of {len(value)} bytes, not {size}"


READERS: Final[dict[KeptSignal, Callable[[bytes, bytes], Item]]] = {"traces": read_span, "logs": read_log}
NAMES: Final[dict[KeptSignal, str]] = {"traces": "span", "logs": "log record"}
