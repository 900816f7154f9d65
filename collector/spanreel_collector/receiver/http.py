"""OTLP over HTTP: POST /v1/traces, /v1/logs and /v1/metrics, as an ASGI application.

https://opentelemetry.io/docs/specs/otlp/#otlphttp. Who may is asked before anything of a body is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from spanreel_collector.access import Access, Denied, Scope, admit
from spanreel_collector.otlp.answers import Code, Form, Status, write_response, write_status
from spanreel_collector.otlp.parts import TooLarge
from spanreel_collector.otlp.protobuf_form import Signal
from spanreel_collector.rates import TooOften
from spanreel_collector.receiver.bodies import ENCODINGS, UnknownEncoding
from spanreel_collector.receiver.committing import QueueFull
from spanreel_collector.receiver.receiving import SLOTS, Arrived, Receiver, accept, count, status_of

PATHS: Final[Mapping[str, Signal]] = {"/v1/traces": "traces", "/v1/logs": "logs", "/v1/metrics": "metrics"}
"""Where exporters send what."""
_FORMS: Final[Mapping[str, Form]] = {"application/x-protobuf": "protobuf", "application/json": "json"}
_KINDS: Final[Mapping[Form, str]] = {form: kind for kind, form in _FORMS.items()}
_HTTP: Final[Mapping[Code, int]] = {
    Code.INVALID_ARGUMENT: 400,
    Code.UNAUTHENTICATED: 401,
    Code.PERMISSION_DENIED: 403,
    Code.NOT_FOUND: 404,
    Code.UNIMPLEMENTED: 405,
    Code.RESOURCE_EXHAUSTED: 413,
    Code.INTERNAL: 500,
    Code.UNAVAILABLE: 503,
}
_UNAUTHORIZED, _UNSUPPORTED, _TOO_MANY = 401, 415, 429

AsgiScope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
AsgiApp = Callable[[AsgiScope, Receive, Send], Awaitable[None]]
_DRAINED: Final = 128 * 1024 * 1024
_DRAIN_SECONDS: Final = 5.0

Headers = Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    form: Form
    body: bytes
    headers: Headers = ()


@dataclass(slots=True)
class _Body:
    """The body of a request, piece by piece; ``ended`` when all of it was there, or nobody sends it any more.

    ``awaited`` says whether the rest is worth to wait for.
    """

    receive: Receive
    ended: bool = False
    awaited: bool = True

    async def next(self) -> bytes:
        """The next piece.

        Raises:
            _Gone: whoever sent it is gone.
        """
        message = await self.receive()
        self.ended = not message.get("more_body", False)
        if message["type"] == "http.disconnect":
            raise _Gone
        return bytes(message.get("body", b""))


class _Gone(Exception):
    """Whoever sent the request does not wait for the answer."""


class _Slow(Exception):
    """The body did not arrive in time."""


@dataclass(slots=True)
class _Reading:
    """How many bytes of bodies are in memory, of all requests; used by the event loop alone."""

    most: int
    held: int = 0


def receiver_app(receiver: Receiver, access: Access) -> AsgiApp:
    """The application for `PATHS`; other paths it answers with 404."""
    threads = ThreadPoolExecutor(SLOTS, "spanreel-intake")
    door = _Door(receiver, access, _Reading(receiver.reading), threads)

    async def app(scope: AsgiScope, receive: Receive, send: Send) -> None:  # a function, which servers know what to ask
        if scope["type"] == "http":
            await door.serve(scope, receive, send)

    return app


@dataclass(frozen=True, slots=True)
class _Door:
    receiver: Receiver
    access: Access
    reading: _Reading
    threads: ThreadPoolExecutor

    async def serve(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        signal = PATHS.get(scope["path"])
        headers = _headers(scope)
        form = _form(headers)
        body = _Body(receive)
        try:
            answer = await self._answer(scope, headers, (signal, form), body)
        except _Gone:
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, it is answered, by what it is
            answer = _refuse(error, form or "json")
        if answer.status != 200:
            self.receiver.counts.add("requests", signal or "none", str(answer.status))
        await _send(send, answer, body)

    async def _answer(
        self, scope: AsgiScope, headers: Mapping[str, str], asked: tuple[Signal | None, Form | None], body: _Body
    ) -> _Answer:
        signal, form = asked
        caller = admit(self.access, headers, Scope.INGEST)
        if signal is None or (signal == "metrics" and not self.receiver.metrics):
            return _problem(Code.NOT_FOUND, f"nothing is received at {scope['path'][:100]!r}", form)
        if scope["method"] != "POST":
            allow = [(b"allow", b"POST")]
            return _problem(Code.UNIMPLEMENTED, f"{scope['method']} is not POST", form, headers=allow)
        if form is None:
            kind = headers.get("content-type", "")[:100]
            said = f"content type {kind!r} is neither {' nor '.join(_FORMS)}"
            return _problem(Code.INVALID_ARGUMENT, said, form, http=_UNSUPPORTED)
        held = [0]
        try:
            data = await self._read(headers, body, held)
            if signal == "metrics":
                return _Answer(200, form, write_response(signal, 0, "", form))
            arrived = Arrived(caller.tenant, "HTTP", signal, form, headers.get("content-encoding", ""), data)
            del data
            return await self._take(arrived)
        finally:
            self.reading.held -= held[0]

    async def _take(self, arrived: Arrived) -> _Answer:
        loop = asyncio.get_running_loop()
        accepted = await loop.run_in_executor(self.threads, accept, self.receiver, arrived)
        appended = None
        if accepted.done is not None:
            appended = await asyncio.wait_for(asyncio.wrap_future(accepted.done), self.receiver.commit_seconds)
        count(self.receiver, arrived.signal, accepted, appended)
        taken = accepted.taken
        return _Answer(200, arrived.form, write_response(arrived.signal, taken.rejected, taken.message, arrived.form))

    async def _read(self, headers: Mapping[str, str], body: _Body, held: list[int]) -> bytes:
        """The body as it was sent.

        Raises:
            TooLarge, QueueFull, _Slow, _Gone: it is not to be had.
        """
        limit = self.receiver.intake.limits.body
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length[:20]) > limit:
            raise TooLarge(f"{length[:20]} bytes; {limit} are taken")
        pieces: list[bytes] = []
        try:
            async with asyncio.timeout(self.receiver.body_seconds):
                while not body.ended:
                    piece = await body.next()
                    self._hold(len(piece), held)
                    if held[0] > limit:
                        raise TooLarge(f"more than {limit} bytes")
                    pieces.append(piece)
        except TimeoutError as error:
            body.awaited = False
            raise _Slow from error
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _hold(self, size: int, held: list[int]) -> None:
        if self.reading.held + size > self.reading.most:
            raise QueueFull("too many large requests at the same time")
        self.reading.held += size
        held[0] += size


def _headers(scope: AsgiScope) -> dict[str, str]:
    """The headers by name; those that come twice are one, with commas."""
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers


def _form(headers: Mapping[str, str]) -> Form | None:
    """How the body is written, by the content type, whatever its parameters."""
    return _FORMS.get(headers.get("content-type", "").partition(";")[0].strip().lower())


def _refuse(error: Exception, form: Form) -> _Answer:
    if isinstance(error, UnknownEncoding):
        accepts = [(b"accept-encoding", ENCODINGS.encode())]
        return _problem(Code.INVALID_ARGUMENT, str(error), form, http=_UNSUPPORTED, headers=accepts)
    if isinstance(error, Denied) and error.status == _UNAUTHORIZED:
        return _write(status_of(error), form, headers=[(b"www-authenticate", b'Bearer realm="spanreel"')])
    if isinstance(error, TooOften):
        return _write(status_of(error), form, http=_TOO_MANY)
    if isinstance(error, _Slow):
        # What is slow today may be sent again; 408 would have it thrown away.
        return _write(Status(Code.UNAVAILABLE, "the body did not arrive in time", retry=1), form)
    return _write(status_of(error), form)


def _problem(code: Code, message: str, form: Form | None, *, http: int | None = None, headers: Headers = ()) -> _Answer:
    return _write(Status(code, message), form or "json", http=http, headers=headers)


def _write(status: Status, form: Form, *, headers: Headers = (), http: int | None = None) -> _Answer:
    http = http or _HTTP[status.code]
    if status.retry is not None:
        headers = [*headers, (b"retry-after", str(status.retry).encode())]
    return _Answer(http, form, write_status(status, form), headers)


async def _send(send: Send, answer: _Answer, body: _Body) -> None:
    headers = [
        (b"content-type", _KINDS[answer.form].encode()),
        (b"content-length", str(len(answer.body)).encode()),
        *answer.headers,
        *([] if body.ended else [(b"connection", b"close")]),
    ]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    draining = body.awaited and not body.ended
    await send({"type": "http.response.body", "body": answer.body, "more_body": draining})
    if draining:
        # A connection that is closed while something still comes takes the answer with it.
        await _drain(body)
        await send({"type": "http.response.body"})


async def _drain(body: _Body) -> None:
    """Let pass what else comes of a body, within bounds."""
    left = _DRAINED
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            while left > 0 and not body.ended:
                left -= len(await body.next())
    except (TimeoutError, _Gone):
        return
