"""Histories of which a writer tells only what is new."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from otlp_lines import agent, asks, called, chat, only_run, said, session, told
from spanreel.model import Answer, Error, ErrorCategory, Fidelity, Operation, Request
from spanreel.records import ModelRecord, RunRecord, ToolRecord
from spanreel_collector.repair.histories import chain_deltas
from spanreel_collector.span import Origin, RawSpan
from spanreel_collector.trace import Placed, Trace

ORDER = called("order", {"dish": "soup"}, "call_1")


def placed(number: int, record: Any, parent: str | None = "1") -> Placed:
    raw = RawSpan("t", str(number), parent, "", 1, number, number + 1, {}, Origin(), "x")
    return Placed(raw, record, "x", str(number), parent, number)


def call(
    messages: list[dict[str, Any]], answer: dict[str, Any] | None, *, continues: bool = True, **fidelity: Fidelity
) -> ModelRecord:
    request = Request(Operation.CHAT, "m", messages=tuple(messages))
    return ModelRecord(request, Answer(messages=(answer,)) if answer else None, continues=continues, fidelity=fidelity)


def served(came: Any = "served", **fidelity: Fidelity) -> ToolRecord:
    return ToolRecord("order", {"dish": "soup"}, came, "call_1", fidelity=fidelity)


def chained(
    first: ModelRecord, tool: ToolRecord | None, second: ModelRecord
) -> tuple[list[dict[str, Any]], Fidelity | None]:
    """The messages of the second call, after a first one and a tool call, and how they are known."""
    trace: Trace = (
        placed(1, RunRecord(), None),
        placed(2, first),
        *([placed(3, tool)] if tool else []),
        placed(4, second),
    )
    record = chain_deltas(trace)[-1].record
    assert isinstance(record, ModelRecord)
    return list(record.request.messages), record.fidelity.get("input")


FIRST = call([said("user", "Soup!")], {**asks(ORDER), "finish_reason": "tool_calls"})
WHOLE = [said("user", "Soup!"), asks(ORDER), told("call_1", "served")]


def test_a_call_gets_what_was_said_before_it() -> None:
    assert chained(FIRST, served(), call([], None)) == (WHOLE, Fidelity.RECONSTRUCTED)
    new = said("user", "Faster!")
    assert chained(FIRST, served(), call([new], None)) == ([*WHOLE, new], Fidelity.RECONSTRUCTED)


def test_what_is_told_again_is_not_said_twice() -> None:
    assert chained(FIRST, served(), call([told("call_1", "served")], None))[0] == WHOLE


def test_a_tools_failure_is_what_the_model_was_told() -> None:
    failed = replace(served(None), error=Error(ErrorCategory.TOOL, "TypeError", "closed"))
    assert chained(FIRST, failed, call([], None)) == ([*WHOLE[:2], told("call_1", "closed")], Fidelity.RECONSTRUCTED)


@pytest.mark.parametrize(
    ("tool", "state"),
    [
        (served(None, result=Fidelity.ABSENT), Fidelity.TRUNCATED),
        (None, Fidelity.TRUNCATED),
        (served("[REDACTED]", result=Fidelity.REDACTED), Fidelity.REDACTED),
    ],
)
def test_a_history_is_known_as_well_as_its_parts(tool: ToolRecord | None, state: Fidelity) -> None:
    assert chained(FIRST, tool, call([], None))[1] is state


def test_where_the_beginning_is_not_known_nothing_is_made_up() -> None:
    first = call([], asks(ORDER), input=Fidelity.ABSENT)
    assert chained(first, served(), call([], None, input=Fidelity.ABSENT)) == ([], Fidelity.ABSENT)
    new = said("user", "Faster!")
    assert chained(first, served(), call([new], None)) == ([new], Fidelity.TRUNCATED)


def test_a_call_that_says_all_is_left_alone() -> None:
    assert chained(FIRST, served(), call([said("user", "Hi")], None, continues=False)) == ([said("user", "Hi")], None)


BEER = called("order", {"dish": "beer"}, "call_2")
MERGED = called("orderorder", '{"dish": "soup"}{"dish": "beer"}', "call_1call_2")
EMPTY = [{"type": "reasoning", "content": ""}, called("order", {}, "call_1")]


@pytest.mark.parametrize(
    ("streamed", "repeated"),
    [
        pytest.param([MERGED], [ORDER, BEER], id="calls run together"),
        pytest.param([{"type": "text", "content": "Hm."}, MERGED], [{"type": "text", "content": "Hm."}, ORDER, BEER]),
        pytest.param([BEER], [ORDER, BEER], id="the last of several"),
        pytest.param(EMPTY, [{"type": "reasoning", "content": "Soup, then."}, ORDER], id="deltas left out"),
    ],
)
@pytest.mark.parametrize("traces", [1, 2])
def test_a_stream_that_was_put_together_wrongly_is_told_by_the_next_request(
    streamed: list[dict[str, Any]], repeated: list[dict[str, Any]], traces: int
) -> None:
    """As the instrumentations of JavaScript do; of calls by themselves each is a trace of its own."""
    asked = [said("user", "Soup and beer!")]
    later = [*asked, asks(*repeated), told("call_1", "served")]
    above = 1 if traces == 1 else None
    spans = [
        *([agent(1, "waiter")] if traces == 1 else []),
        chat(2, asked, asks(*streamed), above, **({"trace": "2" * 32} if traces == 2 else {})),
        chat(3, later, said("assistant", "Enjoy."), above),
    ]
    one = session(*spans, scope="waiters")
    first = next(only_run(one).model_calls())
    assert one.messages[first.output[0]].parts == repeated
    assert first.fidelity["output"] is Fidelity.RECONSTRUCTED


def test_arguments_that_are_none_stay_so_where_the_next_request_says_the_same() -> None:
    answer = asks({"type": "text", "content": "Hm."}, called("order", {}, "call_1"))
    asked = [said("user", "Soup!")]
    later = [*asked, answer, told("call_1", "served")]
    one = session(
        agent(1, "waiter"), chat(2, asked, answer, 1), chat(3, later, said("assistant", "Enjoy."), 1), scope="waiters"
    )
    first = next(only_run(one).model_calls())
    assert (one.messages[first.output[0]].parts, first.fidelity) == (answer["parts"], {})


def test_a_history_that_leaves_calls_and_ids_out_has_the_calls_of_its_runs_answers() -> None:
    """As OpenLLMetry of JavaScript before 0.23 writes it: tools' answers only, calls without ids."""
    asked = [said("user", "Soup!")]
    order = called("order", {"dish": "soup"})
    answer = {"role": "tool", "parts": [{"type": "tool_call_response", "response": "served"}]}
    spans = [
        agent(1, "waiter"),
        chat(2, asked, asks(order), 1),
        chat(3, [*asked, {"role": "assistant", "parts": []}, answer], said("assistant", "Enjoy."), 1),
    ]
    one = session(*spans, scope="waiters")
    run = only_run(one)
    _, last = run.model_calls()
    told_again = [one.messages[index] for index in last.input]
    assert [message.role for message in told_again] == ["user", "assistant", "tool"]
    assert told_again[1].parts == [order]
    (tool,) = run.tool_calls()
    assert (tool.name, tool.arguments, tool.result) == ("order", {"dish": "soup"}, "served")
