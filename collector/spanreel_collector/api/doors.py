"""What every request passes first: whether it may, and headers that keep browsers from harm.

Who may is `access`'s, as for the doors of OTLP.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as Connection

from spanreel_collector.access import Access, Denied, Scope, admit
from spanreel_collector.api.problems import Problem, answer
from spanreel_collector.rates import TooOften

API: Final = "/api/"
WHOLE: Final = ("/metrics", "/api/v1/size")
"""What counts all tenants together: a tenant's own tokens need not know how much others have."""
HEADERS: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_OPEN: Final = ("/healthz", "/readyz")
_FIELDS: Final = tuple((name.encode(), value.encode()) for name, value in HEADERS.items())
_PRIVATE: Final = (b"cache-control", b"no-store")
_RENEWED: Final = (b"cache-control", b"no-cache")  # a browser has no page of which some files are an older release's

Answered = Callable[[int, float], None]
"""Told of the status of an answer, and how many seconds it took to begin."""


def needed(method: str, path: str) -> Scope | None:
    """What a token must allow; None: nothing. The page's files are open: without a token it shows nothing."""
    if path in _OPEN:
        return None
    if path in WHOLE:
        return Scope.OPERATE
    if path.startswith(API) or method not in ("GET", "HEAD"):
        return Scope.ERASE if method == "DELETE" else Scope.READ
    return None


def behind_doors(app: ASGIApp, access: Access, answered: Answered) -> ASGIApp:
    """The application behind the one check: whatever is not admitted does not reach it, and its body is not read.

    Its requests carry who asks as ``state.caller``.
    """

    async def guard(scope: Connection, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # there are no WebSockets here, and nothing to do at the start
        began = time.monotonic()
        path: str = scope["path"]

        async def send_more(message: Message) -> None:
            if message["type"] == "http.response.start":
                answered(message["status"], time.monotonic() - began)
                fields = list(message.get("headers", ()))
                said = any(name.lower() == _PRIVATE[0] for name, _ in fields)
                kept = [] if said else [_PRIVATE if path.startswith(API) else _RENEWED]
                message = {**message, "headers": [*fields, *_FIELDS, *kept]}
            await send(message)

        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            caller = admit(access, headers, needed(scope["method"], path))
        except Denied as denied:
            await _refuse(denied, path)(scope, receive, send_more)
            return
        except TooOften as often:
            await _put_off(often, path)(scope, receive, send_more)
            return
        scope.setdefault("state", {})["caller"] = caller
        await app(scope, receive, send_more)

    return guard


def _put_off(often: TooOften, path: str) -> ASGIApp:
    said = {"connection": "close", "retry-after": str(math.ceil(often.seconds))}
    return answer(
        Problem(429, str(often), "ask less often, or have the service started with a higher --rate"), path, said
    )


def _refuse(denied: Denied, path: str) -> ASGIApp:
    # What was sent is not read, so that nothing else can come on this connection.
    said = {"connection": "close"}
    if denied.status == 401:
        said["www-authenticate"] = 'Bearer realm="spanreel"'
    return answer(
        Problem(denied.status, str(denied), "send a token that allows it: Authorization: Bearer TOKEN"), path, said
    )
