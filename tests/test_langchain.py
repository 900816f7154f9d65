"""LangGraph's runs recorded, by their public ways in: what `RUN-3` looks at, and more."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from typing import Any, TypedDict

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from opentelemetry import trace
from opentelemetry.trace import StatusCode

import spanreel
from graphs import ASKED, agent, asks, chat, in_turn, line, thread
from recording import Recording, attribute, content, recording
from spanreel import testing
from spanreel.model import Usage

TREE = [
    "invoke_agent forecaster",
    "  agent_step 0",
    "    chat gpt-5",
    "    execute_tool weather",
    "    execute_tool weather",
    "  agent_step 1",
    "    chat gpt-5",
]


@tool
def weather(city: str) -> str:
    """The weather."""
    return f"sunny in {city}"


@pytest.fixture(autouse=True)
def nothing_left_over(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No token is detached where it was not attached (report 005), and nothing stays current."""
    yield
    assert [record for record in caplog.records if record.name.startswith("opentelemetry")] == []
    assert not trace.get_current_span().get_span_context().is_valid


def said(span: Any, name: str = "gen_ai.output.messages") -> Any:
    return content(span, name)[-1]["parts"][0]["content"]


def status(span: Any) -> Any:
    return attribute(span, "spanreel.run.status")


def roots(rec: Recording) -> list[Any]:
    return [span for span in rec.of("invoke_agent") if span.parent is None]


def check(rec: Recording) -> None:
    """One run of the agent that `graphs.agent` makes by default, as it happened."""
    assert rec.tree() == TREE
    (run,) = roots(rec)
    assert (attribute(run, "gen_ai.agent.name"), said(run), status(run)) == ("forecaster", "Sunny.", "ok")
    assert said(run, "gen_ai.input.messages") == "How is it?"
    assert sorted(attribute(span, "gen_ai.tool.call.id") for span in rec.of("execute_tool")) == ["call_1", "call_2"]
    assert len({span.context.trace_id for span in rec.spans if span.context}) == 1
    assert {span.status.status_code for span in rec.spans} == {StatusCode.UNSET}


# -- one run, whatever the way in --------------------------------------------------------------------------------------


def test_a_run_is_one_trace_with_the_right_tokens_and_the_users_spans_inside_its_tools() -> None:
    @tool
    def nested(city: str) -> str:
        """Has a span of its own."""
        with rec.tracer.start_as_current_span("the user's"):
            return city

    spent = Usage(input_tokens=10, output_tokens=2)
    script = in_turn(testing.tool_call("nested", {"city": "Bern"}, usage=spent), testing.text("Done.", usage=spent))
    with recording() as rec:
        agent([nested], script).invoke(ASKED)
        assert rec.tree() == [
            "invoke_agent forecaster",
            "  agent_step 0",
            "    chat gpt-5",
            "    execute_tool nested",
            "      the user's",
            "  agent_step 1",
            "    chat gpt-5",
        ]
        assert sum(attribute(span, "gen_ai.usage.input_tokens") or 0 for span in rec.spans) == 20
        assert len({span.context.trace_id for span in rec.spans if span.context}) == 1


def test_invoke_is_one_run_and_gives_what_it_gave() -> None:
    with recording() as rec:
        result = agent([weather]).invoke(ASKED)
        check(rec)
    bare = agent([weather]).invoke(ASKED)
    assert [(type(m), m.content) for m in result["messages"]] == [(type(m), m.content) for m in bare["messages"]]


async def test_ainvoke_gives_the_same_tree() -> None:
    with recording() as rec:
        await agent([weather]).ainvoke(ASKED)
        check(rec)


MODES = ["values", "updates", "messages", "custom", "tasks", ["values", "messages"]]


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_a_stream_gives_the_same_run_in_every_mode_and_nothing_is_current_between_its_items(mode: Any) -> None:
    with recording() as rec:
        items = []
        for item in agent([weather]).stream(ASKED, stream_mode=mode):
            items.append(item)
            assert not trace.get_current_span().get_span_context().is_valid
        check(rec)
    assert [type(item) for item in items] == [type(item) for item in agent([weather]).stream(ASKED, stream_mode=mode)]


@pytest.mark.parametrize("mode", MODES, ids=str)
async def test_an_asynchronous_stream_gives_the_same_run(mode: Any) -> None:
    with recording() as rec:
        async for _item in agent([weather]).astream(ASKED, stream_mode=mode):
            assert not trace.get_current_span().get_span_context().is_valid
        check(rec)


