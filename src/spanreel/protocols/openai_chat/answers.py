"""Answers of OpenAI chat completions as JSON objects: choices, finish reasons, usage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from spanreel.model import Answer, Json, Message
from spanreel.protocols.openai_chat.messages import FREE, read_answer, write_answer
from spanreel.protocols.openai_chat.walking import choices_of
from spanreel.protocols.openai_errors import describe_error
from spanreel.protocols.openai_usage import read_usage, write_chat_usage
from spanreel.protocols.residue import ABSENT, keep, kept, overlay, residue
from spanreel.protocols.shaped import Shaped, said

CHOICE: Final = "$choice"
"""In a message's ``provider_fields``: what its choice had beside the message."""

_READ_REASON = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_call",
    "function_call": "tool_call",
    "content_filter": "content_filter",
    "error": "error",
    # What gateways pass through from the providers behind them.
    "end_turn": "stop",
    "eos": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_length": "length",
    "tool_use": "tool_call",
    "safety": "content_filter",
    "recitation": "content_filter",
    "insufficient_system_resource": "error",
}


def read_body(body: dict[str, Json]) -> Answer:
    """Read a completion; one without choices is an answer without messages."""
    usage = body.get("usage")
    counts = read_usage(usage)
    if not isinstance(usage, dict) or counts is None or "x_groq" in body:
        return _read_body(body)
    # What it says of tokens is another in each answer, and one count may be the sum of others.
    answer = _recall_body({name: value for name, value in body.items() if name != "usage"})
    said = residue(usage, write_chat_usage(counts))
    return Answer(
        answer.response_id,
        answer.model,
        answer.messages,
        counts,
        error=answer.error,
        provider_fields={**answer.provider_fields, "usage": said} if said else answer.provider_fields,
    )


def _read_body(body: Mapping[str, Json]) -> Answer:
    identity, model, usage = body.get("id"), body.get("model"), body.get("usage")
    if usage is None and isinstance(body.get("x_groq"), dict):
        usage = body["x_groq"].get("usage")
    if usage is None:  # Moonshot counts beside what it says
        usage = next((choice["usage"] for choice in choices_of(body) if choice.get("usage")), None)
    answer = Answer(
        response_id=identity if isinstance(identity, str) else None,
        model=model if isinstance(model, str) else None,
        messages=_read_choices(body.get("choices")),
        usage=read_usage(usage),
        error=describe_error(body, 200) if isinstance(body.get("error"), dict | str) else None,
    )
    # What was read of choices writes them again: what they have that we have no name for is kept with their messages.
    rest = residue(body, _write(answer, body["choices"] if answer.messages else []))
    return Answer(
        answer.response_id, answer.model, answer.messages, answer.usage, error=answer.error, provider_fields=rest
    )


_recall_body: Final = Shaped(_read_body, {**FREE, **said("created", "system_fingerprint")})


def write_body(answer: Answer) -> dict[str, Json]:
    """Write a completion; what is not known is made up: the SDK insists on an id, a model and a time."""
    return _write(answer, [_write_choice(message, index) for index, message in enumerate(answer.messages)])


def _write(answer: Answer, choices: Json) -> dict[str, Json]:
    body: dict[str, Json] = {
        "id": answer.response_id or "spanreel-replayed",
        "object": "chat.completion",
        "created": 0,
        "model": answer.model or "unknown",
        "choices": choices,
    }
    if answer.usage is not None:
        body["usage"] = write_chat_usage(answer.usage)
    rest = dict(answer.provider_fields)
    # What was kept must not beat what has been put in since.
    if answer.messages:
        rest.pop("choices", None)
    return overlay(body, rest)


def _read_choices(choices: Json) -> tuple[Message, ...]:
    """A message a choice; none at all where an entry is no choice, so that the whole list is kept as it came."""
    if not isinstance(choices, list):
        return ()
    if not all(isinstance(choice, dict) for choice in choices):
        return ()
    return tuple(_read_choice(choice, index) for index, choice in enumerate(choices))


def _read_choice(choice: Mapping[str, Json], index: int) -> Message:
    """Read a choice; one whose content a filter withheld may have no message."""
    wire = choice.get("message")
    message = read_answer(wire) if isinstance(wire, dict) else {"role": "assistant", "parts": []}
    # Mistral's models behind Bedrock say it by another name.
    raw = choice["finish_reason"] if "finish_reason" in choice else choice.get("stop_reason")
    if isinstance(raw, str) and raw:
        message["finish_reason"] = _READ_REASON.get(raw.lower(), raw)
    written = _write_choice(message, index)
    around = residue({**choice, "message": written["message"]} if isinstance(wire, dict) else choice, written)
    return keep(message, {**kept(message), **({CHOICE: around} if around else {})})


def _write_choice(message: Message, index: int) -> dict[str, Json]:
    reason = message.get("finish_reason")
    around = kept(message).get(CHOICE)
    around = dict(around) if isinstance(around, dict) else {}
    parts = message.get("parts") or []
    if reason is None:
        written = "tool_calls" if any(part.get("type") == "tool_call" for part in parts) else "stop"
    else:
        written = "tool_calls" if reason == "tool_call" else reason
        field = "stop_reason" if "finish_reason" in (around.get(ABSENT) or ()) else "finish_reason"
        raw = around.get(field)
        if isinstance(raw, str) and _READ_REASON.get(raw.lower(), raw) != reason:
            around[field] = written
    choice = {"index": index, "message": write_answer(message), "logprobs": None, "finish_reason": written}
    restored = overlay(choice, around)
    return {**restored, "message": choice["message"]} if parts else restored
