"""`spanreel show`: a session as people read it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import pytest

from otlp_lines import GENAI, asks, called, chat, line, said, session, tool
from spanreel import conventions as names
from spanreel.session import read_session, write_session
from spanreel_collector.commands import SHOW
from spanreel_collector.show import Look, show_session

GOLDEN = Path(__file__).parent / "golden"


def run(*words: str | Path) -> int:
    parser = argparse.ArgumentParser()
    SHOW.configure(parser)
    return SHOW.run(parser.parse_args([str(word) for word in words]))


@pytest.mark.parametrize("name", ["spanreel", "genai"])
def test_whole_sessions_are_shown_as_agreed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(GOLDEN / f"{name}.session.json", "--width", "100") == 0
    shown = capsys.readouterr().out
    expected = GOLDEN / f"{name}.show.txt"
    if os.environ.get("SPANREEL_GOLDEN") == "write":
        expected.write_text(shown, encoding="utf-8")
    assert shown == expected.read_text(encoding="utf-8")


def test_otlp_lines_are_converted_on_the_fly(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(GOLDEN / "spanreel.otlp.jsonl", "--width", "100") == 0
    assert capsys.readouterr().out == (GOLDEN / "spanreel.show.txt").read_text(encoding="utf-8")


def test_a_run_is_shown_alone(capsys: pytest.CaptureFixture[str]) -> None:
    path = GOLDEN / "spanreel.session.json"
    one = read_session(path.read_bytes())
    for selector in ("1", one.roots()[1].id):
        assert run(f"{path}#{selector}") == 0
        shown = capsys.readouterr().out
        assert "dry" in shown
        assert "get_weather" not in shown


def test_a_file_may_have_a_hash_in_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a#b.json"
    path.write_bytes((GOLDEN / "genai.session.json").read_bytes())
    assert run(path) == 0
    assert "get_weather" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("absent.json", "cannot read"),
        (f"{GOLDEN / 'spanreel.session.json'}#99", "has no run '99'"),
        (str(GOLDEN / "spanreel.show.txt"), "not a session document"),
    ],
)
def test_what_cannot_be_shown_is_said(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 1
    out, err = capsys.readouterr()
    assert (out, message in err) == ("", True)


def test_a_run_is_looked_for_in_all_sessions_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "two.jsonl"
    ours, theirs = (read_session((GOLDEN / f"{name}.session.json").read_bytes()) for name in ("spanreel", "genai"))
    path.write_text(write_session(ours) + "\n" + write_session(theirs) + "\n")
    assert run(path) == 0
    capsys.readouterr()
    assert run(f"{path}#{theirs.runs[0].id}") == 0
    assert theirs.id in capsys.readouterr().out
    assert run(f"{path}#nowhere") == 1
    assert "none of the 2 sessions" in capsys.readouterr().err


def test_what_could_not_be_read_of_otlp_lines_is_said_beside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_text(line(chat(1, [said("user", "Hi")], None), scope=GENAI) + "{")
    assert run(path) == 0
    assert "traces.jsonl:2: cut off" in capsys.readouterr().err


def test_every_line_fits_the_width_unless_all_is_asked_for() -> None:
    one = session(
        chat(1, [said("user", "word " * 100)], asks(called("f", {"text": "x" * 300}, "c"))),
        tool(2, "f", {"text": "x" * 300}, "y" * 300, also={names.TOOL_CALL_ID: "c"}),
        scope=GENAI,
    )
    assert max(map(len, show_session(one, Look(width=60)).splitlines())) == 60
    assert "y" * 300 in show_session(one, Look(width=60, full=True))


def test_what_a_model_said_cannot_steer_the_terminal() -> None:
    one = session(chat(1, [said("user", "a\x1b[2Jb\r\nc\u202ed")], said("assistant", "\x07")), scope=GENAI)
    shown = show_session(one, Look())
    assert "a\ufffd[2Jb c\ufffdd" in shown
    assert not {"\x1b", "\x07", "\r", "\u202e"} & set(shown)


def test_colour_is_only_added_where_it_is_asked_for() -> None:
    one = session(chat(1, [said("user", "Hi")], None, status={"code": 2, "message": "no"}), scope=GENAI)
    plain, coloured = show_session(one, Look()), show_session(one, Look(colour=True))
    assert "\x1b" not in plain
    for code in ("\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[0m"):
        assert code in coloured
        coloured = coloured.replace(code, "")
    assert coloured == plain
