"""Rounds with a model that left no span of their own, or too little on it: told by the spans around and before them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from spanreel.model import (
    Answer,
    Fidelity,
    Message,
    ModelRecord,
    Operation,
    Request,
    RunRecord,
    TurnRecord,
)
from spanreel_collector.trace import Forest, Placed, Trace


def recover_rounds(trace: Trace) -> Trace:
    """A run without model calls whose output tells of its rounds with a model gets a call for each of these."""
    forest = Forest(trace)
    busy = {
        above.id
        for placed in trace
        if isinstance(placed.record, ModelRecord | RunRecord)
        for above in forest.records_above(placed)
    }
    return tuple(part for placed in trace for part in (placed, *(() if placed.id in busy else _recovered(placed))))


def split_rounds(trace: Trace) -> Trace:
    """A model call whose answer has tools' answers between the model's own was several: one for each of the model's.

    The usage said is the last one's; what the others cost is not known.
    """
    return tuple(part for placed in trace for part in _split(placed))


def share_tools(trace: Trace) -> Trace:
    """Model calls that do not say which tools they were offered were offered those of their run, where that says so."""
    if not any(isinstance(placed.record, RunRecord) and placed.record.tools for placed in trace):
        return trace
    forest = Forest(trace)
    return tuple(_with_tools(forest, placed) for placed in trace)


def chain_responses(trace: Trace) -> Trace:
    """A call that goes on from an earlier response, and was recorded without what came before, gets it back.

    Not what a protocol read: that is the request as it was sent.
    """
    answered: dict[str, Placed] = {}
    chained = []
    for placed in trace:
        record = placed.record
        if isinstance(record, ModelRecord) and record.protocol is None:
            before = answered.get(str(record.request.settings.get("previous_response_id")))
            if before is not None and isinstance(before.record, ModelRecord):
                placed = replace(placed, record=_after(record, before.record))  # noqa: PLW2901 the same, made whole
        if isinstance(placed.record, ModelRecord) and placed.record.answer and placed.record.answer.response_id:
            answered[placed.record.answer.response_id] = placed
        chained.append(placed)
    return tuple(chained)


def _recovered(placed: Placed) -> Iterator[Placed]:
    """The model calls that a run's output tells of: as one that holds all rounds, for `split_rounds`."""
    record = placed.record
    if not isinstance(record, RunRecord) or not any(message.get("role") == "tool" for message in record.output):
        return
    call = ModelRecord(
        request=Request(Operation.CHAT, None, messages=record.input, tools=record.tools),
        answer=Answer(messages=record.output),
        fidelity=dict.fromkeys(("input", "output"), Fidelity.RECONSTRUCTED) | {"usage": Fidelity.ABSENT},
    )
    span = replace(placed.span, attributes={}, events=(), logs=())
    yield replace(placed, span=span, record=call, id=f"{placed.id}.rounds", parent=placed.id)


def _with_tools(forest: Forest, placed: Placed) -> Placed:
    record = placed.record
    if not isinstance(record, ModelRecord) or record.request.tools or record.call_id is not None:
        return placed
    above = next((one for one in forest.records_above(placed) if not isinstance(one.record, TurnRecord)), None)
    if above is None or not isinstance(above.record, RunRecord) or not above.record.tools:
        return placed
    fidelity = {**record.fidelity, "tools": Fidelity.RECONSTRUCTED}
    request = replace(record.request, tools=above.record.tools)
    return replace(placed, record=replace(record, request=request, fidelity=fidelity))


def _after(record: ModelRecord, before: ModelRecord) -> ModelRecord:
    earlier = (*before.request.messages, *(before.answer.messages if before.answer else ()))
    if not earlier or record.request.messages[: len(earlier)] == earlier:
        return record
    request = replace(record.request, messages=(*earlier, *record.request.messages))
    return replace(record, request=request, fidelity={**record.fidelity, "input": Fidelity.RECONSTRUCTED})


def _split(placed: Placed) -> Iterator[Placed]:
    record = placed.record
    messages = record.answer.messages if isinstance(record, ModelRecord) and record.answer else ()
    if not isinstance(record, ModelRecord) or record.answer is None or record.call_id is not None:
        yield placed
        return
    told = [number for number, message in enumerate(messages) if message.get("role") == "tool"]
    if not told:
        yield placed
        return
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
        yield replace(
            placed,
            id=placed.id if last else f"{placed.id}.{rounds}",
            record=replace(record, request=replace(record.request, messages=history), answer=answer, fidelity=fidelity),
        )
        history += (message,)
        rounds += 1
