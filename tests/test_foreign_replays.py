"""Agents that others have recorded, replayed by the same code with nothing running; what cannot be, and why.

``FOREIGN_TABLE=docs/foreign-recordings.md`` has the table in the docs written.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT
from golden.foreign import clerks
from golden.foreign.make import RECORDERS, pairings
from loopback import offline
from spanreel.errors import ReplayRefused
from spanreel.replay.judging.report import to_text
from spanreel.replay.judging.verdict import Report, Verdict
from spanreel.replay.running.runner import replay
from spanreel.session import Session
from spanreel_collector.conversion.convert import convert_files
from spanreel_collector.sessions.eligibility import judge

pytestmark = pytest.mark.slow

TABLE = "FOREIGN_TABLE"
PAGE = ROOT / "docs" / "foreign-recordings.md"
WITHOUT_TOOLS = {
    ("pydantic_ai", "openllmetry"): "it records the client's calls only, not PydanticAI's tools",
    ("pydantic_ai", "genai"): "it records the client's calls only, not PydanticAI's tools",
}
"""Replayed where somebody vouches that spanreel sees the tools now, as the recorder does not record that they run."""
WHOLE = [pairing for pairing in pairings() if pairing not in WITHOUT_TOOLS]
VOUCHED = {"recovered": True}


@pytest.fixture(autouse=True)
def nothing_is_reached() -> Iterator[None]:
    clerks.RAN.clear()
    with offline():
        yield


def recorded(clerk: str, recorder: str) -> Session:
    (session,) = convert_files([str(_file(clerk, recorder))]).sessions
    return session


def replayed(clerk: str, recorder: str, changes: dict[str, Any] | None = None) -> tuple[Report, str | None]:
    answered = None
    with replay(recorded(clerk, recorder), changes=changes, check=False) as playing:
        answered = clerks.CLERKS[clerk]("http://127.0.0.1:9/v1")
    assert playing.report is not None
    return playing.report, answered


@pytest.mark.parametrize(("clerk", "recorder"), WHOLE)
def test_an_agent_recorded_by_others_replays_with_nothing_live(clerk: str, recorder: str) -> None:
    session = recorded(clerk, recorder)
    assert judge(session).reasons == []
    report, answered = replayed(clerk, recorder)
    assert report.verdict is Verdict.PASS, (report.reasons, report.notes)
    assert (answered, clerks.RAN) == (clerks.ANSWER, [])
    # Of a handoff some recorders say only that the model asked for it.
    handed_over = clerk == "openai_agents_handoff"
    assert report.model_calls.matched == len(clerks.script(clerk))
    assert report.tool_calls.matched - len(clerks.runs(clerk)) in ((0, 1) if handed_over else (0,))


@pytest.mark.parametrize(("clerk", "recorder"), WITHOUT_TOOLS)
def test_tools_that_nothing_recorded_are_answered_where_somebody_vouches_that_they_are_seen(
    clerk: str, recorder: str
) -> None:
    report, answered = replayed(clerk, recorder, VOUCHED)
    assert report.verdict is Verdict.PASS, (report.reasons, report.notes)
    assert (answered, clerks.RAN) == (clerks.ANSWER, [])
    assert (report.model_calls.matched, report.tool_calls.matched) == (3, 3)


def test_what_a_comparison_with_others_recordings_forgave_stands_in_the_report() -> None:
    report, _ = replayed("langgraph", "openinference")
    assert dict(report.lenient) == {
        "all that a run said and its last message": 1,
        "who is named in messages and at results": 2,
    }
    (line,) = (line for line in to_text(report).splitlines() if line.startswith("  lenient"))
    assert "its last message (1), who is named in messages and at results (2)" in line


def test_a_loop_that_others_recorded_is_told_of_by_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clerks, "INSTRUCTIONS", "Something else.")
    report, _ = replayed("openai_loop", "logfire")
    assert report.reasons[0].startswith("model call 1 of root diverged at /messages/0")


def test_an_agent_whose_models_calls_were_not_recorded_is_no_replay() -> None:
    (session,) = convert_files([str(_file("openai_agents_without_models", "genai"))]).sessions
    (reason,) = judge(session).reasons
    assert "no call of its model was recorded" in reason.reason
    assert "instrumentation of the model's client" in (reason.remedy or "")


@pytest.mark.parametrize(("clerk", "recorder"), WHOLE)
@pytest.mark.parametrize("changed", ["INSTRUCTIONS", "QUESTION"])
def test_an_agent_that_asks_something_else_fails(
    clerk: str, recorder: str, changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clerks, changed, "Something else.")
    # What a framework makes of the replay's stop is its own.
    with replay(recorded(clerk, recorder), check=False) as playing, contextlib.suppress(Exception):
        clerks.CLERKS[clerk]("http://127.0.0.1:9/v1")
    assert playing.report is not None
    # A decorated run takes the recorded input in the place of its own, and says so; the rest is as it was.
    taken = any("was given the recorded input" in note for note in playing.report.notes)
    assert playing.report.verdict is (Verdict.PASS if taken and changed == "QUESTION" else Verdict.FAIL)
    assert clerks.RAN == []


@pytest.mark.parametrize(("clerk", "recorder"), WITHOUT_TOOLS)
def test_where_nothing_recorded_the_tools_a_replay_is_refused_before_they_run(clerk: str, recorder: str) -> None:
    reasons = {reason.reason for reason in judge(recorded(clerk, recorder)).reasons}
    assert reasons == {
        f"tool {name!r} was called, but nothing recorded it: in a replay it would really run"
        for name in ("weather", "book")
    }
    with pytest.raises(ReplayRefused, match="nothing would answer the tools 'weather', 'book'"):
        replayed(clerk, recorder)
    assert clerks.RAN == []


def test_the_table_in_the_docs_is_what_replays_say() -> None:
    said = table()
    if os.environ.get(TABLE):
        (ROOT / os.environ[TABLE]).write_text(said, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == said


# -- the table -------------------------------------------------------------------------------------------------------

HEAD = """# Recordings of others, replayed

