"""Gemini's generateContent, as Google's API and Vertex speak it. Model and streaming are said by the path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from spanreel.model import Answer, Json, Operation, Request, ToolDefinition
from spanreel.protocols.gemini.answers import read_body, write_body, write_failure
from spanreel.protocols.gemini.parts import (
    read_content,
    read_declaration,
    read_part,
    write_content,
    write_declaration,
    write_part,
)
from spanreel.protocols.gemini.spelling import SPELLED, respell, spell_again
from spanreel.protocols.gemini.stream import LIST, join, join_list, split
from spanreel.protocols.media import read_own, write_own
from spanreel.protocols.openai_errors import read_error, write_error
from spanreel.protocols.recalling import Recalling
from spanreel.protocols.residue import objects, overlay, parse_object, residue, same, unexpected, write_json
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

NAME = "gemini"
PROVIDER = "gcp.gemini"
PATHS: Mapping[str, Operation] = {":generateContent": Operation.CHAT, ":streamGenerateContent": Operation.CHAT}

FORMS: Final = "$forms"
"""In a request's ``provider_fields``: ``tools``, how many declarations each entry had; null for one of another kind."""
DECLARATIONS: Final = "functionDeclarations"
CONFIG: Final = "generationConfig"

_SETTINGS: Final = {
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "max_tokens": "maxOutputTokens",
    "stop_sequences": "stopSequences",
    "seed": "seed",
    "frequency_penalty": "frequencyPenalty",
    "presence_penalty": "presencePenalty",
    "choice_count": "candidateCount",
}


def read_request(body: bytes, operation: Operation) -> Request:
    """Read a request; ValueError where it is no object with a list of contents."""
    asked = parse_object(body, f"{NAME} request")
    wire, spelled = respell(asked)
    contents = wire.get("contents")
    if not isinstance(contents, list):
        raise unexpected(f"{NAME} request: contents", contents, "a list")
    read = [_recall_content(entry) for entry in objects(contents, f"{NAME} request: contents")]
    tools, forms = _read_tools(wire.get("tools"))
    if spelled:
        forms = {**forms, SPELLED: spelled}
    request = Request(
        operation=operation,
        model=None,
        messages=tuple(message for message, _ in read),
        instructions=_read_instructions(wire.get("systemInstruction")),
        tools=tools,
        settings=_read_settings(wire),
        provider_fields=forms,
    )
    known: dict[str, Json] = {"contents": contents} if all(exact for _, exact in read) else {}
    return replace(request, provider_fields={**forms, **residue(asked, _write(request, known))})


_recall_content: Final = Recalling(
    lambda entry: read_content(entry, f"{NAME} request: a content"),
    lambda entry, message: same(write_content(message), entry),
)


def write_request(request: Request) -> bytes:
    """Write a request; what the path says of it is not in it."""
    return write_json(_write(request))


def read_response(body: bytes, status: int) -> Answer:
    """Read a plain answer, or one that was streamed as a JSON list, or a failure."""
    if status >= 400:
        return read_error(body, status, write_failure)
    if body.lstrip()[:1] == b"[":
        chunks = parse_object(b'{"chunks":%b}' % body, f"{NAME} response")["chunks"]
        if chunks:
            return replace(join_list(chunks), status=status)
    return replace(read_body(parse_object(body, f"{NAME} response")), status=status)


def write_response(answer: Answer) -> bytes:
    """Write an answer as `read_response` read it, or a failure."""
    if answer.status >= 400:
        return write_error(answer, write_failure)
    if answer.provider_fields.get(LIST):
        return b"".join(piece for _, piece in split(answer))
    return write_json(write_body(answer))


def _read_instructions(wire: Json) -> tuple[dict[str, Json], ...]:
    parts = wire.get("parts") if isinstance(wire, dict) else None
    return tuple(map(read_part, parts)) if isinstance(parts, list) else ()


def _read_tools(wire: Json) -> tuple[tuple[ToolDefinition, ...], dict[str, Json]]:
    """The tools, declarations first of each entry, and how they were grouped where that is not as we would."""
    tools: list[ToolDefinition] = []
    groups: list[Json] = []
    for entry in wire if isinstance(wire, list) else ():
        declared = entry.get(DECLARATIONS) if isinstance(entry, dict) and len(entry) == 1 else None
        if isinstance(declared, list) and all(isinstance(one, dict) for one in declared):
            tools += map(read_declaration, declared)
            groups.append(len(declared))
        else:
            tools.append(_read_own_tool(entry))
            groups.append(None)
    is_ours = groups == _groups(tools)
    return tuple(tools), {} if is_ours else {FORMS: {"tools": groups}}


