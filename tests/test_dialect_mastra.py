"""Mastra: the spans of its OTel exporter, of today and before 1.0, and `getTrace` documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import cases
from dialect_cases import wrong_fields
from golden_sessions import GOLDEN, converted_and_agreed
from otlp_lines import Span, called, only_run, said, session, span, told
from spanreel.model import Fidelity, Status, ToolKind
from spanreel.session import Run, Session
from spanreel_collector.conversion.account import Account
from spanreel_collector.conversion.convert import Conversion, convert, convert_files
from spanreel_collector.sources.documents import read_line

SCOPE = "@mastra/otel-exporter"
CONTEXT = [{"role": "system", "content": "Serve."}, {"role": "user", "content": [{"type": "text", "text": "Soup!"}]}]
ORDER = called("order", {"dish": "soup"}, "call_1")
ASKED = {"text": "", "toolCalls": [{"toolCallId": "call_1", "toolName": "order", "args": {"dish": "soup"}}]}


def mastra(number: int, kind: str, attributes: dict[str, Any], parent: int | None = None, **rest: Any) -> Span:
    return span(number, kind, {"mastra.span.type": kind, **attributes}, parent, **rest)


def given(kind: str, given: Any = None, came: Any = None) -> dict[str, Any]:
    sides = {"input": given, "output": came}
    return {f"mastra.{kind}.{side}": json.dumps(value) for side, value in sides.items() if value is not None}


def messages(one: Session, indexes: list[int]) -> list[dict[str, Any]]:
    return [{"role": one.messages[index].role, "parts": one.messages[index].parts} for index in indexes]


def imported(*documents: Any) -> Conversion:
    return convert(
        read_line(json.dumps(document).encode(), f"x:{number}") for number, document in enumerate(documents, 1)
    )


def record(number: int, kind: str, parent: int | None = None, **also: Any) -> dict[str, Any]:
    """A span as `getTrace` has it."""
    times = {"startedAt": f"2026-11-29T10:00:0{number}.000Z", "endedAt": f"2026-11-29T10:00:0{number}.500Z"}
    return {
        "spanId": f"s{number}",
        "parentSpanId": parent and f"s{parent}",
        "name": kind,
        "spanType": kind,
        **times,
        **also,
    }


def trace(*spans: dict[str, Any], trace_id: str = "t1") -> dict[str, Any]:
    return {"traceId": trace_id, "spans": [{"traceId": trace_id, **one} for one in spans]}


# -- whole sessions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dump", ["mastra.otlp.jsonl", "mastra.trace.json"])
def test_an_agent_comes_out_as_agreed(dump: str) -> None:
    """`tests/golden/mastra_dump.mjs` makes both: two tools at once, one failing; a secret redacted; a second turn."""
    found, agreed = converted_and_agreed(dump, dump.rpartition(".json")[0])
    assert found == agreed


def test_exporter_and_get_trace_tell_the_same_calls() -> None:
    both = [convert_files([str(GOLDEN / dump)]).sessions[0] for dump in ("mastra.otlp.jsonl", "mastra.trace.json")]
    exported, got = both
    assert exported.key == got.key
    assert exported.usage == got.usage
    for one, other in zip(exported.runs, got.runs, strict=True):
        assert [(call.name, call.arguments, call.result, call.status) for call in one.tool_calls()] == [
            (call.name, call.arguments, call.result, call.status) for call in other.tool_calls()
        ]
        for call, same in zip(one.model_calls(), other.model_calls(), strict=True):
            assert messages(exported, call.input) == messages(got, same.input)
            assert messages(exported, call.output) == messages(got, same.output)


def test_the_real_dump_of_the_exporter_comes_out_as_its_truth_says() -> None:
    assert wrong_fields("mastra-*") == {}


@pytest.mark.parametrize("name", ["mastra_getTrace_core1.51_obs1.17.9.json", "mastra_otel_exporter1.4.0_spans.json"])
def test_real_imports_give_the_whole_session(name: str) -> None:
    conversion = convert_files([str(cases(f"imports/{name}"))])
    assert conversion.faults == ()
    (one,) = conversion.sessions
    run = only_run(one)
    assert (run.agent.name, run.status) == ("Support agent", Status.OK)
    first, last = run.model_calls()
    context = [said("system", "Answer support requests."), said("user", "Where is order 4821?")]
    assert [_bare(message) for message in messages(one, first.input)] == context
    looked, failed = run.tool_calls()
    assert (looked.name, looked.arguments) == ("lookupOrder", {"orderId": "4821"})
    assert looked.result == {"status": "shipped", "token": "[REDACTED]", "args": {"orderId": "4821", "region": "eu"}}
    assert (failed.name, failed.status, failed.error and failed.error.message) == ("failTool", Status.ERROR, "boom")
    assert [part["type"] for part in messages(one, first.output)[0]["parts"]] == ["tool_call", "tool_call"]
    assert [message["role"] for message in messages(one, last.input)] == ["system", "user", "assistant", "tool"]
    answers = [part["response"] for part in messages(one, last.input)[-1]["parts"]]
    assert answers == [looked.result, "boom"]
    thought, spoken = messages(one, last.output)[0]["parts"]
    assert (thought["type"], spoken["content"]) == ("reasoning", "Order 4821 is shipped.")
    usage = one.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.reasoning_tokens) == (24, 14, 8, 4)
    assert first.settings["temperature"] == 0.2
    assert (looked.fidelity["result"], failed.fidelity["arguments"]) == (Fidelity.REDACTED, Fidelity.REDACTED)
    assert not one.replay.eligible
    assert any("redacted" in reason.reason for reason in one.replay.reasons)


def _bare(message: dict[str, Any]) -> dict[str, Any]:
    parts = [{key: part[key] for key in ("type", "content") if key in part} for part in message["parts"]]
    return {"role": message["role"], "parts": parts}


# -- the exporter's spans --------------------------------------------------------------------------------------------


def one_round() -> list[Span]:
    """An agent that orders soup: the first context on the generation, answers on steps, numbers on inferences."""
    rendered = [*CONTEXT, {"role": "assistant", "content": "[tool: order]"}]
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.provider.name": "openai.chat"}
    counted = {**chat, "gen_ai.usage.input_tokens": 10, "gen_ai.response.finish_reasons": '["tool-calls"]'}
    return [
        mastra(1, "agent_run", {"gen_ai.agent.name": "Waiter", "gen_ai.tool.definitions": '["order"]'}),
        mastra(2, "model_generation", given("model_generation", {"messages": CONTEXT}), 1),
        mastra(3, "model_step", given("model_step", CONTEXT, ASKED), 2, seconds=5),
        mastra(4, "model_inference", counted, 3),
        mastra(
            5,
            "tool_call",
            {
                "gen_ai.tool.name": "order",
                "gen_ai.tool.description": "Order a dish.",
                "gen_ai.tool.call.arguments": '{"dish": "soup"}',
                "gen_ai.tool.call.result": "served",
            },
            3,
        ),
        mastra(6, "model_step", given("model_step", rendered, {"text": "Here.", "toolCalls": []}), 2),
        mastra(7, "model_inference", {**chat, "gen_ai.usage.input_tokens": 20}, 6),
    ]


def test_a_model_call_is_read_from_all_its_spans_and_counted_once() -> None:
    one = session(*one_round(), scope=SCOPE)
    first, last = only_run(one).model_calls()
    assert messages(one, first.input) == [said("system", "Serve."), said("user", "Soup!")]
    assert messages(one, first.output)[0]["parts"] == [ORDER]
    assert (first.finish_reasons, first.provider, one.usage.input_tokens) == (["tool-calls"], "openai", 30)
    assert messages(one, last.input)[2:] == [{"role": "assistant", "parts": [ORDER]}, told("call_1", "served")]
    assert last.fidelity["input"] is Fidelity.RECONSTRUCTED
    assert one.tools[0]["description"] == "Order a dish."
    (order,) = only_run(one).tool_calls()
    assert (order.call_id, order.requested) == ("call_1", {"dish": "soup"})


def test_a_call_that_ended_by_an_error_failed_though_its_span_tells_of_none() -> None:
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.response.finish_reasons": '["error"]'}
    one = session(
        mastra(1, "agent_run", {"gen_ai.agent.name": "Waiter"}, status={"code": 2, "message": "no soup"}),
        mastra(2, "model_generation", given("model_generation", {"messages": CONTEXT}), 1),
        mastra(3, "model_step", given("model_step", CONTEXT, {"text": "", "toolCalls": []}), 2),
        mastra(4, "model_inference", chat, 3),
        scope=SCOPE,
    )
    (call,) = only_run(one).model_calls()
    assert (call.status, call.output) == (Status.ERROR, [])


def test_a_tool_whose_name_is_no_text_costs_the_others_nothing() -> None:
    spans = one_round()
    odd = mastra(8, "tool_call", {"gen_ai.tool.name": ["order"], "gen_ai.tool.description": "Odd."}, 3)
    converted = session(*spans, odd, scope=SCOPE)
    assert converted.tools[0]["description"] == "Order a dish."
    assert [call.name for call in only_run(converted).tool_calls()][:1] == ["order"]


def test_where_only_a_generation_counts_its_last_call_has_the_tokens() -> None:
    old = {"gen_ai.operation.name": "chat", "gen_ai.system": "openai.chat", "gen_ai.usage.input_tokens": 30}
    one = session(
        mastra(
            1, "agent_run", {"input": "Soup!", "output": '{"text": "Here."}', "threadId": "desk-7", "userId": "u-1"}
        ),
        mastra(2, "model_generation", {**old, "input": json.dumps({"messages": CONTEXT})}, 1, seconds=9),
        mastra(3, "model_step", {"output": json.dumps(ASKED), "id": "resp_1"}, 2, seconds=2),
        mastra(
            4,
            "tool_call",
            {"gen_ai.tool.name": "order", "gen_ai.tool.input": '{"dish": "soup"}', "output": "served"},
            3,
        ),
        mastra(6, "model_step", {"output": '{"text": "Here."}'}, 2),
        scope="@mastra/otel",
    )
    first, last = only_run(one).model_calls()
    assert (one.key.value, one.user_id) == ("desk-7", "u-1")
    assert (first.usage, first.response_id) == (None, "resp_1")
    assert last.usage is not None
    assert (last.usage.input_tokens, last.fidelity["usage"]) == (30, Fidelity.RECONSTRUCTED)
    (order,) = only_run(one).tool_calls()
    assert (order.arguments, order.result) == ({"dish": "soup"}, "served")
    assert messages(one, last.input)[-1] == told("call_1", "served")


def test_an_agent_as_a_tool_and_a_servers_tool_are_of_their_kinds() -> None:
    one = session(
        mastra(1, "agent_run", {"gen_ai.agent.name": "Waiter"}),
        mastra(2, "tool_call", {"gen_ai.tool.name": "agent-cook"}, 1, seconds=3),
        mastra(3, "agent_run", {"gen_ai.agent.name": "Cook"}, 2),
        mastra(6, "mcp_tool_call", {"gen_ai.tool.name": "stock"}, 1),
        scope=SCOPE,
    )
    cook, stock = one.runs[0].tool_calls()
    assert (cook.kind, cook.run, stock.kind) == (ToolKind.AGENT, one.runs[1].id, ToolKind.MCP)


def test_a_workflow_is_a_run_without_an_agents_name() -> None:
    attributes = given("workflow_run", {"dish": "soup"}, {"served": True})
    run = only_run(session(mastra(1, "workflow_run", attributes), scope=SCOPE))
    assert (run.agent.name, run.result) == (None, {"served": True})
    assert run.entrypoint is not None
    assert run.entrypoint.arguments == {"dish": "soup"}


@pytest.mark.parametrize(
    ("result", "state"),
    [
        ({"key": "[REDACTED]"}, Fidelity.REDACTED),
        ({"deep": {"deeper": "[MaxDepth]"}}, Fidelity.TRUNCATED),
        ({"items": [1, "[…3 more items]"]}, Fidelity.TRUNCATED),
        ({"__truncated": "2 more keys omitted"}, Fidelity.TRUNCATED),
        ("long…[truncated]", Fidelity.TRUNCATED),
        ({"ids": ["1", "-12n"]}, Fidelity.TRUNCATED),
        ({"ids": ["12 n", "n", "an"]}, None),
        ({"served": True}, None),
    ],
)
def test_marks_of_loss_inside_values_are_losses(result: Any, state: Fidelity | None) -> None:
    attributes = {
        "gen_ai.tool.name": "order",
        "gen_ai.tool.call.arguments": "{}",
        "gen_ai.tool.call.result": json.dumps(result),
    }
    (call,) = only_run(session(mastra(1, "tool_call", attributes), scope=SCOPE)).tool_calls()
    assert call.fidelity.get("result") is state


# -- getTrace --------------------------------------------------------------------------------------------------------


def test_one_trace_or_a_list_of_them_is_read_and_twice_the_same_is_the_same() -> None:
    one = trace(record(1, "agent_run", entityName="Waiter", input="Soup!", output={"text": "Here."}))
    two = trace(record(1, "agent_run", entityName="Waiter"), trace_id="t2")
    assert len(imported([one, two]).sessions) == 2
    assert imported(one, one).sessions == imported(one).sessions


def test_traces_of_one_thread_are_runs_of_one_session() -> None:
    first, second = (trace(record(1, "agent_run", threadId="desk-7"), trace_id=f"t{n}") for n in (1, 2))
    (grown,) = imported(first, second).sessions
    assert (grown.key.kind, grown.key.value, len(grown.roots())) == ("conversation", "desk-7", 2)


def test_what_still_runs_is_unfinished_and_an_event_is_not() -> None:
    running = record(1, "agent_run")
    running["endedAt"] = None
    (one,) = imported(trace(running, record(2, "model_chunk", 1, isEvent=True, endedAt=None))).sessions
    assert one.status is Status.UNFINISHED


def test_a_span_that_cannot_be_read_costs_only_itself() -> None:
    broken = {**record(2, "tool_call", 1, entityId="order"), "startedAt": "2026-11-29T10:00:00"}
    conversion = imported(trace(record(1, "agent_run"), broken, {"spanType": "tool_call"}))
    assert len(conversion.sessions) == 1
    assert ["without its zone" in fault.reason or "without spanId" in fault.reason for fault in conversion.faults] == [
        True
    ] * 2


def test_what_is_no_trace_or_no_span_of_mastras_costs_only_itself() -> None:
    good = trace(record(1, "agent_run"))
    broken: list[Any] = [None, {"traceId": "x", "spans": None}, {"spans": []}]
    spans = {**good, "spans": [None, *good["spans"], {"spanId": "b"}]}
    batch = read_line(json.dumps([*broken, spans]).encode(), "x")
    assert len(batch.spans) == 1
    places = ["trace 0", "trace 1", "trace 2", "trace 3, span 0", "trace 3, span 2"]
    assert [fault.place for fault in batch.faults] == [f"x ({place})" for place in places]


def test_spans_of_mastras_alone_are_put_into_their_traces() -> None:
    records = [{**record(1, "agent_run"), "traceId": identity} for identity in ("t1", "t2")]
    batch = read_line(json.dumps(records).encode(), "x")
    assert ([one.trace_id for one in batch.spans], batch.faults) == (["t1", "t2"], ())


def steps() -> list[dict[str, Any]]:
    """A run of one model call and a tool, of which the generation counts what the call inside it counts too."""
    usage = {"usage": {"inputTokens": 5, "outputTokens": 2}}
    told = {"responseModel": "canned-2", "responseId": "resp_1"}
    asked = {"text": "", "toolCalls": [{"toolCallId": "call_1", "toolName": "order", "args": {}}]}
    until: dict[str, Any] = {"endedAt": "2026-11-29T10:00:09.000Z"}
    return [
        record(1, "agent_run", entityName="Waiter", input="Soup!", output={"text": "Here."}, **until),
        record(
            2,
            "model_generation",
            1,
            input={"messages": CONTEXT},
            attributes={"model": "canned", "streaming": True, **told, **usage},
            **until,
        ),
        record(3, "model_step", 2, output=asked),
        record(
            4, "model_inference", 3, output=asked, attributes={"model": "canned", "availableTools": ["order"], **usage}
        ),
        record(5, "tool_call", 3, entityId="order", input={}, output=1),
    ]


@pytest.mark.parametrize("lost", [[], ["s3"]])
def test_calls_whose_step_never_came_stand_in_their_generation_and_are_counted_once(lost: list[str]) -> None:
    (one,) = imported(trace(*(span for span in steps() if span["spanId"] not in lost))).sessions
    run = only_run(one)
    (call,) = run.model_calls()
    assert call.usage is not None
    assert (call.usage.input_tokens, call.usage.output_tokens) == (5, 2)
    assert [tool.call_id for tool in run.tool_calls()] == ["call_1"]


def test_what_a_generation_alone_says_of_its_answer_is_its_last_calls() -> None:
    (call,) = only_run(imported(trace(*steps())).sessions[0]).model_calls()
    assert (call.model, call.response_model, call.response_id) == ("canned", "canned-2", "resp_1")


def test_the_report_does_not_name_what_a_call_was_gathered_from() -> None:
    account = Account()
    for one in read_line(json.dumps(trace(*steps())).encode(), "x").spans:
        account.add_span(one)
    assert [name for _, name, _ in account.unread()] == []


def test_stacks_of_errors_stay_out() -> None:
    error = {"message": "boom", "name": "TypeError", "stack": "at /home/somebody/app.mjs"}
    (one,) = imported(trace(record(1, "agent_run"), record(2, "tool_call", 1, entityId="order", error=error))).sessions
    (call,) = only_run(one).tool_calls()
    assert call.error is not None
    assert (call.error.type, call.error.message) == ("TypeError", "boom")
    assert "somebody" not in one.model_dump_json()


# -- spans as the SDK for JavaScript holds them ----------------------------------------------------------------------


def test_dumped_spans_have_times_ids_and_kinds_where_they_are_said(tmp_path: Path) -> None:
    spans = [
        {
            "name": "invoke_agent waiter",
            "kind": 0,
            "spanContext": {"traceId": "A" * 32, "spanId": "B" * 16},
            "startTime": [1795000000, 5],
            "endTime": [1795000001, 0],
            "status": {"code": 2, "message": "no"},
            "attributes": {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "waiter"},
            "resource": {"attributes": {"service.name": "inn"}},
            "instrumentationScope": {"name": "demo"},
        }
    ]
    file = tmp_path / "spans.json"
    file.write_text(json.dumps(spans, indent=1), encoding="utf-8")
    (one,) = convert_files([str(file)]).sessions
    run: Run = only_run(one)
    assert (run.trace_id, run.id, run.started_at) == ("a" * 32, "b" * 16, "2026-11-18T11:06:40.000000005Z")
    assert (run.status, one.source["service_name"], one.source["scopes"]) == (Status.ERROR, "inn", ["demo"])


def test_dumped_spans_without_traces_are_one_for_each_tree() -> None:
    def dumped(identity: str, parent: str | None) -> dict[str, Any]:
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": identity}
        return {"name": identity, "spanId": identity, "parent": parent, "attributes": attributes}

    found = imported([dumped("b", "a"), dumped("a", None), dumped("c", None)]).sessions
    assert sorted(len(one.runs) for one in found) == [1, 2]
    assert all(run.status is Status.OK and run.ended_at is None for one in found for run in one.runs)


def test_before_1_0_a_model_calls_failure_is_told_by_a_chunk_alone() -> None:
    """Its span and those around it end as if all were well, and the agent's never comes."""
    refused = {"type": "error", "error": {"name": "AI_APICallError", "message": "Rate limit reached"}}
    spans = [
        mastra(2, "model_generation", {"input": json.dumps({"messages": CONTEXT}), "output": '{"text": ""}'}, 1),
        mastra(3, "model_step", {"input": "{}", "output": '{"text": "", "toolCalls": []}'}, 2),
        mastra(4, "model_chunk", {"output": json.dumps(refused)}, 3),
    ]
    run = only_run(session(*spans, scope="@mastra/otel"))
    (call,) = run.model_calls()
    assert call.error is not None
    assert (call.error.type, call.error.message) == ("AI_APICallError", "Rate limit reached")
    assert run.status is Status.ERROR


