"""llama-index's agents: which agent runs and which model answered stand beside, in the reprs of the run's steps."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from spanreel.model import Json, Message
from spanreel_collector.dialects import values
from spanreel_collector.dialects.content import reprs
from spanreel_collector.dialects.openinference import messages
from spanreel_collector.span import RawLog, RawSpan

_SCOPE = "openinference.instrumentation.llama_index"
_TAKES_ANSWER = ".parse_agent_output"
_MODEL, _AGENT = "llm.response.model_name", "agent.name"
CURRENT_AGENT = re.compile(r"current_agent_name='([^']+)'")
"""The only words of llama-index's that say who runs."""
_Said = tuple[str, tuple[str, ...]]
"""The text of an answer, and the ids of the tool calls that it asks for."""


def trace_of(log: RawLog) -> str | None:
    """llama-index writes no logs."""
    del log
    return None


def gather(spans: Sequence[RawSpan], logs: Sequence[RawLog]) -> tuple[list[RawSpan], list[RawLog]]:
    """The spans: runs with their agent, model calls with who answered where one answer can be theirs alone."""
    agents = _agents(spans)
    named = [
        replace(span, attributes={_AGENT: agents[span.span_id], **span.attributes}) if span.span_id in agents else span
        for span in spans
    ]
    return _with_models(named), list(logs)


def _agents(spans: Sequence[RawSpan]) -> dict[str, str]:
    """The agent that the first step inside a span names: it is the one that the span is a run of."""
    found: dict[str, str] = {}
    steps = (span for span in spans if span.origin.scope == _SCOPE and span.parent_id and "." in span.name)
    for step in sorted(steps, key=lambda step: step.start):
        for key in ("input.value", "output.value"):
            named = CURRENT_AGENT.search(str(step.attributes.get(key)))
            if named is not None and step.parent_id is not None:
                found.setdefault(step.parent_id, named.group(1))
    return found


def _with_models(spans: list[RawSpan]) -> list[RawSpan]:
    told = _told(spans)
    if not told:
        return spans
    parents = {span.span_id: span.parent_id for span in spans}
    runs = {run for run, _ in told}
    calls: dict[tuple[str | None, _Said], list[RawSpan]] = defaultdict(list)
    for span in spans:
        said = _said(messages.read(span.attributes, "llm.output_messages")[0]) if span.origin.scope == _SCOPE else None
        if said is not None:
            calls[_run_around(span, parents, runs), said].append(span)
    models: dict[str, str] = {}
    for key, named in told.items():
        # Answers in the same words are told apart by nothing: they must all be here, and of one model.
        if len(named) == len(calls[key]) and len(set(named)) == 1:
            models.update({span.span_id: named[0] for span in calls[key] if named[0]})
    return [
        replace(span, attributes={_MODEL: models[span.span_id], **span.attributes}) if span.span_id in models else span
        for span in spans
    ]


def _told(spans: Sequence[RawSpan]) -> dict[tuple[str | None, _Said], list[str]]:
    """The models that the steps name, "" where one names none, by the run that the step is in and what was answered."""
    told: dict[tuple[str | None, _Said], list[str]] = defaultdict(list)
    for span in spans:
        if span.origin.scope != _SCOPE or not span.name.endswith(_TAKES_ANSWER):
            continue
        event = values.members(span.attributes.get("input.value")).get("ev")
        try:
            output = reprs.parse(event) if isinstance(event, str) else None
        except ValueError:
            continue
        if isinstance(output, dict) and (said := _said_of_message(output.get("response"))) is not None:
            raw = output.get("raw")
            told[span.parent_id, said].append((values.text(raw, "model") or "") if isinstance(raw, dict) else "")
    return told


def _run_around(span: RawSpan, parents: dict[str, str | None], runs: set[str | None]) -> str | None:
    """The run that the call's own step is in: one of those whose steps name models."""
    above, seen = span.parent_id, set[str]()
    while above is not None and above not in runs and above not in seen:
        seen.add(above)
        above = parents.get(above)
    return above


def _said_of_message(message: Json) -> _Said | None:
    """What llama-index's own message says: in blocks, older ones with OpenAI's tool calls beside them."""
    if not isinstance(message, dict):
        return None
    blocks = [block for block in _list(message.get("blocks")) if isinstance(block, dict)]
    texts = [block["text"] for block in blocks if isinstance(block.get("text"), str)]
    beside = message.get("additional_kwargs")
    asked = [block.get("tool_call_id") for block in blocks if "tool_call_id" in block] or [
        call.get("id")
        for call in _list(beside.get("tool_calls") if isinstance(beside, dict) else None)
        if isinstance(call, dict)
    ]
    return _together(texts, asked)


def _said(answer: tuple[Message, ...]) -> _Said | None:
    """What the messages of a model call's span say."""
    parts = [part for message in answer for part in message["parts"]]
    texts = [part["content"] for part in parts if part["type"] == "text" and isinstance(part.get("content"), str)]
    return _together(texts, [part.get("id") for part in parts if part["type"] == "tool_call"])


def _together(texts: list[str], ids: list[Json]) -> _Said | None:
    text, known = "".join(texts), tuple(one for one in ids if isinstance(one, str) and one)
    return (text, known) if text or known else None


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
