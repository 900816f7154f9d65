"""The command line, from outside: what it prints, what it exits with, and what a command finds in its environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider

from spanreel import __version__, cli
from spanreel.errors import NotIntercepted, ReplayRefused, SpanreelError
from spanreel.instrumenting import is_instrumented
from spanreel.launch import BOOTSTRAP, recorded_environment
from spanreel.otel import SpanreelInstrumentor
from spanreel.subcommand import Command

QUIET = {"SPANREEL_LOG": "off", "OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"}


def spanreel(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "spanreel", *words],
        env={**os.environ, **QUIET, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def test_the_version_is_that_of_the_distribution() -> None:
    assert spanreel("--version").stdout == f"spanreel {__version__}\n"


@pytest.mark.slow
def test_the_help_lists_our_commands_and_those_of_entry_points() -> None:
    listed = spanreel("--help").stdout
    for command in ("run", "replay", "doctor", "convert", "show"):
        assert f"    {command} " in listed


def test_the_command_line_imports_nothing_of_the_collector_and_no_framework() -> None:
    code = "import sys, spanreel.cli; print(sorted({name.partition('.')[0] for name in sys.modules}))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for library in ("spanreel_collector", "openai", "agents", "grpc", "httpx", "httpx2"):
        assert f"'{library}'" not in found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "COMMAND"),
        (["bogus"], "invalid choice: 'bogus'"),
        (["run"], "for example: spanreel run -- python app.py"),
        (["run", "--"], "for example: spanreel run -- python app.py"),
        (["run", "-m"], "for example: spanreel run -- python app.py"),
        (["run", "--fast", "python"], "unknown option '--fast'"),
        (["replay"], "SESSION[#RUN]"),
        (["replay", "session.json"], "end with -- python app.py, or give --entry module:function"),
        (["replay", "session.json", "--entry", "app"], "--entry 'app' is not of the form module:function"),
        (["replay", "session.json", "--entry", ":main"], "--entry ':main' is not of the form module:function"),
        (["replay", "session.json", "--entry", "app:"], "--entry 'app:' is not of the form module:function"),
        (["replay", "s.json", "python", "app.py"], "a command comes after --; see spanreel replay --help"),
        (["replay", "session.json", "--allow", "db", "--", "x"], "--allow 'db' is not of the form host:port"),
        (["replay", "session.json", "--entry", "a:b", "--", "x"], "leave out either it or the command"),
        (["replay", "session.json", "--rep", "x", "--", "x"], "unrecognized arguments: --rep x"),
        (["doctor", "now"], "unrecognized arguments: now"),
    ],
)
def test_wrong_usage_exits_64_and_says_what_to_do(words: list[str], complaint: str) -> None:
    done = spanreel(*words)
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr.startswith("spanreel: ")
    assert complaint in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code"),
    [(SpanreelError("no"), 1), (ReplayRefused("no"), 3), (NotIntercepted("no"), 4)],
    ids=lambda value: type(value).__name__,
)
def test_our_errors_are_one_line_and_an_exit_code(
    error: SpanreelError, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: object) -> int:
        raise error

    failing = Command("fail", "fails", lambda _: None, fail)
    monkeypatch.setattr(cli, "OWN_COMMANDS", (failing,))
    assert cli.main(["fail"]) == code
    assert capsys.readouterr().err == "spanreel: no\n"


def test_an_interrupted_command_exits_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def wait(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "OWN_COMMANDS", (Command("wait", "waits", lambda _: None, wait),))
    assert cli.main(["wait"]) == 130


def test_a_command_of_another_distribution_is_found_and_a_broken_one_is_named(tmp_path: Path) -> None:
    metadata = tmp_path / "theirs-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[spanreel.commands]\nhello = theirs:HELLO\nbroken = nowhere:X\n")
    (tmp_path / "theirs.py").write_text(
        "from spanreel.subcommand import Command\n"
        "HELLO = Command('hello', 'greets', lambda parser: None, lambda options: print('hello') or 5)\n"
    )
    done = spanreel("hello", PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (5, "hello\n")
    done = spanreel("broken", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert (
        done.stderr == "spanreel: the command 'broken' cannot be loaded from 'nowhere:X': No module named 'nowhere'\n"
    )


@pytest.mark.slow
def test_a_session_that_is_not_there_is_named_and_refused_before_anything_runs(tmp_path: Path) -> None:
    done = spanreel("replay", str(tmp_path / "none.json#0"), "--", sys.executable, "-c", "print('ran')")
    assert (done.returncode, done.stdout) == (3, "")
    assert f"cannot read {str(tmp_path / 'none.json')!r}: No such file or directory" in done.stderr


def test_a_command_that_does_not_exist_is_named_and_exits_127() -> None:
    done = spanreel("run", "--", "no-such-command-here")
    assert done.returncode == 127
    assert done.stderr == "spanreel: cannot run 'no-such-command-here': No such file or directory\n"


def test_a_script_given_in_the_place_of_a_command_is_answered_with_the_right_command(tmp_path: Path) -> None:
    script = tmp_path / "app.py"
    script.write_text("print('never')\n")
    done = spanreel("run", str(script))
    assert done.returncode == 126
    assert f"to run a script: spanreel run -- python {script}" in done.stderr


@pytest.mark.slow
def test_run_becomes_the_command_and_keeps_its_words_and_its_exit_code() -> None:
    code = "import sys; print(sys.argv[1:]); sys.exit(7)"
    done = spanreel("run", "--", sys.executable, "-c", code, "--version", "--", "-m")
    assert (done.returncode, done.stdout) == (7, "['--version', '--', '-m']\n")


@pytest.mark.slow
def test_run_instruments_the_command_and_its_children() -> None:
    child = "import sys; print('spanreel.auto' in sys.modules)"
    parent = f"{child}; import subprocess; sys.stdout.flush(); subprocess.run([sys.executable, '-c', {child!r}])"
    done = spanreel("run", "--", sys.executable, "-c", parent)
    assert (done.stdout, done.stderr) == ("True\nTrue\n", "")


@pytest.mark.slow
def test_run_with_m_runs_a_module_with_this_python(tmp_path: Path) -> None:
    (tmp_path / "told.py").write_text(
        "import sys; print(sys.executable, sys.argv[1:], 'spanreel.auto' in sys.modules)\n"
    )
    done = spanreel("run", "-m", "told", "--one", PYTHONPATH=str(tmp_path))
    assert done.stdout == f"{sys.executable} ['--one'] True\n"


@pytest.mark.slow
def test_the_users_own_sitecustomize_runs_first_and_once(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; print('theirs', 'spanreel.auto' in sys.modules)\n")
    done = spanreel(
        "run", "--", sys.executable, "-c", "print('app')", PYTHONPATH=str(tmp_path), OTEL_TRACES_EXPORTER="none"
    )
    # Once more before: the command line itself is a Python process with their path.
    assert done.stdout == "theirs False\ntheirs False\napp\n"


@pytest.mark.slow
def test_a_sitecustomize_that_fails_is_shown_and_recording_goes_on(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("raise RuntimeError('theirs')\n")
    environment = recorded_environment({**os.environ, **QUIET, "PYTHONPATH": str(tmp_path)})
    code = "import sys; print('spanreel.auto' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "True\n"
    assert "RuntimeError: theirs" in done.stderr


def run_where_spanreel_is_missing(tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A Python that has our folder on its path and no spanreel: another virtual environment."""
    (tmp_path / "spanreel.py").write_text("raise ImportError('not for this Python')\n")
    path = os.pathsep.join([str(BOOTSTRAP), str(tmp_path)])
    return subprocess.run(
        [sys.executable, "-c", "print('app')"],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_python_without_spanreel_runs_unrecorded_and_says_so(tmp_path: Path) -> None:
    done = run_where_spanreel_is_missing(tmp_path)
    assert (done.returncode, done.stdout) == (0, "app\n")
    assert done.stderr.startswith("spanreel: nothing is recorded: ")


def test_a_replay_in_a_python_without_spanreel_runs_nothing(tmp_path: Path) -> None:
    done = run_where_spanreel_is_missing(tmp_path, SPANREEL_REPLAY="session.json")
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith("spanreel: nothing runs, since it would run live: ")


@pytest.mark.slow
@pytest.mark.parametrize("code", ["import spanreel.auto", "{}.SpanreelInstrumentor().instrument()"])
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("SPANREEL_CAPTURE", "some", "SPANREEL_CAPTURE is 'some'; allowed: full, bounded, metadata, off"),
        ("SPANREEL_PATHS", "/llm=gpt", "SPANREEL_PATHS says /llm=gpt: no protocol named 'gpt'; known: "),
    ],
)
def test_a_setting_that_cannot_be_read_is_one_line_and_the_program_goes_on(
    code: str, name: str, value: str, said: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code.format("__import__('spanreel.otel').otel") + "; print('app')"],
        env={**os.environ, name: value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "app\n")
    assert done.stderr.startswith(f"spanreel: nothing is recorded: {said}")
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_the_instrumentor_of_opentelemetry_says_what_records_and_where_to() -> None:
    code = "from spanreel.otel import SpanreelInstrumentor; SpanreelInstrumentor().instrument()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "SPANREEL_FILE": os.devnull},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "records runs, model calls and tool calls to the file" in done.stderr


