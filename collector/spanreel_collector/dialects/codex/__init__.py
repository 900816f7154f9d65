"""Codex, OpenAI's agent of the command line: its events, which are logs, and its spans, of which few tell of the agent.

A prompt of the user is a run. Neither tells what a model was sent, nor the words it said; what it asked of tools is
known by the tool calls that followed.
"""

from __future__ import annotations

import re

from spanreel.model import (
    Answer,
    Error,
    ErrorCategory,
    Fidelity,
    Json,
    Message,
    Operation,
    Request,
    Status,
    ToolKind,
    Usage,
)
from spanreel.records import ModelRecord, Record, RunRecord, ToolRecord
from spanreel_collector.dialects import values
from spanreel_collector.dialects.codex.events import gather, linked, trace_of
from spanreel_collector.dialects.codex.names import ASKED, KIND, is_ours, is_refused, says
from spanreel_collector.dialects.content import losses
from spanreel_collector.span import Attributes, RawSpan

__all__ = ["NAME", "gather", "linked", "read", "speaks", "trace_of"]

NAME = "codex"

_COUNTS = {
    "input_tokens": ("input_token_count", "gen_ai.usage.input_tokens"),
    "output_tokens": ("output_token_count", "gen_ai.usage.output_tokens"),
    "cache_read_tokens": ("cached_token_count", "gen_ai.usage.cache_read.input_tokens"),
    "cache_write_tokens": ("cache_write_token_count", "gen_ai.usage.cache_write.input_tokens"),
    "reasoning_tokens": ("reasoning_token_count", "codex.usage.reasoning_output_tokens"),
}
_HEADER = re.compile(
    r"(?:(?:Chunk ID|Wall time|Original token count|Total output lines): [^\n]*\n|"
    r"(?:Process exited with code|Exit code:) 0\n)+Output:\n"
)
"""What Codex says before the output of a command that went well; of others it stays, as it alone tells the code."""


def speaks(span: RawSpan) -> bool:
    """Whether Codex wrote the span, and it tells of the agent."""
    return KIND in span.attributes or is_ours(span.origin)


def read(span: RawSpan) -> Record | None:
    """What the span says; None for the many that tell of the program's own work."""
    kind = span.attributes.get(KIND)
    if kind == "run":
        return _read_run(span)
    if kind == "model":
        return _read_model(span)
    return _read_tool(span) if kind == "tool" else None


def _read_run(span: RawSpan) -> RunRecord:
    said = values.text(span.attributes, "prompt")
    state = losses.state(said) if said is not None else Fidelity.ABSENT
    error = _failure(span, ErrorCategory.OTHER)
    return RunRecord(
        input=({"role": "user", "parts": [{"type": "text", "content": said}]},) if said is not None else (),
        error=error,
        status=values.status_of(error),
        fidelity=values.marks({"input": state, **({} if error else {"output": Fidelity.ABSENT})}),
    )


def _read_model(span: RawSpan) -> ModelRecord:
    attributes = span.attributes
    error = _failure(span, ErrorCategory.MODEL)
    asked = attributes.get(ASKED)
    calls = [_call(one) for one in asked if isinstance(one, dict)] if isinstance(asked, list) else []
    message: Message = {"role": "assistant", "parts": calls}
    counts = {field: values.integer(attributes, *keys) for field, keys in _COUNTS.items()}
    usage = Usage(**counts) if any(count is not None for count in counts.values()) else None
    answer = Answer(messages=(message,) if calls else (), usage=usage, streamed=True)
    first = values.number(attributes, "ttft_ms")
    return ModelRecord(
        request=Request(Operation.CHAT, values.text(attributes, "model"), stream=True),
        answer=None if error else answer,
        provider=values.text(attributes, "provider_name"),
        time_to_first_chunk=None if first is None else first / 1000,
        error=error,
        status=values.status_of(error),
        continues=True,
        fidelity={"input": Fidelity.ABSENT, **({} if error else {"output": _answer_state(calls)})},
    )


def _answer_state(calls: list[dict[str, Json]]) -> Fidelity:
    """Words beside the calls would not have been told."""
    return Fidelity.TRUNCATED if calls else Fidelity.ABSENT


def _call(asked: Attributes) -> dict[str, Json]:
    arguments, state = _arguments(asked)
    call: dict[str, Json] = {"type": "tool_call", "id": asked.get("call_id"), "name": _tool_name(asked)}
    return call if state is Fidelity.ABSENT else {**call, "arguments": arguments}


def _read_tool(span: RawSpan) -> ToolRecord:
    attributes = span.attributes
    arguments, arguments_state = _arguments(attributes)
    output = values.text(attributes, "output")
    state = losses.state(output) if output is not None else Fidelity.ABSENT
    if says(attributes.get("output_truncated"), "true"):
        state = Fidelity.TRUNCATED
    error = _failure(span, ErrorCategory.TOOL)
    if is_refused(attributes) and (output is None or error is not None):
        error = Error(ErrorCategory.POLICY, "rejected", values.text(attributes, "source"))
    blocked = error is not None and error.category is ErrorCategory.POLICY
    return ToolRecord(
        name=_tool_name(attributes),
        arguments=arguments,
        result=_HEADER.sub("", output, count=1).rstrip("\n") if output and _HEADER.match(output) else output,
        call_id=values.text(attributes, "call_id"),
        kind=ToolKind.MCP if values.text(attributes, "mcp_server") else ToolKind.FUNCTION,
        status=Status.BLOCKED if blocked else values.status_of(error),
        error=error,
        fidelity=values.marks(
            {"arguments": arguments_state, **({} if error and output is None else {"result": state})}
        ),
    )


def _arguments(attributes: Attributes) -> tuple[Json, Fidelity]:
    given = attributes.get("arguments")
    if given is None:
        return None, Fidelity.ABSENT
    found, state = values.decode(given)
    return found, losses.graver(state, losses.state(found))


def _tool_name(attributes: Attributes) -> str:
    return values.text(attributes, "tool_name") or "tool"


def _failure(span: RawSpan, category: ErrorCategory) -> Error | None:
    """How it failed, by what the event says: of a request its answer's status, of a tool its output."""
    attributes = span.attributes
    code = values.integer(attributes, "http.response.status_code")
    message = values.text(attributes, "error.message")
    if category is ErrorCategory.TOOL and says(attributes.get("success"), "false"):
        return Error(category, "tool_error", message or values.text(attributes, "output"))
    if message is not None or (code is not None and code >= 400):
        return Error(category, str(code) if code is not None and code >= 400 else "error", message)
    return values.failure(span, category)
