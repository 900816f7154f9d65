"""Semantic Kernel's own spans, a scope a module: messages stand in log records, counts of caches in plain log lines."""

from __future__ import annotations

from dataclasses import replace

from spanreel import conventions as names
from spanreel.model import Json, Usage
from spanreel.records import ModelRecord, Record
from spanreel_collector.dialects import genai_spans, values
from spanreel_collector.dialects.content import reprs, tokens
from spanreel_collector.span import RawSpan

NAME = "semantic-kernel"

_SCOPE = "semantic_kernel"
_USAGE_LINE = "OpenAI usage: "
"""What a line of the handler's logger begins with; after it, the SDK's object as Python shows it."""
_OPERATIONS = {
    "chat.completions": "chat",
    "chat.streaming_completions": "chat",
    "text.completions": "text_completion",
    "text.streaming_completions": "text_completion",
}
"""What releases before 1.31 or so, and those of .NET, called the conventions' operations."""
_FUNCTION = "semantic_kernel.functions.kernel_function"
"""The scope of functions' spans, which said nothing but their names in these releases."""
_FINISH_REASON = "gen_ai.response.finish_reason"


def speaks(span: RawSpan) -> bool:
    """Whether Semantic Kernel wrote the span."""
    return span.origin.scope.partition(".")[0] == _SCOPE


def read(span: RawSpan) -> Record | None:
    """What the span says; None where it only groups others."""
    attributes = dict(span.attributes)
    reason = values.text(attributes, _FINISH_REASON)
    if reason is not None and names.RESPONSE_FINISH_REASONS not in attributes:
        # The member of an enumeration, as Python shows it.
        attributes[names.RESPONSE_FINISH_REASONS] = [reason.rpartition(".")[2].lower()]
    operation = values.text(attributes, names.OPERATION)
    if operation in _OPERATIONS:
        attributes[names.OPERATION] = _OPERATIONS[operation]
        if ".streaming" in operation:
            attributes.setdefault(names.REQUEST_STREAM, True)
    elif operation is None and span.origin.scope == _FUNCTION:
        attributes |= {names.OPERATION: names.EXECUTE_TOOL, names.TOOL_NAME: span.name}
    record = genai_spans.read(replace(span, attributes=attributes))
    if isinstance(record, ModelRecord) and record.answer is not None:
        return replace(record, answer=replace(record.answer, usage=_read_usage(span, record.answer.usage)))
    return record


def _read_usage(span: RawSpan, known: Usage | None) -> Usage | None:
    """The counts of the span, with those that only the handler's log line tells."""
    told = next((usage for log in span.logs if (usage := _of_line(log.body)) is not None), None)
    if told is None or known is None:
        return known or told
    return replace(
        known,
        cache_read_tokens=known.cache_read_tokens if known.cache_read_tokens is not None else told.cache_read_tokens,
        reasoning_tokens=known.reasoning_tokens if known.reasoning_tokens is not None else told.reasoning_tokens,
    )


def _of_line(body: Json) -> Usage | None:
    if not isinstance(body, str) or not body.startswith(_USAGE_LINE):
        return None
    try:
        return tokens.read(reprs.without_names(reprs.parse(body.removeprefix(_USAGE_LINE))))
    except ValueError:
        return None
