"""Session documents as text and as files: read, of this version or an older one; written; addressed with their runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pydantic_core
from pydantic import ValidationError

from spanreel.errors import SessionError
from spanreel.model import Json
from spanreel.session import SCHEMA, Session

UPGRADES: dict[str, Any] = {}
"""Schema name of an older document to the function that turns its JSON into the next version's."""


def read_session(data: str | bytes | dict[str, Json]) -> Session:
    """Read one session document, of this version or an older one.

    Raises:
        SessionError: not JSON, not a session, or of a version that this release does not know; says what and where.
    """
    try:
        document = pydantic_core.from_json(data) if isinstance(data, str | bytes) else data
    except ValueError as error:
        raise SessionError(f"not a session document: {error}") from error
    if not isinstance(document, dict):
        raise SessionError(f"not a session document: JSON of type {type(document).__name__}, expected an object")
    schema = document.get("schema")
    while schema in UPGRADES:
        document = UPGRADES[schema](document)
        schema = document.get("schema")
    if schema is None:
        raise SessionError(_what_else(document))
    if schema != SCHEMA:
        raise SessionError(
            f"session document of schema {schema!r}; this release reads {[*UPGRADES, SCHEMA]!r}. Is it newer than this?"
        )
    try:
        return Session.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        place = "/".join(str(step) for step in first["loc"])
        raise SessionError(f"session document: {first['msg']} at /{place}") from error


def _what_else(document: Mapping[str, Json]) -> str:
    if any(name.startswith(("resource", "scope")) for name in document):
        return "these are traces, not a session; first: spanreel convert FILE --out session.json"
    return f"not a session document: an object with {sorted(document)[:5]!r}"


def write_session(session: Session, *, indent: int | None = None) -> str:
    """The document as JSON text; what is absent is left out."""
    return session.model_dump_json(exclude_none=True, indent=indent)


def split_address(address: str) -> tuple[str, str | None]:
    """The file and the run of ``SESSION#RUN``; a file may itself have a # in its name."""
    if "#" not in address or Path(address).exists():
        return address, None
    file, _, run = address.rpartition("#")
    return file, run or None


def load_sessions(path: str | Path) -> list[Session]:
    """All sessions of a file: one document, a JSON list of them, or JSON lines.

    Raises:
        SessionError: the file is missing or empty, or a document of it cannot be read; names the file and the place.
    """
    file = Path(path)
    try:
        text = file.read_bytes()
    except OSError as error:
        raise SessionError(f"cannot read {str(file)!r}: {error.strerror or error}") from error
    stripped = text.strip()
    if not stripped:
        raise SessionError(f"{str(file)!r} is empty")
    try:
        whole = pydantic_core.from_json(stripped)
    except ValueError:
        documents: list[Any] = [line for line in stripped.splitlines() if line.strip()]
    else:
        documents = whole if isinstance(whole, list) else [whole]
    sessions = []
    for number, document in enumerate(documents, 1):
        try:
            sessions.append(read_session(document))
        except SessionError as error:
            raise SessionError(f"{str(file)!r}, document {number}: {error}") from error
    return sessions
