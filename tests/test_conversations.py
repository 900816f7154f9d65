"""Which runs of agents are one conversation, where nothing says so but what their models were told."""

from __future__ import annotations

from typing import Any

import pytest

from conftest import cases
from otlp_lines import (
    GENAI,
    Span,
    agent,
    asks,
    called,
    chat,
    converted,
    request,
    said,
    session,
    sessions,
    told,
)
from spanreel import conventions as names
from spanreel.session import Session
from spanreel.session_files import write_session
from spanreel_collector.conversion.convert import convert, convert_files
from spanreel_collector.sources.documents import read_line

SYSTEM = said("system", "Be short.")
HI = [SYSTEM, said("user", "Hi")]
HELLO = said("assistant", "Hello! How can I help?")
MORE = [*HI, HELLO, said("user", "More?")]
FINE = said("assistant", "Fine.")


def run(number: int, told: list[Any], answer: Any, name: str | None = "clerk", **also: Any) -> list[Span]:
    """A run of an agent in a trace of its own, with one model call."""
    where: dict[str, Any] = {"trace": f"{number:032x}"}
    return [
        agent(number * 10, name, start=number * 10, seconds=5, also=also, **where),
        chat(number * 10 + 1, told, answer, number * 10, **where),
    ]


def traces(found: list[Session]) -> list[list[int]]:
    """The runs of each session, by the numbers of their traces."""
    return [[int(one.trace_id, 16) for one in document.runs] for document in found]


def test_a_run_that_was_told_what_another_was_answered_goes_on_with_its_conversation() -> None:
    third = [*MORE, FINE, said("user", "And?")]
    found = sessions(*run(1, HI, HELLO), *run(2, MORE, FINE), *run(3, third, FINE), *run(4, HI, FINE), scope=GENAI)
    assert traces(found) == [[1, 2, 3], [4]]
    assert [(one.key.kind, int(one.key.value, 16)) for one in found] == [("trace", 1), ("trace", 4)]
    assert [one.parent for one in found[0].runs] == [None, None, None]


def test_equal_questions_are_no_conversation() -> None:
    asked_again = run(2, [*HI, said("user", "Hi")], HELLO)
    assert traces(sessions(*run(1, HI, HELLO), *asked_again, *run(3, HI, HELLO), scope=GENAI)) == [[1], [2], [3]]


def test_where_two_runs_ended_so_nobody_knows_which_one_it_was() -> None:
    assert traces(sessions(*run(1, HI, HELLO), *run(2, HI, HELLO), *run(3, MORE, FINE), scope=GENAI)) == [[1], [2], [3]]


def test_a_run_that_began_so_later_changes_nothing() -> None:
    found = sessions(*run(1, HI, HELLO), *run(2, MORE, FINE), *run(3, HI, HELLO), *run(4, MORE, FINE), scope=GENAI)
    assert traces(found) == [[1, 2], [3, 4]]


def test_calls_by_other_ids_are_other_conversations() -> None:
    def begun(number: int, call: str) -> list[Span]:
        return run(number, HI, asks(called("look", {}, call)))

    def ended(number: int, call: str) -> list[Span]:
        return run(number, [*HI, asks(called("look", {}, call)), told(call, "sunny")], FINE)

    found = sessions(*begun(1, "call_a"), *begun(2, "call_b"), *ended(3, "call_b"), *ended(4, "call_a"), scope=GENAI)
    assert traces(found) == [[1, 4], [2, 3]]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({}, {"name": "cook"}),
        ({names.USER_ID: "ann"}, {names.USER_ID: "bob"}),
        ({names.CONVERSATION_ID: "c"}, {}),
        ({}, {names.CONVERSATION_ID: "c"}),
    ],
)
def test_another_agent_user_or_conversation_by_name_is_another_conversation(
    one: dict[str, str], other: dict[str, str]
) -> None:
    assert traces(sessions(*run(1, HI, HELLO, **one), *run(2, MORE, FINE, **other), scope=GENAI)) == [[1], [2]]


def test_another_service_is_another_conversation() -> None:
    first, second = request(*run(1, HI, HELLO), scope=GENAI), request(*run(2, MORE, FINE), scope=GENAI, service="other")
    assert len(converted(first, second).sessions) == 2


def test_instructions_may_change_from_run_to_run() -> None:
    today = [said("system", "Be short. It is Tuesday."), *MORE[1:]]
    assert traces(sessions(*run(1, HI, HELLO), *run(2, today, FINE), scope=GENAI)) == [[1, 2]]


def test_a_history_may_hold_questions_and_answers_alone() -> None:
    where: dict[str, Any] = {"trace": f"{1:032x}"}
    looked_up = [*HI, asks(called("look", {}, "call_1")), told("call_1", "sunny")]
    first = [
        agent(10, "clerk", start=10, seconds=5, **where),
        chat(11, HI, asks(called("look", {}, "call_1")), 10, **where),
        chat(12, looked_up, HELLO, 10, **where),
    ]
    assert traces(sessions(*first, *run(2, MORE, FINE), scope=GENAI)) == [[1, 2]]


def test_a_question_asked_again_after_a_failure_goes_on_from_where_that_did() -> None:
    failed = run(2, MORE, None)
    failed[1]["status"] = {"code": 2, "message": "overloaded"}
    assert traces(sessions(*run(1, HI, HELLO), *failed, *run(3, MORE, FINE), scope=GENAI)) == [[1, 2, 3]]


def test_in_whatever_order_traces_arrive_the_conversation_is_the_same() -> None:
    requests = [request(*one, scope=GENAI) for one in (run(1, HI, HELLO), run(2, MORE, FINE), run(3, HI, FINE))]
    assert converted(*reversed(requests)).sessions == converted(*requests).sessions


def test_a_document_of_such_a_conversation_converts_to_itself() -> None:
    one = session(*run(1, HI, HELLO), *run(2, MORE, FINE), scope=GENAI)
    (again,) = convert([read_line(write_session(one).encode(), "test")]).sessions
    assert again.model_copy(update={"source": one.source}) == one


@pytest.mark.parametrize("dump", ["oi-openai-agents", "tl-openai-agents"])
def test_two_requests_of_a_session_whose_id_was_not_exported_are_one_conversation(dump: str) -> None:
    found = convert_files([str(cases(f"dialects/{dump}/traces.jsonl"))]).sessions
    assert [len(one.roots()) for one in found] == [2]
