"""What the two stores share of their rows: summaries as columns, values that each database can hold, packing.

Knows neither database. SQL that both understand is written with ``?``.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from itertools import islice
from typing import Any, Final, Protocol, TypeVar

import zstandard
from pydantic_core import from_json

from spanreel_collector.stores.records import Summary

Row = tuple[Any, ...]
Value = TypeVar("Value")

LEAST: Final = -(2**63)
GREATEST: Final = 2**63 - 1
LONGEST_KEY: Final = 512
"""Bytes of a text that stands in an index, whose entries PostgreSQL bounds."""
FACETS: Final = ("agent", "version", "model", "tool", "tag", "origin", "status")
"""What lists offer to filter by. Users are asked for, and not listed."""
_CHUNK: Final = 500
_LISTS: Final = ("agents", "versions", "models", "tools", "tags", "users")
_FIELDS: Final = tuple(each.name for each in fields(Summary))
_KNOWN: Final = frozenset(_FIELDS)


class Rows(Protocol):
    """One transaction of a database."""

    def all(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """The rows that a statement answers with."""
        ...

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Run a statement; how many rows it changed."""
        ...

    def many(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        """Run a statement once for each row of values."""
        ...


def chunks(values: Iterable[Value], size: int = _CHUNK) -> Iterator[list[Value]]:
    """Values in lists of a bounded length: a statement has a bounded number of parameters."""
    iterator = iter(values)
    while chunk := list(islice(iterator, size)):
        yield chunk


def columns(rows: Iterable[Row]) -> list[list[Any]]:
    """Rows, of which there is at least one, as columns."""
    return [*map(list, zip(*rows, strict=True))]


def places(values: Sequence[Any]) -> str:
    """As many ``?`` as there are values, in brackets."""
    return f"({', '.join('?' * len(values))})"


def storable(value: Any) -> Any:
    """A value that both databases hold: text of a user may have NUL, half a surrogate pair, or be a vast number."""
    if isinstance(value, str):
        if not value.isascii():
            value = value.encode("utf-8", "replace").decode()
        return value.replace("\0", "\N{REPLACEMENT CHARACTER}") if "\0" in value else value
    if isinstance(value, int):
        return min(max(value, LEAST), GREATEST)
    return value


def key_of(text: str) -> str:
    """A text as it stands in an index: the same for the same, and never too long."""
    data = storable(text).encode()
    if len(data) <= LONGEST_KEY:
        return str(data.decode())
    digest = hashlib.sha256(data).hexdigest()
    return str(data[: LONGEST_KEY - len(digest) - 1].decode(errors="ignore")) + "~" + digest


def pack(data: bytes) -> bytes:
    """A document as zstd."""
    return zstandard.ZstdCompressor(level=3).compress(data)


def unpack(data: bytes) -> bytes:
    """The document again."""
    return zstandard.ZstdDecompressor().decompress(data)


def pack_items(items: Sequence[bytes]) -> bytes:
    """Items of one length, one after the other, behind that length."""
    width = len(items[0])
    if any(len(item) != width for item in items):
        raise ValueError(f"items of one segment are of one length, not of {sorted({len(item) for item in items})!r}")
    return bytes((width,)) + b"".join(items)


def unpack_items(packed: bytes) -> tuple[bytes, ...]:
    """The items again."""
    width = packed[0]
    return tuple(packed[start : start + width] for start in range(1, len(packed), width))


# -- summaries -------------------------------------------------------------------------------------------------------


def write_summary(summary: Summary) -> bytes:
    """A summary as JSON."""
    return json.dumps({name: getattr(summary, name) for name in _FIELDS}, separators=(",", ":")).encode()


def read_summary(data: bytes) -> Summary:
    """The summary again; what another release wrote more of is left out."""
    value = read_json(data)
    if not value.keys() <= _KNOWN:
        value = {name: value[name] for name in _FIELDS if name in value}
    for name in _LISTS:
        value[name] = tuple(value.get(name, ()))
    return Summary(**value)


def read_json(data: bytes) -> Any:
    """What is kept as JSON."""
    try:
        return from_json(data)
    except ValueError:  # half a surrogate pair, which only the slower one reads
        return json.loads(data)


def facets_of(summary: Summary) -> frozenset[tuple[str, str]]:
    """What a session can be filtered and counted by, as kind and value."""
    lists = zip(("agent", "version", "model", "tool", "tag", "user"), _LISTS, strict=True)
    found = {(kind, key_of(value)) for kind, name in lists for value in getattr(summary, name)}
    if summary.user is not None:
        found.add(("user", key_of(summary.user)))
    return frozenset(found | {("origin", key_of(summary.origin)), ("status", key_of(summary.status))})


SESSION_COLUMNS: Final = (
    "revision, reader, summary, arrived, key, origin, status, baseline, eligible, "
    "by_started, by_updated, by_duration, by_tokens, by_cost"
)


def session_columns(summary: Summary, reader: str, arrived: int) -> Row:
    """The values of SESSION_COLUMNS. What is not known is least of all, in orders."""
    started, ended = summary.started, summary.ended
    tokens = [number for number in (summary.input_tokens, summary.output_tokens) if number is not None]
    cost = summary.cost
    return (
        summary.revision,
        reader,
        write_summary(summary),
        arrived,
        key_of(summary.key),
        key_of(summary.origin),
        key_of(summary.status),
        None if summary.baseline is None else key_of(summary.baseline),
        int(summary.eligible),
        LEAST if started is None else max(started, LEAST + 1),
        summary.at,
        -1 if started is None or ended is None else max(ended - started, 0),
        sum(tokens) if tokens else -1,
        -1.0 if cost is None or not math.isfinite(cost) else max(float(cost), 0.0),
    )
