"""What a span says, as attributes: records written, without loss, and read again (`wire_reading`).

GenAI attributes first, ours for what those lack (`conventions`). JSON is text; absent is absent, and a JSON null is
written as one. Lists of messages and of tools remember the texts of their items (`json_text.Listed`): most stood in the
call before, and what is done with them by content need not be done again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.util.types import AttributeValue

from spanreel import conventions as names
from spanreel import json_text
from spanreel.fidelity import FIELDS, mark, without_content
from spanreel.model import Agent, Answer, Error, Fidelity, Request, Usage
from spanreel.records import ModelRecord, Record, RunRecord, ToolRecord
from spanreel.request_settings import write_settings
from spanreel.wire_reading import read

__all__ = ["mark", "read", "without_content", "write"]

API_TYPES = {"openai_chat": "chat_completions", "openai_responses": "responses"}
"""Protocols to the values of ``openai.api.type``."""


def write(record: Record, *, content: bool = True) -> dict[str, AttributeValue]:
    """The attributes that say what the record says; `read` gives it back. Without ``content``, what is left of it."""
    if isinstance(record, ModelRecord):
        attributes = _write_model(record)
    elif isinstance(record, ToolRecord):
        attributes = _write_tool(record)
    elif isinstance(record, RunRecord):
        attributes = _write_run(record)
    else:
        attributes = _present(
            {names.OPERATION: names.AGENT_STEP, names.RUN_ID: record.run_id, names.TURN_INDEX: record.index}
        )
    if not content:
        attributes = without_content(attributes)
    return attributes


def _write_run(record: RunRecord) -> dict[str, AttributeValue]:
    entrypoint: dict[str, Any] = {"argv": record.argv, "callable": record.callable}
    entrypoint = {name: value for name, value in entrypoint.items() if value is not None}
    if record.defaults:
        entrypoint["defaults"] = record.defaults
    attributes: dict[str, Any] = {
        names.OPERATION: names.RUN_STARTED if record.started_only else names.INVOKE_AGENT,
        names.RUN_ID: record.run_id,
        names.RUN_PATH: record.path,
        **_agent(record.agent),
        names.INPUT_MESSAGES: _list(record.input),
        names.OUTPUT_MESSAGES: _list(record.output),
        names.RUN_ARGUMENTS: None if record.arguments is None else json_text.encode_parted(record.arguments),
        names.RUN_ENTRYPOINT: _json(entrypoint),
        names.RUN_RESULT: _value(record.result, record.fidelity.get("result"), known=not _without_result(record)),
        names.RUN_SEES_TOOLS: record.sees_tools or None,
        names.RUN_DRAWS: _json(
            [{"kind": one.kind, "site": one.site, "values": list(one.values)} for one in record.draws]
        ),
        names.RUN_STATUS: None if record.started_only and record.status == "ok" else record.status.value,
        **_error(record.error),
        names.FIDELITY: _fidelity(record.fidelity, FIELDS[RunRecord]),
    }
    return _present(attributes)


def _without_result(record: RunRecord | ToolRecord) -> bool:
    """Whether None means that nothing came of it, rather than a JSON null."""
    started_only = isinstance(record, RunRecord) and record.started_only
    return record.result is None and (record.status != "ok" or started_only)


def _write_tool(record: ToolRecord) -> dict[str, AttributeValue]:
    attributes: dict[str, Any] = {
        names.OPERATION: names.EXECUTE_TOOL,
        names.TOOL_NAME: record.name,
        names.TOOL_TYPE: "function" if record.kind in {"function", "mcp"} else "extension",
        names.TOOL_KIND: record.kind.value,
        names.TOOL_DESCRIPTION: record.description,
        names.TOOL_CALL_ID: record.call_id,
        names.TOOL_CALL_ARGUMENTS: _value(record.arguments, record.fidelity.get("arguments")),
        names.TOOL_CALL_RESULT: _value(record.result, record.fidelity.get("result"), known=not _without_result(record)),
        names.TOOL_RESULT_TYPE: record.result_type,
        names.TOOL_ARGUMENTS_AFTER: _json(dict(record.arguments_after or {})),
        names.TOOL_RAISED: _json(dict(record.raised or {})),
        names.TOOL_SIDE_EFFECT: record.side_effect,
        names.TOOL_POSITION: record.position,
        names.HANDOFF_TARGET: record.target,
        names.RUN_ID: record.run_id,
        names.TURN_INDEX: record.turn_index,
        names.RUN_STATUS: record.status.value,
        **_error(record.error),
        names.FIDELITY: _fidelity(record.fidelity, FIELDS[ToolRecord]),
    }
    return _present(attributes)


def _write_model(record: ModelRecord) -> dict[str, AttributeValue]:
    attributes: dict[str, Any] = {
        **_request(record.request),
        names.PROVIDER: record.provider,
        names.PROTOCOL: record.protocol,
        names.OPENAI_API_TYPE: API_TYPES.get(record.protocol or ""),
        names.CALL_ID: record.call_id,
        names.ATTEMPT: record.attempt if record.attempt or record.call_id else None,
        names.RUN_ID: record.run_id,
        names.TURN_INDEX: record.turn_index,
        **_agent(record.agent),
        names.SERVER_ADDRESS: record.host,
        names.SERVER_PORT: record.port,
        names.RESPONSE_HEADERS: _json(record.headers),
        names.RESPONSE_TIME_TO_FIRST_CHUNK: record.time_to_first_chunk,
        names.RUN_STATUS: record.status.value,
        names.RAW_REQUEST: record.raw_request,
        names.RAW_RESPONSE: record.raw_response,
        names.FIDELITY: _fidelity(record.fidelity, FIELDS[ModelRecord]),
        **_error(record.error),
    }
    if record.answer is not None:
        attributes |= _answer(record.answer, record.request.stream)
        attributes |= _answer_error(record.answer, record.error)
    return _present(attributes)


def _request(request: Request) -> dict[str, Any]:
    return {
        names.OPERATION: request.operation.value,
        names.REQUEST_MODEL: request.model,
        names.SYSTEM_INSTRUCTIONS: _list(request.instructions),
        names.INPUT_MESSAGES: _list(request.messages),
        names.TOOL_DEFINITIONS: _list(request.tools),
        names.REQUEST_STREAM: request.stream or None,
        names.REQUEST_PROVIDER_FIELDS: _json(request.provider_fields),
        **write_settings(request.settings),
    }


def _answer(answer: Answer, asked_for_stream: bool) -> dict[str, Any]:
    usage = answer.usage or Usage()
    return {
        names.RESPONSE_ID: answer.response_id,
        names.RESPONSE_MODEL: answer.model,
        names.OUTPUT_MESSAGES: _list(answer.messages),
        names.RESPONSE_FINISH_REASONS: answer.finish_reasons or None,
        names.RESPONSE_STATUS: answer.status,
        names.RESPONSE_STREAMED: None if answer.streamed == asked_for_stream else answer.streamed,
        names.STREAM_COMPLETE: None if answer.complete else False,
        names.STREAM_CHUNKS: _json(answer.chunks),
        names.RESPONSE_PROVIDER_FIELDS: _json(answer.provider_fields),
        names.USAGE_INPUT_TOKENS: usage.input_tokens,
        names.USAGE_OUTPUT_TOKENS: usage.output_tokens,
        names.USAGE_CACHE_READ_TOKENS: usage.cache_read_tokens,
        names.USAGE_CACHE_WRITE_TOKENS: usage.cache_write_tokens,
        names.USAGE_REASONING_TOKENS: usage.reasoning_tokens,
    }


def _answer_error(answer: Answer, raised: Error | None) -> dict[str, Any]:
    """The provider's own error; it stands in the common attributes too where the call raised no other."""
    if answer.error is None:
        return {}
    error: dict[str, Any] = {"category": answer.error.category.value, "type": answer.error.type}
    if answer.error.message is not None:
        error["message"] = answer.error.message
    if raised == answer.error:
        error["raised"] = True
    return {**_error(raised or answer.error), names.RESPONSE_ERROR: json_text.encode(error)}


