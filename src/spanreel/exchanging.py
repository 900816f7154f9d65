"""A client's `send`, taken through its crossing: recognised, kept as it passes, or answered by a replay.

Holds the process-wide set of streams that are being read, so that the program's end is theirs too.
"""

from __future__ import annotations

import atexit
import functools
import os
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Final

from opentelemetry.context import Context

from spanreel import boundary as boundaries
from spanreel import contexts
from spanreel.bodies import AsyncBody, SyncBody, Tap
from spanreel.boundary import model_calls
from spanreel.capture import ExchangeCapture, http_error
from spanreel.contexts import SUPPRESS, Attached
from spanreel.crossing import Crossing
from spanreel.exchange import BodyKind, ClientPoint, HttpAnswer, HttpRequest, ModelProtocol
from spanreel.model import Error, Operation
from spanreel.player import LiveRun, Player
from spanreel.playing import current_player
from spanreel.point import BrokenOff
from spanreel.protocols import is_exchange
from spanreel.quiet import quietly
from spanreel.readers import AsyncReader, FileBody
from spanreel.scope import BUSY_KEY
from spanreel.start_attributes import other_instrumentation


def send(client: ClientPoint, wrapped: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A synchronous `send`."""
    exchange = open_exchange(client, wrapped, args, kwargs)
    if exchange is None:
        return wrapped(*args, **kwargs)
    crossing = exchange.crossing
    with Attached(crossing.context):
        try:
            if exchange.player is None:
                response = exchange.send(wrapped, args, kwargs)
            else:
                response = exchange.play(exchange.player, wrapped, args, kwargs)
        except BaseException as error:
            exchange.fail(error)
            raise
    exchange.watch(response)
    return response


async def send_async(client: ClientPoint, wrapped: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An asynchronous `send`."""
    exchange = open_exchange(client, wrapped, args, kwargs)
    if exchange is None:
        return await wrapped(*args, **kwargs)
    crossing = exchange.crossing
    with Attached(crossing.context):
        try:
            if exchange.player is None:
                response = await exchange.send(wrapped, args, kwargs)
            else:
                response = await exchange.play_async(exchange.player, wrapped, args, kwargs)
        except BaseException as error:
            exchange.fail(error)
            raise
    exchange.watch(response)
    return response


def open_exchange(
    client: ClientPoint, wrapped: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> ExchangeTap | None:
    """Open the crossing of a model request; None, at the price of a look at method and path, for all other HTTP."""
    boundary = boundaries.installed()
    if boundary is None:
        return None
    exchange, found = None, None
    player: Player | None = None
    try:
        arguments = client.bind(wrapped, args, kwargs)
        method, path = client.peek(arguments)
        found = boundary.recognise(path) if method == "POST" else None
    except Exception:
        with quietly("recognise an HTTP request"):
            raise
    if found is None:
        return None
    context = contexts.current()
    if BUSY_KEY in context:
        return None
    player = current_player()
    if player is None and (not boundary.records or _is_unwanted(context)):
        return None
    try:
        request = client.read_request(arguments)
        protocol, operation = found
        if request is not None and not is_exchange(operation, request.body, protocol):
            return None
        if request is not None:
            opened = model_calls.open_exchange(boundary, client.decode, protocol, operation, request, player)
            if opened is None:
                return None
            crossing, capture, live = opened
            exchange = ExchangeTap(client, protocol, operation, request, arguments, crossing, capture, live, player)
    except Exception:
        with quietly("open a model call"):
            raise
    if exchange is None and player is not None:
        player.refuse(f"a model request to {path} whose body is a stream")
    return exchange


def _is_unwanted(context: Context) -> bool:
    """Whether the program wants no spans here.

    Logfire suppresses what is below its own span of a model call, so that it has no second one: that is not for us.
    """
    suppressed = SUPPRESS in context and bool(context[SUPPRESS])
    return suppressed and other_instrumentation(context) is None


class ExchangeTap:
    """A model request under way: the tap that its response passes."""

    given: Mapping[str, Any] | None = None
    """What is sent in the place of what the program asked to send."""
    broken_off: BrokenOff | None = None
    """The call was broken off before an answer came when it was recorded."""
    _error: Error | None = None
    _ended = False
    _watched = False

    def __init__(  # noqa: PLR0913 - what one exchange is made of
        self,
        client: ClientPoint,
        protocol: ModelProtocol,
        operation: Operation,
        request: HttpRequest,
        arguments: Mapping[str, Any],
        crossing: Crossing,
        capture: ExchangeCapture,
        live: LiveRun | None,
        player: Player | None,
    ) -> None:
        self.client = client
        self.protocol = protocol
        self.operation = operation
        self.request = request
        self.arguments = arguments
        self.crossing = crossing
        self.capture = capture
        self.live = live
        self.player = player
        capture.started = time.monotonic_ns()
        self.keep: Callable[[tuple[int, bytes]], object] = capture.pieces.extend
        self.room = capture.limit

    def send(self, wrapped: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the client's own `send`, with what a replay gives in the place of what the program asked to send."""
        given = self.given
        if self.client.expose is not None:
            given = self.client.expose(given or self.arguments, self.watch) or given
        if given is None:
            return wrapped(*args, **kwargs)
        return wrapped(**{name: value for name, value in given.items() if name != "self"})

    def play(self, player: Player, wrapped: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The response that a replay gives, or the model's own, where it lets that be asked."""
        response = self._answer(player)
        if self.broken_off is not None:
            self.broken_off.give_up()
        if response is None:
            with self.crossing.opened():
                return self.send(wrapped, args, kwargs)
        self.client.settle(self.arguments, response)
        return response

    async def play_async(self, player: Player, wrapped: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`play` for asynchronous clients."""
        response = self._answer(player)
        if self.broken_off is not None:
            await self.broken_off.wait()
        if response is None:
            with self.crossing.opened():
                return await self.send(wrapped, args, kwargs)
        await self.client.settle(self.arguments, response)
        return response

    def _answer(self, player: Player) -> Any:
        """The response that a replay gives, unread; None where it lets the model be asked."""
        try:
            answer = player.answer_model(self.live, self.protocol, self.operation, self.request)
        except Exception as error:
            _name_request(error, self.arguments.get("request"))
            raise
        if isinstance(answer, HttpAnswer):
            if not answer.pieces:
                self.broken_off = answer.broken_off
            return self.client.build(self.arguments, answer)
        if answer is not self.request:
            self.capture.request = answer
            self.given = self.client.rewrite(self.arguments, answer)
        self._tell_live(player)
        return None

    def _tell_live(self, player: Player) -> None:
        """Let the replay hear of the end of what it has let through."""
        told = self.crossing.told

        def tell(result: Any, error: BaseException | None) -> None:
            if told is not None:
                told(result, error)
            player.hear_model(self.live, lambda: self.capture.record().answer)

        self.crossing.told = tell

    def watch(self, response: Any) -> None:
        """The response is here: keep its body if it has been read, else tap the stream that is to come."""
        if self._watched:
            return
        self._watched = True
        try:
            client, capture = self.client, self.capture
            capture.status, capture.headers = client.read_status(response), client.read_headers(response)
            if capture.status >= 400:
                self._error = http_error(capture.status)
            capture.body = client.read_body(response)
            if capture.body is None:
                proxy = _PROXIES[client.body]
                client.pass_body(response, lambda stream: proxy(stream, self))
                _unread.add(self)
                _end_at_exit()
                return
            capture.body_at = time.monotonic_ns()
        except Exception:
            with quietly("keep a model's answer"):
                raise
        self.closed()

    def fail(self, error: BaseException) -> None:
        """The `send` raised. What a hook of the program's raised for a response has that with it."""
        response = getattr(error, "response", None)
        if not self._watched and isinstance(getattr(response, "status_code", None), int):
            with quietly("keep the answer that was raised for"):
                self._keep_raised(response)
        self.crossing.fail(error)

    def _keep_raised(self, response: Any) -> None:
        """Its status says more than the exception; what nobody has read of it by now, nobody will."""
        client, capture = self.client, self.capture
        if (status := client.read_status(response)) >= 400:
            capture.status, capture.headers = status, client.read_headers(response)
            capture.body = client.read_body(response) or b""

    def drop(self, size: int) -> None:
        """So many bytes of the body came when there was no more room."""
        if not self._ended:
            self.capture.dropped += size

    def closed(self) -> None:
        """The body has ended, or its reader has."""
        self._end()
        self.crossing.finish(None, error=self._error)

    def failed(self, error: BaseException) -> None:
        """Reading the body raised."""
        self._end()
        self.crossing.fail(error)

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            if self.capture.pieces:
                self.capture.pieces = self.capture.pieces[:]  # what a client drains again after the end is none of it
            if self.capture.body is None:
                _unread.discard(self)


def _name_request(error: Exception, request: object) -> None:
    """Exceptions of HTTP clients name their request; one that was made again has it too, where it had one."""
    try:
        lacking = error.request is None  # type: ignore[attr-defined]  # which most have not
    except AttributeError:
        return
    except RuntimeError:  # what httpx says where there is none yet
        lacking = True
    if lacking and request is not None:
        error.request = request  # type: ignore[attr-defined]


_PROXIES: Final[Mapping[BodyKind, Callable[[Any, Tap], Any]]] = {
    BodyKind.ITERATOR: SyncBody,
    BodyKind.ASYNC_ITERATOR: AsyncBody,
    BodyKind.ASYNC_READER: AsyncReader,
    BodyKind.FILE: FileBody,
}
_unread: weakref.WeakSet[ExchangeTap] = weakref.WeakSet()


@functools.cache
def _end_at_exit() -> None:
    """Registered with the first stream: what is registered last is called first, before the export shuts down."""
    atexit.register(_end_unread)


def _end_unread() -> None:
    """At the program's end: streams that nobody read to their end, and that garbage collection has not come to."""
    for exchange in list(_unread):
        exchange.closed()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unread.clear)  # those are the parent's to end
