"""The sessions of a batch: found in files and folders, read one by one, each with a name for its report."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from spanreel.errors import ReplayRefused, SessionError
from spanreel.session import Session
from spanreel.session_files import load_sessions, split_address

SUMMARY_FILE: Final = "summary.json"
"""The name that no session's report may have."""
LONGEST_NAME: Final = 150
"""Bytes of a report's file name before its ending; file systems take 255, and one is written under a longer name."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One session to replay; ``name`` is that of its report. ``session`` is None where ``refused`` says why."""

    name: str
    source: str
    session: Session | None
    run: str | None = None
    refused: str | None = None


def files_of(sources: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """The session files that words of the command line mean, each with the run it names; a folder's by their names.

    Raises:
        ReplayRefused: a folder holds none.
    """
    for source in sources:
        path, run = split_address(source)
        if not Path(path).is_dir():
            yield path, run
            continue
        found = sorted(one for one in Path(path).iterdir() if one.suffix in (".json", ".jsonl") and one.name[0] != ".")
        if not found:
            raise ReplayRefused(f"{path!r} holds no session documents (*.json, *.jsonl)")
        yield from ((str(one), run) for one in found)


def items_of(files: Sequence[tuple[str, str | None]], faults: Mapping[str, str] | None = None) -> Iterator[Candidate]:
    """Every session of these files, read when it is its turn; what cannot be read is refused, and the rest goes on.

    ``faults`` says of files that are not there why they are not.
    """
    names: Counter[str] = Counter()
    for path, run in files:
        try:
            if faults is not None and path in faults:
                raise SessionError(faults[path])
            sessions: list[Session] = load_sessions(path)
        except SessionError as error:
            yield Candidate(_name(Path(path).stem, None, names), path, None, run, str(error))
            continue
        for session in sessions:
            yield Candidate(_name(session.id, run, names), path, session, run)


def _name(identity: str, run: str | None, names: Counter[str]) -> str:
    """A file name of its own for each, whatever stands in the id; the summary's is taken."""
    wanted = quote(identity + (f"#{run}" if run is not None else ""), safe="#@+=, ")
    wanted = wanted if wanted[:1] != "." else f"%2E{wanted[1:]}"
    if len(wanted) > LONGEST_NAME:
        wanted = f"{wanted[:LONGEST_NAME]}-{hashlib.sha256(wanted.encode()).hexdigest()[:12]}"
    # Where the system does not tell large letters from small, neither may the names.
    key = wanted.casefold()
    names[key] += 1
    if names[key] == 1 and f"{key}.json" != SUMMARY_FILE:
        return wanted
    return f"{wanted}~{names[key]}"
