"""What a model call and the one that goes on from it tell of each other: an answer not told, a history left out."""

from __future__ import annotations

from dataclasses import replace

from spanreel.model import Answer, Fidelity, ModelRecord, Status
from spanreel_collector.sessions.requests import calls_before


def may_be_partial(record: ModelRecord) -> bool:
    """Whether more may have been answered than is told: nothing is, or words alone, or calls alone."""
    if record.call_id is not None or record.status is not Status.OK or not record.request.messages:
        return False
    messages = record.answer.messages if record.answer else ()
    kinds = {part.get("type") == "tool_call" for message in messages for part in message.get("parts", ())}
    return len(messages) < 2 and len(kinds) < 2


def completed(record: ModelRecord, later: ModelRecord) -> ModelRecord:
    """The call with the answer as the one after it repeats it; as it is where that repeats another, or nothing new."""
    asked, said = record.request.messages, next(iter(record.answer.messages if record.answer else ()), {})
    repeated = later.request.messages[len(asked)] if len(later.request.messages) > len(asked) else {}
    if not asked or later.request.messages[: len(asked)] != asked or repeated.get("role") != "assistant":
        return record
    told, whole = said.get("parts", []), repeated.get("parts", [])
    if len(whole) <= len(told) or [part for part in whole if part in told] != told:
        return record
    answer = replace(record.answer or Answer(), messages=({"role": "assistant", **said, "parts": whole},))
    return replace(record, answer=answer, fidelity={**record.fidelity, "output": Fidelity.RECONSTRUCTED})


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
