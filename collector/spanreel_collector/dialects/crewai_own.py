"""CrewAI's own telemetry, which goes to its makers unless it is sent elsewhere: each span is a trace of its own.

Of a crew that is shared (``share_crew``) one span tells what was said, with all its tasks; all others are only counted.
"""

from __future__ import annotations

from typing import Any

from spanreel.model import Agent, ErrorCategory, Fidelity, Json, Message
from spanreel.records import Record, RunRecord
from spanreel_collector.dialects import values
from spanreel_collector.dialects.content.blocks import parts_of
from spanreel_collector.dialects.content.decoding import decode
from spanreel_collector.span import Attributes, RawSpan

NAME = "crewai"

_SCOPE, _CREW = "crewai.telemetry", "Crew Execution"


def speaks(span: RawSpan) -> bool:
    """Whether CrewAI's telemetry wrote the span."""
    return span.origin.scope == _SCOPE


def read(span: RawSpan) -> Record | None:
    """The run of a crew that says what was said; None of all that is only counted."""
    attributes = span.attributes
    answer = values.text(attributes, "crew_output")
    if span.name != _CREW or answer is None:
        return None
    tasks, agents = _objects(attributes, "crew_tasks"), _objects(attributes, "crew_agents")
    outputs = _objects(attributes, "crew_tasks_output")
    # A task tells its words with the places of its inputs, and its output tells them filled in.
    filled = {values.text(task, "id"): values.text(task, "description") for task in outputs}
    words = (filled.get(values.text(task, "id")) or values.text(task, "description") for task in tasks)
    asked = tuple(_said("user", text, None) for text in words if text)
    roles = {values.text(task, "id"): values.text(task, "agent_role") for task in tasks}
    answers = [
        _said("assistant", text, roles.get(values.text(task, "id")))
        for task in outputs
        if (text := values.text(task, "output"))
    ]
    if not answers or answers[-1]["parts"] != parts_of(answer):
        answers.append(_said("assistant", answer, None))
    names = {name for agent in agents if (name := values.text(agent, "role"))}
    error = values.failure(span, ErrorCategory.OTHER)
    return RunRecord(
        # A crew has no name; what only one agent works in is that one's run.
        agent=Agent(next(iter(names)) if len(names) == 1 else None),
        input=asked,
        output=tuple(answers),
        status=values.status_of(error),
        error=error,
        fidelity={} if asked else {"input": Fidelity.ABSENT},
    )


def _objects(attributes: Attributes, key: str) -> list[dict[str, Any]]:
    found: Json = decode(attributes.get(key))[0]
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _said(role: str, text: str, name: str | None) -> Message:
    message: Message = {"role": role, "parts": parts_of(text)}
    return {**message, "name": name} if name else message
