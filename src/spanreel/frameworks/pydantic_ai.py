"""pydantic-ai: runs, and the tools of every toolset (MCP's too; output tools are none). Model calls pass the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from spanreel.model import Agent, ErrorCategory, Json, Message, Status, ToolKind
from spanreel.point import (
    Begun,
    Cross,
    Framework,
    Injection,
    Kind,
    Point,
    RecordedError,
    RunRequest,
    RunResult,
    ToolRequest,
    ToolResult,
)

NEW = "new"
"""As a conversation's id: begin another one, whatever the history says."""
WATCHED = "WatchedToolset"
VOLATILE = ("timestamp", "run_id", "conversation_id")
"""What a history says of the process that made it, and no model is told."""


def read_run(agent: Any, arguments: Mapping[str, Any]) -> RunRequest:
    """The user's prompt; the history is how the conversation stands, and goes along for a replay."""
    prompt, history = arguments["user_prompt"], _history(arguments)
    return RunRequest(
        agent=Agent(name=agent.name),
        input=lambda: read_prompt(prompt),
        arguments=lambda: {
            **({} if prompt is None else {"user_prompt": _dump_prompt(prompt)}),
            **({} if history is None else {"message_history": _dump_history(history)}),
        },
        conversation_id=_conversation(arguments, history),
    )


def _history(arguments: Mapping[str, Any]) -> Sequence[Any] | None:
    conversation = arguments.get("conversation")
    found: Sequence[Any] | None = conversation.messages if conversation else arguments.get("message_history")
    return list(found) if found else None


def _conversation(arguments: Mapping[str, Any], history: Sequence[Any] | None) -> str | None:
    said: str | None = arguments.get("conversation_id")
    if said is not None:
        return said if said != NEW else None
    if conversation := arguments.get("conversation"):
        return str(conversation.conversation_id)
    known = (getattr(message, "conversation_id", None) for message in reversed(history or ()))
    return next((one for one in known if one), None)


def read_prompt(prompt: Any) -> tuple[Message, ...]:
    """A prompt of text or of parts of content, as one message; none where a run goes on without new words."""
    if prompt is None:
        return ()
    parts = [prompt] if isinstance(prompt, str) else _dump_prompt(prompt)
    return ({"role": "user", "parts": [_part(part) for part in parts]},)


def _part(dumped: Any) -> dict[str, Json]:
    if isinstance(dumped, str):
        return {"type": "text", "content": dumped}
    kind, mime_type = dumped.get("kind"), dumped.get("media_type")
    if kind == "text-content":
        return {"type": "text", "content": dumped.get("content")}
    if kind == "binary":
        return {"type": "blob", "mime_type": mime_type, "modality": _modality(mime_type), "content": dumped["data"]}
    if "url" in dumped:
        return {"type": "uri", "uri": dumped["url"], "modality": str(kind).removesuffix("-url"), "mime_type": mime_type}
    if kind == "uploaded-file":
        return {"type": "file", "file_id": dumped.get("file_id"), "modality": _modality(mime_type)}
    return {"type": str(kind), **dumped}


def _modality(mime_type: Any) -> str:
    family = str(mime_type).partition("/")[0]
    return family if family in ("image", "audio", "video") else "document"


def _dump_prompt(prompt: Any) -> Json:
    """A prompt as the library itself writes it into a history."""
    from pydantic_ai.messages import ModelRequest, UserPromptPart

    if isinstance(prompt, str):
        return prompt
    (request,) = _dump_history([ModelRequest(parts=[UserPromptPart(content=prompt)])])
    return request["parts"][0]["content"]


def _load_prompt(recorded: Json) -> Any:
    if isinstance(recorded, str):
        return recorded
    part = {"part_kind": "user-prompt", "content": recorded}
    return _load_history([{"kind": "request", "parts": [part]}])[0].parts[0].content


def _dump_history(history: Sequence[Any]) -> list[dict[str, Any]]:
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    dumped: list[dict[str, Any]] = ModelMessagesTypeAdapter.dump_python(list(history), mode="json", fallback=repr)
    return [{**_lasting(message), "parts": [_lasting(part) for part in message.get("parts", ())]} for message in dumped]


