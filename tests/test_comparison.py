"""Two sessions side by side: what differs, where, and in which words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from replaying import Book, text
from spanreel.session import Session
from spanreel_collector.comparison import MOST, compare


def talk(
    *, answer: str = "yes", amount: Any = 1, result: Any = "paid", outcome: Any = "done", runs: int = 1
) -> Session:
    book = Book()
    for _ in range(runs):
        run = book.run(entrypoint={"callable": "app:answer", "arguments": {}}, result=outcome)
        book.model(run, [text("user", "pay?")], text("assistant", answer), finish_reasons=["stop"])
        book.tool(run, "pay", {"amount": amount}, result)
    return book.session()


def told(one: Session, other: Session) -> list[tuple[str, str, str | None, Any, Any]]:
    found = []
    for each in compare(one, other).differences:
        difference = each.difference or {}
        sides = (difference.get("recorded"), difference.get("live"))
        found.append((str(each.subject), each.reason, difference.get("pointer"), *sides))
    return found


def test_a_session_does_not_differ_from_itself() -> None:
    found = compare(talk(), talk())
    assert (found.differences, found.cut, [pair.differs for pair in found.runs]) == ((), False, [False])
    assert told(talk(amount=2), talk(amount=2.0)) == []


@pytest.mark.parametrize(
    ("changed", "difference"),
    [
        ({"answer": "no"}, ("model call", "answer", "/output/0/parts/0/content", "yes", "no")),
        ({"amount": 2}, ("tool call", "arguments", "/arguments/amount", 1, 2)),
        ({"result": None}, ("tool call", "result", "/result", "paid", None)),
        ({"outcome": {"said": "x"}}, ("run", "outcome", "/result", "done", {"said": "x"})),
    ],
)
def test_what_was_said_asked_and_answered_is_compared(changed: dict[str, Any], difference: Any) -> None:
    assert told(talk(), talk(**changed)) == [difference]


def test_what_only_one_of_them_has_is_said_with_its_place() -> None:
    longer = talk(runs=2)
    found = compare(talk(), longer)
    assert [each.reason for each in found.differences] == ["missing"]
    assert found.differences[0].places == (None, "/runs/1")
    assert "in the second session only" in found.differences[0].text
    assert [pair.runs[0] is None for pair in found.runs] == [False, True]
    back = compare(longer, talk())
    assert back.differences[0].places == ("/runs/1", None)
    assert "in the first session only" in back.differences[0].text


def test_places_are_those_of_the_calls_in_both_documents() -> None:
    (difference,) = compare(talk(), talk(amount=2)).differences
    for place, session in zip(difference.places, (talk(), talk(amount=2)), strict=True):
        found: Any = json.loads(session.model_dump_json())
        for step in (place or "").split("/")[1:]:
            found = found[int(step)] if isinstance(found, list) else found[step]
        assert found["name"] == "pay"
    assert difference.text == "tool call 1 of root ('pay'): arguments differs at /arguments/amount: recorded 1, now 2"


def test_of_very_many_differences_the_first_are_told() -> None:
    one, other = talk(runs=MOST), talk(runs=MOST, answer="no", amount=2)
    found = compare(one, other)
    assert len(found.differences) == MOST
    assert found.cut
