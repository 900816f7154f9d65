"""LangSmith's exporter: LangChain's runs and those of decorated functions, whole values as JSON in two attributes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from spanreel.model import Agent, Answer, ErrorCategory, Fidelity, Json, Usage
from spanreel.records import ModelRecord, Record, RunRecord, ToolRecord
from spanreel_collector.dialects import genai_spans, genai_variants, values
from spanreel_collector.dialects.content import bodies, ends, exchanges, tokens, tools
from spanreel_collector.dialects.content.decoding import decode
from spanreel_collector.span import Attributes, RawLog, RawSpan

NAME = "langsmith"

_KIND = "langsmith.span.kind"
_OUTERMOST = "spanreel.langsmith.outermost"
_INPUT, _OUTPUT = "gen_ai.prompt", "gen_ai.completion"
_METADATA = "langsmith.metadata."
_INTEGRATION = _METADATA + "ls_integration"
_AGENTS_SDK = "openai-agents-sdk"
_TWICE = "spanreel.langsmith.twice"
_OF_AGENTS_SDK = ("Span", "Handoff")
"""What LangSmith calls spans of that SDK that are no agent's and have no name."""
_OPERATIONS = {"llm": "chat", "embedding": "embeddings", "tool": "execute_tool", "retriever": "retrieval"}
_SETTINGS = {"ls_temperature": "temperature", "ls_max_tokens": "max_tokens", "ls_stop": "stop"}


_RAISED = re.compile(r"(?P<type>\w+)\((?P<quote>['\"])(?P<message>.*?)(?P=quote)\)(?:Traceback|$)", re.DOTALL)
"""How the exporter tells an exception: its repr, and right after it the stack."""


def speaks(span: RawSpan) -> bool:
    """Whether LangSmith wrote the span."""
    return isinstance(span.attributes.get(_KIND), str)


def trace_of(log: RawLog) -> str | None:
    """LangSmith writes no logs."""
    del log
    return None


def gather(spans: Sequence[RawSpan], logs: Sequence[RawLog]) -> tuple[list[RawSpan], list[RawLog]]:
    """The spans, the outermost marked as such, and those that only repeat what is told beside them."""
    ours = [span for span in spans if speaks(span)]
    if not ours:
        return list(spans), list(logs)
    spans = [_in_words(span) if speaks(span) else span for span in spans]
    known = {span.span_id for span in ours}
    tops = {(span.trace_id, span.span_id): span for span in ours if span.parent_id not in known}
    callers = Counter(span.parent_id for span in tops.values())
    seen = {span.span_id for span in spans}
    gathered = []
    for span in spans:
        if (span.trace_id, span.span_id) in tops:
            # Of a parent that is not here several may be left: that was one of LangSmith's own, and they stood inside.
            outermost = span.parent_id is None or span.parent_id in seen or callers[span.parent_id] == 1
            marks = {_OUTERMOST: outermost, _TWICE: len(ours) == 1 and _is_twice(span)}
            marked = {key: True for key, holds in marks.items() if holds}
            span = replace(span, attributes={**span.attributes, **marked})  # noqa: PLW2901 the same, marked
        gathered.append(span)
    return gathered, list(logs)


def _in_words(span: RawSpan) -> RawSpan:
    """The span with its values as texts: some releases, of 0.7 for one, write the bytes that they serialised."""
    told = {key: value for key, value in span.attributes.items() if isinstance(value, bytes)}
    if not told:
        return span
    texts = {key: value.decode("utf-8", "replace") for key, value in told.items()}
    return replace(span, attributes={**span.attributes, **texts})


def _is_twice(span: RawSpan) -> bool:
    """Whether this is a workflow of the OpenAI Agents SDK for itself, which another trace tells with all inside it."""
    told = span.attributes
    return told.get(_INTEGRATION) == _AGENTS_SDK and told[_KIND] == "chain" and _METADATA + "openai_span_id" not in told


def read(span: RawSpan) -> Record | None:
    """What the span says; a prompt or a parser only groups."""
    kind = str(span.attributes[_KIND]).lower()
    if _TWICE in span.attributes:
        return None
    span = _with_exception(span)
    if kind == "chain":
        return _read_run(span)
    operation = _OPERATIONS.get(kind)
    if operation is None:
        return None
    # What it writes in the names of the conventions is read as those are.
    told = replace(span, attributes={**span.attributes, "gen_ai.operation.name": operation})
    by_hand = not {_INPUT, _OUTPUT} & set(span.attributes)
    record = genai_spans.read(genai_variants.conventional(told) if by_hand else told)
    if isinstance(record, ModelRecord):
        # What is sent to LangSmith by hand has each message in attributes of its own, as its documentation says.
        return record if by_hand and record.request.messages else _with_content(span, record)
    return _with_values(span, record) if isinstance(record, ToolRecord) else record


def _with_exception(span: RawSpan) -> RawSpan:
    """The span with its exception's own class and words, which stand in the words of one that only carries them.

    What raised failed, though the status says otherwise where an error's answer counts as one.
    """
    events = []
    for event in span.events:
        told = _RAISED.match(values.text(event.attributes, "exception.message") or "")
        if event.name == "exception" and told is not None:
            named = {"exception.type": told["type"], "exception.message": told["message"]}
            event = replace(event, attributes={**event.attributes, **named})  # noqa: PLW2901 the same, by its name
        events.append(event)
    if not events:
        return span
    failed = any(event.name == "exception" for event in events)
    return replace(span, events=tuple(events), status=2 if failed else span.status)


