"""Reports of replays, taken in and given out."""

from __future__ import annotations

import asyncio
import hashlib
import time
from typing import Any

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import ValidationError

from spanreel_collector import json_text
from spanreel_collector.api.documents import Report, ReportIn
from spanreel_collector.api.moments import write_moment
from spanreel_collector.api.problems import Problem, no_session
from spanreel_collector.api.serving import InStore, Tenant
from spanreel_collector.stores import records as stored
from spanreel_collector.stores.store import Store

router = APIRouter(tags=["reports"])

LARGEST = 16 * 1024 * 1024
"""Bytes of one report."""
SECONDS = 30.0
"""In which it has to arrive."""
_BODY: dict[str, Any] = {
    "requestBody": {"required": True, "content": {"application/json": {"schema": ReportIn.model_json_schema()}}}
}


@router.post("/sessions/{session}/reports", status_code=201, openapi_extra=_BODY)
async def add_report(session: str, request: Request, store: InStore, tenant: Tenant) -> Report:
    """Keep a replay's report, as `spanreel replay --report` writes it; the same one again is one."""
    return await run_in_threadpool(_add, store, tenant, session, await _body(request))


async def _body(request: Request) -> bytes:
    pieces, size = [], 0
    try:
        async with asyncio.timeout(SECONDS):
            async for piece in request.stream():
                size += len(piece)
                if size > LARGEST:
                    raise Problem(413, f"a report is at most {LARGEST} bytes", "leave out what it quotes")
                pieces.append(piece)
    except TimeoutError as error:
        raise Problem(408, f"a report has to arrive within {SECONDS:g} seconds", "send it again") from error
    return b"".join(pieces)


def _add(store: Store, tenant: str, session: str, body: bytes) -> Report:
    try:
        said = ReportIn.model_validate(json_text.parse(body))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(["body", *(str(step) for step in first["loc"])])
        raise Problem(422, f"{place}: {first['msg']}", "send what spanreel replay --report wrote", place) from error
    except ValueError as error:
        raise Problem(400, f"the body is no JSON: {error}", "send what spanreel replay --report wrote") from error
    if said.session != session:
        advice = f"post it to /api/v1/sessions/{said.session}/reports"
        raise Problem(422, f"the report is of session {said.session!r}, not {session!r}", advice, "body.session")
    if store.session(tenant, session) is None:
        raise no_session(session)
    identity = "r-" + hashlib.sha256(body).hexdigest()[:16]
    report = stored.Report(identity, session, time.time_ns(), said.verdict, body)
    store.add_report(tenant, report)
    return _told(report)


@router.get("/sessions/{session}/reports")
def list_reports(session: str, store: InStore, tenant: Tenant) -> list[Report]:
    """What replays of the session found, newest first."""
    if store.session(tenant, session) is None:
        raise no_session(session)
    return [_told(report) for report in store.reports(tenant, session)]


def _told(report: stored.Report) -> Report:
    return Report(
        id=report.id,
        session=report.session,
        at=write_moment(report.at) or "",
        verdict=report.verdict,
        report=json_text.parse(report.document),
    )
