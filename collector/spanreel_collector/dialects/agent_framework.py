"""Microsoft Agent Framework's own spans: the GenAI conventions, and workflows, which are no operation of theirs."""

from __future__ import annotations

from spanreel.model import ErrorCategory, Fidelity
from spanreel.records import Record, RunRecord
from spanreel_collector.dialects import genai_spans, values
from spanreel_collector.span import RawSpan

NAME = "agent-framework"

_SCOPE = "agent_framework"
_WORKFLOW = "workflow.run"


def speaks(span: RawSpan) -> bool:
    """Whether the Agent Framework wrote the span."""
    return span.origin.scope.partition(".")[0] == _SCOPE


def read(span: RawSpan) -> Record | None:
    """What the span says; None for the steps of a workflow, which only group.

    A workflow's run is one request, whose agents are runs inside; its name, made up or not, is no agent's.
    """
    if span.name.partition(" ")[0] != _WORKFLOW:
        return genai_spans.read(span)
    error = values.failure(span, ErrorCategory.OTHER)
    absent = dict.fromkeys(("input", "output"), Fidelity.ABSENT)
    return RunRecord(error=error, status=values.status_of(error), fidelity=absent)
