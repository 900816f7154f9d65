"""Failed model calls that were made again: attempts, though nobody said so."""

from __future__ import annotations

from typing import Any

from otlp_lines import GENAI, Span, agent, chat, only_run, said, session
from spanreel.model import Status
from spanreel.session import ModelCall

FAILED: dict[str, Any] = {"status": {"code": 2, "message": "overloaded"}, "seconds": 0.5}


def calls(*spans: Span) -> list[ModelCall]:
    return list(only_run(session(agent(1, "waiter", seconds=20), *spans, scope=GENAI)).model_calls())


def asked(number: int, text: str = "Hi", answer: str | None = None, **rest: Any) -> Span:
    return chat(number, [said("user", text)], said("assistant", answer) if answer else None, 1, **rest)


def test_calls_that_failed_are_attempts_of_the_same_call_after_them() -> None:
    (call,) = calls(asked(2, **FAILED), asked(3, **FAILED), asked(4, answer="Ho"))
    assert (call.status, [attempt.error and attempt.error.message for attempt in call.attempts]) == (
        Status.OK,
        ["overloaded", "overloaded", None],
    )
    assert call.started_at == call.attempts[0].started_at


def test_a_call_that_failed_to_the_last_is_one_call_that_failed() -> None:
    (call,) = calls(asked(2, **FAILED), asked(3, **FAILED))
    assert (call.status, len(call.attempts)) == (Status.ERROR, 2)


def test_another_question_is_another_call() -> None:
    first, second = calls(asked(2, **FAILED), asked(3, "Hello?", answer="Ho"))
    assert (first.status, second.status, second.attempts) == (Status.ERROR, Status.OK, [])


def test_calls_side_by_side_are_none_of_each_other() -> None:
    assert len(calls(asked(2, **{**FAILED, "seconds": 5}), asked(3, answer="Ho"))) == 2


def test_a_call_that_answered_before_it_failed_stands_for_itself() -> None:
    assert len(calls(asked(2, answer="Half", **FAILED), asked(3, answer="Ho"))) == 2
