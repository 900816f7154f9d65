"""What holds whatever the framework. Each test is a row of docs/contract.md; its scenarios are found by conftest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace

from conftest import ROOT
from contract.scenario import Ability, Scenario, Task
from contract.trial import Seen, Trial, at_once, cancelled, opened_and_dropped, read
from spanreel import testing
from spanreel.instrumenting import wrapped_targets
from spanreel.model import Status
from spanreel.replay.judging.verdict import Verdict
from spanreel.session import Run, Session

STREAMS = (Ability.STREAM, Ability.ASYNC_STREAM)


def weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


def broken(city: str) -> str:
    """The weather of a city, when it works."""
    raise LookupError(f"no such city as {city}")


def script() -> list[testing.Scripted]:
    """One call of a tool, and an answer."""
    return [testing.tool_call("weather", {"city": "Paris"}), testing.text("It is sunny there.")]


@pytest.fixture
def trial(scenario: Scenario, way: Ability, tmp_path: Path) -> Trial:
    return Trial(scenario, way, script(), [weather], tmp_path)


@pytest.fixture
def way(scenario: Scenario) -> Ability:
    """The scenario's first way, for the cases that are not about ways."""
    return next(way for way in (Ability.PLAIN, Ability.ASYNC, *STREAMS) if way not in scenario.absent)


# -- what was recorded is what happened ------------------------------------------------------------------------------


def check(trial: Trial, session: Session) -> Run:
    """The session's one run says what the model was asked and answered, and what the tools were given and gave."""
    assert session.status is Status.OK
    (run,) = session.runs
    name = "weather" if trial.scenario.named else None
    assert (run.path, run.agent.name, run.status) == ("root", name, Status.OK)
    assert said(session, run.input) == [("user", trial.question)]
    assert [turn.index for turn in run.turns] == list(range(len(trial.provider.requests)))
    calls = list(run.model_calls())
    assert [call.protocol for call in calls] == [trial.scenario.protocol] * len(calls)
    for call, asked in zip(calls, trial.provider.requests, strict=True):
        request = asked.request
        assert request is not None
        heard = [part for index in call.input for part in session.messages[index].parts]
        sent = [part for message in request.messages for part in message["parts"]]
        assert heard == [*request.instructions, *sent]
        assert [session.tools[index]["name"] for index in call.tools] == [tool["name"] for tool in request.tools]
        assert (call.model, call.streamed, call.status, call.http_status) == (request.model, request.stream, "ok", 200)
        assert (call.usage is not None) is counts_tokens(asked)
        assert call.usage is None or (call.usage.input_tokens and call.usage.output_tokens)
    counted = [call.usage for call in calls if call.usage]
    assert (session.usage.input_tokens or 0) == sum(usage.input_tokens or 0 for usage in counted)
    assert (session.usage.output_tokens or 0) == sum(usage.output_tokens or 0 for usage in counted)
    return run


def counts_tokens(asked: testing.Asked) -> bool:
    """Whether the answer said its tokens: OpenAI's chat streams do so only where they are asked to."""
    body = json.loads(asked.body)
    silent = asked.path.endswith("/chat/completions") and body.get("stream")
    return not silent or bool(body.get("stream_options", {}).get("include_usage"))


def said(session: Session, indexes: list[int]) -> list[tuple[str, str]]:
    """Messages as role and text."""
    messages = [session.messages[index] for index in indexes]
    return [(message.role, "".join(part.get("content", "") for part in message.parts)) for message in messages]


def tool_calls(trial: Trial, run: Run) -> list[tuple[Any, ...]]:
    """Tool calls as turn, id, name, what was asked for, what was executed, and what came of it."""
    result = trial.scenario.tool_result
    return [
        (turn.index, call.call_id, call.name, call.requested, call.arguments, result(call.result))
        for turn in run.turns
        for call in turn.tool_calls
    ]


def final(seen: Seen) -> str:
    """The text of the answer: what was returned, or the text of a stream in one."""
    if isinstance(seen.value, list):
        return "".join(item for item in seen.value if isinstance(item, str))
    return str(seen.value)


def asked_for(session: Session, run: Run) -> list[str]:
    """The ids of the tool calls that the model asked for, in order."""
    messages = [session.messages[index] for call in run.model_calls() for index in call.output]
    return [part["id"] for message in messages for part in message.parts if part["type"] == "tool_call"]


# -- the ways --------------------------------------------------------------------------------------------------------


def test_a_run_does_what_it_does_without_us_and_is_recorded_as_it_happened(trial: Trial, way: Ability) -> None:
    alone = trial.go()
    assert alone.error is None
    assert final(alone) == "It is sunny there."
    seen, session = trial.record()
    assert seen == alone
    run = check(trial, session)
    asked = {"city": "Paris"}
    (call_id,) = asked_for(session, run)
    assert tool_calls(trial, run) == [(0, call_id, "weather", asked, asked, "sunny in Paris")]
    *_, last = run.model_calls()
    assert said(session, last.output) == [("assistant", "It is sunny there.")]


