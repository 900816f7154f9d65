"""LangChain's tools and retrievers recorded, inside agents and called directly."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

import pydantic
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import ToolMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import (
    BaseTool,
    InjectedToolCallId,
    StructuredTool,
    ToolException,
    create_retriever_tool,
    tool,
)
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.prebuilt import InjectedState, ToolNode
from langgraph.types import Command
from opentelemetry.trace import StatusCode

from graphs import ASKED, agent, asks, in_turn, line
from recording import attribute, content, recording
from spanreel import testing


def call(made: Any, arguments: dict[str, Any], **options: Any) -> Any:
    """An agent that calls one tool once."""
    return agent([made], in_turn(asks(("call_1", made.name, arguments)), testing.text("Done.")), **options)


def result(span: Any) -> Any:
    return content(span, "gen_ai.tool.call.result")


@tool
def add(one: int, two: int = 2) -> int:
    """Add."""
    return one + two


async def test_a_tool_called_directly_is_one_call_sync_and_async() -> None:
    with recording() as rec:
        assert add.invoke({"one": 1}) == 3
        assert await add.ainvoke({"one": 1}) == 3
        answered = add.invoke({"type": "tool_call", "id": "call_9", "name": "add", "args": {"one": 1}})
        assert (answered.content, answered.tool_call_id) == ("3", "call_9")
        first, second, third = rec.of("execute_tool")
        assert [result(span) for span in (first, second, third)] == [3, 3, "3"]
        assert content(third, "gen_ai.tool.call.arguments") == {"one": 1}
        assert attribute(third, "gen_ai.tool.call.id") == "call_9"
        assert attribute(first, "gen_ai.tool.description") == "Add."


async def plus(one: int) -> int:
    return one + 1


class Custom(BaseTool):
    """A tool of its own class, with both ways."""

    name: str = "custom"
    description: str = "Doubles."

    def _run(self, one: int) -> int:
        return one * 2

    async def _arun(self, one: int) -> int:
        return self._run(one)


@pytest.mark.parametrize(
    "made",
    [add, StructuredTool.from_function(coroutine=plus, name="plus", description="Adds one."), Custom()],
    ids=lambda made: made.name,
)
async def test_every_kind_of_tool_is_one_call_in_an_asynchronous_agent(made: Any) -> None:
    with recording() as rec:
        await call(made, {"one": 4}).ainvoke(ASKED)
        (span,) = rec.of("execute_tool")
        assert (attribute(span, "gen_ai.tool.name"), result(span)) == (
            made.name,
            {"add": "6", "plus": "5", "custom": "8"}[made.name],
        )


def test_what_a_graph_injects_is_no_argument() -> None:
    @tool
    def look(
        question: str, state: Annotated[dict[str, Any], InjectedState], call_id: Annotated[str, InjectedToolCallId]
    ) -> str:
        """Looks at the state."""
        return f"{call_id}: {len(state['messages'])}"

    with recording() as rec:
        call(look, {"question": "?"}).invoke(ASKED)
        span = rec.one("execute_tool")
        assert content(span, "gen_ai.tool.call.arguments") == {"question": "?"}
        assert result(span) == "call_1: 2"


@pytest.mark.parametrize(("hint", "changes"), [("readOnlyHint", False), ("destructiveHint", True), ("title", None)])
def test_what_a_server_hints_about_its_tool_is_kept(hint: str, changes: bool | None) -> None:
    hinted = StructuredTool.from_function(plus_one, metadata={hint: True})
    with recording() as rec:
        hinted.invoke({"one": 1})
        assert attribute(rec.one("execute_tool"), "spanreel.tool.side_effect") is changes


def plus_one(one: int) -> int:
    """Adds one."""
    return one + 1


def test_an_exception_that_the_agent_lets_pass_is_the_tools_and_the_runs() -> None:
    @tool
    def broken(city: str) -> str:
        """Fails."""
        raise TimeoutError(f"no answer from {city}")

    with recording() as rec:
        with pytest.raises(TimeoutError, match="no answer from Bern"):
            call(broken, {"city": "Bern"}).invoke(ASKED)
        for span in (rec.one("execute_tool"), rec.one("invoke_agent")):
            assert (span.status.status_code, attribute(span, "error.type")) == (StatusCode.ERROR, "TimeoutError")


def test_an_exception_that_the_tool_handles_is_an_error_with_a_result() -> None:
    @tool
    def broken(city: str) -> str:
        """Fails."""
        raise ToolException(f"no answer from {city}")

    broken.handle_tool_error = True
    with recording() as rec:
        assert call(broken, {"city": "Bern"}).invoke(ASKED)["messages"][2].content == "no answer from Bern"
        span = rec.one("execute_tool")
        assert span.status.status_code is StatusCode.ERROR
        assert attribute(span, "error.type") == "langchain_core.tools.base.ToolException"
        assert (result(span)["content"], result(span)["status"]) == ("no answer from Bern", "error")
        assert rec.one("invoke_agent").status.status_code is StatusCode.UNSET


def test_arguments_that_do_not_fit_are_an_error_of_the_call() -> None:
    with recording() as rec:
        told = call(add, {"one": "x"}).invoke(ASKED)["messages"][2]
        assert told.status == "error"
        span = rec.one("execute_tool")
        assert span.status.status_code is StatusCode.ERROR
        assert "ValidationError" in attribute(span, "error.type")


def test_artifacts_and_commands_are_kept_by_their_fields() -> None:
    @tool(response_format="content_and_artifact")
    def chart(year: int) -> tuple[str, dict[str, Any]]:
        """Draws."""
        return "drawn", {"points": [year]}

    @tool
    def go(where: str, call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Goes."""
        return Command(update={"messages": [ToolMessage(f"went {where}", tool_call_id=call_id)]})

    with recording() as rec:
        call(chart, {"year": 7}).invoke(ASKED)
        call(go, {"where": "home"}).invoke(ASKED)
        drawn, went = map(result, rec.of("execute_tool"))
        assert (drawn["content"], drawn["artifact"]) == ("drawn", {"points": [7]})
        assert went["update"]["messages"][0]["content"] == "went home"


