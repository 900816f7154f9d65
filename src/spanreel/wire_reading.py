"""Records read from a span's attributes: the way back of `wire.write`, for our own spans.

What cannot be read (JSON that a backend has cut) is left out and marked truncated; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from spanreel import conventions as names
from spanreel import json_text
from spanreel.fidelity import FIELDS
from spanreel.model import (
    Agent,
    Answer,
    Error,
    ErrorCategory,
    Fidelity,
    Json,
    Operation,
    Request,
    Status,
    ToolKind,
    Usage,
)
from spanreel.records import Draw, ModelRecord, Record, RunRecord, ToolRecord, TurnRecord
from spanreel.request_settings import read_settings


def read(attributes: Mapping[str, Any]) -> Record | None:
    """The record that these attributes say, or None where they say none that we write."""
    operation = attributes.get(names.OPERATION)
    fields = _Fields(attributes)
    if operation in {names.INVOKE_AGENT, names.RUN_STARTED}:
        return _read_run(fields, started_only=operation == names.RUN_STARTED)
    if operation == names.AGENT_STEP:
        return TurnRecord(fields.get(names.RUN_ID), fields.get(names.TURN_INDEX, 0))
    if operation == names.EXECUTE_TOOL:
        return _read_tool(fields)
    if operation in set(Operation):
        return _read_model(fields, Operation(operation))
    return None


class _Fields:
    """A span's attributes while they are read: decodes, and notes what could not be."""

    def __init__(self, attributes: Mapping[str, Any]) -> None:
        self.attributes = attributes
        self.unreadable: list[str] = []

    def get(self, name: str, default: Any = None) -> Any:
        return self.attributes.get(name, default)

    def json(self, name: str, kind: type | tuple[type, ...], default: Any) -> Any:
        """The decoded value, the default where there is none or none of this kind."""
        text = self.attributes.get(name)
        if text is None:
            return default
        try:
            value = json_text.decode(text) if isinstance(text, str) else text
        except ValueError:
            value = _UNREADABLE
        if value is _UNREADABLE or not isinstance(value, kind):
            self.unreadable.append(name)
            return default
        return value

    def objects(self, name: str) -> tuple[dict[str, Json], ...]:
        return tuple(item for item in self.json(name, list, ()) if isinstance(item, dict))

    def fidelity(self, record: type) -> dict[str, Fidelity]:
        by_attribute = {attribute: field for field, attribute in FIELDS[record].items()}
        marks = {
            by_attribute.get(name, name): Fidelity(state)
            for name, state in self.json(names.FIDELITY, dict, {}).items()
            if state in set(Fidelity)
        }
        for name in self.unreadable:
            marks[by_attribute.get(name, name)] = Fidelity.TRUNCATED
        return marks


_UNREADABLE: Any = object()


def _read_run(fields: _Fields, *, started_only: bool) -> RunRecord:
    entrypoint = fields.json(names.RUN_ENTRYPOINT, dict, {})
    argv, defaults = entrypoint.get("argv"), entrypoint.get("defaults")
    status = _choice(fields, names.RUN_STATUS, Status, Status.OK)
    result = fields.json(names.RUN_RESULT, object, None)
    record = RunRecord(
        run_id=fields.get(names.RUN_ID),
        path=fields.get(names.RUN_PATH),
        agent=_agent(fields),
        input=fields.objects(names.INPUT_MESSAGES),
        output=fields.objects(names.OUTPUT_MESSAGES),
        arguments=fields.json(names.RUN_ARGUMENTS, dict, None),
        argv=None if argv is None else tuple(argv),
        callable=entrypoint.get("callable"),
        defaults=tuple(name for name in defaults if isinstance(name, str)) if isinstance(defaults, list) else (),
        result=result,
        status=status,
        error=_error(fields),
        started_only=started_only,
        sees_tools=fields.get(names.RUN_SEES_TOOLS) is True,
        draws=tuple(draw for one in fields.json(names.RUN_DRAWS, list, []) if (draw := _draw(one)) is not None),
    )
    expected: Expected = () if started_only or status is not Status.OK else ((names.RUN_RESULT, "result"),)
    return replace(record, fidelity=_with_absent(fields.fidelity(RunRecord), fields, expected))


def _draw(told: Json) -> Draw | None:
    """What one place drew; None where redaction, or somebody else, has made something else of it."""
    if not isinstance(told, dict):
        return None
    kind, site, values = told.get("kind"), told.get("site"), told.get("values")
    if not (isinstance(kind, str) and isinstance(site, str) and isinstance(values, list)):
        return None
    return Draw(kind, site, tuple(value for value in values if isinstance(value, str)))


def _read_tool(fields: _Fields) -> ToolRecord:
    status = _choice(fields, names.RUN_STATUS, Status, Status.OK)
    record = ToolRecord(
        name=fields.get(names.TOOL_NAME, ""),
        arguments=fields.json(names.TOOL_CALL_ARGUMENTS, object, None),
        result=fields.json(names.TOOL_CALL_RESULT, object, None),
        call_id=fields.get(names.TOOL_CALL_ID),
        kind=_choice(fields, names.TOOL_KIND, ToolKind, ToolKind.FUNCTION),
        description=fields.get(names.TOOL_DESCRIPTION),
        side_effect=fields.get(names.TOOL_SIDE_EFFECT),
        target=fields.get(names.HANDOFF_TARGET),
        position=fields.get(names.TOOL_POSITION),
        run_id=fields.get(names.RUN_ID),
        turn_index=fields.get(names.TURN_INDEX),
        result_type=fields.get(names.TOOL_RESULT_TYPE),
        arguments_after=fields.json(names.TOOL_ARGUMENTS_AFTER, dict, None),
        raised=fields.json(names.TOOL_RAISED, dict, None),
        status=status,
        error=_error(fields),
    )
    arguments, result = (names.TOOL_CALL_ARGUMENTS, "arguments"), (names.TOOL_CALL_RESULT, "result")
    expected = (arguments, result) if status is Status.OK else (arguments,)
    return replace(record, fidelity=_with_absent(fields.fidelity(ToolRecord), fields, expected))


