"""Log probabilities in streams of Cohere and Ollama: one list, as in a plain answer, and no text of them in chunks."""

from __future__ import annotations

import json
from typing import Any

from exchange_cases import events_of
from spanreel.exchange import Piece
from spanreel.protocols import cohere, ollama
from spanreel.protocols.residue import same


def text_of(pieces: list[Piece]) -> bytes:
    """A body in one piece."""
    return b"".join(piece for _, piece in pieces)


def test_those_of_cohere_are_a_list() -> None:
    def said(text: str) -> dict[str, Any]:
        item = {"token_ids": [1], "text": text, "logprobs": [-0.5]}
        return {
            "type": "content-delta",
            "index": 0,
            "delta": {"message": {"content": {"text": text}}},
            "logprobs": item,
        }

    begun = {"message": {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}}
    events: list[dict[str, Any]] = [
        {"type": "message-start", "id": "m", "delta": begun},
        {"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "text", "text": ""}}}},
        said("swordfish"),
        said(" it is"),
        {"type": "content-end", "index": 0},
        {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}},
    ]
    stream = b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)
    answer = cohere.join([(1.0, stream)])
    body = json.loads(cohere.write_response(answer))
    assert [item["text"] for item in body["logprobs"]] == ["swordfish", " it is"]
    assert "swordfish" not in json.dumps(answer.chunks)
    assert same(events_of(text_of(cohere.split(answer))), events)
    assert cohere.join(cohere.split(answer)) == answer


def test_those_of_ollama_are_a_list() -> None:
    def line(text: str, tokens: Any = (), **fields: Any) -> dict[str, Any]:
        told = {"logprobs": tokens} if tokens != () else {}
        return {"model": "m", "message": {"role": "assistant", "content": text}, "done": False, **told, **fields}

    lines = [
        line("swordfish", [{"token": "sword", "logprob": -1}, {"token": "fish", "logprob": -2}]),
        line(" it is", [{"token": " it is", "logprob": -3}]),
        line("", None),
        line("", done=True, done_reason="stop"),
    ]
    answer = ollama.join([(1.0, b"".join(json.dumps(one).encode() + b"\n" for one in lines))])
    body = json.loads(ollama.write_response(answer))
    assert [entry["token"] for entry in body["logprobs"]] == ["sword", "fish", " it is"]
    assert "sword" not in json.dumps(answer.chunks)
    assert same([json.loads(one) for one in text_of(ollama.split(answer)).splitlines()], lines)
    assert ollama.join(ollama.split(answer)) == answer
