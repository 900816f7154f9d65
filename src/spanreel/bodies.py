"""Body streams that pass through, with a tap beside them that hears of every piece and of the end."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import wrapt

from spanreel.quiet import quietly


class Tap(Protocol):
    """Who watches a stream; each ending is told once at most matters, the first counts."""

    def piece(self, at: float, data: bytes) -> None:
        """Bytes have come, so many milliseconds after the request."""
        ...

    def closed(self) -> None:
        """The stream has ended, or its consumer has."""
        ...

    def failed(self, error: BaseException) -> None:
        """Reading raised."""
        ...


class SyncBody(wrapt.ObjectProxy):  # type: ignore[type-arg]  # generic to type checkers only
    """A body stream that tells a tap what passes. Being a proxy, it stays an instance of the client's class."""

    def __init__(self, stream: Any, tap: Tap, started: int) -> None:
        super().__init__(stream)
        self._self_tap = tap
        self._self_started = started

    def __iter__(self) -> Iterator[bytes]:
        return _Pieces(iter(self.__wrapped__), self._self_tap, self._self_started)

    def close(self) -> None:
        """Close the stream, then say so."""
        try:
            self.__wrapped__.close()
        finally:
            self._self_tap.closed()

    def __del__(self) -> None:
        _abandon(self)


class AsyncBody(wrapt.ObjectProxy):  # type: ignore[type-arg]  # generic to type checkers only
    """`SyncBody` for asynchronous clients."""

    def __init__(self, stream: Any, tap: Tap, started: int) -> None:
        super().__init__(stream)
        self._self_tap = tap
        self._self_started = started

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _AsyncPieces(aiter(self.__wrapped__), self._self_tap, self._self_started)

    async def aclose(self) -> None:
        """Close the stream, then say so."""
        try:
            await self.__wrapped__.aclose()
        finally:
            self._self_tap.closed()

    def __del__(self) -> None:
        _abandon(self)


@dataclass(eq=False, slots=True)
class _Pieces:
    """The pieces of a body. No generator of ours: there is nothing to be closed but the client's own."""

    pieces: Iterator[bytes]
    tap: Tap
    started: int

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            data = next(self.pieces)
        except StopIteration:
            self.tap.closed()
            raise
        except BaseException as error:
            self.tap.failed(error)
            raise
        _tell(self.tap, self.started, data)
        return data


@dataclass(eq=False, slots=True)
class _AsyncPieces:
    """`_Pieces` for asynchronous clients."""

    pieces: AsyncIterator[bytes]
    tap: Tap
    started: int

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            data = await anext(self.pieces)
        except StopAsyncIteration:
            self.tap.closed()
            raise
        except BaseException as error:
            self.tap.failed(error)
            raise
        _tell(self.tap, self.started, data)
        return data


def _tell(tap: Tap, started: int, data: bytes) -> None:
    try:
        tap.piece((time.monotonic_ns() - started) / 1e6, data)
    except Exception:  # `quietly`, where nothing is entered for a piece that passes well
        with quietly("keep a piece of a stream"):
            raise


def _abandon(body: Any) -> None:
    try:
        tap = body._self_tap  # noqa: SLF001 - wrapt's name for a proxy's own state
    except (AttributeError, ValueError):  # the constructor of the proxy did not finish
        return
    tap.closed()
