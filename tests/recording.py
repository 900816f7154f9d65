"""What the tests of recording share: spans in memory, behind a provider of the user's own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import spanreel


class Recording:
    """The spans that have ended, by kind."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("the user's own")

    @property
    def spans(self) -> list[ReadableSpan]:
        """All spans that have ended, in the order of their ends."""
        return list(self.exporter.get_finished_spans())

    def of(self, operation: str) -> list[ReadableSpan]:
        """The spans of one operation."""
        return [span for span in self.spans if attribute(span, "gen_ai.operation.name") == operation]

    def one(self, operation: str) -> ReadableSpan:
        """The only span of an operation."""
        found = self.of(operation)
        assert len(found) == 1, [span.name for span in self.spans]
        return found[0]

    def named(self, name: str) -> ReadableSpan:
        """The only span of a name."""
        found = [span for span in self.spans if span.name == name]
        assert len(found) == 1, [span.name for span in self.spans]
        return found[0]

    def tree(self) -> list[str]:
        """All spans but run_started as indented lines, children in the order of their starts."""
        shown = [span for span in self.spans if attribute(span, "gen_ai.operation.name") != "run_started"]
        ids = {span.context.span_id for span in shown if span.context}
        lines: list[str] = []

        def walk(parent: int | None, depth: int) -> None:
            children = [
                s for s in shown if (s.parent.span_id if s.parent and s.parent.span_id in ids else None) == parent
            ]
            for child in sorted(children, key=lambda span: span.start_time or 0):
                lines.append("  " * depth + child.name)
                assert child.context is not None
                walk(child.context.span_id, depth + 1)

        walk(None, 0)
        return lines


def attribute(span: ReadableSpan, name: str) -> Any:
    """An attribute of a span, None where it is absent."""
    return (span.attributes or {}).get(name)


def content(span: ReadableSpan, name: str) -> Any:
    """A content attribute of a span, decoded."""
    text = attribute(span, name)
    return json.loads(text) if text is not None else None


@contextmanager
def recording(**settings: Any) -> Iterator[Recording]:
    """Record into memory for the length of a block."""
    made = Recording()
    spanreel.instrument(tracer_provider=made.provider, **settings)
    try:
        yield made
    finally:
        spanreel.uninstrument()


def recorded_in(file: Path, work: Callable[[], Any]) -> Any:
    """What the work gives, recorded into a file."""
    spanreel.instrument(settings=spanreel.read_settings({"SPANREEL_FILE": str(file), "SPANREEL_LOG": "off"}))
    try:
        return work()
    finally:
        assert spanreel.flush()
        spanreel.uninstrument()