def test_our_folder_stands_first_on_the_path_and_once() -> None:
    once = recorded_environment({"PYTHONPATH": os.pathsep.join(["theirs", str(BOOTSTRAP)])})
    assert once == recorded_environment(once) == {"PYTHONPATH": os.pathsep.join([str(BOOTSTRAP), "theirs"])}


def test_the_instrumentor_of_opentelemetry_wraps_and_unwraps() -> None:
    instrumentor = SpanreelInstrumentor()
    assert list(instrumentor.instrumentation_dependencies()) == []
    instrumentor.instrument(skip_dep_check=True, tracer_provider=TracerProvider(shutdown_on_exit=False))
    try:
        assert is_instrumented()
    finally:
        instrumentor.uninstrument()
    assert not is_instrumented()


@pytest.mark.slow
def test_opentelemetry_instrument_finds_us_under_our_own_name() -> None:
    code = "import httpx, sys; print(type(httpx.Client.send).__module__, 'spanreel.wrapping' in sys.modules)"
    done = subprocess.run(
        [Path(sys.executable).parent / "opentelemetry-instrument", sys.executable, "-c", code],
        env={**os.environ, **QUIET},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "True" in done.stdout, done.stderr


@pytest.mark.slow
def test_a_person_who_closes_the_pipe_sees_no_traceback() -> None:
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {sys.executable} -m spanreel doctor | true"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
