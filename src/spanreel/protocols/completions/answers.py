"""Completed texts: an answer's message a completion, with why it ended and what was counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from spanreel.model import Answer, Json, Message, Usage
from spanreel.protocols.completions.forms import OPENAI, Form, form_named
from spanreel.protocols.openai_errors import describe_error
from spanreel.protocols.openai_usage import read_usage, write_chat_usage
from spanreel.protocols.repeats import Path, find
from spanreel.protocols.residue import keep, kept, overlay, read_count, residue

FORM: Final = "$form"
"""In an answer's ``provider_fields``: the name of its form, where it is not OpenAI's."""
CHOICE: Final = "$choice"
"""In a message's ``provider_fields``: what its completion had beside the text."""
METRICS: Final = "amazon-bedrock-invocationMetrics"
"""What Bedrock adds to the last piece of every stream."""

_READ_REASON: Final = {
    "finish": "stop",
    "complete": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "stop_criteria_met": "stop",
    "endoftext": "stop",
    "eos_token": "stop",
    "max_tokens": "length",
    "tool_calls": "tool_call",
    "content_filtered": "content_filter",
    "error_toxic": "content_filter",
}
_COUNTED: Final = (("inputTokenCount",), ("outputTokenCount",))


def read_body(body: Mapping[str, Json], form: Form) -> Answer:
    """Read an answer of this form; one without completions is an answer without messages."""
    identity, model = body.get("id"), body.get("model")
    answer = Answer(
        response_id=identity if isinstance(identity, str) else None,
        model=model if isinstance(model, str) else None,
        messages=_read_entries(body, form),
        usage=_read_usage(body, form),
        error=describe_error(body, 200) if isinstance(body.get("error"), dict | str) else None,
        provider_fields={} if form is OPENAI else {FORM: form.name},
    )
    return replace(answer, provider_fields={**answer.provider_fields, **residue(body, write_body(answer))})


def write_body(answer: Answer) -> dict[str, Json]:
    """Write an answer in the form that it was read in, else in OpenAI's, whose SDK insists on an id and a time."""
    form = form_named(answer.provider_fields.get(FORM)) or OPENAI
    body: dict[str, Json] = {}
    if form.is_openai:
        body = {"id": "spanreel-replayed", "object": "text_completion", "created": 0, "model": "unknown"}
    told = {"id": answer.response_id, "model": answer.model}
    body |= {name: value for name, value in told.items() if value is not None}
    entries = [_write_entry(message, form) for message in answer.messages]
    if form.entries is not None:
        if form.is_openai:
            entries = [{"index": index, "logprobs": None, **entry} for index, entry in enumerate(entries)]
        body[form.entries] = [
            _completed(entry, message, form) for entry, message in zip(entries, answer.messages, strict=True)
        ]
    elif entries:
        body |= entries[0]
    body = _with_usage(body, answer.usage, form)
    rest: Mapping[str, Json] = answer.provider_fields
    # What was kept must not beat what has been put in since.
    if answer.messages and form.entries is not None:
        rest = {key: value for key, value in rest.items() if key != form.entries}
    elif answer.messages:
        rest = _still_true(rest, answer.messages[0], form)
    return overlay(body, rest)


def _read_entries(body: Mapping[str, Json], form: Form) -> tuple[Message, ...]:
    """A message a completion; none at all where an entry is none, so that the whole list is kept as it came."""
    if form.entries is None:
        return (_read_entry(body, form),) if isinstance(find(body, form.text), str) else ()
    entries = body.get(form.entries)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        return ()
    messages: list[Message] = []
    for index, entry in enumerate(entries):
        message = _read_entry(entry, form)
        written = _write_entry(message, form)
        around = residue(entry, {"index": index, "logprobs": None, **written} if form.is_openai else written)
        messages.append(keep(message, {CHOICE: around} if around else {}))
    return tuple(messages)


def _read_entry(entry: Mapping[str, Json], form: Form) -> Message:
    text, raw = find(entry, form.text), find(entry, form.reason)
    parts: list[dict[str, Any]] = [{"type": "text", "content": text}] if isinstance(text, str) and text else []
    message: Message = {"role": "assistant", "parts": parts}
    if isinstance(raw, str) and raw:
        message["finish_reason"] = read_reason(raw)
    return message


def read_reason(raw: str) -> str:
    """Why a completion ended; what we have no word for keeps its own."""
    known = _READ_REASON.get(raw.lower())
    return known or (raw.lower() if raw.lower() in ("stop", "length") else raw)


def _write_entry(message: Message, form: Form) -> dict[str, Json]:
    reason = message.get("finish_reason") or "stop"
    parts = message.get("parts") or []
    text = "".join(str(part.get("content") or "") for part in parts if part.get("type") in ("text", "refusal"))
    entry: dict[str, Json] = {}
    _place(entry, form.text, text)
    _place(entry, form.reason, form.reasons.get(reason, reason))
    return entry


def _completed(entry: dict[str, Json], message: Message, form: Form) -> dict[str, Json]:
    """The entry with what its own had beside the text."""
    around = kept(message).get(CHOICE)
    return overlay(entry, _still_true(around, message, form)) if isinstance(around, dict) else entry


def _still_true(around: Mapping[str, Json], message: Message, form: Form) -> Mapping[str, Json]:
    """What was kept of a completion, without the reason where another has been put in since."""
    raw, reason = find(around, form.reason), message.get("finish_reason")
    if not isinstance(raw, str) or (read_reason(raw) if raw else None) == reason:
        return around
    return {key: value for key, value in around.items() if key != form.reason[0]}


def _read_usage(body: Mapping[str, Json], form: Form) -> Usage | None:
    if form.counts is None and (usage := read_usage(body.get("usage"))) is not None:
        return usage
    if form.counts is not None and (usage := _counted(body, form.counts)) is not None:
        return usage
    return _counted(body.get(METRICS), _COUNTED)


def _counted(body: Json, places: tuple[Path, Path]) -> Usage | None:
    given, taken = (read_count(find(body, place)) for place in places)
    return None if given is None and taken is None else Usage(given, taken)


def _with_usage(body: dict[str, Json], usage: Usage | None, form: Form) -> dict[str, Json]:
    if usage is None:
        return body
    if form.is_openai:
        return {**body, "usage": write_chat_usage(usage)}
    for place, count in zip(form.counts or (), (usage.input_tokens, usage.output_tokens), strict=False):
        if count is not None and (len(place) == 1 or find(body, place[:-1]) is not None):
            _place(find(body, place[:-1]), place[-1:], count)
    return body


def _place(target: dict[str, Json], path: Path, value: Json) -> None:
    for step in path[:-1]:
        target = target.setdefault(str(step), {})
    target[str(path[-1])] = value