def test_a_replay_passes_with_nothing_live(trial: Trial, way: Ability) -> None:
    seen, session = trial.record()
    played, report = trial.replay(session)
    assert report.verdict is Verdict.PASS, report.reasons
    assert (report.model_calls.matched, report.tool_calls.matched) == (2, 1)
    assert (played.value, played.error) == (seen.value, None)
    assert (played.requests, played.ran) == ((), ())


def test_after_uninstrument_nothing_is_recorded_and_nothing_is_left(trial: Trial, way: Ability) -> None:
    alone = trial.go()
    assert not wrapped_targets()
    with trial.recording():
        assert set(trial.scenario.targets) <= set(wrapped_targets())
    assert not wrapped_targets()
    assert trial.go() == alone
    assert trial.sessions() == []


@pytest.mark.ways(*STREAMS)
def test_a_stream_closed_early_is_finished_not_failed(trial: Trial, way: Ability) -> None:
    trial.script = [testing.text("word " * 50)]
    trial.drive = partial(read, most=3)
    alone = trial.go()
    assert alone.error is None
    assert len(alone.value) == 3
    seen, session = trial.record()
    assert seen == alone
    (run,) = session.runs
    assert run.ended_at is not None
    assert session.status in (Status.OK, Status.CANCELLED)
    (call,) = run.model_calls()
    assert call.status in (Status.OK, Status.CANCELLED)


@pytest.mark.ways(*STREAMS)
@pytest.mark.needs(Ability.NEVER_READ)
def test_a_stream_that_is_never_read_leaves_nothing_open(trial: Trial, way: Ability) -> None:
    trial.drive = opened_and_dropped
    alone = trial.go()
    with trial.recording():
        assert trial.go() == alone
    for session in trial.sessions():
        assert session.status in (Status.OK, Status.CANCELLED)


# -- what goes wrong -------------------------------------------------------------------------------------------------


def test_an_error_of_the_model_reaches_the_caller_as_it_does_without_us(trial: Trial, way: Ability) -> None:
    trial.script = [testing.error(400, "too long", "context_length_exceeded")]
    alone = trial.go()
    assert alone.error is not None
    seen, session = trial.record()
    assert seen == alone
    assert session.status is Status.ERROR
    (run,) = session.runs
    assert run.status is Status.ERROR
    (call,) = run.model_calls()
    assert (call.status, call.http_status) == (Status.ERROR, 400)
    assert call.error is not None
    assert call.error.message == "too long"


def test_an_error_of_a_tool_goes_where_it_goes_without_us(trial: Trial, way: Ability) -> None:
    trial.script = [testing.tool_call("broken", {"city": "Nowhere"}), testing.text("I do not know.")]
    trial.tools = [broken]
    alone = trial.go()
    seen, session = trial.record()
    assert seen == alone
    (run,) = session.runs
    (call,) = run.tool_calls()
    assert (call.name, call.status, call.arguments) == ("broken", Status.ERROR, {"city": "Nowhere"})
    assert call.error is not None
    assert (call.error.type, call.error.category) == ("LookupError", "tool")
    assert call.error.message == "no such city as Nowhere"


@pytest.mark.ways(Ability.ASYNC, Ability.ASYNC_STREAM)
def test_a_cancelled_run_is_cancelled_and_ends_what_it_had_begun(trial: Trial, way: Ability) -> None:
    trial.script = [testing.text("Too late.", delay=5_000)]
    trial.drive = cancelled
    alone = trial.go()
    assert alone.value == "cancelled"
    seen, session = trial.record()
    assert seen == alone
    assert session.status is Status.CANCELLED
    assert not trace.get_current_span().get_span_context().is_valid


# -- side by side ----------------------------------------------------------------------------------------------------


def test_two_runs_at_once_are_two_recordings(trial: Trial, way: Ability) -> None:
    cities = ("Paris", "Rome")

    def both(trial: Trial, task: Task) -> list[Any]:
        tasks = []
        for city in cities:
            answers = [testing.tool_call("weather", {"city": city}, hold=1), testing.text(f"{city} is sunny.", hold=1)]
            tasks.append(Task(testing.ScriptedProvider(answers), task.tools, f"And {city}?"))
        return at_once(trial, tasks)

    trial.drive = both
    alone = trial.go()
    assert alone.error is None
    with trial.recording():
        assert trial.go() == alone
    sessions = sorted(trial.sessions(), key=lambda session: said(session, session.runs[0].input))
    assert len(sessions) == 2
    for city, session in zip(cities, sessions, strict=True):
        (run,) = session.runs
        assert said(session, run.input) == [("user", f"And {city}?")]
        assert [call.arguments for call in run.tool_calls()] == [{"city": city}]
        assert len(run.turns) == 2


