"""Traces with damage: delivered twice, seen twice, cut off, going round in circles."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conftest import cases
from otlp_lines import (
    BEGAN,
    GENAI,
    SECOND,
    agent,
    asks,
    called,
    chat,
    converted,
    model,
    only_run,
    ours,
    request,
    said,
    session,
    sessions,
    span,
    span_id,
    tool,
)
from spanreel import conventions as names
from spanreel.model import Agent, Answer, Error, ErrorCategory, Fidelity, Operation, Request, Status, Usage
from spanreel.records import RunRecord, ToolRecord, TurnRecord
from spanreel.session import Run
from spanreel_collector.conversion.convert import convert_files

HI = [said("user", "Hi")]
HO = said("assistant", "Ho")
TOKENS = {names.USAGE_INPUT_TOKENS: 10, names.USAGE_OUTPUT_TOKENS: 2}


def run_record(number: int, **rest: object) -> RunRecord:
    record = RunRecord(run_id=span_id(number), path="root", agent=Agent("care"), input=tuple(HI), argv=("app.py",))
    return replace(record, **rest)  # type: ignore[arg-type]


def calls(run: Run) -> list[str]:
    return [call.id for call in run.model_calls()]


# -- delivered twice -------------------------------------------------------------------------------------------------


def test_a_span_delivered_twice_is_one_and_the_later_version_wins() -> None:
    (one,) = convert_files([str(cases("reports/028-resend.jsonl"))]).sessions
    (call,) = only_run(one).model_calls()
    assert (one.usage.input_tokens, one.usage.output_tokens) == (12, 5)
    assert (call.status, call.error.type if call.error else None) == (Status.ERROR, "timeout")


def test_of_two_versions_the_one_that_ended_wins_whatever_their_order() -> None:
    ended = chat(1, HI, HO)
    started = chat(1, HI, None, endTimeUnixNano="0")
    for order in ((ended, started), (started, ended)):
        (call,) = only_run(session(*order, scope=GENAI)).model_calls()
        assert (call.status, len(call.output)) == (Status.OK, 1)


# -- seen twice ------------------------------------------------------------------------------------------------------


def test_an_sdks_own_span_inside_an_instrumentations_is_the_same_call() -> None:
    one = session(
        chat(1, HI, HO, also={names.RESPONSE_ID: "r1", **TOKENS}),
        span(2, "POST", {"http.request.method": "POST"}, 1),
        chat(3, None, None, 2, also={names.RESPONSE_ID: "r1", names.REQUEST_MAX_TOKENS: 5, **TOKENS}),
        scope=GENAI,
    )
    (call,) = only_run(one).model_calls()
    assert (call.id, call.settings, one.usage.input_tokens) == (span_id(1), {"max_tokens": 5}, 10)


def test_the_fuller_view_stays_and_what_hung_on_the_other_hangs_on_it() -> None:
    one = session(
        agent(1, "demo", seconds=9),
        chat(2, None, None, 1, also={names.RESPONSE_ID: "r1", **TOKENS}, seconds=5),
        chat(3, HI, asks(called("f", {})), 2),
        tool(4, "f", {}, "ok", 2),
        scope=GENAI,
    )
    run = only_run(one)
    (call,) = run.model_calls()
    assert (call.id, call.response_id, call.usage.input_tokens if call.usage else None) == (span_id(3), "r1", 10)
    assert [tool_call.name for tool_call in run.turns[0].tool_calls] == ["f"]


def test_two_calls_with_different_response_ids_stay_two_though_nested() -> None:
    one = session(
        chat(1, HI, HO, also={names.RESPONSE_ID: "r1"}, seconds=5),
        chat(2, None, None, 1, also={names.RESPONSE_ID: "r2"}),
        scope=GENAI,
    )
    assert calls(only_run(one)) == [span_id(1), span_id(2)]


def test_our_second_view_of_a_call_takes_the_place_of_the_first() -> None:
    theirs = request(chat(1, HI, HO, also={names.CONVERSATION_ID: "c", **TOKENS}, seconds=5), scope=GENAI)
    mine = request(ours(2, model(HI, HO, call_id="x"), 1, also={names.SECOND_VIEW: GENAI}))
    (one,) = converted(theirs, mine).sessions
    (call,) = only_run(one).model_calls()
    assert (call.id, call.protocol, one.usage.input_tokens) == ("x", "openai_chat", 10)
    assert one.key.value == "c"


def test_our_attempts_inside_one_span_of_theirs_are_one_call() -> None:
    error = Error(ErrorCategory.MODEL, "rate_limit", "slow down")
    failed = model(HI, None, call_id="x", failed=Answer(status=429, error=error))
    theirs = request(chat(1, HI, HO, seconds=9), scope=GENAI)
    mine = request(
        ours(2, failed, 1, also={names.SECOND_VIEW: GENAI}),
        ours(3, model(HI, HO, call_id="x", attempt=1), 1, also={names.SECOND_VIEW: GENAI}),
    )
    (one,) = converted(theirs, mine).sessions
    (call,) = only_run(one).model_calls()
    assert (call.id, [attempt.status for attempt in call.attempts]) == ("x", [429, 200])


def test_a_tools_span_inside_its_own_is_the_same_call_and_says_what_the_other_lacks() -> None:
    outer = span(2, "execute_tool f", {names.OPERATION: "execute_tool", names.TOOL_NAME: "f"}, 1, seconds=3)
    one = session(agent(1, "demo", seconds=9), outer, tool(3, "f", {"a": 1}, "ok", 2), scope=GENAI)
    (call,) = only_run(one).tool_calls()
    assert (call.id, call.arguments, call.result, call.fidelity) == (span_id(2), {"a": 1}, "ok", {})


# -- attempts --------------------------------------------------------------------------------------------------------


def test_three_attempts_are_one_turn_one_model_call_and_three_attempts() -> None:
    def failed(status: int, attempt: int) -> object:
        answer = Answer(status=status, error=Error(ErrorCategory.MODEL, str(status), "no"))
        return replace(
            model(HI, None, run=1, turn=0, call_id=span_id(3), attempt=attempt, failed=answer),
            headers={"retry-after": "1"},
        )

    one = session(
        ours(1, run_record(1), seconds=9),
        ours(2, TurnRecord(span_id(1), 0), 1, seconds=8),
        ours(3, failed(429, 0), 2),  # type: ignore[arg-type]
        ours(4, failed(500, 1), 2),  # type: ignore[arg-type]
        ours(5, model(HI, HO, run=1, turn=0, call_id=span_id(3), attempt=2), 2),
    )
    run = only_run(one)
    (turn,) = run.turns
    call = turn.model_call
    assert call is not None
    assert [(a.status, a.error.type if a.error else None, a.headers) for a in call.attempts] == [
        (429, "429", {"retry-after": "1"}),
        (500, "500", {"retry-after": "1"}),
        (200, None, {}),
    ]
    assert (call.id, call.status, call.error, call.http_status) == (span_id(3), Status.OK, None, 200)
    assert (call.started_at, call.ended_at) == ("2026-11-18T11:06:43.000000000Z", "2026-11-18T11:06:45.500000000Z")
    assert (one.usage.input_tokens, one.usage.output_tokens) == (10, 2)


def test_attempts_that_all_failed_are_a_failed_call() -> None:
    error = Error(ErrorCategory.MODEL, "openai.RateLimitError", "slow down")
    attempts = [ours(n, model(HI, None, call_id="x", attempt=n, status=Status.ERROR, error=error)) for n in (1, 2)]
    (call,) = only_run(session(*attempts)).model_calls()
    assert (call.status, len(call.attempts)) == (Status.ERROR, 2)
    assert call.error is not None
    assert (call.error.category, call.error.type) == ("model", "openai.RateLimitError")


# -- killed in the middle --------------------------------------------------------------------------------------------


def killed() -> list[dict[str, object]]:
    """What a killed process left: the run's start, and calls whose turn and run never ended."""
    return [
        ours(9, run_record(1, started_only=True), 1, start=1, seconds=0, also={names.CONVERSATION_ID: "c"}),
        ours(3, model(HI, asks(called("f", {}, "k")), run=1, turn=0, call_id=span_id(3)), 2),
        ours(4, ToolRecord("f", {}, "ok", "k", run_id=span_id(1), turn_index=0), 2),
    ]


