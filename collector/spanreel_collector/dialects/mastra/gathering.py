"""A model call of Mastra's, gathered from its spans: generation, step, inference, chunks, and the agent around them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spanreel import conventions as names
from spanreel.model import Json
from spanreel_collector.dialects import values
from spanreel_collector.dialects.content import costs
from spanreel_collector.dialects.mastra import wire
from spanreel_collector.dialects.mastra.orphans import GENERATIONS, TYPE, adopt
from spanreel_collector.span import RawLog, RawSpan

ATTRIBUTES = "mastra.attributes"
"""A span's attributes as `getTrace` has them; the exporter knows names for some only."""
GATHERED = "spanreel.gathered"
"""What stands around a model call, on the span that is read as it."""

_INFERENCE, _STEP = "model_inference", "model_step"
_USAGE = "gen_ai.usage."
_OF_THE_LAST = (names.RESPONSE_FINISH_REASONS, names.RESPONSE_MODEL, names.RESPONSE_ID)
"""What a generation says of its last call where its calls say nothing of it themselves."""
_DEEPEST = 64
_RENAMED = {
    "gen_ai.tool.input": "gen_ai.tool.call.arguments",
    "gen_ai.tool.output": "gen_ai.tool.call.result",
    "gen_ai.usage.cached_input_tokens": "gen_ai.usage.cache_read.input_tokens",
    "agent.instructions": "gen_ai.system_instructions",
    "agent.available_tools": "gen_ai.tool.definitions",
}
_OF_STEPS = {
    "id": "gen_ai.response.id",
    "modelId": "gen_ai.response.model",
    "headers": "mastra.metadata.headers",
    "body": "mastra.metadata.body",
}


def trace_of(log: RawLog) -> str | None:
    """Mastra's logs tell of no calls."""
    del log
    return None


def gather(spans: Sequence[RawSpan], logs: Sequence[RawLog]) -> tuple[list[RawSpan], list[RawLog]]:
    """The spans, each model call's innermost with what stands on those around it."""
    if not any(TYPE in span.attributes for span in spans):
        return list(spans), list(logs)
    spans = adopt([_renamed(span) if TYPE in span.attributes else span for span in spans])
    tree = _tree(spans)
    calls = _calls(spans, tree)
    numbers: dict[tuple[str, str], int] = {}
    gathered: dict[tuple[str, str], dict[str, Any]] = {}
    for span in sorted(calls, key=lambda span: span.start):
        around = next((above for above in tree.above(span) if _type(above) in GENERATIONS), None)
        key = (span.trace_id, around.span_id if around is not None else span.span_id)
        numbers[key] = numbers.get(key, -1) + 1
        gathered[span.trace_id, span.span_id] = _facts(span, around or span, numbers[key], tree)
    _share_usage(calls, gathered, tree)
    return [_with(span, gathered.get((span.trace_id, span.span_id))) for span in spans], list(logs)


def _renamed(span: RawSpan) -> RawSpan:
    """The span by today's names; before 1.0 the exporter had others, and some without any prefix."""
    attributes = dict(span.attributes)
    kind = attributes[TYPE]
    for side in ("input", "output"):
        if side in attributes:
            attributes.setdefault(f"mastra.{kind}.{side}", attributes.pop(side))
    for old, new in _RENAMED.items():
        if old in attributes:
            attributes.setdefault(new, attributes.pop(old))
    for old, new in _OF_STEPS.items():
        if kind == _STEP and old in attributes:
            attributes.setdefault(new, attributes.pop(old))
    return replace(span, attributes=attributes)


@dataclass(frozen=True, slots=True)
class _Tree:
    """Spans by trace and id, the chunks in each, and what each tool was described as."""

    spans: Mapping[tuple[str, str], RawSpan]
    chunks: Mapping[tuple[str, str], list[RawSpan]]
    described: Mapping[str | None, Json]

    def above(self, span: RawSpan) -> Iterator[RawSpan]:
        """The spans around this one, innermost first."""
        for _ in range(_DEEPEST):
            parent = self.spans.get((span.trace_id, span.parent_id or ""))
            if parent is None or parent is span:
                return
            yield parent
            span = parent


