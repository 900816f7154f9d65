"""What a model was told before: histories that writers left out of later requests, put together again."""

from __future__ import annotations

import math
import operator
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from itertools import zip_longest

from spanreel.model import GRAVITY, Fidelity, Json, Message
from spanreel.records import ModelRecord, Record, ToolRecord
from spanreel_collector.sessions.continuing import (
    asking,
    asks_for_tools,
    completed,
    is_part_of,
    lacks_calls,
    may_be_partial,
    with_calls,
    with_calls_in_order,
)
from spanreel_collector.sessions.requests import join, read_requests, told_of
from spanreel_collector.trace import Forest, Placed, Trace


def chain_deltas(trace: Trace) -> Trace:
    """A call that says only what is new gets what was said before: its run's last call, the answer, tools' results."""
    if not any(isinstance(placed.record, ModelRecord) and placed.record.continues for placed in trace):
        return trace
    return _each_after(
        trace, lambda record, before, tools: _continued(record, before, tools) if record.continues else record
    )


def complete_answers(trace: Trace) -> Trace:
    """An answer of which nothing is told, words alone or calls alone, is told by the next request, which repeats it."""
    if not any(_may_be_partial(placed) for placed in trace):
        return trace
    forest = Forest(trace)
    before: dict[str | None, Placed] = {}
    whole: dict[str, Placed] = {}
    for placed in trace:
        if not isinstance(placed.record, ModelRecord) or not placed.record.request.operation.opens_turn:
            continue
        holder = _holder(forest, placed)
        known = before.get(holder)
        if known is not None and isinstance(known.record, ModelRecord) and _may_be_partial(known):
            record = completed(known.record, placed.record)
            if record is not known.record:
                whole[known.id] = replace(known, record=record)
        before[holder] = placed
    return tuple(whole.get(placed.id, placed) for placed in trace) if whole else trace


def mend_cut(trace: Trace) -> Trace:
    """A history that a limit cut off, or dropped the beginning of, is made whole where the call before tells the rest.

    Only inside an agent's loop: after an answer that asks for tools nothing comes but what these gave.
    """
    # Asked of every trace: what is quick to tell comes first.
    marked = [placed.record for placed in trace if type(placed.record) is ModelRecord and placed.record.fidelity]
    if not marked or not any(map(_is_cut, marked)):
        return trace
    return _each_after(
        trace,
        lambda record, before, tools: _mended(record, before, tools) if before and _is_cut(record) else record,
    )


def recover_asked(trace: Trace) -> Trace:
    """An answer that ended for tools to be called and tells of none asked for those that ran before the next call.

    A history that leaves the calls out, and the ids of those who answer them, has those of its run's answers.
    """
    answered = [placed for placed in trace if type(placed.record) is ModelRecord and placed.record.answer is not None]
    if not any(map(_asked_untold, answered)) and not any(map(_answers_unnamed, answered)):
        return trace
    forest = Forest(trace)
    tools = _tools_by_holder(trace, forest)
    calls: dict[str | None, list[Placed]] = defaultdict(list)
    for placed in trace:
        if isinstance(placed.record, ModelRecord) and placed.record.request.operation.opens_turn:
            calls[_holder(forest, placed)].append(placed)
    told: dict[str, Placed] = {}
    for holder, inside in calls.items():
        answers: list[Message] = []
        for placed, following in zip_longest(inside, inside[1:]):
            record = placed.record
            if answers and isinstance(record, ModelRecord) and lacks_calls(record):
                record = with_calls_in_order(record, answers)
            if _asked_untold(placed):
                until = following.span.start if following is not None else math.inf
                ran = [tool for tool in tools[holder] if placed.span.end <= tool.span.start < until]
                record = record if _is_answered_by_id(following, ran) else _with_asked(record, ran)
            answers += record.answer.messages[:1] if isinstance(record, ModelRecord) and record.answer else ()
            told[placed.id] = replace(placed, record=record)
    return tuple(told.get(placed.id, placed) for placed in trace)


