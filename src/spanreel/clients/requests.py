"""requests: what scripts and older SDKs call models with. Owns reading requests and making responses."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from datetime import timedelta
from http.client import responses as REASONS  # noqa: N812 -- a constant, which the standard library writes small
from operator import attrgetter
from typing import Any

from spanreel.clients.file_body import PieceFile
from spanreel.clients.pacing import paced
from spanreel.clients.prepared import peek, read_request
from spanreel.exchange import BodyKind, ClientPoint, HttpAnswer, HttpRequest


def bind(wrapped: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments by name, the session as ``self``."""
    return {**({"request": args[0]} if args else {}), **kwargs, "self": wrapped.__self__}


def read_body(response: Any) -> bytes | None:
    """The body, decoded, where the session has read it; None while it is still to come."""
    content = response._content  # noqa: SLF001 - reading it would be the caller's wait
    return content if isinstance(content, bytes) else None


def pass_body(response: Any, wrap: Callable[[Any], Any]) -> None:
    """Let ``wrap`` stand between the connection's stream and the response."""
    response.raw = wrap(response.raw)


def build(arguments: Mapping[str, Any], answer: HttpAnswer) -> Any:
    """The response that the session would have returned, with no connection behind it."""
    requests = importlib.import_module("requests")
    response = requests.Response()
    response.status_code = answer.status
    response.headers = requests.structures.CaseInsensitiveDict(answer.headers)
    response.encoding = requests.utils.get_encoding_from_headers(response.headers)
    response.request, response.url = arguments["request"], arguments["request"].url
    response.reason = REASONS.get(answer.status, "")
    response.elapsed = timedelta(0)
    response.raw = Raw(answer)
    return response


def settle(arguments: Mapping[str, Any], response: Any) -> None:
    """Show it to the program's hooks, and read it where it is not to be read by the program."""
    told = {name: value for name, value in arguments.items() if name not in ("self", "request", "allow_redirects")}
    for hook in arguments["request"].hooks.get("response") or ():
        hook(response, **told)
    if not arguments.get("stream", arguments["self"].stream):
        _ = response.content


def expose(arguments: Mapping[str, Any], see: Callable[[Any], None]) -> Mapping[str, Any] | None:
    """The arguments to show the response before the program's hooks, which may raise for it; None where there are none.

    A redirection is on its way to another response.
    """
    request = arguments["request"]
    hooks = request.hooks.get("response")
    if not hooks:
        return None

    def judge(response: Any, **_: Any) -> None:
        if not response.is_redirect:
            see(response)

    copied = request.copy()
    copied.hooks = {**request.hooks, "response": [judge, *hooks]}
    return {**arguments, "request": copied}


def rewrite(arguments: Mapping[str, Any], request: HttpRequest) -> Mapping[str, Any]:
    """The arguments with a request of this body, to this URL; all else of it as it was."""
    made = arguments["request"].copy()
    made.url, made.body = str(request.url), request.body
    made.headers["Content-Length"] = str(len(request.body))
    return {**arguments, "request": made}


class Raw(PieceFile):
    """A recorded body; each piece comes when it is due."""

    def __init__(self, answer: HttpAnswer) -> None:
        super().__init__(paced(answer))
        self.status, self.headers = answer.status, dict(answer.headers)

    def release_conn(self) -> None:
        """There is no connection."""


REQUESTS = (
    ClientPoint(
        target="requests.sessions:Session.send",
        library="requests",
        is_async=False,
        body=BodyKind.FILE,
        bind=bind,
        peek=peek,
        read_request=read_request,
        read_status=attrgetter("status_code"),
        read_headers=attrgetter("headers"),
        read_body=read_body,
        pass_body=pass_body,
        build=build,
        settle=settle,
        rewrite=rewrite,
        expose=expose,
    ),
)
