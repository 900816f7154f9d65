"""Putting wraps in place: in any order of imports, on any wrapt, with targets missing; and starting from outside."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
import textwrap
import types
from pathlib import Path
from typing import Any

import httpx2
import pytest

import spanreel
from recording import recording
from spanreel import instrumenting, wrapping
from spanreel.model import Agent
from spanreel.point import Framework, Kind, Point, RunRequest, RunResult
from spanreel.testing import ScriptedProvider, text
from wire_server import ASK, Model

BEFORE = """
import spanreel.auto
from openai import OpenAI
from agents import Agent, Runner, function_tool
client = OpenAI()
"""
AFTER = """
from openai import OpenAI
from agents import Agent, Runner, function_tool
client = OpenAI()
import spanreel.auto
"""
NOT_AT_ALL = """
from openai import OpenAI
from agents import Agent, Runner, function_tool
client = OpenAI()
"""
WORK = """
import agents
agents.set_tracing_disabled(True)
agents.set_default_openai_api("chat_completions")
asked = [{"role": "user", "content": "hi"}]
print(client.chat.completions.create(model="m", messages=asked).choices[0].message.content)
print(Runner.run_sync(Agent(name="a", model="m"), "hi").final_output)
"""


def spans_in(file: Path) -> list[dict[str, Any]]:
    """The spans of a file of OTLP JSON lines."""
    return [
        span
        for line in file.read_text().splitlines()
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


def run_script(
    tmp_path: Path, script: str, *command: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a script against a scripted model, with spans going to ``tmp_path / "traces.jsonl"``."""
    (tmp_path / "script.py").write_text(script)
    with ScriptedProvider(lambda _request: text("Hello.")) as provider:
        variables = {
            "PATH": str(Path(sys.executable).parent),
            "OPENAI_BASE_URL": provider.base_url,
            "OPENAI_API_KEY": "sk-test",
            "SPANREEL_FILE": str(tmp_path / "traces.jsonl"),
            "SPANREEL_STRICT": "1",
        }
        return subprocess.run(
            [sys.executable, *(command or ("script.py",))],
            cwd=tmp_path,
            env={**variables, **(environment or {})},
            capture_output=True,
            text=True,
            check=True,
            timeout=600,
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("head", "command"),
    [
        (BEFORE, ("script.py",)),
        (AFTER, ("script.py",)),
        (NOT_AT_ALL, ("-m", "spanreel", "run", "--", sys.executable, "script.py")),
        (NOT_AT_ALL, ("-m", "spanreel", "run", "-m", "script")),
    ],
    ids=["before", "after", "run --", "run -m"],
)
def test_names_imported_and_clients_made_before_us_are_recorded_too(
    head: str, command: tuple[str, ...], tmp_path: Path
) -> None:
    done = run_script(tmp_path, head + WORK, *command)
    assert done.stdout.splitlines() == ["Hello.", "Hello."]
    names = sorted(span["name"] for span in spans_in(tmp_path / "traces.jsonl") if span["name"] != "run_started")
    assert names == ["agent_step 0", "chat m", "chat m", "invoke_agent a"]


@pytest.mark.slow
def test_the_start_says_one_calm_line_that_can_be_silenced(tmp_path: Path) -> None:
    said = run_script(tmp_path, "import spanreel.auto\n").stderr.splitlines()
    assert len(said) == 1
    assert "traces.jsonl" in said[0]
    assert run_script(tmp_path, "import spanreel.auto\n", environment={"SPANREEL_LOG": "off"}).stderr == ""


