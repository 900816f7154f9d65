"""Our own spans. What their attributes mean is `spanreel.wire`'s, which writes them too; strangers stay out here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from spanreel import conventions as names
from spanreel import wire
from spanreel.fidelity import FIELDS
from spanreel.model import Fidelity, Json, Message, Status
from spanreel.records import ModelRecord, Record, RunRecord, ToolRecord
from spanreel_collector.span import Attributes, RawSpan

NAME = "spanreel"

_WHOLE = (
    names.TURN_INDEX,
    names.ATTEMPT,
    names.TOOL_POSITION,
    names.RESPONSE_STATUS,
    names.SERVER_PORT,
    names.REQUEST_TOP_K,
    names.REQUEST_MAX_TOKENS,
    names.REQUEST_SEED,
    names.REQUEST_CHOICE_COUNT,
    names.EMBEDDINGS_DIMENSION_COUNT,
    names.USAGE_INPUT_TOKENS,
    names.USAGE_OUTPUT_TOKENS,
    names.USAGE_CACHE_READ_TOKENS,
    names.USAGE_CACHE_WRITE_TOKENS,
    names.USAGE_REASONING_TOKENS,
)
_NUMBERS = (
    names.REQUEST_TEMPERATURE,
    names.REQUEST_TOP_P,
    names.REQUEST_FREQUENCY_PENALTY,
    names.REQUEST_PRESENCE_PENALTY,
    names.RESPONSE_TIME_TO_FIRST_CHUNK,
)
_TRUTHS = (
    names.REQUEST_STREAM,
    names.RESPONSE_STREAMED,
    names.STREAM_COMPLETE,
    names.TOOL_SIDE_EFFECT,
    names.RUN_SEES_TOOLS,
)
_LISTS = (
    names.REQUEST_STOP_SEQUENCES,
    names.REQUEST_ENCODING_FORMATS,
    names.RESPONSE_FINISH_REASONS,
    names.SESSION_TAGS,
)


def speaks(span: RawSpan) -> bool:
    """Whether spanreel wrote the span."""
    return span.origin.scope == names.SCOPE


def read(span: RawSpan) -> Record | None:
    """What the span says; None where it only groups others. Values of a type that we never write are not there."""
    record = _checked(wire.read(_written_by_us(span.attributes)))
    return _note_dropped(record, span) if record is not None and span.dropped_attributes else record


def _note_dropped(record: Record, span: RawSpan) -> Record:
    """The record of a span that lost attributes on its way: what is not there may have been."""
    if not isinstance(record, (ModelRecord, ToolRecord)):
        return record
    answered = record.error is None and record.status is Status.OK
    fields = _MAY_BE_DROPPED[type(record)]
    missing = [
        field
        for field in fields
        if FIELDS[type(record)][field] not in span.attributes and (answered or field not in ("output", "result"))
    ]
    return replace(record, fidelity={**dict.fromkeys(missing, Fidelity.ABSENT), **record.fidelity})


_MAY_BE_DROPPED: Final[Mapping[type, tuple[str, ...]]] = {
    ModelRecord: ("instructions", "input", "output", "tools", "settings"),
    ToolRecord: ("arguments", "result"),
}


def _written_by_us(attributes: Attributes) -> Attributes:
    return {name: value for name, value in attributes.items() if _has_our_type(name, value)}


def _has_our_type(name: str, value: Json) -> bool:
    if name in _WHOLE:
        return isinstance(value, int) and not isinstance(value, bool)
    if name in _NUMBERS:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if name in _TRUTHS:
        return isinstance(value, bool)
    if name in _LISTS:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    return isinstance(value, str)


def _checked(record: Record | None) -> Record | None:
    """The record without what cannot stand in a document: JSON that is not of the form we write."""
    if isinstance(record, RunRecord):
        words: tuple[Json, ...] = record.argv or ()
        argv = record.argv if all(isinstance(word, str) for word in words) else None
        named = record.callable if isinstance(record.callable, str) else None
        return replace(
            record, argv=argv, callable=named, input=_messages(record.input), output=_messages(record.output)
        )
    if isinstance(record, ModelRecord):
        given: Mapping[str, Json] = record.headers
        headers = {name: value for name, value in given.items() if isinstance(value, str)}
        answer = record.answer
        if answer is not None:
            chunks: tuple[Json, ...] = answer.chunks
            answer = replace(
                answer,
                messages=_messages(answer.messages),
                chunks=tuple(chunk for chunk in chunks if isinstance(chunk, list)),
            )
        request = replace(record.request, messages=_messages(record.request.messages))
        return replace(record, headers=headers, request=request, answer=answer)
    return record


def _messages(written: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages that have a role and parts, and of their parts those that say their type."""
    return tuple(
        {**message, "parts": [part for part in message["parts"] if _is_part(part)]}
        for message in written
        if isinstance(message.get("role"), str) and isinstance(message.get("parts"), list)
    )


def _is_part(part: object) -> bool:
    return isinstance(part, dict) and isinstance(part.get("type"), str)
