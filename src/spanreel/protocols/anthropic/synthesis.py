"""The events that Anthropic would send for a message that was not recorded as a stream; and how blocks begin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from spanreel.model import Json
from spanreel.protocols.anthropic.blocks import SERVER_CALLS
from spanreel.protocols.joining import slices, words

DELTAS: Final = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "signature": ("signature_delta", "signature"),
    "input": ("input_json_delta", "partial_json"),
}
"""A block's field whose text comes in pieces: the type of the deltas, and their own field."""
DELTA_FIELDS: Final = {kind: (field, own) for field, (kind, own) in DELTAS.items()}
"""The same by the deltas' type."""

# By the type of a block: what stands in its fields before its deltas have come.
_EMPTY: Final[Mapping[str, Mapping[str, Json]]] = {
    "text": {"text": "", "citations": []},
    "thinking": {"thinking": "", "signature": ""},
    "compaction": {"content": None, "encrypted_content": None},
    **{kind: {"input": {}} for kind in ("tool_use", *SERVER_CALLS)},
}


def begin_message(body: Mapping[str, Json]) -> dict[str, Json]:
    """What the first event says of a message."""
    return {**body, "content": [], "stop_reason": None, "stop_sequence": None}


def begin_block(block: Mapping[str, Json]) -> dict[str, Json]:
    """A block before its deltas: one that comes in pieces is empty."""
    emptied = _EMPTY.get(str(block.get("type")), {})
    return {key: emptied.get(key, value) for key, value in block.items()}


def cut(body: Mapping[str, Json], inputs: Mapping[int, str]) -> Iterator[dict[str, Json]]:
    """The events of a message; ``inputs`` are the texts of its blocks' inputs, by position."""
    usage = body.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    begun = begin_message(body)
    begun["usage"] = {**usage, "output_tokens": min(1, usage.get("output_tokens") or 0)}
    yield {"type": "message_start", "message": begun}
    content = body.get("content")
    for index, block in enumerate(content if isinstance(content, list) else []):
        if isinstance(block, dict):
            yield {"type": "content_block_start", "index": index, "content_block": begin_block(block)}
            for delta in _deltas(block, inputs.get(index)):
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
    ended = {key: body[key] for key in ("stop_reason", "stop_sequence", "stop_details", "container") if key in body}
    more = {key: body[key] for key in ("context_management", "input_transformations") if key in body}
    yield {"type": "message_delta", "delta": ended, "usage": usage, **more}
    if isinstance(body.get("error"), dict):
        yield {"type": "error", "error": body["error"]}
    else:
        yield {"type": "message_stop"}


def _deltas(block: Mapping[str, Json], text: str | None) -> Iterator[dict[str, Json]]:
    fields = _EMPTY.get(str(block.get("type")), {})
    for field in fields:
        value = text if field == "input" else block.get(field)
        if field in DELTAS and isinstance(value, str):
            kind, own = DELTAS[field]
            for piece in _pieces(field, value):
                yield {"type": kind, own: piece}
        elif field == "citations" and isinstance(value, list):
            for citation in value:
                yield {"type": "citations_delta", "citation": citation}
    if block.get("type") == "compaction":
        yield {"type": "compaction_delta", **{key: block[key] for key in fields if key in block}}


def _pieces(field: str, text: str) -> list[str]:
    """A signature comes whole, JSON by length, all else by words."""
    if field == "input":
        return slices(text)
    return words(text) if field != "signature" else [text] * bool(text)