def restore_calls(trace: Trace) -> Trace:
    """Histories that have tools' answers and not the calls get the calls, from the answers of the models before."""
    asked: dict[str, Message] = {}
    restored = []
    for placed in trace:
        record = placed.record
        if isinstance(record, ModelRecord) and record.call_id is None and record.protocol is None:
            if asked and lacks_calls(record):
                record = with_calls(record, asked)
                placed = placed if record is placed.record else replace(placed, record=record)  # noqa: PLW2901 made whole
            # What a later history tells of calls, an answer in this trace has told before.
            asked.update(asking(record, in_history=not asked))
        restored.append(placed)
    return trace if all(map(operator.is_, restored, trace)) else tuple(restored)


def _each_after(trace: Trace, made: Callable[[ModelRecord, Placed | None, list[Placed]], ModelRecord]) -> Trace:
    """The trace with each model call as it is made of the call, the one before it in its run, and the run's tools."""
    forest = Forest(trace)
    tools = _tools_by_holder(trace, forest)
    before: dict[str | None, Placed] = {}
    whole = []
    for placed in trace:
        record = placed.record
        if isinstance(record, ModelRecord) and record.request.operation.opens_turn:
            holder = _holder(forest, placed)
            new = made(record, before.get(holder), tools[holder])
            placed = placed if new is record else replace(placed, record=new)  # noqa: PLW2901 the same, made whole
            before[holder] = placed
        whole.append(placed)
    return tuple(whole)


def _may_be_partial(placed: Placed) -> bool:
    return isinstance(placed.record, ModelRecord) and may_be_partial(placed.record)


def _holder(forest: Forest, placed: Placed) -> str | None:
    holder = forest.holder(placed)
    return holder.id if holder is not None else None


def _asked_untold(placed: Placed) -> bool:
    record = placed.record
    if type(record) is not ModelRecord or record.call_id is not None or record.answer is None:
        return False
    reasons = record.answer.finish_reasons
    return bool(reasons) and "tool" in str(reasons) and not asks_for_tools(record)


def _answers_unnamed(placed: Placed) -> bool:
    """Whether a history tells what tools gave and not who had asked for it, nor by which call."""
    record = placed.record
    if type(record) is not ModelRecord or record.call_id is not None or record.protocol is not None:
        return False
    told = [told_of(message) for message in record.request.messages]
    return any(one.answers > len(one.answered) for one in told) and lacks_calls(record)


def _is_answered_by_id(following: Placed | None, ran: list[Placed]) -> bool:
    """Whether the next request answers calls by ids that those that ran do not tell: it says more of what was asked."""
    record = following.record if following is not None else None
    if not isinstance(record, ModelRecord):
        return False
    parts = (part for message in record.request.messages for part in message.get("parts") or [])
    answers = any(part.get("type") == "tool_call_response" and part.get("id") is not None for part in parts)
    return answers and any(isinstance(tool.record, ToolRecord) and tool.record.call_id is None for tool in ran)


def _with_asked(record: Record | None, ran: list[Placed]) -> Record | None:
    """The call with requests for the tools that ran, those whose arguments are known."""
    if not isinstance(record, ModelRecord) or record.answer is None:
        return record
    asked: list[dict[str, Json]] = [
        {"type": "tool_call", "id": tool.record.call_id, "name": tool.record.name, "arguments": tool.record.arguments}
        for tool in ran
        if isinstance(tool.record, ToolRecord) and "arguments" not in tool.record.fidelity
    ]
    if not asked or len(asked) < len(ran):
        return record
    first, *others = record.answer.messages or ({"role": "assistant", "parts": []},)
    message: Message = {**first, "parts": [*first["parts"], *asked]}
    answer = replace(record.answer, messages=(message, *others))
    return replace(record, answer=answer, fidelity={**record.fidelity, "output": Fidelity.RECONSTRUCTED})


def _tools_by_holder(trace: Trace, forest: Forest) -> dict[str | None, list[Placed]]:
    tools: dict[str | None, list[Placed]] = defaultdict(list)
    for placed in trace:
        if isinstance(placed.record, ToolRecord):
            tools[_holder(forest, placed)].append(placed)
    return tools


def _is_cut(record: Record | None) -> bool:
    return isinstance(record, ModelRecord) and record.fidelity.get("input") is Fidelity.TRUNCATED and not record.call_id


