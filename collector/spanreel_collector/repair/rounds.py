"""Rounds with a model that left no span of their own, or too little on it: told by the spans around and before them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from spanreel.model import Answer, Fidelity, Json, Message, Operation, Request, Usage
from spanreel.records import ModelRecord, RunRecord, ToolRecord, TurnRecord
from spanreel_collector.dialects.content.messages import FACTS
from spanreel_collector.sessions.continuing import chained, goes_on_from
from spanreel_collector.sessions.requests import calls_of
from spanreel_collector.trace import Forest, Placed, Trace

_ENDS_WITH_ITS_TOOLS = "call_llm"
"""What ADK before 2.0 calls a model call's span, which lasts until the tools have run that it asked for."""


def recover_rounds(trace: Trace) -> Trace:
    """A run without model calls whose output tells of its rounds with a model gets a call for each of these.

    So does one that says which tools it offered: there it is one call, which its tools' spans are then inside of.
    """
    if not any(_may_tell_rounds(placed) for placed in trace):
        return trace
    forest = Forest(trace)
    busy = {
        above.id
        for placed in trace
        if isinstance(placed.record, ModelRecord | RunRecord)
        for above in forest.records_above(placed)
    }
    recovered: list[Placed] = []
    homes: dict[str, str] = {}
    for placed in trace:
        made = [] if placed.id in busy else list(_recovered(placed))
        if made and not tells_rounds(placed):
            homes[placed.id] = made[0].id
        recovered += [_without_facts(placed), *made]
    return tuple(
        replace(placed, parent=homes[placed.parent])
        if isinstance(placed.record, ToolRecord) and placed.parent in homes
        else placed
        for placed in recovered
    )


def unfold_tools(trace: Trace) -> Trace:
    """A model call that tools ran inside of, and whose answer asks for none, was at least two: one asked for them.

    Of SDKs that go on by themselves. The usage said is the last call's; how many rounds the tools took is not known.
    """
    forest = Forest(trace)
    inside: dict[str, list[Placed]] = defaultdict(list)
    for placed in trace:
        above = forest.record_above(placed) if isinstance(placed.record, ToolRecord) else None
        if above is not None and _went_on(above, placed):
            inside[above.id].append(placed)
    if not inside:
        return trace
    return tuple(part for placed in trace for part in _unfolded(placed, inside.get(placed.id, [])))


def split_rounds(trace: Trace) -> Trace:
    """A model call whose answer has tools' answers between the model's own was several: one for each of the model's.

    The usage said is the last one's; what the others cost is not known.
    """
    if not any(_holds_rounds(placed) for placed in trace):
        return trace
    return tuple(part for placed in trace for part in _split(placed))


def share_tools(trace: Trace) -> Trace:
    """Model calls that do not say which tools they were offered were offered those of their run, where that says so."""
    if not any(isinstance(placed.record, RunRecord) and placed.record.tools for placed in trace):
        return trace
    forest = Forest(trace)
    return tuple(_with_tools(forest, placed) for placed in trace)


def chain_responses(trace: Trace) -> Trace:
    """A call that goes on from an earlier one, and was recorded without what came before, gets it back.

    Not what a protocol read: that is the request as it was sent.
    """
    if not any(isinstance(placed.record, ModelRecord) and goes_on_from(placed.record) for placed in trace):
        return trace
    answered: dict[str, Placed] = {}
    whole = []
    for placed in trace:
        record = placed.record
        if isinstance(record, ModelRecord) and record.protocol is None:
            before = next((answered[name] for name in goes_on_from(record) if name in answered), None)
            if before is not None and isinstance(before.record, ModelRecord):
                placed = replace(placed, record=chained(record, before.record))  # noqa: PLW2901 the same, made whole
        if isinstance(placed.record, ModelRecord) and placed.record.answer:
            named = (placed.record.answer.response_id, *calls_of(placed.record))
            answered.update({name: placed for name in named if name})
        whole.append(placed)
    return tuple(whole)


