"""The README is true: its examples run, its commands and variables exist, its demo does what it says."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from conftest import ROOT
from spanreel import keyring, settings

README = (ROOT / "README.md").read_text()


@pytest.fixture(scope="session")
def usual_port_taken() -> Iterator[None]:
    """The usual port of OTLP is nobody's for the rest of the run: what other tests start sends there by itself."""
    with socket.socket() as held:
        with contextlib.suppress(OSError):  # another worker has it
            held.bind(("127.0.0.1", 4318))
        yield


def block(name: str) -> str:
    """The Python block under ``<!-- test: NAME -->``; the first of all for an empty name."""
    marker = f"<!-- test: {name} -->\n" if name else ""
    found = re.search(rf"{marker}^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found.group(1)


def run(folder: Path, *command: str, **environment: str) -> str:
    """Run a command in a folder; its output, both streams."""
    variables = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **environment}
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
def test_the_first_example_closes_the_circle(tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(block(""))
    said = run(tmp_path, sys.executable, "example.py").splitlines()
    assert said == ["money really moves", "Your money is on its way.", "Your money is on its way.", "PASS"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["import", "handwritten"])
def test_the_other_examples_run_as_they_stand(name: str, tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(block(name))
    run(tmp_path, sys.executable, "example.py", OTEL_TRACES_EXPORTER="none")


@pytest.mark.slow
def test_the_example_for_ci_passes_and_fails_in_pytest(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        'import os, openai\nimport spanreel\n\n@spanreel.run(agent="a")\ndef answer(question):\n'
        '    messages = [{"role": "user", "content": question + os.environ.get("MORE", "")}]\n'
        '    return openai.OpenAI(api_key="k").chat.completions.create(model="m", messages=messages)'
        ".choices[0].message.content\n"
    )
    (tmp_path / "test_app.py").write_text(block("ci"))
    (tmp_path / "record.py").write_text(
        "import spanreel.auto, os\nfrom spanreel import testing\nfrom app import answer\n"
        "with testing.ScriptedProvider([testing.text('Hi.')]) as provider:\n"
        "    os.environ['OPENAI_BASE_URL'] = provider.base_url\n    answer('hello')\n"
    )
    run(tmp_path, sys.executable, "record.py", SPANREEL_FILE="traces.jsonl")
    run(tmp_path, "spanreel", "convert", "traces.jsonl", "--out", "session.json")
    pytest_command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_app.py")
    assert "1 passed" in run(tmp_path, *pytest_command)
    with pytest.raises(AssertionError, match="/messages/0/parts/0/content: recorded 'hello', now 'hello more'"):
        run(tmp_path, *pytest_command, MORE=" more")


@pytest.mark.slow
@pytest.mark.usefixtures("usual_port_taken")
def test_the_demo_ends_well_and_says_what_the_readme_shows(tmp_path: Path) -> None:
    said = run(tmp_path, sys.executable, str(ROOT / "examples" / "demo.py"))
    for line in (
        "PASS: 5 calls answered from the recording",
        "  models    3 of 3 matched",
        "The ledger holds 1 payment",
    ):
        assert line in said
    assert "FAIL: model call 1 of root diverged at /messages/0/parts/0/content" in said


@pytest.mark.slow
@pytest.mark.usefixtures("usual_port_taken")
def test_the_demo_ends_with_the_address_of_the_page_at_a_terminal(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    command = [sys.executable, str(ROOT / "examples" / "demo.py")]
    heard = signal.signal(signal.SIGINT, signal.default_int_handler)  # a suite in the background may ignore it
    try:
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
    finally:
        signal.signal(signal.SIGINT, heard)
    os.close(theirs)
    said = b""
    try:
        while (found := re.search(rb"are at (http://127\.0\.0\.1:\d+/)", said)) is None:
            said += os.read(ours, 65536)
        address = found.group(1).decode()
        (session,) = httpx.get(f"{address}api/v1/sessions", timeout=60, trust_env=False).json()["sessions"]
        assert session["agents"] == ["care"]
        reports = httpx.get(f"{address}api/v1/sessions/{session['id']}/reports", timeout=60, trust_env=False).json()
        assert sorted(report["verdict"] for report in reports) == ["FAIL", "PASS"]
        assert httpx.get(address, timeout=60, trust_env=False, follow_redirects=True).is_success
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    with pytest.raises(httpx.ConnectError):
        httpx.get(address, timeout=60, trust_env=False)


def test_every_variable_of_ours_that_is_named_exists() -> None:
    known = {value for home in (settings, keyring) for value in vars(home).values() if isinstance(value, str)}
    assert set(re.findall(r"SPANREEL_[A-Z_]+", README)) <= known


@pytest.mark.slow
def test_every_command_that_is_shown_exists_with_its_options() -> None:
    consoles = "\n".join(re.findall(r"^```console\n(.*?)^```", README, re.MULTILINE | re.DOTALL))
    shown = re.findall(r"^(?:\$ )?(?:[A-Z_]+=\S+ |INSTRUCTIONS='.*?' )?spanreel (\w+)(.*)$", consoles, re.MULTILINE)
    assert {command for command, _ in shown} == {"run", "serve", "convert", "replay", "show"}
    for command, rest in shown:
        told = run(ROOT, "spanreel", command, "--help")
        for option in re.findall(r"(--\w[\w-]*)", rest.partition(" -- ")[0].partition(" # ")[0]):
            assert option in told
