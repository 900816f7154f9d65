"""Which replay the current code runs in: what the boundary asks at every call.

One `ContextVar` tells concurrent replays apart; another holds what was carried into plain threads, and counts while
that replay lasts; the process-wide tuple catches what has no context, so that nothing runs live because a context was
lost. What a player does is left to `spanreel.replay`.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, Final

from spanreel.errors import RecordedFailure, ReplayStop
from spanreel.point import Player, RecordedError
from spanreel.settings import REPLAY_GUARD

_current: ContextVar[Player | None] = ContextVar("spanreel_player", default=None)
_carried: ContextVar[Player | None] = ContextVar("spanreel_carried_player", default=None)
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
        raise ReplayStop(f"this process was started by a replayed one ({REPLAY_GUARD}); nothing runs live in it")
    return None


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


def denied() -> bool:
    """Whether this process is the child of a replayed one and has no replay of its own."""
    return _denied


def rebuild_error(recorded: RecordedError) -> Exception:
    """The exception of a recorded failure: of its own class where that is at hand, with the recorded text.

    A class that is missing, or that does not let itself be made from a text, becomes a `RecordedFailure`.
    """
    message = recorded.message or ""
    found = _find_class(recorded.type)
    if found is None:
        return RecordedFailure(recorded.type, message)
    try:
        for arguments in _arguments_of(found, message):
            error = _make(found, *arguments)
            if str(error) == message:
                return error
        # The text goes into the model's next request, so it has to be the recorded one to the letter.
        names = {"__module__": found.__module__, "__qualname__": found.__qualname__}
        told = type(found.__name__, (found,), {"__str__": lambda _: message, **names})
        error = _make(told, message)
        return error if str(error) == message else RecordedFailure(recorded.type, message)
    except Exception:  # noqa: BLE001 - the class is the user's, and may do anything
        return RecordedFailure(recorded.type, message)


def _arguments_of(found: type[Exception], message: str) -> Iterator[tuple[Any, ...]]:
    """What the exception may have been made of, the likeliest first."""
    if not message:
        yield ()
    if issubclass(found, OSError) and (read := _ERRNO.fullmatch(message)) is not None:
        number, text, file = read.groups()
        yield (int(number), text) if file is None else (int(number), text, file)
    if issubclass(found, KeyError):  # whose text is the repr of its key
        with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            yield (ast.literal_eval(message),)
    yield (message,)


_ERRNO: Final = re.compile(r"\[Errno (\d{1,6})\] ([^\n]*?)(?:: '([^\n]*)')?")
"""The text of an OSError: number, what it means, and the file it is about."""


def _make(found: type[Exception], *arguments: Any) -> Exception:
    try:
        return found(*arguments)
    except Exception:  # noqa: BLE001 - as above
        error = found.__new__(found)
        error.args = arguments
        return error


def _find_class(name: str) -> type[Exception] | None:
    steps = name.split(".")
    if len(steps) == 1:
        return _exception(getattr(builtins, name, None))
    for cut in range(len(steps) - 1, 0, -1):
        module: Any = _module(".".join(steps[:cut]))
        for step in steps[cut:]:
            module = getattr(module, step, None)
        if (found := _exception(module)) is not None:
            return found
    return None


def _module(name: str) -> Any:
    # A document must not make us import what the process does not use already.
    if name not in sys.modules and name.partition(".")[0] in sys.modules:
        try:
            return importlib.import_module(name)
        except Exception:  # noqa: BLE001 - a module runs when it is imported
            return None
    return sys.modules.get(name)


def _exception(found: Any) -> type[Exception] | None:
    return found if isinstance(found, type) and issubclass(found, Exception) else None


read_guard()
