"""What evaluators say of runs and calls stands on them in the session, and changes nothing else of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from otlp_lines import (
    BEGAN,
    GENAI,
    Span,
    agent,
    attribute_list,
    chat,
    converted,
    log,
    request,
    said,
    session,
    span,
    tool,
)
from spanreel import conventions as names
from spanreel.redaction import make_policy
from spanreel.rules import Form, Rule
from spanreel.session import Evaluation, Session
from spanreel.session_files import read_session, write_session
from spanreel_collector.conversion.convert import convert_files
from spanreel_collector.redaction.sessions import redact_session
from spanreel_collector.show.session import Look, show_session

HI, HO = said("user", "Hi"), said("assistant", "Ho")
ANSWERED = {names.RESPONSE_ID: "resp-7"}
SPANS = (
    agent(1, "clerk", seconds=9),
    chat(2, [HI], HO, 1, also=ANSWERED),
    tool(3, "look", {"city": "Rome"}, "sunny", 1),
)
TOLD = {
    "gen_ai.evaluation.name": "politeness",
    "gen_ai.evaluation.score.value": 0.5,
    "gen_ai.evaluation.score.label": "so-so",
    "gen_ai.evaluation.explanation": "no please",
}
POLITE = Evaluation(
    name="politeness", score=0.5, label="so-so", explanation="no please", judged_at="2026-11-18T11:06:40.000000001Z"
)


def event(attributes: dict[str, Any], name: str = "gen_ai.evaluation.result") -> dict[str, Any]:
    return {"events": [{"name": name, "timeUnixNano": str(BEGAN + 1), "attributes": attribute_list(attributes)}]}


def with_logs(*logs: dict[str, Any], spans: tuple[Span, ...] = SPANS) -> Session:
    conversion = converted(request(*spans, scope=GENAI), *logs)
    assert (conversion.faults, dict(conversion.skipped)) == ((), {})
    (one,) = conversion.sessions
    return one


def judged(one: Session) -> dict[str, list[Evaluation]]:
    """All evaluations of a session by what they stand on."""
    found = {"session": one.evaluations}
    for run in one.runs:
        found[run.agent.name or "run"] = run.evaluations
        found |= {call.operation: call.evaluations for call in run.model_calls()}
        found |= {call.name: call.evaluations for call in run.tool_calls()}
    return {place: told for place, told in found.items() if told}


@pytest.mark.parametrize(("inside", "place"), [(1, "clerk"), (2, "chat"), (3, "look")])
def test_an_evaluation_in_a_log_stands_on_what_its_span_is(inside: int, place: str) -> None:
    one = with_logs(log("gen_ai.evaluation.result", TOLD, inside))
    assert judged(one) == {place: [POLITE]}


def test_an_evaluation_that_names_an_answer_stands_on_the_call_that_gave_it() -> None:
    one = with_logs(log("gen_ai.evaluation.result", {**TOLD, **ANSWERED}, 99))
    assert judged(one) == {"chat": [POLITE.model_copy(update={"response_id": "resp-7"})]}


def test_an_evaluation_as_an_event_of_the_span_is_read_as_well() -> None:
    one = session(SPANS[0], chat(2, [HI], HO, 1, **event(TOLD)), scope=GENAI)
    assert judged(one) == {"chat": [POLITE]}


def test_an_evaluation_that_came_twice_is_told_once_and_two_judges_twice() -> None:
    again = log("gen_ai.evaluation.result", TOLD, 2)
    other = log("gen_ai.evaluation.result", {**TOLD, "gen_ai.evaluation.score.value": 1}, 2, time=2)
    assert [one.score for one in judged(with_logs(other, again, again))["chat"]] == [0.5, 1.0]


def test_what_else_an_evaluation_says_is_kept_and_an_evaluator_that_failed_is_told_so() -> None:
    failed = {
        "gen_ai.evaluation.name": "politeness",
        "error.type": "ValueError",
        "gen_ai.evaluation.explanation": "no judge",
        "gen_ai.evaluation.target": "clerk",
    }
    (one,) = judged(with_logs(log("gen_ai.evaluation.result", failed, 1)))["clerk"]
    assert (one.score, one.label, one.error_type, one.explanation) == (None, None, "ValueError", "no judge")
    assert one.provider_fields == {"gen_ai.evaluation.target": "clerk"}


def test_an_older_event_has_the_evaluators_name_in_its_own() -> None:
    one = with_logs(log("gen_ai.evaluation.relevance", {"gen_ai.evaluation.score": 4.0}, 2))
    assert [(told.name, told.score) for told in judged(one)["chat"]] == [("relevance", 4.0)]


@pytest.mark.parametrize("score", ["NaN", float("inf"), True, "high"])
def test_a_score_that_is_no_number_is_none(score: Any) -> None:
    one = with_logs(log("gen_ai.evaluation.result", {**TOLD, "gen_ai.evaluation.score.value": score}, 2))
    assert [told.score for told in judged(one)["chat"]] == [None]
    assert read_session(write_session(one)) == one


# -- other recorders' ways -------------------------------------------------------------------------------------------


def openinference() -> list[Span]:
    also = {
        "evaluations.0.evaluation.name": "politeness",
        "evaluations.0.evaluation.score": 0.5,
        "evaluations.0.evaluation.label": "so-so",
        "evaluations.0.evaluation.explanation": "no please",
        "evaluations.0.evaluation.annotator_kind": "HUMAN",
        "trace.annotations.0.annotation.name": "kept its word",
        "trace.annotations.0.annotation.label": "yes",
        "session.evaluations.0.evaluation.name": "happy user",
        "session.evaluations.0.evaluation.score": 1,
    }
    return [SPANS[0], chat(2, [HI], HO, 1, also=also)]


def test_openinferences_lists_tell_of_a_span_its_trace_and_its_session() -> None:
    found = judged(session(*openinference(), scope=GENAI))
    assert {place: [(one.name, one.score, one.label) for one in told] for place, told in found.items()} == {
        "session": [("happy user", 1.0, None)],
        "clerk": [("kept its word", None, "yes")],
        "chat": [("politeness", 0.5, "so-so")],
    }
    assert (found["chat"][0].evaluator, found["chat"][0].explanation) == ("HUMAN", "no please")


def test_an_evaluator_with_a_span_of_its_own_judges_what_stands_around_it_and_not_its_own_judge() -> None:
    """As Strands' evaluations write it, with the score as text."""
    verdict = {**TOLD, "gen_ai.evaluation.score.value": "0.5", "gen_ai.evaluation.test_pass": True}
    one = session(
        span(10, "execute_case a", {"gen_ai.evaluation.case.name": "a"}, start=0, seconds=20),
        span(11, "task_execution a", {"gen_ai.evaluation.case.name": "a"}, 10, start=0, seconds=10),
        agent(1, "clerk", 11, seconds=9),
        chat(2, [HI], HO, 1),
        span(12, "evaluator Polite", verdict, 10, seconds=4),
        agent(13, "judge", 12, seconds=3),
        chat(14, [said("user", "Was it polite?")], said("assistant", "So-so."), 13),
        scope=GENAI,
    )
    ((place, (told,)),) = judged(one).items()
    assert (place, told.score, told.provider_fields) == ("clerk", 0.5, {"gen_ai.evaluation.test_pass": True})


