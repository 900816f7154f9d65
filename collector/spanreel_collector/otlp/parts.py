"""An export request taken apart into spans or log records, as bytes, each with what it stands under.

Nothing is lost on the way: what a newer protocol adds stays where it stands. What items say is decoded once, to know
that it can be, and forgotten. An item that cannot be decoded costs only itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from google.protobuf.message import DecodeError
from opentelemetry.proto.logs.v1.logs_pb2 import ResourceLogs, ScopeLogs
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans

from spanreel_collector.otlp import sizes
from spanreel_collector.otlp.items import NAMES, READERS, BadId, Item, KeptSignal, digest_of
from spanreel_collector.otlp.wire_format import LENGTH, Field, TooMany, read_fields
from spanreel_collector.span import Fault

_RESOURCES: Final = 1
_CONTENTS: Final = 2
"""Of a resource its scopes, of a scope its items."""
_HEADERS: Final[dict[tuple[KeptSignal, str], Any]] = {
    ("traces", "resource"): ResourceSpans,
    ("traces", "scope"): ScopeSpans,
    ("logs", "resource"): ResourceLogs,
    ("logs", "scope"): ScopeLogs,
}


class Undecodable(ValueError):
    """This is no export request, or nothing of it can be decoded."""


class TooLarge(ValueError):
    """There is more in it than is taken in one request."""


@dataclass(frozen=True, slots=True)
class ScopePart:
    """The items of one scope, in order. ``resource`` and ``scope`` are messages without what is in them.

    ``resource`` is the same object in parts of the same resource.
    """

    resource: bytes
    scope: bytes
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Apart:
    """A request taken apart. ``refused`` counts faults that the list, which is bounded, need not hold."""

    parts: tuple[ScopePart, ...]
    faults: tuple[Fault, ...] = ()
    refused: int = 0


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is taken in one request: ``items``, resources and scopes of it, and faults that are listed."""

    items: int = 100_000
    groups: int = 20_000
    faults: int = 100


class Gathering:
    """A request on its way to being apart: what is kept so far, and what was refused."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self._parts: list[ScopePart] = []
        self._faults: list[Fault] = []
        self._refused = 0
        self._undecodable = True  # as long as nothing else was refused
        self._items = 0

    def count(self, items: int) -> None:
        """Note how many items come.

        Raises:
            TooLarge: that makes more than is taken.
        """
        self._items += items
        if self._items > self.bounds.items:
            raise TooLarge(f"more than {self.bounds.items} spans or log records in one request")

    def add(self, part: ScopePart) -> None:
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
        return Apart(tuple(self._parts), tuple(self._faults), self._refused)


def take_apart(data: bytes, signal: KeptSignal, bounds: Bounds) -> Apart:
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
        except TooMany as error:
            raise TooLarge(f"resource {number}: {error}") from error
        except (ValueError, DecodeError) as error:
            gathering.refuse(f"resource {number}", error)
            continue
        inner = [scope for scope in scopes if _is(scope, _CONTENTS)]
        groups += len(inner)
        if groups > bounds.groups:
            raise TooLarge(f"more than {bounds.groups} resources and scopes in one request")
        within = digest_of(resource)
        for position, scope in enumerate(inner):
            place = f"resource {number}, scope {position}"
            _take_scope(gathering, data, (signal, place), (resource, within, scope))
    return gathering.finish()


def _take_scope(
    gathering: Gathering, data: bytes, where: tuple[KeptSignal, str], opened: tuple[bytes, bytes, Field]
) -> None:
    (signal, place), (resource, within, field) = where, opened
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
    read, under = READERS[signal], digest_of(scope, within)
    items: list[Item] = []
    for number, content in enumerate(contents):
        item = data[content.start : content.end]
        try:
            items.append(read(item, under))
        except (ValueError, DecodeError) as error:
            gathering.refuse(f"{place}, {NAMES[signal]} {number}", error)
    gathering.add(ScopePart(resource, scope, tuple(items)))


def _is(field: Field, number: int) -> bool:
    return field.number == number and field.wire == LENGTH


def _open(data: bytes, field: Field, most: int) -> list[Field]:
    return read_fields(data, field.start, field.end, most)


def _header(data: bytes, fields: Sequence[Field]) -> bytes:
    """A message without its contents: what it says of itself, and what is not known of it."""
    return b"".join(data[field.begin : field.end] for field in fields if not _is(field, _CONTENTS))


def check_header(header: bytes, signal: KeptSignal, kind: Literal["resource", "scope"]) -> None:
    """Decode what a resource or a scope says of itself.

    Raises:
        ValueError, DecodeError: it cannot be decoded.
    """
    sizes.check(header, kind)
    _HEADERS[signal, kind].FromString(header)
