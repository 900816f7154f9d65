"""Keeps a replayed process from the network and from other programs: what no point catches is stopped and named.

Process-wide, since a call may come from any thread: one audit hook, which cannot be taken away and looks only while a
replay is active, and wraps of the libraries that open sockets below Python (uvloop, grpc) or keep them open (aiohttp).
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

import wrapt

from spanreel import playing
from spanreel.errors import ReplayStop
from spanreel.point import Player
from spanreel.replay.asking import frames_of_call, place_of
from spanreel.replay.events import Event, Happening, Subject, append_event
from spanreel.replay.programs import EVENTS, LOOKING, SERVERS, program_of
from spanreel.scope import is_open
from spanreel.settings import REPLAY_REPORT

Address = tuple[str, int | None]
"""Host and port; no port where a name is only looked up."""

TELEMETRY: Final = ("opentelemetry.sdk", "opentelemetry.exporter", "agents.tracing", "langsmith", "spanreel.export")
"""Modules that send what was observed. A replay holds it back, and goes on."""

_INTERNET = (socket.AF_INET, socket.AF_INET6)
PROGRAM: Final = "program"
"""What stands in the place of the host in an allowed ``program:NAME``."""

_lock = threading.Lock()
_allowed: dict[int, frozenset[Address]] = {}
_programs: dict[int, frozenset[str]] = {}
_watching = False
_process = os.getpid()
_asking = threading.local()


def watch(player: Player, allow: Sequence[str] = ()) -> None:
    """Stop connections and programs while this player is active, but for what ``allow`` names.

    It holds ``host:port`` addresses, and programs as ``program:NAME``.
    """
    programs = frozenset(one.removeprefix(f"{PROGRAM}:") for one in allow if one.startswith(f"{PROGRAM}:"))
    addresses = [one for one in allow if not one.startswith(f"{PROGRAM}:")]
    allowed = frozenset(address for one in addresses for address in _resolve(one))
    with _lock:
        _allowed[id(player)] = allowed
        _programs[id(player)] = programs
    install()


def release(player: Player) -> None:
    """The player is no longer active."""
    with _lock:
        _allowed.pop(id(player), None)
        _programs.pop(id(player), None)


def install() -> None:
    """Put the audit hook and the wraps in place, once a process."""
    global _watching, _process
    with _lock:
        if _watching:
            return
        _watching, _process = True, os.getpid()
    sys.addaudithook(_audit)
    wrapt.register_post_import_hook(_wrap_aiohttp, "aiohttp.client")
    wrapt.register_post_import_hook(_wrap_uvloop, "uvloop")
    wrapt.register_post_import_hook(_wrap_grpc, "grpc._channel")
    wrapt.register_post_import_hook(_wrap_grpc_aio, "grpc.aio._channel")


def know(player: Player, host: str) -> None:
    """Let the name of a live model's host be looked up: event loops do that in threads of their own."""
    with _lock:
        _allowed[id(player)] = _allowed.get(id(player), frozenset()) | {(host, None)}


# -- what is seen ----------------------------------------------------------------------------------------------------


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event in EVENTS:
        if _is_active():
            program = program_of(event, arguments)
            if program is not None:
                _decide_program(program)
        return
    read = _EVENTS.get(event)
    if read is None or not _is_active():
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


def _is_active() -> bool:
    return bool(playing.active_players() or playing.denied()) and not getattr(_asking, "us", False)


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


def _http_peer(arguments: tuple[Any, ...]) -> Address:
    # A connection that was open before the replay sends without another socket event.
    return str(arguments[0].host), arguments[0].port


_EVENTS: Final[dict[str, Callable[[tuple[Any, ...]], Address | None]]] = {
    "socket.connect": _socket_address,
    "socket.sendto": _socket_address,
    "socket.sendmsg": _socket_address,
    "socket.getaddrinfo": _looked_up,
    "socket.gethostbyname": _looked_up,
    "http.client.send": _http_peer,
}


def _wrap_uvloop(module: Any) -> None:
    for name, places in (("create_connection", (1, 2)), ("getaddrinfo", (0, 1)), ("sock_connect", (1,))):
        wrapt.wrap_function_wrapper(module, f"Loop.{name}", _uvloop_wrapper(places))
    for name in ("subprocess_exec", "subprocess_shell"):
        wrapt.wrap_function_wrapper(module, f"Loop.{name}", _uvloop_program)


def _uvloop_program(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
    if _is_active() and len(args) > 1:
        if wrapped.__name__ == "subprocess_shell":
            program = program_of("os.system", (args[1],))
        else:
            program = program_of("subprocess.Popen", (None, args[1:], None, kwargs.get("env")))
        if program is not None:
            _decide_program(program)
    return wrapped(*args, **kwargs)


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


def _wrap_aiohttp(module: Any) -> None:
    wrapt.wrap_function_wrapper(module, "ClientSession._request", _aiohttp_request)


async def _aiohttp_request(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
    if _is_active():
        url = instance._build_url(args[1] if len(args) > 1 else kwargs["str_or_url"])  # noqa: SLF001 - relative ones
        if url.host:
            _decide((url.host, url.port))
    return await wrapped(*args, **kwargs)


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
    if is_open():
        return
    if players and all(_is_allowed(address, _allowed.get(id(player), frozenset())) for player in players):
        return
    where = f"{address[0]}:{address[1]}" if address[1] is not None else address[0]
    frames = list(frames_of_call())
    if any((frame.f_globals.get("__name__") or "").startswith(TELEMETRY) for frame in frames):
        _note(f"telemetry to {where} was held back")
        raise ConnectionRefusedError(f"spanreel: a replay sends no telemetry ({where})")
    _stop(f"a connection to {where} from {place_of(frames)}")


def _decide_program(name: str) -> None:
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


def _stop(what: str) -> NoReturn:
    players = playing.active_players()
    if playing.denied() or os.getpid() != _process:
        _tell_parent(what)
    current = playing.current_player() if players else None
    if current is not None:
        current.refuse(what)
    raise ReplayStop(f"{what} would have gone past the replay")


def _tell_parent(what: str) -> None:
    """The process that replays hears of it by the file that its events go to, where it has one."""
    if file := os.environ.get(REPLAY_REPORT):
        with contextlib.suppress(OSError):
            append_event(Path(file), Event(Happening.REFUSED, Subject.REPLAY, detail=what))


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
