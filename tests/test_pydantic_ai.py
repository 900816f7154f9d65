"""pydantic-ai, by its public ways in: what is recorded, and that it plays again."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import StatusCode
from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    AgentRunResultEvent,
    InstrumentationSettings,
    NativeOutput,
    TextOutput,
    ToolOutput,
    UsageLimits,
)
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.exceptions import ModelHTTPError, UsageLimitExceeded
from pydantic_ai.messages import BinaryContent, BinaryImage, CachePoint, ImageUrl, TextContent

import spanreel
from kinds import record
from pydantic_models import PROTOCOLS, scripted
from recording import attribute, content, recording
from spanreel import testing
from spanreel.binary import stand_in
from spanreel.model import ErrorCategory, Status
from spanreel.otlp_file import FileExporter
from spanreel.replay.judging.verdict import Report, Verdict
from spanreel.session import Session
from spanreel_collector.conversion.convert import convert_files

ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


def weather(city: str) -> str:
    """The weather."""
    ran.append(city)
    with trace.get_tracer("x").start_as_current_span("inside"):
        return f"sunny in {city}"


TWO = [
    testing.answer(
        tool_calls=[testing.tool_call("weather", {"city": "Paris"}), testing.tool_call("weather", {"city": "Rome"})]
    ),
    testing.text("It is sunny there."),
]


def agent(script: testing.Script, protocol: str = "openai_chat", **options: Any) -> Agent[Any, Any]:
    return Agent(scripted(script, protocol), **{"name": "care", "instructions": "Be brief.", **options})


def replayed(work: Callable[[], Any], session: Session) -> Report:
    """The report of a replay in which no tool ran."""
    ran.clear()
    with spanreel.replay(session, check=False) as playing:
        work()
    assert ran == []
    assert playing.report is not None
    return playing.report


# -- the ways in ------------------------------------------------------------------------------------------------------


def by_run(made: Agent[Any, Any]) -> Any:
    return asyncio.run(made.run("Weather?")).output


def by_run_sync(made: Agent[Any, Any]) -> Any:
    with loop():
        return made.run_sync("Weather?").output


@contextmanager
def loop() -> Iterator[None]:
    """The event loop that the synchronous ways make where there is none, and leave open."""
    made = asyncio.new_event_loop()
    asyncio.set_event_loop(made)
    try:
        yield
    finally:
        made.run_until_complete(made.shutdown_asyncgens())
        asyncio.set_event_loop(None)
        made.close()


def ask(made: Agent[Any, Any], *asked: Any, **options: Any) -> Any:
    return asyncio.run(made.run(*asked, **options))


def by_run_stream(made: Agent[Any, Any]) -> Any:
    async def go() -> Any:
        async with made.run_stream("Weather?") as streamed:
            return "".join([text async for text in streamed.stream_text(delta=True)])

    return asyncio.run(go())


def by_run_stream_sync(made: Agent[Any, Any]) -> Any:
    with loop(), made.run_stream_sync("Weather?") as streamed:
        return "".join(streamed.stream_text(delta=True))


def by_run_stream_events(made: Agent[Any, Any]) -> Any:
    async def go() -> Any:
        async with made.run_stream_events("Weather?") as events:
            *_, last = [event async for event in events]
        assert isinstance(last, AgentRunResultEvent)
        return last.result.output

    return asyncio.run(go())


def by_iter(made: Agent[Any, Any]) -> Any:
    async def go() -> Any:
        async with made.iter("Weather?") as run:
            async for _node in run:
                pass
        assert run.result is not None
        return run.result.output

    return asyncio.run(go())


def by_event_handler(made: Agent[Any, Any]) -> Any:
    async def handle(_context: Any, events: Any) -> None:
        async for _event in events:
            pass

    return asyncio.run(made.run("Weather?", event_stream_handler=handle)).output


WAYS = (by_run, by_run_sync, by_run_stream, by_run_stream_sync, by_run_stream_events, by_iter, by_event_handler)


@pytest.fixture(params=WAYS, ids=lambda way: way.__name__)
def way(request: pytest.FixtureRequest) -> Any:
    return request.param


def expected(model: str) -> list[str]:
    return [
        "invoke_agent care",
        "  agent_step 0",
        f"    chat {model}",
        "    execute_tool weather",
        "    execute_tool weather",
        "  agent_step 1",
        f"    chat {model}",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_way_in_gives_the_same_run_and_plays_again(way: Any, protocol: str, tmp_path: Path) -> None:
    def work() -> Any:
        return way(agent(TWO, protocol, tools=[weather]))

    with recording() as rec:
        assert work() == "It is sunny there."
        model = "claude-test" if protocol == "anthropic_messages" else "gpt-test"
        assert [line for line in rec.tree() if "inside" not in line] == expected(model)
        run = rec.one("invoke_agent")
        assert content(run, "gen_ai.input.messages") == [text("user", "Weather?")]
        assert content(run, "gen_ai.output.messages") == [text("assistant", "It is sunny there.")]
        assert content(run, "spanreel.run.arguments") == {"user_prompt": "Weather?"}
        assert content(run, "spanreel.run.result") == "It is sunny there."
        tools = rec.of("execute_tool")
        assert sorted(content(tool, "gen_ai.tool.call.result") for tool in tools) == ["sunny in Paris", "sunny in Rome"]
        assert len({attribute(tool, "gen_ai.tool.call.id") for tool in tools}) == 2
        assert {span.status.status_code for span in rec.spans} == {StatusCode.UNSET}
        assert not trace.get_current_span().get_span_context().is_valid
    session = record(work, tmp_path)
    assert replayed(work, session).verdict is Verdict.PASS


def text(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": content}]}


def test_spans_of_the_user_inside_a_tool_nest_under_it_though_it_runs_in_a_thread() -> None:
    with recording() as rec:

        def nested(city: str) -> str:
            with rec.tracer.start_as_current_span("the user's"):
                return city

        ask(agent([testing.tool_call("nested", {"city": "Bern"}), testing.text("Done.")], tools=[nested]), "go")
        tool, inner = rec.one("execute_tool"), rec.named("the user's")
        assert inner.parent is not None
        assert tool.context is not None
        assert inner.parent.span_id == tool.context.span_id


async def test_three_runs_at_once_are_three_clean_traces() -> None:
    with recording() as rec:
        await asyncio.gather(*(agent(TWO, tools=[weather]).run("Weather?") for _ in range(3)))
        traces: dict[int, int] = {}
        for span in rec.spans:
            assert span.context is not None
            if span.name != "inside":
                traces[span.context.trace_id] = traces.get(span.context.trace_id, 0) + 1
        assert len(traces) == 3
        assert len(set(traces.values())) == 1


# -- what a run came to -----------------------------------------------------------------------------------------------


class City(BaseModel):
    """A place."""

    name: str
    degrees: int


def shout(words: str) -> str:
    return words.upper()


CITY = {"name": "Rome", "degrees": 3}


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("output", "said", "value"),
    [
        (City, testing.tool_call("final_result", CITY), CITY),
        (ToolOutput(City, name="told"), testing.tool_call("told", CITY), CITY),
        (NativeOutput(City), testing.text('{"name": "Rome", "degrees": 3}'), CITY),
        (TextOutput(shout), testing.text("cold"), "COLD"),
        (list[str], testing.tool_call("final_result", {"response": ["a", "b"]}), ["a", "b"]),
    ],
    ids=["tool", "named tool", "native", "function of text", "list"],
)
def test_structured_output_is_the_run_s_result_and_its_tool_is_none(
    output: Any, said: testing.Scripted, value: Any, protocol: str, tmp_path: Path
) -> None:
    if protocol == "anthropic_messages" and isinstance(output, NativeOutput):
        protocol = "openai_chat"  # this model's profile has none

    def work() -> None:
        ask(agent([said], protocol, output_type=output), "Where?")

    with recording() as rec:
        work()
        assert rec.of("execute_tool") == []
        assert content(rec.one("invoke_agent"), "spanreel.run.result") == value
    assert replayed(work, record(work, tmp_path)).verdict is Verdict.PASS


def test_an_output_that_is_not_accepted_is_another_turn(tmp_path: Path) -> None:
    def work() -> None:
        wrong = testing.tool_call("final_result", {"name": "Rome"})
        ask(agent([wrong, testing.tool_call("final_result", CITY)], output_type=City), "Where?")

    session = record(work, tmp_path)
    (run,) = session.runs
    assert (len(run.turns), run.status) == (2, Status.OK)
    assert replayed(work, session).verdict is Verdict.PASS


async def test_an_agent_without_a_name_and_a_run_without_new_words() -> None:
    with recording() as rec:
        nameless = Agent(scripted([testing.text("One."), testing.text("Two.")]))
        first = await Agent.run(nameless, "Count.", infer_name=False)
        await Agent.run(nameless, message_history=first.all_messages()[:1], infer_name=False)
        assert [span.name for span in rec.of("invoke_agent")] == ["invoke_agent", "invoke_agent"]
        second = rec.of("invoke_agent")[1]
        assert content(second, "gen_ai.input.messages") is None
        assert list(content(second, "spanreel.run.arguments")) == ["message_history"]


# -- closed early, cancelled, failed ----------------------------------------------------------------------------------


LONG = [testing.text("one two three four five six seven eight", hold=20)]


async def test_a_stream_closed_early_is_finished_not_failed(caplog: pytest.LogCaptureFixture) -> None:
    with recording() as rec:
        async with agent(LONG).run_stream("Count.") as streamed:
            async for _text in streamed.stream_text(delta=True, debounce_by=None):
                break
        assert [span.status.status_code for span in rec.spans] == [StatusCode.UNSET] * len(rec.spans)
        run = rec.one("invoke_agent")
        assert attribute(run, "spanreel.run.status") == "ok"
        assert content(run, "gen_ai.output.messages") is None
        assert attribute(rec.one("chat"), "spanreel.stream.complete") is False
        assert not trace.get_current_span().get_span_context().is_valid
    assert [one for one in caplog.records if one.levelno >= logging.WARNING] == []


async def test_a_stream_left_inside_a_generator_is_finished_too(caplog: pytest.LogCaptureFixture) -> None:
    async def words() -> AsyncIterator[str]:
        async with agent(LONG).run_stream("Count.") as streamed:
            async for word in streamed.stream_text(delta=True, debounce_by=None):
                yield word

    with recording() as rec:
        stream = words()
        async for _word in stream:
            break
        await stream.aclose()  # type: ignore[attr-defined]  # it is a generator
        assert [span.status.status_code for span in rec.of("invoke_agent")] == [StatusCode.UNSET]
        assert not trace.get_current_span().get_span_context().is_valid
    assert [one for one in caplog.records if one.levelno >= logging.WARNING] == []


async def test_a_run_left_before_its_end_is_finished(tmp_path: Path) -> None:
    with recording() as rec:
        async with agent(TWO, tools=[weather]).iter("Weather?") as run:
            async for node in run:
                if Agent.is_call_tools_node(node):
                    break
        assert attribute(rec.one("invoke_agent"), "spanreel.run.status") == "ok"
        assert len(rec.of("chat")) == 1
        assert rec.of("execute_tool") == []


async def test_a_cancelled_run_says_so() -> None:
    with recording() as rec:
        task = asyncio.create_task(agent([testing.text("Late.", delay=5000)]).run("Weather?"))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        run = rec.one("invoke_agent")
        assert attribute(run, "spanreel.run.status") == "cancelled"
        assert run.status.status_code is StatusCode.ERROR


def test_a_model_s_error_ends_the_run_with_it_and_comes_again(tmp_path: Path) -> None:
    def work() -> None:
        with pytest.raises(ModelHTTPError) as raised:
            ask(agent([testing.error(500, "busy")]), "Weather?")
        assert raised.value.status_code == 500

    session = record(work, tmp_path)
    (run,) = session.runs
    assert run.error is not None
    assert (run.status, run.error.category) == (Status.ERROR, ErrorCategory.MODEL)
    assert run.error.type == "pydantic_ai.exceptions.ModelServerError"
    assert replayed(work, session).verdict is Verdict.PASS


def test_a_limit_of_usage_is_a_limit_of_turns_in_the_replay_too(tmp_path: Path) -> None:
    def work() -> None:
        with pytest.raises(UsageLimitExceeded):
            ask(agent(TWO, tools=[weather]), "Weather?", usage_limits=UsageLimits(tool_calls_limit=1))

    session = record(work, tmp_path)
    (run,) = session.runs
    assert run.error is not None
    assert run.error.category is ErrorCategory.MAX_TURNS
    assert replayed(work, session).verdict is Verdict.PASS


# -- conversations ----------------------------------------------------------------------------------------------------


def test_a_history_carries_the_conversation_and_each_run_plays_again(tmp_path: Path) -> None:
    said: list[str] = []

    def work() -> None:
        made = agent([*TWO, testing.text("You are welcome.")], tools=[weather])
        first = ask(made, "Weather?")
        second = ask(made, "Thanks.", message_history=first.all_messages())
        said.append(second.conversation_id)
        assert second.output == "You are welcome."

    session = record(work, tmp_path)
    assert (session.key.kind, session.key.value) == ("conversation", said[0])
    assert [[session.messages[one].parts[0]["content"] for one in run.input] for run in session.runs] == [
        ["Weather?"],
        ["Thanks."],
    ]
    report = replayed(work, session)
    assert report.verdict is Verdict.PASS
    assert report.notes == ()


def test_the_recorded_history_beats_the_caller_s(tmp_path: Path) -> None:
    def work(question: str, history: list[Any] | None) -> Any:
        return ask(agent([testing.text("Sunny.")]), question, message_history=history).all_messages()

    made: list[Any] = []
    before = work("Hello.", None)
    session = record(lambda: made.append(work("Weather?", before)), tmp_path)
    with spanreel.replay(session) as playing:
        assert [len(message.parts) for message in work("Something else?", None)] == [
            len(message.parts) for message in made[0]
        ]
    assert playing.verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("options", "conversation"),
    [
        ({"conversation_id": "c-1"}, "c-1"),
        ({"conversation_id": "new"}, None),
        ({"conversation": "kept"}, None),
    ],
)
def test_a_conversation_is_the_one_that_is_named(options: dict[str, Any], conversation: str | None) -> None:
    with recording() as rec:
        made = agent([testing.text("One."), testing.text("Two.")])
        first = ask(made, "Count.")
        if "conversation" in options:
            options = {"conversation": first.conversation}
            conversation = first.conversation_id
        second = ask(made, "Go on.", **options)
        found = attribute(rec.of("invoke_agent")[1], "gen_ai.conversation.id")
        assert found == (conversation or second.conversation_id)
        assert {attribute(span, "gen_ai.conversation.id") for span in rec.of("chat")} == {first.conversation_id, found}


async def test_what_the_program_says_beats_the_id_that_is_made_up() -> None:
    with recording() as rec, spanreel.session("s-7"):
        await agent([testing.text("One.")]).run("Count.")
        assert {attribute(span, "gen_ai.conversation.id") for span in rec.spans} == {"s-7"}


# -- prompts ----------------------------------------------------------------------------------------------------------


def test_a_prompt_of_parts_is_recorded_as_parts_and_known_again(tmp_path: Path) -> None:
    prompt: list[Any] = [
        "What is this?",
        TextContent("And that?", metadata={"from": "a form"}),
        ImageUrl("http://model.test/a.png"),
        BinaryImage(b"png", media_type="image/png"),
        BinaryContent(b"pdf", media_type="application/pdf"),
        CachePoint(),
    ]
    seen: list[Any] = []

    def work(asked: Any) -> None:
        seen.append(ask(agent([testing.text("A cat.")]), asked).all_messages()[0].parts[0].content)

    session = record(lambda: work(prompt), tmp_path)
    (run,) = session.runs
    (said,) = (session.messages[number] for number in run.input)
    png, pdf = (stand_in(content) for content in (b"png", b"pdf"))
    assert said.parts == [
        {"type": "text", "content": "What is this?"},
        {"type": "text", "content": "And that?"},
        {"type": "uri", "uri": "http://model.test/a.png", "modality": "image", "mime_type": "image/png"},
        {"type": "blob", "mime_type": "image/png", "modality": "image", "content": png},
        {"type": "blob", "mime_type": "application/pdf", "modality": "document", "content": pdf},
        {"type": "cache-point", "kind": "cache-point", "ttl": "5m"},
    ]
    with spanreel.replay(session) as playing:
        work(prompt)  # binary content is not in the recording, so that the caller's input counts
    assert playing.verdict is Verdict.PASS
    assert seen[1] == seen[0] == prompt


def test_a_changed_instruction_fails_with_its_place_and_both_texts(tmp_path: Path) -> None:
    session = record(lambda: ask(agent([testing.text("Hi.")]), "Hello."), tmp_path)
    report = replayed(lambda: ask(agent([testing.text("Hi.")], instructions="Be long."), "Hello."), session)
    assert report.verdict is Verdict.FAIL
    assert "'Be brief.'" in report.reasons[0]
    assert "'Be long.'" in report.reasons[0]


# -- beside us --------------------------------------------------------------------------------------------------------


def test_the_library_s_own_spans_are_another_view_of_the_same_calls(tmp_path: Path) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    exporter = FileExporter(str(tmp_path / "traces.jsonl"))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    settings = InstrumentationSettings(tracer_provider=provider)
    spanreel.instrument(tracer_provider=provider)
    try:
        ask(agent(TWO, tools=[weather], capabilities=[Instrumentation(settings=settings)]), "Weather?")
    finally:
        spanreel.uninstrument()
    found = convert_files([str(tmp_path / "traces.jsonl")])
    assert found.faults == ()
    (session,) = found.sessions
    (run,) = session.runs
    assert (run.path, run.agent.name, len(run.turns)) == ("root", "care", 2)
    assert len(list(run.model_calls())) == 2
    assert [one.result for one in run.tool_calls()] == ["sunny in Paris", "sunny in Rome"]
    ours = [call.usage.input_tokens for call in run.model_calls() if call.usage]
    assert session.usage.input_tokens == sum(one or 0 for one in ours)


def test_nothing_is_left_in_the_library_when_we_go() -> None:
    from pydantic_ai.tool_manager import ToolManager

    before = vars(Agent)["iter"], vars(ToolManager)["__init__"], vars(ToolManager)["execute_tool_call"]
    with recording():
        assert vars(Agent)["iter"] is not before[0]
        ask(agent(TWO, tools=[weather]), "Weather?")
    assert (vars(Agent)["iter"], vars(ToolManager)["__init__"], vars(ToolManager)["execute_tool_call"]) == before


BEFORE = """
import spanreel.auto
from pydantic_ai import Agent
agent = Agent("openai-chat:m", name="early")
"""
AFTER = """
from pydantic_ai import Agent
agent = Agent("openai-chat:m", name="early")
import spanreel.auto
"""
NOT_AT_ALL = """
from pydantic_ai import Agent
agent = Agent("openai-chat:m", name="early")
"""
WORK = """
@agent.tool_plain
def look(city: str) -> str:
    return f"sunny in {city}"

print(agent.run_sync("Weather?").output)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("head", "command"),
    [
        (BEFORE, ("script.py",)),
        (AFTER, ("script.py",)),
        (NOT_AT_ALL, ("-m", "spanreel", "run", "--", sys.executable, "script.py")),
    ],
    ids=["before", "after", "run --"],
)
def test_names_imported_and_agents_made_before_us_are_recorded_too(
    head: str, command: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "script.py").write_text(head + WORK)
    with testing.ScriptedProvider([testing.tool_call("look", {"city": "Rome"}), testing.text("Sunny.")]) as provider:
        done = subprocess.run(
            [sys.executable, *command],
            cwd=tmp_path,
            env={
                **os.environ,
                "OPENAI_BASE_URL": provider.base_url,
                "OPENAI_API_KEY": "none",
                "SPANREEL_FILE": str(tmp_path / "traces.jsonl"),
            },
            capture_output=True,
            text=True,
            check=True,
            timeout=600,
        )
    assert done.stdout.splitlines()[-1] == "Sunny."
    (session,) = convert_files([str(tmp_path / "traces.jsonl")]).sessions
    (run,) = session.runs
    assert (run.agent.name, [one.result for one in run.tool_calls()]) == ("early", ["sunny in Rome"])