async def test_streams_of_events_give_the_same_run() -> None:
    with recording() as rec:
        async for _event in agent([weather]).astream_events(ASKED, version="v2"):
            pass
        check(rec)


@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")
def test_the_new_stream_of_events_gives_the_same_run() -> None:
    with recording() as rec:
        for _event in agent([weather]).stream_events(ASKED, version="v3"):
            pass
        check(rec)


def test_a_batch_of_three_is_three_runs() -> None:
    with recording() as rec:
        agent([weather]).batch([ASKED] * 3)
        assert len(roots(rec)) == 3
        assert len({span.context.trace_id for span in rec.spans if span.context}) == 3
        assert len(rec.of("chat")) == 6


async def test_runs_at_once_are_clean_traces() -> None:
    with recording() as rec:
        await asyncio.gather(*(agent([weather]).ainvoke(ASKED) for _ in range(2)), agent([weather]).abatch([ASKED] * 2))
        traces: dict[int, int] = {}
        for span in rec.spans:
            assert span.context is not None
            traces[span.context.trace_id] = traces.get(span.context.trace_id, 0) + 1
        assert len(traces) == 4
        assert len(set(traces.values())) == 1


@pytest.mark.slow
def test_a_stream_closed_early_is_finished_not_failed() -> None:
    with recording() as rec:
        stream = agent([weather]).stream(ASKED, stream_mode="updates")
        next(stream)
        stream.close()
        (run,) = roots(rec)
        assert (run.status.status_code, status(run)) == (StatusCode.UNSET, "ok")
        abandoned = agent([weather]).stream(ASKED, stream_mode="messages")
        next(abandoned)
        del abandoned
        gc.collect()
        assert [span.status.status_code for span in roots(rec)] == [StatusCode.UNSET] * 2


async def test_an_asynchronous_stream_left_early_is_finished_not_failed() -> None:
    with recording() as rec:
        async for _item in agent([weather]).astream(ASKED, stream_mode="messages"):
            break
        for _ in range(6000):
            if roots(rec):
                break
            await asyncio.sleep(0.01)
        (run,) = roots(rec)
        assert (run.status.status_code, status(run)) == (StatusCode.UNSET, "ok")


def test_a_stream_that_is_never_read_leaves_nothing() -> None:
    with recording() as rec:
        agent([weather]).stream(ASKED)
        assert rec.spans == []


async def test_a_cancelled_run_is_cancelled_and_ends_its_spans() -> None:
    with recording() as rec:
        asked: list[Any] = []
        slow = in_turn(testing.text("Late.", delay=60_000))
        work = asyncio.ensure_future(agent(script=slow, requests=asked).ainvoke(ASKED))
        while not asked and not work.done():
            await asyncio.sleep(0.01)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        (run,) = roots(rec)
        assert (status(run), attribute(run, "error.type")) == ("cancelled", "CancelledError")
        assert status(rec.one("chat")) == "cancelled"


# -- graphs ------------------------------------------------------------------------------------------------------------


def small(name: str | None = None, **options: Any) -> Any:
    """Two nodes, the second of which asks a model."""
    model = chat(in_turn(testing.text("Sunny.")), **options)

    def model_node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    return line(name, first=lambda _state: {"messages": [SystemMessage("Be brief.")]}, model=model_node)


async def test_a_graph_without_a_name_is_a_run_of_its_class() -> None:
    with recording() as rec:
        await small().ainvoke({"messages": "Hi."})
        await small().ainvoke({"messages": "Hi."})
        assert rec.tree() == ["invoke_agent LangGraph", "  agent_step 0", "    chat gpt-5"] * 2
        assert [said(span) for span in roots(rec)] == ["Sunny.", "Sunny."]


def test_a_graph_in_a_graph_is_a_run_inside() -> None:
    with recording() as rec:
        line("outer", sub=small("writer")).invoke({"messages": "Hi."}, thread("t-1"))
        assert rec.tree() == [
            "invoke_agent outer",
            "  invoke_agent writer",
            "    agent_step 0",
            "      chat gpt-5",
        ]
        assert attribute(rec.named("invoke_agent writer"), "spanreel.run.path") == "root/writer#0"
        assert {attribute(span, "gen_ai.conversation.id") for span in rec.spans} == {"t-1"}
        assert {said(span) for span in rec.of("invoke_agent")} == {"Sunny."}


