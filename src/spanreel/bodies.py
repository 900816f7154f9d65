"""Body streams that pass through, with a tap beside them that hears of every piece and of the end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from functools import partial
from time import monotonic_ns
from typing import Any, Protocol

import wrapt

from spanreel.quiet import quietly


class Tap(Protocol):
    """Who watches a stream; each ending is told once at most matters, the first counts.

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
        return _pieces(self.__wrapped__, self._self_tap)

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
        _abandon(self)


class AsyncReader(wrapt.ObjectProxy):  # type: ignore[type-arg]  # generic to type checkers only
    """A body's stream reader, as those of asyncio and aiohttp, that tells a tap what is read from it."""

    def __init__(self, reader: Any, tap: Tap) -> None:
        super().__init__(reader)
        self._self_tap = tap
        self._self_room = tap.room

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _Reads(self.readline)

    def iter_any(self) -> AsyncIterator[bytes]:
        """What there is, as it comes."""
        return _Reads(self.readany)

    def iter_chunked(self, n: int) -> AsyncIterator[bytes]:
        """Pieces of so many bytes at most."""
        return _Reads(partial(self.read, n))

    def iter_chunks(self) -> AsyncIterator[tuple[bytes, bool]]:
        """What there is, with whether a chunk of HTTP ends there."""
        return _Reads(self.readchunk)

    async def read(self, *args: Any, **kwargs: Any) -> bytes:
        """As the reader does; likewise the others."""
        return self._self_note(await self._self_read(self.__wrapped__.read(*args, **kwargs)))

    async def readany(self) -> bytes:
        """What there is."""
        return self._self_note(await self._self_read(self.__wrapped__.readany()))

    async def readexactly(self, n: int) -> bytes:
        """So many bytes."""
        return self._self_note(await self._self_read(self.__wrapped__.readexactly(n)))

    async def readline(self, **kwargs: Any) -> bytes:
        """A line with its end."""
        return self._self_note(await self._self_read(self.__wrapped__.readline(**kwargs)))

    async def readuntil(self, *args: Any, **kwargs: Any) -> bytes:
        """Up to a separator, and with it."""
        return self._self_note(await self._self_read(self.__wrapped__.readuntil(*args, **kwargs)))

    async def readchunk(self) -> tuple[bytes, bool]:
        """What there is, with whether a chunk of HTTP ends there."""
        data, ends = await self._self_read(self.__wrapped__.readchunk())
        return self._self_note(data), ends

    def read_nowait(self, *args: Any) -> bytes:
        """What there is already."""
        return self._self_note(self.__wrapped__.read_nowait(*args))

    def set_exception(self, *args: Any) -> None:
        """The response is closed, or given back: whoever reads on is told so."""
        self.__wrapped__.set_exception(*args)
        self._self_tap.closed()

    async def _self_read(self, reading: Awaitable[Any]) -> Any:
        try:
            return await reading
        except BaseException as error:
            self._self_tap.failed(error)
            raise

    def _self_note(self, data: bytes) -> bytes:
        with quietly("keep what was read of a body"):
            if data:
                self._self_room -= len(data)
                if self._self_room >= 0:
                    self._self_tap.keep((monotonic_ns(), data))
                else:
                    self._self_tap.drop(len(data))
            if self.__wrapped__.at_eof():
                self._self_tap.closed()
        return data

    def __del__(self) -> None:
        _abandon(self)


class _Reads:
    """One read after the other, until nothing comes."""

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[], Awaitable[Any]]) -> None:
        self._read = read

    def __aiter__(self) -> _Reads:
        return self

    async def __anext__(self) -> Any:
        data = await self._read()
        if data in (b"", (b"", False)):
            raise StopAsyncIteration
        return data


def _pieces(body: Iterable[bytes], tap: Tap) -> Iterator[bytes]:
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
    """`_pieces` for asynchronous clients. No generator of ours: event loops close those that are left, in tasks."""

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


def _abandon(body: Any) -> None:
    try:
        tap = body._self_tap  # noqa: SLF001 - wrapt's name for a proxy's own state
    except (AttributeError, ValueError):  # the constructor of the proxy did not finish
        return
    tap.closed()
