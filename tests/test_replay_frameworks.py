"""What tools of every kind of agent give and what models ask of them, beside the acceptance cases."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
from pathlib import Path
from typing import Any, Literal

import pydantic
import pytest

from kinds import Kind, Scene, play, record, script
from spanreel.replay.judging.verdict import Verdict
from wire_server import calls, completion

pytestmark = pytest.mark.slow

ran: list[str] = []


class Address(pydantic.BaseModel):
    street: str
    number: int = 1


@dataclasses.dataclass
class Parcel:
    id: str
    weight: float = 0.5


def deliver(
    to: Address, when: dt.date, tags: list[str] | None = None, mode: Literal["fast", "slow"] = "fast"
) -> Address:
    """Deliver."""
    ran.append("deliver")
    return to


def pack(id: str) -> list[Parcel]:
    """Pack."""
    ran.append("pack")
    return [Parcel(id), Parcel(id, 2.0)]


def nothing(x: int) -> None:
    """Do nothing."""
    ran.append("nothing")


def answer(frage: str) -> str:
    """Answer."""
    ran.append("answer")
    return f"ответ 🎉 {frage}"


async def late(x: int) -> str:
    """Answer in another order than asked."""
    ran.append("late")
    await asyncio.sleep(0.02 * (3 - x))
    return f"r{x}"


ASKED: dict[str, tuple[Any, list[Any]]] = {
    "a model with defaults": (
        [[("c1", "deliver", {"to": {"street": "s"}, "when": "2026-01-01"})]],
        [deliver],
    ),
    "a model with all of it": (
        [
            [
                (
                    "c1",
                    "deliver",
                    {"to": {"street": "s", "number": 2}, "when": "2026-01-01", "tags": ["x"], "mode": "slow"},
                )
            ]
        ],
        [deliver],
    ),
    "objects in a list": ([[("c1", "pack", {"id": "A"})]], [pack]),
    "nothing": ([[("c1", "nothing", {"x": 1})]], [nothing]),
    "other letters": ([[("c1", "answer", {"frage": "é\u0301"})]], [answer]),
    "side by side": ([[(f"c{number}", "late", {"x": number}) for number in range(3)]], [late]),
    "the same three times": ([[(f"c{number}", "nothing", {"x": 1}) for number in range(3)]], [nothing]),
    "one id twice": ([[("c1", "nothing", {"x": 1})], [("c1", "nothing", {"x": 2})]], [nothing]),
    "a tool that does not exist": ([[("c1", "nosuch", {"x": 1})]], [nothing]),
    "arguments that do not fit": ([[("c1", "nothing", {"y": 1})]], [nothing]),
}
NOT_BY_HAND = ("a model with defaults", "a model with all of it", "objects in a list", "side by side")
"""A loop that decodes JSON gives no models, writes no objects and awaits nothing; nor does a graph that is invoked."""


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", ASKED)
def test_an_agent_passes_offline_whatever_its_tools_take_and_give(
    name: str, streams: bool, kind: Kind, tmp_path: Path
) -> None:
    left_out: dict[str, tuple[str, ...]] = {"hand_written": NOT_BY_HAND, "langgraph": ("side by side",)}
    if name in left_out.get(kind.__name__, ()):
        return
    asked, tools = ASKED[name]
    scene = Scene(script(*(calls(*one) for one in asked), completion("Done.")), tools, streams=streams)
    came: list[str] = []

    def work(scene: Scene) -> str:
        try:
            came.append(kind(scene))
        except Exception as error:  # noqa: BLE001 - a framework may refuse what the model asks
            came.append(type(error).__name__)
        return came[-1]

    ran.clear()
    session = record(lambda: work(scene), tmp_path)
    heard = list(scene.heard)
    ran.clear()
    scene.heard.clear()
    report = play(session, work, scene)
    assert (report.verdict, report.reasons) == (Verdict.PASS, ())
    assert ran == []
    assert came[1] == came[0]
    assert scene.heard == heard
