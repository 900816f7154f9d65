"""Histories of which a writer tells only what is new."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from otlp_lines import asks, called, said, told
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
