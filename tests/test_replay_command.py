"""`spanreel replay` with a command, and with an entry function: what the child leaves behind, how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from replaying import Book, text
from spanreel import cli
from spanreel.errors import NotIntercepted, ReplayRefused
from spanreel.replay.running.command import replay_command
from spanreel.replay.running.options import Options
from spanreel.session_files import write_session

pytestmark = pytest.mark.slow

PREAMBLE = """
import json, os, sys, threading
import openai, spanreel

def ask(question):
    client = openai.OpenAI(base_url="http://127.0.0.1:9/v1", max_retries=0)
    message = {"role": "user", "content": question}
    return client.chat.completions.create(model="gpt-5", messages=[message]).choices[0].message.content

@spanreel.tool()
def pay(amount):
    raise AssertionError("ran live")

@spanreel.run(agent="demo")
def answer(question):
    said = ask(question)
    pay(1)
    return said
"""


class Desk:
    """A folder with a session and a program, and `spanreel replay` in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        book = Book()
        for question in ("one?", "two?"):
            run = book.run(entrypoint={"callable": "app:answer", "arguments": {"question": question}}, result="yes")
            book.model(run, [text("user", question)], text("assistant", "yes"), finish_reasons=["stop"])
            book.tool(run, "pay", {"amount": 1}, "paid")
        self.book = book
        self.report: Any = None

    def write(self, program: str) -> None:
        (self.folder / "session.json").write_text(write_session(self.book.session()))
        (self.folder / "app.py").write_text(PREAMBLE + textwrap.dedent(program))

    def command(self, program: str, *flags: str, run: str | None = None, allow: tuple[str, ...] = ()) -> int:
        self.write(program)
        command = [sys.executable, *flags, str(self.folder / "app.py")]
        return self._replay(run, command, Options(report=str(self.folder / "report.json"), allow=allow))

    def entry(self, program: str, name: str, run: str | None = None) -> int:
        self.write(program)
        return self._replay(run, [], Options(report=str(self.folder / "report.json"), entry=name))

    def _replay(self, run: str | None, command: list[str], options: Options) -> int:
        code = replay_command(str(self.folder / "session.json"), run, command, options)
        self.report = json.loads((self.folder / "report.json").read_text())
        assert self.report["exit_code"] == code
        return code


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    for name in [name for name in sys.modules if name == "app"]:
        del sys.modules[name]
    monkeypatch.setattr(sys, "path", list(sys.path))
    return Desk(tmp_path)


# -- a command -------------------------------------------------------------------------------------------------------


def test_a_command_that_does_the_same_again_passes(desk: Desk, capfd: pytest.CaptureFixture[str]) -> None:
    code = desk.command(
        """
        assert json.loads(os.environ["SPANREEL_RUN_INPUT"]) == "one?"
        for question in ("a", "b"):
            print(answer(question))
        """
    )
    out = capfd.readouterr().out
    assert code == 0, out
    assert out.startswith("yes\nyes\nPASS: 4 calls answered from the recording\n")
    assert desk.report["notes"] == [
        "root was given the recorded input, not the caller's: /question: recorded 'one?', now 'a'",
        "root was given the recorded input, not the caller's: /question: recorded 'two?', now 'b'",
    ]


def test_a_command_replays_one_run(desk: Desk) -> None:
    assert desk.command("answer(json.loads(os.environ['SPANREEL_RUN_INPUT']))", run="1") == 0
    assert (desk.report["run"], desk.report["model_calls"]["recorded"]) == ("run-1", 1)


def test_a_difference_ends_the_command_without_a_traceback(desk: Desk, capfd: pytest.CaptureFixture[str]) -> None:
    code = desk.command(
        """
        thread = threading.Thread(target=lambda: pay(2))
        thread.start()
        thread.join()
        pay(2)
        """
    )
    out, err = capfd.readouterr()
    assert code == 1
    assert out.startswith("FAIL: tool call 'pay' of outside every run is not in the recording")
    assert err == ""


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("sys.exit(3)", "the command exited with 3"),
        ("os._exit(3)", "the command exited with 3"),
        ("os.kill(os.getpid(), 9)", "the command was ended by SIGKILL"),
    ],
)
def test_a_command_that_fails_by_itself_fails_and_says_so(desk: Desk, end: str, said: str) -> None:
    assert desk.command(f"answer('one?'); answer('two?'); {end}") == 1
    assert desk.report["reasons"] == [said]
    assert desk.report["model_calls"]["matched"] == 2


