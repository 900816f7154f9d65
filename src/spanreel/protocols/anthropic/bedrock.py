"""Anthropic's models in Bedrock's invoke, as they are recorded: all is `bedrock_invoke`'s but its failures."""

from __future__ import annotations

from collections.abc import Mapping

from spanreel.exchange import Piece
from spanreel.model import Answer, Operation
from spanreel.protocols import anthropic, bedrock_invoke
from spanreel.protocols.bedrock_invoke import STREAM_TYPE, as_asked, join, read_request, write_request

__all__ = [
    "NAME",
    "PATHS",
    "PROVIDER",
    "STREAM_TYPE",
    "as_asked",
    "join",
    "read_request",
    "read_response",
    "split",
    "write_request",
    "write_response",
]

NAME = "anthropic_bedrock"
PROVIDER = bedrock_invoke.PROVIDER
PATHS: Mapping[str, Operation] = bedrock_invoke.PATHS


def read_response(body: bytes, status: int) -> Answer:
    """Read a plain answer, or a failure."""
    return anthropic.read_response(body, status) if status >= 400 else bedrock_invoke.read_response(body, status)


def write_response(answer: Answer) -> bytes:
    """Write a plain answer, or a failure."""
    return anthropic.write_response(answer) if answer.status >= 400 else bedrock_invoke.write_response(answer)


def split(answer: Answer) -> list[Piece]:
    """Write an answer as a stream: as its chunks say, where they still carry what it holds; else as Bedrock would."""
    return anthropic.split(answer) if answer.status >= 400 else bedrock_invoke.split(answer)
