"""`spanreel convert`, and documents as they come out of it."""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from otlp_lines import (
    GENAI,
    agent,
    asks,
    called,
    chat,
    line,
    log,
    model,
    ours,
    said,
    span,
    span_id,
    told,
)
from spanreel import conventions as names
from spanreel.errors import SessionError
from spanreel.model import Agent, Answer, Error, ErrorCategory, ToolKind
from spanreel.records import RunRecord, ToolRecord, TurnRecord
from spanreel.session_files import load_sessions, read_session, write_session
from spanreel_collector.commands.convert import CONVERT
from spanreel_collector.conversion.convert import convert_files
from spanreel_collector.sources.references import LARGEST

GOLDEN = Path(__file__).parent / "golden"
HI, HO = said("user", "Hi"), said("assistant", "Ho")


def run(*words: str | Path) -> int:
    parser = argparse.ArgumentParser()
    CONVERT.configure(parser)
    return CONVERT.run(parser.parse_args([str(word) for word in words]))


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """Two sessions."""
    path = tmp_path / "traces.jsonl"
    first = agent(1, "demo", also={names.CONVERSATION_ID: "c"}, seconds=9)
    path.write_text(line(first, chat(2, [HI], HO, 1), scope=GENAI) + line(agent(3, "b", trace="b" * 32), scope=GENAI))
    return path


# -- the command -----------------------------------------------------------------------------------------------------


