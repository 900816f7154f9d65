"""Backups of a store: one file for all kinds of stores, so that a session can move from one to another.

The file is zstd of a header, entries and an end that counts them and has the checksum of all before. Where entries come
from and go is the store's.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import zstandard

from spanreel import __version__
from spanreel.errors import SpanreelError
from spanreel_collector.stores.records import Entry
from spanreel_collector.stores.store import Store, StoreError

FORMAT: Final = "spanreel.archive"
VERSION: Final = 1
LEVEL: Final = 3
_LENGTH: Final = struct.Struct(">I")
_LONGEST: Final = 1 << 30
"""Bytes of one entry: no store of ours keeps more in one place, and a length beyond is no length."""
_ZSTD: Final = b"\x28\xb5\x2f\xfd"


class ArchiveError(SpanreelError):
    """A backup that cannot be read or written, or a store that cannot take it."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What an archive says of itself: who wrote it, and how many entries of each kind it has."""

    release: str
    entries: Mapping[str, int]


def write_archive(store: Store, path: Path) -> Contents:
    """Write all that a store holds, as of one moment; the file is there when it is whole.

    Raises:
        ArchiveError: the file cannot be written.
        StoreError: the store cannot be read.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    counts = Counter[str]()
    try:
        # What is in it is as private as the store.
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            with zstandard.ZstdCompressor(level=LEVEL).stream_writer(file, closefd=False) as out:
                checksum = _write(out, 0, [{"format": FORMAT, "version": VERSION, "release": __version__}])
                for entry in store.dump():
                    counts[entry.kind] += 1
                    checksum = _write(out, checksum, [entry.kind, *entry.values])
                _write(out, 0, [{"end": counts, "checksum": checksum}])
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        raise ArchiveError(f"cannot write the backup {str(path)!r}: {error.strerror or error}") from error
    finally:
        beside.unlink(missing_ok=True)
    return Contents(__version__, counts)


def read_archive(store: Store, path: Path) -> Contents:
    """Take all of an archive into an empty store. The file is read twice: one that is not whole changes nothing.

    Raises:
        ArchiveError: it is no archive or not whole, the store is not empty, or taking it in failed; the message says
            what is there now.
        StoreError: the store cannot be asked.
    """
    contents = check_archive(path)
    if store.tenants():
        raise ArchiveError("the store is not empty, and only an empty one takes a backup; nothing was changed")
    taken = 0

    def entries() -> Iterator[Entry]:
        nonlocal taken
        for entry in _entries(path):
            yield entry
            taken += 1

    try:
        store.load(entries())
    except (StoreError, ValueError, ArchiveError) as error:
        total = sum(contents.entries.values())
        raise ArchiveError(
            f"restoring ended at about entry {taken} of {total}: {error}; the store has a part of the backup now: "
            "remove it, and restore into an empty one"
        ) from error
    return contents


def check_archive(path: Path) -> Contents:
    """Read an archive to its end, and say what is in it.

    Raises:
        ArchiveError: it is none, or not whole.
    """
    counts = Counter[str]()
    try:
        with _reading(path) as records:
            release = str(next(records)["release"])
            counts.update(record.kind for record in records if isinstance(record, Entry))
    except ArchiveError as error:
        raise ArchiveError(f"{error}; nothing was changed") from error
    return Contents(release, counts)


def _entries(path: Path) -> Iterator[Entry]:
    with _reading(path) as records:
        yield from (record for record in records if isinstance(record, Entry))


# -- the format ------------------------------------------------------------------------------------------------------


def _write(out: Any, checksum: int, values: Iterable[Any]) -> int:
    """One record: the length of its JSON, the JSON (bytes are their number), the bytes; the checksum goes on."""
    large = []
    plain = []
    for value in values:
        if isinstance(value, bytes):
            large.append(value)
            plain.append([len(value)])
        else:
            plain.append(value)
    text = json.dumps(plain, separators=(",", ":")).encode()
    for part in (_LENGTH.pack(len(text)), text, *large):
        out.write(part)
        checksum = zlib.crc32(part, checksum)
    return checksum


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[Iterator[Any]]:
    """The records of an archive: the header, then entries, then the end."""
    try:
        with path.open("rb") as file:
            yield _records(file, path)
    except OSError as error:
        raise ArchiveError(f"cannot read the backup {str(path)!r}: {error.strerror or error}") from error
    except zstandard.ZstdError as error:
        raise ArchiveError(f"the backup {str(path)!r} is damaged: {error}") from error


def _records(file: BinaryIO, path: Path) -> Iterator[Any]:
    if file.read(len(_ZSTD)) != _ZSTD:
        raise ArchiveError(f"{str(path)!r} is no backup of spanreel")
    file.seek(0)
    with zstandard.ZstdDecompressor().stream_reader(file, closefd=False) as stream:
        reading = _Reading(stream, str(path))
        yield _header(reading)
        while True:
            checksum = reading.checksum
            record = reading.next()
            if isinstance(record, dict):
                if record.get("checksum") != checksum:
                    raise reading.damaged("what is in it is not what was written")
                yield record
                return
            yield record


def _header(reading: _Reading) -> dict[str, Any]:
    try:
        header = reading.next()
    except ArchiveError:
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT or "version" not in header:
        raise ArchiveError(f"{reading.path!r} is no backup of spanreel, or cut off at its beginning")
    if header["version"] != VERSION:
        raise ArchiveError(
            f"the backup {reading.path!r} is of release {header.get('release')!r} and format {header['version']!r}; "
            f"this release reads format {VERSION}: restore with that one"
        )
    return {"release": "", **header}


@dataclass(slots=True)
class _Reading:
    """A stream of records, and the checksum of what was read."""

    stream: BinaryIO
    path: str
    checksum: int = 0

    def next(self) -> Any:
        """The next record: an `Entry`, or the object that the header and the end are."""
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        try:
            values = json.loads(self._exactly(length))
            if isinstance(values[0], dict):
                return values[0]
            kind, *rest = values
            return Entry(str(kind), tuple(self._exactly(one[0]) if isinstance(one, list) else one for one in rest))
        except (ValueError, TypeError, LookupError) as error:
            raise self.damaged(str(error)) from error

    def damaged(self, why: str) -> ArchiveError:
        return ArchiveError(f"the backup {self.path!r} is damaged: {why}")

    def _exactly(self, length: int) -> bytes:
        if not 0 <= length <= _LONGEST:
            raise self.damaged(f"an entry of {length} bytes")
        parts = []
        while length:
            part = self.stream.read(min(length, 1 << 20))
            if not part:
                raise ArchiveError(f"the backup {self.path!r} is cut off before its end")
            self.checksum = zlib.crc32(part, self.checksum)
            parts.append(part)
            length -= len(part)
        return b"".join(parts)
