"""LangGraph's runs, recorded and played again by the same code: nothing is asked, nothing runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import InjectedToolCallId, ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState
from langgraph.types import Command, interrupt

import spanreel
from graphs import ASKED, TWO, agent, asks, chat, in_turn, line, thread
from kinds import record
from spanreel import testing
from spanreel.cli import main
from spanreel.replay.judging.verdict import Report, Verdict

ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


@tool
def weather(city: str) -> str:
    """The weather."""
    ran.append(city)
    return f"sunny in {city}"


def play(session: Any, work: Callable[[], Any]) -> Report:
    """Replay; no tool may run."""
    ran.clear()
    with spanreel.replay(session, check=False) as playing:
        work()
    assert ran == []
    assert playing.report is not None
    return playing.report


def there_and_back(work: Callable[[], Any], folder: Path) -> Report:
    """Record something, and replay it: it passes."""
    session = record(work, folder)
    report = play(session, work)
    assert report.reasons == ()
    assert report.verdict is Verdict.PASS
    assert {run.outcome for run in report.runs} == {"same"}
    return report


async def _all(stream: Any) -> list[Any]:
    return [item async for item in stream]


WAYS: dict[str, Callable[[Any], Any]] = {
    "invoke": lambda made: made.invoke(ASKED),
    "ainvoke": lambda made: asyncio.run(made.ainvoke(ASKED)),
    "stream": lambda made: list(made.stream(ASKED, stream_mode="messages")),
    "astream": lambda made: asyncio.run(_all(made.astream(ASKED, stream_mode="updates"))),
    "astream_events": lambda made: asyncio.run(_all(made.astream_events(ASKED, version="v2"))),
    "batch": lambda made: made.batch([ASKED]),
}


@pytest.mark.parametrize("way", WAYS)
def test_an_agent_passes_offline_whatever_the_way_in(way: str, tmp_path: Path) -> None:
    asked: list[Any] = []
    report = there_and_back(lambda: WAYS[way](agent([weather], requests=asked)), tmp_path)
    assert (report.model_calls.matched, report.tool_calls.matched) == (2, 2)
    assert len(asked) == 2


def test_what_comes_back_is_what_came_back(tmp_path: Path) -> None:
    results: list[Any] = []
    there_and_back(lambda: results.append(agent([weather]).invoke(ASKED)["messages"]), tmp_path)
    recorded, played = results
    assert [(type(m), m.content, m.name) for m in played] == [(type(m), m.content, m.name) for m in recorded]
    assert [getattr(m, "tool_call_id", None) for m in played] == [getattr(m, "tool_call_id", None) for m in recorded]


def test_the_recorded_input_beats_the_callers(tmp_path: Path) -> None:
    for talk in (
        [HumanMessage("Hi."), AIMessage("Hello."), ("user", "How is it?")],
        [{"role": "user", "content": "Hi."}],
        ("user", "Hi."),
        "Hi.",
    ):
        session = record(partial(agent([weather]).invoke, {"messages": talk}), tmp_path)
        report = play(session, lambda: agent([weather]).invoke({"messages": "Something else."}))
        assert report.verdict is Verdict.PASS, (talk, report.reasons)


def test_other_instructions_are_named(tmp_path: Path) -> None:
    session = record(lambda: agent([weather]).invoke(ASKED), tmp_path)

    def changed() -> Any:
        from langchain.agents import create_agent

        made: Any = create_agent(chat(TWO), [weather], system_prompt="Be long.", name="forecaster")
        return made.invoke(ASKED)

    report = play(session, changed)
    assert report.verdict is Verdict.FAIL
    assert "Be long." in report.reasons[0]


def test_a_graph_made_by_hand_passes(tmp_path: Path) -> None:
    def work() -> Any:
        model = chat(in_turn(asks(("c", "weather", {"city": "Bern"})), testing.text("Sunny.")))

        def ask(state: MessagesState) -> Any:
            return {"messages": [model.bind_tools([weather]).invoke(state["messages"])]}

        def call(state: MessagesState) -> Any:
            asked: Any = state["messages"][-1]
            return {"messages": [weather.invoke(call) for call in asked.tool_calls]}

        return line("by hand", ask=ask, call=call, again=ask).invoke({"messages": "How is it?"})

    report = there_and_back(work, tmp_path)
    assert (report.model_calls.matched, report.tool_calls.matched) == (2, 1)


def test_a_function_as_a_graph_passes(tmp_path: Path) -> None:
    def work() -> Any:
        from langgraph.func import entrypoint, task

        model = chat(in_turn(testing.text("Sunny.")))

        @task
        def ask(question: str) -> str:
            return str(model.invoke(question).content)

        @entrypoint()
        def flow(question: str) -> dict[str, Any]:
            return {"answer": ask(question).result(), "seen": weather.invoke({"city": "Bern"})}

        return flow.invoke("How is it?")

    report = there_and_back(work, tmp_path)
    assert (report.model_calls.matched, report.tool_calls.matched) == (1, 1)
    assert report.runs[0].agent == "flow"


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_an_agent_on_anthropic_passes(way: str, tmp_path: Path) -> None:
    from langchain.agents import create_agent
    from langchain_anthropic import ChatAnthropic

    with testing.ScriptedProvider(TWO) as provider:
        address = provider.base_url

        def work() -> Any:
            model = ChatAnthropic(model="claude-x", api_key="sk-ant-none", base_url=address, max_retries=0)
            return WAYS[way](create_agent(model, [weather], system_prompt="Be brief.", name="forecaster"))

        session = record(work, tmp_path)
    report = play(session, work)
    assert (report.verdict, report.reasons) == (Verdict.PASS, ())
    assert (report.model_calls.matched, report.tool_calls.matched) == (2, 2)


class Shelf(BaseRetriever):
    """Finds books."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        ran.append(query)
        return [Document("On refunds", metadata={"page": 3}, id="d-1")]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_retrievers_are_answered_with_documents(way: str, tmp_path: Path) -> None:
    found: list[Document] = []
    model = chat(in_turn(testing.text("Yes.")))

    def look(state: MessagesState) -> Any:
        found.extend(Shelf().invoke("refunds"))
        return {"messages": [found[-1].page_content]}

    async def alook(state: MessagesState) -> Any:
        found.extend(await Shelf().ainvoke("refunds"))
        return {"messages": [found[-1].page_content]}

    def work() -> Any:
        made = line(
            "rag", look=look if way == "invoke" else alook, ask=lambda s: {"messages": [model.invoke(s["messages"])]}
        )
        asked = {"messages": "Refunds?"}
        return made.invoke(asked) if way == "invoke" else asyncio.run(made.ainvoke(asked))

    there_and_back(work, tmp_path)
    assert found == [Document("On refunds", metadata={"page": 3}, id="d-1")] * 2