def _tree(spans: Sequence[RawSpan]) -> _Tree:
    chunks: dict[tuple[str, str], list[RawSpan]] = {}
    described: dict[str | None, Json] = {}
    for span in spans:
        if _type(span) == "model_chunk":
            chunks.setdefault((span.trace_id, span.parent_id or ""), []).append(span)
        if description := span.attributes.get("gen_ai.tool.description"):
            described[values.text(span.attributes, "gen_ai.tool.name")] = description
    return _Tree({(span.trace_id, span.span_id): span for span in spans}, chunks, described)


def _with(span: RawSpan, facts: dict[str, Any] | None) -> RawSpan:
    return span if facts is None else replace(span, attributes={**span.attributes, GATHERED: facts})


def _type(span: RawSpan) -> Any:
    return span.attributes.get(TYPE)


def _calls(spans: Sequence[RawSpan], tree: _Tree) -> list[RawSpan]:
    """The spans that are read as model calls: inferences; where a version has none, steps; else generations."""
    holding: set[tuple[str, str]] = set()
    for span in spans:
        if _type(span) in (_INFERENCE, _STEP):
            holding.update(
                (above.trace_id, above.span_id)
                for above in tree.above(span)
                if _type(above) in (*GENERATIONS, *([_STEP] if _type(span) == _INFERENCE else []))
            )
    kinds = (_INFERENCE, _STEP, *GENERATIONS)
    return [span for span in spans if _type(span) in kinds and (span.trace_id, span.span_id) not in holding]


def _facts(span: RawSpan, around: RawSpan, number: int, tree: _Tree) -> dict[str, Any]:
    """What a model call is read with: messages, answer, tools, and numbers that stand further out only."""
    step = next((above for above in (span, *tree.above(span)) if _type(above) == _STEP), span)
    agent = next((above for above in tree.above(span) if _type(above) == "agent_run"), None)
    context = _json(around, "input")
    if isinstance(context, dict):
        context = context.get("messages")
    # A later step's own input is a rendering for people; what is new in it is in the answer and tools before.
    rendered = _json(step, "input")
    first = number == 0
    if not isinstance(context, list):
        context = values.decoded(around.attributes, names.INPUT_MESSAGES)  # the exporter's name before 1.3 or so
    given = context if isinstance(context, list) else rendered if isinstance(rendered, list) else None
    sent = wire.read_sent(step)
    facts = _outer_facts(span, step, around)
    return {
        "first": first or sent is not None,
        "sent": sent,
        "input": given if first and sent is None else None,
        "output": _output(span, step),
        "reasoning": _reasoning(span, around, tree, alone=span is around),
        "tools": _tools(span, agent, tree),
        "error": _failure(span, step, tree),
        "streamed": wire.is_streamed(step),
        "facts": {**facts, **_missing({**span.attributes, **facts}, wire.read_response(step))},
    }


def _missing(known: Mapping[str, Json], told: dict[str, Json]) -> dict[str, Json]:
    """What of the told facts is not known already; token counts come from one source."""
    counted = any(name.startswith(_USAGE) for name in known)
    return {
        name: value for name, value in told.items() if name not in known and not (counted and name.startswith(_USAGE))
    }


def _json(span: RawSpan, side: str) -> Json:
    return values.decoded(span.attributes, f"mastra.{_type(span)}.{side}")


