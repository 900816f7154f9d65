"""The events of a streamed body; those that repeat the one before them but for a few values are taken all at once.

They are nearly all of a stream. The bytes that stand between the values are the same in each, so what the values are is
found, examined and decoded by a few operations on the whole stretch; where that is not certain, event by event.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

import pydantic_core

from spanreel.exchange import Piece
from spanreel.frozen import dataclass
from spanreel.model import Json
from spanreel.protocols.sse import Body, Event, read_event

Path = tuple[int | str, ...]
Fields = Mapping[str, Json]
Parse = Callable[[Event], dict[str, Json] | None]
Spots = Callable[[Fields], Sequence[Path]]
"""Where an event may differ from the one that it repeats: each at a key that stands in it once."""


@dataclass(frozen=True, slots=True)
class Repeats:
    """Events like the one before them but for their values: the microseconds of each, and a column a path."""

    times: list[int]
    columns: dict[Path, list[Any]]


Item = tuple[Event, dict[str, Json] | None] | Repeats
"""What a body is read as: an event and its fields (None where it is none of the protocol's), or its repeats."""


@dataclass(frozen=True, slots=True)
class _Form:
    """How an event is written: the bytes before, between and after its values, ``kinds`` and ``paths`` of these."""

    around: list[bytes]
    kinds: str
    paths: list[Path]
    blank: bytes


@dataclass(frozen=True, slots=True)
class _Taken:
    """Repeats, where they end, up to where was looked for them, and whether there may be more of them."""

    repeats: Repeats | None
    end: int
    looked: int
    may_go_on: bool


_TEXT: Final = "t"
_NUMBER: Final = "n"
_VALUES: Final = {
    _TEXT: re.compile(rb'"((?:[^"\\\x00-\x1f]|\\[^\x00-\x1f])*+)"'),
    _NUMBER: re.compile(rb"(\d++)(?![.eE])"),
}
_END: Final = b"\xff"
_BETWEEN: Final = (b"\xfe", b"\xfd", b"\xfc", b"\xfb", b"\xfa")
"""What stands for the bytes around the values: bytes that occur in no UTF-8."""
_TAKEN: Final = re.compile(rb"[\xf5-\xff]")
_INSIDE: Final = {
    _TEXT: rb'[^"\\\x00-\x1f\xf5-\xff]*+(?:\\[^\x00-\x1f\xf5-\xff][^"\\\x00-\x1f\xf5-\xff]*+)*+',
    _NUMBER: rb"\d++",
}
_FIRST_LOOK: Final = 40
"""How many events are looked at first; more where these all repeat."""


def read(pieces: Sequence[Piece], parse: Parse, spots: Spots) -> Iterator[Item]:
    """The events of a body in order, each with what ``parse`` makes of it, or as repeats of the one before them."""
    body = Body(pieces)
    is_open = body.bytes.isascii() or _TAKEN.search(body.bytes) is None
    start = tried = 0
    while (block := body.block(start)) is not None:
        begin, (end, start) = start, block
        event = body.event(begin, end, start)
        if event is None:
            continue
        fields = parse(event)
        yield event, fields
        if fields is None or not is_open or start < tried:
            continue
        form = _form(body.bytes, (begin, end, start), fields, spots(fields), parse)
        length = _FIRST_LOOK * (start - begin)
        while form is not None:
            length = _longest(body.bytes, start, form, length)
            taken = _take(body, start, form, length)
            if taken.repeats is not None:
                yield taken.repeats
            if (taken.end - start) * 4 < taken.looked - start:
                tried = taken.looked  # what was looked at in vain is not looked at again
            start, length = taken.end, length * 4
            if not taken.may_go_on:
                break
    rest = body.rest(start)
    if rest is not None:
        yield rest, parse(rest)


def said(items: Iterable[Item]) -> Iterator[dict[str, Json]]:
    """The fields of all events, those of repeats as one event's."""
    fields: dict[str, Json] = {}
    for item in items:
        if isinstance(item, Repeats):
            yield _together(fields, item)
        elif item[1] is not None:
            fields = item[1]
            yield fields


def _together(fields: Fields, repeats: Repeats) -> dict[str, Json]:
    """One event that says all that the repeats of an event say: their texts as one."""
    said: Json = dict(fields)
    for path, column in repeats.columns.items():
        said = put(said, path, "".join(column) if isinstance(column[0], str) else column[-1])
    return said  # type: ignore[no-any-return]  # JSON is Any to mypy; an object stays one


def find(value: Json, path: Path) -> Json:
    """What stands at a path; None where nothing does."""
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def put(value: Json, path: Path, new: Json) -> Json:
    """A copy of the value with another one at a path that it has; LookupError or TypeError where it has not."""
    if not path:
        return new
    copy: Any = value.copy()
    copy[path[0]] = put(copy[path[0]], path[1:], new)
    return copy


def _form(
    body: bytes, place: tuple[int, int, int], fields: dict[str, Json], paths: Sequence[Path], parse: Parse
) -> _Form | None:
    """How an event is written, where the next one may be written alike; None where its values cannot be told apart."""
    begin, end, after = place
    block = body[begin:end]
    if not 0 < len(paths) <= len(_BETWEEN) or block[:1] in b"\r\n":
        return None
    found = []
    for path in paths:
        kind = _TEXT if type(find(fields, path)) is str else _NUMBER
        key = pydantic_core.to_json(path[-1]) + b":"
        at = block.find(key) + len(key)
        while block[at : at + 1] == b" ":
            at += 1
        value = _VALUES[kind].match(block, at)
        if value is None or block.count(key) != 1:
            return None
        found.append((*value.span(1), kind, path))
    found.sort()
    if not body.startswith(block[: found[0][0]], after):
        return None
    starts = [0, *(stop for _, stop, _, _ in found)]
    stops = [*(first for first, _, _, _ in found), len(block)]
    around = [block[first:stop] for first, stop in zip(starts, stops, strict=True)]
    # With other values in their places, these must be what is read.
    written, expected = around[0], fields
    for (first, stop, kind, path), following in zip(found, around[1:], strict=True):
        value = find(fields, path)
        written += (block[first:stop] + b"." if kind == _TEXT else b"1" + block[first:stop]) + following
        expected = put(expected, path, f"{value}." if kind == _TEXT else int(f"1{value}"))
    if parse(read_event(written, 0)) != expected:
        return None
    kinds = "".join(kind for _, _, kind, _ in found)
    return _Form(around, kinds, [path for *_, path in found], body[end:after])


def _longest(body: bytes, start: int, form: _Form, length: int) -> int:
    """How far to look: further where events are alike there still."""
    end = form.around[-1] + form.blank
    around = 4 * (len(end) + len(form.around[0]))
    while body.find(end, start + length - around, start + length) >= 0:
        length *= 4
    return length


def _take(body: Body, start: int, form: _Form, length: int) -> _Taken:
    """The repeats that begin here, within so many bytes."""
    values, is_all, is_pieces = _values(body, start, form, length)
    rows = _END.join(values)
    for mark, text in zip(_BETWEEN, form.around[1:-1], strict=False):
        rows = rows.replace(text, mark)
    match = _rows_pattern(form.kinds).match(rows)
    stop = match.end() if match is not None else -1
    if stop < len(rows):  # what is no value of its kind
        stop = stop if rows[stop : stop + 1] == _END else rows.rfind(_END, 0, max(stop, 0))
        values, rows, is_all = values[: rows.count(_END, 0, stop) + 1 if stop >= 0 else 0], rows[: max(stop, 0)], False
    try:
        read = pydantic_core.from_json(_as_json(rows, form.kinds))
    except ValueError:  # half a surrogate pair, say
        values, is_all = [], False
    looked = min(start + length, len(body.bytes))
    if not values:
        return _Taken(None, start, looked, is_all and looked < len(body.bytes))
    constant = len(form.around[0]) + len(form.around[-1]) + len(form.blank)
    end = start + constant * len(values) + sum(map(len, values))
    if is_pieces:
        times = body.arrivals_of_pieces(start, len(values))
    else:
        _, *ends = accumulate(map(constant.__add__, map(len, values)), initial=start)
        times = body.arrivals(ends)
    columns = {path: read[number :: len(form.paths)] for number, path in enumerate(form.paths)}
    return _Taken(Repeats(times, columns), end, looked, is_all and looked < len(body.bytes))


def _values(body: Body, start: int, form: _Form, length: int) -> tuple[list[bytes], bool, bool]:
    """What stands between the same first and last bytes, event by event.

    And whether no other event was met; and whether each of these is a piece as it came, as most servers send them.
    """
    first, last = form.around[0], form.around[-1] + form.blank
    between = last + first
    values, is_all = _inside(body.pieces(start, length), first, last)
    is_pieces = True
    whole = first + between.join(values) + last
    if not values or not body.bytes.startswith(whole, start):
        rows = body.bytes[start : start + length].split(form.blank)
        values, is_all = _inside(rows[:-1], first, form.around[-1])
        is_pieces = False
        whole = first + between.join(values) + last
    if not values:
        return values, is_all, False
    if body.bytes.startswith(whole, start):
        end = start + len(whole)
        is_longer = body.bytes[end : end + 1] in (b"\r", b"\n")  # the blank line after the last
        return (values[:-1], False, is_pieces) if is_longer else (values, is_all, is_pieces)
    for number, value in enumerate(values):
        if not body.bytes.startswith(first + value + last, start):
            return values[:number], False, False
        start += len(first) + len(value) + len(last)
    return values, is_all, False


def _inside(rows: Sequence[bytes], first: bytes, last: bytes) -> tuple[list[bytes], bool]:
    """The rows without their first and last bytes, up to the last that has these; and whether that is the last."""
    count = len(rows)
    while count and not (rows[count - 1].startswith(first) and rows[count - 1].endswith(last)):
        count -= 1
    start, stop = len(first), -len(last)
    return [row[start:stop] for row in rows[:count]], count == len(rows)


@functools.cache
def _rows_pattern(kinds: str) -> re.Pattern[bytes]:
    row = b"".join(mark + _INSIDE[kind] for mark, kind in zip((b"", *_BETWEEN), kinds, strict=False))
    return re.compile(rb"%b(?:%b%b)*+" % (row, _END, row))


def _as_json(rows: bytes, kinds: str) -> bytes:
    """The values of all rows as one JSON list."""
    quotes = [b'"' if kind == _TEXT else b"" for kind in kinds]
    for mark, before, after in zip(_BETWEEN, quotes, quotes[1:], strict=False):
        rows = rows.replace(mark, before + b"," + after)
    return b"[" + quotes[0] + rows.replace(_END, quotes[-1] + b"," + quotes[0]) + quotes[-1] + b"]"
