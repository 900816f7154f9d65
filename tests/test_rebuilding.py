"""What a decorated tool gives in a replay: objects of its own classes, and its caller's objects changed as it did."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import enum
import functools
import uuid
from collections import Counter, deque, namedtuple
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import numpy as np
import pydantic
import pytest

import spanreel
from kinds import Scene, hand_written, play, record, script
from spanreel.replay.judging.verdict import Verdict
from spanreel.session_files import read_session, write_session
from spanreel.shapes import reshaped
from wire_server import completion


@dataclass
class Order:
    id: str
    lines: list[str] = field(default_factory=list)


class Invoice(pydantic.BaseModel):
    number: int
    orders: list[str]


class State(enum.Enum):
    OPEN = "open"


Point = namedtuple("Point", "x y")  # noqa: PYI024 - as agents have them


class Shop:
    @dataclass
    class Shelf:
        name: str


RESULTS: dict[str, Any] = {
    "a dataclass": Order("A", ["tea"]),
    "a model": Invoice(number=3, orders=["A"]),
    "an enumeration": State.OPEN,
    "a named tuple": Point(1, 2),
    "a class inside a class": Shop.Shelf("left"),
    "a list of them": [Order("A"), Order("B")],
    "a dict": {"id": "A"},
    "a list of different ones": [1, "A"],
}


def replayed(before: Callable[[], Any], tmp_path: Path) -> tuple[Any, Any]:
    """What the code inside of a run got when it was recorded, and in the replay."""
    got: list[Any] = []
    scene = Scene(script(completion("Done.")), before=lambda: got.append(before()))
    session = record(lambda: hand_written(scene), tmp_path)
    report = play(read_session(write_session(session)), hand_written, scene)
    assert report.verdict is Verdict.PASS, report.reasons
    first, second = got
    return first, second


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_of_a_class_of_the_tools_module_is_one_again_without_an_annotation(name: str, tmp_path: Path) -> None:
    ran: list[str] = []

    @spanreel.tool()
    def give():  # type: ignore[no-untyped-def]  # noqa: ANN202 - that is the case
        ran.append(name)
        return RESULTS[name]

    first, second = replayed(give, tmp_path)
    assert first == second == RESULTS[name]
    assert type(second) is type(first)
    assert ran == [name]


def test_a_class_that_the_tools_module_does_not_know_comes_back_as_json(tmp_path: Path) -> None:
    @dataclass
    class Hidden:
        id: str

    @spanreel.tool()
    def give():  # type: ignore[no-untyped-def]  # noqa: ANN202 - as above
        return Hidden("A")

    _, second = replayed(give, tmp_path)
    assert second == {"id": "A"}


def test_a_document_cannot_name_a_class_of_another_module(tmp_path: Path) -> None:
    @spanreel.tool()
    def give():  # type: ignore[no-untyped-def]  # noqa: ANN202 - as above
        return Order("A")

    got: list[Any] = []
    scene = Scene(script(completion("Done.")), before=lambda: got.append(give()))  # type: ignore[no-untyped-call]
    session = record(lambda: hand_written(scene), tmp_path)
    (call,) = (call for run in session.runs for call in run.tool_calls())
    assert call.result_type == "Order"
    call.result_type = "os.system"
    assert play(session, hand_written, scene).verdict is Verdict.PASS
    assert got[1] == {"id": "A", "lines": []}


@pytest.mark.parametrize(
    ("given", "change"),
    [
        (lambda: ["a"], lambda cart: cart.append("tea")),
        (lambda: {"a": 1}, lambda cart: (cart.pop("a"), cart.update(tea=2))),
        (lambda: {"a"}, lambda cart: cart.add("tea")),
        (lambda: Order("A"), lambda cart: cart.lines.append("tea")),
    ],
    ids=["list", "dict", "set", "dataclass"],
)
def test_what_a_tool_does_to_its_arguments_is_done_again(
    given: Callable[[], Any], change: Callable[[Any], Any], tmp_path: Path
) -> None:
    ran: list[str] = []

    @spanreel.tool()
    def fill(cart: Any, untouched: list[int]) -> str:
        ran.append("fill")
        change(cart)
        return "filled"

    def shop() -> Any:
        cart, untouched = given(), [1]
        fill(cart, untouched)
        return cart, untouched

    first, second = replayed(shop, tmp_path)
    expected = given()
    change(expected)
    assert first == second == (expected, [1])
    assert ran == ["fill"]


@dataclass
class Parcel:
    order: Order
    at: dt.datetime


class Colour(str):
    __slots__ = ()


@attrs.define
class Crate:
    size: int
    made: dt.date


VARIED: dict[str, Any] = {
    "a time": dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC),
    "a naive time": dt.datetime(2026, 1, 1, 12),  # noqa: DTZ001 - as agents have them
    "a date": dt.date(2026, 1, 1),
    "a time of day": dt.time(1, 2),
    "a duration": dt.timedelta(days=1, seconds=3),
    "a decimal": Decimal("1.10"),
    "a uuid": uuid.UUID(int=5),
    "a path": Path("a/b"),
    "a set": {1, 2, 3},
    "a frozen set": frozenset({"a"}),
    "a tuple": (1, "a"),
    "tuples in a set": {("a", 1), ("b", 2)},
    "tuples in a list": [(1, 2), (3, 4)],
    "different tuples": (Order("A"), 1, Decimal(2)),
    "a queue": deque([1, 2]),
    "a counter": Counter("aab"),
    "a namespace": SimpleNamespace(a=1),
    "objects by name": {"first": Order("A"), "n": 1, "at": dt.date(2026, 1, 1)},
    "objects by number": {1: Order("A"), 2: Order("B")},
    "several kinds by number": {1: Order("A"), 2: 3, 3: {"a": Decimal(1)}},
    "by what is so and what is not": {True: 2, False: 3},
    "by keys of several kinds": {1: "a", "b": Order("B"), None: 3, (1, "x"): [4], -5: 6},
    "an object in an object": Parcel(Order("A"), dt.datetime(2026, 1, 1, tzinfo=dt.UTC)),
    "a mixed list": [Order("A"), Invoice(number=3, orders=[]), 1, None],
    "infinity": float("inf"),
    "a kind of text": Colour("red"),
    "a class by attrs": Crate(2, dt.date(2026, 1, 1)),
    "a complex number": 1 + 2j,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIED)
def test_a_result_of_the_standard_library_s_classes_is_one_again(name: str, tmp_path: Path) -> None:
    @spanreel.tool()
    def give():  # type: ignore[no-untyped-def]  # noqa: ANN202 - as above
        return VARIED[name]

    first, second = replayed(give, tmp_path)
    assert first == second == VARIED[name]
    assert type(second) is type(first)


ARRAYS: dict[str, Any] = {
    "a truth": np.bool_(True),
    "a sum": np.int64(7),
    "a mean": np.float32(1.1),
    "what is no number": np.float64("nan"),
    "a day": np.datetime64("2026-03-01"),
    "numbers": np.array([[1.5, float("nan")], [float("inf"), 2]]),
    "truths": np.array([True, False]),
    "times": np.array(["2026-03-01T10:00"], dtype="datetime64[ms]"),
    "texts": np.array(["tea", "cup"]),
    "nothing": np.array([], dtype="int8"),
    "several": {"rows": [np.int64(1), np.int64(2)], "by": np.arange(3)},
}


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_is_one_again(name: str, tmp_path: Path) -> None:
    @spanreel.tool()
    def give() -> Any:
        ran.append(name)
        return ARRAYS[name]

    got: list[Any] = []
    ran: list[str] = []
    scene = Scene(script(completion("Done.")), before=lambda: got.append(give()))
    report = play(record(lambda: hand_written(scene), tmp_path), hand_written, scene)
    assert (report.verdict, report.notes) == (Verdict.PASS, ())
    assert len(ran) == 1
    assert (type(got[1]), repr(got[1])) == (type(got[0]), repr(got[0]))


def test_an_array_as_an_argument_is_its_items(tmp_path: Path) -> None:
    @spanreel.tool()
    def count(rows: Any, which: Any) -> int:
        return len(rows) + int(which)

    scene = Scene(script(completion("Done.")), before=lambda: count(np.arange(3), np.int64(2)))
    session = record(lambda: hand_written(scene), tmp_path)
    (call,) = session.runs[0].tool_calls()
    assert call.arguments == {"rows": [0, 1, 2], "which": 2}
    scene.before = lambda: count([0, 1, 2], 2)
    assert play(session, hand_written, scene).verdict is Verdict.PASS


def test_a_large_array_is_a_text_and_is_told(tmp_path: Path) -> None:
    @spanreel.tool()
    def give() -> Any:
        return np.zeros(1_000_000)

    scene = Scene(script(completion("Done.")), before=give)
    report = play(record(lambda: hand_written(scene), tmp_path), hand_written, scene)
    assert "gave a ndarray, of which only the text was kept" in report.notes[0]


def test_an_annotation_that_says_little_does_not_lose_what_is_inside(tmp_path: Path) -> None:
    @spanreel.tool()
    def give() -> dict[str, Any]:
        return {"order": Order("A"), "total": Decimal("1.10")}

    first, second = replayed(give, tmp_path)
    assert first == second


def test_a_block_s_result_is_one_again(tmp_path: Path) -> None:
    def give() -> Any:
        with spanreel.tool("give", arguments={}) as call:
            if not call.served:
                call.result = Order("A")
        return call.result

    assert replayed(give, tmp_path) == (Order("A"), Order("A"))


class Connection:
    """What JSON cannot say."""

    def __repr__(self) -> str:
        return "a connection"


def test_an_object_of_which_only_a_text_was_kept_is_told(tmp_path: Path) -> None:
    @spanreel.tool()
    def give():  # type: ignore[no-untyped-def]  # noqa: ANN202 - as above
        return {"by": Connection()}

    got: list[Any] = []
    scene = Scene(script(completion("Done.")), before=lambda: got.append(give()))  # type: ignore[no-untyped-call]
    report = play(record(lambda: hand_written(scene), tmp_path), hand_written, scene)
    assert got[1] == {"by": "a connection"}
    assert report.notes == (
        "tool call 1 of root ('give') gave a Connection, of which only the text was kept; that is what the agent gets",
    )


@pytest.mark.parametrize(
    "shape",
    [
        "os.system",
        "__import__('os').system('x')",
        "list[os.system]",
        "Order.__init__",
        "pytest",
        "(" * 500,
        "list[",
        "dict[int, Order]",
        "before(Order)",
        "x" * 5000,
    ],
)
def test_what_a_document_says_of_a_shape_runs_and_imports_nothing(shape: str) -> None:
    assert reshaped({"id": "A"}, shape, globals()) == {"id": "A"}


def test_a_generator_s_items_are_ones_again_and_so_is_its_failure(tmp_path: Path) -> None:
    @spanreel.tool()
    def plain(count: int) -> Iterator[Order]:
        for number in range(count):
            yield Order(str(number))
        raise LookupError("no more")

    def give() -> list[Any]:
        got: list[Any] = []
        try:
            for order in plain(2):
                got.append(order)  # noqa: PERF402 - what came before the failure counts
        except LookupError as error:
            got.append(str(error))
        return got

    first, second = replayed(give, tmp_path)
    assert first == second == [Order("0"), Order("1"), "no more"]


def test_what_a_generator_returns_is_none_of_what_it_gives(tmp_path: Path) -> None:
    @spanreel.tool()
    def count() -> Generator[int, None, str]:
        yield 1
        return "the end"

    first, second = replayed(lambda: list(count()), tmp_path)
    assert first == second == [1]


def test_a_generator_that_a_plain_function_returns_is_one_again(tmp_path: Path) -> None:
    ran: list[int] = []

    def noted(number: int) -> int:
        ran.append(number)
        return number

    @spanreel.tool()
    def count(most: int) -> Any:
        return (noted(number) for number in range(most))

    @spanreel.tool()
    def count_async(most: int) -> Any:
        async def values() -> AsyncIterator[Order]:
            for number in range(most):
                yield Order(str(number))

        return values()

    def give() -> list[Any]:
        async def collect() -> list[Any]:
            return [order async for order in count_async(2)]

        return [*count(2), *asyncio.run(collect())]

    first, second = replayed(give, tmp_path)
    assert first == second == [0, 1, Order("0"), Order("1")]
    assert ran == [0, 1]


async def items_until_late(got: list[Any], items: Any) -> None:
    async def read() -> None:
        async for item in items:
            got.append(item)

    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(read(), 0.1)


def test_a_generator_that_is_given_up_gives_what_it_gave_and_is_given_up_again(tmp_path: Path) -> None:
    @spanreel.tool()
    async def trickle() -> AsyncIterator[int]:
        yield 1
        yield 2
        await asyncio.sleep(5)
        yield 3

    def give() -> list[Any]:
        got: list[Any] = []
        asyncio.run(items_until_late(got, trickle()))
        return got

    first, second = replayed(give, tmp_path)
    assert first == second == [1, 2]


class Adder:
    def __init__(self, ran: list[int]) -> None:
        self.ran = ran

    def __call__(self, one: int) -> Order:
        self.ran.append(one)
        return Order(str(one))


class AsyncAdder(Adder):
    async def __call__(self, one: int) -> Order:  # type: ignore[override]
        return super().__call__(one)


def test_objects_that_are_called_and_partials_are_tools_too(tmp_path: Path) -> None:
    ran: list[int] = []

    def add(one: int, other: int) -> Order:
        ran.append(one + other)
        return Order(str(one + other))

    async def add_async(one: int, other: int) -> Order:
        return add(one, other)

    adder = spanreel.tool()(Adder(ran))
    waiting = spanreel.tool()(AsyncAdder(ran))
    partial = spanreel.tool()(functools.partial(add, 1))
    partial_async = spanreel.tool()(functools.partial(add_async, 2))

    def give() -> list[Any]:
        return [adder(1), partial(2), asyncio.run(waiting(4)), asyncio.run(partial_async(3))]

    first, second = replayed(give, tmp_path)
    assert first == second == [Order("1"), Order("3"), Order("4"), Order("5")]
    assert ran == [1, 3, 4, 5]
