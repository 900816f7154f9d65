"""Pipecat's own spans: calls with the conventions' names, and what was said under names of Pipecat's own.

Tools have no spans; their results, which Pipecat sends to models as JSON, stand in the next request.
"""

from __future__ import annotations

from dataclasses import replace

from spanreel import conventions as names
from spanreel.model import Json, Message
from spanreel.records import Record
from spanreel_collector.dialects import genai_spans, genai_variants, values
from spanreel_collector.dialects.content import messages as content
from spanreel_collector.span import RawSpan

NAME = "pipecat"

_INPUT, _OUTPUT, _TOOLS, _STREAM = "input", "output", "tools", "stream"
_NOT_GIVEN = "NOT_GIVEN"
"""What stands for a setting that nobody gave."""


def speaks(span: RawSpan) -> bool:
    """Whether Pipecat wrote the span of a model call."""
    return span.origin.scope == "pipecat" and names.OPERATION in span.attributes


def read(span: RawSpan) -> Record | None:
    """What the span says; None for what only turns speech into text and back."""
    attributes = span.attributes
    told: dict[str, Json] = {key: value for key, value in attributes.items() if value != _NOT_GIVEN}
    asked, _ = values.decode(attributes.get(_INPUT))
    said = values.text(attributes, _OUTPUT)
    if found := content.read_messages(asked):
        told[names.INPUT_MESSAGES] = [_with_results(message) for message in found]
    if said:
        told[names.OUTPUT_MESSAGES] = [{"role": "assistant", "parts": [{"type": "text", "content": said}]}]
    for key, own in ((names.TOOL_DEFINITIONS, _TOOLS), (names.REQUEST_STREAM, _STREAM)):
        if own in attributes:
            told[key] = attributes[own]
    return genai_spans.read(genai_variants.conventional(replace(span, attributes=told)))


def _with_results(message: Message) -> Message:
    """A message of a tool's with the text that its JSON is."""
    if message["role"] != "tool":
        return message
    return {**message, "parts": [_with_result(part) for part in message["parts"]]}


def _with_result(part: dict[str, Json]) -> dict[str, Json]:
    response = part.get("response")
    quoted = isinstance(response, str) and response.startswith('"')
    return {**part, "response": values.decode(response)[0]} if quoted else part
