"""What is left of a span when content is off, ours and anybody's: names, ids, numbers and reasons.

Of ours the list of content is known (`fidelity`); of others only what is known to be no content stays.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from opentelemetry.util.types import AttributeValue

from spanreel import conventions as names
from spanreel.fidelity import CONTENT, without_content


def only_metadata(attributes: Mapping[str, AttributeValue]) -> dict[str, AttributeValue]:
    """The attributes of a span without content; what of ours is missing is marked absent."""
    return without_content({name: value for name, value in attributes.items() if _stays(name, value)})


def only_known(attributes: Mapping[str, Any] | None) -> dict[str, AttributeValue]:
    """The attributes of an event or a link without content."""
    known = {name: value for name, value in (attributes or {}).items() if _stays(name, value)}
    return {name: value for name, value in known.items() if name not in CONTENT}


def only_process(attributes: Mapping[str, AttributeValue]) -> dict[str, AttributeValue]:
    """The attributes of a resource without what a process was started with, and for whom."""
    return {name: value for name, value in attributes.items() if not _PERSONAL.match(name)}


def event_name(name: str) -> str:
    """The name of an event, where it is one; a whole sentence is content."""
    return name if _IDENTIFIER.fullmatch(name) else "event"


def _stays(name: str, value: Any) -> bool:
    if name in CONTENT or name.startswith("spanreel."):
        return True  # `without_content` knows
    if _PERSONAL.match(name):
        return False
    if isinstance(value, (bool, int, float)):
        return name.startswith(_COUNTS) or not _CONTENT_WORDS.intersection(name.lower().replace("-", ".").split("."))
    if isinstance(value, str) or _are_texts(value):
        return name in _NAMES or name.startswith(_PREFIXES)
    return False


def _are_texts(value: Any) -> bool:
    return isinstance(value, Sequence) and all(isinstance(item, str) for item in value)


_IDENTIFIER: Final = re.compile(r"[\w.:/-]{1,64}")
_PERSONAL: Final = re.compile(
    r"(?:enduser|user|process\.command|process\.owner|client\.address|langfuse\.user)(?:\.|_|$)"
)
_COUNTS: Final = (
    "http.",
    "gen_ai.response.",
    "gen_ai.usage.",
    "llm.token_count.",
    "llm.usage.",
    "llm.cost.",
    "gen_ai.request.",
    "ai.usage.",
)
_CONTENT_WORDS: Final = frozenset(
    {
        *("input", "inputs", "output", "outputs", "prompt", "prompts", "completion", "completions", "message"),
        *("messages", "argument", "arguments", "args", "kwargs", "parameters", "params", "result", "results"),
        *("response", "request", "content", "contents", "value", "values", "metadata", "body", "headers", "data"),
        *("embedding", "embeddings", "vector", "document", "documents", "retrieval"),
    }
)
"""Under a name with one of these words a number is what somebody said."""
_PREFIXES: Final = (
    *("otel.", "telemetry.", "service.", "network.", "rpc.", "code.function", "code.namespace", "openai.api."),
    *("server.", "k8s.", "cloud.", "host.", "container.", "deployment."),
)
_NAMES: Final = frozenset(
    {
        *(names.OPERATION, names.PROVIDER, names.CONVERSATION_ID, names.AGENT_NAME, names.AGENT_ID),
        *(names.AGENT_VERSION, names.REQUEST_MODEL, names.REQUEST_ENCODING_FORMATS, names.REQUEST_REASONING_LEVEL),
        *(names.REQUEST_PREVIOUS_RESPONSE_ID, names.OUTPUT_TYPE, names.RESPONSE_ID, names.RESPONSE_MODEL),
        *(names.RESPONSE_FINISH_REASONS, names.TOOL_NAME, names.TOOL_TYPE, names.TOOL_CALL_ID, names.ERROR_TYPE),
        *("gen_ai.system", "gen_ai.token.type", "gen_ai.data_source.id", "gen_ai.workflow.name"),
        *("openai.request.service_tier", "openai.response.service_tier", "openai.response.system_fingerprint"),
        *("openinference.span.kind", "llm.model_name", "llm.provider", "llm.system", "llm.request.type"),
        *("llm.finish_reason", "embedding.model_name", "reranker.model_name", "tool.name", "agent.name", "session.id"),
        *("graph.node.id", "graph.node.name", "graph.node.parent_id", "input.mime_type", "output.mime_type"),
        *("traceloop.span.kind", "traceloop.entity.name", "traceloop.entity.path", "traceloop.entity.version"),
        *("traceloop.workflow.name", "traceloop.association.properties.session_id"),
        *("logfire.span_type", "logfire.level_num", "span.type", "agent_name", "model_name", "tool_name"),
        *("ai.operationId", "ai.model.id", "ai.model.provider", "ai.toolCall.name", "ai.toolCall.id"),
        *("ai.response.finishReason", "ai.response.id", "ai.response.model", "operation.name", "resource.name"),
        *(
            "mcp.method.name",
            "mcp.session.id",
            "mcp.protocol.version",
            "jsonrpc.request.id",
            "jsonrpc.protocol.version",
        ),
        *("http.method", "http.request.method", "http.route", "http.scheme", "url.scheme", "http.flavor"),
        *("exception.type", "exception.escaped", "thread.name", "db.system", "db.system.name", "messaging.system"),
    }
)
"""Attributes that hold names and ids."""
