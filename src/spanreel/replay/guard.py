"""Keeps a replayed process from the network and from other programs: what no point catches is stopped and named.

Process-wide, since a call may come from any thread: one audit hook, which cannot be taken away and looks only while a
replay is active, and wraps of the libraries that open sockets below Python (uvloop, grpc) or keep them open (aiohttp).
"""

from __future__ import annotations

import ipaddress
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import wrapt

from spanreel import playing
from spanreel.errors import ReplayStop
from spanreel.point import Player
from spanreel.replay import gate
from spanreel.replay.gate import Address
from spanreel.replay.programs import EVENTS, program_of

_INTERNET = (socket.AF_INET, socket.AF_INET6)
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
    wrapt.register_post_import_hook(_wrap_aiohttp, "aiohttp.client")
    wrapt.register_post_import_hook(_wrap_uvloop, "uvloop")
    wrapt.register_post_import_hook(_wrap_grpc, "grpc._channel")
    wrapt.register_post_import_hook(_wrap_grpc_aio, "grpc.aio._channel")


# -- what is seen ----------------------------------------------------------------------------------------------------


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event in EVENTS:
        if gate.is_active():
            program = program_of(event, arguments)
            if program is not None:
                gate.decide_program(program)
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
    if gate.is_active() and len(args) > 1:
        if wrapped.__name__ == "subprocess_shell":
            program = program_of("os.system", (args[1],))
        else:
            program = program_of("subprocess.Popen", (None, args[1:], None, kwargs.get("env")))
        if program is not None:
            gate.decide_program(program)
    return wrapped(*args, **kwargs)


def _uvloop_wrapper(places: tuple[int, ...]) -> Callable[..., Any]:
    def wrapper(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        if playing.active_players() or playing.denied():
            found = [args[place] for place in places if place < len(args)]
            if len(places) == 1 and found and isinstance(found[0], tuple):
                gate.decide((str(found[0][0]), int(found[0][1])))
            elif (host := found[0] if found else kwargs.get("host")) is not None:
                port = found[1] if len(found) > 1 else kwargs.get("port")
                looked_up = wrapped.__name__ == "getaddrinfo"
                if not looked_up or _looked_up((host,)) is not None:
                    gate.decide((str(host), None if looked_up else int(port or 0)))
        return wrapped(*args, **kwargs)

    return wrapper


def _wrap_aiohttp(module: Any) -> None:
    wrapt.wrap_function_wrapper(module, "ClientSession._request", _aiohttp_request)


async def _aiohttp_request(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
    if gate.is_active():
        url = instance._build_url(args[1] if len(args) > 1 else kwargs["str_or_url"])  # noqa: SLF001 - relative ones
        if url.host:
            gate.decide((url.host, url.port))
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
        gate.decide((host, int(port)) if host and port.isdecimal() else (text, None))
    return wrapped(*args, **kwargs)


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True
