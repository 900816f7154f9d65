"""Dialects of observability vendors: Traceloop, Langfuse, LangSmith, MLflow, LiteLLM, CrewAI; and contrib's."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from conftest import cases
from dialect_cases import wrong_fields
from otlp_lines import Span, asks, called, converted, only_run, request, said, session, sessions, span, told
from spanreel import conventions as names
from spanreel.model import Fidelity, Status, ToolKind
from spanreel.session import Session, ToolCall
from spanreel.session_files import write_session
from spanreel_collector.conversion.convert import convert_files

GOLDEN = Path(__file__).parent / "golden"
OPENAI = "opentelemetry.instrumentation.openai.v1"
LANGCHAIN = "opentelemetry.instrumentation.langchain"
CONTRIB = "opentelemetry.instrumentation.openai_agents"
DEFINITION = {"type": "function", "function": {"name": "order", "description": "Order a dish.", "parameters": {}}}
OFFERED = [{"type": "function", "name": "order", "description": "Order a dish.", "parameters": {}}]
ORDER = called("order", {"dish": "soup"}, "call_1")
ASKED = {"id": "call_1", "type": "function", "function": {"name": "order", "arguments": '{"dish": "soup"}'}}
LC_ASKED = {"name": "order", "args": {"dish": "soup"}, "id": "call_1", "type": "tool_call"}
CHAT = [
    {"role": "system", "content": "Serve."},
    {"role": "user", "content": "Soup!"},
    {"role": "assistant", "content": None, "tool_calls": [ASKED]},
    {"role": "tool", "tool_call_id": "call_1", "content": "served"},
]
READ = [said("system", "Serve."), said("user", "Soup!"), asks(ORDER), told("call_1", "served")]


def lc(name: str, kind: str, **fields: Any) -> dict[str, Any]:
    """A message as LangChain's constructors write it."""
    path = ["langchain", "schema", "messages", name]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": {"type": kind, **fields}}


def old_traceloop(number: int, attributes: dict[str, Any], parent: int | None = None, **rest: Any) -> Span:
    base = {"llm.request.type": "chat", "gen_ai.system": "OpenAI", names.REQUEST_MODEL: "gpt-5"}
    return span(number, "openai.chat", {**base, **attributes}, parent, **rest)


def traceloop_tool(attributes: dict[str, Any], scope: str = LANGCHAIN, **rest: Any) -> ToolCall:
    kind = {"traceloop.span.kind": "tool", "traceloop.entity.name": "order"}
    (call,) = only_run(session(span(1, "order.tool", {**kind, **attributes}, **rest), scope=scope)).tool_calls()
    return call


def langfuse(number: int, kind: str, given: Any, came: Any, parent: int | None = None, **rest: Any) -> Span:
    also = rest.pop("also", {})
    content = {"input": given, "output": came}
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in content.items()}
    attributes = {f"langfuse.observation.{key}": value for key, value in {"type": kind, **texts}.items()}
    return span(number, rest.pop("name", kind), {**attributes, **also}, parent, **rest)


def langsmith(number: int, kind: str, given: Any, came: Any, parent: int | None = None, **rest: Any) -> Span:
    also = rest.pop("also", {})
    attributes = {
        "langsmith.span.kind": kind,
        "gen_ai.prompt": json.dumps(given),
        "gen_ai.completion": json.dumps(came),
    }
    return span(number, rest.pop("name", kind), {**attributes, **also}, parent, **rest)


def mlflow(number: int, kind: str, given: Any, came: Any, parent: int | None = None, **rest: Any) -> Span:
    also = rest.pop("also", {})
    attributes = {"mlflow.spanType": kind, "mlflow.spanInputs": given, "mlflow.spanOutputs": came, **also}
    texts = {key: json.dumps(value) for key, value in attributes.items() if value is not None}
    return span(number, rest.pop("name", kind), texts, parent, **rest)


def messages(one: Session, refs: list[int]) -> list[dict[str, Any]]:
    """The messages without what only their writer's form tells."""
    found = [one.messages[ref] for ref in refs]
    bare = [[{key: part[key] for key in part if key != "provider_fields"} for part in one.parts] for one in found]
    return [{"role": one.role, "parts": parts} for one, parts in zip(found, bare, strict=True)]


# -- whole sessions --------------------------------------------------------------------------------------------------


def agreed(name: str) -> list[Session]:
    """The sessions of a golden dump, as they are kept beside it; `SPANREEL_GOLDEN=write` writes them anew."""
    conversion = convert_files([str(GOLDEN / f"{name}.otlp.jsonl")])
    written = [json.loads(write_session(one)) for one in conversion.sessions]
    document = GOLDEN / f"{name}.sessions.json"
    if os.environ.get("SPANREEL_GOLDEN") == "write":
        document.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert conversion.faults == ()
    assert written == json.loads(document.read_text(encoding="utf-8"))
    return list(conversion.sessions)


@pytest.mark.parametrize("name", ["traceloop", "langfuse", "langsmith", "mlflow", "litellm"])
def test_a_conversation_of_three_requests_comes_out_as_agreed(name: str) -> None:
    """`tests/golden/NAME_dump.py` makes the dump."""
    runs = [run for one in agreed(name) for run in one.runs]
    assert [run.status for run in runs] == [Status.OK, Status.OK, Status.ERROR]
    calls = [call for run in runs for call in run.model_calls()]
    assert [call.usage.input_tokens if call.usage else None for call in calls] == [100, 200, 300, 400, None]
    assert [call.streamed for call in calls[:4]] == [False, False, False, True]
    assert [call.name for call in runs[0].tool_calls()] == ["find_book", "find_book", "reserve"]


