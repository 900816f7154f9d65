"""Ways of writing agent spans, each a module with ``speaks(span)`` and ``read(span)``; read only, never guessing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from spanreel.records import Record
from spanreel_collector.dialects import (
    agent_framework,
    anthropic_sdk,
    anvia,
    autogen,
    claude_code,
    codex,
    crewai_own,
    decorated,
    genai,
    google_adk,
    haystack,
    kitaru,
    langfuse,
    langsmith,
    litellm,
    livekit,
    logfire,
    mastra,
    mcp,
    mlflow,
    openai_agents_contrib,
    openinference,
    openlit,
    pipecat,
    pydantic_ai,
    semantic_kernel,
    spanreel,
    spring_ai,
    strands,
    traceloop,
    traceloop_js,
    vercel,
    vercel_otel,
)
from spanreel_collector.dialects.openinference import llama_index
from spanreel_collector.span import RawLog, RawSpan


class Dialect(Protocol):
    """One way of writing agent spans."""

    NAME: str

    def speaks(self, span: RawSpan) -> bool:
        """Whether the span is written in this dialect.

        Told by its scope, its name, and which attributes it has, of which types, and by nothing else: what `find`
        finds is remembered by these.
        """
        ...

    def read(self, span: RawSpan) -> Record | None:
        """What the span says; None where it only groups others."""
        ...


# Who speaks first is believed first: our own spans carry the GenAI conventions' names too, and what a library says by
# itself is more exact than what a processor of OpenInference made of it.
DIALECTS: tuple[Dialect, ...] = (
    spanreel,
    crewai_own,
    haystack,
    langfuse,
    langsmith,
    decorated,
    spring_ai,
    mlflow,
    litellm,
    openai_agents_contrib,
    openlit,
    livekit,
    pipecat,
    claude_code,
    codex,
    kitaru,
    anvia,
    mastra,
    mcp,
    anthropic_sdk,
    vercel,
    vercel_otel,
    pydantic_ai,
    strands,
    google_adk,
    autogen,
    semantic_kernel,
    agent_framework,
    logfire,
    traceloop,
    genai,
    openinference,
)

# Libraries that write the GenAI conventions' spans in a way of their own, and read those names too: where one of them
# speaks, the conventions by themselves have nothing to add.
OF_THE_CONVENTIONS: tuple[Dialect, ...] = (
    decorated,
    spring_ai,
    pydantic_ai,
    langsmith,
    mlflow,
    litellm,
    openai_agents_contrib,
    openlit,
    livekit,
    pipecat,
    mastra,
    mcp,
    anthropic_sdk,
    vercel_otel,
    strands,
    google_adk,
    autogen,
    semantic_kernel,
    agent_framework,
    logfire,
    traceloop,
)


class Gatherer(Protocol):
    """A dialect that says on one span, or in logs, what another is to be read with."""

    def gather(self, spans: Sequence[RawSpan], logs: Sequence[RawLog]) -> tuple[list[RawSpan], list[RawLog]]:
        """The spans with what stands beside them, those that only logs tell of included; and the logs that are left."""
        ...

    def trace_of(self, log: RawLog) -> str | None:
        """The trace of a log record that names none, if it is this dialect's; the same for the same run's records."""
        ...


GATHERERS: tuple[Gatherer, ...] = (
    claude_code,
    codex,
    mastra,
    anvia,
    autogen,
    logfire,
    langsmith,
    llama_index,
    traceloop_js,
)


def linked(span: RawSpan) -> frozenset[str]:
    """Other traces that are one with the span's: of a library that gives each message between agents its own."""
    return autogen.linked(span) if span.links else codex.linked(span)


def place(log: RawLog) -> RawLog:
    """The log record in the trace that it is to be read in; one of no known dialect stays where it is."""
    if log.trace_id is not None:
        # Of Codex's, some name the trace of the program's own work, and most none at all.
        return replace(log, trace_id=codex.trace_of(log) or log.trace_id)
    traces = (trace for gatherer in GATHERERS if (trace := gatherer.trace_of(log)) is not None)
    return replace(log, trace_id=next(traces, None))


def gather(spans: Sequence[RawSpan], logs: Sequence[RawLog]) -> tuple[list[RawSpan], list[RawLog]]:
    """Spans of whole traces with what their dialects put elsewhere, to be read; and the logs that are left."""
    gathered, left = list(spans), [place(log) for log in logs]
    for gatherer in GATHERERS:
        gathered, left = gatherer.gather(gathered, left)
    return gathered, left


_found: dict[tuple[Any, ...], tuple[Dialect, ...]] = {}
"""What `find` found, by all that tells a dialect; spans are of a few kinds, which come again and again."""
_MOST_FOUND = 4096


def find(span: RawSpan) -> tuple[Dialect, ...]:
    """The dialects that a span is written in; ours alone where it is ours."""
    origin, attributes = span.origin, span.attributes
    kind = (origin.scope, origin.scope_version, span.name, *attributes, *map(type, attributes.values()))
    found = _found.get(kind)
    if found is None:
        if len(_found) >= _MOST_FOUND:
            _found.clear()
        found = _found[kind] = _speaking(span)
    return found


def _speaking(span: RawSpan) -> tuple[Dialect, ...]:
    found = tuple(dialect for dialect in DIALECTS if dialect.speaks(span))
    if spanreel in found:
        return (spanreel,)
    if any(dialect in OF_THE_CONVENTIONS for dialect in found):
        return tuple(dialect for dialect in found if dialect is not genai)
    return found or ((genai,) if genai.means(span) else ())
