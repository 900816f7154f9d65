"""Keeps a replayed process from the network: whatever no point catches is stopped at its socket and named.

Process-wide, since a call may come from any thread: one audit hook, which cannot be taken away and looks only while a
replay is active, and wraps of the two libraries (uvloop, grpc) that open sockets below Python.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final

import wrapt

from spanreel import playing
from spanreel.errors import ReplayStop
from spanreel.point import Player

Address = tuple[str, int | None]
"""Host and port; no port where a name is only looked up."""

TELEMETRY: Final = ("opentelemetry.sdk", "opentelemetry.exporter", "agents.tracing", "langsmith", "spanreel.export")
"""Modules that send what was observed. A replay holds it back, and goes on."""

_INTERNET = (socket.AF_INET, socket.AF_INET6)
_LIBRARIES = (
    sysconfig.get_paths()["stdlib"],
    sysconfig.get_paths()["purelib"],
    sysconfig.get_paths()["platlib"],
    str(Path(__file__).parents[1]),
    "<frozen",
)

_lock = threading.Lock()
_allowed: dict[int, frozenset[Address]] = {}
_watching = False
_asking = threading.local()


def watch(player: Player, allow: Sequence[str] = ()) -> None:
    """Stop connections while this player is active, but to the ``host:port`` addresses allowed."""
    allowed = frozenset(address for one in allow for address in _resolve(one))
    with _lock:
        _allowed[id(player)] = allowed
    install()


def release(player: Player) -> None:
    """The player is no longer active."""
    with _lock:
        _allowed.pop(id(player), None)


def install() -> None:
    """Put the audit hook and the wraps in place, once a process."""
    global _watching  # noqa: PLW0603 - the process-wide guard that the module docstring names
    with _lock:
        if _watching:
            return
        _watching = True
    sys.addaudithook(_audit)
    wrapt.register_post_import_hook(_wrap_uvloop, "uvloop")
    wrapt.register_post_import_hook(_wrap_grpc, "grpc._channel")
    wrapt.register_post_import_hook(_wrap_grpc_aio, "grpc.aio._channel")


# -- what is seen ----------------------------------------------------------------------------------------------------


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    read = _EVENTS.get(event)
    if read is None or not (playing.active_players() or playing.denied()) or getattr(_asking, "us", False):
        return
    address = read(arguments)
    if address is None:
        return
    try:
        _decide(address)
    except ReplayStop:
        # Those who open sockets close them at an OSError only.
        if event == "socket.connect":
            arguments[0].close()
        raise


_audit.__cantrace__ = True  # type: ignore[attr-defined]  # what an audit hook has to say so that it can be traced


def _socket_address(arguments: tuple[Any, ...]) -> Address | None:
    connection, address = arguments[0], arguments[1]
    if connection.family not in _INTERNET or not isinstance(address, tuple) or len(address) < 2:
        return None
    return str(address[0]), int(address[1])


def _looked_up(arguments: tuple[Any, ...]) -> Address | None:
    host = arguments[0].decode(errors="replace") if isinstance(arguments[0], bytes) else arguments[0]
    if not isinstance(host, str) or host in ("", "localhost", socket.gethostname()) or _is_literal(host):
        return None
    return host, None


_EVENTS: Final[dict[str, Callable[[tuple[Any, ...]], Address | None]]] = {
    "socket.connect": _socket_address,
    "socket.sendto": _socket_address,
    "socket.sendmsg": _socket_address,
    "socket.getaddrinfo": _looked_up,
    "socket.gethostbyname": _looked_up,
}


def _wrap_uvloop(module: Any) -> None:
    for name, places in (("create_connection", (1, 2)), ("getaddrinfo", (0, 1)), ("sock_connect", (1,))):
        wrapt.wrap_function_wrapper(module, f"Loop.{name}", _uvloop_wrapper(places))


def _uvloop_wrapper(places: tuple[int, ...]) -> Callable[..., Any]:
    def wrapper(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        if playing.active_players() or playing.denied():
            found = [args[place] for place in places if place < len(args)]
            if len(places) == 1 and found and isinstance(found[0], tuple):
                _decide((str(found[0][0]), int(found[0][1])))
            elif (host := found[0] if found else kwargs.get("host")) is not None:
                port = found[1] if len(found) > 1 else kwargs.get("port")
                looked_up = wrapped.__name__ == "getaddrinfo"
                if not looked_up or _looked_up((host,)) is not None:
                    _decide((str(host), None if looked_up else int(port or 0)))
        return wrapped(*args, **kwargs)

    return wrapper


def _wrap_grpc(module: Any) -> None:
    for name in (
        "_UnaryUnaryMultiCallable",
        "_SingleThreadedUnaryStreamMultiCallable",
        "_UnaryStreamMultiCallable",
        "_StreamUnaryMultiCallable",
        "_StreamStreamMultiCallable",
    ):
        for method in ("__call__", "with_call", "future"):
            if hasattr(getattr(module, name, None), method):
                wrapt.wrap_function_wrapper(module, f"{name}.{method}", _grpc_call)


def _wrap_grpc_aio(module: Any) -> None:
    for name in ("UnaryUnary", "UnaryStream", "StreamUnary", "StreamStream"):
        if hasattr(module, f"{name}MultiCallable"):
            wrapt.wrap_function_wrapper(module, f"{name}MultiCallable.__call__", _grpc_call)


def _grpc_call(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
    if playing.active_players() or playing.denied():
        target = getattr(instance, "_target", None)
        text = target.decode(errors="replace") if isinstance(target, bytes) else str(target or "a gRPC server")
        host, _, port = text.rpartition("///")[2].removeprefix("dns:").rpartition(":")
        _decide((host, int(port)) if host and port.isdecimal() else (text, None))
    return wrapped(*args, **kwargs)


# -- what is done about it -------------------------------------------------------------------------------------------


def _decide(address: Address) -> None:
    """Let an allowed connection pass; hold telemetry back; stop all else, naming who asked.

    Raises:
        ReplayStop: the connection is not allowed.
        ConnectionRefusedError: it is telemetry.
    """
    players = playing.active_players()
    if players and all(_is_allowed(address, _allowed.get(id(player), frozenset())) for player in players):
        return
    where = f"{address[0]}:{address[1]}" if address[1] is not None else address[0]
    frames = list(_frames())
    if any((frame.f_globals.get("__name__") or "").startswith(TELEMETRY) for frame in frames):
        for player in players:
            _note(player, f"telemetry to {where} was held back")
        raise ConnectionRefusedError(f"spanreel: a replay sends no telemetry ({where})")
    what = f"a connection to {where} from {_place(frames)}"
    current = playing.current_player() if players else None
    if current is not None:
        current.refuse(what)
    raise ReplayStop(f"{what} would have gone past the replay")


def _note(player: Player, what: str) -> None:
    note = getattr(player, "note", None)
    if note is not None:
        note(what)


def _is_allowed(address: Address, allowed: frozenset[Address]) -> bool:
    host, port = address
    return address in allowed or (port is None and any(host == one for one, _ in allowed))


def _resolve(address: str) -> Iterator[Address]:
    """An allowed ``host:port`` under its name and under the numbers that the name stands for."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    yield host, int(port)
    with _unseen(), contextlib.suppress(OSError):
        for found in socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM):
            yield str(found[4][0]), int(port)


@contextlib.contextmanager
def _unseen() -> Iterator[None]:
    _asking.us = True
    try:
        yield
    finally:
        _asking.us = False


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the documented way to walk a stack cheaply
    while frame is not None:
        yield frame
        frame = frame.f_back


def _place(frames: Sequence[FrameType]) -> str:
    """The first frame outside libraries: where the user's code asked for it."""
    own = [frame for frame in frames if not frame.f_code.co_filename.startswith(_LIBRARIES)]
    frame = own[0] if own else frames[-1]
    file = frame.f_code.co_filename
    inside = os.path.relpath(file) if file.startswith(str(Path.cwd()) + os.sep) else Path(file).name
    return f"{inside}:{frame.f_lineno} ({frame.f_code.co_name})"
