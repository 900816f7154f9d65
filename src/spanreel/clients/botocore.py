"""botocore, which sends Bedrock's requests and those to all other services. Owns reading requests, making responses."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn

from spanreel.clients.file_body import PieceFile
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


class Raw(PieceFile):
    """A body that is read as files are; else it is as ``original``."""

    def __init__(
        self, pieces: Iterable[bytes], close: Callable[[], None] | None = None, original: object = None
    ) -> None:
        super().__init__(pieces)
        self._close = close
        self._original = original

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_original"], name)

    def close(self) -> None:
        """Close what it reads from."""
        if not self.closed and self._close is not None:
            self._close()
        super().close()


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
