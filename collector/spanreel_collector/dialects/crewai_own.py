"""CrewAI's own telemetry, which goes to its makers unless it is sent elsewhere: each crew and task is a trace of its own.

Neither model calls nor tools' arguments are in it; what was said is, only where the crew is shared (``share_crew``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spanreel.model import Agent, ErrorCategory, Fidelity, Message, Record, RunRecord
from spanreel_collector.dialects import values
from spanreel_collector.dialects.content.messages import parts_of
from spanreel_collector.span import Attributes, RawLog, RawSpan

NAME = "crewai"

_SCOPE = "crewai.telemetry"
_CREW, _TASK = "Crew Execution", "Task Execution"


def speaks(span: RawSpan) -> bool:
    """Whether CrewAI's telemetry wrote the span."""
    return span.origin.scope == _SCOPE


def read(span: RawSpan) -> Record | None:
    """A crew's run, and a task's inside it, where they say what was said; None of all that is only counted."""
    attributes = span.attributes
    if span.name == _CREW and "crew_output" in attributes:
        tasks, _ = values.decode(attributes.get("crew_tasks"))
        asked = [task for task in tasks if isinstance(task, dict)] if isinstance(tasks, list) else []
        words = [text for task in asked if (text := values.text(task, "description"))]
        return _run(span, None, words, values.text(attributes, "crew_output"))
    if span.name == _TASK and "task_output" in attributes:
        words = [text for text in [values.text(attributes, "formatted_description")] if text]
        return _run(span, values.text(attributes, "agent_role"), words, values.text(attributes, "task_output"))
    return None


def gather(spans: Sequence[RawSpan], logs: Sequence[RawLog]) -> tuple[list[RawSpan], list[RawLog]]:
    """Tasks in the trace of the crew that ran them, inside its span: by the crew's id, and by time."""
    crews = [span for span in spans if speaks(span) and span.name == _CREW]
    return [_placed(span, crews) for span in spans], list(logs)


def trace_of(log: RawLog) -> str | None:
    """No log record is CrewAI's."""
    del log
    return None


def _placed(span: RawSpan, crews: Sequence[RawSpan]) -> RawSpan:
    if not crews or not speaks(span) or span.name != _TASK:
        return span
    around = (crew for crew in crews if _crew_of(crew.attributes) == _crew_of(span.attributes))
    crew = next((crew for crew in around if crew.start <= span.start and (crew.end == 0 or span.end <= crew.end)), None)
    return replace(span, trace_id=crew.trace_id, parent_id=crew.span_id) if crew is not None else span


def _crew_of(attributes: Attributes) -> str | None:
    return values.text(attributes, "crew_id")


def _run(span: RawSpan, agent: str | None, words: Sequence[str], answer: str | None) -> RunRecord:
    error = values.failure(span, ErrorCategory.OTHER)
    asked: tuple[Message, ...] = tuple({"role": "user", "parts": parts_of(text)} for text in words)
    output: tuple[Message, ...] = ({"role": "assistant", "parts": parts_of(answer)},) if answer else ()
    absent = {field: Fidelity.ABSENT for field, found in (("input", asked), ("output", output)) if not found}
    return RunRecord(
        agent=Agent(agent),
        input=asked,
        output=output,
        status=values.status_of(error),
        error=error,
        fidelity=absent,
    )