def test_a_command_that_crashes_in_the_middle_leaves_what_happened_before(desk: Desk) -> None:
    assert desk.command("answer('one?'); os._exit(0)") == 1
    assert desk.report["model_calls"]["matched"] == 1
    assert desk.report["reasons"] == ["root of agent 'demo' was recorded and did not run"]


def test_a_command_that_hangs_is_killed_where_a_time_is_given(desk: Desk, capfd: pytest.CaptureFixture[str]) -> None:
    began = time.monotonic()
    assert desk.command("answer('one?')") == 1  # and does not ask the second question
    took = time.monotonic() - began
    desk.write("import time; answer('one?'); time.sleep(3600)")
    command = [sys.executable, str(desk.folder / "app.py")]
    options = Options(report=str(desk.folder / "report.json"), timeout=5 + 5 * took)
    assert replay_command(str(desk.folder / "session.json"), None, command, options) == 1
    report = json.loads((desk.folder / "report.json").read_text())
    assert "the command had not ended in the time given, and was killed" in report["reasons"]
    assert cli.main(["replay", "session.json", "--entry", "app:answer", "--timeout", "5"]) == 64
    assert "an entry function is not killed" in capfd.readouterr().err


def test_a_command_that_ends_within_its_run_has_not_done_the_same(desk: Desk) -> None:
    program = """
        for question in ("a", "b"):
            answer(question)
        """
    assert desk.command(program) == 0
    ending = program.replace("answer(question)", "leave(question) if question == 'b' else answer(question)")
    leaving = """
        @spanreel.run(agent="demo")
        def leave(question):
            ask(question)
            pay(1)
            os._exit(0)
        """
    assert desk.command(textwrap.dedent(leaving) + textwrap.dedent(ending)) == 1
    assert desk.report["reasons"] == ["root of agent 'demo' had not ended when the replay did"]


def test_an_exception_of_the_command_is_shown(desk: Desk, capfd: pytest.CaptureFixture[str]) -> None:
    assert desk.command("answer('one?'); answer('two?'); raise ValueError('mine')") == 1
    assert "ValueError: mine" in capfd.readouterr().err
    threaded = "t = threading.Thread(target=lambda: 1 // 0); t.start(); t.join()"
    assert desk.command(f"answer('one?'); answer('two?'); {threaded}") == 0
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_a_command_whose_recording_failed_too_may_fail(desk: Desk) -> None:
    error = {"category": "other", "type": "builtins.ValueError", "message": "mine"}
    desk.book.runs[1].update(status="error", error=error, result=None)
    program = """
    @spanreel.run(agent="demo")
    def failing(question):
        answer_inside(question)
        raise ValueError("mine")

    def answer_inside(question):
        ask(question)
        pay(1)

    answer("one?")
    failing("two?")
    """
    assert desk.command(program) == 0
    wrapped = program.replace(
        '    failing("two?")',
        """
    try:
        failing("two?")
    except ValueError as error:
        raise RuntimeError("mine") from error
    """,
    )
    assert desk.command(wrapped) == 0
    crash = program.replace(
        '    failing("two?")',
        """
    try:
        failing("two?")
    except ValueError:
        pass
    {}["nothing"]
    """,
    )
    assert desk.command(crash) == 1
    assert desk.report["reasons"] == ["the replayed code raised KeyError: 'nothing'"]


def test_a_call_in_a_forked_process_is_told(desk: Desk) -> None:
    program = """
    answer("one?")
    answer("two?")
    if os.fork() == 0:
        try:
            pay(2)
        finally:
            os._exit(0)
    os.wait()
    """
    assert desk.command(program) == 4
    assert desk.report["reasons"] == [
        "a call of a model or a tool from app.py:24 (<module>), in another process, would have gone past the replay"
    ]


