"""Agents on the Anthropic SDK, by hand and by its own tool runner: recorded, converted, and played again offline."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest
from anthropic.lib.tools import ToolError
from opentelemetry import trace

import spanreel
from kinds import record
from recording import attribute, content, recording
from spanreel import testing
from spanreel.errors import ReplayStop
from spanreel.otlp_file import FileExporter
from spanreel.replay.judging.verdict import Verdict
from spanreel.session import Session
from spanreel_collector.conversion.convert import convert_files

ran: list[str] = []
ASK: dict[str, Any] = {"model": "claude-sonnet-4-5", "max_tokens": 99}
QUESTION: list[Any] = [{"role": "user", "content": "How is the weather?"}]
SCRIPT = [
    testing.answer(
        "Let me look.",
        reasoning="Two cities.",
        tool_calls=[testing.tool_call("weather", {"city": "Paris"}), testing.tool_call("weather", {"city": "Rome"})],
    ),
    testing.tool_call("weather", {"city": "Atlantis"}),
    testing.text("It is sunny in both."),
]

# The SDK says of every model that it is old in time.
pytestmark = pytest.mark.filterwarnings("ignore:The model .* is deprecated:DeprecationWarning")


def look(city: str) -> str:
    """The weather of a city."""
    ran.append(city)
    if city == "Atlantis":
        raise ToolError("It has sunk.")
    return f"sunny in {city}"


weather = anthropic.beta_tool(look, name="weather")


async def look_later(city: str) -> str:
    """The weather of a city."""
    await asyncio.sleep(0)
    return look(city)


weather_later = anthropic.beta_async_tool(look_later, name="weather")


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


def client_of(provider: testing.ScriptedProvider) -> anthropic.Anthropic:
    http = httpx2.Client(transport=provider.transport("httpx2"))
    return anthropic.Anthropic(api_key="k", base_url="http://model.test", http_client=http)


def async_client_of(provider: testing.ScriptedProvider) -> anthropic.AsyncAnthropic:
    http = httpx2.AsyncClient(transport=provider.transport("httpx2"))
    return anthropic.AsyncAnthropic(api_key="k", base_url="http://model.test", http_client=http)


# -- the kinds of agent ------------------------------------------------------------------------------------------------


def by_hand(provider: testing.ScriptedProvider, *, stream: bool = False) -> str:
    """A loop of one's own, its tool decorated."""
    client = client_of(provider)
    tool = spanreel.tool(name="weather")(look)
    definition = {"name": "weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}

    def ask(messages: list[Any]) -> Any:
        asked = {**ASK, "messages": messages, "tools": [definition], "system": "Be brief."}
        if not stream:
            return client.messages.create(**asked)
        with client.messages.stream(**asked) as events:
            return events.get_final_message()

    @spanreel.run(agent="by-hand")
    def loop(question: str) -> str:
        messages: list[Any] = [{"role": "user", "content": question}]
        while True:
            answer = ask(messages)
            messages.append({"role": "assistant", "content": answer.content})
            calls = [block for block in answer.content if block.type == "tool_use"]
            if not calls:
                return str(answer.content[0].text)
            messages.append({"role": "user", "content": [result_of(tool, call) for call in calls]})

    return loop("How is the weather?")


def result_of(tool: Callable[..., str], call: Any) -> dict[str, Any]:
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": call.id}
    try:
        return {**result, "content": tool(**call.input)}
    except Exception as error:  # noqa: BLE001 - the model hears of whatever went wrong
        return {**result, "content": str(error), "is_error": True}


def by_hand_streamed(provider: testing.ScriptedProvider) -> str:
    return by_hand(provider, stream=True)


def by_runner(provider: testing.ScriptedProvider, **options: Any) -> str:
    """The SDK's own tool runner."""
    runner = client_of(provider).beta.messages.tool_runner(**ASK, messages=QUESTION, tools=[weather], **options)
    return text_of(runner.until_done())


def by_runner_streamed(provider: testing.ScriptedProvider) -> str:
    return by_runner(provider, stream=True)


def by_runner_without_thread(provider: testing.ScriptedProvider) -> str:
    return by_runner(provider, thread=False)


def by_async_runner(provider: testing.ScriptedProvider, **options: Any) -> str:
    async def work() -> str:
        messages = async_client_of(provider).beta.messages
        return text_of(
            await messages.tool_runner(**ASK, messages=QUESTION, tools=[weather_later], **options).until_done()
        )

    return asyncio.run(work())


def by_async_runner_streamed(provider: testing.ScriptedProvider) -> str:
    return by_async_runner(provider, stream=True)


def text_of(message: Any) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


KINDS = (
    by_hand,
    by_hand_streamed,
    by_runner,
    by_runner_streamed,
    by_runner_without_thread,
    by_async_runner,
    by_async_runner_streamed,
)
RUNNERS = KINDS[2:]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
every_runner = pytest.mark.parametrize("kind", RUNNERS, ids=lambda kind: kind.__name__)


def played(session: Session, kind: Callable[[Any], str]) -> Any:
    """Replay an agent; its verdict, with nothing run and nothing asked."""
    ran.clear()
    silent = testing.ScriptedProvider([])
    said = None
    with spanreel.replay(session, check=False) as playing:
        said = kind(silent)
    assert silent.requests == []
    assert ran == []
    return said, playing.report


# -- recorded ----------------------------------------------------------------------------------------------------------


@every_runner
def test_a_run_of_the_tool_runner_is_a_run_with_turns_and_tools(kind: Callable[[Any], str]) -> None:
    with recording() as rec:
        assert kind(testing.ScriptedProvider(SCRIPT)) == "It is sunny in both."
    assert rec.tree() == [
        "invoke_agent",
        "  agent_step 0",
        "    chat claude-sonnet-4-5",
        "    execute_tool weather",
        "    execute_tool weather",
        "  agent_step 1",
        "    chat claude-sonnet-4-5",
        "    execute_tool weather",
        "  agent_step 2",
        "    chat claude-sonnet-4-5",
    ]
    run = rec.one("invoke_agent")
    assert content(run, "gen_ai.input.messages") == [
        {"role": "user", "parts": [{"type": "text", "content": "How is the weather?"}]}
    ]
    assert content(run, "gen_ai.output.messages") == [
        {"role": "assistant", "parts": [{"type": "text", "content": "It is sunny in both."}]}
    ]
    tools = rec.of("execute_tool")
    assert [attribute(tool, "gen_ai.tool.call.id") for tool in tools] == ["toolu_1", "toolu_2", "toolu_3"]
    assert [content(tool, "gen_ai.tool.call.arguments") for tool in tools] == [
        {"city": "Paris"},
        {"city": "Rome"},
        {"city": "Atlantis"},
    ]
    assert [content(tool, "gen_ai.tool.call.result") for tool in tools] == [
        "sunny in Paris",
        "sunny in Rome",
        "It has sunk.",
    ]
    assert [attribute(tool, "error.type") for tool in tools] == [
        None,
        None,
        f"{ToolError.__module__}.{ToolError.__qualname__}",
    ]
    assert attribute(tools[0], "gen_ai.tool.description") == "The weather of a city."


def test_what_the_user_does_between_answers_is_outside_the_run() -> None:
    with recording() as rec:
        provider = testing.ScriptedProvider([testing.tool_call("weather", {"city": "Paris"}), testing.text("Fine.")])
        for _ in client_of(provider).beta.messages.tool_runner(**ASK, messages=QUESTION, tools=[weather]):
            rec.tracer.start_span("the user's own").end()
    assert [line for line in rec.tree() if not line.startswith(" ")] == [
        "invoke_agent",
        "the user's own",
        "the user's own",
    ]


def test_a_runner_that_is_left_early_is_finished_not_failed() -> None:
    with recording() as rec:
        runner = client_of(testing.ScriptedProvider(SCRIPT)).beta.messages.tool_runner(
            **ASK, messages=QUESTION, tools=[weather]
        )
        for _ in runner:
            break
        runner.close()
    run = rec.one("invoke_agent")
    assert attribute(run, "error.type") is None
    assert run.status.is_ok or run.status.is_unset


def test_a_run_belongs_to_the_conversation_that_the_clients_telemetry_is_told() -> None:
    with recording() as rec:
        client = client_of(testing.ScriptedProvider([testing.text("Hi.")]))
        client = client.with_options(open_telemetry={"conversation_id": "conv-1"})
        client.beta.messages.tool_runner(**ASK, messages=QUESTION, tools=[weather]).until_done()
    assert attribute(rec.one("invoke_agent"), "gen_ai.conversation.id") == "conv-1"
    assert attribute(rec.one("chat"), "gen_ai.conversation.id") == "conv-1"


def test_a_run_that_begins_within_a_conversation_shows_all_of_it() -> None:
    told: list[Any] = [
        {"role": "user", "content": [{"type": "text", "text": "Go."}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "weather", "input": {"city": "X"}}]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t", "content": "rain"},
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}},
            ],
        },
        {"role": "assistant", "content": [anthropic.types.beta.BetaTextBlock(type="text", text="Rain.")]},
        {"role": "user", "content": "And now?"},
    ]
    with recording() as rec:
        client = client_of(testing.ScriptedProvider([testing.text("Sun.")]))
        client.beta.messages.tool_runner(**ASK, messages=told, tools=[weather]).until_done()
    parts = [message["parts"] for message in content(rec.one("invoke_agent"), "gen_ai.input.messages")]
    assert parts == [
        [{"type": "text", "content": "Go."}],
        [{"type": "tool_call", "id": "t", "name": "weather", "arguments": {"city": "X"}}],
        [{"type": "tool_call_response", "id": "t", "response": "rain"}, told[2]["content"][1]],
        [{"type": "text", "content": "Rain."}],
        [{"type": "text", "content": "And now?"}],
    ]


