"""httpx and httpx2: the same code under two names, sync and async. Owns reading requests and building responses."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from operator import attrgetter
from typing import Any

from spanreel.clients.pacing import paced, paced_async
from spanreel.exchange import BodyKind, ClientPoint, HttpAnswer, HttpRequest, Piece


def bind(wrapped: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments by name, the client as ``self``."""
    return {**({"request": args[0]} if args else {}), **kwargs, "self": getattr(wrapped, "__self__", None)}


def peek(arguments: Mapping[str, Any]) -> tuple[str, str]:
    """Method and path of the request, at the price of two attribute look-ups for what is not a POST."""
    request = arguments["request"]
    return request.method, request.url.path if request.method == "POST" else ""


def read_request(arguments: Mapping[str, Any]) -> HttpRequest | None:
    """The request with its body; None where the body is a stream that only the transport may read."""
    request = arguments["request"]
    content = getattr(request, "_content", None)
    if content is None:
        return None
    url = request.url
    return HttpRequest(request.method, url, url.host, url.path, content, url.port)


def read_body(response: Any) -> bytes | None:
    """The body, decoded, where the client has read it; None while it is still to come."""
    return getattr(response, "_content", None)


def pass_body(response: Any, wrap: Callable[[Any], Any]) -> None:
    """Let ``wrap`` stand between the transport's stream and the response."""
    response.stream = wrap(response.stream)


def decode(library: str, headers: Mapping[str, str], pieces: Sequence[Piece]) -> list[Piece]:
    """Undo the content encoding as the client itself does; what was cut off gives what it holds."""
    if "content-encoding" not in headers:
        return list(pieces)
    httpx = importlib.import_module(library)
    arrival = 0.0

    def raw() -> Iterator[bytes]:
        nonlocal arrival
        for arrival, piece in pieces:  # noqa: B007 - read by the loop below
            yield piece

    response = httpx.Response(200, headers={"content-encoding": headers["content-encoding"]}, content=raw())
    decoded: list[Piece] = []
    try:
        decoded.extend((arrival, piece) for piece in response.iter_bytes())
    except httpx.DecodingError:
        pass  # a stream closed early ends in the middle of its encoding
    return decoded


def build(library: str, is_async: bool, arguments: Mapping[str, Any], answer: HttpAnswer) -> Any:
    """The response that the client would have returned, with no transport behind it."""
    httpx = importlib.import_module(library)
    content: Any = answer.body
    if arguments.get("stream"):
        content = paced_async(answer) if is_async else paced(answer)
    response = httpx.Response(answer.status, headers=answer.headers, content=content, request=arguments["request"])
    response.elapsed = timedelta(0)
    return response


def settle(arguments: Mapping[str, Any], response: Any) -> None:
    """Show both to the program's hooks, and read the response where it is not to be read by the program."""
    for hook in _hooks(arguments, "request"):
        hook(arguments["request"])
    for hook in _hooks(arguments, "response"):
        hook(response)
    if not arguments.get("stream"):
        response.read()


async def settle_async(arguments: Mapping[str, Any], response: Any) -> None:
    """`settle` for asynchronous clients."""
    for hook in _hooks(arguments, "request"):
        await hook(arguments["request"])
    for hook in _hooks(arguments, "response"):
        await hook(response)
    if not arguments.get("stream"):
        await response.aread()


def _hooks(arguments: Mapping[str, Any], event: str) -> list[Any]:
    hooks: Mapping[str, Any] = getattr(arguments["self"], "event_hooks", None) or {}
    return list(hooks.get(event) or ())


def rewrite(library: str, arguments: Mapping[str, Any], request: HttpRequest) -> Mapping[str, Any]:
    """The arguments with a request of this body, to this URL; all else of it as it was."""
    httpx = importlib.import_module(library)
    own = arguments["request"]
    headers = [pair for pair in own.headers.raw if pair[0].lower() not in (b"content-length", b"host")]
    made = httpx.Request(own.method, str(request.url), headers=headers, content=request.body, extensions=own.extensions)
    return {**arguments, "request": made}


def _client(library: str, owner: str, is_async: bool) -> ClientPoint:
    return ClientPoint(
        target=f"{library}:{owner}.send",
        library=library,
        is_async=is_async,
        body=BodyKind.ASYNC_ITERATOR if is_async else BodyKind.ITERATOR,
        bind=bind,
        peek=peek,
        read_request=read_request,
        read_status=attrgetter("status_code"),
        read_headers=attrgetter("headers"),
        read_body=read_body,
        pass_body=pass_body,
        decode=partial(decode, library),
        build=partial(build, library, is_async),
        settle=settle_async if is_async else settle,
        rewrite=partial(rewrite, library),
    )


HTTPX = (_client("httpx", "Client", is_async=False), _client("httpx", "AsyncClient", is_async=True))
HTTPX2 = (_client("httpx2", "Client", is_async=False), _client("httpx2", "AsyncClient", is_async=True))
