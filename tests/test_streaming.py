"""Conversion of files in bounded memory: several processes, sessions that grow, the account, the progress."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from otlp_lines import GENAI, agent, chat, line, log, said, span, tool
from spanreel import conventions as names
from spanreel.session import Session
from spanreel.session_files import load_sessions, read_session, write_session
from spanreel_collector.conversion.convert import convert_files
from spanreel_collector.conversion.growth import grow
from spanreel_collector.conversion.progress import Progress
from spanreel_collector.conversion.unions import Unions
from spanreel_collector.sessions.eligibility import Outcome, forecast, judge_run
from test_convert import run
from test_show import run as show

pytestmark = pytest.mark.slow

DUMPS = sorted((Path(__file__).parent / "golden").glob("*.otlp.jsonl"))


def conversation(number: int, runs: int, first: int = 0) -> str:
    """Runs of one conversation, each in a trace of its own."""
    lines = []
    for index in range(first, first + runs):
        trace = f"{number * 1000 + index + 1:032x}"
        named = {names.CONVERSATION_ID: f"c{number}"}
        when: dict[str, Any] = {"trace": trace, "start": number * 100 + index * 5}
        asked = [said("user", f"question {index}")]
        call = chat(2, asked, said("assistant", f"answer {index}"), 1, **when)
        lines.append(line(agent(1, "demo", also=named, seconds=4, **when), call, scope=GENAI))
    return "".join(lines)


def loop(number: int, count: int) -> str:
    """Model calls without an agent, each in a trace of its own, that go on with one another."""
    messages, lines = [said("user", f"loop {number}")], []
    for index in range(count):
        answer = said("assistant", f"step {number}.{index}")
        where: dict[str, Any] = {"trace": f"{number * 1000 + 900 + index:032x}", "start": number * 100 + index}
        lines.append(line(chat(1, list(messages), answer, **where), scope=GENAI))
        messages += [answer, said("user", f"on {index}")]
    return "".join(lines)


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Conversations and loops, their lines mixed, and one that is cut off."""
    texts = [conversation(number, 3) for number in range(1, 9)] + [loop(number, 3) for number in range(11, 15)]
    lines = [one for text in texts for one in text.splitlines()]
    path = tmp_path / "many.jsonl"
    path.write_text("\n".join([*lines[::2], *lines[1::2], '{"resourceSpans": [{']))
    return path


# -- processes -------------------------------------------------------------------------------------------------------


