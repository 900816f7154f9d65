"""Semantic Kernel before 1.31: operations and functions' spans in its own words, messages in log records."""

from __future__ import annotations

import json

import pytest

from otlp_lines import converted, log, only_run, request, span
from spanreel import conventions as names
from spanreel.model import Status

DIAGNOSTICS = "semantic_kernel.utils.telemetry.model_diagnostics.decorators"
FUNCTIONS = "semantic_kernel.functions.kernel_function"
CALL = {"id": "call_1", "type": "function", "function": {"name": "Kitchen-order", "arguments": '{"dish": "soup"}'}}


def called(operation: str, number: int, identity: str) -> dict[str, object]:
    told = {
        names.OPERATION: operation,
        "gen_ai.system": "openai",
        names.REQUEST_MODEL: "gpt",
        names.RESPONSE_ID: identity,
        "gen_ai.response.finish_reason": "FinishReason.STOP",
        names.USAGE_INPUT_TOKENS: 40,
    }
    return span(number, f"{operation} gpt", told, 1, seconds=1)


def record(event: str, inside: int, body: dict[str, object]) -> dict[str, object]:
    return log("", {"event.name": event, "gen_ai.system": "openai"}, inside, json.dumps(body))


@pytest.mark.parametrize(("operation", "streamed"), [("chat.completions", False), ("chat.streaming_completions", True)])
def test_old_names_of_operations_are_model_calls_and_functions_are_tools(operation: str, streamed: bool) -> None:
    found = converted(
        request(span(1, "AutoFunctionInvocationLoop", {}, seconds=9), called(operation, 2, "a"), scope=DIAGNOSTICS),
        request(span(3, "Kitchen-order", {}, 1, seconds=1), scope=FUNCTIONS),
        request(called(operation, 4, "b"), scope=DIAGNOSTICS),
        record("gen_ai.user.message", 2, {"role": "user", "content": "Soup!"}),
        record(
            "gen_ai.choice", 2, {"message": {"role": "assistant", "tool_calls": [CALL]}, "finish_reason": "tool_calls"}
        ),
        record("gen_ai.user.message", 4, {"role": "user", "content": "Soup!"}),
        record("gen_ai.assistant.message", 4, {"role": "assistant", "tool_calls": [CALL]}),
        record("gen_ai.tool.message", 4, {"role": "tool", "tool_call_id": "call_1", "content": "served"}),
        record("gen_ai.choice", 4, {"message": {"role": "assistant", "content": "Enjoy."}, "finish_reason": "stop"}),
    ).sessions
    run = only_run(found[0])
    assert [(call.response_id, call.streamed) for call in run.model_calls()] == [("a", streamed), ("b", streamed)]
    assert [(call.name, call.call_id, call.arguments, call.result) for call in run.tool_calls()] == [
        ("Kitchen-order", "call_1", {"dish": "soup"}, "served")
    ]


def test_a_function_that_raised_is_a_failed_tool_call() -> None:
    failed = span(1, "Kitchen-order", {"error.type": "ValueError"}, status={"code": 2, "message": "no soup"})
    (call,) = only_run(converted(request(failed, scope=FUNCTIONS)).sessions[0]).tool_calls()
    assert (call.name, call.status, call.error and call.error.type) == ("Kitchen-order", Status.ERROR, "ValueError")
