"""The OpenAI Agents SDK, by its public ways in: what `RUN-2` looks at, and more."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import agents
import pytest
from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrailTripwireTriggered,
    MaxTurnsExceeded,
    RunConfig,
    RunHooks,
    Runner,
    SQLiteSession,
    function_tool,
    input_guardrail,
)
from opentelemetry import trace
from opentelemetry.trace import StatusCode

from recording import Recording, attribute, content, recording
from wire_server import Model, calls, completion


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    agents.set_tracing_disabled(True)
    agents.set_default_openai_api("chat_completions")


def use(answer: Any) -> None:
    agents.set_default_openai_client(Model(answer).async_client(max_retries=0), use_for_tracing=False)


@function_tool
def weather(city: str) -> str:
    """The weather."""
    with trace.get_tracer("x").start_as_current_span("inside"):
        return f"sunny in {city}"


@function_tool
def broken(city: str) -> str:
    """Fails."""
    raise TimeoutError(f"no answer from {city}")


def answered(body: dict[str, Any]) -> list[str]:
    """The names of the tools that have answered already."""
    asked = {
        call["id"]: call["function"]["name"] for message in body["messages"] for call in message.get("tool_calls") or ()
    }
    return [asked[message["tool_call_id"]] for message in body["messages"] if message["role"] == "tool"]


def two_then_handoff(body: dict[str, Any]) -> dict[str, Any]:
    done = answered(body)
    if "transfer_to_writer" in done:
        return completion("Written.")
    if "weather" in done:
        return calls(("call_3", "transfer_to_writer", {}))
    return calls(("call_1", "weather", {"city": "Paris"}), ("call_2", "weather", {"city": "Rome"}))


def team() -> Agent[Any]:
    writer = Agent(name="writer", instructions="Write.", model="gpt-writer")
    return Agent(name="planner", instructions="Plan.", tools=[weather], handoffs=[writer], model="gpt-planner")


EXPECTED = [
    "invoke_agent planner",
    "  agent_step 0",
    "    chat gpt-planner",
    "    execute_tool weather",
    "    execute_tool weather",
    "  agent_step 1",
    "    chat gpt-planner",
    "    execute_tool transfer_to_writer",
    "  invoke_agent writer",
    "    agent_step 0",
    "      chat gpt-writer",
]


def check_team(rec: Recording) -> None:
    assert [line for line in rec.tree() if "inside" not in line] == EXPECTED
    assert {span.context.trace_id for span in rec.spans if span.context} == {rec.spans[0].context.trace_id}
    tools = rec.of("execute_tool")
    assert sorted(attribute(span, "gen_ai.tool.call.id") for span in tools) == ["call_1", "call_2", "call_3"]
    handoff = rec.named("execute_tool transfer_to_writer")
    assert attribute(handoff, "spanreel.handoff.target") == "writer"
    assert attribute(handoff, "spanreel.tool.kind") == "handoff"
    run = next(span for span in rec.of("invoke_agent") if span.parent is None)
    assert content(run, "gen_ai.input.messages")[0]["parts"][0]["content"] == "Weather report, please."
    assert content(run, "gen_ai.output.messages")[0]["parts"][0]["content"] == "Written."
    assert attribute(rec.named("invoke_agent writer"), "spanreel.run.path") == "root/writer#0"


async def test_a_run_with_parallel_tools_and_a_handoff_is_one_tree() -> None:
    use(two_then_handoff)
    with recording() as rec:
        result = await Runner.run(team(), "Weather report, please.")
        assert result.final_output == "Written."
        check_team(rec)


def test_run_sync_gives_the_same_tree() -> None:
    use(two_then_handoff)
    with recording() as rec:
        assert Runner.run_sync(team(), "Weather report, please.").final_output == "Written."
        check_team(rec)
    asyncio.get_event_loop_policy().get_event_loop().close()  # the SDK leaves the loop that it made open
    asyncio.set_event_loop(None)


def streamed(answer: Any) -> Any:
    """The same answers, as streams of one chunk a choice."""

    def respond(body: dict[str, Any]) -> Any:
        import httpx2

        whole = answer(body)
        if not body.get("stream"):
            return whole
        message = whole["choices"][0]["message"]
        for number, call in enumerate(message.get("tool_calls") or ()):
            call["index"] = number
        choice = {"index": 0, "delta": message, "finish_reason": whole["choices"][0]["finish_reason"]}
        chunk = {**whole, "object": "chat.completion.chunk", "choices": [choice]}
        body_text = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n"
        return httpx2.Response(200, content=body_text.encode(), headers={"content-type": "text/event-stream"})

    return respond


async def test_a_streamed_run_gives_the_same_tree_and_ends_when_its_work_ends() -> None:
    use(streamed(two_then_handoff))
    with recording() as rec:
        result = Runner.run_streamed(team(), "Weather report, please.")
        assert not trace.get_current_span().get_span_context().is_valid
        async for _event in result.stream_events():
            pass
        await asyncio.sleep(0)
        assert result.final_output == "Written."
        check_team(rec)


async def test_a_streamed_run_that_is_cancelled_ends_its_spans() -> None:
    use(streamed(two_then_handoff))
    with recording() as rec:
        result = Runner.run_streamed(team(), "Weather report, please.")
        async for _event in result.stream_events():
            break
        result.cancel()
        for _ in range(6000):
            if rec.of("invoke_agent"):
                break
            await asyncio.sleep(0.01)
        assert len(rec.of("invoke_agent")) >= 1


async def test_spans_of_the_user_inside_a_tool_nest_under_the_tool() -> None:
    use(two_then_handoff)
    with recording() as rec:

        @function_tool
        def nested(city: str) -> str:
            with rec.tracer.start_as_current_span("the user's"):
                return city

        def answer(body: dict[str, Any]) -> dict[str, Any]:
            return completion("Done.") if answered(body) else calls(("call_1", "nested", {"city": "Bern"}))

        use(answer)
        await Runner.run(Agent(name="a", tools=[nested], model="m"), "go")
        tool, inner = rec.one("execute_tool"), rec.named("the user's")
        assert inner.parent is not None
        assert tool.context is not None
        assert inner.parent.span_id == tool.context.span_id


async def test_a_failing_tool_is_an_error_though_the_model_reads_a_text() -> None:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        return completion("Sorry.") if answered(body) else calls(("call_1", "broken", {"city": "Bern"}))

    use(answer)
    with recording() as rec:
        await Runner.run(Agent(name="a", tools=[broken], model="m"), "go")
        tool = rec.one("execute_tool")
        assert tool.status.status_code is StatusCode.ERROR
        assert attribute(tool, "error.type") == "TimeoutError"
        assert "An error occurred" in content(tool, "gen_ai.tool.call.result")
        assert rec.one("invoke_agent").status.status_code is StatusCode.UNSET


async def test_an_agent_as_a_tool_is_a_run_inside_that_tool_call() -> None:
    helper = Agent(name="helper", instructions="Help.", model="gpt-helper")

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        if body["model"] == "gpt-helper":
            return completion("Helped.")
        return completion("Done.") if answered(body) else calls(("call_1", "ask_helper", {"input": "help"}))

    use(answer)
    with recording() as rec:
        tool = helper.as_tool("ask_helper", "Ask for help.")
        await Runner.run(Agent(name="boss", tools=[tool], model="gpt-boss"), "go")
        assert rec.tree() == [
            "invoke_agent boss",
            "  agent_step 0",
            "    chat gpt-boss",
            "    execute_tool ask_helper",
            "      invoke_agent helper",
            "        agent_step 0",
            "          chat gpt-helper",
            "  agent_step 1",
            "    chat gpt-boss",
        ]
        assert attribute(rec.one("execute_tool"), "spanreel.tool.kind") == "agent"


async def test_sessions_and_groups_are_conversations_on_every_span() -> None:
    use(lambda _body: completion("Hi."))
    with recording() as rec:
        session = SQLiteSession("conversation-5")
        await Runner.run(Agent(name="a", model="m"), "one", session=session)
        await Runner.run(Agent(name="a", model="m"), "two", session=session)
        await Runner.run(Agent(name="a", model="m"), "three", run_config=RunConfig(group_id="group-6"))
        session.close()
        ids = [attribute(span, "gen_ai.conversation.id") for span in rec.of("chat")]
        assert ids == ["conversation-5", "conversation-5", "group-6"]
        assert all(attribute(span, "gen_ai.conversation.id") for span in rec.spans)
        assert len(content(rec.of("chat")[1], "gen_ai.input.messages")) == 3


async def test_guardrails_and_turn_limits_are_errors_of_their_own_kind() -> None:
    @input_guardrail
    async def refuse(_context: Any, _agent: Any, _input: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)

    use(lambda body: calls(("call_1", "weather", {"city": "Rome"})))
    with recording() as rec:
        with pytest.raises(InputGuardrailTripwireTriggered):
            await Runner.run(Agent(name="guarded", model="m", input_guardrails=[refuse]), "go")
        with pytest.raises(MaxTurnsExceeded):
            await Runner.run(Agent(name="endless", model="m", tools=[weather]), "go", max_turns=2)
        spans = {attribute(span, "gen_ai.agent.name"): span for span in rec.of("invoke_agent")}
        assert attribute(spans["guarded"], "spanreel.error.category") == "guardrail"
        assert attribute(spans["endless"], "spanreel.error.category") == "max_turns"
        assert len([s for s in rec.of("agent_step") if attribute(s, "gen_ai.agent.name") == "endless"]) == 2


async def test_hooks_of_the_user_run_once_in_their_order() -> None:
    seen: list[str] = []

    class Hooks(RunHooks[Any]):
        async def on_agent_start(self, *_: Any) -> None:
            seen.append("agent")

        async def on_tool_start(self, *_: Any) -> None:
            seen.append("tool")

        async def on_tool_end(self, *_: Any) -> None:
            seen.append("end")

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        return completion("Done.") if answered(body) else calls(("call_1", "weather", {"city": "Rome"}))

    use(answer)
    with recording():
        await Runner.run(Agent(name="a", tools=[weather], model="m"), "go", hooks=Hooks())
    assert seen == ["agent", "tool", "end"]


async def test_three_runs_at_once_are_three_clean_traces() -> None:
    use(two_then_handoff)
    with recording() as rec:
        await asyncio.gather(*(Runner.run(team(), "Weather report, please.") for _ in range(3)))
        traces: dict[int, int] = {}
        for span in rec.spans:
            assert span.context is not None
            traces[span.context.trace_id] = traces.get(span.context.trace_id, 0) + 1
        assert len(traces) == 3
        assert len(set(traces.values())) == 1
