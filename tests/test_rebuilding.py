"""What a decorated tool gives in a replay: objects of its own classes, and its caller's objects changed as it did."""

from __future__ import annotations

import enum
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pydantic
import pytest

import spanreel
from kinds import Scene, hand_written, play, record, script
from spanreel.replay.verdict import Verdict
from spanreel.session import read_session, write_session
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