Expected = tuple[tuple[str, str], ...]
"""Attributes with their fields that a whole record has: what is not there was not recorded."""


def _with_absent(fidelity: dict[str, Fidelity], fields: _Fields, expected: Expected) -> dict[str, Fidelity]:
    for attribute, field in expected:
        if attribute not in fields.attributes:
            fidelity.setdefault(field, Fidelity.ABSENT)
    return fidelity


def _read_model(fields: _Fields, operation: Operation) -> ModelRecord:
    request = Request(
        operation=operation,
        model=fields.get(names.REQUEST_MODEL),
        messages=fields.objects(names.INPUT_MESSAGES),
        instructions=fields.objects(names.SYSTEM_INSTRUCTIONS),
        tools=fields.objects(names.TOOL_DEFINITIONS),
        settings=read_settings(fields.attributes, fields.json(names.REQUEST_SETTINGS, dict, {})),
        stream=fields.get(names.REQUEST_STREAM, False),
        provider_fields=fields.json(names.REQUEST_PROVIDER_FIELDS, dict, {}),
    )
    answer, own_error = _answer(fields, request.stream)
    record = ModelRecord(
        request=request,
        answer=answer,
        provider=fields.get(names.PROVIDER),
        protocol=fields.get(names.PROTOCOL),
        call_id=fields.get(names.CALL_ID),
        attempt=fields.get(names.ATTEMPT, 0),
        run_id=fields.get(names.RUN_ID),
        turn_index=fields.get(names.TURN_INDEX),
        agent=_agent(fields),
        host=fields.get(names.SERVER_ADDRESS),
        port=fields.get(names.SERVER_PORT),
        headers=fields.json(names.RESPONSE_HEADERS, dict, {}),
        time_to_first_chunk=fields.get(names.RESPONSE_TIME_TO_FIRST_CHUNK),
        error=None if own_error else _error(fields),
        status=_choice(fields, names.RUN_STATUS, Status, Status.OK),
        raw_request=fields.get(names.RAW_REQUEST),
        raw_response=fields.get(names.RAW_RESPONSE),
    )
    return replace(record, fidelity=fields.fidelity(ModelRecord))


def _answer(fields: _Fields, asked_for_stream: bool) -> tuple[Answer | None, bool]:
    """The answer, and whether the common error attributes are its own rather than what the call raised."""
    status = fields.get(names.RESPONSE_STATUS)
    if status is None:
        return None, False
    messages = fields.objects(names.OUTPUT_MESSAGES)
    if not messages:  # without content, the reasons are what is left of the messages
        reasons = fields.get(names.RESPONSE_FINISH_REASONS, ())
        messages = tuple({"role": "assistant", "parts": [], "finish_reason": reason} for reason in reasons)
    error = fields.json(names.RESPONSE_ERROR, dict, None)
    answer = Answer(
        response_id=fields.get(names.RESPONSE_ID),
        model=fields.get(names.RESPONSE_MODEL),
        messages=messages,
        usage=_usage(fields),
        status=status,
        error=None if error is None else _stored_error(error),
        streamed=fields.get(names.RESPONSE_STREAMED, asked_for_stream),
        complete=fields.get(names.STREAM_COMPLETE, True),
        chunks=tuple(fields.json(names.STREAM_CHUNKS, list, ())),
        provider_fields=fields.json(names.RESPONSE_PROVIDER_FIELDS, dict, {}),
    )
    own = error is not None and not error.get("raised") and answer.error == _error(fields)
    return answer, own


def _stored_error(stored: dict[str, Any]) -> Error:
    return Error(_category(stored.get("category")), str(stored.get("type")), stored.get("message"))


def _error(fields: _Fields) -> Error | None:
    kind = fields.get(names.ERROR_TYPE)
    if kind is None:
        return None
    return Error(_category(fields.get(names.ERROR_CATEGORY)), kind, fields.get(names.ERROR_MESSAGE))


def _category(value: Any) -> ErrorCategory:
    return ErrorCategory(value) if value in set(ErrorCategory) else ErrorCategory.OTHER


def _usage(fields: _Fields) -> Usage | None:
    usage = Usage(
        input_tokens=fields.get(names.USAGE_INPUT_TOKENS),
        output_tokens=fields.get(names.USAGE_OUTPUT_TOKENS),
        cache_read_tokens=fields.get(names.USAGE_CACHE_READ_TOKENS),
        cache_write_tokens=fields.get(names.USAGE_CACHE_WRITE_TOKENS),
        reasoning_tokens=fields.get(names.USAGE_REASONING_TOKENS),
    )
    return None if usage == Usage() else usage


def _agent(fields: _Fields) -> Agent:
    return Agent(fields.get(names.AGENT_NAME), fields.get(names.AGENT_ID), fields.get(names.AGENT_VERSION))


def _choice(fields: _Fields, name: str, choices: Any, default: Any) -> Any:
    value = fields.get(name)
    return choices(value) if value in set(choices) else default
