"""openai-agents: runs, function tools (MCP's and agents as tools too) and handoffs. Model calls pass the wire."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Any

from spanreel.json_text import read_each
from spanreel.model import Agent, ErrorCategory, Json, Message, Status, ToolKind
from spanreel.point import Failure, Framework, Kind, Point, ReadFrom, RunRequest, RunResult, ToolRequest, ToolResult

SHOWN = "shown"
"""As the type of a result: how an object wrote itself, since only its class can do that."""
LONGEST_TEXT = 2_000


def read_run(_runner: Any, arguments: Mapping[str, Any]) -> RunRequest:
    """The agent and its input; the conversation is the session's, the server's, or the trace group's."""
    asked = arguments["input"]
    native = asked if isinstance(asked, (str, list)) else None
    config = arguments.get("run_config")
    conversation = (
        arguments.get("conversation_id")
        or getattr(arguments.get("session"), "session_id", None)
        or getattr(config, "group_id", None)
    )
    return RunRequest(
        agent=Agent(name=arguments["starting_agent"].name),
        input=ReadFrom("input", read_items),
        arguments={"input": native} if native is not None else {},
        conversation_id=conversation if isinstance(conversation, str) else None,
    )


def read_items(native: str | list[Any] | None) -> tuple[Message, ...]:
    """Input items as messages; items that are no messages keep their own type as a part."""
    if isinstance(native, str):
        return (_text("user", native),)
    return read_each(native, _message) if native else ()


def _message(item: Any) -> Message:
    if not isinstance(item, Mapping) or "role" not in item:
        return {"role": "user", "parts": [dict(item) if isinstance(item, Mapping) else {"type": "item"}]}
    content = item.get("content")
    if isinstance(content, str):
        return _text(str(item["role"]), content)
    parts = [_part(part) for part in content or () if isinstance(part, Mapping)]
    return {"role": str(item["role"]), "parts": parts}


def _part(part: Mapping[str, Any]) -> dict[str, Json]:
    if isinstance(part.get("text"), str):
        return {"type": "text", "content": part["text"]}
    return dict(part)


def _text(role: str, content: str) -> Message:
    return {"role": role, "parts": [{"type": "text", "content": content}]}


def read_run_result(result: Any) -> RunResult:
    """The final output; interrupted where approvals are open."""
    output = getattr(result, "final_output", None)
    status = Status.INTERRUPTED if getattr(result, "interruptions", None) else Status.OK
    messages = (_text("assistant", output),) if isinstance(output, str) else ()
    return RunResult(output=messages, value=output, status=status)


def rewrite_run(arguments: Mapping[str, Any], recorded: Mapping[str, Json]) -> Mapping[str, Any]:
    """The caller's arguments with the recorded input."""
    return {**arguments, "input": recorded["input"]} if "input" in recorded else arguments


def read_tool(_executor: Any, arguments: Mapping[str, Any]) -> ToolRequest:
    """The tool and the arguments as the model wrote them."""
    tool, call = arguments["func_tool"], arguments["tool_call"]
    origin = getattr(getattr(tool, "_tool_origin", None), "type", None)
    kind = ToolKind.MCP if origin == "mcp" else ToolKind.FUNCTION
    return ToolRequest(
        name=tool.name,
        arguments=_decoded(call.arguments),
        call_id=call.call_id,
        kind=ToolKind.AGENT if getattr(tool, "_is_agent_tool", False) else kind,
        description=tool.description,
        side_effect=_changes(getattr(tool, "_mcp_annotations", None)),
    )


