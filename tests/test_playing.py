"""Which replay the current code runs in, and recorded failures raised again."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from spanreel import playing
from spanreel.errors import RecordedFailure, ReplayStop
from spanreel.failures import rebuild_error
from spanreel.instrumenting import instrument, uninstrument
from spanreel.playing import current_player, enter, leave
from spanreel.point import RecordedError


class Odd(Exception):
    def __init__(self, code: int, *, where: str) -> None:
        super().__init__(code, where)


class Mute(Exception):
    def __new__(cls, *arguments: object) -> Mute:
        raise RuntimeError("not made like this")


class Stub:
    """Stands for a player; nothing here calls one."""


@pytest.fixture
def players() -> Iterator[list[Any]]:
    stubs: list[Any] = [Stub(), Stub()]
    yield stubs
    for stub in stubs:
        leave(stub)


def in_thread(function: Callable[[], object]) -> object:
    found: list[object] = []

    def work() -> None:
        try:
            found.append(function())
        except ReplayStop as stop:
            found.append(stop)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return found[0]


def test_without_a_replay_there_is_no_player() -> None:
    assert current_player() is None


def test_the_context_says_which_player(players: list[Any]) -> None:
    enter(players[0])
    enter(players[1])
    assert current_player() == players[1]
    assert playing.active_players() == tuple(players)
    leave(players[1])
    assert current_player() == players[0]


def test_replays_may_be_left_in_any_order(players: list[Any]) -> None:
    enter(players[0])
    enter(players[1])
    leave(players[0])
    assert current_player() == players[1]
    leave(players[1])
    leave(players[1])
    assert current_player() is None


def test_a_plain_thread_gets_the_only_player(players: list[Any]) -> None:
    enter(players[0])
    assert in_thread(current_player) is players[0]


def test_a_plain_thread_among_several_replays_is_stopped(players: list[Any]) -> None:
    enter(players[0])
    enter(players[1])
    stop = in_thread(current_player)
    assert isinstance(stop, ReplayStop)
    assert "2 replays are active" in str(stop)
    context = contextvars.copy_context()
    assert in_thread(lambda: context.run(current_player)) is players[1]


async def test_tasks_keep_their_own_players(players: list[Any]) -> None:
    async def session(player: Any) -> bool:
        enter(player)
        await asyncio.sleep(0)
        same = current_player() is player and await asyncio.to_thread(current_player) is player
        leave(player)
        return same

    assert await asyncio.gather(*(session(player) for player in players)) == [True, True]


async def test_a_task_that_outlives_its_replay_does_not_go_live(players: list[Any]) -> None:
    enter(players[0])
    gate = asyncio.Event()

    async def late() -> object:
        await gate.wait()
        return current_player()

    task = asyncio.create_task(late())
    await asyncio.sleep(0)
    leave(players[0])
    gate.set()
    assert await task is players[0]


def test_leaving_from_another_context_still_ends_the_replay(players: list[Any]) -> None:
    contextvars.copy_context().run(enter, players[0])
    first = players[0]
    assert current_player() == first
    leave(first)
    assert current_player() is None


def test_a_child_of_a_replayed_process_runs_nothing_live(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANREEL_REPLAY_GUARD", f"deny:{os.getpid() + 1}")
    playing.read_guard()
    try:
        assert playing.denied()
        with pytest.raises(ReplayStop, match="started by a replayed one"):
            current_player()
    finally:
        monkeypatch.undo()
        playing.read_guard()


def test_a_process_that_replaced_itself_is_no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANREEL_REPLAY_GUARD", f"deny:{os.getpid()}")
    playing.read_guard()
    assert not playing.denied()


@pytest.mark.parametrize(
    ("name", "message", "expected"),
    [
        ("TimeoutError", "too slow", TimeoutError),
        ("builtins.ValueError", "bad", ValueError),
        ("builtins.KeyError", "'order'", KeyError),
        (
            "json.decoder.JSONDecodeError",
            "Expecting value: line 1 column 1 (char 0)",
            __import__("json").JSONDecodeError,
        ),
        ("builtins.UnicodeDecodeError", "cannot decode", UnicodeDecodeError),
        ("asyncio.QueueEmpty", "nothing there", asyncio.QueueEmpty),
        (f"{__name__}.Odd", "(7, 'here')", Odd),
    ],
)
def test_a_recorded_failure_is_raised_as_its_own_class_with_its_own_text(
    name: str, message: str, expected: type[Exception]
) -> None:
    error = rebuild_error(RecordedError(name, message))
    assert isinstance(error, expected)
    assert str(error) == message
    assert type(error).__name__ == expected.__name__


@pytest.mark.parametrize(
    "name",
    [
        "nowhere.Missing",
        "asyncio.nothing_here.Missing",
        "Missing",
        "builtins.SystemExit",
        "builtins.len",
        "spanreel.errors.ReplayStop",
        "opentelemetry.no.such.Error",
        f"{__name__}.Mute",
        "app.main.<locals>.Custom",
    ],
)
def test_a_failure_whose_class_is_not_at_hand_is_raised_as_a_catchable_stand_in(name: str) -> None:
    error = rebuild_error(RecordedError(name, "what was said"))
    assert isinstance(error, RecordedFailure)
    assert (error.recorded_type, str(error)) == (name, "what was said")


def test_a_failure_without_a_text_is_raised_without_one() -> None:
    assert str(rebuild_error(RecordedError("builtins.ValueError", None))) == ""


@pytest.mark.parametrize(
    "error",
    [FileNotFoundError(2, "No such file", "x.txt"), ConnectionRefusedError(111, "refused"), KeyError("k"), KeyError(3)],
    ids=repr,
)
def test_errors_of_python_have_their_arguments_again(error: Exception) -> None:
    told = rebuild_error(RecordedError(type(error).__qualname__, str(error)))
    assert (type(told), told.args, str(told)) == (type(error), error.args, str(error))
    assert getattr(told, "filename", None) == getattr(error, "filename", None)


def test_a_thread_that_outlives_its_replay_does_not_go_live(players: list[Any]) -> None:
    instrument()
    try:
        enter(players[0])
        found: list[object] = []
        over = threading.Event()

        def late() -> None:
            over.wait(60)
            found.append(current_player())

        thread = threading.Thread(target=late)
        thread.start()
        leave(players[0])
        over.set()
        thread.join()
        assert found == [players[0]]
    finally:
        uninstrument()


def test_a_pool_that_outlives_a_replay_serves_others(players: list[Any]) -> None:
    instrument()
    try:
        with ThreadPoolExecutor(1) as pool:
            enter(players[0])
            assert pool.submit(current_player).result() == players[0]
            leave(players[0])
            assert pool.submit(current_player).result() is None
            enter(players[1])
            assert pool.submit(current_player).result() == players[1]
            leave(players[1])
    finally:
        uninstrument()