def test_before_1_0_the_end_of_a_generation_is_its_last_calls() -> None:
    ended = {"gen_ai.response.finish_reasons": "stop", "input": json.dumps({"messages": CONTEXT})}
    spans = [
        mastra(1, "model_generation", ended),
        mastra(2, "model_step", {"output": json.dumps(ASKED)}, 1),
        mastra(3, "model_step", {"output": '{"text": "Here."}'}, 1),
    ]
    reasons = [call.finish_reasons for call in only_run(session(*spans, scope="@mastra/otel")).model_calls()]
    assert reasons == [[], ["stop"]]


# -- releases between 1.0 and 1.4x -----------------------------------------------------------------------------------


def on_the_wire(number: int, asked: list[dict[str, Any]], reply: dict[str, Any], *, stream: bool = False) -> Span:
    """A step as it was before: what the provider was sent for its input, and what came for its metadata."""
    schema = {"dish": "string (required)"}  # as Mastra shortens one
    tool = {"type": "function", "function": {"name": "order", "description": "Order.", "parameters": schema}}
    body = {"model": "m", "temperature": 0.5, "tool_choice": "auto", "messages": asked, "tools": [tool]}
    usage = {"prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 8}}
    choice = {"index": 0, "message": {"role": "assistant", **reply}, "finish_reason": "stop"}
    response = {"id": f"r{number}", "model": "m-2", "object": "chat.completion", "choices": [choice], "usage": usage}
    kind = "text/event-stream" if stream else "application/json"
    return mastra(
        number,
        "model_step",
        {
            **given("model_step", {"body": body}, {"text": reply.get("content") or "", "toolCalls": []}),
            "mastra.metadata.headers": json.dumps({"Content-Type": kind}),
            **({} if stream else {"mastra.metadata.body": json.dumps(response)}),
        },
        2,
        seconds=number,
    )


CHATS = [{"role": "system", "content": "Serve."}, {"role": "user", "content": "Soup!"}]
MADE_OF_ALL = {
    "gen_ai.operation.name": "chat",
    "gen_ai.usage.input_tokens": 20,
    "gen_ai.usage.output_tokens": 8,
    "gen_ai.response.finish_reasons": '["stop"]',
}


def test_steps_that_tell_what_was_sent_and_what_came_have_their_own_requests_and_counts() -> None:
    again = [*CHATS, {"role": "assistant", "content": "Soon."}, {"role": "user", "content": "Now!"}]
    one = session(
        mastra(1, "agent_run", {"gen_ai.agent.name": "Waiter"}),
        mastra(2, "model_generation", MADE_OF_ALL, 1, seconds=9),
        on_the_wire(3, CHATS, {"content": "Soon."}),
        on_the_wire(4, again, {"content": "Here."}),
        scope=SCOPE,
    )
    first, second = only_run(one).model_calls()
    assert [message["role"] for message in messages(one, first.input)] == ["system", "user"]
    assert messages(one, second.input)[-1] == said("user", "Now!")
    for call, identity in ((first, "r3"), (second, "r4")):
        assert (call.response_id, call.response_model, call.finish_reasons) == (identity, "m-2", ["stop"])
        assert call.usage is not None
        assert (call.usage.input_tokens, call.usage.cache_read_tokens, call.streamed) == (10, 8, False)
        assert (call.settings["temperature"], call.settings["tool_choice"]) == (0.5, "auto")
        assert call.fidelity["tools"] is Fidelity.TRUNCATED
    assert [(tool["name"], tool["description"], "parameters" in tool) for tool in one.tools] == [
        ("order", "Order.", False)
    ]
    assert (one.usage.input_tokens, one.usage.output_tokens) == (20, 8)


def test_steps_that_streamed_say_so_and_their_tokens_are_counted_once() -> None:
    one = session(
        mastra(1, "agent_run", {"gen_ai.agent.name": "Waiter"}),
        mastra(2, "model_generation", MADE_OF_ALL, 1, seconds=9),
        on_the_wire(3, CHATS, {"content": "Soon."}, stream=True),
        on_the_wire(4, CHATS, {"content": "Here."}, stream=True),
        scope=SCOPE,
    )
    calls = list(only_run(one).model_calls())
    assert [call.streamed for call in calls] == [True, True]
    assert [call.usage and call.usage.input_tokens for call in calls] == [None, 20]


def test_bodies_that_were_cut_where_they_went_deep_give_way_to_the_context_beside_them() -> None:
    deep: list[dict[str, Any]] = [CHATS[0], {"role": "user", "content": [{"type": "text", "text": "[MaxDepth]"}]}]
    one = session(
        mastra(1, "agent_run", {"gen_ai.agent.name": "Waiter"}),
        mastra(2, "model_generation", given("model_generation", {"messages": CONTEXT}), 1, seconds=9),
        on_the_wire(3, deep, {"content": "Here."}),
        scope=SCOPE,
    )
    (call,) = only_run(one).model_calls()
    assert messages(one, call.input) == [said("system", "Serve."), said("user", "Soup!")]


def test_a_context_in_parts_of_the_conventions_and_of_the_sdk_is_read_in_both() -> None:
    """The exporter turns texts and tools' messages into the conventions' parts, their values JSON; not images."""
    image = {"type": "file", "mediaType": "image/png", "data": "AQID"}
    context = [
        {"role": "user", "content": [{"type": "text", "text": "This?"}, image]},
        {"role": "assistant", "parts": [{**ORDER, "arguments": '{"dish": "soup"}'}]},
        {"role": "tool", "parts": [{**told("call_1", '"served"')["parts"][0], "name": "order"}]},
    ]
    rendered = [{"role": "user", "content": "This?[file]"}]
    one = session(
        mastra(1, "agent_run", {"gen_ai.agent.name": "Waiter"}),
        mastra(2, "model_generation", {**MADE_OF_ALL, "gen_ai.input.messages": json.dumps(context)}, 1, seconds=9),
        mastra(3, "model_step", given("model_step", rendered, {"text": "Yes."}), 2),
        scope=SCOPE,
    )
    (call,) = only_run(one).model_calls()
    user, assistant, tool = messages(one, call.input)
    assert [part["type"] for part in user["parts"]] == ["text", "blob"]
    assert (assistant["parts"][0]["arguments"], tool["parts"][0]["response"]) == ({"dish": "soup"}, "served")


def test_what_was_aborted_is_cancelled_and_a_call_that_told_nothing_never_finished() -> None:
    aborted = given("agent_run", "Soup!", {"status": "aborted", "reason": "abort"})
    ended = {"gen_ai.response.finish_reasons": '["aborted"]', "gen_ai.operation.name": "chat"}
    for attributes, status in ((ended, Status.CANCELLED), ({"gen_ai.operation.name": "chat"}, Status.UNFINISHED)):
        one = session(mastra(1, "agent_run", aborted), mastra(2, "model_generation", attributes, 1), scope=SCOPE)
        run = only_run(one)
        (call,) = run.model_calls()
        assert (run.status, call.status) == (Status.CANCELLED, status)
