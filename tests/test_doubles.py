"""Several recorders of the same calls at once: each call is one, whatever stands around its spans."""

from __future__ import annotations

from typing import Any

import pytest

from otlp_lines import (
    GENAI,
    Span,
    agent,
    asks,
    called,
    chat,
    converted,
    model,
    ours,
    request,
    said,
    span_id,
    told,
    tool,
)
from spanreel import conventions as names
from spanreel.model import Status, TurnRecord
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