def _output(span: RawSpan, step: RawSpan) -> Json:
    """The fullest output: the exporter leaves tool calls out of an inference's own."""
    for of in (step, span):
        found = _json(of, "output")
        if isinstance(found, dict | str) and found:
            return found
    messages = values.decoded(span.attributes, "gen_ai.output.messages")
    first = messages[0] if isinstance(messages, list) and messages else None
    parts = first.get("parts") if isinstance(first, dict) else None
    texts = [part.get("content") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return {"text": "".join(text for text in texts if isinstance(text, str))} if isinstance(parts, list) else None


def _reasoning(span: RawSpan, around: RawSpan, tree: _Tree, *, alone: bool) -> str:
    """The reasoning before the answer: the generation tells that of all its calls, chunks tell whose it was."""
    output = _json(around, "output")
    told = output.get("reasoningText") if isinstance(output, dict) else None
    if alone:
        return told if isinstance(told, str) else ""
    found = []
    for chunk in tree.chunks.get((span.trace_id, span.span_id), ()):
        said = _json(chunk, "output")
        text = said.get("text") if isinstance(said, dict) else None
        kind = values.members(chunk.attributes.get(ATTRIBUTES)).get("chunkType")
        known = isinstance(told, str) and bool(text) and str(text) in told
        if isinstance(text, str) and (kind == "reasoning" or (kind is None and known and text != _text(span))):
            found.append(text)
    return "".join(found)


def _failure(span: RawSpan, step: RawSpan, tree: _Tree) -> dict[str, Json] | None:
    """The failure that a chunk tells of: before 1.0 the spans around it end as if all were well."""
    inside = (one for above in (span, step) for one in tree.chunks.get((above.trace_id, above.span_id), ()))
    for chunk in inside:
        said = _json(chunk, "output")
        if isinstance(said, dict) and said.get("type") == "error":
            return values.members(said.get("error")) or {"message": said.get("error")}
    return None


def _text(span: RawSpan) -> Any:
    output = _output(span, span)
    return output.get("text") if isinstance(output, dict) else output


def _tools(span: RawSpan, agent: RawSpan | None, tree: _Tree) -> list[dict[str, Json]]:
    """The tools on offer: their names, and their descriptions where one of them was called."""
    own = span.attributes.get(ATTRIBUTES)
    listed = own.get("availableTools") if isinstance(own, dict) else None
    if not isinstance(listed, list) and agent is not None:
        listed = values.decoded(agent.attributes, "gen_ai.tool.definitions")
    tools: list[dict[str, Json]] = []
    for item in listed if isinstance(listed, list) else []:
        if isinstance(item, dict):
            tools.append(item)
        elif isinstance(item, str):
            told = {"description": tree.described[item]} if item in tree.described else {}
            tools.append({"type": "function", "name": item, **told})
    return tools


def _outer_facts(span: RawSpan, step: RawSpan, around: RawSpan) -> dict[str, Json]:
    """The conventions' facts that stand on the spans around only; usage of a whole generation is not one call's."""
    found: dict[str, Json] = {}
    for outer in (around, step):
        alone = outer is span or outer is step
        found.update(
            {
                key: value
                for key, value in outer.attributes.items()
                if key.startswith("gen_ai.") and (alone or not key.startswith((_USAGE, "gen_ai.response.")))
            }
        )
    return {key: value for key, value in found.items() if key not in span.attributes and "messages" not in key}


def _is_told(name: str, facts: list[dict[str, Json]]) -> bool:
    """Whether calls tell it themselves; how each ended, or broke off, is its own."""
    return any(name in one for one in (facts[-1:] if name == names.RESPONSE_FINISH_REASONS else facts))


def _share_usage(calls: list[RawSpan], gathered: dict[tuple[str, str], dict[str, Any]], tree: _Tree) -> None:
    """Where only a generation counts tokens, its last call has them, so that they are in the sum once; so its end."""
    counted: dict[tuple[str, str], list[RawSpan]] = {}
    for call in calls:
        for above in (call, *tree.above(call)):
            if _type(above) in GENERATIONS:
                counted.setdefault((above.trace_id, above.span_id), []).append(call)
    for key, unordered in counted.items():
        inside = sorted(unordered, key=lambda call: call.start)
        facts = [{**call.attributes, **gathered[call.trace_id, call.span_id]["facts"]} for call in inside]
        last = inside[-1]
        outer = tree.spans[key].attributes
        gathered[last.trace_id, last.span_id]["cost"] = costs.of_mastra(values.members(outer.get(ATTRIBUTES)))
        for name in _OF_THE_LAST:
            if outer.get(name) is not None and not _is_told(name, facts):
                gathered[last.trace_id, last.span_id]["facts"][name] = outer[name]
        if any(name.startswith(_USAGE) for one in facts for name in one):
            continue
        usage = {name: value for name, value in outer.items() if name.startswith(_USAGE)}
        gathered[last.trace_id, last.span_id]["facts"].update(usage)
        gathered[last.trace_id, last.span_id]["usage_of_all"] = bool(usage)