# -- what tools may do -------------------------------------------------------------------------------------------------


@tool(response_format="content_and_artifact")
def chart(year: int) -> tuple[str, dict[str, Any]]:
    """Draws."""
    ran.append("chart")
    return "drawn", {"points": [year], "document": Document("x")}


@tool
def go(where: str, call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
    """Goes."""
    ran.append("go")
    return Command(update={"messages": [ToolMessage(f"went {where}", tool_call_id=call_id)]})


@tool
def blocks(n: int) -> list[Any]:
    """Content in blocks."""
    ran.append("blocks")
    return [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]


@tool
def table(n: int) -> dict[str, Any]:
    """A value that is no content."""
    ran.append("table")
    return {"n": n, "type": "x"}


@tool
def handled(n: int) -> str:
    """Fails, and handles it."""
    ran.append("handled")
    raise ToolException("not today")


handled.handle_tool_error = True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "arguments"),
    [
        (chart, {"year": 7}),
        (go, {"where": "home"}),
        (blocks, {"n": 1}),
        (table, {"n": 1}),
        (handled, {"n": 1}),
        (weather, {"town": "an argument that does not fit"}),
    ],
    ids=["artifact", "command", "blocks", "value", "handled", "misfit"],
)
@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_whatever_a_tool_gives_is_given_again(made: Any, arguments: Any, way: str, tmp_path: Path) -> None:
    told: list[Any] = []

    def work() -> None:
        script = in_turn(asks(("call_1", made.name, arguments)), testing.text("Done."))
        message = WAYS[way](agent([made], script))["messages"][2]
        told.append((message.content, message.artifact, message.status, message.name, message.tool_call_id))

    there_and_back(work, tmp_path)
    assert told[1] == told[0]