def test_a_killed_run_is_unfinished_and_holds_everything_up_to_there() -> None:
    one = session(*killed())
    run = only_run(one)
    assert (one.status, one.key.value, one.replay.eligible) == (Status.UNFINISHED, "c", False)
    assert (run.id, run.path, run.status, run.agent.name) == (span_id(1), "root", Status.UNFINISHED, "care")
    assert run.entrypoint is not None
    assert run.entrypoint.argv == ["app.py"]
    assert [one.messages[index].parts for index in run.input] == [HI[0]["parts"]]
    assert run.ended_at is None
    (turn,) = run.turns
    assert turn.model_call is not None
    assert [(call.name, call.result) for call in turn.tool_calls] == [("f", "ok")]


def test_when_the_end_arrives_after_all_the_start_is_not_a_second_run() -> None:
    end = ours(1, RunRecord(run_id=span_id(1), path="root", agent=Agent("care"), output=(HO,)), seconds=9)
    run = only_run(session(*killed(), end, ours(2, TurnRecord(span_id(1), 0), 1)))
    assert (run.status, len(run.turns), len(run.output)) == (Status.OK, 1, 1)
    assert len(run.input) == 1


def test_calls_whose_run_left_nothing_at_all_make_an_unfinished_run() -> None:
    run = only_run(session(*killed()[1:]))
    assert (run.id, run.status, run.implicit, len(run.turns)) == (span_id(1), Status.UNFINISHED, False, 1)