def _recovered(placed: Placed) -> Iterator[Placed]:
    """The model calls that a run's output tells of: as one that holds all rounds, for `split_rounds`."""
    record = placed.record
    if not isinstance(record, RunRecord) or not (tells_rounds(placed) or (record.tools and record.output)):
        return
    # What comes with None for facts an agent said without asking a model.
    said = tuple(message for message in record.output if message.get(FACTS, True) is not None)
    call = ModelRecord(
        request=Request(Operation.CHAT, None, messages=record.input, tools=record.tools),
        answer=Answer(messages=said),
        fidelity={
            **dict.fromkeys(("input", "output"), Fidelity.RECONSTRUCTED),
            "usage": Fidelity.ABSENT,
            **{field: state for field, state in record.fidelity.items() if field == "instructions"},
        },
    )
    span = replace(placed.span, attributes={}, events=(), logs=())
    yield replace(placed, span=span, record=call, id=f"{placed.id}.rounds", parent=placed.id)


def _may_tell_rounds(placed: Placed) -> bool:
    record = placed.record
    return isinstance(record, RunRecord) and any(
        record.tools or message.get("role") == "tool" or FACTS in message for message in record.output
    )


def tells_rounds(placed: Placed) -> bool:
    """Whether a run's output tells of its rounds with a model."""
    record = placed.record
    return isinstance(record, RunRecord) and any(
        message.get("role") == "tool" or message.get(FACTS) for message in record.output
    )


def _without_facts(placed: Placed) -> Placed:
    """The run without what its messages say of the calls that they came from."""
    record = placed.record
    if not isinstance(record, RunRecord) or not any(FACTS in message for message in record.output):
        return placed
    output = tuple({key: value for key, value in message.items() if key != FACTS} for message in record.output)
    return replace(placed, record=replace(record, output=output))


def _went_on(model: Placed, tool: Placed) -> bool:
    """Whether a model call went on by itself after the tool inside it had run."""
    record = model.record
    if not isinstance(record, ModelRecord) or record.call_id is not None or record.error is not None:
        return False
    if model.span.name == _ENDS_WITH_ITS_TOOLS:
        return False
    answer = record.answer
    parts = [part for message in (answer.messages if answer else ()) for part in message.get("parts") or ()]
    asks = any(part.get("type") == "tool_call" for part in parts)
    reasons = answer.finish_reasons if answer else []
    if answer is None or asks or any("tool" in str(reason).lower() for reason in reasons):
        return False
    return model.span.start <= tool.span.start and tool.span.end <= model.span.end


def _unfolded(placed: Placed, tools: list[Placed]) -> Iterator[Placed]:
    record = placed.record
    if not tools or not isinstance(record, ModelRecord) or record.answer is None:
        yield placed
        return
    ordered = sorted(tools, key=lambda tool: (tool.span.start, tool.arrival))
    asked = [_request_for(tool.record) for tool in ordered if isinstance(tool.record, ToolRecord)]
    told = [_answer_of(tool.record) for tool in ordered if isinstance(tool.record, ToolRecord)]
    asking: Message = {"role": "assistant", "parts": asked}
    states = {"output": Fidelity.RECONSTRUCTED, "usage": Fidelity.ABSENT}
    if any("arguments" not in part for part in asked):
        states["arguments"] = Fidelity.ABSENT
    yield replace(
        placed,
        id=f"{placed.id}.asked",
        span=replace(placed.span, end=ordered[0].span.start, attributes={}, events=(), logs=()),
        record=replace(record, answer=Answer(messages=(asking,)), fidelity={**record.fidelity, **states}),
    )
    # What came before is worth telling only where the request itself was told.
    history = (*record.request.messages, asking, {"role": "tool", "parts": told}) if record.request.messages else ()
    fidelity = {**record.fidelity, **({"input": Fidelity.RECONSTRUCTED} if history else {})}
    yield replace(
        placed,
        span=replace(placed.span, start=ordered[-1].span.end),
        record=replace(record, request=replace(record.request, messages=history), fidelity=fidelity),
    )


