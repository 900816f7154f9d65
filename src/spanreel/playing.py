"""Which replay the current code runs in: what the boundary asks at every call.

One `ContextVar` tells concurrent replays apart; another holds what was carried into plain threads, and counts behind
every replay that is going on; the process-wide tuple catches what has no context, so that nothing runs live because a
context was lost. What a player does is left to `spanreel.replay`.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar

from spanreel.errors import ReplayStop
from spanreel.player import Player
from spanreel.settings import REPLAY_GUARD

_current: ContextVar[Player | None] = ContextVar("spanreel_player", default=None)
_carried: ContextVar[Player | None] = ContextVar("spanreel_carried_player", default=None)
_lock = threading.Lock()
_active: tuple[Player, ...] = ()
_previous: dict[int, Player | None] = {}
_denied = False
_tell_of_denial: Callable[[], None] | None = None


def current_player() -> Player | None:
    """The player of this context, else the only one in the process, else None.

    A player that has been left stays the player of tasks and threads that outlive it, and answers nothing; such threads
    may serve a replay of later.

    Raises:
        ReplayStop: several replays are active and this thread belongs to none of them, or this process was started by a
            replayed process.
    """
    player = _current.get()
    if player is not None:
        return player
    active = _active
    carried = _carried.get()
    if carried is not None and any(one is carried for one in active):
        return carried
    if len(active) == 1:
        return active[0]
    if active:
        raise ReplayStop(
            f"{len(active)} replays are active and this thread belongs to none of them; "
            "start it with contextvars.copy_context().run"
        )
    if _denied:
        if _tell_of_denial is not None:
            _tell_of_denial()
        raise ReplayStop(f"this process was started by a replayed one ({REPLAY_GUARD}); nothing runs live in it")
    return carried


def player_to_carry() -> Player | None:
    """The player that goes along into a thread started here."""
    return _current.get() or _carried.get()


@contextlib.contextmanager
def carried(player: Player | None) -> Iterator[None]:
    """Code of another thread than the replay's, while that lasts: a thread may outlive it, and serve others."""
    token = _carried.set(player)
    try:
        yield
    finally:
        _carried.reset(token)


def is_left_behind() -> bool:
    """Whether a replay has started this code, in a task or a thread, and is over."""
    player = player_to_carry()
    return player is not None and not any(one is player for one in _active)


def active_players() -> tuple[Player, ...]:
    """Every active player of the process, in the order of their entering."""
    return _active


def enter(player: Player) -> None:
    """Make this the player of the current context, and one of the process's."""
    global _active
    with _lock:
        _previous[id(player)] = _current.get()
        _active = (*_active, player)
    _current.set(player)


def leave(player: Player) -> None:
    """Undo `enter`; also from another context than the one that entered, or a second time."""
    global _active
    with _lock:
        previous = _previous.pop(id(player), None)
        for key, before in _previous.items():
            if before is player:
                _previous[key] = previous
        _active = tuple(one for one in _active if one is not player)
    if _current.get() is player:
        _current.set(previous)


def read_guard() -> None:
    """Read from the environment whether this process is the child of a replayed one."""
    global _denied
    word, _, process = os.environ.get(REPLAY_GUARD, "").partition(":")
    # A process that replaces itself (exec) keeps its id, and is still the one that may replay.
    _denied = word == "deny" and process != str(os.getpid())


def tell_of_denial(tell: Callable[[], None]) -> None:
    """Have this called for every call that is denied to a child of a replayed process."""
    global _tell_of_denial
    _tell_of_denial = tell


def denied() -> bool:
    """Whether this process is the child of a replayed one and has no replay of its own."""
    return _denied


read_guard()
