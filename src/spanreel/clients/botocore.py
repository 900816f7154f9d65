"""botocore, which sends Bedrock's requests and those to all other services. Owns reading requests, making responses."""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn

from spanreel.clients.pacing import paced
from spanreel.clients.prepared import peek, read_request
from spanreel.exchange import BodyKind, ClientPoint, HttpAnswer, HttpRequest


def bind(_wrapped: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments by name."""
    return {"request": args[0]} if args else kwargs


def pass_body(response: Any, wrap: Callable[[Any], Any]) -> None:
    """Let ``wrap`` stand between the connection's stream and the response."""
    passed = wrap(_Stream(response.raw))
    response.raw = Raw(passed, passed.close, response.raw)


def build(arguments: Mapping[str, Any], answer: HttpAnswer) -> Any:
    """The response that the session would have returned, with no connection behind it."""
    awsrequest = importlib.import_module("botocore.awsrequest")
    return awsrequest.AWSResponse(arguments["request"].url, answer.status, dict(answer.headers), Raw(paced(answer)))


def settle(arguments: Mapping[str, Any], response: Any) -> None:
    """Read the response where it is not to be read by the program."""
    if not arguments["request"].stream_output:
        _ = response.content


def rewrite(arguments: Mapping[str, Any], _request: HttpRequest) -> NoReturn:
    """A request that was signed cannot be another."""
    raise ValueError(f"a request to {arguments['request'].url} is signed: it cannot be sent changed in a replay")


class Raw(io.RawIOBase):
    """A body that is read by the methods of files and of urllib3's responses; else it is as ``original``."""

    def __init__(
        self, pieces: Iterable[bytes], close: Callable[[], None] | None = None, original: object = None
    ) -> None:
        super().__init__()
        self._pieces = pieces
        self._iterator: Iterator[bytes] | None = None
        self._close = close
        self._original = original
        self._rest = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_original"], name)

    def readable(self) -> bool:
        """It is."""
        return True

    def stream(self, amt: int | None = None, decode_content: bool | None = None) -> Iterator[bytes]:
        """What there is, as it comes."""
        while piece := self._next():
            yield piece

    def read(self, amt: int | None = None, *_: Any, **__: Any) -> bytes:
        """So many bytes, fewer at the end only; all where nothing is said."""
        parts, wanted = [], -1 if amt is None else amt
        while wanted and (piece := self._next()):
            if 0 <= wanted < len(piece):
                piece, self._rest = piece[:wanted], piece[wanted:]
            parts.append(piece)
            wanted -= len(piece) if wanted > 0 else 0
        return b"".join(parts)

    def readinto(self, buffer: Any) -> int:
        """Into a buffer, as much as it takes."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close what it reads from."""
        if not self.closed and self._close is not None:
            self._close()
        super().close()

    def _next(self) -> bytes:
        if self._rest:
            piece, self._rest = self._rest, b""
            return piece
        if self._iterator is None:
            self._iterator = iter(self._pieces)
        return next((piece for piece in self._iterator if piece), b"")


class _Stream:
    """A response of urllib3's as a stream of pieces."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def __iter__(self) -> Iterator[bytes]:
        pieces: Iterator[bytes] = self._raw.stream()
        return pieces

    def close(self) -> None:
        """Close the connection's stream."""
        self._raw.close()


BOTOCORE = (
    ClientPoint(
        target="botocore.httpsession:URLLib3Session.send",
        library="botocore",
        is_async=False,
        body=BodyKind.ITERATOR,
        bind=bind,
        peek=peek,
        read_request=read_request,
        read_status=lambda response: int(response.status_code),
        read_headers=lambda response: response.headers,
        read_body=lambda response: response._content,  # noqa: SLF001 - reading it would be the caller's wait
        pass_body=pass_body,
        build=build,
        settle=settle,
        rewrite=rewrite,
    ),
)