def _with_content(span: RawSpan, record: ModelRecord) -> ModelRecord:
    attributes = span.attributes
    exchange = exchanges.read(attributes.get(_INPUT), attributes.get(_OUTPUT), record.request.operation)
    asked, answered = exchange.request, exchange.answer
    fidelity = {**record.fidelity, "input": Fidelity.WHOLE, "output": Fidelity.WHOLE, **exchange.fidelity}
    if record.error and fidelity["output"] is Fidelity.ABSENT:
        del fidelity["output"]
    streamed = asked.stream or attributes.get("langsmith.request.streaming") is True
    request = replace(
        asked,
        # What the conventions' name holds may be the model that answered, put there by who passes the spans on.
        model=values.text(attributes, _METADATA + "ls_model_name") or record.request.model or asked.model,
        tools=asked.tools or record.request.tools,
        settings={**_settings(attributes), **asked.settings, **record.request.settings},
        stream=streamed,
    )
    known = record.answer
    usage = _usage(attributes, *(told.usage if told else None for told in (known, answered)))
    if answered is None and known is None and usage is None:
        answer = None
    else:
        answer = answered or known or Answer()
        if known is not None:
            answer = replace(
                answer, model=known.model or answer.model, response_id=known.response_id or answer.response_id
            )
        answer = replace(answer, usage=usage, streamed=streamed)
        if attributes.get(_METADATA + "object") == "response":
            # The Agents SDK's: what a response says beside its output is the metadata here.
            identity = answer.response_id or values.text(attributes, _METADATA + "id")
            answer = replace(answer, response_id=identity, model=answer.model or request.model)
    return replace(
        record,
        request=request,
        answer=answer,
        protocol=exchange.protocol,
        fidelity=values.marks(fidelity),
    )


def _settings(attributes: Attributes) -> dict[str, Json]:
    found = {name: attributes[_METADATA + key] for key, name in _SETTINGS.items() if _METADATA + key in attributes}
    return bodies.settings(found)


def _usage(attributes: Attributes, counted: Usage | None, answered: Usage | None) -> Usage | None:
    """The counts with their details, which stand in the run's metadata, beside them, or with the answer."""
    told = values.members(attributes.get(_METADATA + "usage_metadata"))
    for key in ("input_token_details", "output_token_details"):
        if beside := values.members(attributes.get(f"gen_ai.usage.{key}")):
            told.setdefault(key, beside)
    detailed = tokens.read(told)
    usage = counted or answered or detailed
    for details in (detailed, answered):
        if usage is not None and details is not None:
            usage = _filled(usage, details)
    return None if usage is None or usage == Usage() else values.whole_usage(usage)


def _filled(usage: Usage, details: Usage) -> Usage:
    """The counts, with those of the cache and of reasoning that only the others have."""
    missing = {
        name: getattr(details, name)
        for name in ("cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
        if getattr(usage, name) is None
    }
    return replace(usage, **missing)


def _with_values(span: RawSpan, record: ToolRecord) -> ToolRecord:
    given, given_state = decode(span.attributes.get(_INPUT))
    came, came_state = decode(span.attributes.get(_OUTPUT))
    result, told = tools.read_result(came)
    if isinstance(result, dict) and set(result) == {"output"}:
        result = result["output"]  # of a decorated function
    error = record.error or tools.failure(told, result)
    if record.error and came == {}:
        result, came_state = None, Fidelity.ABSENT  # the outputs of what failed
    fidelity = {"arguments": given_state, "result": came_state}
    if error and came_state is Fidelity.ABSENT:
        del fidelity["result"]
    return replace(
        record,
        name=values.text(span.attributes, "gen_ai.tool.name") or span.name,
        arguments=tools.read_arguments(given),
        result=result,
        call_id=record.call_id or values.text(told, "tool_call_id"),
        status=values.status_of(error),
        error=error,
        fidelity=values.marks(fidelity),
    )


def _read_run(span: RawSpan) -> RunRecord:
    attributes = span.attributes
    came, _ = decode(attributes.get(_OUTPUT))
    output = came["output"] if isinstance(came, dict) and set(came) == {"output"} else attributes.get(_OUTPUT)
    told = ends.read(attributes.get(_INPUT), output)
    error = values.failure(span, ErrorCategory.OTHER)
    return ends.as_run(told, Agent(_agent_name(span)), error, outermost_only=not _is_agent(span))


def _agent_name(span: RawSpan) -> str | None:
    """The agent's name by LangChain's word; a decorated function and an agent of the Agents SDK by their own."""
    attributes = span.attributes
    of_langchain = _INTEGRATION in attributes or "gen_ai.serialized.name" in attributes
    by_name = span.name if _is_agent(span) or (not of_langchain and _OUTERMOST in attributes) else None
    return values.text(attributes, _METADATA + "lc_agent_name") or by_name


def _is_agent(span: RawSpan) -> bool:
    """Whether this is an agent of the OpenAI Agents SDK, of which the workflow stands around."""
    told = span.attributes
    return told.get(_INTEGRATION) == _AGENTS_SDK and _OUTERMOST not in told and span.name not in _OF_AGENTS_SDK