def test_a_command_that_calls_nothing_is_not_intercepted(desk: Desk) -> None:
    assert desk.command("pass") == 4
    assert desk.report["verdict"] == "NOT INTERCEPTED"


def test_a_command_may_reach_an_address_that_is_allowed(desk: Desk) -> None:
    program = """
    import socket
    answer("one?"), answer("two?")
    try:
        socket.create_connection(("127.0.0.1", 9))
    except ConnectionRefusedError:
        pass
    """
    assert desk.command(program, allow=("127.0.0.1:9",)) == 0
    assert desk.command(program) == 4
    assert desk.report["reasons"][0].startswith("a connection to 127.0.0.1:9 from app.py:")


@pytest.mark.parametrize(
    "child",
    [
        "subprocess.run([sys.executable, '-c', 'import socket; socket.create_connection((\"127.0.0.1\", 9))'])",
        "os.fork() or socket.create_connection(('127.0.0.1', 9))\nos.wait()",
        "os.spawnlp(os.P_WAIT, 'touch', 'touch', 'started')",
    ],
)
def test_what_a_child_of_the_command_would_have_done_is_told(
    desk: Desk, child: str, capfd: pytest.CaptureFixture[str]
) -> None:
    code = desk.command("import socket, subprocess\nanswer('one?')\nanswer('two?')\n" + child)
    assert code == 4, desk.report
    assert desk.report["reasons"][0].endswith("would have gone past the replay")
    assert not (desk.folder / "started").exists()
    assert "Traceback" not in capfd.readouterr().err


def test_a_report_that_cannot_be_written_is_refused_before_anything_runs(desk: Desk) -> None:
    desk.write("print('ran')")
    options = Options(report=str(desk.folder / "missing" / "report.json"))
    with pytest.raises(ReplayRefused, match="cannot write the report to"):
        replay_command(str(desk.folder / "session.json"), None, [sys.executable, "app.py"], options)


def test_a_python_that_never_loads_spanreel_is_told_apart(desk: Desk) -> None:
    with pytest.raises(NotIntercepted, match="exited with 0 and never loaded spanreel"):
        desk.command("", "-I", "-c", "pass")


def test_a_command_that_is_not_there_is_refused(desk: Desk) -> None:
    desk.write("")
    with pytest.raises(ReplayRefused, match=r"cannot start 'no-such-command': No such file"):
        replay_command("session.json", None, ["no-such-command"], Options())


def test_an_input_too_long_for_an_environment_is_left_out(desk: Desk) -> None:
    for message in desk.book.messages[:1]:
        message["parts"][0]["content"] = "x" * 200_000
    desk.book.runs[0]["entrypoint"]["arguments"]["question"] = "x" * 200_000
    assert desk.command("assert 'SPANREEL_RUN_INPUT' not in os.environ; answer(''); answer('')") == 0


def test_a_process_with_a_session_in_its_environment_replays_and_prints_the_report(desk: Desk) -> None:
    desk.write("answer('one?'), answer('two?')")
    for selector, said in (("", "FAIL: root of agent 'demo'"), ("#0", "PASS: 2 calls")):
        program = "import spanreel.auto, app" if not selector else "import spanreel.auto\nfrom app import *"
        (desk.folder / "app.py").write_text(PREAMBLE + "answer('one?')\n")
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "SPANREEL_REPLAY": f"session.json{selector}"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stderr.startswith(said), done.stderr


# -- an entry --------------------------------------------------------------------------------------------------------


def test_an_entry_is_called_for_each_root_run_with_its_recorded_arguments(desk: Desk) -> None:
    assert desk.entry("", "app:answer") == 0
    assert [run["outcome"] for run in desk.report["runs"]] == ["same", "same"]


