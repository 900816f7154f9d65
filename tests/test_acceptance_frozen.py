"""The acceptance case of replay about what differs by itself, 14: the clock, uuids and random numbers in a prompt."""

from __future__ import annotations

import datetime as dt
import logging
import random
import re
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import choice
from typing import Any
from uuid import uuid4

import pytest

import spanreel
from acceptance import case
from kinds import Kind, Scene, hand_written, play, record, script
from spanreel.replay.judging.verdict import Verdict
from spanreel.session_files import read_session, write_session
from wire_server import completion

pytestmark = pytest.mark.slow

FROZEN = replace(spanreel.read_settings(), freeze=True)
DRAWN: dict[str, Callable[[], Any]] = {
    "now": lambda: dt.datetime.now(dt.UTC).isoformat(),
    "today": lambda: dt.date.today().isoformat(),  # noqa: DTZ011 - as prompts have it
    "time": lambda: repr(time.time()),
    "time_ns": lambda: str(time.time_ns()),
    "uuid4": lambda: str(uuid.uuid4()),
    "uuid4, imported": lambda: str(uuid4()),
    "random": lambda: repr(random.random()),
    "randint": lambda: str(random.randint(0, 10**12)),
    "choice, imported": lambda: str(choice(range(10**9))),
    "sample": lambda: str(random.sample(range(10**6), 5)),
    "uniform": lambda: repr(random.uniform(0, 1)),
}


class Prompted(Scene):
    """Told something that its own code has drawn, as the run's first deed."""

    drawing: Callable[[], str] = staticmethod(lambda: "")

    def begin(self) -> None:
        self.instructions = self.drawing()


def prompted(drawing: Callable[[], str]) -> Prompted:
    scene = Prompted(script(completion("Done.")))
    scene.drawing = drawing
    return scene


def told() -> str:
    return " ".join(str(draw()) for draw in DRAWN.values())


@case(14)
def test_14_a_prompt_with_clock_and_uuid_passes_with_what_was_drawn(kind: Kind, tmp_path: Path) -> None:
    scene = prompted(told)
    session = record(lambda: kind(scene), tmp_path, settings=FROZEN)
    (run,) = session.runs
    assert {draws.kind for draws in run.draws or ()} >= {"clock", "uuid", "random"}
    before = scene.instructions
    report = play(read_session(write_session(session)), kind, scene)
    assert report.verdict is Verdict.PASS, report.reasons
    assert scene.instructions == before


@case(14)
def test_14_without_it_the_divergence_names_the_prompt(kind: Kind, tmp_path: Path) -> None:
    scene = prompted(told)
    session = record(lambda: kind(scene), tmp_path)
    report = play(session, kind, scene)
    assert report.verdict is Verdict.FAIL
    assert "/messages/0/parts/0/content" in report.reasons[0]


@case(14)
def test_14_one_more_draw_before_the_others_shifts_none(kind: Kind, tmp_path: Path) -> None:
    def drawing() -> str:
        if more:
            extra.append(str(uuid.uuid4()))
        first = uuid.uuid4()
        second = uuid.uuid4()
        return f"{first} {second} {random.random()}"

    more, extra = False, list[str]()
    scene = prompted(drawing)
    session = record(lambda: kind(scene), tmp_path, settings=FROZEN)
    more = True
    report = play(session, kind, scene)
    assert report.verdict is Verdict.PASS, report.reasons
    assert extra[0] not in scene.instructions
    assert any("extra.append(str(uuid.uuid4()))" in note for note in report.notes)


@pytest.mark.parametrize("name", DRAWN)
def test_each_way_to_draw_gives_again_what_it_gave(name: str, tmp_path: Path) -> None:
    scene = prompted(lambda: str(DRAWN[name]()))
    session = record(lambda: hand_written(scene), tmp_path, settings=FROZEN)
    assert play(session, hand_written, scene).verdict is Verdict.PASS


def test_a_recording_without_draws_is_frozen_at_its_own_time_on_request(kind: Kind, tmp_path: Path) -> None:
    scene = prompted(lambda: f"Today is {dt.datetime.now(dt.UTC):%Y-%m-%d}.")
    session = record(lambda: kind(scene), tmp_path)
    old = read_session(re.sub(r"\d{4}-\d{2}-\d{2}", "2025-02-03", write_session(session)))
    assert play(old, kind, scene).verdict is Verdict.FAIL
    report = play(old, kind, scene, changes={"freeze": True})
    assert report.verdict is Verdict.PASS, report.reasons


def test_what_is_frozen_without_having_been_recorded_is_the_same_in_each_replay(tmp_path: Path) -> None:
    scene = prompted(lambda: "Be brief.")
    session = record(lambda: hand_written(scene), tmp_path)
    scene.drawing = told
    told_then = []
    for _ in range(2):
        assert play(session, hand_written, scene, changes={"freeze": True}).verdict is Verdict.FAIL
        told_then.append(scene.instructions)
    assert told_then[0] == told_then[1]


def test_libraries_keep_the_time_and_everything_is_put_back(tmp_path: Path) -> None:
    seen: list[float] = []

    def drawing() -> str:
        seen.append(time.time())
        logged.append(logging.makeLogRecord({}).created)
        return "Be brief."

    logged: list[float] = []
    functions = time.time, uuid.uuid4, random.random, random.getrandbits, uuid.__dict__["os"]
    scene = prompted(drawing)
    session = record(lambda: hand_written(scene), tmp_path, settings=FROZEN)
    report = play(session, hand_written, scene)
    assert report.verdict is Verdict.PASS
    assert seen[0] == seen[1]
    assert logged[0] < logged[1]
    assert (time.time, uuid.uuid4, random.random, random.getrandbits, uuid.__dict__["os"]) == functions
    assert "random" not in vars(random.__dict__["_inst"])
    assert abs(time.time() - dt.datetime.now(dt.UTC).timestamp()) < 60