def test_an_agent_in_a_pipeline_of_haystacks_comes_out_as_agreed() -> None:
    (one,) = agreed("haystack")
    run = only_run(one)
    assert (run.agent.name, [one.messages[ref].role for ref in run.input]) == ("librarian", ["system", "user"])
    assert [call.status for call in run.tool_calls()] == [Status.OK, Status.OK, Status.ERROR]
    assert one.usage.input_tokens == 600


@pytest.mark.parametrize(
    "pattern", ["tl-*", "traceloop-*", "langfuse-*", "langsmith-*", "mlflow-*", "litellm-*", "crewai-*"]
)
def test_real_dumps_come_out_as_their_truth_says(pattern: str) -> None:
    assert wrong_fields(pattern) == {}


def test_037_langchains_objects_in_langsmiths_attributes_are_messages() -> None:
    (one,) = convert_files([str(cases("reports/037-langsmith-lc.jsonl"))]).sessions
    (call,) = only_run(one).model_calls()
    oslo = called("get_weather", {"city": "Oslo"}, "call_1")
    wanted = [said("system", "Be brief."), said("user", "weather in Oslo?"), asks(oslo), told("call_1", "18 C")]
    assert messages(one, call.input) == wanted
    assert messages(one, call.output) == [said("assistant", "18 C.")]
    assert call.usage is not None
    assert (call.usage.input_tokens, call.usage.output_tokens, one.key.value) == (50, 4, "t-1")


# -- OpenLLMetry -----------------------------------------------------------------------------------------------------


def test_messages_in_indexed_attributes_of_old_are_read() -> None:
    attributes = {
        "gen_ai.prompt.0.role": "system",
        "gen_ai.prompt.0.content": "Serve.",
        "gen_ai.prompt.1.role": "user",
        "gen_ai.prompt.1.content": json.dumps([{"type": "text", "text": "Soup!"}]),
        "gen_ai.prompt.2.role": "assistant",
        "gen_ai.prompt.2.tool_calls.0.id": "call_1",
        "gen_ai.prompt.2.tool_calls.0.name": "order",
        "gen_ai.prompt.2.tool_calls.0.arguments": '{"dish": "soup"}',
        "gen_ai.prompt.3.role": "tool",
        "gen_ai.prompt.3.tool_call_id": "call_1",
        "gen_ai.prompt.3.content": "served",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "Enjoy.",
        "gen_ai.completion.0.finish_reason": "stop",
        "llm.request.functions.0.name": "order",
        "llm.request.functions.0.description": "Order a dish.",
        "llm.request.functions.0.parameters": "{}",
        "llm.is_streaming": True,
        "llm.presence_penalty": 0.5,
        "gen_ai.usage.prompt_tokens": 9,
        "gen_ai.usage.completion_tokens": 2,
        "gen_ai.usage.cache_read_input_tokens": 4,
    }
    one = session(old_traceloop(1, attributes), scope=OPENAI)
    (call,) = only_run(one).model_calls()
    assert messages(one, call.input) == READ
    assert messages(one, call.output) == [said("assistant", "Enjoy.")]
    assert [one.tools[ref] for ref in call.tools] == OFFERED
    assert (call.provider, call.finish_reasons, call.streamed) == ("openai", ["stop"], True)
    assert call.settings == {"presence_penalty": 0.5}
    assert call.usage is not None
    assert (call.usage.input_tokens, call.usage.output_tokens, call.usage.cache_read_tokens) == (9, 2, 4)
    assert call.fidelity == {}


def test_the_oldest_form_of_a_tool_request_and_a_prompt_without_a_role_are_read() -> None:
    attributes = {
        "llm.request.type": "completion",
        "gen_ai.prompt.0.user": "Soup!",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.function_call.name": "order",
        "gen_ai.completion.0.function_call.arguments": '{"dish": "soup"}',
    }
    one = session(old_traceloop(1, attributes), scope=OPENAI)
    (call,) = only_run(one).model_calls()
    assert messages(one, call.input) == [said("user", "Soup!")]
    assert messages(one, call.output) == [asks({**ORDER, "id": None})]


def test_anthropics_blocks_in_old_attributes_are_requests_and_results() -> None:
    use = [
        {"type": "text", "text": "I order."},
        {"type": "tool_use", "id": "t1", "name": "order", "input": {"dish": "soup"}},
    ]
    attributes = {
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "Soup!",
        "gen_ai.prompt.1.role": "assistant",
        "gen_ai.prompt.1.content": json.dumps(use),
        "gen_ai.prompt.2.role": "user",
        "gen_ai.prompt.2.content": json.dumps([{"type": "tool_result", "tool_use_id": "t1", "content": "served"}]),
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "Enjoy.",
    }
    one = session(old_traceloop(1, attributes), scope="opentelemetry.instrumentation.anthropic")
    (call,) = only_run(one).model_calls()
    parts = [{"type": "text", "content": "I order."}, called("order", {"dish": "soup"}, "t1")]
    wanted = [said("user", "Soup!"), {"role": "assistant", "parts": parts}, told("t1", "served")]
    assert messages(one, call.input) == wanted


