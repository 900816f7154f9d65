"""Two records of one thing made one: what the first does not say is taken from the second."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

from spanreel.model import Answer, Fidelity, Json, Message, Status, Usage
from spanreel.records import ModelRecord, Record, RunRecord, ToolRecord
from spanreel_collector.dialects.content import losses
from spanreel_collector.trace import Placed

_T = TypeVar("_T")
_OF_ITEMS = "fc_"
"""How ids begin that the Responses API gives to items; a tool's answer names the call, by another."""


def fill_run(placed: Placed, other: Placed) -> Placed:
    """The run with what only the other span says of it."""
    record, said = placed.record, other.record
    if not isinstance(record, RunRecord) or not isinstance(said, RunRecord):
        return placed
    session = placed.session if placed.session.id else other.session
    return replace(placed, record=fill_run_record(record, said), session=session)


def fill_run_record(record: RunRecord, said: RunRecord) -> RunRecord:
    """The run with what only the other record says of it."""
    fidelity = dict(record.fidelity)
    for field in ("input", "output"):
        if not getattr(record, field) and getattr(said, field):
            fidelity.pop(field, None)
            if field in said.fidelity:
                fidelity[field] = said.fidelity[field]
    filled = _fill(record, said, ("input", "output", "arguments", "argv", "callable", "error"))
    if record.status is Status.OK and said.status not in (Status.OK, Status.UNFINISHED):
        filled = replace(filled, status=said.status)
    if record.agent.name is None and said.agent.name is not None:
        filled = replace(filled, agent=said.agent)
    return replace(filled, fidelity=fidelity)


def fill_tool(record: Record | None, other: ToolRecord) -> Record | None:
    """The tool call with what only the other record says of it."""
    if not isinstance(record, ToolRecord):
        return record
    fidelity = dict(record.fidelity)
    taken: dict[str, Any] = {}
    untold = fidelity.get("result") is Fidelity.ABSENT or _repeats_failure(record, other)
    if untold and record.error is None and other.error is not None:
        # A server's failure may be an answer like any other to its client; so may an exception's words to an agent.
        taken = {"error": other.error, "status": other.status}
    for field in ("arguments", "result"):
        if fidelity.get(field) is Fidelity.ABSENT and other.fidelity.get(field) is not Fidelity.ABSENT:
            taken[field] = getattr(other, field)
            del fidelity[field]
    return replace(_fill(record, other, ("call_id", "description")), **taken, fidelity=fidelity)


def _repeats_failure(record: ToolRecord, other: ToolRecord) -> bool:
    """Whether what one record has as the result is what the exception said that the other has."""
    said = other.error.message if other.error is not None else None
    return bool(said) and record.result == said


def fill_model(record: Record | None, other: Record | None) -> Record | None:
    """The model call with what only the other record says of it."""
    if not isinstance(record, ModelRecord) or not isinstance(other, ModelRecord):
        return record
    fidelity = dict(record.fidelity)
    request, answer = record.request, record.answer
    if not request.messages and other.request.messages:
        request = replace(request, messages=other.request.messages, instructions=other.request.instructions)
        fidelity.pop("input", None)
    elif _left_media_out(record, other):
        request = replace(request, messages=other.request.messages, instructions=other.request.instructions)
        fidelity = _with_state(record, other, "input")
    if not any(message.get("role") == "system" for message in request.messages):
        request = _fill(request, other.request, ("instructions",))
        if request.instructions:
            fidelity.pop("instructions", None)
    request = _fill(request, other.request, ("model", "tools"))
    request = replace(request, settings={**other.request.settings, **request.settings})
    if answer is None:
        answer = other.answer
    elif other.answer is not None:
        answer = _fill_answer(answer, other.answer)
    if has_answer(replace(record, answer=answer)) and not has_answer(record):
        fidelity.pop("output", None)
    filled = _fill(record, other, ("provider", "host", "port", "run_id", "turn_index"))
    return replace(filled, request=request, answer=answer, fidelity=fidelity)


def _left_media_out(record: ModelRecord, other: ModelRecord) -> bool:
    """Whether the other record has all that this one has of what was asked, and images or files besides."""
    here, there = record.request.messages, other.request.messages
    return losses.media_in(there) > losses.media_in(here) and _tells(there) >= _tells(here)


