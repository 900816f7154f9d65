"""Connections of HTTP, bounded: how many there are, how long a head may be, and how long it may take.

uvicorn's parser gathers a head as long as it comes, waits for it for ever, and takes every connection.
"""

from __future__ import annotations

import asyncio
import resource
from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

LONGEST_HEAD: Final = 512 * 1024
"""More than is read from a connection at once, so that what came before in the same piece does not count much."""
HEAD_SECONDS: Final = 20.0
"""For the head of a request to arrive, from its first byte, or from the beginning of the connection."""
_OTHERS: Final = 256
"""File descriptors that the process needs beside those of connections."""


def bounded_connections(most: int) -> type[BoundedConnections]:
    """The protocol for so many connections at a time, or for as many as there can be file descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < most + _OTHERS:
        soft = min(most + _OTHERS, hard) if hard != resource.RLIM_INFINITY else most + _OTHERS
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    room = max(1, min(most, soft - _OTHERS))
    return type("Connections", (BoundedConnections,), {"most": room})


class BoundedConnections(HttpToolsProtocol):
    """uvicorn's protocol, which lets go of those who send no request."""

    most = 1_000
    head_seconds = HEAD_SECONDS
    _heading = False
    _head = 0
    since = 0.0
    _ended = False
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """A connection begins; where there are too many, one that is idle makes room for it."""
        super().connection_made(transport)
        self.since = self.loop.time()
        self._await_head()
        if len(self.connections) > self.most:
            others = [one for one in self.connections if isinstance(one, BoundedConnections) and one is not self]
            idle = min((one for one in others if one.is_idle()), key=lambda one: one.since, default=self)
            idle.transport.abort()
            self.connections.discard(idle)

    def connection_lost(self, exc: Exception | None) -> None:
        """It ends."""
        self._have_head()
        super().connection_lost(exc)

    def eof_received(self) -> bool | None:  # type: ignore[override]  # as asyncio has it
        """Whoever sends says that nothing more comes; what came whole is answered first."""
        cycle: RequestResponseCycle | None = self.cycle
        # Where TLS is, its own end says so, and nothing can be sent after it.
        if cycle is None or cycle.response_complete or cycle.more_body or self.scheme == "https":
            return None
        self._ended = True
        return True

    def on_response_complete(self) -> None:
        """An answer ends; the next request begins, where one waits."""
        super().on_response_complete()
        if self._ended and self.is_idle():
            self.transport.close()

    def is_idle(self) -> bool:
        """Whether no request of it is being answered."""
        cycle: RequestResponseCycle | None = self.cycle  # None until the first, whatever it is said to be
        return cycle is None or cycle.response_complete

    def data_received(self, data: bytes) -> None:
        """Take what came; once too much of a head did, answer and close."""
        self.since = self.loop.time()
        super().data_received(data)
        if self._heading:
            self._head += len(data)
            if self._head > LONGEST_HEAD and not self.transport.is_closing():
                self.send_400_response("The head of the request is too long.")

    def on_message_begin(self) -> None:
        """A head begins."""
        self._heading, self._head = True, 0
        self._await_head()
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; what follows a body in the place of one is none, or it would say who sends, and from where."""
        if self._heading:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """It ends."""
        self._heading = False
        self._have_head()
        super().on_headers_complete()

    def _await_head(self) -> None:
        self._have_head()
        self._timer = self.loop.call_later(self.head_seconds, self._give_up)

    def _have_head(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        # No answer: what it would be to is not there, and exporters send again what got none.
        self.transport.abort()
