"""lm15, the transport of dspy's own engine, sync and async. Owns reading requests and making responses.

Its names are private to dspy; those who use litellm through dspy meet models over httpx.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Mapping
from functools import partial
from http.client import responses as REASONS  # noqa: N812 -- a constant, which the standard library writes small
from operator import attrgetter
from typing import Any

from spanreel.clients.pacing import paced, paced_async
from spanreel.clients.prepared import peek, read_request
from spanreel.exchange import BodyKind, ClientPoint, HttpAnswer, HttpRequest

_ROOT = "dspy._vendor.lm15.transports"


def bind(_wrapped: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments by name."""
    return {"request": args[0]} if args else kwargs


def read_headers(response: Any) -> Mapping[str, str]:
    """The headers, by their names in small letters."""
    return {name.lower(): value for name, value in response.headers}


def read_body(_response: Any) -> None:
    """It is always still to come."""


def pass_body(response: Any, wrap: Callable[[Any], Any]) -> None:
    """Let ``wrap`` stand between the connection's pieces and the response."""
    response._chunks = wrap(response._chunks)  # noqa: SLF001 -- no public name gives them unread


def build(is_async: bool, arguments: Mapping[str, Any], answer: HttpAnswer) -> Any:
    """The response that the transport would have returned, with no connection behind it."""
    types = importlib.import_module(f"{_ROOT}._types")
    kind = types.AsyncTransportResponse if is_async else types.TransportResponse
    return kind(
        status=answer.status,
        reason=REASONS.get(answer.status, ""),
        headers=list(answer.headers.items()),
        http_version="HTTP/1.1",
        chunks=paced_async(answer) if is_async else paced(answer),
        release=_release_async if is_async else _release,
    )


def settle(_arguments: Mapping[str, Any], _response: Any) -> None:
    """Nothing is done before it is returned."""


async def settle_async(_arguments: Mapping[str, Any], _response: Any) -> None:
    """`settle` for the asynchronous transport."""


def rewrite(arguments: Mapping[str, Any], request: HttpRequest) -> Mapping[str, Any]:
    """The arguments with a request of this body, to this URL; all else of it as it was."""
    own = arguments["request"]
    headers = [pair for pair in own.headers if pair[0].lower() not in ("content-length", "host")]
    made = dataclasses.replace(own, url=str(request.url), body=request.body, headers=headers)
    return {**arguments, "request": made}


def _release(_body_consumed: bool) -> None:
    """There is no connection."""


async def _release_async(_body_consumed: bool) -> None:
    """There is no connection."""


def _client(target: str, *, is_async: bool) -> ClientPoint:
    return ClientPoint(
        target=f"{_ROOT}.{target}",
        library="dspy",
        is_async=is_async,
        body=BodyKind.ASYNC_ITERATOR if is_async else BodyKind.ITERATOR,
        bind=bind,
        peek=peek,
        read_request=read_request,
        read_status=attrgetter("status"),
        read_headers=read_headers,
        read_body=read_body,
        pass_body=pass_body,
        build=partial(build, is_async),
        settle=settle_async if is_async else settle,
        rewrite=rewrite,
    )


LM15 = (
    _client("_sync:StdlibTransport.stream", is_async=False),
    _client("_async:StdlibAsyncTransport._do_stream", is_async=True),
)
