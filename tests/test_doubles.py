"""Several recorders of the same calls at once: each call is one, whatever stands around its spans."""

from __future__ import annotations

from typing import Any

import pytest

from otlp_lines import (
    GENAI,
    TRACE,
    Span,
    agent,
    asks,
    attribute_list,
    called,
    chat,
    converted,
    model,
    ours,
    request,
    said,
    span,
    span_id,
    told,
    tool,
)
from spanreel import conventions as names
from spanreel.model import Status
from spanreel.records import TurnRecord
from spanreel.session import Session

HI = [said("user", "Weather?")]
HO = said("assistant", "Sunny.")
LOOK = asks(called("look", {"city": "Rome"}, "call_1"))
TOLD = [*HI, LOOK, told("call_1", "25 degrees")]
TOKENS = {names.USAGE_INPUT_TOKENS: 10, names.USAGE_OUTPUT_TOKENS: 2}
OTHER = "opentelemetry.instrumentation.anthropic"


def recorded(mine: list[Span], theirs: list[Span], scope: str = GENAI) -> Session:
    """The one session of what two recorders wrote."""
    conversion = converted(request(*mine, scope=scope), request(*theirs, scope=OTHER))
    assert conversion.faults == ()
    (one,) = conversion.sessions
    return one


def answered(identity: str, **also: Any) -> dict[str, Any]:
    return {names.RESPONSE_ID: identity, **TOKENS, **also}


def calls(one: Session) -> list[str]:
    return [call.id for run in one.runs for call in run.model_calls()]


@pytest.mark.parametrize("parent", [None, 1])
def test_a_call_that_two_recorders_saw_beside_each_other_is_one(parent: int | None) -> None:
    root = [agent(1, "clerk", seconds=9)] if parent else []
    outer = chat(2, HI, HO, parent, start=2, seconds=2, also=answered("r1"))
    inner = chat(3, HI, said("assistant", "Sunny. "), parent, start=2.1, also=answered("r1", **{"user.id": "ann"}))
    one = recorded([*root, outer], [inner])
    assert (calls(one), one.usage.input_tokens, one.user_id) == ([span_id(2)], 10, "ann")


def test_without_ids_the_answer_tells_that_two_spans_are_one_call() -> None:
    outer = chat(2, HI, HO, 1, start=2, seconds=2)
    inner = chat(3, HI, {**HO, "finish_reason": "stop"}, 1, start=2.1, also=TOKENS)
    one = recorded([agent(1, "clerk", seconds=9), outer], [inner])
    assert (calls(one), one.usage.input_tokens) == ([span_id(2)], 10)


@pytest.mark.parametrize(
    "second",
    [
        chat(3, HI, HO, 1, start=2.1, also={names.RESPONSE_ID: "r2"}),
        chat(3, HI, said("assistant", "Rain."), 1, start=2.1),
        chat(3, HI, HO, 1, start=5),
        chat(3, HI, HO, 1, start=2.1, also={names.REQUEST_MODEL: "gpt-5-mini"}),
    ],
    ids=["another response", "another answer", "another time", "another model"],
)
def test_calls_side_by_side_that_differ_are_two(second: Span) -> None:
    first = chat(2, HI, HO, 1, start=2, seconds=2, also={names.RESPONSE_ID: "r1"})
    assert len(calls(recorded([agent(1, "clerk", seconds=9), first], [second]))) == 2


def test_equal_calls_of_one_recorder_side_by_side_are_as_many_as_it_says() -> None:
    spans = [agent(1, "clerk", seconds=9), *(chat(number, HI, HO, 1, start=2, also=TOKENS) for number in (2, 3))]
    (one,) = converted(request(*spans, scope=GENAI)).sessions
    assert (len(calls(one)), one.usage.input_tokens) == (2, 20)


