"""Files of OTLP JSON lines, as the Collector's file exporter and spanreel write them, whole or cut off."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from spanreel_collector.sources.documents import is_json, read_line
from spanreel_collector.sources.references import resolve
from spanreel_collector.span import Batch, Fault

STDIN = "-"
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_OPENINGS = (b"{", b"[", b"[{")


def read_file(path: str) -> Iterator[Batch]:
    """The export requests of a file (``-`` is standard input), one a line; what cannot be read comes as faults."""
    name = "standard input" if path == STDIN else path
    try:
        raw: IO[bytes] = sys.stdin.buffer if path == STDIN else Path(path).open("rb")  # noqa: SIM115 closed below
    except OSError as error:
        yield Batch(faults=(Fault(name, f"cannot be opened: {error.strerror or error}"),))
        return
    number = 0
    try:
        with raw:
            for number, text in _documents(_lines(raw)):
                batch = read_line(text, f"{name}:{number}")
                yield batch if path == STDIN else resolve(batch, Path(path).parent)
    except (OSError, EOFError, zlib.error) as error:
        yield Batch(faults=(Fault(f"{name}:{number + 1}", f"cannot be read on: {error}"),))


def _documents(lines: Iterator[bytes]) -> Iterator[tuple[int, bytes]]:
    """The documents with the lines they start in: each line is one, or the whole file, where it is printed for people.

    Such a file begins with a line that holds an opening bracket and nothing else.
    """
    numbered = enumerate((line.strip().removeprefix(_BOM) for line in lines), 1)
    for number, text in numbered:
        if text in _OPENINGS:
            rest = list(numbered)
            whole = b"\n".join([text, *(line for _, line in rest)])
            if is_json(whole):
                yield number, whole
                return
            yield number, text
            yield from ((place, line) for place, line in rest if line)
            return
        if text:
            yield number, text
            break
    yield from ((number, text) for number, text in numbered if text)


def _lines(raw: IO[bytes]) -> Iterator[bytes]:
    buffered = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(raw)  # type: ignore[type-var]
    if buffered.peek(2)[:2] == _GZIP:
        with gzip.GzipFile(fileobj=buffered) as unpacked:
            yield from unpacked
    else:
        yield from buffered