def test_messages_that_a_limit_of_attributes_took_are_missed() -> None:
    attributes = {
        "gen_ai.prompt.2.role": "user",
        "gen_ai.prompt.2.content": "Soup!",
        "gen_ai.completion.0.content": "Ho",
    }
    one = session(old_traceloop(1, attributes, droppedAttributesCount=9), scope=OPENAI)
    (call,) = only_run(one).model_calls()
    lost = dict.fromkeys(("input", "tools", "settings"), Fidelity.TRUNCATED)
    assert call.fidelity == lost
    assert one.replay is not None
    assert not one.replay.eligible


def test_a_workflow_around_an_agent_is_its_wrapping_and_decorators_tell_arguments() -> None:
    given = json.dumps({"args": ["Soup!"], "kwargs": {}})
    ends = {"traceloop.entity.input": given, "traceloop.entity.output": '"Enjoy."'}
    user = {"traceloop.association.properties.session_id": "s-1", "traceloop.association.properties.user_id": "u-1"}
    tool = {
        "traceloop.entity.input": json.dumps({"args": [], "kwargs": {"dish": "soup"}}),
        "traceloop.entity.output": "7",
    }
    one = session(
        span(1, "visit.workflow", {"traceloop.span.kind": "workflow", **ends, **user}, seconds=9),
        span(2, "waiter.agent", {"traceloop.span.kind": "agent", "traceloop.entity.name": "waiter", **ends, **user}, 1),
        span(3, "order.tool", {"traceloop.span.kind": "tool", "traceloop.entity.name": "order", **tool, **user}, 2),
        scope="traceloop.tracer",
    )
    run = only_run(one)
    assert (run.agent.name, one.key.value, one.user_id) == ("waiter", "s-1", "u-1")
    assert messages(one, run.input) == [said("user", "Soup!")]
    assert messages(one, run.output) == [said("assistant", "Enjoy.")]
    assert [(call.name, call.arguments, call.result) for call in run.tool_calls()] == [("order", {"dish": "soup"}, 7)]


@pytest.mark.parametrize(
    ("given", "came", "result"),
    [
        (
            {"input_str": "{'dish': 'soup'}", "tags": [], "inputs": None, "kwargs": {"tool_call_id": "call_1"}},
            {"output": lc("ToolMessage", "tool", content="served", tool_call_id="call_1"), "kwargs": {}},
            "served",
        ),
        ({"tool_name": "order", "arguments": {"dish": "soup"}}, {"result": "served"}, "served"),
        ({"dish": "soup"}, {"price": 4}, {"price": 4}),
    ],
)
def test_tools_of_openllmetry_come_out_of_their_wrapping(given: Any, came: Any, result: Any) -> None:
    call = traceloop_tool({"traceloop.entity.input": json.dumps(given), "traceloop.entity.output": json.dumps(came)})
    assert (call.name, call.arguments, call.result, call.status) == ("order", {"dish": "soup"}, result, Status.OK)


def test_a_tool_that_says_in_its_result_that_it_failed_failed() -> None:
    failed = lc("ToolMessage", "tool", content="Error: no soup", tool_call_id="call_1", status="error")
    call = traceloop_tool({"traceloop.entity.output": json.dumps({"output": failed})})
    assert (call.status, call.result, call.fidelity) == (Status.ERROR, "Error: no soup", {"arguments": Fidelity.ABSENT})
    of_mcp = {
        "traceloop.entity.output": json.dumps({"result": "no soup", "is_error": True}),
        "error.type": "tool_error",
    }
    call = traceloop_tool(of_mcp, scope="opentelemetry.instrumentation.mcp.instrumentation")
    assert (call.status, call.result, call.kind) == (Status.ERROR, "no soup", ToolKind.MCP)


def test_a_task_is_a_tool_only_where_llama_index_says_so() -> None:
    came = {"blocks": [], "tool_name": "order", "raw_input": {}, "raw_output": "served", "is_error": False}
    kind = {"traceloop.span.kind": "task", "traceloop.entity.input": json.dumps({"kwargs": {"dish": "soup"}})}
    found = span(1, "FunctionTool.task", {**kind, "traceloop.entity.output": json.dumps(came)})
    (call,) = only_run(session(found, scope="opentelemetry.instrumentation.llamaindex")).tool_calls()
    assert (call.name, call.arguments, call.result) == ("order", {"dish": "soup"}, "served")
    assert sessions(span(1, "step.task", kind), scope="traceloop.tracer") == []


def test_a_handoff_of_openllmetrys_names_the_agent_it_goes_to() -> None:
    handoff = {
        "traceloop.span.kind": "handoff",
        "gen_ai.handoff.from_agent": "waiter",
        "gen_ai.handoff.to_agent": "Cook",
    }
    one = session(
        span(1, "waiter.agent", {"traceloop.span.kind": "agent", "gen_ai.agent.name": "waiter"}, seconds=9),
        span(2, "waiter → Cook.handoff", {**handoff, names.OPERATION: "handoff"}, 1),
        scope=CONTRIB,
    )
    (call,) = only_run(one).tool_calls()
    assert (call.kind, call.name, call.target) == (ToolKind.HANDOFF, "transfer_to_cook", "Cook")


