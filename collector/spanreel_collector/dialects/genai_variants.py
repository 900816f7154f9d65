"""What hand-written spans and libraries call otherwise than the GenAI conventions do, put into the conventions' names.

An operation by another word, or named by nothing but what stands beside it; messages, tools' arguments and results
under names of before the conventions had any. Names of the conventions come first.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from spanreel import conventions as names
from spanreel.model import Json
from spanreel_collector.dialects import genai_spans, values
from spanreel_collector.dialects.content import indexed_messages
from spanreel_collector.span import Attributes, RawSpan

_WORDS = {
    "chat": (
        *("chat_completion", "chat_completions", "chat_model", "completions", "completion", "generate", "generation"),
        *("generate_text", "stream_text", "generate_object", "stream_object", "message", "messages", "response"),
        *("responses", "converse", "converse_stream", "invoke_model", "llm", "llm_call", "model", "model_call"),
        *("inference",),
    ),
    "embeddings": ("embedding", "embed"),
    "rerank": ("reranking", "reranker"),
    names.EXECUTE_TOOL: (
        *(
            "tool",
            "tool_call",
            "tool_execution",
            "call_tool",
            "run_tool",
            "invoke_tool",
            "function_call",
            "mcp_tool_call",
        ),
    ),
    names.INVOKE_AGENT: ("agent", "agent_run", "agent_call", "run_agent", "execute_agent", "agent_invocation"),
    "invoke_workflow": ("workflow", "run_workflow"),
}
_OPERATIONS = {word: operation for operation, words in _WORDS.items() for word in words}
_BETWEEN = re.compile(r"[\s.:-]+")
_TODAY = {
    names.INPUT_MESSAGES: ("gen_ai.prompt", "gen_ai.request.messages", "gen_ai.input"),
    names.OUTPUT_MESSAGES: ("gen_ai.completion", "gen_ai.response.messages", "gen_ai.response.text", "gen_ai.output"),
    names.TOOL_DEFINITIONS: ("gen_ai.request.available_tools", "gen_ai.request.tools", "gen_ai.tools"),
    names.TOOL_CALL_ARGUMENTS: ("gen_ai.tool.arguments", "gen_ai.tool.input", "gen_ai.tool.call.input"),
    names.TOOL_CALL_RESULT: ("gen_ai.tool.result", "gen_ai.tool.output", "gen_ai.tool.call.output"),
}
_INDEXED = {
    names.INPUT_MESSAGES: ("gen_ai.prompt", "user"),
    names.OUTPUT_MESSAGES: ("gen_ai.completion", "assistant"),
}
_OF_TOOLS = {names.TOOL_CALL_ARGUMENTS: ".tool.call.arguments", names.TOOL_CALL_RESULT: ".tool.call.result"}
"""How names of a library's own end that has these values under its name instead of the conventions'."""
_ASKED_FOR = "gen_ai.response.tool_calls"
"""Where Sentry puts what an answer asks of tools, beside its text."""
_OTHERS = frozenset({_ASKED_FOR, *(key for keys in _TODAY.values() for key in keys)})
_BEGINNINGS = tuple(f"{prefix}.0" for prefix, _ in _INDEXED.values())
_OF_ANSWERS = (names.RESPONSE_ID, names.RESPONSE_FINISH_REASONS, "gen_ai.response.finish_reason")
_MODELS = (names.REQUEST_MODEL, names.RESPONSE_MODEL)
_COUNTS = "gen_ai.usage."


def is_call(span: RawSpan) -> bool:
    """Whether a span is a call or a run, though it names no operation of the conventions."""
    return _operation(span) in genai_spans.KNOWN


def conventional(span: RawSpan) -> RawSpan:
    """The span in the names of the conventions; itself where it has no others."""
    attributes = span.attributes
    found: dict[str, Json] = {}
    operation = _operation(span)
    if operation is not None and operation != attributes.get(names.OPERATION):
        found[names.OPERATION] = operation
    if _has_others(tuple(attributes)):
        found.update(_of_others(attributes))
    if names.TOOL_NAME in attributes:
        found.update(_of_ones_own(attributes, found))
    return replace(span, attributes={**attributes, **found}) if found else span


def _of_others(attributes: Attributes) -> dict[str, Json]:
    """What the conventions have names for, under the names that stand for these."""
    found: dict[str, Json] = {}
    for name, keys in _TODAY.items():
        if attributes.get(name) is None:
            found.update((name, attributes[key]) for key in keys[::-1] if attributes.get(key) is not None)
    for name, (prefix, role) in _INDEXED.items():
        if attributes.get(name) is None and any(key.startswith(prefix + ".0") for key in attributes):
            found[name] = [*indexed_messages.read(attributes, prefix, role)]
    if attributes.get(_ASKED_FOR) is not None and names.OUTPUT_MESSAGES not in attributes:
        found[names.OUTPUT_MESSAGES] = [_asking(found.get(names.OUTPUT_MESSAGES), attributes[_ASKED_FOR])]
    return found


def _of_ones_own(attributes: Attributes, found: Attributes) -> dict[str, Json]:
    """A tool's values that a library puts under its own name, as Flue does with those that are no objects."""
    missing = [name for name in _OF_TOOLS if attributes.get(name) is None and name not in found]
    told = ((name, value) for name in missing for key, value in attributes.items() if key.endswith(_OF_TOOLS[name]))
    return {name: value for name, value in told if value is not None}


