"""Files that the Collector's file exporter, spanreel and others wrote, or standard input, whole or cut off."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from spanreel_collector.sources.documents import read_line
from spanreel_collector.sources.framing import Record, read_records
from spanreel_collector.sources.references import resolve
from spanreel_collector.span import Batch, Fault

STDIN = "-"
_BACKENDS = ("jaeger:", "phoenix:")


@dataclass(frozen=True, slots=True)
class UnreadRequest:
    """One export request as it came, still to be read. ``folder`` holds files that it may refer to."""

    place: str
    data: bytes
    form: Literal["json", "protobuf"] = "json"
    folder: str | None = None
    problem: str | None = None


def is_remote(source: str) -> bool:
    """Whether this names a backend (`remote` fetches what it holds), and not a file."""
    return source.startswith(_BACKENDS)


def read_file(path: str) -> Iterator[Batch]:
    """The export requests of a file (``-`` is standard input); what cannot be read comes as faults."""
    return map(read_piece, read_pieces(path))


def read_pieces(path: str, passed: Callable[[int], None] | None = None) -> Iterator[UnreadRequest]:
    """The export requests of a file, still to be read; ``passed`` is told how many bytes of it have gone by."""
    name = "standard input" if path == STDIN else path
    folder = None if path == STDIN else str(Path(path).parent)
    try:
        # Read in large pieces by those below, so that no buffer is needed here.
        raw: Any = sys.stdin.buffer if path == STDIN else Path(path).open("rb", buffering=0)  # noqa: SIM115 closed below
    except OSError as error:
        said = error.strerror or str(error)
        if isinstance(error, IsADirectoryError):
            said = f"it is a folder; name its files, as in {name.rstrip('/')}/*"
        yield UnreadRequest(name, b"", problem=f"cannot be opened: {said}")
        return
    with raw:
        stream: Any = raw if passed is None else _Watched(raw, passed)
        for record in read_records(stream):
            yield _piece(record, name, folder)


def size_of(path: str) -> int:
    """Bytes of a file; 0 where nobody knows before it is read."""
    try:
        return 0 if path == STDIN else Path(path).stat().st_size
    except OSError:
        return 0


def _piece(record: Record, name: str, folder: str | None) -> UnreadRequest:
    return UnreadRequest(f"{name}:{record.number}", record.data, record.form, folder, record.problem)


def read_piece(piece: UnreadRequest) -> Batch:
    """What an export request holds."""
    if piece.problem is not None:
        return Batch(faults=(Fault(piece.place, piece.problem),))
    batch = read_body(piece.data, piece.form, piece.place)
    return resolve(batch, None if piece.folder is None else Path(piece.folder))


def read_body(data: bytes, form: Literal["json", "protobuf"], place: str) -> Batch:
    """What the body of an export request holds, unpacked; what cannot be read comes as faults."""
    if form == "json":
        return read_line(data, place)
    # Who reads lines of JSON need not wait for the library.
    from spanreel_collector.otlp.protobuf_form import read_message  # noqa: PLC0415 - as said

    try:
        return read_message(data, place)
    except ValueError as error:
        return Batch(faults=(Fault(place, str(error)),))


class _Watched(io.RawIOBase):
    """A stream that says how much of it was read."""

    def __init__(self, stream: Any, passed: Callable[[int], None]) -> None:
        self._stream = stream
        self._passed = passed

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size: int = self._stream.readinto(buffer)
        self._passed(size)
        return size
