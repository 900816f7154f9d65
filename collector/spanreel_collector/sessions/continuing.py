"""What a model call and the one that goes on from it tell of each other: an answer not told, a history left out."""

from __future__ import annotations

from dataclasses import replace

from spanreel.model import Answer, Fidelity, Message, ModelRecord, Status
from spanreel_collector.sessions.requests import calls_before


def lacks_calls(record: ModelRecord) -> bool:
    """Whether the answer may have asked for tools without that being told: it is not told, or its words alone are."""
    if record.call_id is not None or record.status is not Status.OK:
        return False
    messages = record.answer.messages if record.answer else ()
    return bool(record.request.messages) and len(messages) < 2 and not any(map(_asks, messages))


def completed(record: ModelRecord, later: ModelRecord) -> ModelRecord:
    """The call with the answer as the one after it repeats it; as it is where that repeats another, or nothing new."""
    asked, said = record.request.messages, next(iter(record.answer.messages if record.answer else ()), {})
    repeated = later.request.messages[len(asked)] if len(later.request.messages) > len(asked) else {}
    words = [part for part in repeated.get("parts", ()) if part.get("type") != "tool_call"]
    if not asked or later.request.messages[: len(asked)] != asked or repeated.get("role") != "assistant":
        return record
    if said.get("parts") and (not _asks(repeated) or words != said["parts"]):
        return record
    whole = {"role": "assistant", **said, "parts": repeated.get("parts", [])}
    answer = replace(record.answer or Answer(), messages=(whole,))
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


def _asks(message: Message) -> bool:
    return any(part.get("type") == "tool_call" for part in message.get("parts", ()))
