"""OpenLIT: the GenAI conventions, with settings that nobody gave."""

from __future__ import annotations

import re
from dataclasses import replace

from spanreel import conventions as names
from spanreel.model import ErrorCategory, Fidelity, Json, Message
from spanreel.records import ModelRecord, Record
from spanreel_collector import json_text
from spanreel_collector.dialects import genai_spans, values
from spanreel_collector.dialects.content import blocks, messages, reprs
from spanreel_collector.span import Attributes, RawSpan

NAME = "openlit"

_SCOPE = "openlit"
_INVENTED = {
    names.REQUEST_SEED: (0, ""),
    names.REQUEST_TEMPERATURE: (1.0,),
    names.REQUEST_TOP_P: (1.0,),
    names.REQUEST_TOP_K: (1.0,),
    names.REQUEST_MAX_TOKENS: (-1,),
    names.REQUEST_FREQUENCY_PENALTY: (0.0,),
    names.REQUEST_PRESENCE_PENALTY: (0.0,),
}
"""What it writes where nothing was set; whoever did set just these cannot be told apart."""
_OLD_PROMPT, _OLD_ANSWER = "gen_ai.prompt", "gen_ai.completion"
_ROLE = re.compile(r"^(system|developer|user|assistant|tool|function): ", re.MULTILINE)
"""What a message begins with in the text of a prompt."""
_COUNT_APART = ("anthropic", "aws.bedrock")
"""Providers whose input tokens come without the cached ones, as they are written down here."""


def speaks(span: RawSpan) -> bool:
    """Whether OpenLIT wrote the span."""
    scope = span.origin.scope
    ours = scope == _SCOPE or scope.startswith(f"{_SCOPE}.")
    return ours and (any(key.startswith("gen_ai.") for key in span.attributes) or bool(_of_failed(span)))


def read(span: RawSpan) -> Record | None:
    """What the span says. The tools that a model call names are those it asked for, not one that was called."""
    logs = tuple(replace(log, attributes=_given(log.attributes)) for log in span.logs)
    told, state = _told_of_old(span.attributes)
    told = told or _of_failed(span)
    record = genai_spans.read(replace(span, attributes={**_given(span.attributes), **told}, logs=logs))
    if isinstance(record, ModelRecord) and state is not Fidelity.WHOLE:
        record = replace(record, fidelity={**record.fidelity, "input": state})
    if isinstance(record, ModelRecord) and record.answer:
        record = replace(record, answer=replace(record.answer, messages=tuple(map(_said, record.answer.messages))))
    if isinstance(record, ModelRecord) and record.provider in _COUNT_APART and record.answer and record.answer.usage:
        usage = record.answer.usage
        cached = (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
        if usage.input_tokens is not None and usage.input_tokens == span.attributes.get(names.USAGE_INPUT_TOKENS):
            usage = replace(usage, input_tokens=usage.input_tokens + cached)
        return replace(record, answer=replace(record.answer, usage=usage))
    return record


def _of_failed(span: RawSpan) -> dict[str, Json]:
    """What the name says of a model call that raised: older versions write nothing else on its span."""
    operation, _, model = span.name.partition(" ")
    if span.attributes or operation not in genai_spans.MODEL_CALLS or not model:
        return {}
    failed = values.failure(span, ErrorCategory.MODEL) is not None
    return {names.OPERATION: operation, names.REQUEST_MODEL: model} if failed else {}


def _told_of_old(attributes: Attributes) -> tuple[dict[str, Json], Fidelity]:
    """The messages that versions before the conventions' names wrote as one text, under those names; how they came."""
    prompt, said = attributes.get(_OLD_PROMPT), attributes.get(_OLD_ANSWER)
    if names.INPUT_MESSAGES in attributes or not isinstance(prompt, str):
        return {}, Fidelity.WHOLE
    asked, state = _asked_of_old(prompt)
    parts = blocks.parts_of(said) + _calls_of_old(attributes)
    streamed = attributes.get("gen_ai.request.is_stream")
    told: dict[str, Json] = {names.INPUT_MESSAGES: json_text.plain(asked), names.REQUEST_STREAM: streamed}
    if parts:
        told[names.OUTPUT_MESSAGES] = [{"role": "assistant", "parts": parts}]
    return told, state


def _asked_of_old(prompt: str) -> tuple[list[Message], Fidelity]:
    """The messages of such a text: a line each, or all of them as a repr where one of them had no text."""
    found = _ROLE.split(prompt)
    each = list(zip(found[1::2], found[2::2], strict=True)) or [("user", prompt)]
    for _, text in reversed(each):
        if text.startswith("[{"):
            try:
                return list(messages.read_messages(reprs.parse(text))), Fidelity.WHOLE
            except ValueError:
                break
    return [_line(values.role(role), text.removesuffix("\n")) for role, text in each], Fidelity.RECONSTRUCTED


def _line(role: str, text: str) -> Message:
    if role == "tool":
        return {"role": role, "parts": [{"type": "tool_call_response", "id": None, "response": text}]}
    return {"role": role, "parts": blocks.parts_of(text)}


def _calls_of_old(attributes: Attributes) -> list[dict[str, Json]]:
    """The calls that an answer asked for: names, ids and arguments, each a list with commas."""
    called, identities = (attributes.get(key) for key in (names.TOOL_NAME, names.TOOL_CALL_ID))
    given = attributes.get("gen_ai.tool.args")
    if not isinstance(called, str) or not called or not isinstance(given, str):
        return []
    named = called.split(", ")
    known = identities.split(", ") if isinstance(identities, str) else []
    try:
        arguments = json_text.parse(f"[{given}]")
    except ValueError:
        arguments = None
    if not isinstance(arguments, list) or len(arguments) != len(named):
        return []
    ids = known if len(known) == len(named) else [None] * len(named)
    rows = zip(named, ids, arguments, strict=True)
    return [{"type": "tool_call", "id": one, "name": name, "arguments": given} for name, one, given in rows]


def _said(message: Message) -> Message:
    """The message without the word that stands beside tool calls where nothing was said."""
    parts = message["parts"]
    asks = any(part["type"] == "tool_call" for part in parts)
    if not asks or not any(part.get("content") == "None" for part in parts):
        return message
    return {**message, "parts": [part for part in parts if part.get("content") != "None"]}


def _given(attributes: Attributes) -> Attributes:
    return {key: value for key, value in attributes.items() if value not in _INVENTED.get(key, ())}