def test_a_list_of_documents_goes_to_standard_output_and_the_summary_to_standard_error(
    traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(traces) == 0
    out, err = capsys.readouterr()
    assert [document["key"]["value"] for document in json.loads(out)] == ["c", "b" * 32]
    assert err == "spanreel: 2 sessions, 2 runs created\n"


def test_json_lines_hold_one_session_each(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(traces, "--format", "jsonl") == 0
    documents = [read_session(text) for text in capsys.readouterr().out.splitlines()]
    assert [document.key.value for document in documents] == ["c", "b" * 32]


def test_no_session_is_an_empty_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text("")
    assert run(path) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_a_file_gets_all_sessions_and_one_alone_is_a_document_of_its_own(traces: Path, tmp_path: Path) -> None:
    for form in ("json", "jsonl"):
        out = tmp_path / f"out.{form}"
        assert run(traces, "--format", form, "--out", out) == 0
        assert len(load_sessions(out)) == 2
    traces.write_text(line(chat(1, [HI], HO), scope=GENAI))
    assert run(traces, "--out", tmp_path / "one.json") == 0
    read_session((tmp_path / "one.json").read_bytes())


def test_a_folder_gets_a_file_for_each_session(traces: Path, tmp_path: Path) -> None:
    new, known = tmp_path / "new", tmp_path / "known"
    known.mkdir()
    assert run(traces, "--out", f"{new}{os.sep}") == 0
    assert run(traces, "--out", known, "--format", "jsonl") == 0
    first, second = (session.id for session in convert_files([str(traces)]).sessions)
    assert {path.name for path in new.iterdir()} == {f"{first}.json", f"{second}.json"}
    assert {path.name for path in known.iterdir()} == {f"{first}.jsonl", f"{second}.jsonl"}
    assert [load_sessions(path)[0].id for path in sorted(new.iterdir())] == sorted([first, second])


def test_what_failed_is_said_with_place_and_reason_and_the_rest_is_written(
    traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = json.dumps({"resourceMetrics": []})
    lost = json.dumps(log("hello", {}, 77))
    unknown = line(span(9, "GET /", {}), scope="app").strip()
    with traces.open("a") as file:
        for text in (metrics, lost, unknown):
            file.write(text + "\n")
        file.write('{"resourceSpans": [{"scope')
    out = tmp_path / "out.json"
    assert run(traces, tmp_path / "absent.jsonl", "--out", out) == 1
    assert capsys.readouterr().err == (
        "spanreel: 2 sessions, 2 runs created\n"
        "  skipped: 1 logs\n"
        "  skipped: 1 metrics\n"
        "  skipped: 1 spans of no known dialect\n"
        "  failed: 2\n"
        f"    {traces}:6: cut off after 26 bytes: EOF while parsing a string at line 1 column 26\n"
        f"    {tmp_path / 'absent.jsonl'}: cannot be opened: No such file or directory\n"
    )
    assert len(load_sessions(out)) == 2


@pytest.mark.parametrize("parts", [1.5, None, "text", {}, [None, 3, {"type": 5}, []]])
def test_messages_of_a_form_that_we_never_write_cost_only_themselves(parts: Any, tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    odd = json.dumps([{"role": "user", "parts": parts}, HI])
    call = ours(2, model([HI], HO), 1, also={names.INPUT_MESSAGES: odd, names.OUTPUT_MESSAGES: odd})
    run_span = ours(1, RunRecord(run_id=span_id(1), path="root"), also={names.INPUT_MESSAGES: odd})
    path.write_text(line(run_span, call) + line(ours(3, model([HI], HO), trace="b" * 32)))
    conversion = convert_files([str(path)])
    assert (len(conversion.sessions), conversion.faults) == (2, ())
    assert all(read_session(write_session(one)) == one for one in conversion.sessions)


def test_half_a_surrogate_pair_that_we_recorded_is_the_replacement_character_in_the_document(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_text(line(ours(1, ToolRecord("t", arguments={"a\ud800": "\ud83d"}, result=["x\udc00"]))))
    (session,) = convert_files([str(path)]).sessions
    (call,) = read_session(write_session(session)).runs[0].tool_calls()
    assert (call.arguments, call.result) == ({"a\ufffd": "\ufffd"}, ["x\ufffd"])


def test_a_document_printed_for_people_is_one_document(traces: Path) -> None:
    expected = convert_files([str(traces)])
    first = traces.read_text().splitlines()[0]
    traces.write_text(json.dumps(json.loads(first), indent=2))
    assert convert_files([str(traces)]).sessions == expected.sessions[:1]


def test_a_session_document_converts_to_itself_and_traces_are_no_session(
    traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents = tmp_path / "documents"
    assert run(traces, "--out", f"{documents}{os.sep}") == 0
    capsys.readouterr()
    known = min(documents.iterdir())
    assert run(known) == 0
    (again,) = json.loads(capsys.readouterr().out)
    first = json.loads(known.read_text(encoding="utf-8"))
    assert {**again, "source": None} == {**first, "source": None}
    with pytest.raises(SessionError, match="these are traces, not a session; first: spanreel convert FILE"):
        load_sessions(traces)


def test_of_many_that_failed_the_first_are_said_and_the_rest_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_text("no\n" * 60)
    assert run(path) == 1
    lines = capsys.readouterr().err.splitlines()
    assert (lines[1], len(lines), lines[-1]) == ("  failed: 60", 53, "    and 10 more")


def test_a_place_that_cannot_be_written_is_said(
    traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(traces, "--out", tmp_path / "no" / "such" / "folder.json") == 1
    assert "cannot write to" in capsys.readouterr().err


def test_standard_input_is_a_dash(
    traces: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(traces.read_bytes()))))
    assert run("-") == 0
    assert len(json.loads(capsys.readouterr().out)) == 2


def test_a_trace_spread_over_files_is_one_session(tmp_path: Path) -> None:
    for number, written in enumerate((chat(2, [HI], HO, 1), agent(1, "demo", seconds=9))):
        (tmp_path / f"{number}.jsonl").write_text(line(written, scope=GENAI))
    (one,) = convert_files([str(tmp_path / "0.jsonl"), str(tmp_path / "1.jsonl")]).sessions
    assert one.runs[0].turns[0].model_call is not None
    assert one.source["files"] == ["0.jsonl", "1.jsonl"]


# -- content beside the telemetry --------------------------------------------------------------------------------------


def referring(reference: str) -> str:
    return line(chat(1, None, HO, also={f"{names.INPUT_MESSAGES}_ref": reference}), scope=GENAI)


def test_content_in_files_beside_the_telemetry_is_read(tmp_path: Path) -> None:
    (tmp_path / "objects").mkdir()
    (tmp_path / "objects" / "input.json").write_text(json.dumps([HI]))
    path = tmp_path / "traces.jsonl"
    for reference in ("objects/input.json", f"file://{tmp_path}/objects/input.json"):
        path.write_text(referring(reference))
        (one,) = convert_files([str(path)]).sessions
        assert one.messages[0].parts == HI["parts"]


def test_a_reference_never_makes_us_open_a_file_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text(json.dumps([HI]))
    folder = tmp_path / "inner"
    folder.mkdir()
    (folder / "link.json").symlink_to(tmp_path / "secret.json")
    with (folder / "large.json").open("wb") as large:
        large.truncate(LARGEST + 1)
    path = folder / "traces.jsonl"
    for reference in (
        "../secret.json",
        str(tmp_path / "secret.json"),
        "link.json",
        "absent.json",
        "large.json",
        "\0",
        "s3://x/y",
    ):
        path.write_text(referring(reference))
        (one,) = convert_files([str(path)]).sessions
        assert [message.role for message in one.messages] == ["assistant"], reference


# -- whole documents ---------------------------------------------------------------------------------------------------


def our_story() -> str:
    """A conversation of our own: two attempts, a tool, an agent as a tool; then a request that failed."""
    root, inner = span_id(1), span_id(6)
    facts = {
        names.CONVERSATION_ID: "order-17",
        names.USER_ID: "u-1",
        names.SESSION_NAME: "refund",
        names.SESSION_TAGS: ["beta"],
        names.REDACTION: '{"policy":"default/1","key_ids":["k1"]}',
    }
    weather = called("get_weather", {"city": "Köln"}, "call_1")
    research = called("research", {"topic": "rain"}, "call_2")
    failure = Answer(status=429, error=Error(ErrorCategory.MODEL, "rate_limit_exceeded", "Slow down."))
    run_one = RunRecord(
        run_id=root,
        path="root",
        agent=Agent("care", version="2"),
        input=(HI,),
        output=(HO,),
        arguments={"question": "Hi"},
        argv=("python", "app.py"),
        callable="app:answer",
        result="Ho",
    )
    asked = model([HI], asks(weather, research), run=1, turn=0, call_id=span_id(3), attempt=1, response_id="r1")
    history = [HI, asks(weather, research), told("call_1", {"c": 18}), told("call_2", "wet")]
    broken = Error(ErrorCategory.TOOL, "app.NoRain", "dry")
    spans = [
        ours(20, replace(run_one, started_only=True, output=(), result=None), 1, start=1, seconds=0, also=facts),
        ours(3, model([HI], None, run=1, turn=0, call_id=span_id(3), failed=failure), 2),
        ours(4, asked, 2),
        ours(
            5,
            ToolRecord("get_weather", {"city": "Köln"}, {"c": 18}, "call_1", run_id=root, turn_index=0, position=0),
            2,
        ),
        ours(
            7,
            ToolRecord(
                "research", {"topic": "rain"}, "wet", "call_2", ToolKind.AGENT, run_id=root, turn_index=0, position=1
            ),
            2,
        ),
        ours(8, model([said("user", "rain")], said("assistant", "wet"), run=6, turn=0, call_id=span_id(8)), 6),
        ours(
            6, RunRecord(run_id=inner, path="root/researcher#0", agent=Agent("researcher"), result="wet"), 7, start=7.5
        ),
        ours(2, TurnRecord(root, 0), 1, seconds=7),
        ours(11, model(history, HO, run=1, turn=1, call_id=span_id(11), response_id="r2"), 10),
        ours(10, TurnRecord(root, 1), 1),
        ours(1, run_one, seconds=11, also=facts),
    ]
    failed = RunRecord(run_id=span_id(30), path="root", agent=Agent("care"), error=broken)
    again = ours(30, failed, trace="b" * 32, also=facts)
    return line(*spans) + line(again)


def their_story() -> str:
    """The GenAI conventions, with content in attributes and in logs, and a tool that left no span."""
    weather = called("get_weather", {"city": "Paris"}, "call_1")
    seen = {names.PROVIDER: "openai", names.USAGE_INPUT_TOKENS: 60, names.USAGE_OUTPUT_TOKENS: 12}
    definition = {names.TOOL_DEFINITIONS: json.dumps([{"name": "get_weather", "parameters": {"type": "object"}}])}
    spans = [
        span(40, "POST /chat", {"http.route": "/chat"}, seconds=9),
        chat(
            42,
            [said("system", "Be short."), HI],
            asks(weather),
            40,
            also={**seen, **definition, names.REQUEST_TEMPERATURE: 0.2},
        ),
        chat(44, None, None, 40, also=seen),
    ]
    answered = [HI, asks(weather), told("call_1", "18 C")]
    details = {names.INPUT_MESSAGES: answered, names.OUTPUT_MESSAGES: [{**HO, "finish_reason": "stop"}]}
    return line(*spans, scope=GENAI) + json.dumps(log("gen_ai.client.inference.operation.details", details, 44)) + "\n"


STORIES = {"spanreel": our_story, "genai": their_story}


@pytest.mark.parametrize("name", STORIES)
def test_whole_documents_are_as_they_were_agreed_to_be(name: str) -> None:
    """`SPANREEL_GOLDEN=write pytest tests/test_convert.py` writes them anew; the difference is for people to read."""
    traces, document = GOLDEN / f"{name}.otlp.jsonl", GOLDEN / f"{name}.session.json"
    if os.environ.get("SPANREEL_GOLDEN") == "write":
        traces.write_text(STORIES[name](), encoding="utf-8")
    conversion = convert_files([str(traces)])
    assert conversion.faults == ()
    (one,) = conversion.sessions
    if os.environ.get("SPANREEL_GOLDEN") == "write":
        document.write_text(write_session(one, indent=2) + "\n", encoding="utf-8")
    expected: dict[str, Any] = json.loads(document.read_text(encoding="utf-8"))
    assert json.loads(write_session(one)) == expected


@pytest.mark.parametrize("name", STORIES)
def test_the_same_spans_in_any_order_and_twice_give_the_same_document(name: str, tmp_path: Path) -> None:
    text = (GOLDEN / f"{name}.otlp.jsonl").read_text(encoding="utf-8")
    path = tmp_path / f"{name}.otlp.jsonl"
    path.write_text("".join(reversed(text.splitlines(keepends=True))) + text, encoding="utf-8")
    (one,) = convert_files([str(path)]).sessions
    assert json.loads(write_session(one)) == json.loads((GOLDEN / f"{name}.session.json").read_text(encoding="utf-8"))


def test_what_lines_of_json_do_not_need_is_not_imported_where_they_are_converted(traces: Path, tmp_path: Path) -> None:
    dear = ("httpx", "google.protobuf", "multiprocessing", "spanreel.detectors", "logfire")
    code = (
        "import sys; already = set(sys.modules); from spanreel.cli import main; "
        f"main(['convert', {str(traces)!r}, '--out', {str(tmp_path / 'out.json')!r}]); "
        f"print([name for name in {dear!r} if name in sys.modules.keys() - already])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=True)
    assert found.stdout.strip() == "[]"
