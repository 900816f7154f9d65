"""Calls of tools under one id: some writers give the Responses API's items as calls, and answers the calls' ids."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from spanreel.session import Message, ModelCall, Run, Session

_OF_ITEMS = "fc_"
"""How ids begin that the Responses API gives to items; a tool's answer names the call, by another."""
_Pair = tuple[str, str]


def name_calls(session: Session) -> None:
    """Put the calls' ids in the place of their items', where answers or tools' own spans tell which is which.

    OpenLLMetry writes items in histories and answers, so that a replay finds no call for what its tools answer. An item
    that would be of two calls keeps its id. Done when the session is whole: its traces are joined by what they say.
    """
    if not any(map(_is_item, (one for message in session.messages for one in _ids(message, "tool_call")))):
        return
    found: dict[str, set[str]] = defaultdict(set)
    for run in session.runs:
        for item, named in _told(session.messages, run):
            found[item].add(named)
    names = {item: next(iter(calls)) for item, calls in found.items() if len(calls) == 1}
    for message in session.messages if names else ():
        if any(one in names for one in _ids(message, "tool_call")):
            # The parts may be shared with the record that they were read from.
            message.parts = [
                {**part, "id": names.get(str(part.get("id")), part.get("id"))}
                if part.get("type") == "tool_call"
                else part
                for part in message.parts
            ]
    for run in session.runs if names else ():
        for call in run.tool_calls():
            call.call_id = names.get(call.call_id or "", call.call_id)


def _is_item(identity: str) -> bool:
    return identity.startswith(_OF_ITEMS)


def _ids(message: Message, kind: str) -> list[str]:
    return [one for part in message.parts if part.get("type") == kind and isinstance(one := part.get("id"), str)]


def _told(messages: Sequence[Message], run: Run) -> Iterator[_Pair]:
    """Items and the calls that they are, as histories, the next requests and tools' spans tell."""
    calls = list(run.model_calls())
    for call in calls:
        yield from _in_history(messages[index] for index in call.input)
    for before, after in itertools.pairwise(calls):
        yield from _in_next(messages, before, after)
    asked = {call.id: [one for index in call.output for one in _ids(messages[index], "tool_call")] for call in calls}
    for tool in run.tool_calls():
        if tool.call_id is not None and tool.requested_by is not None:
            wanted = asked.get(tool.requested_by.model_call, [])
            position = tool.requested_by.position
            yield from _pairs(wanted[position : position + 1], [tool.call_id])


def _in_history(history: Iterable[Message]) -> Iterator[_Pair]:
    """What answers right after calls name, as many as these are, in their order."""
    called: list[str] = []
    answered: list[str] = []
    for message in history:
        calls, answers = _ids(message, "tool_call"), _ids(message, "tool_call_response")
        if answers and not calls:
            answered += answers
            continue
        if answered or not calls:
            yield from _pairs(called, answered)
            called, answered = [], []
        called = [*called, *calls]  # calls made at once may be messages of their own
    yield from _pairs(called, answered)


def _in_next(messages: Sequence[Message], before: ModelCall, after: ModelCall) -> Iterator[_Pair]:
    """What the next request answers and does not call, where it holds no more of the history."""
    told = [messages[index] for index in after.input]
    if not any(_ids(message, "tool_call") for message in told):
        wanted = [one for index in before.output for one in _ids(messages[index], "tool_call")]
        yield from _pairs(wanted, [one for message in told for one in _ids(message, "tool_call_response")])


def _pairs(called: Sequence[str], answered: Sequence[str]) -> Iterator[_Pair]:
    if len(called) == len(answered) and not set(called) & set(answered):
        for item, call in zip(called, answered, strict=True):
            if _is_item(item) and not _is_item(call):
                yield item, call