@pytest.mark.slow
def test_a_process_killed_in_the_middle_leaves_what_was_known(tmp_path: Path) -> None:
    script = """
import os, signal, time
import spanreel.auto, spanreel
from openai import OpenAI

@spanreel.run(agent="killed")
def work(question):
    messages = [{"role": "user", "content": question}]
    print(OpenAI().chat.completions.create(model="m", messages=messages).choices[0].message.content, flush=True)
    while not (os.path.exists("traces.jsonl") and '"chat m"' in open("traces.jsonl").read()):
        time.sleep(0.01)  # until spans have waited long enough for others
    os.kill(os.getpid(), signal.SIGKILL)

work("still there?")
"""
    with pytest.raises(subprocess.CalledProcessError):
        run_script(tmp_path, script)
    names = {span["name"] for span in spans_in(tmp_path / "traces.jsonl")}
    assert names == {"run_started", "chat m"}


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A framework that has lost two methods."""

    class Runner:
        def run(self, question: str) -> str:
            return question.upper()

    made = types.ModuleType("a_framework")
    made.Runner = Runner  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "a_framework", made)

    def read(_instance: Any, arguments: Any) -> RunRequest:
        return RunRequest(Agent("a"))

    points = tuple(
        Point(f"a_framework:Runner.{name}", Kind.RUN, read, lambda _result: RunResult())
        for name in ("gone", "run", "lost")
    )
    monkeypatch.setattr(wrapping, "FRAMEWORKS", (Framework("a-framework", ">=1", points),))
    return made


def test_targets_that_have_moved_are_one_warning_naming_them_and_the_rest_works(
    library: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with recording() as rec:
        assert library.Runner().run("x") == "X"
        Model().client().chat.completions.create(**ASK)
        assert len(rec.of("invoke_agent")) == 1
        assert len(rec.of("chat")) == 1
        warnings = [record.getMessage() for record in caplog.records if record.name == "spanreel"]
        assert len(warnings) == 1
        assert "a-framework has no a_framework:Runner.gone, a_framework:Runner.lost in this release" in warnings[0]
        assert instrumenting.missed_targets() == ["a_framework:Runner.gone", "a_framework:Runner.lost"]


def test_only_the_libraries_named_are_wrapped(library: Any) -> None:
    with recording(only=["httpx2"]) as rec:
        library.Runner().run("x")
        Model().client().chat.completions.create(**ASK)
        assert [span.name for span in rec.spans] == ["chat gpt-asked"]


def test_a_wrap_put_over_ours_survives_our_leaving() -> None:
    original = httpx2.Client.send
    try:
        with recording():
            ours = httpx2.Client.send

            def theirs(self: Any, *args: Any, **kwargs: Any) -> Any:
                return ours(self, *args, **kwargs)

            httpx2.Client.send = theirs  # type: ignore[method-assign]
        assert httpx2.Client.send is theirs
        assert Model().client().chat.completions.create(**ASK).choices[0].message.content == "Hello."
    finally:
        httpx2.Client.send = original  # type: ignore[method-assign]


def test_instrumenting_twice_is_instrumenting_once() -> None:
    with recording() as rec:
        spanreel.instrument()
        Model().client().chat.completions.create(**ASK)
        assert len(rec.spans) == 1


class Queued:
    """An object of the user's that holds a method of a client."""

    def __init__(self, client: httpx2.Client) -> None:
        self.client = client
        self.send = client.send

    def __deepcopy__(self, memo: Any) -> Queued:
        made = object.__new__(Queued)
        made.client, memo[id(self.client)] = self.client, self.client
        made.send = copy.deepcopy(self.send, memo)
        return made


def test_wrapped_functions_are_copied_and_pickled_as_functions_are() -> None:
    with recording() as rec, httpx2.Client(transport=httpx2.MockTransport(Model().respond)) as client:
        for function in (httpx2.Client.send, copy.deepcopy(httpx2.Client.send)):
            assert pickle.loads(pickle.dumps(function)).__wrapped__ is httpx2.Client.send.__wrapped__  # type: ignore[attr-defined]
        held = copy.deepcopy(Queued(client))
        for send in (copy.copy(client.send), copy.deepcopy(client.send, {id(client): client}), held.send):
            send(client.build_request("POST", "http://model.test/v1/chat/completions", json=ASK))
        assert len(rec.of("chat")) == 3


def test_what_the_program_does_at_its_own_end_is_recorded(tmp_path: Path) -> None:
    program = """
        import atexit
        import spanreel.auto
        import spanreel

        @spanreel.tool
        def tidy():
            pass

        atexit.register(tidy)
    """
    file = tmp_path / "traces.jsonl"
    environment = {**os.environ, "SPANREEL_FILE": str(file), "OTEL_TRACES_EXPORTER": "none"}
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, env=environment, timeout=600)
    assert "execute_tool tidy" in file.read_text()
