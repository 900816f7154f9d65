"""An agent written by hand: `run`, `tool` and `session`, in every shape a function can have."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import datetime as dt
import decimal
import functools
import html
import json
import math
import operator
import pickle
import threading
from collections.abc import AsyncIterator, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pydantic
import pytest
from opentelemetry import trace
from opentelemetry.trace import StatusCode

import spanreel
from recording import attribute, content, recording
from wire_server import Model, completion


def asks_for_weather(body: dict[str, Any]) -> dict[str, Any]:
    if any(message["role"] == "tool" for message in body["messages"]):
        return completion("It is sunny.")
    calls = [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": "weather", "arguments": json.dumps({"city": city})},
        }
        for number, city in enumerate(("Paris", "Rome"))
    ]
    answer = completion("", tool_calls=calls)
    answer["choices"][0]["finish_reason"] = "tool_calls"
    return answer


@spanreel.tool()
def weather(city: str, days: int = 1) -> dict[str, Any]:
    """The weather."""
    return {"city": city, "days": days, "sky": "sunny"}


@spanreel.run(agent="forecaster", version="7")
def forecast(question: str) -> str:
    client = Model(asks_for_weather).client()
    messages: list[Any] = [{"role": "user", "content": question}]
    while True:
        message = client.chat.completions.create(model="gpt-asked", messages=messages).choices[0].message
        messages.append(message.to_dict())
        if not message.tool_calls:
            return message.content or ""
        for call in message.tool_calls:
            result = weather(**json.loads(call.function.arguments))  # type: ignore[union-attr]
            messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)})


def test_a_run_is_one_tree_of_turns_with_its_model_and_tool_calls() -> None:
    with recording() as rec:
        assert forecast("Paris or Rome?") == "It is sunny."
        assert rec.tree() == [
            "invoke_agent forecaster",
            "  agent_step 0",
            "    chat gpt-asked",
            "    execute_tool weather",
            "    execute_tool weather",
            "  agent_step 1",
            "    chat gpt-asked",
        ]
        run = rec.one("invoke_agent")
        assert attribute(run, "gen_ai.agent.name") == "forecaster"
        assert attribute(run, "gen_ai.agent.version") == "7"
        assert content(run, "spanreel.run.arguments") == {"question": "Paris or Rome?"}
        assert content(run, "gen_ai.input.messages")[0]["parts"][0]["content"] == "Paris or Rome?"
        assert content(run, "gen_ai.output.messages")[0]["parts"][0]["content"] == "It is sunny."
        assert content(run, "spanreel.run.entrypoint")["callable"].endswith(":forecast")
        tool = rec.of("execute_tool")[0]
        assert content(tool, "gen_ai.tool.call.arguments") == {"city": "Paris", "days": 1}
        assert content(tool, "gen_ai.tool.call.result") == {"city": "Paris", "days": 1, "sky": "sunny"}
        assert [attribute(span, "spanreel.turn.index") for span in rec.of("agent_step")] == [0, 1]


def test_what_is_known_at_the_start_has_left_before_the_end() -> None:
    with recording() as rec:

        @spanreel.run(agent="slow")
        def slow(question: str) -> None:
            (started,) = rec.spans
            assert attribute(started, "gen_ai.operation.name") == "run_started"
            assert content(started, "spanreel.run.arguments") == {"question": "why?"}
            assert content(started, "spanreel.run.entrypoint")["argv"]

        slow("why?")


async def test_async_functions_and_generators_of_all_kinds_are_runs() -> None:
    with recording() as rec:

        @spanreel.run()
        async def plain(x: str) -> str:
            return x.upper()

        @spanreel.run()
        def stream(x: str) -> Generator[str, str, None]:
            assert trace.get_current_span().is_recording()
            yield x
            sent = yield "-"
            yield str(sent)

        @spanreel.run()
        async def async_stream(x: str) -> AsyncIterator[str]:
            yield x
            await asyncio.sleep(0)
            yield "!"

        assert await plain("a") == "A"
        steps = stream("b")
        assert next(steps) == "b"
        assert not trace.get_current_span().get_span_context().is_valid
        assert next(steps) == "-"
        assert steps.send("s") == "s"
        assert list(steps) == []
        assert [x async for x in async_stream("c")] == ["c", "!"]
        assert asyncio.iscoroutinefunction(plain)
        outputs = [content(span, "gen_ai.output.messages")[0]["parts"][0]["content"] for span in rec.of("invoke_agent")]
        assert outputs == ["A", "b-s", "c!"]


async def test_a_generator_closed_early_is_finished_and_one_that_raises_has_failed() -> None:
    closed: list[str] = []

    @spanreel.run()
    def stream() -> Generator[int, None, None]:
        try:
            yield 1
            yield 2
        finally:
            closed.append("sync")

    @spanreel.run()
    async def async_stream() -> AsyncIterator[int]:
        try:
            yield 1
            raise ValueError("broken")
        finally:
            closed.append("async")

    with recording() as rec:
        steps = stream()
        next(steps)
        steps.close()
        with pytest.raises(ValueError, match="broken"):
            _ = [x async for x in async_stream()]
        first, second = rec.of("invoke_agent")
        assert first.status.status_code is StatusCode.UNSET
        assert second.status.status_code is StatusCode.ERROR
        assert attribute(second, "error.type") == "ValueError"
        assert closed == ["sync", "async"]
        unread = stream()
        del unread
        assert len(rec.of("invoke_agent")) == 2


def test_context_managers_record_what_the_block_says() -> None:
    with recording() as rec:
        with (
            spanreel.session("conv-1", user_id="u-1", name="Returns", tags=["a", "b"], metadata={"plan": "pro"}),
            spanreel.run(agent="blocky") as this,
        ):
            this.input = "question"
            with spanreel.tool("search", arguments={"q": "x"}, side_effect=False) as call:
                assert not call.served
                call.result = [1, 2]
            this.output = "answer"
        run, tool = rec.one("invoke_agent"), rec.one("execute_tool")
        for span in rec.spans:
            assert attribute(span, "gen_ai.conversation.id") == "conv-1"
            assert attribute(span, "user.id") == "u-1"
        assert content(run, "gen_ai.output.messages")[0]["parts"][0]["content"] == "answer"
        assert content(tool, "gen_ai.tool.call.result") == [1, 2]
        assert attribute(run, "spanreel.session.tags") == ("a", "b")
        assert content(run, "spanreel.session.metadata") == {"plan": "pro"}


async def test_sessions_decorate_functions_of_every_kind() -> None:
    @spanreel.run()
    def inner() -> None: ...

    @spanreel.session("s")
    def plain() -> None:
        inner()

    @spanreel.session("s")
    async def asynchronous() -> None:
        inner()

    @spanreel.session("s")
    def stream() -> Iterator[int]:
        inner()
        yield 1

    @spanreel.session("s")
    async def async_stream() -> AsyncIterator[int]:
        inner()
        yield 1

    with recording() as rec:
        plain()
        await asynchronous()
        list(stream())
        _ = [x async for x in async_stream()]
        inner()
        ids = [attribute(span, "gen_ai.conversation.id") for span in rec.of("invoke_agent")]
        assert ids == ["s", "s", "s", "s", None]


async def test_runs_at_once_never_mix() -> None:
    @spanreel.tool()
    async def lookup(name: str) -> str:
        await asyncio.sleep(0)
        return name

    @spanreel.run()
    async def work(name: str) -> str:
        await asyncio.sleep(0)
        return await lookup(name)

    with recording() as rec:
        names = [f"n{number}" for number in range(20)]
        assert await asyncio.gather(*(work(name) for name in names)) == names
        runs = {span.context.span_id: span for span in rec.of("invoke_agent") if span.context}
        for tool in rec.of("execute_tool"):
            assert tool.parent is not None
            parent = runs[tool.parent.span_id]
            assert (
                content(parent, "spanreel.run.arguments")["name"] == content(tool, "gen_ai.tool.call.arguments")["name"]
            )
        assert len({span.context.trace_id for span in runs.values() if span.context}) == 20


async def test_tools_in_threads_and_executors_stay_under_their_run() -> None:
    @spanreel.tool()
    def lookup(way: str) -> str:
        return way

    @spanreel.run()
    async def work() -> None:
        thread = threading.Thread(target=lookup, args=("thread",))
        thread.start()
        thread.join()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(lookup, "pool").result()
            list(pool.map(lookup, ["map"]))
            await asyncio.get_running_loop().run_in_executor(pool, lookup, "loop")
        await asyncio.to_thread(lookup, "to_thread")

    with recording() as rec:
        await work()
        run = rec.one("invoke_agent")
        tools = rec.of("execute_tool")
        assert len(tools) == 5
        assert run.context is not None
        assert {tool.parent.span_id for tool in tools if tool.parent} == {run.context.span_id}


def test_a_thread_that_outlives_its_run_starts_traces_of_its_own() -> None:
    go, done = threading.Event(), threading.Event()

    @spanreel.run(agent="late")
    def late() -> None: ...

    @spanreel.run(agent="starter")
    def start() -> None:
        def wait() -> None:
            go.wait(60)
            late()
            done.set()

        threading.Thread(target=wait).start()

    with recording() as rec:
        start()
        go.set()
        assert done.wait(60)
        spans = {attribute(span, "gen_ai.agent.name"): span for span in rec.of("invoke_agent")}
        assert spans["late"].parent is None


class Point(pydantic.BaseModel):
    x: int
    label: str = "p"


@dataclasses.dataclass
class Pair:
    left: Any
    right: Any


class Rude:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


def test_values_of_any_kind_are_recorded_and_one_bad_value_costs_only_itself() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    values: dict[str, Any] = {
        "datetime": dt.datetime(2026, 1, 2, 3, 4, tzinfo=dt.UTC),
        "decimal": decimal.Decimal("1.10"),
        "bytes": b"\x00\xff",
        "set": {2, 1},
        "model": Point(x=1),
        "dataclass": Pair(1, Point(x=2)),
        "rude": Rude(),
        "loop": loop,
        "nan": float("nan"),
        "surrogate": "\ud800",
    }

    @spanreel.tool()
    def give() -> Any:
        return values

    with recording() as rec:
        assert give() is values
        result = content(rec.one("execute_tool"), "gen_ai.tool.call.result")
        assert result["datetime"] == "2026-01-02T03:04:00Z"
        assert result["decimal"] == "1.10"
        assert result["set"] == [1, 2]
        assert result["model"] == {"x": 1, "label": "p"}
        assert result["dataclass"] == {"left": 1, "right": {"x": 2, "label": "p"}}
        assert "Rude" in result["rude"]
        assert result["loop"][0] == 1
        assert rec.one("execute_tool").status.status_code is StatusCode.UNSET


def test_arguments_are_kept_as_they_were_when_the_tool_was_called() -> None:
    @spanreel.tool()
    def clear(items: list[int]) -> None:
        items.clear()

    with recording() as rec:
        clear([1, 2])
        assert content(rec.one("execute_tool"), "gen_ai.tool.call.arguments") == {"items": [1, 2]}
        assert "gen_ai.tool.call.result" in (rec.one("execute_tool").attributes or {})


def test_an_exception_passes_unchanged_and_marks_its_spans() -> None:
    failure = LookupError("gone")

    @spanreel.tool()
    def lookup() -> None:
        raise failure

    @spanreel.run()
    def work() -> None:
        lookup()

    with recording() as rec:
        with pytest.raises(LookupError) as caught:
            work()
        assert caught.value is failure
        for span in (rec.one("execute_tool"), rec.one("invoke_agent")):
            assert span.status.status_code is StatusCode.ERROR
            assert attribute(span, "error.type") == "LookupError"


def test_a_model_call_inside_a_tool_is_no_turn_of_the_run_around_it() -> None:
    @spanreel.tool()
    def summarise() -> str:
        return Model().client().chat.completions.create(model="m", messages=[]).choices[0].message.content or ""

    @spanreel.run(agent="outer")
    def work() -> str:
        return summarise()

    with recording() as rec:
        work()
        assert rec.tree() == ["invoke_agent outer", "  execute_tool summarise", "    chat m"]


def test_without_instrumentation_decorated_functions_are_plain() -> None:
    assert weather("Oslo") == {"city": "Oslo", "days": 1, "sky": "sunny"}


@pytest.mark.parametrize("breaks", ["read", "read_result"])
def test_a_fault_of_ours_never_reaches_the_user(breaks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from spanreel import opening

    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("our fault")

    monkeypatch.delenv("SPANREEL_STRICT", raising=False)
    monkeypatch.setattr(opening, "parameters_of" if breaks == "read" else "snapshot", broken)
    with recording():
        assert weather("Oslo")["city"] == "Oslo"


@spanreel.tool
def bare(city: str) -> str:
    return city.upper()


class Desk:
    def __init__(self, name: str) -> None:
        self.name = name

    @spanreel.tool()
    def where(self) -> str:
        return self.name


@spanreel.run
def bare_run(city: str) -> str:
    return bare(city)


def test_decorators_work_without_parentheses() -> None:
    with recording() as rec:
        assert bare_run("oslo") == "OSLO"
        assert rec.tree() == ["invoke_agent bare_run", "  execute_tool bare"]


def test_decorated_functions_go_to_process_pools_and_copies_as_functions_do() -> None:
    assert pickle.loads(pickle.dumps(bare)) is bare  # by name, as a process pool does it
    assert copy.deepcopy(bare) is bare
    method = pickle.loads(pickle.dumps(Desk("north").where))
    assert method() == "north"


class Scale:
    def __call__(self, grams: int) -> int:
        return grams * 2


# What is written in C may not say what it takes, and has no code to look at.
@pytest.mark.parametrize(
    ("function", "given", "name", "arguments"),
    [
        (math.sqrt, 4, "sqrt", {"x": 4}),
        (max, "abc", "max", {"args": ["abc"]}),
        (int, "7", "int", {"args": ["7"]}),
        (html.escape, "<", "escape", {"s": "<", "quote": True}),
        ("{} km".format, 3, "format", {"args": [3]}),
        (operator.itemgetter("a"), {"a": 1}, "itemgetter", {"args": [{"a": 1}]}),
        (functools.partial(int, base=2), "11", "int", {"args": ["11"]}),
        (Scale(), 3, "Scale", {"grams": 3}),
    ],
)
def test_whatever_can_be_called_is_decorated(function: Any, given: Any, name: str, arguments: Any) -> None:
    tool, run = spanreel.tool(function), spanreel.run(function)
    with recording() as rec:
        assert tool(given) == run(given) == pickle.loads(pickle.dumps(tool))(given) == function(given)
        assert rec.tree() == [f"execute_tool {name}", f"invoke_agent {name}"]
        assert content(rec.one("execute_tool"), "gen_ai.tool.call.arguments") == arguments


class Shop:
    @spanreel.tool
    @staticmethod
    def opens(day: str) -> str:
        return f"{day} 9"

    @spanreel.tool
    @classmethod
    def name(cls, suffix: str = "") -> str:
        return cls.__name__ + suffix

    @spanreel.run
    @classmethod
    async def serve(cls, guest: str) -> str:
        return f"{cls.name('!')} {cls.opens(guest)}"


async def test_static_and_class_methods_are_decorated_in_either_order_and_pickled_by_name() -> None:
    with recording() as rec:
        assert await Shop().serve("Ann") == "Shop! Ann 9"
        spans = {span.name: content(span, "gen_ai.tool.call.arguments") for span in rec.of("execute_tool")}
    assert spans == {"execute_tool opens": {"day": "Ann"}, "execute_tool name": {"suffix": "!"}}
    for function in (Shop.opens, Shop().opens):
        assert pickle.loads(pickle.dumps(function))("Mo") == "Mo 9"
    for method in (Shop.name, Shop().name):
        assert pickle.loads(pickle.dumps(method))("?") == "Shop?"
