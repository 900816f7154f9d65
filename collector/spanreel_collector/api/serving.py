"""What the API answers from, handed in by the service; and who is asking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request

from spanreel_collector.api.events import Events
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


async def _tenant(request: Request) -> str:
    """The tenant that the check at the door found; a request that did not come through it has none, and fails."""
    return cast("str", request.state.tenant)


# As coroutines they cost no thread.
InService = Annotated[Serving, Depends(_serving)]
InStore = Annotated[Store, Depends(_store)]
Tenant = Annotated[str, Depends(_tenant)]
