"""Sessions that are made or changed, told at once to those who listen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

_WAITING = 1000
"""Events that wait for a listener that does not take them; more are dropped, and it is told to look for itself."""
_SIGN_OF_LIFE = 15.0


@dataclass(eq=False, slots=True)
class _Listener:
    tenant: str
    queue: asyncio.Queue[bytes]
    missed: bool = False


@dataclass(eq=False, slots=True)
class Events:
    """Who listens. `publish` may be called from any thread, before there is a loop too."""

    _listeners: set[_Listener] = field(default_factory=set)
    _loop: asyncio.AbstractEventLoop | None = None
    _closed: asyncio.Event | None = None

    def open(self) -> None:
        """Belong to the loop that is running."""
        self._loop = asyncio.get_running_loop()
        self._closed = asyncio.Event()

    def close(self) -> None:
        """Let all who listen go. To be called in the loop."""
        if self._closed is not None:
            self._closed.set()

    def publish(self, tenant: str, session: str, revision: int) -> None:
        """Tell of a session."""
        loop = self._loop
        if loop is None or not self._listeners:
            return
        data = json.dumps({"id": session, "revision": revision})
        try:
            loop.call_soon_threadsafe(self._tell, tenant, f"event: session\ndata: {data}\n\n".encode())
        except RuntimeError:
            pass  # the loop has ended: nobody listens any more

    def _tell(self, tenant: str, event: bytes) -> None:
        for listener in self._listeners:
            if listener.tenant == tenant:
                try:
                    listener.queue.put_nowait(event)
                except asyncio.QueueFull:
                    listener.missed = True

    async def listen(self, tenant: str) -> AsyncIterator[bytes]:
        """Server-sent events for one tenant, with a comment now and then so that proxies keep the connection."""
        listener = _Listener(tenant, asyncio.Queue(_WAITING))
        self._listeners.add(listener)
        closed = self._closed or asyncio.Event()
        over = asyncio.ensure_future(closed.wait())
        taking: asyncio.Future[bytes] | None = None
        try:
            yield b": listening\n\n"
            while not closed.is_set():
                taking = asyncio.ensure_future(listener.queue.get())
                done, _ = await asyncio.wait((taking, over), timeout=_SIGN_OF_LIFE, return_when=asyncio.FIRST_COMPLETED)
                if taking in done:
                    yield taking.result()
                else:
                    taking.cancel()
                    yield b": still here\n\n"
                if listener.missed and listener.queue.empty():
                    listener.missed = False
                    yield b"event: missed\ndata: {}\n\n"
        finally:
            over.cancel()
            if taking is not None:
                taking.cancel()
            self._listeners.discard(listener)
