"""How providers write exchanges: one module each, read and write, plain and streamed, no I/O; and how to know them.

``recognise`` and ``peek_model`` are on the path of every HTTP request of the user's program; they parse nothing.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import pydantic_core

from spanreel.exchange import ModelProtocol
from spanreel.model import Answer, Operation, Request
from spanreel.protocols import (
    anthropic,
    bedrock,
    bedrock_invoke,
    cohere,
    completions,
    gemini,
    ollama,
    openai_chat,
    openai_embeddings,
    openai_responses,
)
from spanreel.protocols.anthropic import bedrock as anthropic_bedrock
from spanreel.protocols.cohere import first as cohere_first
from spanreel.protocols.gemini import embeddings as gemini_embeddings
from spanreel.protocols.ollama import embeddings as ollama_embeddings
from spanreel.protocols.ollama import generate as ollama_generate
from spanreel.protocols.providers import provider_of

__all__ = ["PROTOCOLS", "as_asked", "is_exchange", "peek_model", "protocol_named", "provider_of", "recognise"]


def _table(*protocols: ModelProtocol) -> tuple[ModelProtocol, ...]:
    """A table of modules; as arguments they are checked to be protocols, in a tuple they would not be."""
    return protocols


PROTOCOLS: Final = _table(
    openai_chat,
    completions,  # after the chat, whose path ends as its path does
    openai_responses,
    openai_embeddings,
    anthropic,
    anthropic_bedrock,
    gemini,
    gemini_embeddings,
    ollama,
    ollama_generate,
    ollama_embeddings,
    cohere,
    cohere_first,
    bedrock,
    bedrock_invoke,
)

_ENDS: Final = tuple(
    (end, (protocol, operation)) for protocol in PROTOCOLS for end, operation in protocol.PATHS.items()
)
_ANY_END: Final = tuple(end for end, _ in _ENDS)
# On Vertex the verb is the path's end for the models of every publisher; only Anthropic's speak as at home.
_VERTEX_ENDS: Final = (":rawPredict", ":streamRawPredict")
_VERTEX_ANTHROPIC: Final = "/publishers/anthropic/models/"
# What ends as Bedrock's paths do may be anybody's but for what stands before; Anthropic's models have had a protocol of
# their own since before those of others had one.
_BEHIND_MODELS: Final = {bedrock.NAME: "/model/", bedrock_invoke.NAME: "/model/", anthropic_bedrock.NAME: "anthropic."}
_NAMES: Final = {protocol.NAME: protocol for protocol in PROTOCOLS}

_OF_TWO_KINDS: Final = "/fim/completions"
"""Mistral's, which is asked as for a completion and answers as a chat."""
_NO_WORDS: Final = ("stability.", "image-generator", "nova-canvas", "nova-reel", "nova-sonic", "rerank")

_NEEDED: Final = {
    Operation.CHAT: (b'"messages"', b'"input"', b'"prompt"', b'"contents"'),
    Operation.EMBEDDINGS: (b'"input"', b'"content"'),
    Operation.MODERATION: (b'"input"',),
}

_NEEDED_BY: Final = {
    completions.NAME: (b'"prompt"',),
    cohere_first.NAME: (b'"message"',),
    bedrock_invoke.NAME: tuple(f'"{name}"'.encode() for name in bedrock_invoke.NEEDED),
}
"""What protocols need that are asked in words of their own."""
_AT_HOME: Final = (ollama, ollama_generate, ollama_embeddings, cohere, cohere_first)
"""At the paths of these many a web application has something of its own, which names no model."""

_MODEL_KEY = b'"model"'
_MODEL = re.compile(rb'"model"\s*:\s*("(?:[^"\\]|\\.)*")')
_TOKEN = re.compile(rb'"(?:[^"\\]+|\\.)*+"|[{}\[\]]')
_MOST_CANDIDATES = 32
_MOST_KNOWN = 16 * 1024