def test_a_failure_of_a_tool_is_raised_again(tmp_path: Path) -> None:
    @tool
    def broken(n: int) -> str:
        """Fails."""
        ran.append("broken")
        raise TimeoutError("no answer")

    def work() -> None:
        with pytest.raises(TimeoutError, match="no answer"):
            agent([broken], in_turn(asks(("c", "broken", {"n": 1})), testing.text("Done."))).invoke(ASKED)

    there_and_back(work, tmp_path)


@pytest.mark.slow
def test_a_deep_agents_helper_runs_and_its_calls_are_answered(tmp_path: Path) -> None:
    from deepagents import create_deep_agent

    def work() -> Any:
        script = in_turn(asks(("c", "weather", {"city": "Bern"})), testing.text("Sunny."))
        helper: Any = {
            "name": "helper",
            "description": "Helps.",
            "system_prompt": "Help.",
            "model": chat(script),
            "tools": [weather],
        }
        asked = in_turn(
            asks(("call_1", "task", {"description": "Look.", "subagent_type": "helper"})),
            asks(("call_2", "write_file", {"file_path": "/note", "content": "sunny"})),
            testing.text("Noted."),
        )
        made: Any = create_deep_agent(chat(asked), subagents=[helper], name="boss")
        return made.invoke(ASKED)

    report = there_and_back(work, tmp_path)
    assert (report.model_calls.matched, report.model_calls.recorded) == (5, 5)
    assert {run.path for run in report.runs} == {"root", "root/helper#0"}


# -- conversations -----------------------------------------------------------------------------------------------------


def test_a_conversation_over_two_runs_passes_on_a_new_checkpointer(tmp_path: Path) -> None:
    def work() -> None:
        script = in_turn(testing.text("One."), testing.text("Two."))
        made = agent(script=script, checkpointer=InMemorySaver())
        made.invoke({"messages": "First."}, thread("t-1"))
        made.invoke({"messages": "Second."}, thread("t-1"))

    report = there_and_back(work, tmp_path)
    assert len(report.runs) == 2


@tool
def confirm(question: str) -> str:
    """Ask somebody, twice."""
    first, second = interrupt({"question": question}), interrupt({"again": question})
    ran.append("confirm")
    return f"they said {first}, then {second}"


def test_interrupts_are_raised_again_and_resumed(tmp_path: Path) -> None:
    asked: list[Any] = []

    def work() -> None:
        script = in_turn(asks(("call_1", "confirm", {"question": "Really?"})), testing.text("Done."))
        made = agent([confirm], script, checkpointer=InMemorySaver())
        asked.append(made.invoke(ASKED, thread("t-1"))["__interrupt__"][0].value)
        asked.append(made.invoke(Command(resume="yes"), thread("t-1"))["__interrupt__"][0].value)
        asked.append(made.invoke(Command(resume="no"), thread("t-1"))["messages"][-2].content)

    report = there_and_back(work, tmp_path)
    assert asked == [{"question": "Really?"}, {"again": "Really?"}, "they said yes, then no"] * 2
    assert len(report.runs) == 3


