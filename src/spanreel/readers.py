"""Bodies that are read as files are, rather than gone through piece by piece: likewise with a tap beside them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from time import monotonic_ns
from typing import Any

import wrapt

from spanreel.bodies import Tap, abandon, pieces
from spanreel.quiet import quietly


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
        abandon(self)


class FileBody(wrapt.ObjectProxy):  # type: ignore[type-arg]  # generic to type checkers only
    """A response of urllib3's, which is read as files are, that tells a tap what is read from it."""

    def __init__(self, response: Any, tap: Tap) -> None:
        super().__init__(response)
        self._self_tap = tap
        self._self_room = tap.room

    def __iter__(self) -> Iterator[bytes]:
        return self._self_passing(iter(self.__wrapped__))

    def stream(self, *args: Any, **kwargs: Any) -> Iterator[bytes]:
        """What there is, as it comes; likewise the others as the response does."""
        return self._self_passing(self.__wrapped__.stream(*args, **kwargs))

    def read_chunked(self, *args: Any, **kwargs: Any) -> Iterator[bytes]:
        """What there is, chunk by chunk of HTTP."""
        return self._self_passing(self.__wrapped__.read_chunked(*args, **kwargs))

    def read(self, *args: Any, **kwargs: Any) -> bytes:
        """So many bytes."""
        return self._self_read(self.__wrapped__.read, args, kwargs)

    def read1(self, *args: Any, **kwargs: Any) -> bytes:
        """What one read gives."""
        return self._self_read(self.__wrapped__.read1, args, kwargs)

    def readline(self, *args: Any, **kwargs: Any) -> bytes:
        """A line with its end."""
        return self._self_read(self.__wrapped__.readline, args, kwargs)

    def readinto(self, buffer: Any) -> int:
        """Into a buffer, as much as it takes."""
        size: int = self._self_tapped(self.__wrapped__.readinto, (buffer,), {})
        self._self_note(bytes(buffer[:size]), whole=size == 0 and len(buffer) > 0)
        return size

    def close(self) -> None:
        """Close the response, then say so."""
        try:
            self.__wrapped__.close()
        finally:
            self._self_tap.closed()

    def __exit__(self, *raised: object) -> Any:
        try:
            return self.__wrapped__.__exit__(*raised)
        finally:
            self._self_tap.closed()

    def _self_passing(self, passing: Iterator[bytes]) -> Iterator[bytes]:
        return pieces(passing, self._self_tap)

    def _self_read(self, read: Callable[..., bytes], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        data: bytes = self._self_tapped(read, args, kwargs)
        amount = args[0] if args else kwargs.get("amt")
        self._self_note(data, whole=amount is None or amount < 0 or (not data and amount > 0))
        return data

    def _self_tapped(self, read: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            return read(*args, **kwargs)
        except BaseException as error:
            self._self_tap.failed(error)
            raise

    def _self_note(self, data: bytes, *, whole: bool) -> None:
        with quietly("keep what was read of a body"):
            self._self_room -= len(data)
            if data and self._self_room >= 0:
                self._self_tap.keep((monotonic_ns(), data))
            elif data:
                self._self_tap.drop(len(data))
            if whole:
                self._self_tap.closed()

    def __del__(self) -> None:
        abandon(self)


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
