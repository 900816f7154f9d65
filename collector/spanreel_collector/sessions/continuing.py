"""What a model call and the one that goes on from it tell of each other: an answer not told, a history left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any

from spanreel.model import Answer, Fidelity, Message, Status
from spanreel.records import ModelRecord, Record
from spanreel_collector.sessions.requests import calls_before, told_of


def may_be_partial(record: ModelRecord) -> bool:
    """Whether more may have been answered than is told: nothing is, words alone, calls alone, or calls in part."""
    if record.call_id is not None or record.status is not Status.OK or not record.request.messages:
        return False
    messages = record.answer.messages if record.answer else ()
    parts = [part for message in messages for part in message.get("parts", ())]
    calls = [part for part in parts if part.get("type") == "tool_call"]
    alone = len(calls) in (0, len(parts))
    return len(messages) < 2 and (alone or any(map(_is_call_in_part, calls)))


def _is_call_in_part(call: Mapping[str, Any]) -> bool:
    """Whether a call has no id, or arguments that are none or no JSON: streams are put together wrongly by some."""
    return call.get("id") is None or not call.get("arguments") or isinstance(call["arguments"], str)


def asks_for_tools(record: ModelRecord) -> bool:
    """Whether the answer asks for tools, as far as it is told."""
    messages = record.answer.messages[:1] if record.answer else ()
    return any(told_of(message).calls for message in messages)


def completed(record: ModelRecord, later: ModelRecord) -> ModelRecord:
    """The call with the answer as the one after it repeats it; as it is where that repeats another, or nothing new."""
    asked, said = record.request.messages, next(iter(record.answer.messages if record.answer else ()), {})
    repeated = later.request.messages[len(asked)] if len(later.request.messages) > len(asked) else {}
    if not asked or later.request.messages[: len(asked)] != asked or repeated.get("role") != "assistant":
        return record
    told, whole = said.get("parts", []), repeated.get("parts", [])
    if not told:
        whole = [*whole, *_asked_beside(later.request.messages[len(asked) + 1 :])]
    same = [part for part in whole if any(_is_one(part, one) for one in told)]
    if _are_run_together(told, whole):
        same = told
    if whole == told or len(same) != len(told) or not all(map(_is_one, same, told)):
        return record
    answer = replace(record.answer or Answer(), messages=({"role": "assistant", **said, "parts": whole},))
    only_ids = [{**part, "id": None} for part in whole] == [{**part, "id": None} for part in told]
    more = {} if only_ids else {"output": Fidelity.RECONSTRUCTED}
    return replace(record, answer=answer, fidelity={**record.fidelity, **more})


def _asked_beside(rest: Sequence[Message]) -> list[dict[str, Any]]:
    """The calls of one answer that a framework repeats each in a message of its own, before what its tool gave.

    No model was asked between them: its call would stand between the two.
    """
    found: list[dict[str, Any]] = []
    for message in rest:
        parts = message.get("parts") or []
        if message.get("role") == "assistant" and parts and all(part.get("type") == "tool_call" for part in parts):
            found += parts
        elif message.get("role") != "tool":
            break
    return found


def _is_one(part: dict[str, Any], told: dict[str, Any]) -> bool:
    """Whether a request's part repeats one that an answer tells, which may lack its call's id, arguments, or words."""
    if told.get("type") == "reasoning" and not told.get("content"):
        return part.get("type") == "reasoning"
    if told.get("type") != "tool_call":
        return part == told
    if told.get("id") is None:
        return {**part, "id": None} == told
    return part == told or (not told.get("arguments") and _CALLED(part) == _CALLED(told))


_CALLED = itemgetter("type", "id", "name")


def _are_run_together(told: Sequence[Mapping[str, Any]], whole: Sequence[Mapping[str, Any]]) -> bool:
    """Whether an answer tells of one call what a request repeats of several, their ids and names run together."""
    calls = [part for part in whole if part.get("type") == "tool_call"]
    merged = [part for part in told if part.get("type") == "tool_call"]
    if len(merged) != 1 or len(calls) < 2:
        return False
    spelled = ("".join(str(call.get(key)) for call in calls) for key in ("id", "name"))
    words = [part for part in told if part is not merged[0]]
    return tuple(spelled) == (merged[0].get("id"), merged[0].get("name")) and words == [
        part for part in whole if part.get("type") != "tool_call"
    ]


def begins_anew(earlier: Record | None, later: Record | None) -> bool:
    """Whether a call goes on from another that had answered, with new words of the user's: it is the next request."""
    if not isinstance(earlier, ModelRecord) or not isinstance(later, ModelRecord) or earlier.status is not Status.OK:
        return False
    before, told = earlier.request.messages, later.request.messages
    if not before or len(told) < len(before) + 2 or asks_for_tools(earlier) or told[: len(before)] != before:
        return False
    said = told[len(before) + 1 :]
    return told[len(before)].get("role") == "assistant" and any(_is_the_users(message) for message in said)


def _is_the_users(message: Message) -> bool:
    return message.get("role") == "user" and any(part.get("type") == "text" for part in message["parts"])


