"""Sessions listed, read, compared and erased."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import BaseModel

from spanreel.session import Session
from spanreel.session_files import read_session
from spanreel_collector import house
from spanreel_collector.api.documents import (
    ComparedRun,
    Comparison,
    Difference,
    Forecast,
    ForecastCall,
    ForecastRun,
    Receipt,
    Revision,
    SessionPage,
    SessionSummary,
    tell_kept,
    tell_summary,
    write_json,
)
from spanreel_collector.api.moments import read_moment, write_moment
from spanreel_collector.api.problems import Problem, no_session
from spanreel_collector.api.serving import InStore, Tenant
from spanreel_collector.comparison import compare
from spanreel_collector.sessions.eligibility import forecast, judge_run
from spanreel_collector.stores.records import Filter, Order, Summary
from spanreel_collector.stores.store import Store

router = APIRouter(tags=["sessions"])

LARGEST_PAGE = 500
PATIENCE = 10.0
"""Seconds that erasing a user waits for what came just now."""


class SessionQuery(BaseModel):
    """Which sessions, in which order, how many. Moments are RFC 3339, in UTC where they have no zone."""

    model_config = {"extra": "forbid"}

    agent: str | None = None
    version: str | None = None
    user: str | None = None
    model: str | None = None
    tool: str | None = None
    tag: str | None = None
    origin: str | None = None
    status: str | None = None
    key: str | None = None
    baseline: str | None = None
    eligible: bool | None = None
    since: str | None = None
    until: str | None = None
    least_tokens: int | None = None
    most_tokens: int | None = None
    least_cost: float | None = None
    most_cost: float | None = None
    text: str | None = None
    order: Order = "started"
    limit: Annotated[int, Query(ge=1, le=LARGEST_PAGE)] = 50
    cursor: str | None = None

    def filter(self) -> Filter:
        """As a store takes it."""
        said = self.model_dump(exclude={"order", "limit", "cursor"})
        return Filter(**said | {name: _moment(name, said[name]) for name in ("since", "until")})


def _moment(name: str, text: str | None) -> int | None:
    if not text:
        return None
    try:
        return read_moment(text)
    except ValueError as error:
        raise Problem(
            400, f"{name}: {text!r} is no moment", "write it as 2026-11-30T12:00:00Z", f"query.{name}"
        ) from error


@router.get("/sessions", response_model=SessionPage)
def list_sessions(asked: Annotated[SessionQuery, Query()], store: InStore, tenant: Tenant) -> Response:
    """The sessions that fit all that is asked, greatest first; the cursor leads to the next page."""
    try:
        page = store.find_kept(tenant, asked.filter(), asked.order, asked.limit, asked.cursor)
    except ValueError as error:
        advice = "leave it out, to begin with the first page"
        raise Problem(400, f"the cursor is none of this list: {error}", advice, "query.cursor") from error
    said = {"sessions": [tell_kept(one) for one in page.summaries], "cursor": page.cursor}
    return Response(write_json(said), media_type="application/json")


@router.get("/facets")
def list_facets(store: InStore, tenant: Tenant) -> dict[str, list[tuple[str, int]]]:
    """The values that lists can be filtered by, each with how many sessions have it."""
    return {name: list(values) for name, values in store.facets(tenant).items()}


@router.get("/sessions/{session}", response_model=Session)
def get_session(session: str, store: InStore, tenant: Tenant, revision: int | None = None) -> Response:
    """The session document (`spanreel.session/1`), as of a revision or the last."""
    _, document = _found(store, tenant, session, revision)
    return Response(document, media_type="application/json")


@router.get("/sessions/{session}/summary", response_model=SessionSummary)
def get_summary(session: str, store: InStore, tenant: Tenant) -> Response:
    """The session as lists show it."""
    said = tell_summary(_found(store, tenant, session)[0])
    return Response(write_json(said), media_type="application/json")


@router.get("/sessions/{session}/revisions")
def list_revisions(session: str, store: InStore, tenant: Tenant) -> list[Revision]:
    """The revisions that can be read, newest first."""
    _found(store, tenant, session)
    return [
        Revision(revision=one.revision, at=write_moment(one.at) or "", reader=one.reader)
        for one in store.revisions(tenant, session)
    ]


@router.get("/sessions/{session}/forecast")
def get_forecast(session: str, store: InStore, tenant: Tenant) -> Forecast:
    """What an offline replay would do with each call, and whether each root run can be replayed exactly."""
    document = read_session(_found(store, tenant, session)[1])
    judged = [(run, judge_run(document, run)) for run in document.roots()]
    return Forecast(
        session=document.id,
        revision=document.revision,
        eligible=document.replay.eligible,
        runs=[
            ForecastRun(
                run=run.id,
                path=run.path,
                eligible=one.eligible,
                reasons=[reason.model_dump(include={"place", "reason", "remedy"}) for reason in one.reasons],
            )
            for run, one in judged
        ],
        calls=[
            ForecastCall(call=one.call, name=one.name, place=one.place, outcome=one.outcome, reason=one.reason)
            for one in forecast(document)
        ],
    )


@router.get("/sessions/{session}/compare")
def compare_sessions(
    session: str, other: Annotated[str, Query(alias="with")], store: InStore, tenant: Tenant
) -> Comparison:
    """What differs between this session and another, as differences of a replay's report; this one is the baseline."""
    documents = [read_session(_found(store, tenant, one)[1]) for one in (session, other)]
    found = compare(*documents)
    return Comparison(
        sessions=[session, other],
        same=not found.differences,
        runs=[
            ComparedRun(
                path=pair.path,
                runs=[run and run.id for run in pair.runs],
                outcome="missing" if None in pair.runs else "differs" if pair.differs else "same",
            )
            for pair in found.runs
        ],
        differences=[
            Difference(
                subject=one.subject,
                path=one.path,
                number=one.number,
                name=one.name,
                reason=one.reason,
                difference=dict(one.difference) if one.difference is not None else None,
                places=list(one.places),
                text=one.text,
            )
            for one in found.differences
        ],
        cut=found.cut,
    )


@router.delete("/sessions/{session}")
def erase_session(session: str, store: InStore, tenant: Tenant) -> Receipt:
    """Remove a session and its replays: revisions, spans, logs, reports, search text. Late spans are not kept."""
    _found(store, tenant, session)
    return Receipt.of(house.erase_session(store, tenant, session))


@router.delete("/users/{user:path}")
def erase_user(user: str, store: InStore, tenant: Tenant) -> Receipt:
    """Remove all that a user is named in: sessions, their replays, and spans of no session. None is no error.

    It waits some seconds for what came just now to become sessions; ``pending`` says whether something has not.
    """
    asked = time.time_ns()
    receipt = house.erase_user(store, tenant, user, PATIENCE)
    return Receipt.of(receipt, store.pending(tenant, asked))


def _found(store: Store, tenant: str, session: str, revision: int | None = None) -> tuple[Summary, bytes]:
    found = store.session(tenant, session, revision)
    if found is None and revision is not None and store.session(tenant, session) is not None:
        advice = f"GET /api/v1/sessions/{session}/revisions lists those that are"
        raise Problem(404, f"revision {revision} of session {session!r} is not here", advice)
    if found is None:
        raise no_session(session)
    return found
