"""An export request taken apart into spans or log records, as bytes, each with what it stands under.

Nothing is lost on the way: what a newer protocol adds stays where it stands. What items say is decoded once, to know
that it can be, and forgotten. An item that cannot be decoded costs only itself.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, Literal, NamedTuple

from google.protobuf.message import DecodeError
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from spanreel_collector.otlp import sizes
from spanreel_collector.otlp.wire_format import LENGTH, Field, TooMany, read_fields, write_field
from spanreel_collector.span import Fault

Kept = Literal["traces", "logs"]

NO_TRACE: Final = bytes(16)
"""The trace of log records that name none."""

_RESOURCES: Final = 1
_CONTENTS: Final = 2
"""Of a resource its scopes, of a scope its items."""
_SPAN_BEGINS: Final = 0x0A
"""The first byte of a span with a trace id, and of no log record."""


class Undecodable(ValueError):
    """This is no export request, or nothing of it can be decoded."""


class TooLarge(ValueError):
    """There is more in it than is taken in one request."""


class Item(NamedTuple):
    """A span or a log record as bytes; its trace, and what tells it from others of the trace."""

    trace: bytes
    identity: bytes
    data: bytes


@dataclass(frozen=True, slots=True)
class Part:
    """The items of one scope, in order. ``resource`` and ``scope`` are messages without what is in them.

    ``resource`` is the same object in parts of the same resource.
    """

    resource: bytes
    scope: bytes
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Apart:
    """A request taken apart. ``refused`` counts faults that the list, which is bounded, need not hold.

    ``undecodable`` says whether each of them was something that cannot be decoded, and not an id that is none.
    """

    parts: tuple[Part, ...]
    faults: tuple[Fault, ...] = ()
    refused: int = 0
    undecodable: bool = False


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is taken in one request: ``items``, resources and scopes of it, and faults that are listed."""

    items: int = 100_000
    groups: int = 20_000
    faults: int = 100


class BadId(ValueError):
    """A span or log record whose ids are none."""


