"""A session's spans and files of it, streamed: in memory is one segment at a time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any

import zstandard
from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from spanreel.session_files import read_session
from spanreel_collector.api.problems import no_session
from spanreel_collector.api.serving import InStore, Tenant
from spanreel_collector.conversion.kitaru_jsonl import write_line
from spanreel_collector.otlp.json_writing import write_json
from spanreel_collector.stores.records import KeptSignal, Segment
from spanreel_collector.stores.store import Store

router = APIRouter(tags=["sessions"])

_RESOURCES: dict[KeptSignal, str] = {"traces": "resourceSpans", "logs": "resourceLogs"}
_SCOPES: dict[KeptSignal, tuple[str, str]] = {"traces": ("scopeSpans", "spans"), "logs": ("scopeLogs", "logRecords")}


class Form(StrEnum):
    """What a session is exported as."""

    JSON = "json"
    KITARU = "kitaru"
    OTLP = "otlp"


@router.get(
    "/sessions/{session}/spans",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/json": {"schema": {"type": "object"}}}}},
)
def get_spans(session: str, store: InStore, tenant: Tenant) -> StreamingResponse:
    """All spans and log records of the session's traces as they came: one OTLP/JSON document, streamed."""
    traces = _traces(store, tenant, session)

    def pieces() -> Iterator[bytes]:
        for signal, name in _RESOURCES.items():
            yield b'%c"%s":[' % (b"{" if signal == "traces" else b",", name.encode())
            first = True
            seen: set[bytes] = set()
            for segment in _segments(store, tenant, traces, signal):
                for resource in _unseen(segment, seen).get(name, ()):
                    yield (b"" if first else b",") + json.dumps(resource).encode()
                    first = False
            yield b"]"
        yield b"}"

    return StreamingResponse(pieces(), media_type="application/json")


@router.get(
    "/sessions/{session}/export",
    response_class=StreamingResponse,
    responses={
        200: {
            "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/Session"}},
                "application/jsonl": {"schema": {"type": "string"}},
            }
        }
    },
)
def export(session: str, store: InStore, tenant: Tenant, format: Form = Form.JSON) -> StreamingResponse:
    """A file: the session document, Kitaru's session JSONL, or OTLP JSON lines as the Collector's file exporter writes.

    The document is one that `spanreel replay` takes; both others are what `spanreel convert` takes.
    """
    write, suffix, media_type = _FORMS[format]
    pieces = write(store, tenant, session)
    headers = {"Content-Disposition": f'attachment; filename="{_file_name(session)}.{suffix}"'}
    return StreamingResponse(pieces, media_type=media_type, headers=headers)


def _file_name(session: str) -> str:
    return "".join(character if character.isascii() and character.isalnum() else "-" for character in session)


def _document(store: Store, tenant: str, session: str) -> bytes:
    found = store.session(tenant, session)
    if found is None:
        raise no_session(session)
    return found[1]


def _json(store: Store, tenant: str, session: str) -> Iterator[bytes]:
    return iter((_document(store, tenant, session), b"\n"))


def _kitaru(store: Store, tenant: str, session: str) -> Iterator[bytes]:
    return iter((write_line(read_session(_document(store, tenant, session))).encode(), b"\n"))


def _otlp(store: Store, tenant: str, session: str) -> Iterator[bytes]:
    traces = _traces(store, tenant, session)
    seen: set[bytes] = set()
    documents = (_unseen(segment, seen) for _, segment in store.segments(tenant, traces))
    return (json.dumps(document).encode() + b"\n" for document in documents if document)


_FORMS: dict[Form, tuple[Callable[[Store, str, str], Iterator[bytes]], str, str]] = {
    Form.JSON: (_json, "json", "application/json"),
    Form.KITARU: (_kitaru, "kitaru.jsonl", "application/jsonl"),
    Form.OTLP: (_otlp, "otlp.jsonl", "application/jsonl"),
}


def _traces(store: Store, tenant: str, session: str) -> frozenset[bytes]:
    """The traces of a session that is there."""
    traces = store.traces_of(tenant, session)
    if not traces:
        raise no_session(session)
    return traces


def _segments(store: Store, tenant: str, traces: frozenset[bytes], signal: KeptSignal) -> Iterator[Segment]:
    return (segment for _, segment in store.segments(tenant, traces) if segment.signal == signal)


def _unseen(segment: Segment, seen: set[bytes]) -> dict[str, Any]:
    """What a segment says that those before it did not; nothing for nothing.

    A delivery that comes again with something new is kept as it came, with what is known.
    """
    name, (scopes, records) = _RESOURCES[segment.signal], _SCOPES[segment.signal]
    resources = []
    for resource in _request(segment).get(name, ()):
        kept = []
        for scope in resource.get(scopes, ()):
            # A span is told by itself, a log record by its scope and resource too.
            under = () if segment.signal == "traces" else (resource.get("resource"), scope.get("scope"))
            new = [one for one in scope.get(records, ()) if _first(seen, one, *under)]
            if new:
                kept.append({**scope, records: new})
        if kept:
            resources.append({**resource, scopes: kept})
    return {name: resources} if resources else {}


def _first(seen: set[bytes], *said: Any) -> bool:
    digest = hashlib.blake2b(json.dumps(said).encode(), digest_size=16).digest()
    known = digest in seen
    seen.add(digest)
    return not known


def _request(segment: Segment) -> dict[str, Any]:
    data = zstandard.ZstdDecompressor().decompress(segment.body, max_output_size=max(segment.size, 1))
    return write_json(data, segment.signal)