def recognise(method: str, path: str, extra: Mapping[str, str] | None = None) -> tuple[ModelProtocol, Operation] | None:
    """The protocol and operation of an HTTP request, by its method and its path without the query; None for all others.

    ``extra`` maps further ends of paths to names of protocols (a gateway's own routes); an unknown name: ValueError.
    """
    if method != "POST":
        return None
    if extra:
        for end, name in extra.items():
            if path.endswith(end):
                protocol = protocol_named(name)
                return protocol, next(iter(protocol.PATHS.values()))
    if not path.endswith(_ANY_END):
        return (anthropic, Operation.CHAT) if path.endswith(_VERTEX_ENDS) and _VERTEX_ANTHROPIC in path else None
    if path.endswith(_OF_TWO_KINDS):
        return None
    for end, found in _ENDS:
        if path.endswith(end) and _BEHIND_MODELS.get(found[0].NAME, "") in path:
            return found if found[0] is not bedrock_invoke else _invoked(path)
    return None


def _invoked(path: str) -> tuple[ModelProtocol, Operation] | None:
    """What a model behind Bedrock's invoke is asked for, by its name; None for those that make pictures and films."""
    model = path.rpartition("/model/")[2]
    if any(name in model for name in _NO_WORDS):
        return None
    return bedrock_invoke, Operation.EMBEDDINGS if "embed" in model else Operation.CHAT


def protocol_named(name: str) -> ModelProtocol:
    """The protocol of this name, as recorded; ValueError where there is none."""
    try:
        return _NAMES[name]
    except KeyError:
        raise ValueError(f"no protocol named {name!r}; known: {', '.join(sorted(_NAMES))}") from None


def is_exchange(operation: Operation, body: bytes, protocol: ModelProtocol | None = None) -> bool:
    """Whether a body can be a model request of this operation, at a glance: not every POST to ``/responses`` is one."""
    if protocol in _AT_HOME and b'"model"' not in body:
        return False
    if not body.startswith(b"{") and body.lstrip()[:1] != b"{":
        return False
    needed = (_NEEDED_BY.get(protocol.NAME) if protocol is not None else None) or _NEEDED.get(operation, ())
    for name in needed:  # noqa: SIM110 - `any` costs a generator, at every call
        if name in body:
            return True
    return False


def as_asked(protocol: ModelProtocol, request: Request, answer: Answer) -> Answer:
    """An answer made for another form of request, in this one's: a chat stream's usage only where it is asked for."""
    if protocol in (bedrock_invoke, anthropic_bedrock):
        return bedrock_invoke.as_asked(request, answer)
    if protocol not in (openai_chat, completions) or not request.stream or answer.chunks:
        return answer
    options = request.provider_fields.get("stream_options")
    wanted = isinstance(options, dict) and options.get("include_usage") is True
    if wanted:
        return answer
    rest = {key: value for key, value in answer.provider_fields.items() if key != "usage"}
    return replace(answer, usage=None, provider_fields=rest)


def peek_model(body: bytes) -> str | None:
    """The value of the top-level ``"model"`` of a JSON object, found without parsing it; None where there is none."""
    position = body.find(_MODEL_KEY)
    for _ in range(_MOST_CANDIDATES):
        if position < 0:
            return None
        match = _MODEL.match(body, position)
        if match and body[position - 1 : position] != b"\\" and _at_top(body, position, match.end()):
            try:
                return str(pydantic_core.from_json(match.group(1)))
            except ValueError:
                return None
        position = body.find(_MODEL_KEY, position + len(_MODEL_KEY))
    return None


def _at_top(body: bytes, start: int, end: int) -> bool:
    """Whether what stands at ``start`` is inside one bracket only, counted on the shorter side of it."""
    if start <= len(body) - end:
        return _depth(body, 0, start) == 1
    return _depth(body, end, len(body)) == -1


def _depth(body: bytes, start: int, end: int) -> int:
    """By how many brackets more are opened than closed in between; of a short piece that comes again it is known."""
    piece = body[start:end]
    return _depth_of(piece) if len(piece) > _MOST_KNOWN else _known_depth_of(piece)


def _depth_of(piece: bytes) -> int:
    depth = 0
    for match in _TOKEN.finditer(piece):
        token = match.group()
        if token in (b"{", b"["):
            depth += 1
        elif token in (b"}", b"]"):
            depth -= 1
    return depth


_known_depth_of: Final = functools.lru_cache(64)(_depth_of)
"""Behind the model stand the tools, which are the same in every call of an agent."""