def _mended(record: ModelRecord, before: Placed, tools: list[Placed]) -> ModelRecord:
    earlier = before.record
    if not isinstance(earlier, ModelRecord) or not asks_for_tools(earlier) or not _is_known(earlier):
        return record
    results, state = _results(before, tools, ())
    answered = tuple(_bare(message) for message in (earlier.answer.messages[:1] if earlier.answer else ()))
    whole = (*earlier.request.messages, *answered, *results)
    if state is not Fidelity.RECONSTRUCTED or not is_part_of(record.request.messages, whole):
        return record
    request = replace(record.request, messages=whole)
    fidelity = {**record.fidelity, "input": Fidelity.RECONSTRUCTED}
    if not request.tools and earlier.request.tools:
        request, fidelity["tools"] = replace(request, tools=earlier.request.tools), Fidelity.RECONSTRUCTED
    return replace(record, request=request, fidelity=fidelity)


def _is_known(record: ModelRecord) -> bool:
    """Whether all that a call was told and answered is there."""
    states = [record.fidelity.get(field, Fidelity.WHOLE) for field in ("input", "output", "arguments")]
    return bool(record.request.messages) and all(state in (Fidelity.WHOLE, Fidelity.RECONSTRUCTED) for state in states)


def _continued(record: ModelRecord, before: Placed | None, tools: list[Placed]) -> ModelRecord:
    new = record.request.messages
    earlier = before.record if before is not None else None
    if before is None or not isinstance(earlier, ModelRecord):
        return record
    if new and earlier.request.messages[: len(new)] == new:
        new = ()  # the beginning, told again
    if not earlier.request.messages:
        # What came before is not known: what is new is a part only.
        return replace(record, fidelity={**record.fidelity, "input": Fidelity.TRUNCATED}) if new else record
    answers, state = _results(before, tools, new)
    answered = tuple(_bare(message) for message in (earlier.answer.messages[:1] if earlier.answer else ()))
    answered = tuple(message for message in answered if message["parts"])
    messages = (*earlier.request.messages, *answered, *answers, *new)
    told = [earlier.fidelity.get("input"), earlier.fidelity.get("output")]
    if new:
        told.append(record.fidelity.get("input"))
    request = replace(
        record.request,
        messages=messages,
        instructions=record.request.instructions or earlier.request.instructions,
        tools=record.request.tools or earlier.request.tools,
    )
    return replace(record, request=request, fidelity={**record.fidelity, "input": _gravest(state, *told)})


def _results(before: Placed, tools: list[Placed], new: tuple[Message, ...]) -> tuple[tuple[Message, ...], Fidelity]:
    """What the tools that the call before asked for gave, as messages, and how it is known.

    What the new messages say themselves is not said again.
    """
    asked = read_requests([before])
    told = {part.get("id") for message in new for part in message.get("parts", ()) if "response" in part}
    joined = join(tools, asked, [before])
    by_request = {request: tool for tool in tools if (request := joined.get(tool.id)) is not None}
    parts: list[dict[str, Json]] = []
    state = Fidelity.RECONSTRUCTED
    for request in asked:
        if request.call_id is not None and request.call_id in told:
            continue
        tool = by_request.get(request)
        record = tool.record if tool is not None else None
        lost = record.fidelity.get("result") is Fidelity.ABSENT if isinstance(record, ToolRecord) else True
        if not isinstance(record, ToolRecord) or (lost and record.error is None):
            state = Fidelity.TRUNCATED
            continue
        response = record.result
        if record.error is not None and response is None:
            response = record.error.message or record.error.type
        else:
            state = _gravest(state, record.fidelity.get("result"))
        parts.append({"type": "tool_call_response", "id": request.call_id, "response": response})
    return ({"role": "tool", "parts": parts},) if parts else (), state


def _gravest(*states: Fidelity | None) -> Fidelity:
    """How a history is known of which parts are known so; one that lacks a part is not absent as a whole."""
    worst = max((state for state in states if state is not None), key=GRAVITY.index, default=Fidelity.RECONSTRUCTED)
    return Fidelity.TRUNCATED if worst is Fidelity.ABSENT else worst


def _bare(message: Message) -> Message:
    """An answer as the next request repeats it."""
    return {key: value for key, value in message.items() if key != "finish_reason"}