def test_several_processes_give_the_same_documents_and_the_same_account(
    many: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said_by, written = [], []
    for jobs in ("1", "3"):
        out = tmp_path / f"{jobs}.json"
        assert run(many, *DUMPS, "--jobs", jobs, "--report", "--out", out) == 1
        said_by.append(capsys.readouterr().err)
        written.append(out.read_bytes())
    assert written[0] == written[1]
    assert said_by[0] == said_by[1]
    assert said_by[0].splitlines()[0].startswith("spanreel: ")
    in_memory = convert_files([str(many), *map(str, DUMPS)])
    assert [one.id for one in load_sessions(tmp_path / "1.json")] == [one.id for one in in_memory.sessions]


def test_loops_across_traces_are_one_session_though_their_traces_are_read_apart(many: Path) -> None:
    found = convert_files([str(many)]).sessions
    assert sorted(len(one.runs) for one in found) == [3] * 12
    assert {one.key.kind for one in found} == {"conversation", "trace"}


def test_a_trace_of_two_conversations_keeps_each_whole(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    both = [agent(number, "a", also={names.CONVERSATION_ID: f"c{number}"}, trace="e" * 32) for number in (1, 2)]
    path.write_text(line(*both, scope=GENAI) + conversation(1, 2) + conversation(2, 1))
    found = convert_files([str(path)]).sessions
    assert {one.key.value: len(one.runs) for one in found} == {"c1": 3, "c2": 2}


@pytest.mark.slow
def test_memory_is_the_same_whatever_the_length_of_the_input(tmp_path: Path) -> None:
    peaks = []
    for count in (300, 3000):
        path = tmp_path / "traces.jsonl"
        path.write_text("".join(conversation(number, 3) for number in range(count)))
        program = "import resource, sys; from spanreel.cli import main; main(sys.argv[1:])\n"
        program += "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
        words = ["convert", str(path), "--format", "jsonl", "--out", str(tmp_path / "out.jsonl")]
        done = subprocess.run([sys.executable, "-c", program, *words], check=True, capture_output=True, text=True)
        peaks.append(int(done.stderr.splitlines()[-1]))
    assert peaks[1] < peaks[0] * 1.4


def test_nothing_is_left_in_the_folder_for_temporary_files(
    many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    run(many, "--out", tmp_path / "out.json")
    assert list(folder.iterdir()) == []


def test_names_that_belong_together_have_the_least_of_them_as_chief() -> None:
    unions = Unions[int]()
    for one, other in ((5, 4), (2, 3), (4, 3), (8, 9)):
        unions.join(one, other)
    assert unions.pairs() == [(2, 2), (3, 2), (4, 2), (5, 2), (8, 8), (9, 8)]


# -- sessions that grow ----------------------------------------------------------------------------------------------


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_delivered_twice_changes_nothing_and_more_raises_the_revision(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, first, second, other = (tmp_path / name for name in ("out", "1.jsonl", "2.jsonl", "3.jsonl"))
    first.write_text(conversation(1, 2))
    second.write_text(conversation(1, 2) + conversation(1, 1, first=2) + conversation(2, 1))
    other.write_text(conversation(1, 1, first=3))
    words = ("--format", form, "--out", f"{out}{os.sep}")

    def summary() -> str:
        return capsys.readouterr().err.strip()

    assert run(first, *words) == 0
    assert summary() == "spanreel: 1 session, 2 runs created"
    before = files_of(out)
    assert run(first, *words) == 0
    assert summary() == "spanreel: 1 session unchanged"
    assert files_of(out) == before
    assert run(second, *words) == 0
    assert summary() == "spanreel: 1 session created, 1 session extended"
    known = {one.key.value: one for path in out.iterdir() for one in load_sessions(path)}
    assert {key: (one.revision, len(one.runs)) for key, one in known.items()} == {"c1": (2, 3), "c2": (1, 1)}

    # What comes alone joins what is known, and what is known and comes alone changes nothing.
    assert run(other, *words) == 0
    assert summary() == "spanreel: 1 session extended"
    for again in (first, second, other):
        grown = files_of(out)
        assert run(again, *words) == 0
        assert "extended" not in summary()
        assert files_of(out) == grown
    (one,) = (one for path in out.iterdir() for one in load_sessions(path) if one.key.value == "c1")
    texts = [one.messages[index].parts[0]["content"] for part in one.runs for index in (*part.input, *part.output)]
    wanted = [text for number in range(4) for text in (f"question {number}", f"answer {number}")]
    assert (one.revision, texts) == (3, wanted)
    assert one.replay.eligible


def test_a_run_of_which_less_came_this_time_stays_as_it_is_known(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_text(conversation(1, 1))
    (whole,) = convert_files([str(path)]).sessions
    only_run = json.loads(path.read_text())
    only_run["resourceSpans"][0]["scopeSpans"][0]["spans"].pop()
    path.write_text(json.dumps(only_run))
    (part,) = convert_files([str(path)]).sessions
    assert grow(whole, part) is None
    grown = grow(part, whole)
    assert grown is not None
    assert (grown.revision, grown.runs) == (2, whole.runs)


def test_a_file_that_is_no_session_is_left_as_it_is_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "traces.jsonl", tmp_path / "out"
    path.write_text(conversation(1, 1))
    assert run(path, "--out", f"{out}{os.sep}") == 0
    (file,) = out.iterdir()
    file.write_text("mine")
    assert run(path, "--out", out) == 1
    assert f"{file}: is left as it is: not a session document" in capsys.readouterr().err
    assert file.read_text() == "mine"


# -- the account -----------------------------------------------------------------------------------------------------


def test_the_report_says_what_was_not_understood_and_which_runs_could_be_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "traces.jsonl"
    odd = {"app.note": "x", "app.list.0.name": "y", "app.list.1.name": "z"}
    path.write_text(
        line(
            agent(1, "a", seconds=9),
            chat(2, [said("user", "Hi")], said("assistant", "Ho"), 1, also=odd, droppedAttributesCount=2),
            tool(3, "t", {}, "ok", 1),
            scope=GENAI,
        )
        + line(agent(4, "b", trace="b" * 32), chat(5, None, None, 4, trace="b" * 32), scope=GENAI)
        + line(span(6, "GET /\x1b[2J", {"http.route": "/"}, trace="c" * 32), scope="web")
    )
    assert run(path, "--report", "--out", tmp_path / "out.json") == 0
    said_lines = capsys.readouterr().err.splitlines()
    assert "replay: 1 of 2 runs (50%) could be replayed" in said_lines
    assert "  genai: 1 of 2" in said_lines
    theirs = "let its instrumentation record content, or record with spanreel"
    assert f"    1 not: model call's input absent; {theirs}" in said_lines
    assert f"       2  {GENAI}  app.list.N.name" in said_lines
    assert f"       1  {GENAI}  app.note" in said_lines
    assert f"       2  {GENAI}" in said_lines
    assert "       1  web  GET /\ufffd[2J" in said_lines
    assert not any("gen_ai.request.model" in one or "gen_ai.operation.name" in one for one in said_lines)


def test_the_forecast_says_what_becomes_of_each_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_text(
        line(
            agent(1, "a", seconds=9),
            chat(2, [said("user", "Hi")], said("assistant", "Ho"), 1),
            tool(3, "good", {}, "ok", 1),
            span(4, "execute_tool bad", {names.OPERATION: "execute_tool", names.TOOL_NAME: "bad"}, 1),
            scope=GENAI,
        )
    )
    (session,) = convert_files([str(path)]).sessions
    found = {one.name: one for one in forecast(session)}
    assert {name: one.outcome for name, one in found.items()} == {
        "gpt-5": Outcome.ANSWERED,
        "good": Outcome.ANSWERED,
        "bad": Outcome.IN_DOUBT,
    }
    assert found["bad"].reason == "tool 'bad': arguments absent; tool 'bad': result absent"
    assert judge_run(session, session.runs[0]) == session.replay
    assert show(path, "--forecast") == 0
    shown = capsys.readouterr().out
    assert "cannot be replayed exactly" in shown
    assert f"in doubt  bad  {found['bad'].place}" in shown


# -- progress --------------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_for_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spanreel_collector.conversion.progress._EVERY", 0.0)
    for stream, seen in ((Terminal(), True), (io.StringIO(), False)):
        with Progress(stream) as progress:
            progress.begin("reading", 100)
            progress.advance(50)
            progress.begin("converting", 0)
            progress.advance(2_000_000)
        assert ("reading [############            ]  50%" in stream.getvalue()) is seen
        assert ("converting: 2 MB" in stream.getvalue()) is seen
        assert stream.getvalue().endswith("\x1b[K") is seen


# -- whatever comes --------------------------------------------------------------------------------------------------


def documents(path: Path) -> list[Session]:
    conversion = convert_files([str(path)])
    assert all(read_session(write_session(one)) == one for one in conversion.sessions)
    return list(conversion.sessions)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_dump_that_was_damaged_makes_the_converter_fail(data: st.DataObject, tmp_path: Path) -> None:
    content = bytearray(data.draw(st.sampled_from(DUMPS)).read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(content) - 1))
        match data.draw(st.sampled_from(["flip", "cut", "repeat", "insert"])):
            case "flip":
                content[place] = data.draw(st.integers(0, 255))
            case "cut":
                del content[place : place + data.draw(st.integers(1, 200))]
            case "repeat":
                content[place:place] = content[place : place + data.draw(st.integers(1, 2000))]
            case "insert":
                content[place:place] = data.draw(
                    st.sampled_from([b'"', b"\\ud800", b"\x00", b"NaN", b"[" * 500, b"1e999"])
                )
        content = content or bytearray(b"\n")
    path = tmp_path / "damaged.jsonl"
    path.write_bytes(bytes(content))
    documents(path)
    assert run(path, "--report", "--out", tmp_path / "out.json") in (0, 1)


LEAVES: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from(["\ud800", "\x00", "", "{", '["', '"\\"[1]\\""', "9" * 300, "NaN", "\u202e"]),
    st.text(max_size=8),
)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner))
KEYS = st.sampled_from(
    [
        names.OPERATION,
        names.INPUT_MESSAGES,
        names.OUTPUT_MESSAGES,
        names.TOOL_CALL_ARGUMENTS,
        names.TOOL_CALL_RESULT,
        names.CONVERSATION_ID,
        names.USAGE_INPUT_TOKENS,
        "openinference.span.kind",
        "llm.input_messages.0.message.content",
        "llm.input_messages.999999999999.message.role",
        "traceloop.span.kind",
        "ai.operationId",
        "metadata",
        "mastra.span.type",
    ]
)


def any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [{"key": key, "value": any_value(item)} for key, item in value.items()]}}
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(item) for item in value]}}
    kinds = {bool: "boolValue", int: "intValue", float: "doubleValue", str: "stringValue"}
    return {kinds[type(value)]: value} if value is not None else {}


