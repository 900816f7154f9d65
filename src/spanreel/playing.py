"""Which replay the current code runs in: what the boundary asks at every call.

The one `ContextVar` tells concurrent replays apart; the process-wide tuple catches what has no context (plain threads),
so that nothing runs live because a context was lost. What a player does is left to `spanreel.replay`.
"""

from __future__ import annotations

import os
import threading
from contextvars import ContextVar

from spanreel.errors import ReplayStop
from spanreel.point import Player

GUARD_VARIABLE = "SPANREEL_REPLAY_GUARD"
"""Environment: ``deny:<pid>`` in children of a replayed process; they must not run anything live."""

_current: ContextVar[Player | None] = ContextVar("spanreel_player", default=None)
_lock = threading.Lock()
_active: tuple[Player, ...] = ()
_previous: dict[int, Player | None] = {}
_denied = False


def current_player() -> Player | None:
    """The player of this context, else the only one in the process, else None.

    A player that has been left stays the player of tasks that outlive it, and answers nothing.

    Raises:
        ReplayStop: several replays are active and this thread belongs to none of them, or this process was started by a
            replayed process.
    """
    player = _current.get()
    if player is not None:
        return player
    active = _active
    if len(active) == 1:
        return active[0]
    if active:
        raise ReplayStop(
            f"{len(active)} replays are active and this thread belongs to none of them; "
            "start it with contextvars.copy_context().run"
        )
    if _denied:
        raise ReplayStop(f"this process was started by a replayed one ({GUARD_VARIABLE}); nothing runs live in it")
    return None


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
        _active = tuple(one for one in _active if one is not player)
    if _current.get() is player:
        _current.set(previous)


def read_guard() -> None:
    """Read from the environment whether this process is the child of a replayed one."""
    global _denied
    word, _, process = os.environ.get(GUARD_VARIABLE, "").partition(":")
    # A process that replaces itself (exec) keeps its id, and is still the one that may replay.
    _denied = word == "deny" and process != str(os.getpid())


def denied() -> bool:
    """Whether this process is the child of a replayed one and has no replay of its own."""
    return _denied


read_guard()