def test_an_agent_called_in_a_tool_is_a_run_inside_that_tool_call() -> None:
    @tool
    def ask_writer(question: str) -> str:
        """Ask the writer."""
        return str(small("writer").invoke({"messages": question})["messages"][-1].content)

    with recording() as rec:
        agent([ask_writer], in_turn(asks(("c", "ask_writer", {"question": "?"})), testing.text("Done."))).invoke(ASKED)
        assert rec.tree() == [
            "invoke_agent forecaster",
            "  agent_step 0",
            "    chat gpt-5",
            "    execute_tool ask_writer",
            "      invoke_agent writer",
            "        agent_step 0",
            "          chat gpt-5",
            "  agent_step 1",
            "    chat gpt-5",
        ]


@pytest.mark.slow
def test_a_deep_agents_task_is_an_agent_with_its_run_inside() -> None:
    from deepagents import create_deep_agent

    helper: Any = {
        "name": "helper",
        "description": "Helps.",
        "system_prompt": "Help.",
        "model": chat(in_turn(testing.text("42"))),
    }
    asked = asks(("call_1", "task", {"description": "Count.", "subagent_type": "helper"}))
    deep: Any = create_deep_agent(chat(in_turn(asked, testing.text("It is 42."))), subagents=[helper], name="boss")
    with recording() as rec:
        assert deep.invoke(ASKED)["messages"][-1].content == "It is 42."
        assert rec.tree() == [
            "invoke_agent boss",
            "  agent_step 0",
            "    chat gpt-5",
            "    execute_tool task",
            "      invoke_agent helper",
            "        agent_step 0",
            "          chat gpt-5",
            "  agent_step 1",
            "    chat gpt-5",
        ]
        task = rec.one("execute_tool")
        assert attribute(task, "spanreel.tool.kind") == "agent"
        assert content(task, "gen_ai.tool.call.arguments") == {"description": "Count.", "subagent_type": "helper"}


def test_a_graph_that_gives_the_word_to_the_outer_one_has_not_failed() -> None:
    def leave(_state: MessagesState) -> Command[Any]:
        return Command(goto="after", graph=Command.PARENT, update={"messages": [AIMessage("Over to you.")]})

    outer: Any = StateGraph(MessagesState)
    outer.add_node("sub", line("inner", leave=leave))
    outer.add_node("after", lambda _state: {"messages": [AIMessage("Thanks.")]})
    outer.add_edge(START, "sub")
    with recording() as rec:
        outer.compile(name="outer").invoke({"messages": "Hi."})
        assert [(status(span), span.status.status_code) for span in rec.of("invoke_agent")] == [
            ("ok", StatusCode.UNSET)
        ] * 2
        assert content(rec.named("invoke_agent inner"), "spanreel.run.result")["goto"] == "after"


def test_a_state_of_any_other_kind_is_its_json() -> None:
    class State(TypedDict):
        question: str
        answer: str

    with recording() as rec:
        line("plain", State, node=lambda state: {"answer": state["question"].upper()}).invoke({"question": "why?"})
        (run,) = roots(rec)
        assert said(run, "gen_ai.input.messages") == '{"question": "why?"}'
        assert content(run, "spanreel.run.arguments") == {"input": {"question": "why?"}}
        assert content(run, "spanreel.run.result") == {"question": "why?", "answer": "WHY?"}


CALL = {"name": "weather", "args": {"city": "Bern"}, "id": "call_1", "type": "tool_call"}
ASKING = {
    "role": "assistant",
    "parts": [{"type": "tool_call", "id": "call_1", "name": "weather", "arguments": {"city": "Bern"}}],
}
HI = {"role": "user", "parts": [{"type": "text", "content": "Hi."}]}
TOLD = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_1", "response": "rain"}]}


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("Hi.", [HI]),
        (("user", "Hi."), [HI]),
        ([("human", "Hi.")], [HI]),
        ([{"role": "user", "content": "Hi."}], [HI]),
        ([{"type": "human", "content": [{"type": "text", "text": "Hi."}]}], [HI]),
        (HumanMessage("Hi."), [HI]),
        (
            [{"role": "user", "content": ["Hi.", {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}]}],
            [
                {
                    "role": "user",
                    "parts": [*HI["parts"], {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}],
                }
            ],
        ),
        (
            [HumanMessage("Hi."), AIMessage("", tool_calls=[CALL]), ToolMessage("rain", tool_call_id="call_1")],
            [HI, ASKING, TOLD],
        ),
        (
            [
                {"role": "user", "content": "Hi."},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "weather", "arguments": '{"city": "Bern"}'},
                        }
                    ],
                },
                {"role": "tool", "content": "rain", "tool_call_id": "call_1"},
            ],
            [HI, ASKING, TOLD],
        ),
    ],
    ids=lambda given: type(given).__name__,
)
def test_messages_are_read_in_every_form_in_which_they_may_be_given(given: Any, read: Any) -> None:
    with recording() as rec:
        small().invoke({"messages": given})
        assert content(roots(rec)[0], "gen_ai.input.messages") == read