def is_part_of(left: Sequence[Message], whole: Sequence[Message]) -> bool:
    """Whether messages are what is left of a history: its beginning, cut off in the last, or its end, in the first."""
    left = [message for message in left if message["parts"]]
    if not left or len(left) > len(whole):
        return False
    beginning, end = whole[: len(left)], whole[len(whole) - len(left) :]
    return _say_the_same(left[:-1], beginning[:-1], left[-1], beginning[-1]) or _say_the_same(
        left[1:], end[1:], left[0], end[0]
    )


def _say_the_same(left: Sequence[Message], whole: Sequence[Message], cut: Message, uncut: Message) -> bool:
    """Whether messages say what others do, and one of which parts may be missing, as much of what another one does."""
    some = len(cut["parts"]) <= len(uncut["parts"]) and all(map(_is_alike, cut["parts"], uncut["parts"]))
    if not some or (cut["role"] != uncut["role"] and left == []):
        return False
    return all(
        one["role"] == other["role"]
        and len(one["parts"]) == len(other["parts"])
        and all(map(_is_alike, one["parts"], other["parts"]))
        for one, other in zip(left, whole, strict=True)
    )


_SAYS = {"tool_call": "name", "tool_call_response": "id"}
"""What parts are known by that an answer, or a tool, may spell in another way than the next request; others by all."""


def _is_alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    key = _SAYS.get(str(one["type"]), "content")
    return bool(one["type"] == other["type"] and one.get(key) == other.get(key))


def goes_on_from(record: ModelRecord) -> list[str]:
    """What names the call before: its response, or the tool calls that it asked for."""
    previous = record.request.settings.get("previous_response_id")
    return [*([previous] if isinstance(previous, str) else []), *calls_before(record)]


def chained(record: ModelRecord, before: ModelRecord) -> ModelRecord:
    """The call with what the one before it was told and answered; as it is where it says that itself."""
    earlier = (*before.request.messages, *(before.answer.messages[:1] if before.answer else ()))
    if not earlier or record.request.messages[: len(earlier)] == earlier:
        return record
    new = tuple(one for one in record.request.messages if one["role"] != "system" or one not in earlier)
    request = replace(record.request, messages=(*earlier, *new))
    return replace(record, request=request, fidelity={**record.fidelity, "input": Fidelity.RECONSTRUCTED})


def with_calls(record: ModelRecord, asked: Mapping[str, Message]) -> ModelRecord:
    """The call with the tool calls that its history answers and leaves out, by the answers that asked for them."""
    whole: list[Message] = []
    unanswered = 0  # calls that the history does have, under whatever ids
    for message in record.request.messages:
        told = told_of(message)
        named = told.answered
        answer = next((asked[identity] for identity in named if identity in asked), None)
        if answer is not None and unanswered < len(named):
            words = [part for part in answer["parts"] if part.get("type") != "tool_call"]
            if whole and whole[-1].get("role") == "assistant" and whole[-1]["parts"] in (words, []):
                whole.pop()
            if "finish_reason" in answer:
                answer = {key: value for key, value in answer.items() if key != "finish_reason"}
            whole.append(answer)
            unanswered += told_of(answer).calls
        unanswered += told.calls - told.answers
        whole.append(message)
    if tuple(whole) == record.request.messages:
        return record
    request = replace(record.request, messages=tuple(whole))
    return replace(record, request=request, fidelity={**record.fidelity, "input": Fidelity.RECONSTRUCTED})


def with_calls_in_order(record: ModelRecord, answers: Sequence[Message]) -> ModelRecord:
    """The call with the calls that its history leaves out, and whose answers have no ids: those of the run so far.

    As it is where the history tells of other rounds than these.
    """
    whole: list[Message] = []
    left = [answer for answer in answers if told_of(answer).calls]
    told = groupby(record.request.messages, key=lambda message: message.get("role") == "tool")
    for are_answers, grouped in told:
        group = list(grouped)
        if are_answers and not (whole and told_of(whole[-1]).calls):
            parts = [part for message in group for part in message["parts"]]
            calls = [part for part in (left[0]["parts"] if left else ()) if part.get("type") == "tool_call"]
            if len(parts) != len(calls) or any(part.get("id") for part in parts):
                return record
            if whole and whole[-1].get("role") == "assistant":
                whole.pop()
            whole.append({key: value for key, value in left.pop(0).items() if key != "finish_reason"})
            named = [{**part, "id": call.get("id")} for part, call in zip(parts, calls, strict=True)]
            group = [{"role": "tool", "parts": [part]} for part in named]
        whole += group
    if left:
        return record
    request = replace(record.request, messages=tuple(whole))
    return replace(record, request=request, fidelity={**record.fidelity, "input": Fidelity.RECONSTRUCTED})


def asking(record: ModelRecord, *, in_history: bool = True) -> dict[str, Message]:
    """What the model said to ask for tools, by the ids of the calls: as far as the call's history and answer tell."""
    answer = record.answer.messages[:1] if record.answer else ()
    told = (*record.request.messages, *answer) if in_history else answer
    return {identity: one for one in told for identity in told_of(one).called}


def lacks_calls(record: ModelRecord) -> bool:
    """Whether a call's history answers more tool calls than it has."""
    lacking = 0
    for message in record.request.messages:
        told = told_of(message)
        lacking += told.answers - told.calls
    return lacking > 0
