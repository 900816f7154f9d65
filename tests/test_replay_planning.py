"""What a replay would do, said before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinds import Scene, hand_written, record, script
from spanreel.cli import main
from spanreel.replay.changing.change_files import parse_changes
from spanreel.replay.running.planning import plan
from spanreel.session import Session
from spanreel.session_files import write_session
from wire_server import calls, completion


def look(city: str) -> str:
    """Look."""
    return f"sunny in {city}"


def refund(order: str) -> str:
    """Pay back."""
    return "paid"


SCENE = Scene(
    script(calls(("a", "look", {"city": "Rome"})), calls(("b", "refund", {"order": "A"})), completion("Done.")),
    [look, refund],
)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return record(lambda: hand_written(SCENE), tmp_path)


def test_every_tool_and_every_call_is_named(session: Session) -> None:
    planned = plan(session, None, parse_changes({}, "changes"))
    assert planned.refused is None
    text = "\n".join(planned.lines)
    assert text.count("answered from the recording") == 5
    assert "look: from the recording; a call that is not there ends the run" in text
    assert planned.lines[-1] == "it would start"


def test_policies_and_changes_are_told_of_each_call(session: Session) -> None:
    told = {
        "from_turn": 1,
        "tool_policy": {
            "side_effects": ["refund"],
            "default": {"type": "passthrough"},
            "tools": {"look": {"type": "static", "cases": [{"result": "rain"}]}},
        },
    }
    text = "\n".join(plan(session, None, parse_changes(told, "changes")).lines)
    assert "the model is live from turn 1 on" in text
    assert text.count("asked live") == 2
    assert "look: one of 1 fixed answers" in text
    assert "refund: may not run, and ends the run, changes something in the world" in text


def test_what_is_changed_at_a_fork_is_told_to_count_from_there_on(session: Session) -> None:
    told = {"from_turn": 1, "overrides": [{"settings": {"temperature": 0}}]}
    assert "\n".join(plan(session, None, parse_changes(told, "changes")).lines).count("asked live") == 2


def test_the_command_runs_nothing_and_says_whether_it_would_start(
    session: Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "session.json"
    file.write_text(write_session(session))
    assert main(["replay", str(file), "--plan", "--model", "other"]) == 0
    assert "root: model other" in capsys.readouterr().out
    assert main(["replay", str(file), "--plan", "--agent", "root/nobody#0", "--model", "other"]) == 3
    assert "refused: no agent 'root/nobody#0' was recorded" in capsys.readouterr().out
    assert main(["replay", str(file), "--plan", "--from", "3"]) == 0
    assert main(["replay", str(file), "--plan", "--from", "4"]) == 3
    assert "refused: no run of 4 turns was recorded, after which to go on; most: 3" in capsys.readouterr().out
