"""Spans of the Model Context Protocol, and the Anthropic SDK's own."""

from __future__ import annotations

from typing import Any

from dialect_cases import wrong_fields
from otlp_lines import Span, agent, chat, only_run, said, session, span, tool
from spanreel.model import Fidelity, Status, ToolKind
from spanreel.session import ModelCall

SDK, CLIENT, SERVER = "mcp-python-sdk", 3, 2


def mcp(number: int, method: str, parent: int | None, kind: int = CLIENT, **rest: Any) -> Span:
    also = rest.pop("also", {})
    name = rest.pop("name", f"MCP send {method} order" if kind == CLIENT else f"{method} order")
    return span(number, name, {"mcp.method.name": method, **also}, parent, kind=kind, **rest)


def test_real_dumps_of_the_protocol_come_out_as_their_truth_says() -> None:
    assert wrong_fields("*mcp*") == {}


def test_a_clients_call_and_its_servers_are_one_and_listing_is_none() -> None:
    served = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "order"}
    one = session(
        agent(1, "waiter"),
        mcp(2, "tools/list", 1),
        mcp(3, "tools/call", 1, seconds=3),
        mcp(4, "tools/call", 3, SERVER, also=served),
        scope=SDK,
    )
    (call,) = only_run(one).tool_calls()
    assert (call.name, call.kind) == ("order", ToolKind.MCP)
    assert call.fidelity == {"arguments": Fidelity.ABSENT, "result": Fidelity.ABSENT}


def test_an_agents_call_of_a_servers_tool_is_one_whatever_it_calls_the_tool() -> None:
    one = session(
        agent(1, "waiter"),
        tool(2, "mcp__inn_order", {"dish": "soup"}, "served", 1, seconds=3),
        mcp(3, "tools/call", 2),
        scope=SDK,
    )
    (call,) = only_run(one).tool_calls()
    assert (call.name, call.arguments, call.result, len(one.runs)) == ("mcp__inn_order", {"dish": "soup"}, "served", 1)


def test_a_tool_that_calls_another_over_the_protocol_holds_it() -> None:
    one = session(agent(1, "waiter"), tool(2, "serve", {}, "served", 1, seconds=3), mcp(3, "tools/call", 2), scope=SDK)
    assert [call.name for run in one.runs for call in run.tool_calls()] == ["serve", "order"]


def test_a_failure_that_only_the_server_tells_is_the_calls() -> None:
    failed = {"also": {"error.type": "tool_error"}, "status": {"code": 2}}
    one = session(
        agent(1, "waiter"), mcp(2, "tools/call", 1, seconds=3), mcp(3, "tools/call", 2, SERVER, **failed), scope=SDK
    )
    (call,) = only_run(one).tool_calls()
    assert (call.status, call.error and call.error.type) == (Status.ERROR, "tool_error")


def test_a_servers_own_trace_is_no_session() -> None:
    conversion = session(agent(1, "waiter"), mcp(2, "tools/call", None, SERVER, trace="b" * 32), scope=SDK)
    assert [run.agent.name for run in conversion.runs] == ["waiter"]


# -- the Anthropic SDK -----------------------------------------------------------------------------------------------


def anthropic(number: int, attributes: dict[str, Any], parent: int | None = None, **rest: Any) -> Span:
    shared = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic", "gen_ai.request.model": "m"}
    return span(number, "anthropic.messages.create", {**shared, **attributes}, parent, kind=CLIENT, **rest)


def sdks_call(attributes: dict[str, Any], **rest: Any) -> ModelCall:
    (call,) = only_run(session(anthropic(1, attributes, **rest), scope="com.anthropic.sdk.python")).model_calls()
    return call


def test_the_sdks_own_span_is_a_call_with_its_facts_and_no_content() -> None:
    call = sdks_call(
        {
            "anthropic.message.stop_reason": "tool_use",
            "anthropic.request.id": "req_1",
            "anthropic.thinking.budget_tokens": 1024,
            "gen_ai.request.stream": True,
            "gen_ai.response.id": "msg_1",
            "gen_ai.usage.input_tokens": 52,
            "gen_ai.usage.cache_write.input_tokens": 5,
        }
    )
    assert (call.finish_reasons, call.response_id, call.streamed) == (["tool_use"], "msg_1", True)
    assert call.provider_fields == {"request_id": "req_1"}
    assert call.request_fields == {"thinking_budget_tokens": 1024}
    assert call.usage is not None
    assert (call.usage.input_tokens, call.usage.cache_write_tokens) == (52, 5)
    assert call.fidelity == {"input": Fidelity.ABSENT, "output": Fidelity.ABSENT}


def test_the_sdks_failure_is_the_calls() -> None:
    call = sdks_call({"error.type": "overloaded_error"}, status={"code": 2})
    assert (call.status, call.error and call.error.type) == (Status.ERROR, "overloaded_error")


def test_inside_another_instrumentations_span_the_sdks_is_the_same_call() -> None:
    one = session(
        chat(1, [said("user", "Hi")], said("assistant", "Ho"), also={"gen_ai.response.id": "msg_1"}, seconds=3),
        anthropic(2, {"gen_ai.response.id": "msg_1", "anthropic.message.stop_reason": "end_turn"}, 1),
        scope="com.anthropic.sdk.python",
    )
    (call,) = only_run(one).model_calls()
    assert one.messages[call.output[0]].parts == said("assistant", "Ho")["parts"]


def test_counting_tokens_is_no_model_call() -> None:
    counted = span(2, "anthropic.messages.count_tokens", {"gen_ai.request.model": "m"}, 1)
    one = session(anthropic(1, {"gen_ai.response.id": "msg_1"}), counted, scope="com.anthropic.sdk.python")
    assert len(list(only_run(one).model_calls())) == 1
