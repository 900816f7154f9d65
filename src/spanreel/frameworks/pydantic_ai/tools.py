"""Tools of pydantic-ai, of every toolset, and the calls that the library refuses before any tool runs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from spanreel.binary import decodable
from spanreel.frameworks.pydantic_ai.messages import load_prompt
from spanreel.model import Json, Status, ToolKind
from spanreel.point import Cross, Kind, Point, RecordedError, ToolRequest, ToolResult


@cache
def _watched(cross: Any) -> Any:
    """The toolset around all toolsets of a run: the library's own place for what concerns every tool call."""
    from pydantic_ai.toolsets import WrapperToolset

    class WatchedToolset(WrapperToolset[Any]):
        async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
            return await cross(TOOL, super().call_tool, self, name, tool_args, ctx, tool)

    return WatchedToolset


def watch_toolset(toolset: Any, cross: Cross) -> Any:
    """The toolset, watched; a run's next step is given the one of the step before."""
    watched: Any = _watched(cross)  # type: ignore[arg-type]  # functions are hashable
    return toolset if isinstance(toolset, watched) else watched(toolset)


def is_watched(toolset: Any) -> bool:
    """Whether the calls of this toolset are seen."""
    return type(toolset).__name__ == "WatchedToolset"


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


def shared_with_tool(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The dependencies that the caller gave the run, and every tool of it may change."""
    dependencies = arguments["ctx"].deps
    return {} if dependencies is None else {"deps": dependencies}


def _changes(annotations: Any) -> bool | None:
    """What an MCP server hints about its tool."""
    for hint, changes in (("readOnlyHint", False), ("destructiveHint", True)):
        if isinstance(annotations, Mapping) and annotations.get(hint) is True:
            return changes
    return None


def read_refusal(_manager: Any, arguments: Mapping[str, Any]) -> ToolRequest | None:
    """A call that the library refuses: of no tool that it knows, or with the wrong arguments."""
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
            tool_return_content_ta.validate_python(decodable(value["return_value"])),
            content=None if value.get("content") is None else load_prompt(value["content"]),
            metadata=value.get("metadata"),
            tools=value.get("tools"),
        )
    return tool_return_content_ta.validate_python(decodable(value))


def read_deferral(error: BaseException) -> ToolResult:
    """What a deferred call waits for: an approval, an answer to a question, or somebody else's execution."""
    kind = "approval" if type(error).__name__ == "ApprovalRequired" else getattr(error, "kind", "external")
    return ToolResult({"deferred": kind, "metadata": getattr(error, "metadata", None)}, Status.INTERRUPTED)


TOOL = Point(
    "pydantic_ai.toolsets:AbstractToolset.call_tool",
    Kind.TOOL,
    read_tool,
    read_tool_result,
    rebuild_tool_result,
    shared=shared_with_tool,
    control_flow=("ApprovalRequired", "CallDeferred"),
    read_control_flow=read_deferral,
)
"""Crossed by the watched toolset, not wrapped."""

REFUSAL = Point(
    "pydantic_ai.tool_manager:ToolManager.execute_tool_call",
    Kind.TOOL,
    read_refusal,
    read_tool_result,
    raise_again=refuse_again,
)