def test_ours_inside_a_turn_takes_the_place_of_theirs_beside_the_turn() -> None:
    mine = [
        ours(1, TurnRecord(index=0), None, start=2, seconds=3),
        ours(3, model(HI, HO, call_id="x", response_id="r1"), 1, start=2.1, seconds=0.5),
    ]
    theirs = [chat(2, HI, HO, None, start=2, seconds=2, also=answered("r1"))]
    conversion = converted(request(*mine), request(*theirs, scope=OTHER))
    (one,) = conversion.sessions
    (call,) = one.runs[0].model_calls()
    assert (call.id, call.protocol, one.usage.input_tokens) == ("x", "openai_chat", 10)


def test_a_call_that_failed_is_one_failure_for_both_who_saw_it() -> None:
    failed = {"status": {"code": 2, "message": "overloaded"}}
    outer = chat(2, HI, None, 1, start=2, seconds=2, **failed)
    one = recorded([agent(1, "clerk", seconds=9), outer], [chat(3, HI, None, 1, start=2.1, **failed)])
    (call,) = one.runs[0].model_calls()
    assert (call.id, call.status, call.attempts) == (span_id(2), Status.ERROR, [])


@pytest.mark.parametrize("asked", [(None, None), (HI, None), (None, HI)], ids=["neither", "the first", "the second"])
def test_a_call_that_failed_is_one_though_a_recorder_tells_nothing_of_it(asked: Any) -> None:
    failed: dict[str, Any] = {"status": {"code": 2, "message": "overloaded"}}
    outer, inner = (
        chat(2 + at, one, None, 1, start=2 + at / 10, seconds=2 - at, **failed) for at, one in enumerate(asked)
    )
    one = recorded([agent(1, "clerk", seconds=9), outer], [inner])
    (call,) = one.runs[0].model_calls()
    assert (call.status, len(call.input)) == (Status.ERROR, 0 if asked == (None, None) else 1)


def test_a_stream_that_a_clients_recorder_did_not_follow_is_the_call_around_it() -> None:
    outer = chat(2, HI, HO, 1, start=2, seconds=2, also=answered("r1"))
    one = recorded([agent(1, "clerk", seconds=9), outer], [chat(3, HI, None, 2, start=2.1)])
    assert calls(one) == [span_id(2)]


def whole_run(first: int, parent: int, *, calls_in: int, scope_id: bool) -> list[Span]:
    """A run of three spans and its agent's; ``calls_in`` is in which of its spans the calls stand."""

    def also(identity: str) -> dict[str, Any]:
        return answered(identity) if scope_id else {}

    return [
        agent(first, "clerk", parent, start=2, seconds=8),
        chat(first + 1, HI, LOOK, calls_in, start=3 + first / 1000, also=also("r1")),
        tool(first + 2, "look", {"city": "Rome"}, "25 degrees", calls_in, start=4 + first / 1000),
        chat(first + 3, TOLD, HO, calls_in, start=5 + first / 1000, also=also("r2")),
    ]


def test_a_run_that_two_recorders_saw_is_one_with_its_calls_and_tools() -> None:
    root = request(agent(1, None, start=1, seconds=20), scope="app")
    mine = request(*whole_run(10, 1, calls_in=10, scope_id=True), scope=GENAI)
    # The other one puts calls beside its agent, under a workflow.
    workflow = {names.OPERATION: "invoke_workflow"}
    theirs = [agent(19, None, 1, start=2, seconds=8, also=workflow), *whole_run(20, 19, calls_in=19, scope_id=True)]
    (one,) = converted(root, mine, request(*theirs, scope=OTHER)).sessions
    assert [(run.id, run.agent.name) for run in one.runs] == [(span_id(10), "clerk")]
    assert calls(one) == [span_id(11), span_id(13)]
    assert [call.id for call in one.runs[0].tool_calls()] == [span_id(12)]
    assert one.usage.input_tokens == 20


def test_runs_side_by_side_of_two_recorders_that_saw_others_are_two() -> None:
    root = request(agent(1, None, start=1, seconds=20), scope="app")
    mine = request(*whole_run(10, 1, calls_in=10, scope_id=False), scope=GENAI)
    theirs = [agent(20, "cook", 1, start=2, seconds=8), chat(21, HI, said("assistant", "Soup."), 20, start=3)]
    (one,) = converted(root, mine, request(*theirs, scope=OTHER)).sessions
    assert {run.agent.name for run in one.runs} >= {"clerk", "cook"}


