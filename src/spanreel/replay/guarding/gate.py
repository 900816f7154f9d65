"""What a replayed process may reach and start: who is let through, what is held back, what stops a replay.

Process-wide, since a call may come from any thread. What is seen of such calls is `guard`'s business.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Final, NoReturn

from spanreel import playing
from spanreel.errors import ReplayRefused, ReplayStop
from spanreel.player import Player
from spanreel.replay.guarding import children
from spanreel.replay.guarding.asking import frames_of_call, place_of
from spanreel.replay.guarding.programs import LOOKING, SERVERS
from spanreel.scope import is_open

Address = tuple[str, int | None]
"""Host and port; no port where a name is only looked up."""

TELEMETRY: Final = ("opentelemetry.sdk", "opentelemetry.exporter", "agents.tracing", "langsmith", "spanreel.export")
"""Modules that send what was observed. A replay holds it back, and goes on."""

PROGRAM: Final = "program"
"""What stands in the place of the host in an allowed ``program:NAME``."""

UNIX: Final = "unix:"
"""What stands in front of the path of a socket of this machine, also of one that is allowed: ``unix:/run/x.sock``."""
LOGS: Final = (f"{UNIX}/dev/log", f"{UNIX}/run/systemd/journal/")
"""Where the machine's own log is written."""

OWN_CHANNELS: Final = ("multiprocessing.", "concurrent.futures.process")
"""Modules by which a program talks to processes of its own, which guard themselves."""

_lock = threading.Lock()
_allowed: dict[int, frozenset[Address]] = {}
_programs: dict[int, frozenset[str]] = {}
_process = os.getpid()
_asking = threading.local()


def checked_allow(allow: Sequence[str]) -> tuple[str, ...]:
    """What is allowed, each ``host:port``, ``unix:path`` or ``program:name``.

    Raises:
        ReplayRefused: one is none of these.
    """
    for one in allow:
        host, _, rest = str(one).rpartition(":")
        named = str(one).startswith((UNIX, f"{PROGRAM}:")) and rest
        if not named and not (host and rest.isdecimal() and int(rest) < 65536):
            raise ReplayRefused(f"allow {one!r} is not of the form host:port, unix:path or program:name")
    return tuple(allow)


def let(player: Player, allow: Sequence[str]) -> None:
    """While this player is active, these addresses may be reached and these programs started."""
    programs = frozenset(one.removeprefix(f"{PROGRAM}:") for one in allow if one.startswith(f"{PROGRAM}:"))
    addresses = [one for one in allow if not one.startswith(f"{PROGRAM}:")]
    allowed = frozenset(address for one in addresses for address in _resolve(one))
    with _lock:
        _allowed[id(player)] = allowed
        _programs[id(player)] = programs


def release(player: Player) -> None:
    """The player is no longer active."""
    with _lock:
        _allowed.pop(id(player), None)
        _programs.pop(id(player), None)


def know(player: Player, host: str) -> None:
    """Let the name of a live model's host be looked up: event loops do that in threads of their own."""
    with _lock:
        _allowed[id(player)] = _allowed.get(id(player), frozenset()) | {(host, None)}


def close_in_children() -> None:
    """This is the process that replays: one forked from it lets nothing through."""
    global _process  # noqa: PLW0603 - process-wide, as the module docstring says
    _process = os.getpid()


def is_active() -> bool:
    """Whether anything is to be stopped: a replay is going on, or has left this code behind, and it is not ours."""
    stopping = playing.active_players() or playing.denied() or playing.is_left_behind()
    return bool(stopping) and not getattr(_asking, "us", False)


def decide(address: Address) -> None:
    """Let an allowed connection pass; hold telemetry back; stop all else, naming who asked.

    Raises:
        ReplayStop: the connection is not allowed.
        ConnectionRefusedError: it is telemetry.
    """
    players = playing.active_players()
    if is_open():
        return
    own = address[0].startswith(UNIX)
    if own and (address[0].startswith(LOGS) or any(map(_is_between_processes, frames_of_call()))):
        return
    if players and all(_is_allowed(address, _allowed.get(id(player), frozenset())) for player in players):
        return
    where = f"{address[0]}:{address[1]}" if address[1] is not None else address[0]
    frames = list(frames_of_call())
    if any((frame.f_globals.get("__name__") or "").startswith(TELEMETRY) for frame in frames):
        if not players and not playing.denied():
            return  # a thread that sends what is observed may have been started in a replay, and goes on after it
        _note(f"telemetry to {where} was held back")
        raise ConnectionRefusedError(f"spanreel: a replay sends no telemetry ({where})")
    _stop(f"a connection to {where} from {place_of(frames)}")


def decide_program(name: str) -> None:
    """Let a program start that is allowed, or that only looks or serves tools; stop all else, naming who asked.

    Raises:
        ReplayStop: the program is not allowed.
    """
    players = playing.active_players()
    frames = list(frames_of_call())
    modules = {frame.f_globals.get("__name__") for frame in frames}
    if modules.intersection(LOOKING) or is_open():
        return
    allowed = players and all(name in _programs.get(id(player), frozenset()) for player in players)
    if allowed or modules.intersection(SERVERS):
        _note(f"the program {name!r} was started by {place_of(frames)}")
        return
    _stop(f"the program {name!r}, started by {place_of(frames)},")


def is_forked() -> bool:
    """Whether this process was forked from the one that replays."""
    return os.getpid() != _process


def tell_of_call() -> None:
    """Tell the process that replays of a call of a model or a tool in this one, its child, where none is answered."""
    where = place_of(list(frames_of_call()))
    children.tell(f"a call of a model or a tool from {where}, in another process,", playing.player_to_carry())


def _is_between_processes(frame: FrameType) -> bool:
    return (frame.f_globals.get("__name__") or "").startswith(OWN_CHANNELS)


def _stop(what: str) -> NoReturn:
    players = playing.active_players()
    if playing.denied() or is_forked():
        children.tell(what, playing.player_to_carry())
    current = playing.current_player() if players else None
    if current is not None:
        current.refuse(what)
    raise ReplayStop(f"{what} would have gone past the replay")


def _note(what: str) -> None:
    """Told to the replay of this code; of code that is in none of several, to no one: which it is cannot be known."""
    try:
        note = getattr(playing.current_player(), "note", None)
    except ReplayStop:
        return
    if note is not None:
        note(what)


def _is_allowed(address: Address, allowed: frozenset[Address]) -> bool:
    host, port = address
    return address in allowed or (port is None and any(host == one for one, _ in allowed))


def _resolve(address: str) -> Iterator[Address]:
    """An allowed ``host:port`` under its name and under the numbers that the name stands for."""
    if address.startswith(UNIX):
        yield address, None
        return
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    yield host, int(port)
    with unseen(), contextlib.suppress(OSError):
        for found in socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM):
            yield str(found[4][0]), int(port)


@contextlib.contextmanager
def unseen() -> Iterator[None]:
    """What we ask ourselves."""
    _asking.us = True
    try:
        yield
    finally:
        _asking.us = False
