"""anthropic: runs and tools of the SDK's tool runner, and the spans that the SDK makes. Model calls pass the wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spanreel.model import Agent, Json, Message, Status
from spanreel.point import Failure, Framework, Kind, Point, RunRequest, RunResult, ToolRequest, ToolResult


def read_run(runner: Any, _arguments: Mapping[str, Any]) -> RunRequest:
    """The conversation that the runner begins with; its id is what the client's own telemetry is told."""
    messages = list(runner._thread.messages)  # noqa: SLF001 - a runner shows its messages nowhere else
    config = getattr(getattr(runner, "_client", None), "_otel", None)
    return RunRequest(
        agent=Agent(),
        input=lambda: tuple(map(read_message, messages)),
        conversation_id=getattr(config, "conversation_id", None),
    )


def read_message(native: Mapping[str, Any]) -> Message:
    """A message given to the runner; its content may be text, objects or the SDK's own blocks."""
    content = native["content"]
    if isinstance(content, str):
        return {"role": native["role"], "parts": [{"type": "text", "content": content}]}
    return {"role": native["role"], "parts": [_part(block) for block in content]}


def _part(native: Any) -> dict[str, Json]:
    block = native if isinstance(native, Mapping) else native.to_dict()
    if block.get("type") == "text":
        return {"type": "text", "content": block.get("text")}
    if block.get("type") == "tool_use":
        return {"type": "tool_call", "id": block.get("id"), "name": block.get("name"), "arguments": block.get("input")}
    if block.get("type") == "tool_result":
        return {"type": "tool_call_response", "id": block.get("tool_use_id"), "response": block.get("content")}
    return dict(block)


def read_run_result(answers: Any) -> RunResult:
    """The text of the last answer; a runner of streams hands out streams, whose messages have come by then."""
    if not answers:
        return RunResult()
    last = answers[-1]
    message = last if hasattr(last, "content") else last.current_message_snapshot
    text = "".join(block.text for block in message.content if block.type == "text")
    return RunResult(output=({"role": "assistant", "parts": [{"type": "text", "content": text}]},), value=text)


def read_tool(_runner: Any, arguments: Mapping[str, Any]) -> ToolRequest:
    """The tool and its input as the model wrote it; of a member of a toolset, the block says all there is."""
    asked = arguments["tool_use"]
    description = getattr(arguments.get("tool"), "description", None)
    return ToolRequest(
        name=asked.name,
        arguments=asked.input,
        call_id=asked.id,
        description=description if isinstance(description, str) and description else None,
    )


def read_tool_result(block: Any) -> ToolResult:
    """The content of the block that the model is answered with; a failure is content too."""
    return ToolResult(value=block.get("content"), status=Status.ERROR if block.get("is_error") else Status.OK)


def rebuild_tool_result(recorded: ToolResult, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The block that answers the live call with the recorded content."""
    asked = arguments["tool_use"]
    block = {"type": "tool_result", "tool_use_id": asked.id}
    if getattr(asked, "toolset_name", None) is not None:
        block["toolset_name"] = asked.toolset_name
    block["content"] = recorded.value
    return {**block, "is_error": True} if recorded.status is Status.ERROR else block


def read_failure(_: Any, arguments: Mapping[str, Any]) -> Failure:
    """An exception that the runner makes into content for the model."""
    return Failure(arguments["exc"])


def read_nothing(_: Any) -> ToolResult:
    """A failure has no result of its own."""
    return ToolResult()


RUNNER = "anthropic.lib.tools._beta_runner"

ANTHROPIC = Framework(
    library="anthropic",
    releases=">=2.14",
    points=(
        Point(f"{RUNNER}:BaseSyncToolRunner.__run__", Kind.RUN, read_run, read_run_result),
        Point(f"{RUNNER}:BaseAsyncToolRunner.__run__", Kind.RUN, read_run, read_run_result),
        *(
            Point(f"{RUNNER}:{runner}.{method}", Kind.TOOL, read_tool, read_tool_result, rebuild_tool_result)
            for runner in ("BaseSyncToolRunner", "BaseAsyncToolRunner")
            for method in ("_run_tool", "_run_toolset_member")
        ),
        Point(f"{RUNNER}:tool_error_content", Kind.FAILURE, read_failure, read_nothing),
    ),
    replay_environment={"ANTHROPIC_API_KEY": "sk-ant-placeholder-of-a-replay"},
    native_scopes={"anthropic": ("com.anthropic.sdk.python",)},
)