def join_views(first: Record | None, second: Record | None) -> Record | None:
    """What one span says in two vocabularies: what the first lacks comes from the second, lists of messages whole.

    Of two lists the first is taken where it is whole, else the one that tells more; never members of both. Where they
    differ in what the span is, the second is the one that says it by a word of its own.
    """
    if first is None or second is None:
        return first or second
    if isinstance(first, ModelRecord) and isinstance(second, ModelRecord):
        told = (first.request.messages, ({"parts": first.request.instructions},))
        more = _tells(*told) < _tells(second.request.messages, ({"parts": second.request.instructions},))
        if more and not _is_whole(first, "input", first.request.messages):
            emptied = replace(first.request, messages=(), instructions=())
            first = replace(first, request=emptied, fidelity=_with_state(first, second, "input"))
        if first.answer and second.answer and _is_better(second, first):
            answer = replace(first.answer, messages=second.answer.messages)
            first = replace(first, answer=answer, fidelity=_with_state(first, second, "output"))
        return fill_model(first, second)
    if isinstance(first, ToolRecord) and isinstance(second, ToolRecord):
        return fill_tool(first, second)
    if isinstance(first, RunRecord) and isinstance(second, RunRecord):
        if _tells(first.input) < _tells(second.input) and not _is_whole(first, "input", first.input):
            first = replace(first, input=())
        if _tells(first.output) < _tells(second.output) and not _is_whole(first, "output", first.output):
            first = replace(first, output=())
        return fill_run_record(first, second)
    return second


def _is_better(second: ModelRecord, first: ModelRecord) -> bool:
    """Whether the second has more of the answer, of which the first has not all."""
    here = first.answer.messages if first.answer else ()
    there = second.answer.messages if second.answer else ()
    return _tells(here) < _tells(there) and not _is_whole(first, "output", here)


def _is_whole(record: ModelRecord | RunRecord, field: str, found: Sequence[Message]) -> bool:
    """Whether the record has all there was of the field: its library's own words, of which the others are made."""
    return bool(_tells(found)) and record.fidelity.get(field, Fidelity.WHOLE) is Fidelity.WHOLE


def _tells(*lists: Iterable[Message]) -> int:
    parts = [part for messages in lists for message in messages for part in message.get("parts") or ()]
    return len(parts)


def _with_state(record: ModelRecord, other: ModelRecord, field: str) -> dict[str, Fidelity]:
    """The record's fidelity, with this field's state as the other has it."""
    kept = {name: state for name, state in record.fidelity.items() if name != field}
    return {**kept, field: other.fidelity[field]} if field in other.fidelity else kept


def has_answer(record: ModelRecord) -> bool:
    """Whether the answer's content was recorded."""
    return record.answer is not None and any(message.get("parts") for message in record.answer.messages)


def _fill_answer(answer: Answer, other: Answer) -> Answer:
    usage = answer.usage
    if usage is None or other.usage is None:
        usage = usage or other.usage
    else:
        usage = _fill(usage, other.usage, tuple(field.name for field in fields(Usage)))
    messages = answer.messages if any(m.get("parts") for m in answer.messages) else other.messages or answer.messages
    if None in (asked := _call_ids(messages)) and len(known := _call_ids(other.messages)) == len(asked):
        messages = messages if None in known else other.messages
    return replace(_fill(answer, other, ("response_id", "model")), usage=usage, messages=messages)


def _call_ids(messages: Iterable[Message]) -> list[Json]:
    """The ids of the calls that messages ask for; None of those that have none, or the item's instead."""
    parts = (part for message in messages for part in message.get("parts") or ())
    found = (part.get("id") for part in parts if part.get("type") == "tool_call")
    return [None if isinstance(one, str) and one.startswith(_OF_ITEMS) else one for one in found]


def _fill(value: _T, other: Any, names: tuple[str, ...]) -> _T:
    """The value with these fields of the other where its own are empty."""
    taken = {
        name: getattr(other, name) for name in names if getattr(value, name) in (None, ()) and getattr(other, name)
    }
    return replace(value, **taken) if taken else value  # type: ignore[type-var]
