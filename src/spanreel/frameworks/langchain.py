"""LangChain and LangGraph (deepagents with them): graphs as runs, tools and retrievers. Model calls pass the wire.

Chains without a graph are no runs. What a graph is asked and comes to is kept by the fields of its objects, by which
they are known again in a replay.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from spanreel.model import Agent, ErrorCategory, Json, Message, Status, ToolKind
from spanreel.point import (
    Failure,
    Framework,
    Kind,
    Outcome,
    Point,
    RecordedError,
    RunRequest,
    RunResult,
    ToolRequest,
    ToolResult,
)

# -- runs --------------------------------------------------------------------------------------------------------------


def read_run(graph: Any, arguments: Mapping[str, Any]) -> RunRequest:
    """The graph and its input; the conversation is the thread of its checkpoints."""
    asked = arguments["input"]
    configs = (arguments.get("config"), getattr(graph, "config", None))
    said = [config.get("configurable") or {} for config in configs if config]
    thread, user = (next((one[key] for one in said if one.get(key)), None) for key in ("thread_id", "user_id"))
    return RunRequest(
        agent=Agent(name=graph.name),
        input=lambda: read_input(asked),
        arguments={"input": asked},
        conversation_id=str(thread) if thread is not None else None,
        user_id=str(user) if user is not None else None,
    )


def read_input(asked: Any) -> tuple[Message, ...]:
    """The messages of a state, in every form in which they may be given; of any other input its JSON."""
    resume = getattr(asked, "resume", None)
    messages = asked if isinstance(asked, list) else _messages(asked)
    if messages is not None and resume is None:
        return tuple(read_message(message) for message in _listed(messages))
    value = asked if resume is None else resume
    if value is None:
        return ()
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)
    return (_message("user", {"content": text}),)


def _messages(state: Any) -> Any:
    return state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", None)


def _listed(messages: Any) -> list[Any]:
    return messages if isinstance(messages, list) else [messages]


_ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "function": "tool", "remove": "system"}


def read_message(item: Any) -> Message:
    """A message given as an object, a dict, a pair or a text."""
    if isinstance(item, str):
        return _message("user", {"content": item})
    if isinstance(item, (list, tuple)):
        return _message(str(item[0]), {"content": item[-1]})
    fields = item if isinstance(item, Mapping) else getattr(item, "__dict__", {})
    return _message(str(fields.get("role") or fields.get("type") or "user"), fields)


def _message(role: str, fields: Mapping[str, Any]) -> Message:
    content, call_id = fields.get("content"), fields.get("tool_call_id")
    if call_id is not None:
        parts = [{"type": "tool_call_response", "id": call_id, "response": content}]
    else:
        parts = [_part(block) for block in _listed(content) if block]
        calls = fields.get("tool_calls") or ()
        if calls:
            # Providers' blocks say the same calls again.
            parts = [part for part in parts if part["type"] not in ("tool_use", "tool_call", "function_call")]
        parts += [_call(call) for call in calls]
    return {"role": _ROLES.get(role, role), "parts": parts}


def _part(block: Any) -> dict[str, Json]:
    if isinstance(block, str) or not isinstance(block, Mapping):
        return {"type": "text", "content": str(block)}
    if block.get("type") == "text":
        return {"type": "text", "content": block.get("text")}
    return {"type": "block", **block}


def _call(call: Mapping[str, Any]) -> dict[str, Json]:
    asked = call.get("function") or call
    arguments = _decoded(asked["arguments"]) if "arguments" in asked else asked.get("args")
    return {"type": "tool_call", "id": call.get("id"), "name": asked.get("name"), "arguments": arguments}


def _decoded(arguments: Any) -> Json:
    try:
        return json.loads(arguments)
    except (TypeError, ValueError):
        return arguments


def rewrite_run(arguments: Mapping[str, Any], recorded: Mapping[str, Json]) -> Mapping[str, Any]:
    """The caller's arguments with the recorded input."""
    return {**arguments, "input": rebuild(recorded["input"])} if "input" in recorded else arguments


def read_outcome(loop: Any, arguments: Mapping[str, Any]) -> Outcome:
    """The loop of a graph that is being left, and with what exception; it has its last state when it has been left."""
    return Outcome((loop, arguments["exc_value"]))


def read_run_result(outcome: Any) -> RunResult:
    """The last state, of its messages the last one; nothing of a stream that was closed early."""
    if not isinstance(outcome, tuple):
        return RunResult()
    loop, error = outcome
    state = loop.output
    last = tuple(read_message(message) for message in _listed(_messages(state) or [])[-1:])
    value = {**state, "messages": list(last)} if last and isinstance(state, Mapping) else state
    if not any(kind.__name__ == "GraphInterrupt" for kind in type(error).__mro__):
        return RunResult(output=last, value=value)
    return RunResult(output=last, value={"state": value, "interrupts": _asked(error)}, status=Status.INTERRUPTED)


