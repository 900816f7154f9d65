"""aiohttp: what `google-genai` is asynchronous with where it is installed. Owns reading requests and making responses.

A session reads the body through a reader, which it has decoded already.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from spanreel.clients.pacing import paced_async
from spanreel.exchange import BodyKind, ClientPoint, HttpAnswer, HttpRequest

_READER_LIMIT: Final = 2**16


def bind(wrapped: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments by name, the session as ``self``."""
    return {**dict(zip(("method", "str_or_url"), args, strict=False)), **kwargs, "self": wrapped.__self__}


def peek(arguments: Mapping[str, Any]) -> tuple[str, str]:
    """Method and path; the path of what is no POST nobody asks for."""
    method = arguments["method"].upper()
    return method, _url(arguments).path if method == "POST" else ""


def read_request(arguments: Mapping[str, Any]) -> HttpRequest | None:
    """The request with its body; None where the body is a form, a file or a stream."""
    body = _body(arguments)
    if body is None:
        return None
    url = _url(arguments).update_query(arguments.get("params") or ())
    return HttpRequest(arguments["method"].upper(), str(url), url.host or "", url.path, body, url.explicit_port)


def pass_body(response: Any, wrap: Callable[[Any], Any]) -> None:
    """Let ``wrap`` stand between the connection's reader and the response."""
    response.content = wrap(response.content)


def build(arguments: Mapping[str, Any], answer: HttpAnswer) -> Any:
    """The response that the session would have returned, with no connection behind it."""
    aiohttp = importlib.import_module("aiohttp")
    multidict = importlib.import_module("multidict")
    session, url, loop = arguments["self"], _url(arguments), asyncio.get_running_loop()
    method = arguments["method"].upper()
    headers = multidict.CIMultiDictProxy(multidict.CIMultiDict(answer.headers))
    sent = multidict.CIMultiDictProxy(multidict.CIMultiDict(arguments.get("headers") or {}))
    kind = getattr(session, "_response_class", aiohttp.ClientResponse)
    known = {
        "writer": None,
        "continue100": None,
        "timer": None,
        "request_info": aiohttp.RequestInfo(url, method, sent, url),
        "traces": [],
        "loop": loop,
        "session": session,
        "stream_writer": _Nothing(),
    }
    asked = inspect.signature(kind).parameters
    response = kind(method, url, **{name: known[name] for name in known if name in asked})
    response.version, response.status, response.reason = aiohttp.HttpVersion11, answer.status, _reason(answer.status)
    response._headers = headers  # noqa: SLF001 - as the connection would have set them
    response._raw_headers = tuple((name.encode(), value.encode()) for name, value in headers.items())  # noqa: SLF001
    response.content = reader = aiohttp.StreamReader(_Nothing(), _READER_LIMIT, loop=loop)
    ends_early = answer.broken_off is not None or answer.failure is not None
    if any(due for due, _ in answer.pieces) or ends_early:
        response._spanreel_feeding = loop.create_task(_feed_paced(reader, answer))  # noqa: SLF001 - who reads it, keeps it
    else:
        for _, piece in answer.pieces:
            reader.feed_data(piece)
        reader.feed_eof()
    return response


async def settle(arguments: Mapping[str, Any], response: Any) -> None:
    """Raise for a status where the program, or its session, asks for that."""
    asked = _asked_to_raise(arguments)
    if callable(asked):
        await asked(response)
    elif asked:
        response.raise_for_status()


def expose(arguments: Mapping[str, Any], see: Callable[[Any], None]) -> Mapping[str, Any] | None:
    """The arguments to raise for a status only after it was seen; None where nobody asks to raise."""
    if not _asked_to_raise(arguments):
        return None

    async def judge(response: Any) -> None:
        see(response)
        await settle(arguments, response)

    return {**arguments, "raise_for_status": judge}


def rewrite(arguments: Mapping[str, Any], request: HttpRequest) -> Mapping[str, Any]:
    """The arguments with this body, to this URL; all else as it was."""
    multidict = importlib.import_module("multidict")
    headers = multidict.CIMultiDict(arguments.get("headers") or {})
    headers.popall("content-length", None)
    if arguments.get("json") is not None:
        headers.setdefault("content-type", "application/json")
    url = type(_url(arguments))(str(request.url), encoded=True)
    kept = {name: value for name, value in arguments.items() if name not in ("json", "params")}
    return {**kept, "str_or_url": url, "data": request.body, "headers": headers}


async def _feed_paced(reader: Any, answer: HttpAnswer) -> None:
    try:
        async for piece in paced_async(answer):
            reader.feed_data(piece)
    except BaseException as error:  # noqa: BLE001 - raised where the body is read
        reader.set_exception(error)
    else:
        reader.feed_eof()


def _url(arguments: Mapping[str, Any]) -> Any:
    """Where a request goes; a session may have a base for what is relative."""
    return arguments["self"]._build_url(arguments["str_or_url"])  # noqa: SLF001 - no public name says it


def _asked_to_raise(arguments: Mapping[str, Any]) -> Any:
    asked = arguments.get("raise_for_status")
    return getattr(arguments["self"], "_raise_for_status", None) if asked is None else asked


def _body(arguments: Mapping[str, Any]) -> bytes | None:
    data, given = arguments.get("data"), arguments.get("json")
    if given is not None:
        text: str = arguments["self"].json_serialize(given)
        return text.encode()
    if isinstance(data, str):
        return data.encode()
    return bytes(data) if isinstance(data, bytes | bytearray | memoryview) else None


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


class _Nothing:
    """Stands where a connection would: nothing is written to it, and it can always be read from."""

    connected = True
    output_size = 0
    _reading_paused = False
    """What readers of aiohttp before 3.13 look at."""

    def pause_reading(self) -> None:
        """There is nothing to hold back."""

    def resume_reading(self, resume_parser: bool = True) -> None:
        """There is nothing to wait for."""


AIOHTTP = (
    ClientPoint(
        target="aiohttp.client:ClientSession._request",
        library="aiohttp",
        is_async=True,
        body=BodyKind.ASYNC_READER,
        bind=bind,
        peek=peek,
        read_request=read_request,
        read_status=lambda response: int(response.status),
        read_headers=lambda response: response.headers,
        read_body=lambda response: response._body,  # noqa: SLF001 - reading it would be the caller's wait
        pass_body=pass_body,
        build=build,
        settle=settle,
        rewrite=rewrite,
        expose=expose,
    ),
)
