"""What an exchange is: a request and its answer over HTTP, how a protocol writes them, and where a client sends them.

Clients and protocols are tables of these; they import this module, `point` and `model`, and nothing else of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from spanreel import frozen
from spanreel.model import Answer, Operation, Request
from spanreel.point import BrokenOff

Piece = tuple[float, bytes]
"""Bytes of a response body, decoded, with the milliseconds between the request and their arrival."""


@frozen.dataclass(frozen=True, slots=True)
class HttpRequest:
    """An HTTP request as a client is about to send it. ``path`` is without the query.

    ``url`` may be the client's own, which nobody can change: ``str`` makes the text of it, where somebody wants that.
    """

    method: str
    url: object
    host: str
    path: str
    body: bytes
    port: int | None = None


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An HTTP answer that a replay gives: ``pieces`` carry the body, each with the milliseconds from the start.

    Where the call was ``broken_off``, nothing more comes after the pieces; without any, there is no answer at all.
    Where the connection broke, ``failure`` is raised behind the pieces of a stream.
    """

    status: int
    headers: Mapping[str, str]
    pieces: Sequence[Piece]
    broken_off: BrokenOff | None = None
    failure: Exception | None = None

    @property
    def body(self) -> bytes:
        """The whole body."""
        return b"".join(piece for _, piece in self.pieces)


class Speech(Protocol):
    """How exchanges are read and written. Pure, no I/O.

    What is read and written again is the same exchange: ``read_request(write_request(r)) == r``, and likewise for
    answers. Reading never raises on unknown fields (they are kept in ``provider_fields``); on what is not of the form
    at all it raises ValueError saying what and where.
    """

    def read_request(self, body: bytes, operation: Operation) -> Request:
        """Read a request body."""
        ...

    def write_request(self, request: Request) -> bytes:
        """Write a request body."""
        ...

    def read_response(self, body: bytes, status: int) -> Answer:
        """Read a plain (not streamed) response body, errors (status from 400 on) included."""
        ...

    def write_response(self, answer: Answer) -> bytes:
        """Write a plain response body, errors included."""
        ...

    def join(self, pieces: Sequence[Piece]) -> Answer:
        """Read a streamed body, whole or cut off, into the answer it amounts to."""
        ...

    def split(self, answer: Answer) -> list[Piece]:
        """Write an answer as a stream: cut as its ``chunks`` say, or as the provider would where it has none."""
        ...


class ModelProtocol(Speech, Protocol):
    """How a provider writes exchanges, and where; each module in `spanreel.protocols` has these names."""

    NAME: str
    """The protocol's name, as recorded (``openai_chat``)."""
    PROVIDER: str
    """The provider's name by the GenAI conventions, where the host does not say otherwise."""
    PATHS: Mapping[str, Operation]
    """Ends of URL paths that carry this protocol by POST, and what they ask for."""
    STREAM_TYPE: str
    """The content type of a streamed answer."""


class BodyKind(StrEnum):
    """How a client reads the body of a response."""

    ITERATOR = "iterator"
    ASYNC_ITERATOR = "async_iterator"
    ASYNC_READER = "async_reader"
    """By the methods of asyncio's stream readers: ``read``, ``readline``, ``iter_any``, ..."""
    FILE = "file"
    """By the methods of files and of urllib3's responses: ``read``, ``readinto``, ``stream``, ..."""


def _as_they_are(_headers: Mapping[str, str], pieces: Sequence[Piece]) -> list[Piece]:
    return list(pieces)


@dataclass(frozen=True, slots=True)
class ClientPoint:
    """One HTTP client's `send`: where exchanges are caught.

    ``bind(wrapped, args, kwargs)`` gives a call's arguments by name, as the other functions get them.
    ``read_request(arguments)`` gives the request with its body, or None where the body is not in memory;
    ``peek(arguments)`` gives (method, path) cheaply. ``read_body(response)`` gives the body where it has already been
    read and decoded, else None. ``pass_body(response, wrap)`` puts ``wrap(stream)`` in the place of the body stream
    that is still to come. ``decode(headers, pieces)`` undoes the content encoding, piece by piece, where the
    client has not. ``build(arguments, answer)`` makes the native response of a replay, and
    ``settle(arguments, response)`` does with it what the client does before it returns one;
    ``rewrite(arguments, request)`` gives the arguments that send this request's body to its URL in the place of their
    own. ``expose(arguments, see)`` is for clients that may raise for a
    response inside their `send`: it gives the arguments with which the client shows it to ``see`` first, or None where
    it raises for none.
    """

    target: str
    library: str
    is_async: bool
    body: BodyKind
    bind: Callable[[Any, tuple[Any, ...], Mapping[str, Any]], Mapping[str, Any]]
    peek: Callable[[Mapping[str, Any]], tuple[str, str]]
    read_request: Callable[[Mapping[str, Any]], HttpRequest | None]
    read_status: Callable[[Any], int]
    read_headers: Callable[[Any], Mapping[str, str]]
    read_body: Callable[[Any], bytes | None]
    pass_body: Callable[[Any, Callable[[Any], Any]], None]
    build: Callable[[Mapping[str, Any], HttpAnswer], Any]
    settle: Callable[[Mapping[str, Any], Any], Any]
    rewrite: Callable[[Mapping[str, Any], HttpRequest], Mapping[str, Any]]
    decode: Callable[[Mapping[str, str], Sequence[Piece]], list[Piece]] = _as_they_are
    expose: Callable[[Mapping[str, Any], Callable[[Any], None]], Mapping[str, Any] | None] | None = None