# -- conversations, interrupts -----------------------------------------------------------------------------------------


def test_threads_are_conversations_on_every_span() -> None:
    with recording() as rec:
        made = agent([weather], checkpointer=InMemorySaver())
        made.invoke(ASKED, {"configurable": {"thread_id": 7, "user_id": "u-1"}})
        assert {attribute(span, "gen_ai.conversation.id") for span in rec.spans} == {"7"}
        assert attribute(roots(rec)[0], "user.id") == "u-1"
        rec.exporter.clear()
        made.with_config(thread("t-2")).invoke(ASKED)
        assert {attribute(span, "gen_ai.conversation.id") for span in rec.spans} == {"t-2"}
        rec.exporter.clear()
        with spanreel.session("said"):
            made.invoke(ASKED, thread("t-3"))
        assert {attribute(span, "gen_ai.conversation.id") for span in rec.spans} == {"said"}


@tool
def confirm(question: str) -> str:
    """Ask somebody."""
    return f"they said {interrupt({'question': question})}"


def careful(**options: Any) -> Any:
    script = in_turn(asks(("call_1", "confirm", {"question": "Really?"})), testing.text("Done."))
    return agent([confirm], script, checkpointer=InMemorySaver(), **options)


async def test_an_interrupt_is_no_error_and_what_resumes_is_the_next_run_of_the_conversation() -> None:
    with recording() as rec:
        made = careful()
        assert made.invoke(ASKED, thread("t-1"))["__interrupt__"][0].value == {"question": "Really?"}
        (run,), asking = roots(rec), rec.one("execute_tool")
        assert {span.status.status_code for span in rec.spans} == {StatusCode.UNSET}
        assert (status(run), status(asking)) == ("interrupted", "interrupted")
        assert content(run, "spanreel.run.result")["interrupts"] == [{"question": "Really?"}]
        rec.exporter.clear()
        async for _item in made.astream(Command(resume="yes"), thread("t-1"), stream_mode="custom"):
            pass
        (run,) = roots(rec)
        assert (status(run), said(run), said(run, "gen_ai.input.messages")) == ("ok", "Done.", "yes")
        assert attribute(run, "gen_ai.conversation.id") == "t-1"
        assert content(rec.one("execute_tool"), "gen_ai.tool.call.result") == "they said yes"


def test_a_stop_before_a_node_is_an_interrupt_too() -> None:
    with recording() as rec:
        made = agent([weather], checkpointer=InMemorySaver(), interrupt_before=["tools"])
        made.invoke(ASKED, thread("t-1"))
        made.invoke(None, thread("t-1"))
        first, second = roots(rec)
        assert (status(first), status(second)) == ("interrupted", "ok")
        assert attribute(second, "gen_ai.input.messages") is None


def test_an_interrupt_inside_a_graph_inside_is_no_error() -> None:
    inner = line("inner", ask=lambda _state: {"messages": [AIMessage(interrupt("Well?"))]})
    made = line("outer", sub=inner, compiled={"checkpointer": InMemorySaver()})
    with recording() as rec:
        made.invoke({"messages": "Hi."}, thread("t-1"))
        assert [status(span) for span in rec.of("invoke_agent")] == ["interrupted", "interrupted"]
        assert {span.status.status_code for span in rec.spans} == {StatusCode.UNSET}
        rec.exporter.clear()
        made.invoke(Command(resume="fine"), thread("t-1"))
        assert [(status(span), said(span)) for span in rec.of("invoke_agent")] == [("ok", "fine")] * 2


