"""Methods that no route names: HEAD, which is GET without its body; and those that a path does not know."""

from __future__ import annotations

import asyncio

from fastapi import FastAPI, Request
from starlette.routing import compile_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spanreel_collector.api.problems import Problem

_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"]


def with_head(app: ASGIApp) -> ASGIApp:
    """The application, which answers HEAD as GET, and stops working on it when the head of the answer is known."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await app(scope, receive, send)
            return
        told = asyncio.Event()

        async def send_head(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                told.set()

        working = asyncio.ensure_future(app({**scope, "method": "GET"}, receive, send_head))
        known = asyncio.ensure_future(told.wait())
        try:
            await asyncio.wait((working, known), return_when=asyncio.FIRST_COMPLETED)
        finally:
            known.cancel()
            if told.is_set():
                working.cancel()  # a stream may have no end
        if not told.is_set():
            await working

    return answer


def install(app: FastAPI) -> None:
    """Answer what no route of the API takes, before its path is looked for among the page's files."""

    @app.api_route("/api/{rest:path}", methods=_METHODS, include_in_schema=False)
    async def _unknown(request: Request) -> None:
        path = request.url.path
        described = app.openapi()["paths"].items()
        allowed = {one.upper() for known, methods in described if compile_path(known)[0].match(path) for one in methods}
        advice = "see /api/openapi.json"
        if not allowed:
            raise Problem(404, f"nothing is at {path!r}", advice)
        allowed |= {"HEAD"} if "GET" in allowed else set()
        said = ", ".join(sorted(allowed))
        raise Problem(405, f"{request.method} is not for {path!r}", f"use {said}; {advice}", headers={"allow": said})
