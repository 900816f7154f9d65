"""How fields came to us, as spans say it: the mark on a field, and what is left of a span without its content."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from opentelemetry.util.types import AttributeValue

from spanreel import conventions as names
from spanreel import json_text
from spanreel.model import Fidelity
from spanreel.records import ModelRecord, RunRecord, ToolRecord

FIELDS: Final[Mapping[type, Mapping[str, str]]] = {
    RunRecord: {
        "input": names.INPUT_MESSAGES,
        "output": names.OUTPUT_MESSAGES,
        "arguments": names.RUN_ARGUMENTS,
        "entrypoint": names.RUN_ENTRYPOINT,
        "result": names.RUN_RESULT,
        "error": names.ERROR_MESSAGE,
    },
    ModelRecord: {
        "instructions": names.SYSTEM_INSTRUCTIONS,
        "input": names.INPUT_MESSAGES,
        "output": names.OUTPUT_MESSAGES,
        "tools": names.TOOL_DEFINITIONS,
        "settings": names.REQUEST_SETTINGS,
        "arguments": names.TOOL_CALL_ARGUMENTS,
        "request_fields": names.REQUEST_PROVIDER_FIELDS,
        "provider_fields": names.RESPONSE_PROVIDER_FIELDS,
        "chunks": names.STREAM_CHUNKS,
        "headers": names.RESPONSE_HEADERS,
        "raw_request": names.RAW_REQUEST,
        "raw_response": names.RAW_RESPONSE,
        "error": names.ERROR_MESSAGE,
    },
    ToolRecord: {
        "arguments": names.TOOL_CALL_ARGUMENTS,
        "arguments_after": names.TOOL_ARGUMENTS_AFTER,
        "raised": names.TOOL_RAISED,
        "result": names.TOOL_CALL_RESULT,
        "error": names.ERROR_MESSAGE,
    },
}
"""Record fields, as fidelity names them, to the attributes that hold them; other names stand for themselves."""

CONTENT: Final = (
    # Oldest first: what came into the call before what came out of it. `bounds` drops from the end.
    names.SYSTEM_INSTRUCTIONS,
    names.RUN_ARGUMENTS,
    names.RUN_ENTRYPOINT,
    names.RUN_DRAWS,
    names.INPUT_MESSAGES,
    names.TOOL_CALL_ARGUMENTS,
    names.TOOL_DESCRIPTION,
    names.TOOL_DEFINITIONS,
    names.REQUEST_STOP_SEQUENCES,
    names.REQUEST_SETTINGS,
    names.REQUEST_PROVIDER_FIELDS,
    names.USER_ID,
    names.SESSION_NAME,
    names.SESSION_METADATA,
    names.RAW_REQUEST,
    names.OUTPUT_MESSAGES,
    names.TOOL_CALL_RESULT,
    names.TOOL_ARGUMENTS_AFTER,
    names.TOOL_RAISED,
    names.RUN_RESULT,
    names.ERROR_MESSAGE,
    names.RESPONSE_ERROR,
    names.RESPONSE_HEADERS,
    names.RESPONSE_PROVIDER_FIELDS,
    names.RAW_RESPONSE,
    names.STREAM_CHUNKS,
)
"""Every attribute of ours that holds content."""

_ERROR_TYPES: Final = frozenset(
    {
        *("api_error", "authentication_error", "billing_error", "content_filter", "content_policy_violation"),
        *("context_length_exceeded", "insufficient_quota", "invalid_api_key", "invalid_prompt"),
        *("invalid_request_error", "model_not_found", "not_found_error", "overloaded_error", "permission_error"),
        *("rate_limit_error", "rate_limit_exceeded", "request_too_large", "server_error", "timeout_error", "tokens"),
        *("requests", "DEADLINE_EXCEEDED", "FAILED_PRECONDITION", "INTERNAL", "INVALID_ARGUMENT", "NOT_FOUND"),
        *("PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "UNAUTHENTICATED", "UNAVAILABLE", "AccessDeniedException"),
        *("ModelErrorException", "ModelTimeoutException", "ResourceNotFoundException", "ThrottlingException"),
        *("ServiceUnavailableException", "ValidationException"),
    }
)
"""What providers call their errors; any other word of a body may be content."""

_SETTINGS_THAT_ARE_NAMES: Final = {
    "tool_choice",
    "service_tier",
    "reasoning_effort",
    "previous_response_id",
    "conversation_id",
}


OWN_MARKS: Final = frozenset({names.FIDELITY, names.REDACTION, names.REDACTION_FAILURES, names.LOSSES})
"""Attributes that say something about others, by name; they hold no content, where they are of our own form."""


def own_mark(name: str, value: Any, safe: Callable[[str], str]) -> Any:
    """What may stay of one of our marks, which anybody can set; ``safe`` redacts a name. None: nothing may."""
    if name == names.REDACTION_FAILURES:
        return value if type(value) is int else None
    said = _decode(value) if isinstance(value, str) else None
    if not isinstance(said, dict):
        return None
    allowed = {safe(key): item for key, item in said.items() if _is_mark(name, key, item, safe)}
    return value if allowed == said else json_text.encode(allowed)


def _is_mark(name: str, key: str, value: Any, safe: Callable[[str], str]) -> bool:
    if name == names.FIDELITY:
        return value in tuple(Fidelity)
    if name == names.LOSSES:
        return type(value) is int and key.isidentifier()
    words = [value] if isinstance(value, str) else value
    named = isinstance(words, list) and all(isinstance(word, str) and len(word) <= 200 for word in words)
    return named and key in ("policy", "key_ids") and all(safe(word) == word for word in words)


def mark(attributes: Mapping[str, AttributeValue], fields: Iterable[str], state: Fidelity) -> dict[str, AttributeValue]:
    """The attributes, with ``spanreel.fidelity`` saying the state of these; of two states the graver stays."""
    fields = tuple(fields)
    if not fields:
        return dict(attributes)
    marks = _marks(attributes)
    changed = False
    for field in fields:
        if _gravity(state) > _gravity(marks.get(field)):
            marks[field] = state.value
            changed = True
    return {**attributes, names.FIDELITY: json_text.encode(marks)} if changed else dict(attributes)


def join_marks(attributes: Mapping[str, AttributeValue], marks: str) -> dict[str, AttributeValue]:
    """The attributes, with what ``marks`` (as ``spanreel.fidelity`` holds them) says too; the graver state stays."""
    marked = dict(attributes)
    for field, state in _marks({names.FIDELITY: marks}).items():
        if state in tuple(Fidelity):
            marked = mark(marked, [field], Fidelity(state))
    return marked


def without_content(attributes: Mapping[str, AttributeValue]) -> dict[str, AttributeValue]:
    """What metadata capture leaves: names, ids, numbers and reasons; nothing that was said, given or answered."""
    kept = {name: value for name, value in attributes.items() if name not in CONTENT}
    for name, reduce in _REDUCED.items():
        value = attributes.get(name)
        reduced = reduce(_decode(value)) if isinstance(value, str) else None
        if reduced:
            kept[name] = json_text.encode(reduced)
    if _is_from_the_body(attributes):
        status = attributes.get(names.RESPONSE_STATUS)
        kept[names.ERROR_TYPE] = str(status) if isinstance(status, int) and status >= 400 else "error"
    missing = [name for name in attributes if name in CONTENT and attributes[name] != kept.get(name)]
    return mark(kept, missing, Fidelity.ABSENT)


def _is_from_the_body(attributes: Mapping[str, AttributeValue]) -> bool:
    """Whether the type of a failure is what a provider wrote, and none of the words that are known."""
    said, kind = attributes.get(names.RESPONSE_ERROR), attributes.get(names.ERROR_TYPE)
    error = _decode(said) if isinstance(said, str) else None
    return isinstance(error, dict) and error.get("type") == kind and not _is_error_type(kind)


def content_of(operation: object) -> tuple[str, ...]:
    """The attributes that hold the content of a span of this operation, for where a whole capture was dropped."""
    if operation in {names.INVOKE_AGENT, names.RUN_STARTED}:
        return (names.INPUT_MESSAGES, names.RUN_ARGUMENTS, names.OUTPUT_MESSAGES, names.RUN_RESULT)
    if operation == names.EXECUTE_TOOL:
        return (names.TOOL_CALL_ARGUMENTS, names.TOOL_CALL_RESULT)
    if operation == names.AGENT_STEP:
        return ()
    return (names.SYSTEM_INSTRUCTIONS, names.INPUT_MESSAGES, names.TOOL_DEFINITIONS, names.OUTPUT_MESSAGES)


def _reduce_tools(tools: Any) -> Any:
    if not isinstance(tools, list):
        return None
    return [{key: tool[key] for key in ("type", "name") if key in tool} for tool in tools if isinstance(tool, dict)]


def _reduce_settings(settings: Any) -> Any:
    if not isinstance(settings, dict):
        return None
    return {
        name: value
        for name, value in settings.items()
        if value is None
        or isinstance(value, (bool, int, float))
        or (isinstance(value, str) and name in _SETTINGS_THAT_ARE_NAMES)
    }


def _reduce_error(error: Any) -> Any:
    if not isinstance(error, dict):
        return None
    kept = {name: value for name, value in error.items() if name in ("category", "type", "raised")}
    return kept if _is_error_type(kept.get("type")) else {**kept, "type": "error"}


def _is_error_type(kind: object) -> bool:
    return isinstance(kind, str) and (kind in _ERROR_TYPES or (len(kind) == 3 and kind.isdecimal()))


_REDUCED: Final = {
    names.TOOL_DEFINITIONS: _reduce_tools,
    names.REQUEST_SETTINGS: _reduce_settings,
    names.RESPONSE_ERROR: _reduce_error,
}


def _marks(attributes: Mapping[str, AttributeValue]) -> dict[str, str]:
    value = attributes.get(names.FIDELITY)
    marks = _decode(value) if isinstance(value, str) else None
    return marks if isinstance(marks, dict) else {}


def _decode(text: str) -> Any:
    try:
        return json_text.decode(text)
    except ValueError:
        return None


_ORDER: Final = (None, "whole", "reconstructed", "redacted", "truncated", "absent")


def _gravity(state: str | None) -> int:
    return _ORDER.index(state) if state in _ORDER else 0
