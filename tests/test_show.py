"""`spanreel show`: a session as people read it."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path

import pytest

from otlp_lines import GENAI, asks, called, chat, line, model, ours, said, session, span_id, tool
from spanreel import conventions as names
from spanreel.model import Answer, Error, ErrorCategory, Fidelity, Operation, Request, Status, ToolKind, Usage
from spanreel.records import RunRecord, ToolRecord
from spanreel.session_files import load_sessions, read_session, write_session
from spanreel_collector.commands.show import SHOW
from spanreel_collector.show.session import Look, show_session

GOLDEN = Path(__file__).parent / "golden"


def run(*words: str | Path) -> int:
    parser = argparse.ArgumentParser()
    SHOW.configure(parser)
    return SHOW.run(parser.parse_args([str(word) for word in words]))


@pytest.mark.parametrize("name", ["spanreel", "genai", "openinference"])
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


def test_what_is_unusual_about_a_call_is_said() -> None:
    """Side calls, loose tools, handoffs, streams cut off, media, what failed, and what never ended."""
    media = {
        "role": "user",
        "parts": [{"type": "blob", "modality": "image", "content": ""}, {"type": "uri", "uri": "x"}],
    }
    search = {"type": "server_tool_call", "id": "w", "name": "web_search", "server_tool_call": {}}
    answer = {
        "role": "assistant",
        "parts": [{"type": "reasoning", "content": "hm"}, search, {"type": "odd"}, called("f", {})],
    }
    record = model([media], answer, run=1, turn=0)
    assert record.answer is not None
    cut = replace(
        record, answer=replace(record.answer, complete=False, streamed=True), fidelity={"input": Fidelity.TRUNCATED}
    )
    embeddings = replace(
        record, request=Request(Operation.EMBEDDINGS, "e"), answer=Answer(usage=Usage(None, 3, 2, None, 1))
    )
    error = Error(ErrorCategory.TOOL, "KeyError", "'x'")
    one = session(
        ours(1, RunRecord(run_id=span_id(1), path="root", started_only=True), seconds=0),
        ours(2, cut, 1),
        ours(3, ToolRecord("go", {}, None, kind=ToolKind.HANDOFF, target="billing", turn_index=0), 1),
        ours(4, ToolRecord("pay", {}, error=error, side_effect=True, turn_index=0, status=Status.ERROR), 1),
        ours(5, embeddings, 1),
    )
    assert show_session(one, Look(width=120)).splitlines() == [
        "session s-79b7b39475799337 trace aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, recorded, unfinished",
        "  2026-11-18 11:06:41 UTC",
        "  tokens: 10 in (2 cached), 5 out (1 reasoning)",
        "  replay: 3 in the way",
        "    /runs/0: the run never finished: the recording ends in the middle",
        "    /runs/0/turns/0/model_call/input: input truncated: a live request cannot be known again",
        "    /runs/0/turns/0/tool_calls/3: tool 'f' was asked for, and nothing tells what came of it",
        "",
        "agent root, #0 0000000000000001, unfinished, [input reconstructed]",
        "  user: [image] [uri]",
        "  turn 0",
        "    chat gpt-5 500 ms, 10 in, 2 out, streamed, cut off, [input truncated]",
        "      assistant: (hm) [web_search] -> f({})",
        "    provider web_search [result absent]",
        "      asked {}",
        "    handoff go 500 ms, to billing",
        "      asked {}",
        "      gave null",
        "    tool pay 500 ms, side effect, error",
        "      asked {}",
        "      tool: KeyError: 'x'",
        "    tool f not recorded, seen in messages, unfinished, [arguments reconstructed; result absent]",
        "      asked {}",
        "  embeddings e 500 ms, ? in (2 cached), 3 out (1 reasoning)",
    ]


def test_long_lists_of_reasons_are_cut_unless_all_is_asked_for() -> None:
    one = session(*(chat(number, None, said("assistant", "Ho")) for number in range(1, 9)), scope=GENAI)
    assert "and 3 more" in show_session(one, Look())
    assert "and 3 more" not in show_session(one, Look(full=True))


def test_every_line_fits_the_width_unless_all_is_asked_for() -> None:
    one = session(
        chat(1, [said("user", "word " * 100)], asks(called("f", {"text": "x" * 300}, "c"))),
        tool(2, "f", {"text": "x" * 300}, "y" * 300, also={names.TOOL_CALL_ID: "c"}),
        scope=GENAI,
    )
    assert max(map(len, show_session(one, Look(width=60)).splitlines())) == 60
    whole = show_session(one, Look(width=60, full=True))
    assert "y" * 300 in whole
    assert all(f", id {call.id}" in whole for call in one.runs[0].model_calls())
    assert all(f", id {call.id}" in whole for call in one.runs[0].tool_calls())


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


def test_what_is_in_the_way_of_a_replay_is_said_to_its_end() -> None:
    one = read_session((GOLDEN / "genai.session.json").read_bytes())
    (reason,) = one.replay.reasons
    lines = show_session(one, Look(width=60)).splitlines()
    start = lines.index("  replay: 1 in the way") + 1
    shown = lines[start : lines.index("", start)]
    assert " ".join(line.strip() for line in shown) == f"{reason.place}: {reason.reason}"
    assert len(shown) > 1
    assert all(len(line) <= 60 for line in shown)


def test_a_forecast_of_one_run_lists_its_own_calls_only(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(Path(__file__).parent / "golden" / "langsmith.sessions.json")
    sessions = load_sessions(path)
    session = next(one for one in sessions if any(list(run.model_calls()) for run in one.runs))
    run = next(one for one in session.runs if list(one.model_calls()))
    parser = argparse.ArgumentParser()
    SHOW.configure(parser)
    assert SHOW.run(parser.parse_args([f"{path}#{run.id}", "--forecast"])) == 0
    listed = capsys.readouterr().out.partition("calls\n")[2].splitlines()
    inside = {run.id}
    for one in session.runs:
        if one.parent is not None and one.parent.run in inside:
            inside.add(one.id)
    numbers = {f"/runs/{number}/" for number, one in enumerate(session.runs) if one.id in inside}
    calls = sum(len([*one.model_calls(), *one.tool_calls()]) for one in session.runs if one.id in inside)
    assert len(listed) == calls
    assert all(any(number in line for number in numbers) for line in listed)