@pytest.mark.needs(Ability.PARALLEL_TOOLS)
def test_tools_in_parallel_belong_to_the_turn_that_asked_for_them(trial: Trial, way: Ability) -> None:
    cities = ("Paris", "Rome", "Bern")
    wanted = [testing.tool_call("weather", {"city": city}) for city in cities]
    trial.script = [testing.answer(tool_calls=wanted), testing.text("Sunny everywhere.")]
    alone = trial.go()
    assert alone.error is None
    assert len(alone.ran) == 3
    seen, session = trial.record()
    # Hooks and events of tools that run at once come in any order.
    assert (final(seen), seen.requests, sorted(seen.told)) == (final(alone), alone.requests, sorted(alone.told))
    assert seen.ran == alone.ran
    run = check(trial, session)
    expected = [
        (0, call_id, "weather", {"city": city}, {"city": city}, f"sunny in {city}")
        for city, call_id in zip(cities, asked_for(session, run), strict=True)
    ]
    # A document has them in the order in which they started, which threads make any.
    assert sorted(tool_calls(trial, run), key=lambda call: str(call[1])) == expected
    places = {call.call_id: call.requested_by.position for call in run.tool_calls() if call.requested_by}
    assert places == {call_id: place for place, call_id in enumerate(asked_for(session, run))}
    played, report = trial.replay(session)
    assert report.verdict is Verdict.PASS, report.reasons
    assert (final(played), played.ran) == (final(seen), ())


@pytest.mark.needs(Ability.TOOLS_IN_THREADS)
def test_a_tool_in_a_thread_runs_inside_its_own_span(trial: Trial, way: Ability) -> None:
    inside: list[tuple[str, bool]] = []

    def weather(city: str) -> str:
        """The weather of a city."""
        name = getattr(trace.get_current_span(), "name", "nothing")
        inside.append((name, threading.current_thread() is threading.main_thread()))
        return f"sunny in {city}"

    trial.tools = [weather]
    alone = trial.go()
    assert inside == [("nothing", False)]
    seen, _ = trial.record()
    assert seen == alone
    assert inside[1:] == [("execute_tool weather", False)]


# -- around the run --------------------------------------------------------------------------------------------------


@pytest.mark.needs(Ability.HOOKS)
def test_hooks_of_the_user_run_once_and_in_their_order(trial: Trial, way: Ability) -> None:
    alone = trial.go()
    assert len(alone.told) > 1
    seen, _ = trial.record()
    assert seen.told == alone.told


@pytest.mark.slow
def test_it_does_not_matter_whether_we_are_imported_before_or_after(trial: Trial) -> None:
    for order in ("before", "after"):
        trial.file.unlink(missing_ok=True)
        environment = {**os.environ, "SPANREEL_FILE": str(trial.file), "PYTHONPATH": str(ROOT / "tests")}
        command = [sys.executable, str(Path(__file__).with_name("child.py")), trial.scenario.name, order]
        subprocess.run(command, env=environment, check=True, timeout=600)
        (session,) = trial.sessions()
        (run,) = session.runs
        assert [turn.index for turn in run.turns] == [0, 1]
        called = [(call.name, trial.scenario.tool_result(call.result)) for call in run.tool_calls()]
        assert called == [("weather", "sunny in Paris")]


# -- what leaves -----------------------------------------------------------------------------------------------------


SENTINEL = "zq-sentinel-7"


def test_with_content_off_nothing_that_was_said_leaves(trial: Trial, way: Ability) -> None:
    def weather(city: str) -> str:
        """The weather of a city."""
        return f"{SENTINEL} in {city}"

    trial.tools = [weather, broken]
    trial.question = trial.instructions = f"What of {SENTINEL}?"
    trial.script = [
        testing.tool_call("weather", {"city": f"{SENTINEL} city"}),
        testing.tool_call("broken", {"city": f"{SENTINEL} city"}),
        testing.text(f"{SENTINEL}, {SENTINEL}."),
    ]
    alone = trial.go()
    with trial.recording(SPANREEL_CAPTURE="metadata"):
        assert trial.go() == alone
    left = trial.file.read_text()
    assert SENTINEL not in left
    assert "execute_tool weather" in left
    assert SENTINEL in json.dumps(trial.record()[0].value) + trial.file.read_text()


KEY = "sk-proj-4bT9dK2mQ8xW7vN1pL5rZ3cY6hJ0"


def test_credentials_do_not_leave(trial: Trial, way: Ability) -> None:
    def weather(city: str) -> str:
        """The weather of a city."""
        return f"api_key={KEY} in {city}"

    trial.tools = [weather]
    trial.question = trial.instructions = f"My key is {KEY}."
    trial.script = [testing.tool_call("weather", {"city": f"Bearer {KEY}"}), testing.text(f"Your key is {KEY}.")]
    alone = trial.go()
    assert KEY in final(alone)
    seen, session = trial.record()
    assert seen == alone
    assert KEY not in trial.file.read_text()
    assert session.redaction.policy is not None
    played, report = trial.replay(session, serve_redacted=True)
    assert report.verdict is Verdict.PASS, report.reasons
    assert (played.requests, played.ran) == ((), ())
