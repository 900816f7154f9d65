"""OpenAI chat completions, as OpenAI, Azure and many gateways speak them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from spanreel.model import Answer, Json, Operation, Request
from spanreel.protocols.function_tools import read_tool, write_tool
from spanreel.protocols.message_lists import recalling, write_conversation
from spanreel.protocols.named_settings import read_settings
from spanreel.protocols.openai_chat import messages
from spanreel.protocols.openai_chat.answers import read_body, write_body
from spanreel.protocols.openai_chat.stream import join, split
from spanreel.protocols.openai_errors import read_error, write_error
from spanreel.protocols.recalling import Recalling
from spanreel.protocols.residue import objects, overlay, parse_object, residue, same, unexpected, write_json
from spanreel.protocols.shaped import Shaped, said
from spanreel.protocols.sse import STREAM_TYPE

__all__ = [
    "NAME",
    "PATHS",
    "PROVIDER",
    "STREAM_TYPE",
    "join",
    "read_request",
    "read_response",
    "split",
    "write_request",
    "write_response",
]

NAME = "openai_chat"
PROVIDER = "openai"
PATHS: Mapping[str, Operation] = {"/chat/completions": Operation.CHAT, "/agents/completions": Operation.CHAT}

FREE: Final = said("user", "safety_identifier", "prompt_cache_key")
"""What stands in a request and is handed through as it is."""
FORMS: Final = "$forms"
"""In a request's ``provider_fields``: setting to the form that it stood in, where there is more than one."""

# Setting to field; where there are two, the first is written unless FORMS says that it was the second.
_SETTINGS = {
    "temperature": ("temperature",),
    "top_p": ("top_p",),
    "top_k": ("top_k",),
    "max_tokens": ("max_tokens", "max_completion_tokens"),
    "stop_sequences": ("stop",),
    "seed": ("seed", "random_seed"),
    "frequency_penalty": ("frequency_penalty",),
    "presence_penalty": ("presence_penalty",),
    "choice_count": ("n",),
    "tool_choice": ("tool_choice",),
    "parallel_tool_calls": ("parallel_tool_calls",),
    "response_format": ("response_format",),
    "reasoning_effort": ("reasoning_effort",),
    "service_tier": ("service_tier",),
}


def read_request(body: bytes, operation: Operation) -> Request:
    """Read a request; ValueError where it is no object with a list of messages."""
    wire = parse_object(body, f"{NAME} request")
    entries = wire.get("messages")
    if not isinstance(entries, list):
        raise unexpected(f"{NAME} request: messages", entries, "a list")
    read = [_recall_message(entry) for entry in objects(entries, f"{NAME} request: messages")]
    offered = wire["tools"] if isinstance(wire.get("tools"), list) else []
    tools = [_recall_tool(entry) for entry in offered]
    known = {"messages": entries} if all(exact for _, exact in read) else {}
    if all(exact for _, exact in tools):
        known["tools"] = offered
    request = Request(
        operation=operation,
        model=None,
        messages=tuple([message for message, _ in read]),
        tools=tuple([tool for tool, _ in tools]),
    )
    if len(known) < 2:
        return _read_rest(wire, request, known)
    around = {**wire, "messages": []}
    if offered:
        del around["tools"]
    rest = _recall_rest(around)
    return replace(rest, operation=operation, messages=request.messages, tools=(*request.tools, *rest.tools))


def _read_rest(wire: dict[str, Json], request: Request, known: Mapping[str, list[Json]]) -> Request:
    """The request with what is said beside its messages and tools; ``known`` are those that are written as they are."""
    settings, forms = _read_settings(wire)
    request = replace(
        request,
        model=wire["model"] if isinstance(wire.get("model"), str) else None,
        tools=(*request.tools, *_read_legacy_functions(wire)),
        settings=settings,
        stream=wire.get("stream") is True,
        provider_fields={FORMS: forms} if forms else {},
    )
    rest = residue(wire, _write(request, known))
    return replace(request, provider_fields={**request.provider_fields, **rest})


_recall_message: Final = recalling(messages.read_message, messages.write_messages, NAME, messages.FREE)
_recall_tool: Final = Recalling(read_tool, lambda entry, tool: same(write_tool(tool), entry))
_recall_rest: Final = Shaped(lambda wire: _read_rest(wire, Request(Operation.CHAT, None), {}), FREE)


def write_request(request: Request) -> bytes:
    """Write a request."""
    return write_json(_write(request))


def read_response(body: bytes, status: int) -> Answer:
    """Read a plain answer, or a failure."""
    if status >= 400:
        return read_error(body, status)
    answer = read_body(parse_object(body, f"{NAME} response"))
    return answer if answer.status == status else replace(answer, status=status)


def write_response(answer: Answer) -> bytes:
    """Write a plain answer, or a failure."""
    return write_error(answer) if answer.status >= 400 else write_json(write_body(answer))


def _read_settings(wire: Mapping[str, Json]) -> tuple[dict[str, Json], dict[str, Json]]:
    settings, forms = read_settings(wire, _SETTINGS)
    if isinstance(settings.get("stop_sequences"), str):
        settings["stop_sequences"] = [settings["stop_sequences"]]
        forms["stop_sequences"] = "text"
    return settings, forms


def _read_legacy_functions(wire: Mapping[str, Json]) -> list[dict[str, Any]]:
    functions = wire.get("functions")
    legacy = functions if isinstance(functions, list) and all(isinstance(entry, dict) for entry in functions) else []
    return [messages.read_legacy_function(entry) for entry in legacy]


def _write(request: Request, known: Mapping[str, list[Json]] = MappingProxyType({})) -> dict[str, Json]:
    """The request as JSON; ``known`` are its messages and its tools where it is known how they are written."""
    wire: dict[str, Json] = {}
    if request.model is not None:
        wire["model"] = request.model
    wire["messages"] = (
        known["messages"] if "messages" in known else write_conversation(request, messages.write_messages)
    )
    legacy = [tool for tool in request.tools if _is_legacy(tool)]
    tools = [tool for tool in request.tools if not _is_legacy(tool)]
    if tools:
        wire["tools"] = known["tools"] if "tools" in known else [write_tool(tool) for tool in tools]
    if legacy:
        wire["functions"] = [messages.write_legacy_function(tool) for tool in legacy]
    wire |= _write_settings(request)
    if request.stream:
        wire["stream"] = True
    # What was kept must not beat what has been put in since.
    carried = {"stream": request.stream, "tools": bool(tools), "functions": bool(legacy)}
    return overlay(wire, {key: value for key, value in request.provider_fields.items() if not carried.get(key)})


def _write_settings(request: Request) -> dict[str, Json]:
    forms = request.provider_fields.get(FORMS)
    forms = forms if isinstance(forms, dict) else {}
    wire: dict[str, Json] = {}
    for setting, fields in _SETTINGS.items():
        if setting not in request.settings:
            continue
        value = request.settings[setting]
        if forms.get(setting) == "text" and isinstance(value, list) and len(value) == 1:
            value = value[0]
        wire[str(forms[setting]) if forms.get(setting) in fields else fields[0]] = value
    return wire


def _is_legacy(tool: Mapping[str, Json]) -> bool:
    rest = tool.get("provider_fields")
    return isinstance(rest, dict) and rest.get(messages.FORM) == "functions"
