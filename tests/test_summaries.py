"""What lists and searches are told of a session."""

from __future__ import annotations

from conftest import ROOT
from spanreel import load_sessions
from spanreel.model import ErrorCategory, Status
from spanreel.session import ErrorInfo, Message, Session
from spanreel_collector.service.summaries import MOST_TEXT, searchable, summarise
from spanreel_collector.sources.times import nanoseconds
from spanreel_collector.stores.records import Summary

GOLDEN = ROOT / "tests" / "golden"


def recorded() -> Session:
    (session,) = load_sessions(GOLDEN / "spanreel.session.json")
    return session


def test_a_summary_says_who_did_what_when_and_with_how_much() -> None:
    session = recorded()
    assert summarise(session, 7) == Summary(
        id="s-5ee8ef47935ce612",
        revision=1,
        at=7,
        kind="conversation",
        key="order-17",
        origin="recorded",
        status="error",
        name="refund",
        user="u-1",
        users=("u-1",),
        started=nanoseconds("2026-11-18T11:06:41Z"),
        ended=nanoseconds(session.ended_at),
        agents=("care", "researcher"),
        versions=("2",),
        models=("gpt-5",),
        tools=("get_weather", "research"),
        tags=("beta",),
        runs=3,
        model_calls=3,
        tool_calls=2,
        input_tokens=30,
        output_tokens=6,
        eligible=True,
        opening="Hi",
        failure="tool: app.NoRain: dry",
    )


def test_why_it_failed_is_said_by_the_run_else_by_a_call_that_failed_and_by_none_that_ended_well() -> None:
    session = recorded()
    run = next(run for run in session.roots() if run.status == Status.ERROR)
    run.error = ErrorInfo(type="ValueError", message="no\n\n such  city" + "!" * 300)
    assert (summarise(session, 1).failure or "").startswith("ValueError: no such city!!!")
    assert len(summarise(session, 1).failure or "") == 200
    run.error = None
    assert summarise(session, 1).failure is None
    run.status, run = Status.OK, session.roots()[0]
    run.status = Status.ERROR
    next(run.model_calls()).error = ErrorInfo(type="Slow", category=ErrorCategory.TIMEOUT)
    assert summarise(session, 1).failure == "timeout: Slow"
    run.status = Status.UNFINISHED
    assert summarise(session, 1).failure is None
    run.error = ErrorInfo()
    assert summarise(session, 1).failure is None
    for root in session.roots():
        root.status = Status.OK
    assert summarise(session, 1).failure is None


def test_what_nobody_said_is_unknown_and_not_zero() -> None:
    session = Session(id="s-1", key={"kind": "trace", "value": "ab"})
    summary = summarise(session, 1)
    assert (summary.started, summary.input_tokens, summary.cost, summary.user, summary.opening) == (None,) * 4 + ("",)


def test_the_opening_is_what_the_user_said_in_one_line_of_bounded_length() -> None:
    session = recorded()
    session.messages[session.runs[0].input[0]] = Message(
        role="user", parts=[{"type": "text", "content": "Where\n\n is  " + "my money " * 100}]
    )
    opening = summarise(session, 1).opening
    assert opening.startswith("Where is my money my money")
    assert len(opening) == 200
    assert opening.endswith("…")


def test_words_of_messages_arguments_results_names_and_failures_are_searched_binary_content_is_not() -> None:
    session = recorded()
    session.messages.append(
        Message(
            role="tool",
            parts=[
                {"type": "tool_call_response", "id": "call_x", "response": {"deep": [{"deeper": "needle"}]}},
                {"type": "blob", "mime_type": "image/png", "content": "aGF5c3RhY2s="},
            ],
        )
    )
    text = searchable(session)
    for word in ("order-17", "u-1", "beta", "care", "get_weather", "needle", "Hi"):
        assert word in text, word
    for word in ("aGF5c3RhY2s=", "call_x", "tool_call_response"):
        assert word not in text, word


def test_a_text_without_end_is_searched_to_a_bound() -> None:
    session = recorded()
    session.messages.insert(0, Message(role="user", parts=[{"type": "text", "content": "x" * (2 * MOST_TEXT)}]))
    assert len(searchable(session)) <= MOST_TEXT + 100
