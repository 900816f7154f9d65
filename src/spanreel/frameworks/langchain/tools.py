"""Tools and retrievers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from spanreel.frameworks.langchain.objects import CONTROL_FLOW, ERRORS, asked_in, rebuild
from spanreel.model import Status, ToolKind
from spanreel.point import Failure, Framework, Kind, Point, RecordedError, ToolRequest, ToolResult

_KINDS = {"deepagents.middleware.subagents": ToolKind.AGENT, "langchain_mcp_adapters.tools": ToolKind.MCP}
"""Kinds of tools by the module that their functions come from."""


def read_tool(tool: Any, arguments: Mapping[str, Any]) -> ToolRequest:
    """The tool and the arguments as the model wrote them, without what the graph injects."""
    asked = arguments["tool_input"]
    code = getattr(tool, "coroutine", None) or getattr(tool, "func", None)
    return ToolRequest(
        name=tool.name,
        arguments=tool._filter_injected_args(asked) if isinstance(asked, dict) else asked,  # noqa: SLF001 - no other way
        call_id=arguments["tool_call_id"],
        kind=_KINDS.get(getattr(code, "__module__", ""), ToolKind.FUNCTION),
        description=tool.description,
        side_effect=_changes(tool.metadata or {}),
    )


def shared_with_tool(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The context that the caller gave the graph, where the tool asks for it; of a method, its object."""
    asked, tool = arguments["tool_input"], arguments["self"]
    given = asked.values() if isinstance(asked, dict) else ()
    contexts = [one.context for one in given if type(one).__name__ == "ToolRuntime" and one.context is not None]
    code = getattr(tool, "func", None) or getattr(tool, "coroutine", None)
    owner = getattr(code, "__self__", None)
    return {"context": contexts[0]} if contexts else {"self": owner} if owner is not None else {}


def _changes(hints: Mapping[str, Any]) -> bool | None:
    """What an MCP server hints about its tool."""
    for hint, changes in (("readOnlyHint", False), ("destructiveHint", True)):
        if hints.get(hint) is True:
            return changes
    return None


def read_tool_result(result: Any) -> ToolResult:
    """What the model is told; a message that says more than that, and a command, by its fields."""
    plain = getattr(result, "type", None) == "tool" and result.artifact is None and result.status == "success"
    return ToolResult(value=result.content if plain else result)


def read_tool_interrupt(error: BaseException) -> ToolResult:
    """What a tool asks of somebody before it goes on."""
    if type(error).__name__ == "ParentCommand":
        return ToolResult(value=error.args[0])
    return ToolResult(value={"interrupts": asked_in(error)}, status=Status.INTERRUPTED)


def rebuild_tool_result(recorded: ToolResult, arguments: Mapping[str, Any]) -> Any:
    """The recorded value as the tool's caller expects it: a message where it gave a call's id."""
    if recorded.status is Status.INTERRUPTED:
        _interrupt(recorded.value["interrupts"][:1] or [None])
    call_id = arguments["tool_call_id"]
    value = rebuild(recorded.value, call_id)
    if call_id is None or not (_is_content(value) or _is_plain(value)):
        return value
    from langchain_core.messages import ToolMessage

    # Other recorders keep what the function gave, which LangChain tells the model as JSON.
    content = value if _is_content(value) else json.dumps(value, ensure_ascii=False)
    return ToolMessage(content, tool_call_id=call_id, name=arguments["self"].name)


def _is_plain(value: Any) -> bool:
    """Whether it is JSON all through, with no object of LangChain's inside."""
    if isinstance(value, (dict, list)):
        return all(_is_plain(one) for one in (value.values() if isinstance(value, dict) else value))
    return value is None or isinstance(value, (str, int, float))


def _is_content(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(one, (str, dict)) for one in value))


def _interrupt(asked: list[Any]) -> None:
    from langgraph.types import interrupt

    while True:  # what has been answered in this task already is given back, one answer a call
        interrupt(asked[0])


def raise_again(error: RecordedError, arguments: Mapping[str, Any]) -> None:
    """Arguments that do not fit the tool: its node tells the model of the error's own fields."""
    if error.type.endswith("ValidationError"):
        arguments["self"]._parse_input(arguments["tool_input"], arguments["tool_call_id"])  # noqa: SLF001 - no other way


def read_failure(_: Any, arguments: Mapping[str, Any]) -> Failure:
    """An exception that the tool makes into a text for the model."""
    return Failure(arguments["e"])


def read_retrieval(retriever: Any, arguments: Mapping[str, Any]) -> ToolRequest:
    """The retriever, what it is asked, and how it is set to look: a replay answers another one by nothing else."""
    settings = {name: found for name in _SETTINGS if (found := getattr(retriever, name, None))}
    extra = {name: value for name, value in arguments.items() if name not in ("input", "config")}
    return ToolRequest(
        name=retriever.get_name(),
        arguments={"query": arguments["input"], **settings, **extra},
        kind=ToolKind.RETRIEVER,
        side_effect=False,
    )


_SETTINGS = ("search_type", "search_kwargs", "k", "top_k", "filter")
"""What retrievers call the settings that decide what they find."""


def read_documents(result: Any) -> ToolResult:
    """The documents."""
    return ToolResult(value=result)


def rebuild_documents(recorded: ToolResult, _arguments: Mapping[str, Any]) -> Any:
    """The documents again."""
    return rebuild(recorded.value)


def _tool(target: str) -> Point:
    return Point(
        target,
        Kind.TOOL,
        read_tool,
        read_tool_result,
        rebuild_tool_result,
        shared=shared_with_tool,
        raise_again=raise_again,
        control_flow=CONTROL_FLOW,
        read_control_flow=read_tool_interrupt,
        errors=ERRORS,
    )


LANGCHAIN = Framework(
    library="langchain-core",
    releases=">=1.8",
    points=(
        _tool("langchain_core.tools.base:BaseTool.run"),
        _tool("langchain_core.tools.base:BaseTool.arun"),
        Point("langchain_core.tools.base:_handle_tool_error", Kind.FAILURE, read_failure, read_tool_result),
        Point("langchain_core.tools.base:_handle_validation_error", Kind.FAILURE, read_failure, read_tool_result),
        Point(
            "langchain_core.retrievers:BaseRetriever.invoke",
            Kind.TOOL,
            read_retrieval,
            read_documents,
            rebuild_documents,
        ),
        Point(
            "langchain_core.retrievers:BaseRetriever.ainvoke",
            Kind.TOOL,
            read_retrieval,
            read_documents,
            rebuild_documents,
        ),
    ),
    replay_environment={
        "LANGSMITH_TRACING": "false",
        "LANGCHAIN_TRACING_V2": "false",
    },
)