def test_the_scores_of_a_case_of_pydantic_evals_stand_on_the_run_in_it() -> None:
    case = {
        "scores": json.dumps({"length": {"name": "length", "value": 21, "reason": "counted"}}),
        "labels": json.dumps({"tone": {"name": "tone", "value": "warm", "reason": None}}),
        "assertions": json.dumps({"polite": {"name": "polite", "value": False, "reason": None}}),
    }
    evals = request(span(20, "case: a", case, start=0, seconds=20), scope="pydantic-evals")
    spans = request(agent(1, "clerk", 20, seconds=9), chat(2, [HI], HO, 1), scope=GENAI)
    (one,) = converted(evals, spans).sessions
    assert [(told.name, told.score, told.label, told.explanation) for told in judged(one)["clerk"]] == [
        ("length", 21.0, None, "counted"),
        ("tone", None, "warm", None),
        ("polite", 0.0, "fail", None),
    ]


def test_braintrusts_scores_and_laminars_evaluators_are_read() -> None:
    scores = {"braintrust.scores": json.dumps({"politeness": 0.5, "unjudged": None})}
    assert [told.score for told in judged(session(agent(1, "clerk", also=scores), scope=GENAI))["clerk"]] == [0.5]
    laminar = span(4, "politeness", {"lmnr.span.type": "EVALUATOR", "lmnr.span.output": "0.5"}, 1)
    assert [told.name for told in judged(session(*SPANS, laminar, scope=GENAI))["clerk"]] == ["politeness"]


# -- what it must not change -----------------------------------------------------------------------------------------


def test_a_session_with_evaluations_is_the_same_without_them_otherwise() -> None:
    plain, told = with_logs(), with_logs(log("gen_ai.evaluation.result", TOLD, 2))
    told.runs[0].turns[0].model_call.evaluations = None  # type: ignore[union-attr] # it has a model call
    assert told == plain


@pytest.mark.parametrize("judge", [openinference, lambda: [*SPANS[:2], tool(3, "look", {}, 1, 1, **event(TOLD))]])
def test_a_session_that_is_converted_again_keeps_its_evaluations(
    judge: Callable[[], list[Span]], tmp_path: Path
) -> None:
    one = session(*judge(), scope=GENAI)
    file = tmp_path / "one.json"
    file.write_text(write_session(one))
    (again,) = convert_files([str(file)]).sessions
    assert judged(again) == judged(one)


def test_an_explanation_is_redacted_with_the_session() -> None:
    secret = "ann" + "@" + "example.org"
    one = with_logs(log("gen_ai.evaluation.result", {**TOLD, "gen_ai.evaluation.explanation": f"ask {secret}"}, 2))
    mails = make_policy("mails/1", [Rule(Form.MASK, detectors=("e-mail",))], extends=None)
    redacted = redact_session(json.loads(write_session(one)), mails)
    assert secret not in write_session(redacted)
    assert redacted.replay == one.replay


def test_evaluations_are_shown() -> None:
    one = with_logs(log("gen_ai.evaluation.result", {**TOLD, names.EVALUATION_BY: "LLM"}, 2))
    assert "judged politeness 0.5, so-so (by LLM): no please" in show_session(one, Look())


@pytest.mark.parametrize(
    "told", [request(span(1, "evaluator", TOLD), scope="app"), log("gen_ai.evaluation.result", TOLD, 2)]
)
def test_evaluations_in_a_trace_without_calls_are_counted(told: dict[str, Any]) -> None:
    conversion = converted(told)
    assert (conversion.sessions, dict(conversion.skipped)) == ((), {"evaluations of no run here": 1})
