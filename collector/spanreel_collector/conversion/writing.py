"""Where documents go: standard output, one file, or a folder with a file a session, whose sessions grow."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal

from spanreel.errors import SessionError
from spanreel.session_files import read_session, write_session
from spanreel_collector.conversion.growth import grow
from spanreel_collector.conversion.kitaru_jsonl import write_line
from spanreel_collector.span import Fault

Form = Literal["json", "jsonl", "kitaru"]

_SUFFIXES: dict[Form, str] = {"json": "json", "jsonl": "jsonl", "kitaru": "kitaru.jsonl"}


@dataclass(eq=False, slots=True)
class Written:
    """How many sessions are new, say more than what was there, or do not; and what could not be written."""

    created: int = 0
    extended: int = 0
    unchanged: int = 0
    faults: list[Fault] = field(default_factory=list)


def indent_of(form: Form) -> int | None:
    """How documents of this form are indented."""
    return 2 if form == "json" else None


def write_documents(documents: Iterable[tuple[str, bytes]], count: int, form: Form, out: str | None) -> Written:
    """Write documents (the session's id, the text) in their order.

    Raises:
        OSError: the place cannot be written to.
    """
    if form == "kitaru":
        documents = ((identity, write_line(read_session(text)).encode()) for identity, text in documents)
    if out is not None and (out.endswith(("/", os.sep)) or Path(out).is_dir()):
        return _write_folder(documents, form, Path(out))
    if out is None:
        _write_all(documents, count, form, sys.stdout.buffer, alone=False)
        sys.stdout.buffer.flush()
    else:
        with _replaced(Path(out)) as file:
            # One session is one document, as `replay` and people want it.
            _write_all(documents, count, form, file, alone=count == 1)
    return Written(created=count)


def _write_all(documents: Iterable[tuple[str, bytes]], count: int, form: Form, file: IO[bytes], *, alone: bool) -> None:
    if form != "json" or alone:
        for _, text in documents:
            file.write(text + b"\n")
        return
    file.write(b"[")
    for number, (_, text) in enumerate(documents, 1):
        file.write(text + (b",\n" if number < count else b""))
    file.write(b"]\n")


def _write_folder(documents: Iterable[tuple[str, bytes]], form: Form, folder: Path) -> Written:
    folder.mkdir(parents=True, exist_ok=True)
    written = Written()
    for identity, text in documents:
        path = folder / f"{identity}.{_SUFFIXES[form]}"
        try:
            known = path.read_bytes()
        except FileNotFoundError:
            written.created += 1
            _put(path, text)
            continue
        try:
            grown = _grown(known, text, form)
        except SessionError as error:
            written.faults.append(Fault(str(path), f"is left as it is: {error}"))
            continue
        if grown is None:
            written.unchanged += 1
        else:
            written.extended += 1
            _put(path, grown)
    return written


def _grown(known: bytes, text: bytes, form: Form) -> bytes | None:
    """What is to be written in place of a known document; None where that says it all."""
    if known.strip() == text:
        return None
    if form == "kitaru":
        return text  # Kitaru itself puts sessions together, by their external ids
    grown = grow(read_session(known), read_session(text))
    return None if grown is None else write_session(grown, indent=indent_of(form)).encode()


def _put(path: Path, text: bytes) -> None:
    with _replaced(path) as file:
        file.write(text + b"\n")


@contextmanager
def _replaced(path: Path) -> Iterator[IO[bytes]]:
    """A file beside the path, which takes its place at the end: a reader never sees half a document."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as file:
            yield file
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
