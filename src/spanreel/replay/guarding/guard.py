"""Keeps a replayed process from the network and from other programs: what no point catches is stopped and named.

Process-wide, since a call may come from any thread: one audit hook, which cannot be taken away and looks only while a
replay is active. Libraries that open sockets below Python are `below_python`'s.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from spanreel.errors import ReplayStop
from spanreel.player import Player
from spanreel.replay.guarding import below_python, gate
from spanreel.replay.guarding.below_python import is_literal, looked_up
from spanreel.replay.guarding.gate import UNIX, Address
from spanreel.replay.guarding.programs import EVENTS, program_of

CANNOT_RUN: Final = 126
"""What a shell's child ends with where its program may not run."""
_INTERNET = (socket.AF_INET, socket.AF_INET6)
_UNIX_SOCKETS: Final = getattr(socket, "AF_UNIX", None)
_lock = threading.Lock()
_watching = False


def watch(player: Player, allow: Sequence[str] = ()) -> None:
    """Stop connections and programs while this player is active, but for what ``allow`` names.

    It holds ``host:port`` addresses, and programs as ``program:NAME``.
    """
    gate.let(player, allow)
    install()


def install() -> None:
    """Put the audit hook and the wraps in place, once a process."""
    global _watching  # noqa: PLW0603 - process-wide, as the module docstring says
    with _lock:
        if _watching:
            return
        _watching = True
    gate.close_in_children()
    sys.addaudithook(_audit)
    below_python.install()


# -- what is seen ----------------------------------------------------------------------------------------------------


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event in EVENTS:
        if gate.is_active():
            program = program_of(event, arguments)
            if program is not None:
                _decide_program(event, program)
        return
    read = _EVENTS.get(event)
    if read is None or not gate.is_active():
        return
    address = read(arguments)
    if address is None:
        return
    try:
        gate.decide(address)
    except ReplayStop:
        # Those who open sockets close them at an OSError only.
        if event == "socket.connect":
            arguments[0].close()
        raise


_audit.__cantrace__ = True  # type: ignore[attr-defined]  # what an audit hook has to say so that it can be traced


def _decide_program(event: str, program: str) -> None:
    try:
        gate.decide_program(program)
    except ReplayStop:
        if event == "os.exec" and gate.is_forked():
            # It was forked to become this program, and has no other code of its own to go on with.
            os._exit(CANNOT_RUN)
        raise


def _socket_address(arguments: tuple[Any, ...]) -> Address | None:
    connection, address = arguments[0], arguments[1]
    if connection.family == _UNIX_SOCKETS and isinstance(address, str | bytes):
        return f"{UNIX}{os.fsdecode(address)}", None
    if connection.family not in _INTERNET or not isinstance(address, tuple) or len(address) < 2:
        return None
    return str(address[0]), int(address[1])


def _looked_up(arguments: tuple[Any, ...]) -> Address | None:
    return looked_up(arguments[0])


def _named_back(arguments: tuple[Any, ...]) -> Address | None:
    """The address whose name is asked for, where that is not this machine's own."""
    host = arguments[0][0] if isinstance(arguments[0], tuple) else arguments[0]
    if isinstance(host, str) and is_literal(host):
        own = ipaddress.ip_address(host.partition("%")[0])
        return None if own.is_loopback or own.is_unspecified else (host, None)
    return looked_up(host)


def _http_peer(arguments: tuple[Any, ...]) -> Address:
    # A connection that was open before the replay sends without another socket event.
    return str(arguments[0].host), arguments[0].port


_EVENTS: Final[dict[str, Callable[[tuple[Any, ...]], Address | None]]] = {
    "socket.connect": _socket_address,
    "socket.sendto": _socket_address,
    "socket.sendmsg": _socket_address,
    "socket.getaddrinfo": _looked_up,
    "socket.gethostbyname": _looked_up,
    "socket.gethostbyaddr": _named_back,
    "socket.getnameinfo": _named_back,
    "http.client.send": _http_peer,
}