def _lasting(dumped: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in dumped.items() if name not in VOLATILE}


def _load_history(recorded: Json) -> list[Any]:
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    return ModelMessagesTypeAdapter.validate_python(recorded)


def rewrite_run(arguments: Mapping[str, Any], recorded: Mapping[str, Json]) -> Mapping[str, Any]:
    """The caller's arguments with the recorded prompt and history; what is the same stays the caller's object."""
    changed: dict[str, Any] = {}
    prompt, history = arguments["user_prompt"], _history(arguments)
    if "user_prompt" in recorded and (prompt is None or _dump_prompt(prompt) != recorded["user_prompt"]):
        changed["user_prompt"] = _load_prompt(recorded["user_prompt"])
    if "message_history" in recorded and (history is None or _dump_history(history) != recorded["message_history"]):
        changed["message_history"] = _load_history(recorded["message_history"])
        changed["conversation"] = None  # the two exclude each other
    return {**arguments, **changed}


def read_run_result(run: Any) -> RunResult:
    """What the run came to; nothing where its user left before its end, interrupted where tools wait for an answer."""
    result = getattr(run, "result", None)
    if result is None:
        return RunResult()
    output = result.output
    messages: tuple[Message, ...] = ()
    if isinstance(output, str):
        messages = ({"role": "assistant", "parts": [{"type": "text", "content": output}]},)
    deferred = type(output).__name__ == "DeferredToolRequests"
    return RunResult(messages, output, Status.INTERRUPTED if deferred else Status.OK)


def read_begun(run: Any) -> Begun:
    """The id that the library has made up where a conversation begins, and whether the run's tools are watched."""
    conversation = getattr(run, "conversation_id", None)
    return Begun(
        conversation_id=conversation if isinstance(conversation, str) else None,
        sees_tools=type(run.ctx.deps.tool_manager.toolset).__name__ == WATCHED,
    )


@cache
def watched_toolset(cross: Any) -> Any:
    """The toolset around all toolsets of a run: the library's own place for what concerns every tool call."""
    from pydantic_ai.toolsets import WrapperToolset

    class WatchedToolset(WrapperToolset[Any]):
        async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
            return await cross(TOOL, super().call_tool, self, name, tool_args, ctx, tool)

    return WatchedToolset


def watch_toolset(toolset: Any, cross: Cross) -> Any:
    """The toolset, watched; a run's next step is given the one of the step before."""
    watched: Any = watched_toolset(cross)  # type: ignore[arg-type]  # functions are hashable
    return toolset if isinstance(toolset, watched) else watched(toolset)


def read_tool(_toolset: Any, arguments: Mapping[str, Any]) -> ToolRequest:
    """The tool by the name that the model knows, and its arguments as validated."""
    definition = arguments["tool"].tool_def
    metadata = definition.metadata if isinstance(definition.metadata, Mapping) else {}
    is_mcp = {"meta", "annotations"} <= metadata.keys()
    return ToolRequest(
        name=arguments["name"],
        arguments=arguments["tool_args"],
        call_id=arguments["ctx"].tool_call_id,
        kind=ToolKind.MCP if is_mcp else ToolKind.FUNCTION,
        description=definition.description,
        side_effect=_changes(metadata["annotations"]) if is_mcp else None,
    )


def _changes(annotations: Any) -> bool | None:
    """What an MCP server hints about its tool."""
    for hint, changes in (("readOnlyHint", False), ("destructiveHint", True)):
        if isinstance(annotations, Mapping) and annotations.get(hint) is True:
            return changes
    return None


def read_refusal(_manager: Any, arguments: Mapping[str, Any]) -> ToolRequest | None:
    """A call that the library refuses before any tool runs: of no tool that it knows, or with the wrong arguments."""
    validated = arguments["validated"]
    if validated.args_valid:
        return None
    call = validated.call
    try:
        asked: Json = call.args_as_dict()
    except ValueError:
        asked = call.args
    return ToolRequest(call.tool_name, asked, call.tool_call_id)


