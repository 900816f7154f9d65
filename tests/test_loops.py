"""Loops without an agent, each call a trace of its own: what joins them, and what one call tells of another."""

from __future__ import annotations

from typing import Any

from otlp_lines import GENAI, Span, asks, called, chat, converted, request, said, sessions, told
from spanreel import conventions as names
from spanreel.model import Fidelity
from spanreel.session import Run

SDK = "com.anthropic.sdk.python"
ASKED = [said("system", "Be short."), said("user", "How warm is it in Rome?")]
LOOK = called("look", {"city": "Rome"}, "call_1")
WARM = said("assistant", "25 degrees.")
RESULT = told("call_1", "25 degrees")


def call(number: int, messages: Any, answer: Any, **also: Any) -> Span:
    return chat(number, messages, answer, trace=f"{number:032x}", also=also)


def loop(*spans: Span, scope: str = GENAI) -> Run:
    """The one run that these spans, each in its own trace, are."""
    (one,) = sessions(*spans, scope=scope)
    (run,) = one.runs
    return run


def results(run: Run) -> list[tuple[str, Any]]:
    return [(call.name, call.result) for call in run.tool_calls()]


def roles(run: Run, messages: Any) -> list[list[str]]:
    """Of each model call, the roles of what it was told."""
    return [[messages[index].role for index in call.input] for call in run.model_calls()]


def test_a_result_is_known_by_its_place_where_its_id_is_not_the_calls() -> None:
    item = called("look", {"city": "Rome"}, "fc_1")
    run = loop(call(1, ASKED, asks(item)), call(2, [*ASKED, asks(item), RESULT], WARM))
    assert results(run) == [("look", "25 degrees")]


def test_results_are_known_by_their_places_where_nothing_has_ids() -> None:
    both = [called("look", {"city": city}) for city in ("Rome", "Paris")]
    answers = [{"role": "tool", "parts": [{"type": "tool_call_response", "response": one}]} for one in ("25", "20")]
    run = loop(call(1, ASKED, asks(*both)), call(2, [*ASKED, asks(*both), *answers], WARM))
    assert results(run) == [("look", "25"), ("look", "20")]


def test_an_id_that_is_empty_is_none() -> None:
    nameless = {**LOOK, "id": ""}
    run = loop(call(1, ASKED, asks(nameless)), call(2, [*ASKED, asks(nameless), told("", "25 degrees")], WARM))
    assert [(one.call_id, one.result) for one in run.tool_calls()] == [(None, "25 degrees")]


def test_an_answer_that_nobody_told_is_told_by_the_next_request() -> None:
    run = loop(call(1, ASKED, None), call(2, [*ASKED, asks(LOOK), RESULT], WARM))
    first, _ = run.model_calls()
    assert first.fidelity["output"] is Fidelity.RECONSTRUCTED
    assert results(run) == [("look", "25 degrees")]


def test_an_answer_told_in_part_is_told_whole_by_the_next_request() -> None:
    whole = {"role": "assistant", "parts": [{"type": "text", "content": "I look."}, LOOK]}
    (one,) = sessions(call(1, ASKED, asks(LOOK)), call(2, [*ASKED, whole, RESULT], WARM), scope=GENAI)
    first, _ = one.runs[0].model_calls()
    assert [part["type"] for part in one.messages[first.output[0]].parts] == ["text", "tool_call"]


def test_an_answer_that_differs_from_its_repetition_is_left_as_it_is() -> None:
    spans = [call(1, ASKED, said("assistant", "No.")), call(2, [*ASKED, WARM, said("user", "So?")], WARM)]
    found = sessions(*spans, scope=GENAI)
    assert [len(one.runs) for one in found] == [1, 1]


def test_what_the_model_thought_and_said_may_be_repeated_as_several_messages() -> None:
    thought = {"role": "assistant", "parts": [{"type": "reasoning", "content": "Let me see."}]}
    history = [*ASKED, thought, said("assistant", "I look."), asks(LOOK), RESULT]
    answer = {"role": "assistant", "parts": [{"type": "text", "content": "I look."}, LOOK]}
    assert results(loop(call(1, ASKED, answer), call(2, history, WARM))) == [("look", "25 degrees")]


def test_a_request_of_a_tools_result_alone_goes_on_from_the_call_that_asked_for_it() -> None:
    (one,) = sessions(call(1, ASKED, asks(LOOK)), call(2, [RESULT], WARM), scope=GENAI)
    (run,) = one.runs
    assert results(run) == [("look", "25 degrees")]
    assert roles(run, one.messages)[1] == ["system", "user", "assistant", "tool"]


def test_a_history_that_leaves_the_calls_out_gets_them_back() -> None:
    again = [*ASKED, RESULT, WARM, said("user", "And Paris?")]
    spans = [call(1, ASKED, asks(LOOK)), call(2, [*ASKED, RESULT], WARM), call(3, again, said("assistant", "20."))]
    (one,) = sessions(*spans, scope=GENAI)
    assert [len(list(run.model_calls())) for run in one.runs] == [2, 1]
    (later,) = one.runs[1].model_calls()
    assert [one.messages[index].role for index in later.input] == [
        *("system", "user", "assistant", "tool", "assistant", "user")
    ]
    assert later.fidelity["input"] is Fidelity.RECONSTRUCTED


def test_calls_under_other_ids_are_not_put_into_a_history_again() -> None:
    item = called("look", {"city": "Rome"}, "fc_1")
    first = call(1, ASKED, asks(LOOK))
    (one,) = sessions(first, call(2, [*ASKED, asks(item), RESULT], WARM), scope=GENAI)
    assert [call.input for call in one.runs[-1].model_calls()][-1] == sorted(
        {index for call in one.runs[-1].model_calls() for index in call.input}
    )


def test_the_sdks_own_span_in_a_trace_of_its_own_is_a_second_view() -> None:
    told_of = {names.RESPONSE_ID: "msg_1", names.PROVIDER: "anthropic"}
    counts = {names.USAGE_INPUT_TOKENS: 9, names.USAGE_OUTPUT_TOKENS: 2}
    shadow = chat(2, None, None, trace=f"{2:032x}", start=1.1, seconds=0.3, also={**told_of, **counts})
    found = converted(request(call(1, ASKED, WARM, **told_of), scope=GENAI), request(shadow, scope=SDK)).sessions
    (model,) = found[0].runs[0].model_calls()
    assert len(found) == 1
    assert model.usage is not None
    assert model.usage.input_tokens == 9
