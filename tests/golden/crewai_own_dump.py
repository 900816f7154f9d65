"""Makes `crewai_own.otlp.jsonl`: the telemetry that CrewAI 1.15 sends to its makers, of a crew that is shared.

It is read here and goes nowhere. Tools write no span of their own into it but a count:
``PYTHONPATH=src:tests python tests/golden/crewai_own_dump.py > tests/golden/crewai_own.otlp.jsonl``
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import redirect_stdout
from typing import Any

os.environ.update({"CREWAI_TRACING_ENABLED": "false", "OTEL_EXPORTER_OTLP_TIMEOUT": "1", "CREWAI_TESTING": "true"})

from crewai import Agent, BaseLLM, Crew, Task
from crewai.telemetry import Telemetry
from crewai.tools import tool
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from golden import librarian

SAID = iter(
    (
        'Thought: I look it up.\nAction: find_book\nAction Input: {"title": "Momo"}',
        "Thought: I know.\nFinal Answer: Momo is on shelf 4.",
        "Thought: I know.\nFinal Answer: Dear reader, Momo is on shelf 4.",
    )
)


class Canned(BaseLLM):  # type: ignore[misc] # in no environment of ours
    """A model that says what it is to say."""

    def call(self, messages: Any, *rest: Any, **also: Any) -> str:
        del messages, rest, also
        return next(SAID)

    def supports_function_calling(self) -> bool:
        return False


@tool("find_book")  # type: ignore[untyped-decorator] # the same
def find_book(title: str) -> str:
    """Look a book up in the catalogue."""
    return str(librarian.find_book(title))


def work() -> None:
    model = Canned(model="gpt-5")
    finder = Agent(role="librarian", goal="Find books.", backstory="You know each shelf.", llm=model, tools=[find_book])
    clerk = Agent(role="clerk", goal="Answer readers.", backstory="You are polite.", llm=model)
    tasks = [
        Task(description="Where is {title}?", expected_output="A shelf.", agent=finder),
        Task(description="Write to the reader.", expected_output="A letter.", agent=clerk),
    ]
    Crew(agents=[finder, clerk], tasks=tasks, share_crew=True, verbose=False).kickoff(inputs={"title": "Momo"})


lines = io.StringIO()
# Nothing but our own exporter is told; what it prints is kept apart from what the crew prints.
telemetry: Any = Telemetry()
telemetry.provider = TracerProvider(resource=telemetry.provider.resource)
telemetry.provider.add_span_processor(SimpleSpanProcessor(librarian.Lines()))
telemetry.trace_set = False
telemetry.set_tracer()
printed = sys.stdout
with redirect_stdout(lines):
    work()
printed.write("".join(line for line in lines.getvalue().splitlines(keepends=True) if line.startswith('{"resource')))