def test_a_killed_run_inside_another_hangs_under_the_run_that_its_path_names() -> None:
    inner = run_record(5, path="root/researcher#0", agent=Agent("researcher"), started_only=True)
    one = session(*killed(), ours(8, inner, 5, seconds=0), ours(6, model(HI, HO, run=5, turn=0), 7))
    outer, researcher = one.runs
    assert researcher.parent is not None
    assert (researcher.parent.run, researcher.path, calls(researcher)) == (outer.id, "root/researcher#0", [span_id(6)])


def test_a_model_call_that_was_open_is_unfinished() -> None:
    (call,) = only_run(session(chat(1, HI, None, endTimeUnixNano="0"), scope=GENAI)).model_calls()
    assert (call.status, call.ended_at) == (Status.UNFINISHED, None)


# -- wrappings and order ---------------------------------------------------------------------------------------------


def test_a_workflow_around_one_agent_is_not_a_request_of_its_own() -> None:
    workflow = span(1, "invoke_workflow w", {names.OPERATION: "invoke_workflow", names.CONVERSATION_ID: "c"}, seconds=9)
    one = session(workflow, agent(2, "demo", 1, seconds=8), chat(3, HI, HO, 2), scope=GENAI)
    run = only_run(one)
    assert (run.agent.name, run.parent, one.key.value) == ("demo", None, "c")


def test_a_wrapping_gives_the_run_inside_what_only_it_says() -> None:
    content = {names.INPUT_MESSAGES: HI, names.OUTPUT_MESSAGES: [HO]}
    nameless = agent(1, None, also={**content, names.CONVERSATION_ID: "c", names.ERROR_TYPE: "ValueError"}, seconds=9)
    workflow = span(2, "invoke_workflow w", {names.OPERATION: "invoke_workflow"}, 1, seconds=9)
    one = session(nameless, workflow, agent(3, "demo", 2, seconds=8), tool(4, "f", {}, "x", 3), scope=GENAI)
    run = only_run(one)
    assert (run.id, run.agent.name, run.status) == (span_id(3), "demo", Status.ERROR)
    assert ([one.messages[i].role for i in (*run.input, *run.output)], run.fidelity) == (["user", "assistant"], {})


def test_each_view_of_a_call_gives_what_the_other_lacks() -> None:
    usage = {names.USAGE_INPUT_TOKENS: 10}
    one = session(
        chat(1, HI, None, also={names.RESPONSE_ID: "r", **usage}, seconds=9),
        chat(2, None, HO, 1, also={names.RESPONSE_ID: "r", names.USAGE_OUTPUT_TOKENS: 2, names.PROVIDER: "openai"}),
        scope=GENAI,
    )
    (call,) = only_run(one).model_calls()
    assert call.usage is not None
    assert (call.provider, call.usage.input_tokens, call.usage.output_tokens) == ("openai", 10, 2)
    assert ([one.messages[i].role for i in (*call.input, *call.output)], call.fidelity) == (["user", "assistant"], {})
    inner_only = session(
        chat(1, None, None, also={names.RESPONSE_ID: "r"}, seconds=9),
        chat(2, HI, None, 1, status={"code": 2}),
        scope=GENAI,
    )
    (call,) = only_run(inner_only).model_calls()
    assert (call.id, call.response_id, len(call.input)) == (span_id(2), "r", 1)


