"""Models of pydantic-ai that are not reached over HTTP: its `TestModel` and `FunctionModel`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from spanreel.frameworks.pydantic_ai.messages import dump_history, load_history, read_prompt
from spanreel.model import Answer, Json, Message, Operation, Request, Usage
from spanreel.point import Kind, Point

SETTINGS = ("temperature", "top_p", "top_k", "max_tokens", "stop_sequences", "seed", "frequency_penalty")
FIELDS = {"content", "id", "part_kind", "args", "tool_name", "tool_call_id"}


def read_request(model: Any, arguments: Mapping[str, Any]) -> Request:
    """The messages so far, the instructions in force, and the tools on offer, output tools among them."""
    messages, parameters = arguments["messages"], arguments["model_request_parameters"]
    settings = arguments["model_settings"] or {}
    instructions = next((one.instructions for one in reversed(messages) if getattr(one, "instructions", None)), None)
    return Request(
        operation=Operation.CHAT,
        model=model.model_name,
        messages=tuple(message for native in messages for message in read_message(native)),
        instructions=({"type": "text", "content": instructions},) if instructions else (),
        tools=tuple(_definition(tool) for tool in (*parameters.function_tools, *parameters.output_tools)),
        settings={name: settings[name] for name in SETTINGS if settings.get(name) is not None},
        stream="run_context" in arguments,
    )


def _definition(tool: Any) -> dict[str, Json]:
    described = {"description": tool.description} if tool.description else {}
    return {"type": "function", "name": tool.name, **described, "parameters": tool.parameters_json_schema}


def read_message(native: Any) -> Iterator[Message]:
    """A native message: an answer is one message, a request one for each of its parts."""
    if native.kind == "response":
        yield {"role": "assistant", "parts": [read_part(part) for part in dump_history([native])[0]["parts"]]}
        return
    for part in native.parts:
        yield from _read_request_part(part)


def _read_request_part(part: Any) -> Iterator[Message]:
    if part.part_kind == "user-prompt":
        yield from read_prompt(part.content)
    elif part.part_kind == "system-prompt":
        yield {"role": "system", "parts": [{"type": "text", "content": part.content}]}
    elif getattr(part, "tool_call_id", None):
        answered = {"type": "tool_call_response", "id": part.tool_call_id, "response": part.model_response_str()}
        yield {"role": "tool", "parts": [answered]}
    else:
        text = part.model_response() if hasattr(part, "model_response") else str(part.content)
        yield {"role": "user", "parts": [{"type": "text", "content": text}]}


def read_part(dumped: Mapping[str, Any]) -> dict[str, Json]:
    """A part of an answer; one that the conventions have no name for stays as the library writes it."""
    kind = dumped.get("part_kind")
    rest = {name: value for name, value in dumped.items() if name not in FIELDS and value is not None}
    kept = {"provider_fields": rest} if rest else {}
    if kind == "text":
        return {"type": "text", "content": dumped["content"], **kept}
    if kind == "thinking":
        return {"type": "reasoning", "content": dumped["content"], **kept}
    if kind == "tool-call":
        called = {"id": dumped["tool_call_id"], "name": dumped["tool_name"], "arguments": _decoded(dumped["args"])}
        return {"type": "tool_call", **called, **kept}
    return {"type": str(kind), **dumped}


def _decoded(arguments: Any) -> Json:
    if not isinstance(arguments, str):
        return {} if arguments is None else arguments
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def read_answer(native: Any) -> Answer:
    """A whole answer, or what a stream has come to."""
    response = native if hasattr(native, "parts") else native.get()
    (dumped,) = dump_history([response])
    parts = [read_part(part) for part in dumped["parts"]]
    reason = "tool_call" if any(part["type"] == "tool_call" for part in parts) else "stop"
    return Answer(
        model=response.model_name,
        messages=({"role": "assistant", "parts": parts, "finish_reason": response.finish_reason or reason},),
        usage=Usage(
            response.usage.input_tokens,
            response.usage.output_tokens,
            response.usage.cache_read_tokens,
            response.usage.cache_write_tokens,
        ),
    )


def rebuild_response(answer: Answer, _arguments: Mapping[str, Any]) -> Any:
    """A recorded answer, native again."""
    from pydantic_ai.usage import RequestUsage

    parts = [_native_part(part) for message in answer.messages for part in message["parts"]]
    (response,) = load_history([{"kind": "response", "parts": parts, "model_name": answer.model}])
    if answer.usage is not None:
        response.usage = RequestUsage(
            input_tokens=answer.usage.input_tokens or 0,
            output_tokens=answer.usage.output_tokens or 0,
            cache_read_tokens=answer.usage.cache_read_tokens or 0,
            cache_write_tokens=answer.usage.cache_write_tokens or 0,
        )
    return response


def _native_part(part: Mapping[str, Json]) -> dict[str, Json]:
    kept = part.get("provider_fields") or {}
    if part["type"] == "text":
        return {"part_kind": "text", "content": part["content"], **kept}
    if part["type"] == "reasoning":
        return {"part_kind": "thinking", "content": part["content"], **kept}
    if part["type"] == "tool_call":
        called = {"tool_call_id": part["id"], "tool_name": part["name"], "args": part["arguments"]}
        return {"part_kind": "tool-call", **called, **kept}
    return {name: value for name, value in part.items() if name != "type"}


def rebuild_stream(answer: Answer, arguments: Mapping[str, Any]) -> Any:
    """A recorded answer as the stream that the library makes of one."""
    from pydantic_ai.models import CompletedStreamedResponse

    response, parameters = rebuild_response(answer, arguments), arguments["model_request_parameters"]

    @asynccontextmanager
    async def stream() -> Any:
        yield CompletedStreamedResponse(response, model_request_parameters=parameters, replay_events=True)

    return stream()


MODELS = tuple(
    Point(
        f"pydantic_ai.models.{model}.{method}",
        Kind.MODEL,
        read_request,
        read_answer,
        rebuild_answer=rebuild_stream if method == "request_stream" else rebuild_response,
        block=method == "request_stream",
    )
    for model in ("test:TestModel", "function:FunctionModel")
    for method in ("request", "request_stream")
)
