"""google-genai: the functions that the SDK itself calls for the model, and the loop that it does so in.

Model calls pass the wire, MCP's tools their own point. A call that has no functions to call is no run.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from spanreel.model import Agent, Json, Message
from spanreel.point import Framework, Kind, Point, RunRequest, RunResult, ToolRequest, ToolResult


def read_run(_models: Any, arguments: Mapping[str, Any]) -> RunRequest | None:
    """What the model is asked, where it may have functions of the program's called."""
    if not _calls_functions(arguments.get("config")):
        return None
    contents = arguments["contents"]
    given = list(contents) if isinstance(contents, list) else [contents]
    return RunRequest(agent=Agent(), input=lambda: tuple(map(_read_content, given)))


def read_chat(chat: Any, arguments: Mapping[str, Any]) -> RunRequest | None:
    """A message in a chat, which calls the functions itself."""
    if not _calls_functions(arguments.get("config") or chat._config):  # noqa: SLF001 - no other way
        return None
    message = arguments["message"]
    given = {"parts": message if isinstance(message, list) else [message]}
    return RunRequest(agent=Agent(), input=lambda: (_read_content(given),))


def _calls_functions(config: Any) -> bool:
    if any(map(callable, _field(config, "tools") or ())):
        return not _field(_field(config, "automatic_function_calling"), "disable")
    return False


def _field(given: Any, name: str) -> Any:
    """A field of what may be an object of the SDK's, or a dict."""
    return given.get(name) if isinstance(given, Mapping) else getattr(given, name, None)


def _read_content(native: Any) -> Message:
    """One content, or what the SDK makes one of: a text, or a part."""
    parts = _field(native, "parts")
    role = "assistant" if _field(native, "role") == "model" else "user"
    return {"role": role, "parts": [_read_part(part) for part in ([native] if parts is None else parts)]}


def _read_part(native: Any) -> dict[str, Json]:
    text = native if isinstance(native, str) else _field(native, "text")
    if text is not None:
        return {"type": "text", "content": text}
    if (asked := _field(native, "function_call")) is not None:
        return {"type": "tool_call", "name": _field(asked, "name"), "arguments": _field(asked, "args")}
    if (told := _field(native, "function_response")) is not None:
        return {"type": "tool_call_response", "response": _field(told, "response")}
    return {"type": "other"}


def read_run_result(answered: Any) -> RunResult:
    """The text of the answer, or of all that a stream gave."""
    answers = answered if isinstance(answered, list) else [answered]
    contents = [candidate.content for answer in answers for candidate in (answer.candidates or ())[:1]]
    parts = [part for content in contents if content is not None for part in content.parts or ()]
    text = "".join(part.text for part in parts if part.text and not part.thought)
    return RunResult(output=({"role": "assistant", "parts": [{"type": "text", "content": text}]},), value=text)


def read_tool(_instance: Any, arguments: Mapping[str, Any]) -> ToolRequest:
    """The function and what the model wants it called with; of which call it is, the SDK does not say here."""
    function = arguments["function_to_invoke"]
    return ToolRequest(name=function.__name__, arguments=arguments["args"], description=inspect.getdoc(function))


def read_tool_result(result: Any) -> ToolResult:
    """What the function gave."""
    return ToolResult(value=result)


def rebuild_tool_result(recorded: ToolResult, _arguments: Mapping[str, Any]) -> Any:
    """The recorded value, which the SDK tells the model as JSON."""
    return recorded.value


GOOGLE_GENAI = Framework(
    library="google-genai",
    releases=">=3",
    points=(
        *(
            Point(f"google.genai.models:{models}.{method}", Kind.RUN, read_run, read_run_result, streams=streams)
            for models in ("Models", "AsyncModels")
            for method, streams in (("generate_content", False), ("generate_content_stream", True))
        ),
        *(
            Point(f"google.genai.chats:{chat}.{method}", Kind.RUN, read_chat, read_run_result, streams=streams)
            for chat in ("Chat", "AsyncChat")
            for method, streams in (("send_message", False), ("send_message_stream", True))
        ),
        *(
            Point(f"google.genai._extra_utils:{function}", Kind.TOOL, read_tool, read_tool_result, rebuild_tool_result)
            for function in ("invoke_function_from_dict_args", "invoke_function_from_dict_args_async")
        ),
    ),
)