class Gathering:
    """A request on its way to being apart: what is kept so far, and what was refused."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self._parts: list[Part] = []
        self._faults: list[Fault] = []
        self._refused = 0
        self._undecodable = True
        self._items = 0

    def count(self, items: int) -> None:
        """Note how many items come.

        Raises:
            TooLarge: that makes more than is taken.
        """
        self._items += items
        if self._items > self.bounds.items:
            raise TooLarge(f"more than {self.bounds.items} spans or log records in one request")

    def add(self, part: Part) -> None:
        """Keep the items of a scope."""
        if part.items:
            self._parts.append(part)

    def refuse(self, place: str, error: Exception) -> None:
        """Note that something is not kept."""
        self._refused += 1
        self._undecodable &= not isinstance(error, BadId)
        if len(self._faults) < self.bounds.faults:
            self._faults.append(Fault(place, str(error)))

    def finish(self) -> Apart:
        """What became of it.

        Raises:
            Undecodable: nothing of it could be decoded.
        """
        if self._refused and self._undecodable and not self._parts:
            raise Undecodable(f"{self._faults[0].place}: {self._faults[0].reason}")
        return Apart(tuple(self._parts), tuple(self._faults), self._refused, self._refused > 0 and self._undecodable)


def take_apart(data: bytes, signal: Kept, bounds: Bounds) -> Apart:
    """Take a request in protobuf apart.

    Raises:
        Undecodable: this is no export request, or nothing of it can be decoded.
        TooLarge: there is more in it than is taken.
    """
    gathering = Gathering(bounds)
    try:
        resources = read_fields(data, 0, len(data), bounds.groups)
    except TooMany as error:
        raise TooLarge(f"resources: {error}") from error
    except ValueError as error:
        raise Undecodable(str(error)) from error
    if data and not any(_is(field, _RESOURCES) for field in resources):
        raise Undecodable(f"{len(data)} bytes of protobuf without a resource are no export request")
    found = (field for field in resources if _is(field, _RESOURCES))
    groups = len(resources)
    for number, field in enumerate(found):
        try:
            scopes = list(_open(data, field, bounds.groups))
            resource = _header(data, scopes)
            check_header(resource, signal, "resource")
        except (ValueError, DecodeError) as error:
            gathering.refuse(f"resource {number}", error)
            continue
        inner = [scope for scope in scopes if _is(scope, _CONTENTS)]
        groups += len(inner)
        if groups > bounds.groups:
            raise TooLarge(f"more than {bounds.groups} resources and scopes in one request")
        for position, scope in enumerate(inner):
            _take_scope(gathering, data, (signal, f"resource {number}, scope {position}"), (resource, scope))
    return gathering.finish()


def _take_scope(gathering: Gathering, data: bytes, where: tuple[Kept, str], under: tuple[bytes, Field]) -> None:
    (signal, place), (resource, field) = where, under
    try:
        fields = _open(data, field, gathering.bounds.items)
        scope = _header(data, fields)
        check_header(scope, signal, "scope")
    except TooMany as error:
        raise TooLarge(f"{place}: {error}") from error
    except (ValueError, DecodeError) as error:
        gathering.refuse(place, error)
        return
    contents = [field for field in fields if _is(field, _CONTENTS)]
    gathering.count(len(contents))
    read = READERS[signal]
    items: list[Item] = []
    for number, content in enumerate(contents):
        item = data[content.start : content.end]
        try:
            items.append(read(item, resource, scope))
        except (ValueError, DecodeError) as error:
            gathering.refuse(f"{place}, {NAMES[signal]} {number}", error)
    gathering.add(Part(resource, scope, tuple(items)))


def _is(field: Field, number: int) -> bool:
    return field.number == number and field.wire == LENGTH


def _open(data: bytes, field: Field, most: int) -> list[Field]:
    return read_fields(data, field.start, field.end, most)


def _header(data: bytes, fields: Sequence[Field]) -> bytes:
    """A message without its contents: what it says of itself, and what is not known of it."""
    return b"".join(data[field.begin : field.end] for field in fields if not _is(field, _CONTENTS))


def check_header(header: bytes, signal: Kept, kind: Literal["resource", "scope"]) -> None:
    """Decode what a resource or a scope says of itself.

    Raises:
        ValueError, DecodeError: it cannot be decoded.
    """
    sizes.check(header, kind)
    _HEADERS[signal, kind].FromString(header)


# -- items -----------------------------------------------------------------------------------------------------------


def read_span(data: bytes, resource: bytes, scope: bytes) -> Item:
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
    return Item(trace, identity + zlib.crc32(data).to_bytes(4, "big"), data)


def read_log(data: bytes, resource: bytes, scope: bytes) -> Item:
    """A log record's trace, and a digest of all that it says, since it has no id.

    Raises:
        ValueError, DecodeError: it has bad ids, or cannot be decoded.
    """
    if data[:1] == bytes((_SPAN_BEGINS,)):
        raise ValueError("not a log record; spans go to /v1/traces")
    sizes.check(data, "log")
    record = LogRecord.FromString(data)
    trace, span = record.trace_id, record.span_id
    if trace and len(trace) != 16:
        raise BadId(_bad("traceId", trace, 16))
    if span and len(span) != 8:
        raise BadId(_bad("spanId", span, 8))
    digest = blake2b(data, digest_size=16, salt=blake2b(resource + scope, digest_size=16).digest())
    return Item(trace or NO_TRACE, digest.digest(), data)


_NO_SPAN: Final = bytes(8)


def _bad(name: str, value: bytes, size: int) -> str:
    if not value.strip(b"\0"):
        return f"{name} is missing or all zeros" if len(value) in (0, size) else f"{name} is of {len(value)} bytes"
    return f"{name} is of {len(value)} bytes, not {size}"


READERS: Final[dict[Kept, Callable[[bytes, bytes, bytes], Item]]] = {"traces": read_span, "logs": read_log}
NAMES: Final[dict[Kept, str]] = {"traces": "span", "logs": "log record"}
_HEADERS: Final[dict[tuple[Kept, str], Any]] = {
    ("traces", "resource"): ResourceSpans,
    ("traces", "scope"): ScopeSpans,
    ("logs", "resource"): ResourceLogs,
    ("logs", "scope"): ScopeLogs,
}


# -- put together again ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Group:
    """What a request holds of one trace, as an export request."""

    trace: bytes
    identities: tuple[bytes, ...]
    body: bytes


def group(parts: Sequence[Part], most: int) -> Iterator[Group]:
    """A request for each trace; all of them together are at most so many bytes.

    Raises:
        TooLarge: they would be more, since each trace gets its resource and scope again.
    """
    traces: dict[bytes, list[tuple[Part, list[Item]]]] = {}
    total = 0
    for part in parts:
        found: dict[bytes, list[Item]] = {}
        for item in part.items:
            found.setdefault(item.trace, []).append(item)
        for trace, items in found.items():
            traces.setdefault(trace, []).append((part, items))
        total += len(found) * (len(part.resource) + len(part.scope)) + sum(len(item.data) for item in part.items)
    if total > most:
        raise TooLarge(f"{total} bytes with a resource and a scope for each trace; {most} are taken")
    for trace, scopes in traces.items():
        identities = tuple(item.identity for _, items in scopes for item in items)
        yield Group(trace, identities, b"".join(_resources(scopes)))


def _resources(scopes: Sequence[tuple[Part, list[Item]]]) -> Iterator[bytes]:
    """The scopes of a trace under their resources, which stand together."""
    pieces: list[bytes] = []
    resource: bytes | None = None
    for part, items in scopes:
        if part.resource is not resource:
            if resource is not None:
                yield write_field(_RESOURCES, b"".join(pieces))
            resource = part.resource
            pieces = [resource]
        contents = b"".join([write_field(_CONTENTS, item.data) for item in items])
        pieces.append(write_field(_CONTENTS, part.scope + contents))
    if resource is not None:
        yield write_field(_RESOURCES, b"".join(pieces))
