"""Whose API a body in Bedrock's invoke is written for: makers of models each have their own, as the body gives away."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from spanreel.exchange import Piece, Speech
from spanreel.model import Answer, Json, Operation
from spanreel.protocols import anthropic, openai_chat
from spanreel.protocols.bedrock_invoke import command, embeddings, mistral, nova, prompts
from spanreel.protocols.bedrock_invoke.packing import pack, unpack
from spanreel.protocols.completions.forms import PROMPTS, form_of


@dataclass(frozen=True, slots=True)
class Family:
    """One maker's API: how its bodies are known, and what reads and writes them.

    ``answers`` sees an answer, ``streams`` (the same where there is none) an event of a streamed one. ``packed``: its
    streams are server-sent events at home.
    """

    name: str
    speech: Speech
    asks: Callable[[Mapping[str, Json]], bool]
    answers: Callable[[Mapping[str, Json]], bool]
    streams: Callable[[Mapping[str, Json]], bool] | None = None
    packed: bool = False

    def join(self, pieces: Sequence[Piece]) -> Answer:
        """Read a streamed body."""
        return self.speech.join(unpack(pieces) if self.packed else pieces)

    def split(self, answer: Answer) -> list[Piece]:
        """Write an answer as a stream."""
        pieces = self.speech.split(answer)
        return pack(pieces) if self.packed else pieces


def _asks_anthropic(wire: Mapping[str, Json]) -> bool:
    return "anthropic_version" in wire


def _answers_anthropic(body: Mapping[str, Json]) -> bool:
    kind = body.get("type")
    return isinstance(kind, str) and (kind.startswith(("message", "content_block")) or kind in ("ping", "error"))


def _asks_nova(wire: Mapping[str, Json]) -> bool:
    """Messages with blocks that no ``type`` names; or settings as only Nova has them."""
    if not isinstance(wire.get("messages"), list):
        return False
    if "schemaVersion" in wire or "inferenceConfig" in wire or "toolConfig" in wire:
        return True
    contents = [entry.get("content") for entry in wire["messages"] if isinstance(entry, dict)]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    listed = bool(blocks) and len(contents) == sum(isinstance(content, list) for content in contents)
    return listed and all(isinstance(block, dict) and "type" not in block for block in blocks)


_EVENTS: Final = frozenset(
    ("messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata")
)


def _answers_nova(body: Mapping[str, Json]) -> bool:
    output = body.get("output")
    return (isinstance(output, dict) and "message" in output) or not _EVENTS.isdisjoint(body)


def _answers_chat(body: Mapping[str, Json]) -> bool:
    choices = body.get("choices")
    return isinstance(choices, list) and form_of(body) is None


def _answers_command(body: Mapping[str, Json]) -> bool:
    return "event_type" in body or ("text" in body and not body.keys().isdisjoint(("response_id", "generation_id")))


def _never(_: Mapping[str, Json]) -> bool:
    """It is known by its streams only; for all else it is a chat like others."""
    return False


FAMILIES: Final = (
    Family("anthropic", anthropic, _asks_anthropic, _answers_anthropic, packed=True),
    Family("nova", nova, _asks_nova, _answers_nova),
    Family(
        "embeddings",
        embeddings,
        lambda wire: "texts" in wire or "inputImage" in wire or ("inputText" in wire and "normalize" in wire),
        lambda body: any(name.startswith("embedding") for name in body),
    ),
    Family("mistral", mistral, _never, _never, mistral.speaks),
    Family("command", command, lambda wire: isinstance(wire.get("message"), str), _answers_command),
    Family("chat", openai_chat, lambda wire: isinstance(wire.get("messages"), list), _answers_chat, packed=True),
    Family(
        "prompts",
        prompts,
        lambda wire: any(name in wire for name in PROMPTS),
        lambda body: form_of(body) is not None,
    ),
)
"""In the order in which they are asked: what is sure before what is only likely. The first is for what nobody knows."""

_NAMES: Final = {family.name: family for family in FAMILIES}


def family_named(name: Json) -> Family:
    """The family of this name, as recorded; Anthropic's, which has none."""
    return _NAMES.get(name, FAMILIES[0]) if isinstance(name, str) else FAMILIES[0]


def family_asked(wire: Mapping[str, Json], operation: Operation) -> Family:
    """The family that a request is written for."""
    if operation is Operation.EMBEDDINGS:
        return _NAMES["embeddings"]
    return next((family for family in FAMILIES if family.asks(wire)), FAMILIES[0])


def family_answering(body: Mapping[str, Json]) -> Family | None:
    """The family that an answer is of; None where none knows it."""
    return next((family for family in FAMILIES if family.answers(body)), None)


def family_streaming(fields: Mapping[str, Json]) -> Family | None:
    """The family that an event of a streamed answer is of; None where none knows it."""
    return next((family for family in FAMILIES if (family.streams or family.answers)(fields)), None)
