"""The acceptance cases of replay about what is not in the recording as it was: 15 (redacted) and 16 (lost)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import kinds
import spanreel
from acceptance import case
from kinds import Kind, Scene, hand_written, record, script
from spanreel.errors import ReplayRefused
from spanreel.model import Fidelity
from spanreel.redaction import make_policy
from spanreel.replay.judging.report import to_text
from spanreel.replay.judging.verdict import Report, Verdict
from spanreel.session import Session
from spanreel.session_files import write_session
from spanreel_collector.conversion.convert import convert_files
from wire_server import calls, completion

JANE = "jane.doe" + "@example.org"
JOHN = "john.roe" + "@example.org"

NOTHING = {"type": "object", "properties": {}}

ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


def find(email: str) -> dict[str, Any]:
    """Look a customer up."""
    ran.append(email)
    return {"name": "Jane", "email": email}


def write(email: str, text: str) -> str:
    """Write to a customer."""
    ran.append(email)
    return "sent"


def about(email: str) -> Scene:
    asked = calls(("call_1", "find", {"email": email}))
    written = calls(("call_2", "write", {"email": email, "text": f"Dear {email}"}))
    return Scene(
        script(asked, written, completion(f"I wrote to {email}.")), [find, write], question=f"Write to {email}."
    )


def play(session: Session, kind: Kind, scene: Scene, **more: Any) -> Report:
    """Replay an agent with consent to what is redacted; its report, with nothing run, reached or asked."""
    ran.clear()
    report = kinds.play(session, kind, scene, serve_redacted=True, **more)
    assert ran == []
    return report


@case(15)
def test_15_the_same_address_matches_though_the_recording_does_not_hold_it(kind: Kind, tmp_path: Path) -> None:
    scene = about(JANE)
    session = record(lambda: kind(scene), tmp_path)
    assert JANE in ran
    assert JANE not in write_session(session)
    assert JANE not in (tmp_path / "traces.jsonl").read_text()
    report = play(session, kind, scene)
    assert report.verdict is Verdict.PASS, to_text(report)
    assert (report.model_calls.matched, report.tool_calls.matched) == (3, 2)


@case(15)
def test_15_another_address_misses(kind: Kind, tmp_path: Path) -> None:
    session = record(lambda: kind(about(JANE)), tmp_path)
    report = play(session, kind, about(JOHN))
    assert report.verdict is Verdict.FAIL
    assert "model call 1 of root diverged" in report.reasons[0]
    assert JOHN not in to_text(report)


@case(15)
def test_15_answers_that_are_redacted_are_served_with_consent_only(tmp_path: Path) -> None:
    session = record(lambda: hand_written(about(JANE)), tmp_path)
    with pytest.raises(ReplayRefused, match="--serve-redacted") as refused, spanreel.replay(session):
        pass
    assert "model call 1 of root" in str(refused.value)
    assert "tool call 1 of root ('find')" in str(refused.value)
    assert not session.replay.eligible
    assert any("--serve-redacted" in (reason.remedy or "") for reason in session.replay.reasons)


@case(15)
def test_15_with_another_key_nothing_can_be_said(kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = record(lambda: kind(about(JANE)), tmp_path)
    monkeypatch.setenv("SPANREEL_REDACTION_KEY", "another key than that of the tests")
    report = play(session, kind, about(JANE))
    assert report.verdict is Verdict.INCONCLUSIVE
    assert "the key of its digests is not here" in report.reasons[0]
    (key_id,) = session.redaction.key_ids
    assert any(key_id in note and "SPANREEL_REDACTION_KEY_FILE" in note for note in report.notes)
    assert play(session, kind, replace(about(JANE), instructions="Be long.")).verdict is Verdict.FAIL


@case(15)
def test_15_an_older_key_of_the_file_is_known_again(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = "the key of last year, which is long", "the key of this year, which is long"
    file = tmp_path / "keys"
    file.write_text(f"{old}\n")
    file.chmod(0o600)
    monkeypatch.delenv("SPANREEL_REDACTION_KEY")
    monkeypatch.setenv("SPANREEL_REDACTION_KEY_FILE", str(file))
    policy = make_policy("rotated/1")
    session = record(lambda: kind(about(JANE)), tmp_path, redaction=policy)
    file.write_text(f"{new}\n{old}\n")
    again = make_policy("rotated/1")
    assert play(session, kind, about(JANE), redaction=again).verdict is Verdict.PASS


@case(15)
def test_15_without_any_key_values_are_masked_and_calls_that_differ_in_them_alone_are_not_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPANREEL_REDACTION_KEY")
    (tmp_path / "state").write_text("no folder can be made here")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    policy = make_policy("keyless/1")

    def name(email: str) -> str:
        ran.append(email)
        return email.partition(".")[0]

    asked = calls(("call_1", "name", {"email": JANE}))
    again = calls(("call_2", "name", {"email": JOHN}))
    scene = Scene(script(asked, again, completion("Fine.")), [name])
    session = record(lambda: hand_written(scene), tmp_path, redaction=policy)
    assert session.redaction.policy == policy.label
    assert policy.label.endswith(";keyless")
    assert session.redaction.key_ids == []
    assert [call.arguments for run in session.runs for call in run.tool_calls()] == [{"email": "[redacted]"}] * 2
    tool = spanreel.tool()(name)

    @spanreel.run(agent="care")
    def calls_in_another_order() -> None:
        messages: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Go."}]
        offered: Any = {"type": "function", "function": {"name": "name", "parameters": NOTHING}}
        with scene.client() as client:
            client.chat.completions.create(model="gpt-5", messages=messages, tools=[offered])
        tool(JOHN)

    ran.clear()
    with spanreel.replay(session, check=False, serve_redacted=True, redaction=make_policy("keyless/1")) as playing:
        calls_in_another_order()
    assert ran == []
    assert playing.report is not None
    assert playing.report.ambiguous == ("tool call 1 of root ('name')",)
    assert any("no key could be kept" in note for note in playing.report.notes)


@case(16)
def test_16_arguments_that_were_cut_are_no_identity_and_do_not_share_a_result(kind: Kind, tmp_path: Path) -> None:
    def store(text: str) -> int:
        ran.append("store")
        return len(ran)

    long = "word " * 600
    asked = calls(("call_1", "store", {"text": f"{long}one"}), ("call_2", "store", {"text": f"{long}two"}))
    scene = Scene(script(asked, completion("Stored.")), [store])
    settings = replace(spanreel.read_settings(), max_value_bytes=2048)
    session = record(lambda: kind(scene), tmp_path, settings=settings)
    first, second = [call for run in session.runs for call in run.tool_calls()]
    assert first.fidelity["arguments"] is second.fidelity["arguments"] is Fidelity.TRUNCATED
    assert first.arguments == second.arguments
    assert not session.replay.eligible
    assert any("arguments truncated" in reason.reason for reason in session.replay.reasons)
    report = play(session, kind, scene)
    assert report.verdict is Verdict.INCONCLUSIVE
    assert report.tool_calls.matched == 0
    assert any("tool call 1 of root ('store'), tool call 2 of root ('store')" in note for note in report.notes)


@case(16)
def test_16_a_call_that_lost_attributes_on_the_way_is_listed_and_never_matched(kind: Kind, tmp_path: Path) -> None:
    scene = Scene(script(completion("Hi.")))
    session = record(lambda: kind(scene), tmp_path)
    assert play(session, kind, scene).verdict is Verdict.PASS
    file = tmp_path / "traces.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for span in [span for line in lines for one in line["resourceSpans"] for span in one["scopeSpans"][0]["spans"]]:
        if span["name"].startswith("chat"):
            span["attributes"] = [one for one in span["attributes"] if one["key"] != "gen_ai.input.messages"]
            span["droppedAttributesCount"] = 1
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (lossy,) = convert_files([str(file)]).sessions
    assert not lossy.replay.eligible
    report = play(lossy, kind, scene)
    assert report.verdict is Verdict.INCONCLUSIVE
    assert report.model_calls.matched == 0
    assert any("model call 1 of root" in note for note in report.notes)