# -- replayed ----------------------------------------------------------------------------------------------------------


@every_kind
def test_an_unchanged_agent_passes_offline(kind: Callable[[Any], str], tmp_path: Path) -> None:
    said: list[str] = []
    session = record(lambda: said.append(kind(testing.ScriptedProvider(SCRIPT))), tmp_path)
    assert ran == ["Paris", "Rome", "Atlantis"]
    again, report = played(session, kind)
    assert [again] == said
    assert report.verdict is Verdict.PASS, report.reasons
    assert (report.model_calls.matched, report.tool_calls.matched) == (3, 3)


@every_kind
def test_an_agent_that_says_something_else_fails(
    kind: Callable[[Any], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = record(lambda: kind(testing.ScriptedProvider(SCRIPT)), tmp_path)
    monkeypatch.setitem(ASK, "max_tokens", 98)
    with spanreel.replay(session, check=False) as playing, contextlib.suppress(ReplayStop):
        kind(testing.ScriptedProvider(SCRIPT))
    assert playing.report is not None
    assert playing.report.verdict is Verdict.FAIL
    assert "max_tokens" in playing.report.reasons[0]


@every_kind
def test_generated_ids_are_no_identity(kind: Callable[[Any], str], tmp_path: Path) -> None:
    """The same agent, recorded twice with other ids: each recording is played by the other's agent."""

    def shifted(provider: testing.ScriptedProvider) -> str:
        provider._calls = 40
        provider.requests.extend([None] * 7)  # type: ignore[list-item]  # counted only
        return kind(provider)

    session = record(lambda: shifted(testing.ScriptedProvider(SCRIPT)), tmp_path)
    assert "toolu_41" in json.dumps([message.parts for message in session.messages])
    assert played(session, kind)[1].verdict is Verdict.PASS


def test_spans_that_the_sdk_makes_too_are_folded_into_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with recording(native="keep") as rec:
        monkeypatch.setattr(trace, "_TRACER_PROVIDER", rec.provider)
        by_runner(testing.ScriptedProvider(SCRIPT))
        monkeypatch.undo()
    assert "  anthropic.messages.tool_runner" in rec.tree()
    FileExporter(str(tmp_path / "traces.jsonl")).export(rec.spans)
    (session,) = convert_files([str(tmp_path / "traces.jsonl")]).sessions
    (run,) = session.runs
    assert [(turn.model_call is not None, len(turn.tool_calls)) for turn in run.turns] == [
        (True, 2),
        (True, 1),
        (True, 0),
    ]
    assert played(session, by_runner)[1].verdict is Verdict.PASS


def test_a_member_of_a_toolset_is_a_tool_and_is_answered_from_the_recording() -> None:
    """The block that answers the model names the toolset, as the API insists."""
    from types import SimpleNamespace

    from spanreel.frameworks.anthropic import read_tool, rebuild_tool_result
    from spanreel.model import Status
    from spanreel.point import ToolResult

    asked = SimpleNamespace(name="click", input={"x": 1}, id="toolu_1", toolset_name="browser")
    request = read_tool(None, {"tool_use": asked})
    assert (request.name, request.arguments, request.call_id, request.description) == (
        "click",
        {"x": 1},
        "toolu_1",
        None,
    )
    assert rebuild_tool_result(ToolResult("gone", Status.ERROR), {"tool_use": asked}) == {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "toolset_name": "browser",
        "content": "gone",
        "is_error": True,
    }