class Shape(pydantic.BaseModel):
    """A value with fields."""

    side: int = 2


@dataclass
class Plain:
    """Another."""

    side: int = 3


class Rude:
    """Its repr raises."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


LOOP: list[Any] = []
LOOP.append(LOOP)

VALUES: dict[str, Callable[[], Any]] = {
    "datetime": lambda: dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
    "decimal": lambda: Decimal("1.5"),
    "bytes": lambda: b"\x00\xff",
    "set": lambda: {1},
    "nan": lambda: float("nan"),
    "model": Shape,
    "dataclass": Plain,
    "rude": Rude,
    "loop": lambda: LOOP,
}


@pytest.mark.parametrize("kind", VALUES)
def test_whatever_a_tool_returns_is_recorded_as_json_and_changes_nothing(kind: str) -> None:
    @tool
    def give(kind: str) -> Any:
        """Gives."""
        return VALUES[kind]()

    def items() -> list[Any]:
        try:
            return [
                (chunk.content, type(chunk))
                for chunk, _ in call(give, {"kind": kind}).stream(ASKED, stream_mode="messages")
            ]
        except RuntimeError as error:  # LangChain itself calls the repr that raises
            return [str(error)]

    bare = items()
    with recording() as rec:
        assert items() == bare
        assert give.invoke({"kind": kind}) is not None if kind != "rude" else True
        spans = rec.of("execute_tool")
        for span in spans:
            text = attribute(span, "gen_ai.tool.call.result")
            assert text is None or json.loads(text) is not None
            assert attribute(span, "gen_ai.tool.call.arguments") == json.dumps({"kind": kind}, separators=(",", ":"))
        if kind in ("model", "dataclass"):
            assert result(spans[-1]) == {"side": VALUES[kind]().side}


# -- retrievers --------------------------------------------------------------------------------------------------------


class Shelf(BaseRetriever):
    """Finds what it is told to find."""

    found: list[Document]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [document for document in self.found if query in document.page_content]


BOOKS = [Document("On refunds", metadata={"page": 3}, id="d-1"), Document("On returns")]


async def test_a_retriever_is_a_call_of_its_own_kind_sync_and_async() -> None:
    with recording() as rec:
        shelf = Shelf(found=BOOKS)
        assert shelf.invoke("refunds") == BOOKS[:1]
        assert await shelf.ainvoke("refunds") == BOOKS[:1]
        for span in rec.of("execute_tool"):
            assert (attribute(span, "gen_ai.tool.name"), attribute(span, "spanreel.tool.kind")) == (
                "Shelf",
                "retriever",
            )
            assert content(span, "gen_ai.tool.call.arguments") == {"query": "refunds"}
            assert result(span) == [
                {"id": "d-1", "metadata": {"page": 3}, "page_content": "On refunds", "type": "Document"}
            ]
        assert len(rec.of("execute_tool")) == 2


def test_a_retriever_is_asked_by_its_settings_too() -> None:
    shelf = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    shelf.add_documents(BOOKS)
    with recording() as rec:
        shelf.as_retriever(search_kwargs={"k": 1}).invoke("refunds")
        shelf.as_retriever(search_type="mmr").invoke("refunds", k=2)
        first, second = (content(span, "gen_ai.tool.call.arguments") for span in rec.of("execute_tool"))
        assert first == {"query": "refunds", "search_type": "similarity", "search_kwargs": {"k": 1}}
        assert second == {"query": "refunds", "search_type": "mmr", "k": 2}


def test_a_retriever_as_a_tool_stands_in_that_tools_call() -> None:
    search = create_retriever_tool(Shelf(found=BOOKS), "search", "Searches.")
    with recording() as rec:
        call(search, {"query": "refunds"}).invoke(ASKED)
        assert rec.tree() == [
            "invoke_agent forecaster",
            "  agent_step 0",
            "    chat gpt-5",
            "    execute_tool search",
            "      execute_tool Shelf",
            "  agent_step 1",
            "    chat gpt-5",
        ]


def test_a_retriever_in_a_node_stands_in_the_run() -> None:
    def look(_state: Any) -> Any:
        return {"messages": [Shelf(found=BOOKS).invoke("refunds")[0].page_content]}

    with recording() as rec:
        line("reader", look=look).invoke({"messages": "Hi."})
        assert rec.tree() == ["invoke_agent reader", "  execute_tool Shelf"]


def test_a_node_of_tools_by_itself_is_recorded_too() -> None:
    asked = {"role": "assistant", "content": "", "tool_calls": [{"name": "add", "args": {"one": 1}, "id": "call_1"}]}
    with recording() as rec:
        line("adder", tools=ToolNode([add])).invoke({"messages": [asked]})
        assert result(rec.one("execute_tool")) == "3"
