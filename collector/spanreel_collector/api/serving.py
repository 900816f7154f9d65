"""What the API answers from, handed in by the service; and who is asking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request

from spanreel_collector.access import Caller
from spanreel_collector.api.events import Events
from spanreel_collector.api.readiness import Readiness
from spanreel_collector.stores.store import Store


@dataclass(frozen=True, slots=True)
class Serving:
    """``unready`` says why nothing should be sent here now, ``metrics`` is Prometheus text."""

    store: Store
    events: Events
    unready: Callable[[], str | None]
    metrics: Callable[[], str]


async def _serving(request: Request) -> Serving:
    return cast("Serving", request.app.state.serving)


async def _store(request: Request) -> Store:
    return (await _serving(request)).store


async def _readiness(request: Request) -> Readiness:
    return cast("Readiness", request.app.state.readiness)


async def _caller(request: Request) -> Caller:
    """Whom the check at the door found; a request that did not come through it has nobody, and fails."""
    return cast("Caller", request.state.caller)


async def _tenant(request: Request) -> str:
    return (await _caller(request)).tenant


# As coroutines they cost no thread.
InService = Annotated[Serving, Depends(_serving)]
InReadiness = Annotated[Readiness, Depends(_readiness)]
InStore = Annotated[Store, Depends(_store)]
Asking = Annotated[Caller, Depends(_caller)]
Tenant = Annotated[str, Depends(_tenant)]