def _read_own_tool(entry: Json) -> ToolDefinition:
    """A tool that the provider runs itself, under its name."""
    if isinstance(entry, dict) and len(entry) == 1:
        ((name, inner),) = entry.items()
        if isinstance(inner, dict) and "type" not in inner:
            return read_own({"type": name, **inner})
    return {"type": "other", "value": entry}


def _write_own_tool(tool: ToolDefinition) -> Json:
    if tool.get("type") == "other":
        return write_own(tool)
    return {str(tool.get("type")): {key: value for key, value in tool.items() if key != "type"}}


def _groups(tools: list[ToolDefinition]) -> list[Json]:
    """How we group: all declarations as one entry, in front."""
    functions = sum(_is_function(tool) for tool in tools)
    own: list[Json] = [None] * (len(tools) - functions)
    return [functions, *own] if functions else own


def _write_tools(request: Request) -> list[Json]:
    functions = [tool for tool in request.tools if _is_function(tool)]
    others = [tool for tool in request.tools if not _is_function(tool)]
    forms = request.provider_fields.get(FORMS)
    groups = forms.get("tools") if isinstance(forms, dict) else None
    counted = [group for group in groups if isinstance(group, int)] if isinstance(groups, list) else []
    if not isinstance(groups, list) or sum(counted) != len(functions) or groups.count(None) != len(others):
        groups = _groups(list(request.tools))
    written: list[Json] = []
    for group in groups:
        if group is None:
            written.append(_write_own_tool(others.pop(0)))
        else:
            written.append({DECLARATIONS: [write_declaration(tool) for tool in functions[:group]]})
            functions = functions[group:]
    return written


def _is_function(tool: ToolDefinition) -> bool:
    return tool.get("type") == "function"


def _read_settings(wire: Mapping[str, Json]) -> dict[str, Json]:
    config, tools = wire.get(CONFIG), wire.get("toolConfig")
    settings: dict[str, Json] = {}
    if isinstance(config, dict):
        settings = {setting: config[field] for setting, field in _SETTINGS.items() if field in config}
        thinking = config.get("thinkingConfig")
        if isinstance(thinking, dict) and isinstance(thinking.get("thinkingLevel"), str):
            settings["reasoning_effort"] = thinking["thinkingLevel"]
    if isinstance(tools, dict) and "functionCallingConfig" in tools:
        settings["tool_choice"] = tools["functionCallingConfig"]
    return settings


def _write(request: Request, known: Mapping[str, Json] = MappingProxyType({})) -> dict[str, Json]:
    """The request as JSON; ``known`` are its contents where it is known how they are written."""
    wire: dict[str, Json] = {"contents": known["contents"] if "contents" in known else _write_contents(request)}
    instructions = [part for part in _instructions(request) if isinstance(part, dict)]
    if instructions:
        wire["systemInstruction"] = {"parts": [write_part(part) for part in instructions]}
    if request.tools:
        wire["tools"] = _write_tools(request)
    config: dict[str, Json] = {
        field: request.settings[setting] for setting, field in _SETTINGS.items() if setting in request.settings
    }
    if "reasoning_effort" in request.settings:
        config["thinkingConfig"] = {"thinkingLevel": request.settings["reasoning_effort"]}
    if config:
        wire[CONFIG] = config
    if "tool_choice" in request.settings:
        wire["toolConfig"] = {"functionCallingConfig": request.settings["tool_choice"]}
    # What was kept must not beat what has been put in since.
    rest = {key: value for key, value in request.provider_fields.items() if not (key == "tools" and request.tools)}
    return overlay(spell_again(wire, rest.get(SPELLED)), rest)


def _instructions(request: Request) -> list[Json]:
    """What is said beside the messages: here system messages of other protocols are, too."""
    told = [part for message in request.messages if message.get("role") == "system" for part in message["parts"]]
    return [*request.instructions, *told]


def _write_contents(request: Request) -> list[Json]:
    return [write_content(message) for message in request.messages if message.get("role") != "system"]