def test_a_workflow_around_several_agents_is_one_request_with_runs_inside() -> None:
    workflow = span(1, "invoke_workflow w", {names.OPERATION: "invoke_workflow"}, seconds=9)
    spans = [agent(2, "a", 1), chat(3, HI, HO, 2), agent(4, "b", 1), chat(5, HI, HO, 4)]
    one = session(workflow, *spans, scope=GENAI)
    assert [run.path for run in one.runs] == ["root", "root/a#0", "root/b#0"]


def test_calls_are_ordered_by_turn_else_by_start_else_by_arrival() -> None:
    def order(*written: dict[str, object]) -> tuple[list[str], str]:
        run = only_run(session(agent(1, "demo", seconds=99), *written, scope=GENAI))
        return calls(run), run.order

    assert order(chat(4, HI, HO, 1), chat(3, HI, HO, 1)) == ([span_id(3), span_id(4)], "start")
    timeless = [chat(number, HI, HO, 1, startTimeUnixNano="0") for number in (4, 3)]
    assert order(*timeless) == ([span_id(4), span_id(3)], "arrival")
    turns = [ours(number, model(HI, HO, run=1, turn=turn), 1) for number, turn in ((3, 1), (4, 0))]
    run = only_run(session(ours(1, run_record(1)), *turns))
    assert (calls(run), run.order) == ([span_id(4), span_id(3)], "cause")


def test_children_may_start_before_their_parents_by_the_clock() -> None:
    run = only_run(session(agent(5, "demo"), chat(1, HI, HO, 5), scope=GENAI))
    assert (run.started_at or "") > (next(run.model_calls()).started_at or "")


def test_parents_that_go_round_in_a_circle_are_cut() -> None:
    found = sessions(agent(1, "a", 2), agent(2, "b", 3), agent(3, "c", 1), chat(4, HI, HO, 4), scope=GENAI)
    assert sorted(run.agent.name or "" for one in found for run in one.runs) == ["", "a", "b", "c"]


def test_a_call_made_again_inside_itself_leaves_no_circle() -> None:
    failed = chat(1, HI, None, status={"code": 2}, start=1, seconds=1)
    again = chat(3, HI, HO, 2, start=5)
    conversion = converted(request(failed, span(2, "again", {}, 1, start=4), again, scope=GENAI))
    assert conversion.faults == ()
    assert [call for one in conversion.sessions for run in one.runs for call in calls(run)]


def test_a_span_around_several_calls_that_says_what_the_last_one_said_is_none_of_them() -> None:
    """LiteLLM writes each call over the one before, on whichever span is open."""
    one = session(
        chat(1, HI, HO, also={names.RESPONSE_ID: "r2", **TOKENS}, seconds=9),
        chat(2, HI, asks(called("f", {}, "a")), 1, also={names.RESPONSE_ID: "r1", **TOKENS}),
        tool(3, "f", {}, "x", 1, also={names.TOOL_CALL_ID: "a"}),
        chat(4, HI, HO, 1, also={names.RESPONSE_ID: "r2", **TOKENS}),
        scope=GENAI,
    )
    run = only_run(one)
    assert calls(run) == [span_id(2), span_id(4)]
    assert [call.name for call in run.turns[0].tool_calls] == ["f"]
    assert one.usage.input_tokens == 20


def test_tools_inside_a_call_that_asks_for_none_tell_of_the_call_that_did() -> None:
    """google-genai goes on by itself: one span, with what the last of its requests came to."""
    one = session(
        chat(1, HI, HO, seconds=9, also=TOKENS),
        tool(2, "f", {"a": 1}, "x", 1),
        tool(3, "g", {}, "y", 1),
        scope=GENAI,
    )
    run = only_run(one)
    first, last = run.model_calls()
    assert [part["name"] for part in one.messages[first.output[0]].parts] == ["f", "g"]
    assert first.fidelity == {"output": Fidelity.RECONSTRUCTED, "usage": Fidelity.ABSENT}
    assert [one.messages[ref].role for ref in last.input] == ["user", "assistant", "tool"]
    assert [[call.name for call in turn.tool_calls] for turn in run.turns] == [["f", "g"], []]
    assert one.usage.input_tokens == 10