def _agent(agent: Agent) -> dict[str, Any]:
    return {names.AGENT_NAME: agent.name, names.AGENT_ID: agent.id, names.AGENT_VERSION: agent.version}


def _error(error: Error | None) -> dict[str, Any]:
    if error is None:
        return {}
    return {
        names.ERROR_TYPE: error.type,
        names.ERROR_CATEGORY: error.category.value,
        names.ERROR_MESSAGE: error.message,
    }


def _fidelity(fidelity: Mapping[str, Fidelity], fields: Mapping[str, str]) -> str | None:
    return _json({fields.get(field, field): state.value for field, state in fidelity.items()})


def _json(value: Any) -> str | None:
    """JSON text of what is not empty."""
    return json_text.encode(value) if value else None


def _list(values: Sequence[Any]) -> str | None:
    """JSON text of a list that is not empty, whose items are known apart: most stood in the call before."""
    return json_text.encode_list(values) if values else None


def _value(value: Any, fidelity: Fidelity | None, *, known: bool = True) -> str | None:
    """JSON text of a value that may be null; nothing where there is none."""
    return None if fidelity is Fidelity.ABSENT or not known else json_text.encode(value)


def _present(attributes: dict[str, Any]) -> dict[str, AttributeValue]:
    return {name: value for name, value in attributes.items() if value is not None}
