"""The shared exchanges as data for tests; and how an exchange is cut into the pieces of a stream."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from pydantic_core import from_json

from conftest import cases
from spanreel.exchange import ModelProtocol, Piece
from spanreel.model import Operation
from spanreel.protocols import recognise
from spanreel.protocols.frames import read_frames

OPENAI_FILES = ("openai_chat", "openai_responses", "azure_chat", "groq_chat", "mistral_chat")
"""What OpenAI's SDK reads."""
FILES = (
    *OPENAI_FILES,
    "gemini",
    "ollama_chat",
    "cohere_v1_chat",
    "cohere_v2_chat",
    "bedrock_converse",
    "bedrock_invoke",
)


@dataclass(frozen=True, slots=True)
class Exchange:
    """One recorded exchange."""

    id: str
    protocol: ModelProtocol
    operation: Operation
    path: str
    request: dict[str, Any]
    status: int
    content_type: str
    response: bytes
    beta: bool = False

    @property
    def streamed(self) -> bool:
        """Whether the response is a stream of events."""
        told = self.content_type.endswith(("ndjson", "stream+json"))
        return told or self.response.startswith((b"data:", b"event:", b"\0"))

    def answering(self, response: bytes) -> Exchange:
        """The same request with another response."""
        return replace(self, response=response)


def exchanges(file: str) -> Iterator[Exchange]:
    """The exchanges of one file."""
    with (cases("exchanges") / f"{file}.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            case = json.loads(line)
            path = case["request"]["path"].partition("?")[0]
            found = recognise("POST", path)
            assert found is not None, path
            response = case["response"]
            yield Exchange(
                id=case["id"],
                protocol=found[0],
                operation=found[1],
                path=path,
                request=case["request"]["body"],
                status=response["status"],
                content_type=response["content_type"] or "text/event-stream",
                response=b64decode(response["body_base64"]) if "body_base64" in response else response["body"].encode(),
                beta="beta=true" in case["request"]["path"],
            )


def pieces_of(body: bytes, size: int = 97) -> list[Piece]:
    """A body as it could come over the wire: cut anywhere, a piece every one and a half milliseconds."""
    return [(number * 1.5, body[start : start + size]) for number, start in enumerate(range(0, len(body), size))]


def events_of(body: bytes) -> list[Any]:
    """The data of the events of a stream, parsed where they are JSON; Amazon's with their headers."""
    if body.startswith(b"\0"):
        frames = read_frames([(0.0, body)])
        return [[*map(list, frame.headers or ()), from_json(frame.payload or b"null")] for frame in frames]
    lines = body.decode().replace("\r\n", "\n").split("\n")
    told = [line for line in lines if line.startswith(("data: ", "{"))]
    return [line if line == "data: [DONE]" else json.loads(line.removeprefix("data: ")) for line in told]