def test_a_workflow_that_says_nothing_beside_a_run_is_no_request() -> None:
    workflow = agent(20, None, start=2, also={names.OPERATION: "invoke_workflow"})
    one = recorded([agent(1, "clerk", seconds=9), chat(2, HI, HO, 1)], [workflow])
    assert [run.agent.name for run in one.runs] == ["clerk"]


def in_own_traces(*spans: Span) -> list[Span]:
    """A client's spans, each a trace of its own."""
    return [{**one, "traceId": f"{number:032x}"} for number, one in enumerate(spans, 1)]


@pytest.mark.parametrize("identified", [True, False])
def test_a_clients_spans_in_traces_of_their_own_are_the_calls_of_the_framework_around(*, identified: bool) -> None:
    also = answered if identified else lambda _: TOKENS
    mine = [
        agent(1, "clerk", seconds=60),
        chat(2, HI, LOOK, 1, start=2, seconds=2),
        tool(4, "look", {"city": "Rome"}, "25 degrees", 1),
        chat(5, TOLD, HO, 1, start=5, seconds=2),
    ]
    for asked, identity in ((mine[1], "r1"), (mine[3], "r2")):
        asked["attributes"] += attribute_list({names.RESPONSE_ID: identity} if identified else {})
    theirs = in_own_traces(
        chat(12, HI, LOOK, start=2.5, seconds=1, also=also("r1")), chat(15, TOLD, HO, start=5.5, also=also("r2"))
    )
    one = recorded(mine, theirs)
    assert (one.key.value, [run.agent.name for run in one.runs]) == (TRACE, ["clerk"])
    assert len(calls(one)) == 2
    assert [call.id for call in one.runs[0].tool_calls()] == [span_id(4)]
    assert one.usage.input_tokens == 20


def test_failures_that_a_client_saw_in_traces_of_their_own_are_the_frameworks_though_it_tried_again() -> None:
    failed: dict[str, Any] = {"status": {"code": 2, "message": "overloaded"}}
    mine = [
        agent(1, "clerk", seconds=60),
        chat(2, HI, None, 1, start=2, seconds=1, **failed),
        chat(4, HI, None, 1, start=4, seconds=1, **failed),
    ]
    theirs = in_own_traces(
        chat(12, HI, None, start=2.2, seconds=0.5, **failed), chat(14, HI, None, start=4.2, seconds=0.5, **failed)
    )
    one = recorded(mine, theirs)
    assert [run.agent.name for run in one.runs] == ["clerk"]
    (call,) = one.runs[0].model_calls()
    assert (call.status, len(call.attempts)) == (Status.ERROR, 2)


def test_runs_of_two_recorders_in_two_traces_are_one() -> None:
    mine = whole_run(10, 1, calls_in=10, scope_id=True)
    theirs = [{**one, "traceId": "b" * 32} for one in whole_run(20, 1, calls_in=20, scope_id=True)]
    one = recorded(mine, theirs)
    assert ([run.id for run in one.runs], one.usage.input_tokens) == ([span_id(10)], 20)


@pytest.mark.parametrize(
    "other",
    [
        {"service": "other"},
        {"scope": GENAI},
        {"start": 20},
        {"identity": "r9"},
    ],
    ids=["another service", "the same writer", "another time", "another response"],
)
def test_calls_of_two_traces_that_are_no_twins_stay_two_sessions(other: dict[str, Any]) -> None:
    first = request(
        agent(1, "clerk", seconds=60), chat(2, HI, HO, 1, start=2, seconds=2, also=answered("r1")), scope=GENAI
    )
    twin = chat(12, HI, HO, start=other.get("start", 2.5), also=answered(other.get("identity", "r1")))
    where = {"scope": other.get("scope", OTHER), "service": other.get("service", "demo")}
    assert len(converted(first, request(*in_own_traces(twin), **where)).sessions) == 2


