"""`spanreel replay` of many sessions in one process: no cross-talk, the same reports every time, going on."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import agents
import openai
import pytest

import spanreel
from replaying import Book, asks, text, told
from spanreel import cli
from spanreel.playing import active_players, current_player
from spanreel.replay.running import batch
from spanreel.session import Session
from spanreel.session_files import write_session
from spanreel.subcommand import INTERRUPTED
from spanreel.testing.provider import Reply
from spanreel.testing.server import LoopbackServer

pytestmark = pytest.mark.slow

SESSIONS = 20
RAN: list[int] = []
AT_ONCE: set[str] = set()
_meeting = threading.Barrier(8)
_started = threading.Lock()
_waiting = [8]
MODULE = __name__
CHANGED: list[str] = []


@spanreel.tool()
def look(number: int) -> str:
    RAN.append(number)
    return "live"


@spanreel.run(agent="looker")
def hand_written(question: str) -> str:
    """Asks, calls a tool in a pool of threads of its own, asks again; eight at a time wait for each other first."""
    with _started:
        meets = _waiting[0] > 0
        _waiting[0] -= 1
    if meets:
        _meeting.wait(60)
        AT_ONCE.add(question)
    client = openai.OpenAI(base_url="http://127.0.0.1:9/v1", api_key="none", max_retries=0)
    said: list[Any] = [{"role": "user", "content": question}]
    first = client.chat.completions.create(model="gpt-5", messages=said, tools=[TOOL]).choices[0].message
    said.append(first.model_dump(exclude_none=True))
    for call in first.tool_calls or []:
        with ThreadPoolExecutor(1) as pool:
            number = int(json.loads(call.function.arguments)["number"])  # type: ignore[union-attr]
            result = pool.submit(look, number + (question in CHANGED)).result()
        said.append({"role": "tool", "tool_call_id": call.id, "content": result})
    answer = client.chat.completions.create(model="gpt-5", messages=said, tools=[TOOL]).choices[0].message.content
    return f"{question} {answer}"


def with_sdk(question: str) -> str:
    """The same with the OpenAI Agents SDK, on a loop of its own."""
    agents.set_tracing_disabled(True)
    client = openai.AsyncOpenAI(base_url="http://127.0.0.1:9/v1", api_key="none", max_retries=0)
    model = agents.OpenAIChatCompletionsModel("gpt-5", client)
    agent = agents.Agent(name="sdk", model=model, tools=[agents.function_tool(look_by_sdk, name_override="look")])
    return str(asyncio.run(agents.Runner.run(agent, question)).final_output)  # `run_sync` leaves its thread's loop open


def look_by_sdk(number: int) -> str:
    RAN.append(number)
    return "live"


TOOL: Any = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


def looking(number: int, **more: Any) -> Session:
    """Every session asks for the same thing by the same ids, and gets another result."""
    book = Book(id=f"session-{number:02}", **more)
    question = f"What is {number}?"
    run = book.run(agent="looker", entrypoint={"arguments": {"question": question}}, result=f"{question} it {number}")
    offered = [{"type": "function", "name": "look", "parameters": {"type": "object"}}]
    user, asked = text("user", question), asks(("c1", "look", {"number": 7}))
    first = book.model(run, [user], asked, offered=offered, finish_reasons=["tool_calls"])
    by = {"model_call": first["id"], "position": 0}
    book.tool(run, "look", {"number": 7}, f"seen {number}", call_id="c1", requested_by=by)
    said = [user, asked, told("c1", f"seen {number}")]
    book.model(run, said, text("assistant", f"it {number}"), offered=offered, finish_reasons=["stop"])
    return book.session()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    RAN.clear()
    AT_ONCE.clear()
    CHANGED[:] = []
    _waiting[0] = 0
    monkeypatch.setattr(sys, "path", list(sys.path))
    made = tmp_path / "sessions"
    made.mkdir()
    for number in range(SESSIONS):
        (made / f"{number:02}.json").write_text(write_session(looking(number)))
    return made


def replay(*words: str | Path) -> int:
    return cli.main(["replay", *map(str, words)])


def reports(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def test_twenty_sessions_eight_at_a_time_one_of_which_fails(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    CHANGED.append("What is 13?")
    _waiting[0] = 8
    entry = f"{MODULE}:hand_written"
    assert replay(folder, "--entry", entry, "--jobs", "8", "--report", tmp_path / "one") == 1
    assert len(AT_ONCE) == 8
    assert RAN == []
    assert capsys.readouterr().out.endswith("20 sessions: 19 PASS, 1 FAIL\n")
    found = reports(tmp_path / "one")
    assert len(found) == SESSIONS + 1
    summary = json.loads(found["summary.json"])
    assert (summary["verdict"], summary["exit_code"], summary["verdicts"]) == ("FAIL", 1, {"FAIL": 1, "PASS": 19})
    assert summary["calls"]["model_calls_live"] == summary["calls"]["tool_calls_live"] == 0
    (failed,) = [one for one in summary["outcomes"] if one["verdict"] == "FAIL"]
    assert failed["session"] == "session-13"
    assert "/number: recorded 7, now 8" in failed["reason"]
    assert json.loads(found["session-04.json"])["model_calls"]["matched"] == 2
    assert active_players() == ()
    assert current_player() is None

    assert replay(folder, "--entry", entry, "--jobs", "3", "--report", tmp_path / "two") == 1
    assert reports(tmp_path / "two") == found


def test_a_framework_s_agents_do_not_meet_each_other_either(folder: Path, tmp_path: Path) -> None:
    for file in folder.iterdir():
        document = json.loads(file.read_text())
        document["origin"] = "imported"
        run = document["runs"][0]
        run["agent"]["name"], run["entrypoint"], run["result"] = "sdk", None, run["result"].partition("? ")[2]
        run["input"] = [0]
        for turn in run["turns"]:
            turn["model_call"]["tools"] = []
            turn["model_call"]["fidelity"] = {"tools": "absent", "settings": "absent"}
        file.write_text(json.dumps(document))
    assert replay(folder, "--entry", f"{MODULE}:with_sdk", "--jobs", "8", "--report", tmp_path / "out") == 0
    assert RAN == []
    verdicts = [json.loads(data)["verdict"] for data in reports(tmp_path / "out").values()]
    assert verdicts == ["PASS"] * (SESSIONS + 1)


def test_an_interrupted_batch_goes_on_where_it_ended(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, entry = tmp_path / "out", f"{MODULE}:hand_written"
    seen: list[str] = []

    def interrupted(line: str) -> None:
        seen.append(line)
        if len(seen) == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(batch, "_print", interrupted)
    assert replay(folder, "--entry", entry, "--jobs", "2", "--report", out) == INTERRUPTED
    monkeypatch.undo()
    made = reports(out)
    assert 5 <= len(made) < SESSIONS
    assert "summary.json" not in made
    assert active_players() == ()

    capsys.readouterr()
    assert replay(folder, "--entry", entry, "--report", out, "--resume") == 0
    said = capsys.readouterr().out
    assert said.endswith(f"20 sessions: 20 PASS; {len(made)} of before\n")
    assert replay(folder, "--entry", entry, "--report", tmp_path / "whole") == 0
    assert reports(out) == reports(tmp_path / "whole")


def test_only_a_report_of_the_same_document_and_the_same_question_is_gone_on_from(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (folder, "--entry", f"{MODULE}:hand_written", "--report", tmp_path / "out", "--resume")
    assert replay(*words) == 0
    (folder / "03.json").write_text(write_session(looking(3, extra={"revision": 2})))
    (tmp_path / "out" / "session-05.json").write_text('{"verdict": "PA')
    capsys.readouterr()
    assert replay(*words) == 0
    assert capsys.readouterr().out.endswith("; 18 of before\n")
    assert replay(*words, "--serve-redacted") == 0
    assert capsys.readouterr().out.endswith("20 sessions: 20 PASS\n")


def test_what_cannot_be_replayed_is_refused_and_the_rest_goes_on(folder: Path, tmp_path: Path) -> None:
    (folder / "04.json").write_text("{")
    empty = Book(id="../empty").session()
    (folder / "05.json").write_text(write_session(empty))
    assert replay(folder, "--entry", f"{MODULE}:hand_written", "--report", tmp_path / "out") == 3
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["verdicts"] == {"PASS": 18, "REFUSED": 2}
    assert {file.parent for file in tmp_path.rglob("*empty.json")} == {tmp_path / "out"}


def test_sessions_of_one_id_and_of_one_file_have_a_report_each(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "many.jsonl"
    documents = [write_session(looking(1)), write_session(looking(1)), write_session(Book(id="summary").session())]
    file.write_text("\n".join(documents))
    assert replay(file, folder / "02.json#0", "--entry", f"{MODULE}:hand_written", "--report", tmp_path / "o") == 3
    names = {"session-01.json", "session-01~2.json", "session-02#0.json", "summary~1.json", "summary.json"}
    assert set(reports(tmp_path / "o")) == names


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--entry", "nowhere:x"), 3),
        (("--plan",), 64),
        (("--entry", "m:f", "--jobs", "0"), 64),
        (("--entry", "m:f", "--resume"), 64),
    ],
)
def test_what_a_batch_cannot_do_is_said_before_anything_runs(folder: Path, words: tuple[str, ...], code: int) -> None:
    assert replay(folder, *words) == code
    assert RAN == []
    assert replay(folder, "--entry", f"{MODULE}:hand_written", "--report", folder) == 3


def test_an_entry_that_asks_while_it_is_imported_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "eager_entry.py").write_text("from replaying import pay\npay(1)\n")
    monkeypatch.chdir(tmp_path)
    assert replay(folder, "--entry", "eager_entry:pay") == 3
    assert "while it is imported" in capsys.readouterr().err


def test_an_entry_that_ends_the_process_fails_its_own_session(folder: Path, tmp_path: Path) -> None:
    assert replay(folder, "--entry", f"{MODULE}:leaving", "--report", tmp_path / "out") == 1
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["verdicts"] == {"FAIL": 1, "PASS": 19}


def leaving(question: str) -> str:
    answer = hand_written(question)
    if question == "What is 2?":
        sys.exit(3)
    return answer


@contextlib.contextmanager
def served(folder: Path) -> Iterator[tuple[str, list[tuple[str, dict[str, Any]]]]]:
    """The sessions of a folder, kept by a service: the start of their addresses, and what it is given."""
    posted: list[tuple[str, dict[str, Any]]] = []

    def reply(method: str, path: str, _headers: Mapping[str, str], body: bytes) -> Reply:
        file = folder / f"{path.split('/')[4]}.json"
        if not file.exists():
            return Reply(404, {}, (b"{}",))
        if method == "POST":
            posted.append((path, json.loads(body)))
            return Reply(201, {}, (b"{}",))
        return Reply(200, {"content-type": "application/json"}, (file.read_bytes(),))

    with contextlib.closing(LoopbackServer(reply)) as server:
        yield f"http://127.0.0.1:{server.port}/api/v1/sessions/", posted


def test_sessions_of_a_service_fare_as_files_do_and_their_reports_are_given_back(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    CHANGED.append("What is 1?")
    words = ("--entry", f"{MODULE}:hand_written", "--jobs", "2", "--report")
    assert replay(folder / "00.json", folder / "01.json", *words, tmp_path / "files") == 1
    with served(folder) as (home, posted):
        sources = [f"{home}00", f"{home}01"]
        assert replay(*sources, *words, tmp_path / "served", "--post-report") == 1
    assert reports(tmp_path / "served") == reports(tmp_path / "files")
    assert {path: report["verdict"] for path, report in posted} == {
        "/api/v1/sessions/00/reports": "PASS",
        "/api/v1/sessions/01/reports": "FAIL",
    }
    assert replay(folder / "00.json", folder / "01.json", *words, tmp_path / "x", "--post-report") == 64
    assert "--post-report is for sessions of a service" in capsys.readouterr().err


def test_the_report_of_one_session_of_a_service_is_written_and_given_back(folder: Path, tmp_path: Path) -> None:
    written = tmp_path / "report.json"
    with served(folder) as (home, posted):
        words = ("--entry", f"{MODULE}:hand_written", "--report", written)
        assert replay(f"{home}00", *words, "--post-report") == 0
    assert posted == [("/api/v1/sessions/00/reports", json.loads(written.read_text()))]


def test_a_session_that_a_service_does_not_have_is_refused_and_the_rest_goes_on(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with served(folder) as (home, posted):
        words = ("--entry", f"{MODULE}:hand_written", "--post-report")
        assert replay(f"{home}00", f"{home}gone", *words) == 3
    assert [path for path, _ in posted] == ["/api/v1/sessions/00/reports"]
    assert "status 404; there is no such session" in capsys.readouterr().out


def test_a_report_that_is_not_taken_is_said_once_all_are_played(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = (folder / "00.json").read_bytes()
    answers = {"GET": Reply(200, {}, (document,)), "POST": Reply(403, {}, (b"{}",))}
    with contextlib.closing(LoopbackServer(lambda method, *_: answers[method])) as server:
        home = f"http://127.0.0.1:{server.port}/api/v1/sessions/"
        assert replay(f"{home}00", f"{home}01", "--entry", f"{MODULE}:hand_written", "--post-report") == 3
    told = capsys.readouterr()
    assert told.out.endswith("2 sessions: 2 PASS\n")
    assert "2 reports could not be given back: " in told.err
    assert "SPANREEL_TOKEN does not allow it" in told.err


def test_verdicts_are_shown_by_ci_as_tests_are(folder: Path, tmp_path: Path) -> None:
    CHANGED.append("What is 1?")
    (folder / "02.json").write_text("<not> a session\x00")
    file = tmp_path / "junit.xml"
    words = ("--entry", f"{MODULE}:hand_written", "--junit", file)
    assert replay(*(folder / f"0{number}.json" for number in range(3)), *words) == 1
    written = file.read_bytes()
    suite = ET.fromstring(written)
    assert suite.attrib == {"name": "spanreel replay", "tests": "3", "failures": "1", "errors": "1", "skipped": "0"}
    told = {case.get("name"): [(one.tag, one.get("type")) for one in case] for case in suite}
    assert told == {"session-00": [], "session-01": [("failure", "FAIL")], "02": [("error", "REFUSED")]}
    assert "/number: recorded 7, now 8" in str(suite.findall("testcase/failure")[0].get("message"))
    assert replay(*(folder / f"0{number}.json" for number in range(3)), *words) == 1
    assert file.read_bytes() == written

    assert replay(folder / "00.json", *words) == 0
    assert ET.fromstring(file.read_bytes()).get("tests") == "1"
    assert (
        replay(folder / "00.json", "--entry", f"{MODULE}:hand_written", "--junit", tmp_path / "no" / "junit.xml") == 3
    )