def refuse_again(_recorded: RecordedError, arguments: Mapping[str, Any]) -> None:
    """The refusal is the library's own, in a replay too."""
    raise arguments["validated"].validation_error


def read_tool_result(result: Any) -> ToolResult:
    """What the tool gave back, as the library writes it for the model; the boundary takes what it cannot write."""
    if type(result).__name__ == "ToolReturn":
        fields = ("kind", "return_value", "content", "metadata", "tools")
        return ToolResult({name: _written(getattr(result, name, None)) for name in fields})
    return ToolResult(_written(result))


def _written(value: Any) -> Any:
    import pydantic_core
    from pydantic_ai.messages import tool_return_ta

    if value is None or isinstance(value, str):
        return value
    try:
        return pydantic_core.from_json(tool_return_ta.dump_json(value, by_alias=True))
    except (ValueError, RecursionError):
        return value


def rebuild_tool_result(recorded: ToolResult, _arguments: Mapping[str, Any]) -> Any:
    """The recorded value, files as objects again; what deferred the call defers it again."""
    from pydantic_ai.exceptions import ApprovalRequired, CallDeferred
    from pydantic_ai.messages import ToolReturn, tool_return_content_ta

    value = recorded.value
    if recorded.status is Status.INTERRUPTED and isinstance(value, Mapping):
        if value.get("deferred") == "approval":
            raise ApprovalRequired(value.get("metadata"))
        raise CallDeferred(value.get("metadata"), kind=value.get("deferred") or "external")
    if isinstance(value, Mapping) and value.get("kind") == "tool-return":
        return ToolReturn(
            tool_return_content_ta.validate_python(value["return_value"]),
            content=None if value.get("content") is None else _load_prompt(value["content"]),
            metadata=value.get("metadata"),
            tools=value.get("tools"),
        )
    return tool_return_content_ta.validate_python(value)


def read_deferral(error: BaseException) -> ToolResult:
    """What a deferred call waits for: an approval, an answer to a question, or somebody else's execution."""
    kind = "approval" if type(error).__name__ == "ApprovalRequired" else getattr(error, "kind", "external")
    return ToolResult({"deferred": kind, "metadata": getattr(error, "metadata", None)}, Status.INTERRUPTED)


ERRORS = {
    "UsageLimitExceeded": ErrorCategory.MAX_TURNS,
    "RunTimedOut": ErrorCategory.TIMEOUT,
    "RunCancelled": ErrorCategory.CANCELLED,
    "ContentFilterError": ErrorCategory.GUARDRAIL,
    "UnexpectedModelBehavior": ErrorCategory.MODEL,
    "ModelAPIError": ErrorCategory.MODEL,
    "FallbackExceptionGroup": ErrorCategory.MODEL,
}

TOOL = Point(
    "pydantic_ai.toolsets:AbstractToolset.call_tool",
    Kind.TOOL,
    read_tool,
    read_tool_result,
    rebuild_tool_result,
    control_flow=("ApprovalRequired", "CallDeferred"),
    read_control_flow=read_deferral,
)

PYDANTIC_AI = Framework(
    library="pydantic-ai",
    releases=">=2",
    points=(
        Point(
            "pydantic_ai.agent:Agent.iter",
            Kind.RUN,
            read_run,
            read_run_result,
            rewrite=rewrite_run,
            block=True,
            read_begun=read_begun,
            errors=ERRORS,
        ),
        Point(
            "pydantic_ai.tool_manager:ToolManager.execute_tool_call",
            Kind.TOOL,
            read_refusal,
            read_tool_result,
            raise_again=refuse_again,
        ),
    ),
    injections=(Injection("pydantic_ai.tool_manager:ToolManager.__init__", "toolset", watch_toolset),),
    replay_environment={
        "OPENAI_API_KEY": "sk-placeholder-of-a-replay",
        "ANTHROPIC_API_KEY": "sk-placeholder-of-a-replay",
    },
)