DECISIONS: dict[str, Any] = {
    "approve": {"type": "approve"},
    "edit": {"type": "edit", "edited_action": {"name": "weather", "args": {"city": "Rome"}}},
    "reject": {"type": "reject", "message": "Not there."},
}


@pytest.mark.parametrize("decision", DECISIONS)
def test_a_tool_that_a_person_is_asked_about_first_keeps_no_session_from_a_replay(
    decision: str, tmp_path: Path
) -> None:
    def work() -> None:
        script = in_turn(asks(("call_1", "weather", {"city": "Paris"})), testing.text("Done."))
        asking = HumanInTheLoopMiddleware(interrupt_on={"weather": True})
        made = agent([weather], script, checkpointer=InMemorySaver(), middleware=[asking])
        assert made.invoke(ASKED, thread("t-1"))["__interrupt__"]
        answer = made.invoke(Command(resume={"decisions": [DECISIONS[decision]]}), thread("t-1"))
        assert answer["messages"][-1].content == "Done."

    session = record(work, tmp_path)
    assert session.replay.eligible, session.replay.reasons
    assert play(session, work).verdict is Verdict.PASS


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_a_replay_neither_reads_nor_writes_the_live_checkpoints(asynchronous: bool, tmp_path: Path) -> None:
    made = agent([weather], checkpointer=InMemorySaver())
    seen: list[Any] = []

    def work() -> None:
        made.invoke(ASKED, thread("t-1"))
        made.update_state(thread("t-1"), {"messages": [("user", "One more thing.")]})
        seen.append([message.content for message in made.get_state(thread("t-1")).values["messages"]])
        assert len(list(made.get_state_history(thread("t-1")))) > 3

    async def work_async() -> None:
        await made.ainvoke(ASKED, thread("t-1"))
        await made.aupdate_state(thread("t-1"), {"messages": [("user", "One more thing.")]})
        seen.append([message.content for message in (await made.aget_state(thread("t-1"))).values["messages"]])
        assert len([one async for one in made.aget_state_history(thread("t-1"))]) > 3

    there_and_back((lambda: asyncio.run(work_async())) if asynchronous else work, tmp_path)
    first, second = seen
    assert second == first
    live = made.get_state(thread("t-1")).values["messages"]
    assert [message.content for message in live] == first


REMEMBERING = """
from langgraph.checkpoint.memory import InMemorySaver

from graphs import agent, in_turn, thread
from spanreel import testing

def weather(city: str) -> str:
    "The weather."

talk = agent([], script=in_turn(testing.text("One."), testing.text("Two.")), checkpointer=InMemorySaver())

def answer(question):
    talk.invoke({"messages": question}, thread("t-1"))
"""


def test_a_later_run_of_a_conversation_is_played_after_those_that_its_agent_remembers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def work() -> None:
        made = agent(script=in_turn(testing.text("One."), testing.text("Two.")), checkpointer=InMemorySaver())
        made.invoke({"messages": "First."}, thread("t-1"))
        made.invoke({"messages": "Second."}, thread("t-1"))

    file = tmp_path / "session.json"
    file.write_text(record(work, tmp_path).model_dump_json())
    (tmp_path / "remembering.py").write_text(REMEMBERING)
    (tmp_path / "another.py").write_text(REMEMBERING.replace("agent([]", "agent([weather]"))
    (tmp_path / "forgetful.py").write_text(REMEMBERING.replace('"t-1"', "question"))
    monkeypatch.chdir(tmp_path)

    assert main(["replay", f"{file}#1", "--entry", "remembering:answer"]) == 0
    assert "PASS: 1 call answered" in capsys.readouterr().out
    assert main(["replay", f"{file}#1", "--entry", "forgetful:answer"]) == 1
    assert "/messages/1/parts/0/content: recorded 'First.', now 'Second.'" in capsys.readouterr().out
    assert main(["replay", f"{file}#1", "--entry", "another:answer"]) == 1
    assert "run 0, played before it to be remembered: FAIL: model call 1" in capsys.readouterr().out
