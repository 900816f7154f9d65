"""In-process transports for httpx and httpx2, which have the same interface under two names."""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spanreel.testing.provider import Reply

LIBRARIES = ("httpx", "httpx2")


def make_transport(library: str, reply: Callable[[str, str, Mapping[str, str], bytes], Reply]) -> Any:
    """A transport of ``library`` that answers by ``reply``, for sync and async clients.

    Raises:
        ValueError: another library; ImportError where it is not installed.
    """
    if library not in LIBRARIES:
        raise ValueError(f"no in-process transport for {library!r}; there are some for {', '.join(LIBRARIES)}")
    http: Any = importlib.import_module(library)

    class Pieces(http.SyncByteStream, http.AsyncByteStream):  # type: ignore[misc]  # the base is known at run time only
        """A body that can be read once, as those from a network: an SDK drains what it has read to the end."""

        def __init__(self, answer: Reply) -> None:
            self._hold = answer.hold / 1000
            self._left = iter(enumerate(answer.pieces))

        def __iter__(self) -> Iterator[bytes]:
            for number, piece in self._left:
                if number:
                    time.sleep(self._hold)
                yield piece

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for number, piece in self._left:
                if number:
                    await asyncio.sleep(self._hold)
                yield piece

    class Transport(http.BaseTransport, http.AsyncBaseTransport):  # type: ignore[misc]  # as above
        def handle_request(self, request: Any) -> Any:
            answer = _ask(request, request.read())
            time.sleep(answer.delay / 1000)
            return http.Response(answer.status, headers=dict(answer.headers), stream=Pieces(answer))

        async def handle_async_request(self, request: Any) -> Any:
            answer = _ask(request, await request.aread())
            await asyncio.sleep(answer.delay / 1000)
            return http.Response(answer.status, headers=dict(answer.headers), stream=Pieces(answer))

    def _ask(request: Any, body: bytes) -> Reply:
        headers = {name.lower(): value for name, value in request.headers.items()}
        return reply(request.method, request.url.path, headers, body)

    return Transport()