def test_where_only_words_tell_and_two_calls_could_be_meant_none_is() -> None:
    mine = [request(agent(number, "clerk", seconds=9, trace=f"{number:032x}"), scope=GENAI) for number in (1, 2)]
    mine += [request(chat(3, HI, HO, number, start=3, trace=f"{number:032x}"), scope=GENAI) for number in (1, 2)]
    theirs = request({**chat(4, HI, HO, start=3, seconds=0.4), "traceId": "b" * 32}, scope=OTHER)
    assert len(converted(*mine, theirs).sessions) == 3


def test_tools_that_two_recorders_saw_in_one_run_are_one_call_each() -> None:
    mine = [agent(1, "clerk", seconds=60), chat(2, HI, LOOK, 1), chat(9, TOLD, HO, 1)]
    mine += [tool(4, "look", {"city": "Rome"}, "25 degrees", 1, seconds=1, also={names.TOOL_CALL_ID: "call_1"})]
    step = {names.OPERATION: "agent_step"}
    theirs = [
        span(3, "step", step, 1, start=3.5, seconds=4),
        tool(5, "look", "Rome", "25 degrees", 3, start=4.1, seconds=1),
        tool(6, "look", "Paris", "20 degrees", 3, start=4.2, seconds=1),
    ]
    run = recorded(mine, theirs).runs[0]
    assert [(call.id, call.arguments) for call in run.tool_calls()] == [
        (span_id(4), {"city": "Rome"}),
        (span_id(6), "Paris"),
    ]


def test_an_empty_run_of_another_recorders_in_the_time_of_the_same_agents_is_its_view() -> None:
    mine = [agent(1, "clerk", seconds=60), agent(2, "cook", 1, start=3, seconds=9), chat(4, HI, HO, 2)]
    one = recorded(mine, [agent(3, "cook", 1, start=2.9, seconds=9.2)])
    assert [(run.id, run.agent.name) for run in one.runs] == [(span_id(1), "clerk"), (span_id(2), "cook")]


def test_a_workflow_shows_what_its_first_agent_was_asked_and_its_last_one_answered() -> None:
    workflow = {names.OPERATION: "invoke_workflow"}
    spans = [
        agent(1, None, seconds=60, also=workflow),
        agent(2, "clerk", 1, seconds=5),
        chat(3, HI, LOOK, 2),
        agent(8, "cook", 1, seconds=5),
        chat(9, TOLD, HO, 8),
    ]
    (one,) = converted(request(*spans, scope=GENAI)).sessions
    (root,) = one.roots()
    shown = [[one.messages[index].parts[0]["content"] for index in ends] for ends in (root.input, root.output)]
    assert shown == [["Weather?"], ["Sunny."]]


def test_a_call_that_says_only_what_was_asked_is_one_with_the_only_call_inside_it() -> None:
    outer = chat(2, HI, None, start=2, seconds=2)
    one = recorded([outer], [chat(3, HI, HO, 2, start=2.1, also=answered("r1"))])
    (call,) = one.runs[0].model_calls()
    assert (call.response_id, len(call.input), len(call.output)) == ("r1", 1, 1)


@pytest.mark.parametrize("requests", [1, 2])
def test_a_workflow_around_the_requests_of_a_conversation_is_none_of_them(requests: int) -> None:
    said_now = [*HI, HO, said("user", "And Paris?")] if requests == 2 else [*HI, LOOK, told("call_1", "25 degrees")]
    spans = [
        span(1, "invoke_workflow talk", {names.OPERATION: "invoke_workflow", names.CONVERSATION_ID: "c1"}, seconds=60),
        agent(2, "clerk", 1, seconds=9),
        chat(3, HI, HO if requests == 2 else LOOK, 2),
        agent(20, "clerk" if requests == 2 else "cook", 1, start=20, seconds=9),
        chat(21, said_now, HO, 20, start=21),
    ]
    (one,) = converted(request(*spans, scope=GENAI)).sessions
    assert (len(one.roots()), one.key.value) == (requests, "c1")