def test_a_run_that_offers_tools_and_left_no_call_has_those_that_its_tools_tell_of() -> None:
    definitions = {names.TOOL_DEFINITIONS: [{"type": "function", "name": "f"}]}
    ends = {names.INPUT_MESSAGES: HI, names.OUTPUT_MESSAGES: [HO]}
    one = session(agent(1, "care", seconds=9, also={**definitions, **ends}), tool(2, "f", {}, "x", 1), scope=GENAI)
    run = only_run(one)
    assert [[call.name for call in turn.tool_calls] for turn in run.turns] == [["f"], []]
    assert [one.tools[ref]["name"] for call in run.model_calls() for ref in call.tools] == ["f", "f"]
    assert one.replay is not None
    assert not one.replay.eligible


@pytest.mark.slow
def test_a_very_deep_trace_is_read() -> None:
    deep = [agent(1, "demo"), *(span(n, "work", {}, n - 1) for n in range(2, 20_000)), chat(20_000, HI, HO, 19_999)]
    conversion = converted(request(*deep, scope=GENAI))
    (one,) = conversion.sessions
    assert calls(only_run(one)) == [span_id(20_000)]


def test_usage_on_agents_is_not_counted() -> None:
    one = session(agent(1, "demo", also=TOKENS, seconds=9), chat(2, HI, HO, 1, also=TOKENS), scope=GENAI)
    assert one.usage.input_tokens == 10


def test_embeddings_are_side_calls_and_counted() -> None:
    record = replace(model(HI, None), request=Request(Operation.EMBEDDINGS, "e"), answer=Answer(usage=Usage(7)))
    embeddings = {names.OPERATION: "embeddings", names.USAGE_INPUT_TOKENS: 3}
    run = only_run(session(ours(1, run_record(1), seconds=9), ours(2, model(HI, HO), 1), ours(3, record, 1)))
    assert ([call.operation for call in run.side_calls], len(run.turns)) == (["embeddings"], 1)
    one = session(agent(1, "demo"), span(2, "embeddings e", embeddings, 1), scope=GENAI)
    assert (one.usage.input_tokens, only_run(one).turns, one.runs[0].side_calls[0].fidelity) == (
        3,
        [],
        {"input": Fidelity.ABSENT},
    )


def test_times_of_the_session_span_its_runs() -> None:
    one = session(agent(1, "a"), agent(5, "b", seconds=2), scope=GENAI)
    assert (one.started_at, one.ended_at) == ("2026-11-18T11:06:41.000000000Z", "2026-11-18T11:06:47.000000000Z")
    assert BEGAN % SECOND == 0


def test_a_failed_call_that_two_writers_tell_one_inside_the_other_is_one_and_stands_where_it_stood() -> None:
    """It cannot go where the one inside stands, which is in itself: conversion went round in that circle for ever."""
    failed = {"status": {"code": 2, "message": "Too many requests"}}
    around = {**chat(1, [said("user", "Soup?")], None, seconds=3), **failed}
    indexed = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "gpt-5",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "Soup?",
    }
    inside = {**span(2, "ChatCompletion", indexed, 1), **failed}
    conversion = converted(
        request(around, scope="opentelemetry.instrumentation.genai.openai"),
        request(inside, scope="openinference.instrumentation.openai"),
    )
    (one,) = conversion.sessions
    (call,) = only_run(one).model_calls()
    assert call.error is not None
    assert call.error.message == "Too many requests"


def test_no_call_ends_before_it_starts() -> None:
    """SigNoz/signoz-otel-collector#814, openobserve/openobserve#14367: a clock that was set back gave centuries."""
    one = session(agent(1, "clerk", seconds=-3), chat(2, HI, HO, 1, seconds=-0.2), scope=GENAI)
    run = only_run(one)
    (call,) = run.model_calls()
    assert (call.started_at, run.started_at) == (call.ended_at, one.started_at)
    assert one.started_at is not None
    assert one.ended_at is not None
    assert one.started_at <= one.ended_at