@st.composite
def trees(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Spans with few ids, so that parents go round and ids come twice, and with any values."""
    ids = st.sampled_from([f"{number:016x}" for number in range(1, 5)])
    times = st.sampled_from(["0", str(2**64 - 1), "1795000000000000000", 5, None])
    return [
        {
            "traceId": draw(st.sampled_from(["a" * 32, "b" * 32])),
            "spanId": draw(ids),
            "parentSpanId": draw(ids | st.just("")),
            "name": draw(st.sampled_from(["chat x", "execute_tool t", "invoke_agent a", "\ud800", ""])),
            "startTimeUnixNano": draw(times),
            "endTimeUnixNano": draw(times),
            "droppedAttributesCount": draw(st.integers(0, 2)),
            "attributes": [
                {"key": draw(KEYS), "value": any_value(draw(VALUES))} for _ in range(draw(st.integers(0, 5)))
            ],
        }
        for _ in range(draw(st.integers(1, 6)))
    ]


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spans=trees(), scope=st.sampled_from([GENAI, "x", "ai", "openinference.instrumentation.openai"]))
def test_no_tree_and_no_value_makes_the_command_fail(spans: list[dict[str, Any]], scope: str, tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_text(line(*spans, scope=scope) + json.dumps(log("e", {"k": "v"}, 1)))
    assert run(path, "--report", "--format", "jsonl", "--out", tmp_path / "out.jsonl") in (0, 1)
    text = (tmp_path / "out.jsonl").read_bytes()
    assert all(read_session(one) for one in text.splitlines())
