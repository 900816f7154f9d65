"""What differs by itself in model requests: named in a changes file, not compared, and told."""

from __future__ import annotations

from typing import Any

import openai
import pytest

import spanreel
from replaying import Book, text
from spanreel.errors import ReplayFailed, ReplayRefused
from spanreel.replay.changing.change_files import parse_changes
from spanreel.replay.changing.changes import Changes
from spanreel.replay.judging.verdict import Report, Verdict

DATED = {"at": ["/messages/0/parts/0/content"], "pattern": r"\d{4}-\d\d-\d\d"}


def play(instructions: str, *volatile: dict[str, Any], more: bool = False) -> Report:
    book = Book()
    run = book.run()
    said = [text("system", "Be brief. Today is 2026-03-01."), text("user", "hi")]
    book.model(run, said, text("assistant", "yes"), finish_reasons=["stop"])
    with spanreel.replay(book.session(), changes={"volatile": list(volatile)}, check=False) as playing:
        ask(instructions, more=more)
    assert playing.report is not None
    return playing.report


@spanreel.run(agent="demo")
def ask(instructions: str, *, more: bool) -> None:
    client = openai.OpenAI(base_url="http://127.0.0.1:9/v1", api_key="none", max_retries=0)
    messages: list[Any] = [{"role": "system", "content": instructions}, {"role": "user", "content": "hi"}]
    messages += [{"role": "user", "content": "more"}] if more else []
    client.chat.completions.create(model="gpt-5", messages=messages)


def test_another_date_passes_where_dates_are_volatile_and_is_told() -> None:
    report = play("Be brief. Today is 2027-12-24.", DATED)
    assert report.verdict is Verdict.PASS
    assert report.uncompared["volatile /messages/0/parts/0/content"] == 1
    assert report.model_calls.live == 0


def test_the_same_request_has_nothing_to_tell() -> None:
    report = play("Be brief. Today is 2026-03-01.", DATED)
    assert (report.verdict, [name for name in report.uncompared if "volatile" in name]) == (Verdict.PASS, [])


def test_other_words_around_the_date_are_a_divergence() -> None:
    report = play("Be long. Today is 2027-12-24.", DATED)
    assert report.verdict is Verdict.FAIL
    assert report.first_divergence is not None
    assert report.first_divergence["pointer"] == "/messages/0/parts/0/content"


def test_without_a_pattern_the_whole_value_is_volatile_and_nothing_else() -> None:
    anything = {"at": ["/messages/0/parts/*/content"]}
    assert play("Whatever.", anything).verdict is Verdict.PASS
    assert play("Whatever.", anything, more=True).verdict is Verdict.FAIL


@pytest.mark.parametrize(("agent", "verdict"), [("root", Verdict.PASS), ("*", Verdict.PASS), ("root/*", Verdict.FAIL)])
def test_volatile_is_meant_for_the_agents_that_it_names(agent: str, verdict: Verdict) -> None:
    assert play("Be brief. Today is 2027-12-24.", {**DATED, "agent": agent}).verdict is verdict


def test_a_date_that_is_not_declared_is_a_divergence() -> None:
    with pytest.raises(ReplayFailed), spanreel.replay(dated()):
        ask("Today is 2027-12-24.", more=False)


def dated() -> Any:
    book = Book()
    book.model(book.run(), [text("system", "Today is 2026-03-01."), text("user", "hi")], text("assistant", "yes"))
    return book.session()


@pytest.mark.parametrize(
    "wrong", [{"at": []}, {"at": ["messages"]}, {"at": ["/messages"], "pattern": "("}, {"at": ["/a"], "more": 1}]
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ReplayRefused, match="volatile"):
        parse_changes({"volatile": [wrong]}, "changes.toml")


def test_volatile_makes_no_model_live() -> None:
    assert not Changes.model_validate({"volatile": [DATED]}).touches_models