def _request_for(record: ToolRecord) -> dict[str, Json]:
    part: dict[str, Json] = {"type": "tool_call", "id": record.call_id, "name": record.name}
    absent = record.fidelity.get("arguments") is Fidelity.ABSENT
    return part if absent else {**part, "arguments": record.arguments}


def _answer_of(record: ToolRecord) -> dict[str, Json]:
    part: dict[str, Json] = {"type": "tool_call_response", "id": record.call_id}
    if record.error is not None and record.result is None:
        return {**part, "response": record.error.message or record.error.type}
    return part if record.fidelity.get("result") is Fidelity.ABSENT else {**part, "response": record.result}


def _with_tools(forest: Forest, placed: Placed) -> Placed:
    record = placed.record
    if not isinstance(record, ModelRecord) or record.request.tools or record.call_id is not None:
        return placed
    if record.protocol is not None and "tools" not in record.fidelity:
        return placed  # the request as it was sent, without any
    above = next((one for one in forest.records_above(placed) if not isinstance(one.record, TurnRecord)), None)
    if above is None or not isinstance(above.record, RunRecord) or not above.record.tools:
        return placed
    fidelity = {**record.fidelity, "tools": Fidelity.RECONSTRUCTED}
    request = replace(record.request, tools=above.record.tools)
    return replace(placed, record=replace(record, request=request, fidelity=fidelity))


def _holds_rounds(placed: Placed) -> bool:
    """Whether a model call's answer tells of several."""
    record = placed.record
    if not isinstance(record, ModelRecord) or record.answer is None or record.call_id is not None:
        return False
    return any(message.get("role") == "tool" or FACTS in message for message in record.answer.messages)


def _split(placed: Placed) -> Iterator[Placed]:
    record = placed.record
    if not isinstance(record, ModelRecord) or record.answer is None or not _holds_rounds(placed):
        yield placed
        return
    messages = record.answer.messages
    history: tuple[Message, ...] = record.request.messages
    pending: list[Message] = []
    rounds = 0
    for number, message in enumerate(messages):
        if message.get("role") != "assistant":
            pending.append(message)
            continue
        last = not any(later.get("role") == "assistant" for later in messages[number + 1 :])
        history += tuple(pending)
        pending = []
        answer = replace(record.answer, messages=(message,))
        if not last:
            answer = replace(answer, response_id=None, usage=None)
        fidelity = {**record.fidelity, **({} if last else {"usage": Fidelity.ABSENT})}
        if any(part.get("type") == "tool_call_response" and "response" not in part for part in _parts(history)):
            fidelity["input"] = Fidelity.TRUNCATED
        said = message
        if FACTS in message:
            answer, said = _with_facts(answer, message)
            fidelity = {name: state for name, state in fidelity.items() if name != "usage" or answer.usage is None}
        yield replace(
            placed,
            id=placed.id if last else f"{placed.id}.{rounds}",
            record=replace(record, request=replace(record.request, messages=history), answer=answer, fidelity=fidelity),
        )
        history += (said,)
        rounds += 1


def _parts(messages: tuple[Message, ...]) -> Iterator[dict[str, Json]]:
    return (part for message in messages for part in message.get("parts") or ())


def _with_facts(answer: Answer, message: Message) -> tuple[Answer, Message]:
    """The answer with what its message says of the call that it came from, and the message without it."""
    facts = message[FACTS]
    usage = Usage(**facts["usage"]) if facts.get("usage") else answer.usage
    bare = {key: value for key, value in message.items() if key != FACTS}
    return replace(
        answer,
        messages=(bare,),
        model=facts.get("model") or answer.model,
        response_id=facts.get("response_id") or answer.response_id,
        usage=usage,
    ), bare