@pytest.mark.parametrize(
    "function",
    [
        "def main(text): return answer(text)",
        "async def main(text): return answer(text)",
        "def main(text):\n    yield answer(text)",
        "async def main(text):\n    yield answer(text)",
        "async def main(text):\n    return (answer(one) for one in [text])",
        "async def main(text):\n    async def words():\n        yield answer(text)\n    return words()",
        "async def main(text):\n    ask.body_iterator = (answer(one) for one in [text])\n    return ask",
        "class main:\n    def __init__(self, text):\n        answer(text)",
    ],
)
def test_an_entry_of_any_kind_gets_the_recorded_text(desk: Desk, function: str) -> None:
    for number, run in enumerate(desk.book.runs):
        del run["entrypoint"]
        run["input"] = [number * 2]
    assert desk.entry(function, "app:main") == 0


def test_an_entry_without_parameters_is_just_called(desk: Desk) -> None:
    assert desk.entry("def main(): return answer('one?')", "app:main", run="0") == 0


def test_an_entry_gets_the_messages_where_they_are_no_plain_text(desk: Desk) -> None:
    del desk.book.runs[0]["entrypoint"]
    desk.book.messages.append({"role": "user", "parts": [{"type": "uri", "uri": "http://x", "modality": "image"}]})
    desk.book.runs[0]["input"] = [0, len(desk.book.messages) - 1]
    program = "def main(messages): assert messages[1]['parts'][0]['type'] == 'uri'; answer('one?')"
    assert desk.entry(program, "app:main", run="0") == 0


def test_an_entry_of_a_loop_without_an_agent_gets_what_was_asked(desk: Desk) -> None:
    book = Book()
    run = book.run(agent=None, implicit=True)
    book.model(
        run, [text("system", "be brief"), text("user", "hi")], text("assistant", "hello"), finish_reasons=["stop"]
    )
    desk.book = book
    program = """
    def main(question):
        client = openai.OpenAI(base_url="http://127.0.0.1:9/v1")
        said = [{"role": "system", "content": "be brief"}, {"role": "user", "content": question}]
        client.chat.completions.create(model="gpt-5", messages=said)
    """
    assert desk.entry(program, "app:main") == 0


def test_an_entry_that_raises_fails_unless_that_was_recorded(desk: Desk) -> None:
    program = "def main(question):\n    answer(question)\n    raise ValueError('mine')"
    assert desk.entry(program, "app:main") == 1
    assert desk.report["reasons"] == ["the replayed code raised ValueError: mine"]
    for run in desk.book.runs:
        run.update(error={"type": "builtins.ValueError"})
    assert desk.entry(program, "app:main") == 0


def test_an_entry_may_end_the_program_well(desk: Desk) -> None:
    program = "def main(question):\n    answer(question)\n    sys.exit(%s)"
    assert desk.entry(program % 0, "app:main", run="0") == 0
    sys.modules.pop("app")
    assert desk.entry("def main(question):\n    ask('other')\n    sys.exit(0)", "app:main", run="0") == 1
    sys.modules.pop("app")
    assert desk.entry(program % 3, "app:main", run="0") == 1


def test_a_difference_in_one_run_leaves_the_next_alone(desk: Desk) -> None:
    program = "def main(question): answer(question)\n\ndef other(question): ask('other')"
    assert desk.entry(program, "app:other") == 1
    assert desk.report["misses"] == 1
    assert desk.entry(program, "app:main") == 0


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere:main", "is not here: No module named 'nowhere'"),
        ("app:missing", "is not here: module 'app' has no attribute 'missing'"),
        ("app:PREAMBLE", "is a str, which cannot be called"),
        ("broken:main", r"cannot be imported: ZeroDivisionError: division by zero \(broken.py:2\)"),
    ],
)
def test_an_entry_that_is_not_there_is_refused(desk: Desk, name: str, said: str) -> None:
    (desk.folder / "broken.py").write_text("\n1 / 0\n")
    with pytest.raises(ReplayRefused, match=said):
        desk.entry("PREAMBLE = 'x'", name)


def test_an_entry_whose_module_asks_a_model_on_import_is_stopped(desk: Desk) -> None:
    assert desk.entry("ask('on import')", "app:answer") == 1
    assert desk.report["misses"] == 1
