"""Ollama's generate: one prompt and what the model says to it. It is its chat but for where the words stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from spanreel.exchange import Piece
from spanreel.model import Answer, Json, Operation, Request
from spanreel.protocols import ollama as chat
from spanreel.protocols.lines import read_lines, write_line
from spanreel.protocols.residue import parse_object, unexpected, write_json
from spanreel.protocols.sse import read_object

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

NAME = "ollama_generate"
PROVIDER = chat.PROVIDER
PATHS: Mapping[str, Operation] = {"/api/generate": Operation.CHAT}
STREAM_TYPE = chat.STREAM_TYPE

_ASKED: Final = ("prompt", "system", "images")
_SAID: Final = {"response": "content", "thinking": "thinking"}
"""Where the words of an answer stand here, and where in a chat's message."""
_ASIDE: Final = {"message": "message of no chat"}
"""What means something in a chat and nothing here."""


def read_request(body: bytes, operation: Operation) -> Request:
    """Read a request; ValueError where it is no object with a prompt."""
    wire = parse_object(body, f"{NAME} request")
    prompt, system, images = (wire.get(name) for name in _ASKED)
    if not isinstance(prompt, str):
        raise unexpected(f"{NAME} request: prompt", prompt, "text")
    instructed: list[Json] = [{"role": "system", "content": system}] if "system" in wire else []
    asked: dict[str, Json] = {"role": "user", "content": prompt, **({"images": images} if "images" in wire else {})}
    rest = {name: value for name, value in wire.items() if name not in _ASKED}
    return chat.read_request(write_json({**rest, "messages": [*instructed, asked]}), operation)


def write_request(request: Request) -> bytes:
    """Write a request; of a conversation all that was said is the prompt."""
    wire = parse_object(chat.write_request(request), f"{NAME} request")
    entries = wire.pop("messages")
    wire.pop("tools", None)
    prompts: list[str] = []
    images: list[Json] = []
    for entry in entries if isinstance(entries, list) else ():
        if entry.get("role") == "system":
            wire["system"] = entry.get("content")
        else:
            prompts.append(str(entry.get("content") or ""))
            images += entry.get("images") or []
    wire["prompt"] = "\n\n".join(prompts)
    return write_json({**wire, "images": images} if images else wire)


def read_response(body: bytes, status: int) -> Answer:
    """Read a plain answer, or a failure."""
    if status >= 400:
        return chat.read_response(body, status)
    return chat.read_response(write_json(_as_chat(parse_object(body, f"{NAME} response"))), status)


def write_response(answer: Answer) -> bytes:
    """Write a plain answer, or a failure."""
    written = chat.write_response(answer)
    return written if answer.status >= 400 else write_json(_as_generated(parse_object(written, NAME)))


def join(pieces: Sequence[Piece]) -> Answer:
    """Read a streamed body, whole or cut off; ValueError where it holds no line at all."""
    lines = []
    for event in read_lines(pieces):
        fields = read_object(event)
        told = event if fields is None else replace(event, data=write_json(_as_chat(fields)).decode())
        lines.append((event.time, write_line(told)))
    return chat.join(lines)


def split(answer: Answer) -> list[Piece]:
    """Write an answer as a stream: as its chunks say, where they still carry what it holds; else as Ollama would."""
    written = []
    for event in read_lines(chat.split(answer)):
        fields = read_object(event)
        told = event if fields is None else replace(event, data=write_json(_as_generated(fields)).decode())
        written.append((event.time, write_line(told)))
    return written


def _as_chat(fields: Mapping[str, Json]) -> dict[str, Json]:
    """An answer, or a line of one, as the chat says it."""
    said = {own: fields[name] for name, own in _SAID.items() if name in fields}
    rest = {_ASIDE.get(name, name): value for name, value in fields.items() if name not in _SAID}
    return {**rest, "message": {"role": "assistant", **said}} if said else rest


def _as_generated(fields: Mapping[str, Json]) -> dict[str, Json]:
    """The inverse; what else stands in a chat's message there is no place for."""
    message = fields.get("message")
    back = {aside: name for name, aside in _ASIDE.items()}
    rest = {back.get(name, name): value for name, value in fields.items() if name != "message"}
    if not isinstance(message, dict):
        return rest
    return {**rest, **{name: message[own] for name, own in _SAID.items() if own in message}}
