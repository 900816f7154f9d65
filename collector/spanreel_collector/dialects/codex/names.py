"""What Codex calls its events, and how they are told from others'."""

from __future__ import annotations

from typing import Any, Final

from spanreel.model import Json
from spanreel_collector.dialects import values
from spanreel_collector.dialects.content import event_spans
from spanreel_collector.span import Attributes, Origin, RawLog

KIND: Final = "spanreel.codex.kind"
"""What `gather` puts on a span that tells of the agent: ``run``, ``model`` or ``tool``."""
ASKED: Final = "spanreel.codex.asked"
"""What `gather` puts on a model call: the tool calls that followed it, each by its event's attributes."""

_EVENT = "codex."
_SCOPES = ("codex_", "codex-")
_REFUSED = ("denied", "abort", "timed_out", "timedout")


def is_ours(origin: Origin) -> bool:
    """Whether Codex wrote what has this origin: its events' scope is a module's name, its spans' the program's."""
    return origin.scope.startswith(_SCOPES)


def event_name(log: RawLog) -> str:
    """The event's name without its prefix; empty where it is no event of the agent."""
    name = values.text(log.attributes, "event.name") or log.event_name
    return name.removeprefix(_EVENT) if name.startswith(_EVENT) else ""


def conversation(attributes: Attributes) -> str | None:
    """The conversation's id."""
    return values.text(attributes, "conversation.id")


def is_refused(attributes: Attributes) -> bool:
    """Whether a decision kept the tool call from running."""
    return str(attributes.get("decision")).lower().startswith(_REFUSED)


def says(value: Json, word: str) -> bool:
    """Whether a flag, which may be text, says this word."""
    return isinstance(value, bool | str) and str(value).lower() == word


def digest(*texts: Any) -> str:
    """An id made of these."""
    return event_spans.digest("codex", *texts)