def read_run_interrupt(error: BaseException) -> RunResult:
    """A graph inside another that waits for somebody, or that gives the word to the outer one."""
    if type(error).__name__ == "ParentCommand":
        return RunResult(value=error.args[0])
    return RunResult(value={"interrupts": _asked(error)}, status=Status.INTERRUPTED)


def _asked(error: BaseException | None) -> list[Any]:
    """What the interrupts ask, one by one; their ids are made of random ones."""
    given = error.args[0] if error is not None and error.args else ()
    return [interrupt.value for interrupt in given if hasattr(interrupt, "value")] if isinstance(given, tuple) else []


# -- tools -------------------------------------------------------------------------------------------------------------

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
    return ToolResult(value={"interrupts": _asked(error)}, status=Status.INTERRUPTED)


def rebuild_tool_result(recorded: ToolResult, arguments: Mapping[str, Any]) -> Any:
    """The recorded value as the tool's caller expects it: a message where it gave a call's id."""
    if recorded.status is Status.INTERRUPTED:
        _interrupt(recorded.value["interrupts"])
    call_id = arguments["tool_call_id"]
    value = rebuild(recorded.value, call_id)
    if call_id is None or not _is_content(value):
        return value
    from langchain_core.messages import ToolMessage

    return ToolMessage(value, tool_call_id=call_id, name=arguments["self"].name)


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


# -- retrievers --------------------------------------------------------------------------------------------------------


def read_retrieval(retriever: Any, arguments: Mapping[str, Any]) -> ToolRequest:
    """The retriever and what it is asked."""
    extra = {name: value for name, value in arguments.items() if name not in ("input", "config")}
    return ToolRequest(
        name=retriever.get_name(),
        arguments={"query": arguments["input"], **extra},
        kind=ToolKind.RETRIEVER,
        side_effect=False,
    )


def read_documents(result: Any) -> ToolResult:
    """The documents."""
    return ToolResult(value=result)


def rebuild_documents(recorded: ToolResult, _arguments: Mapping[str, Any]) -> Any:
    """The documents again."""
    return rebuild(recorded.value)


# -- objects from their fields -----------------------------------------------------------------------------------------

_MESSAGE = {"type", "content", "additional_kwargs", "response_metadata"}
_DOCUMENT = {"type", "page_content", "metadata"}
_COMMAND = {"graph", "update", "resume", "goto"}


def rebuild(value: Json, call_id: str | None = None) -> Any:
    """Messages, documents and commands from their fields, wherever they stand; a tool's messages answer its call."""
    if isinstance(value, list):
        return [rebuild(item, call_id) for item in value]
    if not isinstance(value, dict):
        return value
    fields = {name: rebuild(item, call_id) for name, item in value.items()}
    if fields.keys() >= _MESSAGE:
        from langchain_core.messages import messages_from_dict

        told = {"tool_call_id": call_id} if call_id is not None and "tool_call_id" in fields else {}
        return messages_from_dict([{"type": fields["type"], "data": {**fields, **told}}])[0]
    if fields.keys() >= _DOCUMENT:
        from langchain_core.documents import Document

        return Document(**fields)
    if fields.keys() == _COMMAND:
        from langgraph.types import Command

        return Command(**fields)
    return fields


# -- the tables --------------------------------------------------------------------------------------------------------

ERRORS = {"GraphRecursionError": ErrorCategory.MAX_TURNS, "OpenAIError": ErrorCategory.MODEL}
CONTROL_FLOW = ("GraphBubbleUp",)


def _run(target: str) -> Point:
    return Point(
        target,
        Kind.RUN,
        read_run,
        read_run_result,
        rewrite=rewrite_run,
        values=False,
        control_flow=CONTROL_FLOW,
        read_control_flow=read_run_interrupt,
        errors=ERRORS,
    )


def _tool(target: str) -> Point:
    return Point(
        target,
        Kind.TOOL,
        read_tool,
        read_tool_result,
        rebuild_tool_result,
        raise_again=raise_again,
        control_flow=CONTROL_FLOW,
        read_control_flow=read_tool_interrupt,
        errors=ERRORS,
    )


LANGGRAPH = Framework(
    library="langgraph",
    releases=">=1.2",
    points=(
        # invoke, batch and the streams of events end in these two.
        _run("langgraph.pregel.main:Pregel.stream"),
        _run("langgraph.pregel.main:Pregel.astream"),
        Point("langgraph.pregel._loop:SyncPregelLoop.__exit__", Kind.OUTCOME, read_outcome, read_run_result),
        Point("langgraph.pregel._loop:AsyncPregelLoop.__aexit__", Kind.OUTCOME, read_outcome, read_run_result),
    ),
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