def shared_with_tool(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The context that the caller gave the run, and every tool of it may change."""
    context = getattr(arguments.get("tool_context"), "context", None)
    return {} if context is None else {"context": context}


def _decoded(text: Any) -> Json:
    try:
        return json.loads(text) if text else {}
    except ValueError:
        return text


def _changes(annotations: Any) -> bool | None:
    """What an MCP server hints about its tool."""
    if annotations is None:
        return None
    for hint, changes in (("read_only_hint", False), ("readOnlyHint", False), ("destructive_hint", True)):
        if getattr(annotations, hint, None) is True:
            return changes
    return None


def read_tool_result(result: Any) -> ToolResult:
    """What the tool gave back, before the SDK makes it text for the model; how an object writes itself is kept too."""
    text = None if _is_json(result) else str(result)
    shown = text is not None and len(text) <= LONGEST_TEXT
    return ToolResult(value=result, type=f"{SHOWN}({text!r})" if shown else None)


def rebuild_tool_result(recorded: ToolResult, _arguments: Mapping[str, Any]) -> Any:
    """The recorded value, which becomes the same text for the model as when it was recorded."""
    if recorded.type is None or not recorded.type.startswith(f"{SHOWN}("):
        return recorded.value
    text = ast.literal_eval(recorded.type[len(SHOWN) + 1 : -1])
    if not isinstance(recorded.value, (dict, list)):
        return text
    kind = type(recorded.value)
    return type(SHOWN, (kind,), {"__str__": lambda _: text})(recorded.value)


def _is_json(value: Any) -> bool:
    """Whether this is written in the same way once it has been JSON."""
    if isinstance(value, dict):
        return type(value) is dict and all(type(key) is str and _is_json(item) for key, item in value.items())
    if isinstance(value, list):
        return type(value) is list and all(map(_is_json, value))
    return value is None or type(value) in (str, int, float, bool)


def read_failure(_: Any, arguments: Mapping[str, Any]) -> Failure:
    """An exception that the SDK turns into a text for the model."""
    return Failure(arguments["error"])


def read_handoff(_: Any, arguments: Mapping[str, Any]) -> ToolRequest | None:
    """The first handoff of the answer; the SDK ignores the others."""
    asked = arguments["run_handoffs"]
    if not asked:
        return None
    call, handoff = asked[0].tool_call, asked[0].handoff
    return ToolRequest(
        name=call.name,
        arguments=_decoded(call.arguments),
        call_id=call.call_id,
        kind=ToolKind.HANDOFF,
        description=getattr(handoff, "tool_description", None),
    )


def read_handoff_result(result: Any) -> ToolResult:
    """The agent that has the word from now on."""
    target = getattr(getattr(result.next_step, "new_agent", None), "name", None)
    return ToolResult(value={"assistant": target}, target=target)


ERRORS = {
    "MaxTurnsExceeded": ErrorCategory.MAX_TURNS,
    "InputGuardrailTripwireTriggered": ErrorCategory.GUARDRAIL,
    "OutputGuardrailTripwireTriggered": ErrorCategory.GUARDRAIL,
    "ToolInputGuardrailTripwireTriggered": ErrorCategory.GUARDRAIL,
    "ToolOutputGuardrailTripwireTriggered": ErrorCategory.GUARDRAIL,
    "ModelBehaviorError": ErrorCategory.MODEL,
    "ToolTimeoutError": ErrorCategory.TIMEOUT,
    "OpenAIError": ErrorCategory.MODEL,
}

OPENAI_AGENTS = Framework(
    library="openai-agents",
    releases=">=0.24",
    points=(
        Point("agents.run:AgentRunner.run", Kind.RUN, read_run, read_run_result, rewrite=rewrite_run, errors=ERRORS),
        Point(
            "agents.run:AgentRunner.run_streamed",
            Kind.RUN,
            read_run,
            read_run_result,
            rewrite=rewrite_run,
            work=lambda streaming: streaming.run_loop_task,
            errors=ERRORS,
        ),
        Point(
            "agents.run_internal.tool_execution:_FunctionToolBatchExecutor._execute_single_tool_body",
            Kind.TOOL,
            read_tool,
            read_tool_result,
            rebuild_tool_result,
            shared=shared_with_tool,
            errors=ERRORS,
        ),
        Point(
            "agents.tool:maybe_invoke_function_tool_failure_error_function",
            Kind.FAILURE,
            read_failure,
            read_tool_result,
        ),
        Point(
            "agents.run_internal.turn_resolution:execute_handoffs",
            Kind.HANDOFF,
            read_handoff,
            read_handoff_result,
        ),
    ),
    replay_environment={"OPENAI_AGENTS_DISABLE_TRACING": "1", "OPENAI_API_KEY": "sk-placeholder-of-a-replay"},
)
