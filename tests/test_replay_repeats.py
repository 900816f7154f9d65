"""Replays with a live model, made several times: the spread, beside the unchanged agent's; and what they cost."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from kinds import Scene, hand_written, record
from spanreel import cli
from spanreel.session_files import write_session
from wire_server import calls, completion

pytestmark = pytest.mark.slow

PRICES = """
[prices."gpt-5"]
input = 2.0
output = 10.0
[prices.v2]
input = 1.0
output = 5.0
"""
NUMBERS = itertools.count()
LONG = [0]
"""How many answers of the live models were long so far."""


def status(order: str) -> str:
    """Where it is."""
    return "shipped"


def answer(body: dict[str, Any]) -> Any:
    """One call of the tool, or two; the new model uses more tokens, and another number each time."""
    said = [message for message in body["messages"] if message["role"] == "assistant"]
    if not said:
        return calls(("call_1", "status", {"order": "A"}))
    made = completion("It has shipped.")
    more = next(NUMBERS) if body["model"] == "v2" else 0
    made["usage"] = {"prompt_tokens": 20, "completion_tokens": 5 + more, "total_tokens": 25 + more}
    return made


def entry(question: str) -> str:
    return hand_written(Scene(answer, [status], question=question))


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", list(sys.path))
    file = tmp_path / "session.json"
    file.write_text(write_session(record(lambda: entry("Go."), tmp_path)))
    return file


def replay(session: Path, *words: str) -> tuple[int, dict[str, Any]]:
    report = session.with_name("report.json")
    code = cli.main(["replay", str(session), "--entry", f"{__name__}:entry", "--report", str(report), *words])
    return code, json.loads(report.read_text()) if report.exists() else {}


def test_three_replays_show_the_spread_beside_the_unchanged_agents(
    session: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, report = replay(session, "--model", "v2", "--times", "3", "--control")
    assert (code, report["verdict"]) == (0, "PASS")
    told = report["repeats"]
    assert (told["times"], told["verdicts"]) == (3, {"PASS": 3})
    tokens = told["spread"]["output_tokens"]["values"]
    assert tokens == [tokens[0], tokens[0] + 1, tokens[0] + 2]
    assert told["spread"]["output_tokens"]["median"] == tokens[1]
    assert told["spread"]["model_calls"]["values"] == [2, 2, 2]
    assert told["unchanged"]["output_tokens"]["least"] == told["unchanged"]["output_tokens"]["most"] == 7
    assert told["apart"] == (["output_tokens"] if tokens[0] > 7 else [])
    said = capsys.readouterr().out
    assert "times     3: 3 PASS" in said
    assert "; unchanged 7 (7 to 7)" in said


def test_the_verdict_of_several_replays_is_the_worst(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = itertools.count()

    def sometimes(body: dict[str, Any]) -> Any:
        if not any(message["role"] == "assistant" for message in body["messages"]) and next(asked) == 1:
            return completion("No idea.")
        return answer(body)

    monkeypatch.setattr(sys.modules[__name__], "entry", lambda question: hand_written(Scene(sometimes, [status])))
    code, report = replay(session, "--model", "v2", "--times", "3")
    assert (code, report["verdict"]) == (1, "FAIL")
    assert report["repeats"]["verdicts"] == {"FAIL": 1, "PASS": 2}


def test_one_replay_with_a_live_model_says_that_it_is_few(session: Path) -> None:
    _, report = replay(session, "--model", "v2")
    assert any("--times 3" in note for note in report["notes"])
    _, report = replay(session)
    assert not any("--times" in note for note in report["notes"])


def test_what_a_replay_costs_more_stands_beside_its_tokens(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changes = session.with_name("changes.toml")
    changes.write_text(PRICES)
    _, report = replay(session, "--model", "v2", "--changes", str(changes))
    tokens, cost = report["tokens"], report["cost"]
    assert cost["recorded"] == pytest.approx((29 * 2 + 7 * 10) / 1e6)
    assert cost["live"] == pytest.approx((tokens["live"]["input_tokens"] + tokens["live"]["output_tokens"] * 5) / 1e6)
    assert cost["delta"] == pytest.approx(cost["live"] - cost["recorded"])
    more = tokens["live"]["output_tokens"] - tokens["recorded"]["output_tokens"]
    assert tokens["delta"] == {"input_tokens": 0, "output_tokens": more}
    assert "cost      recorded 0.000128, live" in capsys.readouterr().out


def test_no_price_is_guessed(session: Path) -> None:
    _, report = replay(session, "--model", "v2")
    assert report["cost"] is None
    changes = session.with_name("changes.toml")
    changes.write_text(PRICES)
    _, report = replay(session, "--model", "v3", "--changes", str(changes))
    assert set(report["cost"]) == {"recorded"}


@pytest.mark.parametrize("words", [("--times", "0"), ("--control",), ("--times", "2", "--plan")])
def test_what_makes_no_sense_is_a_wrong_use(session: Path, words: tuple[str, ...]) -> None:
    assert replay(session, *words)[0] == 64


def test_a_file_of_other_sessions_that_cannot_be_read_refuses_the_replay(
    session: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = session.with_name("changes.toml")
    changes.write_text('[tool_policy]\nsessions = ["not-there.json"]\n')
    assert replay(session, "--changes", str(changes))[0] == 3
    assert "not-there.json" in capsys.readouterr().err
