"""OpenTelemetry's own instrumentation of the openai-agents SDK (``openai-agents-v2``), which writes items as reprs.

Of a request to the Responses API it tells the user's words alone. Agent, id and server of its calls are the same
whoever was called.
"""

from __future__ import annotations

import re
from dataclasses import replace

from spanreel.model import Agent, Answer, Fidelity, Json, Message
from spanreel.records import ModelRecord, Record, RunRecord
from spanreel_collector.dialects import genai_spans
from spanreel_collector.dialects.content import blocks, bodies, messages, reprs
from spanreel_collector.span import RawSpan

NAME = "openai-agents-contrib"

_SCOPE = "opentelemetry.instrumentation.openai_agents"
_OPENLLMETRY = re.compile(r"0\.\d+\.\d+$")
"""The versions of another instrumentation, of the same name."""
_ITEM = re.compile(r"[A-Z]\w+\(\w+=|\{'")
"""How an item of OpenAI's Responses API begins that was written as Python shows it."""

_BLOCKS = ("output_text", "input_text", "refusal", "input_image", "input_file")
"""Kinds of content of messages that hold several, of which each is a repr of its own."""


def speaks(span: RawSpan) -> bool:
    """Whether this instrumentation wrote the span."""
    return span.origin.scope == _SCOPE and not _OPENLLMETRY.match(span.origin.scope_version)


def read(span: RawSpan) -> Record | None:
    """What the span says; None of those that only group."""
    record = genai_spans.read(span)
    if isinstance(record, RunRecord):
        asked, answered = (tuple(_decoded(message) for message in said) for said in (record.input, record.output))
        return replace(record, agent=Agent(record.agent.name), input=asked, output=answered)
    return _read_model(record) if isinstance(record, ModelRecord) else record


def _read_model(record: ModelRecord) -> ModelRecord:
    request, answer, fidelity = record.request, record.answer, dict(record.fidelity)
    asked = tuple(_decoded(message) for message in request.messages)
    # Of chat completions it tells the whole request, the system's message among the others.
    whole = any(message["role"] == "system" for message in asked)
    if not whole:
        fidelity.setdefault("input", Fidelity.TRUNCATED)
    return replace(
        record,
        request=replace(request, messages=asked),
        answer=_whole(answer) if answer is not None else None,
        agent=Agent(),
        host=None,
        port=None,
        continues=not whole,
        fidelity=fidelity,
    )


def _whole(answer: Answer) -> Answer:
    return replace(answer, messages=tuple(_decoded(message) for message in answer.messages))


def _decoded(message: Message) -> Message:
    """The message with its reprs read; what cannot be read stays the text that it is."""
    parts: list[dict[str, Json]] = []
    for part in message["parts"]:
        parts += _items(part["content"]) or [part] if part.get("type") == "text" else [part]
    given = [part.get("response") for part in parts if part["type"] == "tool_call_response"]
    # A tool's result, which it tells as text too.
    parts = [part for part in parts if part["type"] != "text" or part.get("content") not in given]
    role = "tool" if parts and all(part["type"] == "tool_call_response" for part in parts) else message["role"]
    return {**message, "role": role, "parts": parts}


def _items(text: Json) -> list[dict[str, Json]]:
    if not isinstance(text, str) or not _ITEM.match(text):
        return []
    try:
        item = reprs.without_names(reprs.parse(text))
    except ValueError:
        return []
    whole = bodies.read_answer(item) if _is_response(item) else None
    if whole is not None:
        return [part for message in whole.messages for part in message["parts"]]
    if isinstance(item, dict) and item.get("type") in _BLOCKS:
        return blocks.parts_of([item])
    found = messages.read_message(item)
    return list(found["parts"]) if found is not None else []


def _is_response(item: Json) -> bool:
    """Whether this is a whole answer, as the SDK puts it together of a stream of chat completions."""
    return isinstance(item, dict) and item.get("object") == "response"