@lru_cache(maxsize=4096)
def _has_others(keys: tuple[str, ...]) -> bool:
    """Whether any name of a span's attributes stands for one of the conventions'; spans are of a few kinds."""
    return any(key in _OTHERS or key.startswith(_BEGINNINGS) for key in keys)


def _operation(span: RawSpan) -> str | None:
    """The operation: as it is named, by a word that means the same, or by what only one kind of span has."""
    attributes = span.attributes
    named = genai_spans.operation_of(span)
    if named is None or named in genai_spans.KNOWN:
        return named
    given = attributes.get(names.OPERATION)
    word = _BETWEEN.sub("_", str(named if given is None else given).strip().lower())
    known = word if word in genai_spans.KNOWN else _OPERATIONS.get(word)
    if known is not None and (given is not None or _has_content(attributes)):
        return known
    if given is not None:
        # Other words are allowed for operations of one's own; that a model answered is told beside it.
        return "chat" if _of_model(attributes) and any(key in attributes for key in _OF_ANSWERS) else str(given)
    return _unnamed(attributes)


def _unnamed(attributes: Attributes) -> str | None:
    """What a span is that names no operation at all, neither by attribute nor in its name."""
    if any(key in attributes for key in _OF_ANSWERS):
        return "chat"
    if isinstance(attributes.get(names.TOOL_NAME), str) and not _of_model(attributes):
        return names.EXECUTE_TOOL
    if isinstance(attributes.get(names.AGENT_NAME), str):
        return names.INVOKE_AGENT
    return "chat" if _of_model(attributes) and _has_content(attributes) else None


def _of_model(attributes: Attributes) -> bool:
    return any(isinstance(attributes.get(key), str) for key in _MODELS)


def _has_content(attributes: Attributes) -> bool:
    """Whether messages, counts, or a tool's values stand on the span."""
    keys = [*_TODAY, *(key for several in _TODAY.values() for key in several)]
    told = any(attributes.get(key) is not None for key in keys)
    return told or any(key.startswith((_COUNTS, "gen_ai.prompt.0", "gen_ai.completion.0")) for key in attributes)


def _asking(text: Json, calls: Json) -> dict[str, Json]:
    asked, _ = values.decode(calls)
    said, _ = values.decode(text)
    words = next((one for one in said if isinstance(one, str)), "") if isinstance(said, list) else said
    return {"role": "assistant", "content": words or "", "tool_calls": asked if isinstance(asked, list) else [asked]}
