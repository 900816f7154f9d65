"""Body streams that pass through, with a tap beside them that hears of every piece and of the end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from time import monotonic_ns
from typing import Any, Protocol

import wrapt

from spanreel.quiet import quietly


class Tap(Protocol):
    """Who watches a stream; it may be told of several endings, of which the first counts.

    While there is room (in bytes), each piece is handed to ``keep`` behind the nanoseconds of `time.monotonic_ns`.
    """

    keep: Callable[[tuple[int, bytes]], object]
    room: int

    def drop(self, size: int) -> None:
        """Bytes have come for which there is no more room."""
        ...

    def closed(self) -> None:
        """The stream has ended, or its consumer has."""
        ...

    def failed(self, error: BaseException) -> None:
        """Reading raised."""
        ...


class SyncBody(wrapt.ObjectProxy):  # type: ignore[type-arg]  # generic to type checkers only
    """A body stream that tells a tap what passes. Being a proxy, it stays an instance of the client's class."""

    stream_observer: Any = None  # Anthropic's SDK asks for it at each event, and what a proxy lacks is dear to ask for

    def __init__(self, stream: Any, tap: Tap) -> None:
        super().__init__(stream)
        self._self_tap = tap
        if (observer := getattr(stream, "stream_observer", None)) is not None:
            self.stream_observer = observer

    def __iter__(self) -> Iterator[bytes]:
        return pieces(self.__wrapped__, self._self_tap)

    def close(self) -> None:
        """Close the stream, then say so."""
        try:
            self.__wrapped__.close()
        finally:
            self._self_tap.closed()

    def __del__(self) -> None:
        abandon(self)


class AsyncBody(wrapt.ObjectProxy):  # type: ignore[type-arg]  # generic to type checkers only
    """`SyncBody` for asynchronous clients."""

    stream_observer: Any = None  # Anthropic's SDK asks for it at each event, and what a proxy lacks is dear to ask for

    def __init__(self, stream: Any, tap: Tap) -> None:
        super().__init__(stream)
        self._self_tap = tap
        if (observer := getattr(stream, "stream_observer", None)) is not None:
            self.stream_observer = observer

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _AsyncPieces(aiter(self.__wrapped__), self._self_tap)

    async def aclose(self) -> None:
        """Close the stream, then say so."""
        try:
            await self.__wrapped__.aclose()
        finally:
            self._self_tap.closed()

    def __del__(self) -> None:
        abandon(self)


def pieces(body: Iterable[bytes], tap: Tap) -> Iterator[bytes]:
    """The pieces of a body. That the client reads no further says nothing: it closes the body where it has enough."""
    keep, room = tap.keep, tap.room
    try:
        for data in body:
            try:
                room -= len(data)
                if room >= 0:
                    keep((monotonic_ns(), data))
                else:
                    tap.drop(len(data))
            except Exception:  # `quietly`, where nothing is entered for a piece that passes well
                with quietly("keep a piece of a stream"):
                    raise
            yield data
    except GeneratorExit:
        raise
    except BaseException as error:
        tap.failed(error)
        raise
    tap.closed()


class _AsyncPieces:
    """`pieces` for asynchronous clients. No generator of ours: event loops close those that are left, in tasks."""

    __slots__ = ("_keep", "_next", "_room", "_tap")

    def __init__(self, pieces: AsyncIterator[bytes], tap: Tap) -> None:
        self._next, self._tap = pieces.__anext__, tap
        self._keep, self._room = tap.keep, tap.room

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            data = await self._next()
        except StopAsyncIteration:
            self._tap.closed()
            raise
        except BaseException as error:
            self._tap.failed(error)
            raise
        try:
            self._room = room = self._room - len(data)
            if room >= 0:
                self._keep((monotonic_ns(), data))
            else:
                self._tap.drop(len(data))
        except Exception:  # `quietly`, where nothing is entered for a piece that passes well
            with quietly("keep a piece of a stream"):
                raise
        return data


def abandon(body: Any) -> None:
    """A body is given up without having been closed."""
    try:
        tap = body._self_tap  # noqa: SLF001 - wrapt's name for a proxy's own state
    except (AttributeError, ValueError):  # the constructor of the proxy did not finish
        return
    tap.closed()