`make docs-foreign` writes this page from what `tests/test_foreign_replays.py` sees: an agent asks for two tools at
once, then one more, then answers; others stream, have a tool that fails, or give the word to another agent.
`tests/golden/foreign/make.py` has them recorded by others; converted, the same code is
replayed with no model, no tool and no connection. What is compared is what both the recording and the request say; the
report lists fields that were left out under `uncompared`, and conventions in which both may differ under `lenient`.

"""


def table() -> str:
    lines = [f"| | {' | '.join(RECORDERS)} |", f"|---|{'---|' * len(RECORDERS)}"]
    lines += [
        f"| {clerk} | {' | '.join(_cell(clerk, recorder) for recorder in RECORDERS)} |" for clerk in clerks.CLERKS
    ]
    refused = [
        f"- {clerk} by {recorder}: {why}. Without consent it is refused: {'; '.join(_reasons(clerk, recorder))}."
        for (clerk, recorder), why in WITHOUT_TOOLS.items()
    ]
    made = [f"- {recorder}: {', '.join(_scopes(recorder))}" for recorder in RECORDERS]
    return HEAD + "\n".join([*lines, "", *refused, "", "Recorded by:", "", *made, ""])


def _cell(clerk: str, recorder: str) -> str:
    if (clerk, recorder) not in pairings():
        return "-"
    try:
        if (clerk, recorder) in WITHOUT_TOOLS:
            return f"{replayed(clerk, recorder, VOUCHED)[0].verdict} with `--recovered`"
        return str(replayed(clerk, recorder)[0].verdict)
    except ReplayRefused:
        return "refused"


def _reasons(clerk: str, recorder: str) -> list[str]:
    return list(dict.fromkeys(reason.reason for reason in judge(recorded(clerk, recorder)).reasons))


def _scopes(recorder: str) -> list[str]:
    """The instrumentation scopes of a recorder's traces, with their versions."""
    found = {
        (scope["scope"]["name"], scope["scope"].get("version"))
        for clerk, by in pairings()
        if by == recorder
        for line in gzip.decompress(_file(clerk, recorder).read_bytes()).splitlines()
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
    }
    return sorted(f"{name} {version}" for name, version in found if version)


def _file(clerk: str, recorder: str) -> Path:
    return ROOT / "tests" / "golden" / "foreign" / f"{clerk}.{recorder}.otlp.jsonl.gz"
