"""What a run's messages tell of the model calls that they came from, put on these where their own spans lack it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from spanreel.model import Message, Usage
from spanreel.records import ModelRecord, RunRecord
from spanreel_collector.dialects.content.messages import FACTS
from spanreel_collector.trace import Forest, Placed, Trace


def fill_calls(trace: Trace) -> Trace:
    """A call gets its counts, its response's id and the model that answered from the message that its run has of it.

    So it is with callbacks of LangChain, which are not told them of streams and of the Responses API.
    """
    told = {placed.id: found for placed in trace if (found := _telling(placed))}
    if not told:
        return trace
    forest = Forest(trace)
    return tuple(_filled(placed, told, forest) for placed in trace)


def _telling(placed: Placed) -> list[Message]:
    record = placed.record
    return [message for message in record.output if message.get(FACTS)] if isinstance(record, RunRecord) else []


def _filled(placed: Placed, told: dict[str, list[Message]], forest: Forest) -> Placed:
    record = placed.record
    if not isinstance(record, ModelRecord) or record.call_id is not None or record.answer is None:
        return placed
    answer = record.answer
    lacks_model = answer.model in (None, record.request.model)
    if not (lacks_model or answer.usage is None or answer.response_id is None) or len(answer.messages) != 1:
        return placed
    said = _gist(answer.messages[0])
    around = (message for above in forest.records_above(placed) for message in told.get(above.id, ()))
    facts: dict[str, Any] = next((message[FACTS] for message in around if _gist(message) == said), {})
    if not facts:
        return placed
    usage = Usage(**facts["usage"]) if answer.usage is None and facts.get("usage") else answer.usage
    answer = replace(
        answer,
        model=facts.get("model") or answer.model if lacks_model else answer.model,
        response_id=answer.response_id or facts.get("response_id"),
        usage=usage,
    )
    return replace(placed, record=replace(record, answer=answer))


def _gist(message: Message) -> tuple[Any, ...]:
    """The words and the calls of a message, by which two tellings of it are known to be of one."""
    parts = message.get("parts") or ()
    calls = [(part.get("id"), part.get("name")) for part in parts if part.get("type") == "tool_call"]
    return "".join(str(part.get("content")) for part in parts if part.get("type") == "text"), *calls