def test_the_shadow_of_a_call_that_stands_beside_it_is_no_call() -> None:
    """Anthropic's SDK writes a span of its own, beside OpenLLMetry's; with it, one that fails has two failures."""
    facts = {names.OPERATION: "chat", names.REQUEST_MODEL: "claude"}
    content = {names.INPUT_MESSAGES: json.dumps([said("user", "Hi")])}
    for told_apart in ({names.RESPONSE_ID: "m1", names.USAGE_INPUT_TOKENS: 5}, {"error.type": "RateLimitError"}):
        whole = span(2, "anthropic.chat", {**facts, **content, **told_apart}, 1, seconds=2)
        shadow = span(3, "messages.create", {**facts, **told_apart, "server.port": 1}, 1, start=2.5, seconds=1)
        top = request(span(1, "visit", {}, seconds=9), scope="demo")
        (one,) = converted(
            top,
            request(whole, scope="opentelemetry.instrumentation.anthropic"),
            request(shadow, scope="com.anthropic.sdk.python"),
        ).sessions
        (call,) = only_run(one).model_calls()
        assert messages(one, call.input) == [said("user", "Hi")]
        assert call.id == whole["spanId"]


# -- Langfuse --------------------------------------------------------------------------------------------------------


def test_a_generation_of_langfuses_openai_client_is_a_model_call() -> None:
    parameters = {"temperature": 0.2, "max_tokens": "Infinity", "stop": "END"}
    counts = {
        "prompt_tokens": 9,
        "completion_tokens": 3,
        "total_tokens": 12,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    also = {
        "langfuse.observation.model.name": "gpt-5-2026",
        "langfuse.observation.model.parameters": json.dumps(parameters),
        "langfuse.observation.usage_details": json.dumps(counts),
        "langfuse.observation.completion_start_time": "2026-11-30T00:00:00Z",
        "session.id": "s-1",
        "langfuse.trace.metadata.branch": '"north"',
        "langfuse.trace.tags": ["demo"],
    }
    given = {"tools": [DEFINITION], "messages": CHAT}
    one = session(
        langfuse(1, "generation", given, {"role": "assistant", "content": "Enjoy."}, also=also), scope="langfuse-sdk"
    )
    (call,) = only_run(one).model_calls()
    assert messages(one, call.input) == READ
    assert messages(one, call.output) == [said("assistant", "Enjoy.")]
    assert (call.response_model, call.streamed, call.fidelity) == ("gpt-5-2026", True, {})
    assert call.settings == {"temperature": 0.2, "stop_sequences": ["END"]}
    assert call.usage is not None
    assert (call.usage.input_tokens, call.usage.output_tokens, call.usage.cache_read_tokens) == (9, 3, 4)
    assert (one.key.value, one.tags, one.metadata) == ("s-1", ["demo"], {"branch": "north"})


@pytest.mark.parametrize(
    ("told", "counts"),
    [
        ({"input": 5, "output": 2, "total": 12, "input_cache_read": 4, "output_reasoning": 1}, (9, 3, 4, None, 1)),
        ({"input": 9, "output": 3, "total": 12, "input_cache_read": 4, "output_reasoning": 1}, (9, 3, 4, None, 1)),
        (
            {"input": 5, "output": 2, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 6},
            (15, 2, 4, 6, None),
        ),
        ({"input_tokens": 9, "output_tokens": 3}, (9, 3, None, None, None)),
        ({"input": 7}, (7, None, None, None, None)),
    ],
)
def test_langfuse_counts_each_token_once_and_the_session_all_in_their_sums(told: Any, counts: Any) -> None:
    also = {"langfuse.observation.usage_details": json.dumps(told)}
    (call,) = only_run(session(langfuse(1, "generation", "Hi", "Ho", also=also), scope="langfuse-sdk")).model_calls()
    assert call.usage is not None
    usage = call.usage
    found = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
    assert (*found, usage.reasoning_tokens) == counts


def test_tool_definitions_that_stand_as_messages_of_tools_are_definitions() -> None:
    asked = {"role": "assistant", "content": "", "tool_calls": [LC_ASKED]}
    given = [*CHAT[:2], asked, CHAT[3], {"role": "tool", "content": DEFINITION}]
    metadata = {
        "langfuse.observation.metadata.ls_model_name": '"gpt-5"',
        "langfuse.observation.model.name": "gpt-5-2026",
    }
    one = session(langfuse(1, "generation", given, "Enjoy.", also=metadata), scope="langfuse-sdk")
    (call,) = only_run(one).model_calls()
    assert messages(one, call.input) == READ
    assert [one.tools[ref] for ref in call.tools] == OFFERED
    assert (call.model, call.response_model) == ("gpt-5", "gpt-5-2026")


def test_a_level_is_a_failure_and_a_node_of_the_graph_no_agent() -> None:
    error = {"langfuse.observation.level": "ERROR", "langfuse.observation.status_message": "no soup"}
    node = {"langfuse.observation.metadata.langgraph_node": '"waiter"'}
    one = session(
        langfuse(1, "chain", {"messages": CHAT[:2]}, {"output": "Enjoy."}, name="graph", seconds=9),
        langfuse(2, "agent", {}, {}, 1, name="waiter", also=node, seconds=5),
        langfuse(3, "tool", {"args": ["soup"], "kwargs": {}}, "", 2, name="order", also=error),
        langfuse(4, "guardrail", {}, {}, 1),
        scope="langfuse-sdk",
    )
    run = only_run(one)
    (call,) = run.tool_calls()
    assert (call.status, call.error.message if call.error else None) == (Status.ERROR, "no soup")
    assert run.agent.name is None


# -- LangSmith -------------------------------------------------------------------------------------------------------


def test_a_wrapped_client_and_decorated_functions_of_langsmiths_are_a_run() -> None:
    completion: dict[str, Any] = {"id": "c1", "object": "chat.completion", "model": "gpt-5-2026", "choices": []}
    completion["choices"] = [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Enjoy."}}
    ]
    llm = langsmith(
        3, "llm", {"messages": CHAT, "model": "gpt-5", "tools": [DEFINITION], "temperature": 0.2}, completion, 1
    )
    one = session(
        langsmith(1, "chain", {"question": "Soup!"}, {"output": "Enjoy."}, name="waiter", seconds=9),
        langsmith(2, "tool", {"dish": "soup"}, {"output": "served"}, 1, name="order"),
        llm,
        langsmith(4, "prompt", {}, {}, 1),
        scope="langsmith",
    )
    run = only_run(one)
    (call,) = run.model_calls()
    assert (run.agent.name, messages(one, run.input)) == ("waiter", [said("user", "Soup!")])
    assert messages(one, run.output) == [said("assistant", "Enjoy.")]
    assert (call.model, call.response_model, call.response_id) == ("gpt-5", "gpt-5-2026", "c1")
    assert (messages(one, call.input), call.settings) == (READ, {"temperature": 0.2})
    assert [(tool.name, tool.arguments, tool.result) for tool in run.tool_calls()] == [
        ("order", {"dish": "soup"}, "served")
    ]


def test_langsmiths_project_is_no_session_and_its_exceptions_have_their_own_names() -> None:
    event = {
        "name": "exception",
        "attributes": [
            {"key": "exception.type", "value": {"stringValue": "Exception"}},
            {
                "key": "exception.message",
                "value": {"stringValue": "LookupError('no soup')Traceback (most recent call last):"},
            },
        ],
    }
    also = {"langsmith.trace.session_name": "default", "langsmith.metadata.LANGSMITH_TRACING": "true"}
    failed = langsmith(1, "tool", {"dish": "soup"}, None, name="order", also=also, status={"code": 2}, events=[event])
    one = session(failed, scope="langsmith")
    (call,) = only_run(one).tool_calls()
    assert one.key.kind == "trace"
    assert one.metadata == {}
    assert call.error is not None
    assert (call.error.type, call.error.message) == ("LookupError", "no soup")


# -- MLflow ----------------------------------------------------------------------------------------------------------


def test_mlflows_bodies_are_read_by_the_protocol_of_their_provider() -> None:
    asked = {
        "model": "claude",
        "max_tokens": 9,
        "system": "Serve.",
        "messages": [{"role": "user", "content": "Soup!"}],
        "tools": [{"name": "order", "description": "Order a dish.", "input_schema": {}}],
    }
    use = {"type": "tool_use", "id": "call_1", "name": "order", "input": {"dish": "soup"}}
    usage = {"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 0}
    answer: dict[str, Any] = {"id": "m1", "type": "message", "role": "assistant", "model": "claude", "content": [use]}
    answer |= {"stop_reason": "tool_use", "stop_sequence": None, "usage": usage}
    one = session(mlflow(1, "CHAT_MODEL", asked, answer), scope="mlflow.tracing.provider")
    (call,) = only_run(one).model_calls()
    assert call.protocol == "anthropic_messages"
    assert messages(one, call.input) == [said("system", "Serve."), said("user", "Soup!")]
    assert messages(one, call.output)[0]["parts"] == [ORDER]
    assert [one.tools[ref]["name"] for ref in call.tools] == ["order"]
    assert call.usage is not None
    assert (call.usage.input_tokens, call.usage.cache_read_tokens, call.usage.output_tokens) == (9, 4, 2)


def test_mlflows_langchain_runs_and_numbered_names_are_read() -> None:
    human = {"type": "human", "content": "Soup!"}
    reply = {"type": "ai", "content": "", "tool_calls": [LC_ASKED], "response_metadata": {"model_name": "gpt-5-2026"}}
    generations = {"generations": [[{"text": "", "message": reply}]], "llm_output": None}
    result = {"type": "tool", "content": "served", "tool_call_id": "call_1", "status": "success"}
    function = {"mlflow.spanFunctionName": "order"}
    one = session(
        mlflow(1, "CHAIN", {"messages": [human]}, {"messages": [human, reply]}, seconds=9),
        mlflow(2, "CHAT_MODEL", [[human]], generations, 1, also={"temperature": 0.2}),
        mlflow(3, "TOOL", "{'dish': 'soup'}", result, 1, name="order_1", also=function),
        scope="mlflow.tracing.provider",
    )
    run = only_run(one)
    (call,) = run.model_calls()
    assert messages(one, call.input) == [said("user", "Soup!")]
    assert messages(one, call.output) == [asks(ORDER)]
    assert (call.response_model, call.settings) == ("gpt-5-2026", {"temperature": 0.2})
    (tool,) = run.tool_calls()
    assert (tool.name, tool.arguments, tool.result, tool.call_id) == ("order", {"dish": "soup"}, "served", "call_1")


def test_of_older_mlflow_the_model_stands_in_langchains_parameters_alone() -> None:
    asked, came = [[{"type": "human", "content": "Soup!"}]], {"generations": [[{"text": "Here."}]]}
    also = {"invocation_params": json.dumps({"model": "gpt", "model_name": "gpt", "temperature": 0.2})}
    one = session(mlflow(1, "CHAT_MODEL", asked, came, also=also), scope="mlflow.tracing.provider")
    (call,) = only_run(one).model_calls()
    assert call.model == "gpt"


def test_where_mlflow_writes_the_conventions_names_the_model_asked_for_stands_beside() -> None:
    attributes = {names.OPERATION: "chat", names.REQUEST_MODEL: "gpt-5-2026", "model": '"gpt-5"'}
    (call,) = only_run(session(span(1, "chat", attributes), scope="mlflow.tracing.provider")).model_calls()
    assert call.model == "gpt-5"


# -- LiteLLM, CrewAI, contrib ----------------------------------------------------------------------------------------


def test_a_failed_call_of_litellms_has_no_answer_and_no_id() -> None:
    attributes = {
        names.OPERATION: "chat",
        names.RESPONSE_ID: "x",
        "litellm.call_id": "x",
        "error.type": "RateLimitError",
    }
    one = session(span(1, "litellm_request", attributes, status={"code": 2}), scope="litellm")
    (call,) = only_run(one).model_calls()
    assert (call.status, call.response_id, call.output) == (Status.ERROR, None, [])


def test_messages_of_litellms_with_tool_calls_beside_their_parts_are_read() -> None:
    beside: list[dict[str, Any]] = [
        {"role": "user", "parts": [{"type": "text", "content": "Soup!"}]},
        {"role": "assistant", "parts": [{"type": "text", "content": ""}], "tool_calls": [ASKED]},
        {"role": "tool", "parts": [{"type": "text", "content": "served"}], "tool_call_id": "call_1"},
    ]
    attributes = {names.OPERATION: "chat", names.INPUT_MESSAGES: json.dumps(beside)}
    one = session(span(1, "litellm_request", attributes), scope="litellm")
    (call,) = only_run(one).model_calls()
    assert messages(one, call.input) == READ[1:]


def test_a_crew_of_several_agents_has_no_name_and_an_answer_for_each_task() -> None:
    tasks = [
        {"id": "t1", "description": "Cook.", "agent_role": "cook"},
        {"id": "t2", "description": "Serve.", "agent_role": "waiter"},
    ]
    attributes = {
        "crew_agents": json.dumps([{"role": "cook"}, {"role": "waiter"}]),
        "crew_tasks": json.dumps(tasks),
        "crew_tasks_output": json.dumps([{"id": "t1", "output": "Soup."}, {"id": "t2", "output": "Served."}]),
        "crew_output": "Served.",
    }
    one = session(span(1, "Crew Execution", attributes), scope="crewai.telemetry")
    run = only_run(one)
    assert run.agent.name is None
    assert [one.messages[ref].parts[0]["content"] for ref in run.input] == ["Cook.", "Serve."]
    assert [(one.messages[ref].name, one.messages[ref].parts[0]["content"]) for ref in run.output] == [
        ("cook", "Soup."),
        ("waiter", "Served."),
    ]
    assert sessions(span(1, "Crew Execution", {"crew_id": "c"}), scope="crewai.telemetry") == []


def test_items_that_contrib_writes_as_reprs_are_tool_calls_and_the_history_is_put_together() -> None:
    fields = "call_id='call_1', name='order', type='function_call', id='fc_1')"
    repr_of_item = 'ResponseFunctionToolCall(arguments=\'{"dish": "soup"}\', ' + fields
    asked = {
        names.OPERATION: "chat",
        names.INPUT_MESSAGES: json.dumps([said("user", "Soup!")]),
        names.AGENT_NAME: "OpenAI Agent",
    }
    served = {names.OPERATION: "execute_tool", names.TOOL_NAME: "order", names.TOOL_CALL_RESULT: "served"}
    one = session(
        span(
            1,
            "agent",
            {names.OPERATION: "invoke_agent", names.AGENT_NAME: "waiter", names.AGENT_ID: "agent"},
            seconds=9,
        ),
        span(2, "chat", {**asked, names.OUTPUT_MESSAGES: json.dumps([said("assistant", repr_of_item)])}, 1),
        span(3, "tool", {**served, names.TOOL_CALL_ARGUMENTS: '{"dish": "soup"}'}, 1),
        span(4, "chat", {**asked, names.OUTPUT_MESSAGES: json.dumps([said("assistant", "Enjoy.")])}, 1),
        scope=CONTRIB,
    )
    run = only_run(one)
    assert (run.agent.name, run.agent.id) == ("waiter", None)
    first, second = run.model_calls()
    assert messages(one, first.output) == [asks(ORDER)]
    assert messages(one, second.input) == READ[1:]
    # The agent's instructions are on no span: no live request is known again by this.
    assert {first.fidelity["input"], second.fidelity["input"]} == {Fidelity.TRUNCATED}


def test_what_contrib_writes_as_reprs_of_answers_and_of_their_blocks_is_text() -> None:
    block = "{'annotations': [], 'text': 'Enjoy.', 'type': 'output_text', 'logprobs': []}"
    order = "{'arguments': '{\"dish\": \"soup\"}', 'call_id': 'call_1', 'name': 'order', 'type': 'function_call'}"
    response = f"{{'id': '__fake_id__', 'object': 'response', 'output': [{order}], 'usage': None}}"
    asked = [said("system", "Serve."), said("user", "Tea!"), said("assistant", block), said("user", "Soup!")]
    attributes = {
        names.OPERATION: "chat",
        names.INPUT_MESSAGES: json.dumps(asked),
        names.OUTPUT_MESSAGES: json.dumps([said("assistant", response)]),
    }
    one = session(span(1, "chat", attributes), scope=CONTRIB)
    (call,) = only_run(one).model_calls()
    assert messages(one, call.input) == [*asked[:2], said("assistant", "Enjoy."), asked[3]]
    assert messages(one, call.output) == [asks(ORDER)]


# -- Haystack --------------------------------------------------------------------------------------------------------


def test_components_of_a_haystack_pipeline_are_calls_by_their_type() -> None:
    def component(number: int, kind: str, given: Any, came: Any) -> Span:
        values = {"name": f"my_{kind}", "type": kind, "input": json.dumps(given), "output": json.dumps(came)}
        attributes = {f"haystack.component.{key}": value for key, value in values.items()}
        return span(number, "haystack.component.run", attributes, 1)

    user: dict[str, Any] = {"role": "user", "meta": {}, "name": None, "content": [{"text": "Soup!"}]}
    call = {"tool_name": "order", "arguments": {"dish": "soup"}, "id": "call_1"}
    reply = {
        "role": "assistant",
        "meta": {"model": "gpt-5-2026", "finish_reason": "tool_calls"},
        "content": [{"tool_call": call}],
    }
    result = {
        "role": "tool",
        "meta": {},
        "content": [{"tool_call_result": {"result": "served", "origin": call, "error": False}}],
    }
    one = session(
        span(
            1,
            "haystack.pipeline.run",
            {"haystack.pipeline.input_data": json.dumps({"llm": {"messages": [user]}})},
            seconds=9,
        ),
        component(2, "InMemoryRetriever", {"query": "soup"}, {"documents": []}),
        component(
            3,
            "OpenAIChatGenerator",
            {"messages": [user], "generation_kwargs": {"temperature": 0.2}},
            {"replies": [reply]},
        ),
        component(4, "ToolInvoker", {"messages": [reply]}, {"tool_messages": [result]}),
        component(5, "PromptBuilder", {}, {}),
        scope="mine",
    )
    run = only_run(one)
    (model,) = run.model_calls()
    assert messages(one, run.input) == messages(one, model.input) == [said("user", "Soup!")]
    assert messages(one, model.output) == [asks(ORDER)]
    assert (model.response_model, model.finish_reasons) == ("gpt-5-2026", ["tool_calls"])
    assert model.settings == {"temperature": 0.2}
    calls = {call.name: call for call in run.tool_calls()}
    assert set(calls) == {"my_InMemoryRetriever", "order"}
    assert (calls["order"].result, calls["my_InMemoryRetriever"].kind) == ("served", ToolKind.RETRIEVER)


# -- OpenLIT ---------------------------------------------------------------------------------------------------------


def test_what_openlit_invents_is_no_setting_and_the_system_is_told_once() -> None:
    attributes = {
        names.OPERATION: "chat",
        names.REQUEST_TEMPERATURE: 0.3,
        names.REQUEST_TOP_P: 1.0,
        names.REQUEST_SEED: 0,
        names.REQUEST_PRESENCE_PENALTY: 0.5,
        names.TOOL_NAME: "order",
        names.INPUT_MESSAGES: json.dumps([said("system", "Serve."), said("user", "Soup!")]),
        names.SYSTEM_INSTRUCTIONS: json.dumps([{"type": "text", "content": "Serve."}]),
        names.OUTPUT_MESSAGES: json.dumps([asks(ORDER)]),
    }
    one = session(span(1, "chat gpt-5", attributes), scope="openlit.instrumentation.openai")
    (call,) = only_run(one).model_calls()
    assert call.settings == {"temperature": 0.3, "presence_penalty": 0.5}
    assert messages(one, call.input) == [said("system", "Serve."), said("user", "Soup!")]


def test_a_call_of_which_langfuses_callback_got_no_counts_has_those_of_the_node_around() -> None:
    """As of streams and of the Responses API: the message that the node put into the state tells them."""
    facts = {"response_metadata": {"id": "resp_1", "model_name": "gpt-5-2026"}}
    counts = {"input_tokens": 60, "output_tokens": 12, "total_tokens": 72, "input_token_details": {"cache_read": 8}}
    message = {"type": "ai", "content": "Enjoy.", **facts, "usage_metadata": counts}
    also = {"langfuse.observation.metadata.ls_model_name": '"gpt-5"', "langfuse.observation.model.name": "gpt-5"}
    one = session(
        langfuse(1, "agent", {"messages": CHAT}, {"messages": []}, name="waiter", seconds=9),
        langfuse(2, "chain", {}, [{"graph": None, "update": {"messages": [message]}}], 1, name="model", seconds=5),
        langfuse(3, "generation", CHAT, {"role": "assistant", "content": "Enjoy."}, 2, also=also),
        scope="langfuse-sdk",
    )
    (call,) = only_run(one).model_calls()
    assert (call.model, call.response_model, call.response_id) == ("gpt-5", "gpt-5-2026", "resp_1")
    assert call.usage is not None
    assert (call.usage.input_tokens, call.usage.cache_read_tokens) == (60, 8)


def test_an_answer_of_the_responses_api_is_told_by_its_items() -> None:
    blocks = [{"type": "output_text", "text": "Enjoy.", "annotations": []}]
    item = {"id": "msg_1", "type": "message", "role": "assistant", "content": blocks}
    order = {"type": "function_call", "call_id": "call_1", "name": "order", "arguments": '{"dish": "soup"}'}
    asked = {"input": [{"role": "user", "content": "Soup!"}], "tools": [DEFINITION]}
    one = session(
        langfuse(1, "span", {"args": ["Soup!"], "kwargs": {}}, "Enjoy.", name="waiter", seconds=9, also=APP_ROOT),
        langfuse(2, "generation", asked, [order, {**order, "call_id": "call_2"}], 1),
        langfuse(3, "generation", asked, item, 1),
        scope="langfuse-sdk",
    )
    run = only_run(one)
    first, second = run.model_calls()
    assert run.agent.name == "waiter"
    assert [[part["id"] for part in one.messages[ref].parts] for ref in first.output] == [["call_1", "call_2"]]
    assert (messages(one, second.output), second.response_id) == ([said("assistant", "Enjoy.")], None)


APP_ROOT = {"langfuse.internal.is_app_root": True}


def test_the_agents_sdks_runner_around_a_workflow_is_no_agent_of_mlflows() -> None:
    one = session(
        mlflow(1, "AGENT", {}, "Enjoy.", name="AgentRunner.run", seconds=9),
        mlflow(2, "AGENT", {}, None, 1, name="host", seconds=2),
        mlflow(3, "CHAT_MODEL", {"messages": CHAT}, None, 2, name="Response"),
        mlflow(4, "AGENT", {}, None, 1, name="waiter", seconds=2),
        mlflow(5, "CHAT_MODEL", {"messages": CHAT}, None, 4, name="Response"),
        scope="mlflow.tracing.provider",
    )
    assert [run.agent.name for run in one.runs] == [None, "host", "waiter"]


def test_what_stands_beside_the_conventions_names_on_mlflows_spans_is_read_too() -> None:
    """Of LangChain: parameters and metadata of callbacks, and tools' results in their messages."""
    metadata = {"metadata": json.dumps({"lc_agent_name": "waiter", "thread_id": "talk"})}
    result = json.dumps({"content": "served", "type": "tool", "name": "order", "tool_call_id": "call_1"})
    asked = {"gen_ai.request.model": "gpt-5", names.INPUT_MESSAGES: json.dumps([said("user", "Soup!")])}
    invoked = {"invocation_params": json.dumps({"model": "gpt-5", "temperature": 0.2})}
    tool = {
        names.TOOL_NAME: "order",
        "gen_ai.tool.call.arguments": '{"dish": "soup"}',
        "gen_ai.tool.call.result": result,
    }
    one = session(
        span(1, "CHAIN", {names.OPERATION: "CHAIN", **metadata}, seconds=9),
        span(2, "CHAIN", {names.OPERATION: "CHAIN", **metadata}, 1, seconds=3),
        span(3, "chat gpt-5", {names.OPERATION: "chat", **asked, **invoked, **metadata}, 2),
        span(4, "execute_tool order", {names.OPERATION: "execute_tool", **tool, **metadata}, 1),
        scope="mlflow.tracing.provider",
    )
    run = only_run(one)
    ((call,), (order,)) = run.model_calls(), run.tool_calls()
    assert (run.agent.name, one.key.value, call.settings) == ("waiter", "talk", {"temperature": 0.2})
    assert (order.result, order.call_id) == ("served", "call_1")


def test_a_response_that_the_agents_sdk_told_mlflow_is_one_call_with_the_request_inside_it() -> None:
    usage = {"input_tokens": 60, "input_tokens_details": {"cached_tokens": 8}, "output_tokens": 12}
    response = {"object": "response", "id": "resp_1", "model": "gpt-5-2026", "usage": usage}
    unset = {"model": "gpt-5", "temperature": 0.2, "top_p": "<openai.Omit object at 0x7f00>"}
    counted = {names.OPERATION: "chat", names.REQUEST_MODEL: "gpt-5-2026", "gen_ai.usage.input_tokens": 60}
    runner = {names.OPERATION: "invoke_agent", names.AGENT_NAME: "AgentRunner.run"}
    one = session(
        span(1, "invoke_agent AgentRunner.run", runner, seconds=9),
        span(2, "invoke_agent waiter", {names.OPERATION: "invoke_agent", names.AGENT_NAME: "waiter"}, 1, seconds=8),
        span(
            3,
            "chat",
            {names.OPERATION: "chat", **{key: json.dumps(value) for key, value in response.items()}},
            2,
            seconds=2,
        ),
        span(
            4, "chat gpt-5-2026", {**counted, **{key: json.dumps(value) for key, value in unset.items()}}, 3, start=3.1
        ),
        scope="mlflow.tracing.provider",
    )
    run = only_run(one)
    (call,) = run.model_calls()
    assert (run.agent.name, call.settings, call.response_id) == ("waiter", {"temperature": 0.2}, "resp_1")
    assert (call.model, call.response_model) == ("gpt-5", "gpt-5-2026")
    assert one.usage.cache_read_tokens == 8
