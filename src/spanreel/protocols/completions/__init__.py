"""OpenAI's legacy completions, as vLLM and many gateways still speak them; and the forms of completions by others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from spanreel.model import Answer, Operation, Request
from spanreel.protocols.completions import requests
from spanreel.protocols.completions.answers import read_body, write_body
from spanreel.protocols.completions.forms import OPENAI
from spanreel.protocols.completions.stream import join, split
from spanreel.protocols.openai_errors import read_error, write_error
from spanreel.protocols.residue import parse_object, write_json
from spanreel.protocols.sse import STREAM_TYPE

__all__ = [
    "NAME",
    "PATHS",
    "PROVIDER",
    "STREAM_TYPE",
    "join",
    "read_request",
    "read_response",
    "split",
    "write_request",
    "write_response",
]

NAME = "openai_completions"
PROVIDER = "openai"
PATHS: Mapping[str, Operation] = {"/completions": Operation.CHAT}


def read_request(body: bytes, operation: Operation) -> Request:
    """Read a request; ValueError where it is no object with a prompt."""
    return requests.read_request(parse_object(body, f"{NAME} request"), operation, NAME)


def write_request(request: Request) -> bytes:
    """Write a request."""
    return write_json(requests.write_request(request))


def read_response(body: bytes, status: int) -> Answer:
    """Read a plain answer, or a failure."""
    if status >= 400:
        return read_error(body, status)
    return replace(read_body(parse_object(body, f"{NAME} response"), OPENAI), status=status)


def write_response(answer: Answer) -> bytes:
    """Write a plain answer, or a failure."""
    return write_error(answer) if answer.status >= 400 else write_json(write_body(answer))
