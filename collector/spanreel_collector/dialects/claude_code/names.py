"""What Claude Code calls its events and spans, and how they are told from others'."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spanreel_collector.dialects import values
from spanreel_collector.dialects.content import event_spans
from spanreel_collector.span import RawLog, RawSpan

BODY = "claude_code."
"""What the names of spans and the bodies of events begin with."""
CALLS = ("api_request", "api_error")
"""Events that say that a model call has ended."""
SUBAGENT = "agent:"
"""What the source of a sub-agent's model calls begins with."""

_SCOPE = "com.anthropic.claude_code"


def event_name(log: RawLog) -> str:
    """The event's name without its prefix."""
    name = log.event_name or values.text(log.attributes, "event.name")
    return (name or (log.body if isinstance(log.body, str) else "")).removeprefix(BODY)


def is_ours(scope: str, body: Any) -> bool:
    """Whether Claude Code wrote a log record of this scope and body."""
    return scope.startswith(_SCOPE) or (isinstance(body, str) and body.startswith(BODY))


def kind_of(span: RawSpan) -> Any:
    """What a span is, by an attribute of its own."""
    return span.attributes.get("span.type")


def text_of(attributes: Mapping[str, Any], key: str) -> str:
    """The text under a key; empty where there is none."""
    return values.text(attributes, key) or ""


def digest(*texts: str) -> str:
    """An id made of these texts."""
    return event_spans.digest("claude-code", *texts)
