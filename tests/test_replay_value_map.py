"""Ids that an agent makes anew in each run stand for those of the recording, one for one, where that is asked for."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import spanreel
from kinds import Kind, Scene, play, record, script
from spanreel.replay.comparing.value_map import ValueMap
from spanreel.replay.judging.verdict import Verdict
from spanreel.session import Session
from wire_server import completion

A, B, C = (str(uuid.UUID(int=number * 0x123456789ABCDEF0FEDCBA9876543210 % 2**128)) for number in (3, 5, 7))
MAPPED = {"map_ids": True}
ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


@spanreel.tool()
def book(request: str, room: str) -> str:
    ran.append(request)
    return f"{room} is booked by {request}"


class Booking(Scene):
    """Books rooms by requests with ids of its own, and tells the model of them."""

    ids: tuple[str, ...] = ()

    def begin(self) -> None:
        said = [book(request, "7") for request in self.ids]
        self.instructions = f"Requests {', '.join(self.ids)}. {' '.join(said)}"


def booking(*ids: str) -> Booking:
    scene = Booking(script(completion("Done.")))
    scene.ids = ids
    return scene


def recorded(kind: Kind, tmp_path: Path, *ids: str) -> Session:
    session = record(lambda: kind(booking(*ids)), tmp_path)
    ran.clear()
    return session


def test_a_new_id_stands_for_the_recorded_one_wherever_it_is_said(kind: Kind, tmp_path: Path) -> None:
    session = recorded(kind, tmp_path, A, B)
    report = play(session, kind, booking(*[str(uuid.uuid4()) for _ in range(2)]), changes=MAPPED)
    assert report.verdict is Verdict.PASS, report.reasons
    assert report.tiers["normalised"] == 2
    assert ran == []


def test_unless_it_is_asked_for_another_id_is_another_call(kind: Kind, tmp_path: Path) -> None:
    session = recorded(kind, tmp_path, A)
    assert play(session, kind, booking(C)).verdict is Verdict.FAIL


def test_one_id_cannot_stand_for_two(kind: Kind, tmp_path: Path) -> None:
    session = recorded(kind, tmp_path, A, B)
    assert play(session, kind, booking(C, C), changes=MAPPED).verdict is Verdict.FAIL
    session = recorded(kind, tmp_path, A, A)
    assert play(session, kind, booking(B, C), changes=MAPPED).verdict is Verdict.FAIL


def test_what_else_differs_differs(kind: Kind, tmp_path: Path) -> None:
    session = recorded(kind, tmp_path, A)
    report = play(session, kind, replace(booking(A), question="Stop."), changes=MAPPED)
    assert report.verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("recorded", "live", "equal"),
    [
        (f"of {A}", f"of {B}", True),
        (f"of {A}", f"by {B}", False),
        ({"id": A}, {"id": B}, True),
        ({"id": A}, {"id": B, "more": 1}, False),
        (["7"], ["8"], False),
        ("order-1", "order-2", False),
        ("receipt4f9a8b7c6d5e", "receipt0a1b2c3d4e5f", True),
        ("abcdefghijklmnopqrst", "tsrqponmlkjihgfedcba", False),
        (1, True, False),
    ],
)
def test_only_what_looks_made_stands_for_another(recorded: Any, live: Any, equal: bool) -> None:
    assert (ValueMap().pairs(recorded, live) is not None) is equal
