"""How the service is: alive, ready, how much it holds, what it refused, its metrics, what happens in it now."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import PlainTextResponse, StreamingResponse
from pydantic import BaseModel

from spanreel_collector.api.documents import Me, Refusal, Size
from spanreel_collector.api.moments import write_moment
from spanreel_collector.api.problems import DESCRIBED, Problem
from spanreel_collector.api.serving import Asking, InReadiness, InService, InStore, Tenant

router = APIRouter(tags=["service"])
health = APIRouter(tags=["health"])

_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


class State(BaseModel):
    """How it is."""

    status: str


@health.get("/healthz")
async def is_alive() -> State:
    """The process lives."""
    return State(status="alive")


@health.get("/readyz", responses={503: DESCRIBED})
async def is_ready(service: InService, readiness: InReadiness) -> State:
    """The service takes requests, and its store is whole and can be read and written now; as of some seconds."""
    why = service.unready() or await readiness.trouble()
    if why is not None:
        raise Problem(503, why, "try again in some seconds")
    return State(status="ready")


@health.get("/metrics", response_class=PlainTextResponse)
def get_metrics(service: InService) -> PlainTextResponse:
    """The service's own metrics, as Prometheus text."""
    return PlainTextResponse(service.metrics(), media_type=_PROMETHEUS)


@router.get("/me")
def get_me(caller: Asking) -> Me:
    """Who asks, and what they may do."""
    return Me(name=caller.name, tenant=caller.tenant, scopes=sorted(caller.scopes))


@router.get("/refusals")
def list_refusals(store: InStore, tenant: Tenant, limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> list[Refusal]:
    """What was not kept, or not understood, of what was sent, newest first."""
    return [
        Refusal(at=write_moment(one.at) or "", place=one.place, reason=one.reason)
        for one in store.refusals(tenant, limit)
    ]


@router.get("/size")
def get_size(store: InStore) -> Size:
    """How much the store holds, of all tenants."""
    size = store.size()
    return Size(
        items=size.items,
        traces=size.traces,
        sessions=size.sessions,
        pending=size.pending,
        live=size.live,
        disk=size.disk,
        tables=dict(size.tables),
    )


@router.get(
    "/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def follow(service: InService, tenant: Tenant) -> StreamingResponse:
    """Server-sent events: ``session`` with an id and a revision when one is made or changed.

    ``missed`` says that some were left out, since they were not taken: look at the list again.
    """
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(service.events.listen(tenant), media_type="text/event-stream", headers=headers)
