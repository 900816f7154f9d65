"""Models that are not reached over HTTP: the canonical form itself, as JSON. No path carries it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import TypeAdapter

from spanreel.exchange import Piece
from spanreel.model import Answer, Operation, Request

NAME = "in_process"
PROVIDER = "in_process"
PATHS: Mapping[str, Operation] = {}
STREAM_TYPE = "application/json"


@cache
def _requests() -> TypeAdapter[Request]:
    from pydantic import TypeAdapter  # noqa: PLC0415 - half of what it takes to import all of ours

    return TypeAdapter(Request)


@cache
def _answers() -> TypeAdapter[Answer]:
    from pydantic import TypeAdapter  # noqa: PLC0415 - as above

    return TypeAdapter(Answer)


def read_request(body: bytes, _operation: Operation) -> Request:
    """Read a request, which says its operation itself."""
    return _requests().validate_json(body)


def write_request(request: Request) -> bytes:
    """Write a request."""
    return _requests().dump_json(request)


def read_response(body: bytes, _status: int) -> Answer:
    """Read an answer, which says its status itself."""
    return _answers().validate_json(body)


def write_response(answer: Answer) -> bytes:
    """Write an answer."""
    return _answers().dump_json(answer)


def join(pieces: Sequence[Piece]) -> Answer:
    """A stream is kept as the answer it amounts to."""
    return read_response(b"".join(piece for _, piece in pieces), 200)


def split(answer: Answer) -> list[Piece]:
    """An answer is a stream of one piece: whoever asks cuts it as the library does."""
    return [(0.0, write_response(answer))]