def test_a_loop_without_end_is_a_failure_of_its_own_kind() -> None:
    with recording() as rec:
        endless = agent([weather], lambda _request: asks(("call_1", "weather", {"city": "Rome"})))
        with pytest.raises(GraphRecursionError):
            endless.invoke(ASKED, {"recursion_limit": 4})
        assert attribute(roots(rec)[0], "spanreel.error.category") == "max_turns"


# -- the user's own ----------------------------------------------------------------------------------------------------


class Heard(BaseCallbackHandler):
    """A user's callbacks, with what they hear."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_chain_start(self, *_: Any, **named: Any) -> None:
        self.heard.append(f"chain {named.get('name')}")

    def on_chat_model_start(self, *_: Any, **named: Any) -> None:
        self.heard.append("model")

    def on_tool_start(self, *_: Any, **named: Any) -> None:
        self.heard.append("tool")

    def on_tool_end(self, *_: Any, **named: Any) -> None:
        self.heard.append("tool ends")

    def on_llm_end(self, *_: Any, **named: Any) -> None:
        self.heard.append("model ends")


def test_callbacks_of_the_user_run_once_in_their_order() -> None:
    once = in_turn(asks(("call_1", "weather", {"city": "Rome"})), testing.text("Sunny."))
    bare, ours = Heard(), Heard()
    agent([weather], once).invoke(ASKED, {"callbacks": [bare]})
    with recording():
        agent([weather], once).invoke(ASKED, {"callbacks": [ours]})
    assert ours.heard == bare.heard
    assert [word for word in ours.heard if not word.startswith("chain")] == [
        "model",
        "model ends",
        "tool",
        "tool ends",
        "model",
        "model ends",
    ]


def test_a_failure_of_the_model_passes_unchanged() -> None:
    broken = in_turn(testing.error(400, "no"))
    with pytest.raises(Exception, match="no") as bare:
        agent(script=broken).invoke(ASKED)
    with recording() as rec, pytest.raises(Exception, match="no") as ours:
        agent(script=broken).invoke(ASKED)
    assert type(ours.value) is type(bare.value)
    assert str(ours.value) == str(bare.value)
    run, call = roots(rec)[0], rec.one("chat")
    assert (run.status.status_code, call.status.status_code) == (StatusCode.ERROR, StatusCode.ERROR)
    assert attribute(run, "spanreel.error.category") == "model"


def test_raw_responses_which_the_integration_reads_keep_their_headers() -> None:
    answer = testing.text("Hello.", headers={"x-ratelimit-remaining-requests": "41"})
    with recording() as rec:
        message = chat(in_turn(answer), include_response_headers=True).invoke("Hi.")
        assert message.response_metadata["headers"]["x-ratelimit-remaining-requests"] == "41"
        assert attribute(rec.one("chat"), "gen_ai.usage.output_tokens") == 1


def test_a_chain_without_a_graph_is_its_model_calls() -> None:
    chain = ChatPromptTemplate.from_template("Say {word}.") | chat(in_turn(testing.text("Hello."))) | StrOutputParser()
    with recording() as rec:
        assert chain.invoke({"word": "hello"}) == "Hello."
        assert "".join(chain.stream({"word": "hello"})) == "Hello."
        assert rec.tree() == ["chat gpt-5", "chat gpt-5"]


def test_nothing_is_wrapped_after_uninstrument() -> None:
    with recording() as rec:
        made = agent([weather])
    made.invoke(ASKED)
    assert rec.spans == []


def test_no_content_is_kept_where_none_is_wanted() -> None:
    settings = spanreel.read_settings({"SPANREEL_CAPTURE": "metadata"})
    with recording(settings=settings) as rec:
        agent([weather]).invoke(ASKED)
        assert rec.tree() == TREE
        assert not [text for span in rec.spans for text in map(str, (span.attributes or {}).values()) if "unny" in text]


SCRIPT = """
import sys
sys.path[:0] = {path!r}
{before}
from langgraph.graph import StateGraph, MessagesState, START
from graphs import ASKED, TWO, agent, chat
from langchain_core.tools import tool

@tool
def weather(city: str) -> str:
    "The weather."
    return "sunny"

made = agent([weather])
{after}
from recording import recording
with recording() as rec:
    made.invoke(ASKED)
    print("\\n".join(rec.tree()))
"""


@pytest.mark.slow
@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
def test_it_does_not_matter_whether_graphs_are_made_before_us(first: bool) -> None:
    line = "import spanreel; spanreel.instrument()"
    code = SCRIPT.format(path=sys.path, before=line if first else "", after="" if first else line)
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == TREE
