"""Content in the form of Gemini's API: contents of parts, function declarations, usage metadata."""

from __future__ import annotations

from typing import Any

from spanreel.model import Json, Message, ToolDefinition, Usage
from spanreel.protocols import media
from spanreel_collector.dialects import values

_USAGE = {
    "cache_read_tokens": ("cached_content_token_count", "cachedContentTokenCount"),
    "reasoning_tokens": ("thoughts_token_count", "thoughtsTokenCount"),
}
_INPUT = (
    ("prompt_token_count", "promptTokenCount"),
    ("tool_use_prompt_token_count", "toolUsePromptTokenCount"),
)
_OUTPUT = (("candidates_token_count", "candidatesTokenCount"), _USAGE["reasoning_tokens"])
_SCHEMAS = ("response_json_schema", "responseJsonSchema", "response_schema", "responseSchema")
_DECLARATIONS = ("function_declarations", "functionDeclarations")


def is_content(value: Json) -> bool:
    """Whether a value is a content: an object with a list of parts."""
    return isinstance(value, dict) and isinstance(value.get("parts"), list)


def read_message(item: dict[str, Any]) -> Message:
    """The message that a content is; one that holds a function's response is the tool's."""
    parts = [part for given in item["parts"] if (part := _read_part(given)) is not None]
    role = values.role(item["role"]) if isinstance(item.get("role"), str) else "user"
    answers = any(part["type"] == "tool_call_response" for part in parts)
    return {"role": "tool" if answers else role, "parts": parts}


def read_instructions(value: Json) -> list[dict[str, Json]]:
    """The parts of a system instruction: text, a content, a part, or a list of these."""
    found: list[dict[str, Json]] = []
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str) and item:
            found.append({"type": "text", "content": item})
        elif is_content(item):
            found += read_message(item)["parts"]
        elif isinstance(item, dict) and (part := _read_part(item)) is not None:
            found.append(part)
    return found


def read_tools(value: Json) -> tuple[ToolDefinition, ...]:
    """The tools of a request: its function declarations, and by name alone what the provider runs itself."""
    found: list[ToolDefinition] = []
    for tool in value if isinstance(value, list) else []:
        for key, inner in tool.items() if isinstance(tool, dict) else ():
            if key in _DECLARATIONS and isinstance(inner, list):
                found += [_declaration(one) for one in inner if isinstance(one, dict) and one]
            elif inner is not None:
                found.append({"type": key, "provider_fields": inner} if inner else {"type": key})
    return tuple(found)


def read_usage(metadata: Json) -> Usage | None:
    """The counts: what was thought belongs to the output, what tools of the provider's put in to the input."""
    if not isinstance(metadata, dict):
        return None
    told = {field: values.integer(metadata, *keys) for field, keys in _USAGE.items()}
    usage = Usage(input_tokens=_sum(metadata, _INPUT), output_tokens=_sum(metadata, _OUTPUT), **told)
    return values.whole_usage(usage) if usage != Usage() else None


def read_result(response: Json) -> Json:
    """What a function gave; the SDK puts what is no object into one."""
    return response["result"] if isinstance(response, dict) and set(response) == {"result"} else response


def read_settings(config: dict[str, Any]) -> dict[str, Json]:
    """The settings that Gemini has a form of its own for: what the answer is to be, which tools are to be called."""
    found: dict[str, Json] = {}
    if values.text(config, "response_mime_type", "responseMimeType") == "application/json":
        schema = next((config[key] for key in _SCHEMAS if config.get(key)), None)
        found["response_format"] = {"type": "json_schema", "schema": schema} if schema else {"type": "json_object"}
    calling = _inner(
        _inner(config, "tool_config", "toolConfig") or {}, "function_calling_config", "functionCallingConfig"
    )
    mode = values.text(calling or {}, "mode")
    return {**found, "tool_choice": mode.lower()} if mode else found


def _read_part(given: Json) -> dict[str, Json] | None:
    told = {key: value for key, value in given.items() if value is not None} if isinstance(given, dict) else {}
    part = _read_known(told)
    if part is None:
        rest = {key: value for key, value in told.items() if key not in ("thought", "thought_signature")}
        part = {"type": "other", "value": rest} if rest else None
    if part is not None and told.get("thought_signature"):
        part["provider_fields"] = {"thought_signature": told["thought_signature"]}
    return part


def _read_known(part: dict[str, Any]) -> dict[str, Json] | None:
    if isinstance(part.get("text"), str):
        return {"type": "reasoning" if part.get("thought") else "text", "content": part["text"]}
    call, result = _inner(part, "function_call", "functionCall"), _inner(part, "function_response", "functionResponse")
    if call is not None:
        identity, name = values.text(call, "id"), values.text(call, "name")
        return {"type": "tool_call", "id": identity, "name": name, "arguments": call.get("args")}
    if result is not None:
        answer = {"type": "tool_call_response", "id": values.text(result, "id")}
        return {**answer, "response": read_result(result.get("response"))}
    data, file = _inner(part, "inline_data", "inlineData"), _inner(part, "file_data", "fileData")
    if data is not None:
        kept = {"mime_type": _mime_type(data), "modality": _modality(data)}
        return {"type": "blob", **kept, **({"content": data["data"]} if isinstance(data.get("data"), str) else {})}
    if file is not None and (url := values.text(file, "file_uri", "fileUri")):
        return {**media.read_url(url, _modality(file)), "mime_type": _mime_type(file)}
    code, ran = _inner(part, "executable_code"), _inner(part, "code_execution_result")
    if code is not None:
        return {"type": "server_tool_call", "id": None, "name": "code_execution", "server_tool_call": code}
    if ran is not None:
        return {"type": "server_tool_call_response", "id": None, "server_tool_call_response": ran}
    return None


def _inner(part: dict[str, Any], *keys: str) -> dict[str, Any] | None:
    return next((part[key] for key in keys if isinstance(part.get(key), dict)), None)


def _mime_type(data: dict[str, Any]) -> str | None:
    return values.text(data, "mime_type", "mimeType")


def _modality(data: dict[str, Any]) -> str:
    kind = (_mime_type(data) or "").partition("/")[0]
    return kind if kind in ("image", "audio", "video") else "document"


def _declaration(item: dict[str, Any]) -> ToolDefinition:
    return values.tool_definition({"type": "function", **item})


def _sum(metadata: dict[str, Any], names: tuple[tuple[str, ...], ...]) -> int | None:
    counts = [count for keys in names if (count := values.integer(metadata, *keys)) is not None]
    return sum(counts) if counts else None
