"""Wraps of the libraries that open sockets or keep them open below what Python tells audit hooks of.

Put in place once a process, when such a library is imported; they look only while a replay is active. What is let
through is decided in `gate`. A library in C that stands in no table here is not seen.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import wrapt

from spanreel.replay.guarding import gate
from spanreel.replay.guarding.gate import UNIX, Address
from spanreel.replay.guarding.programs import program_of

DATABASES: Final[tuple[tuple[str, str, int], ...]] = (
    ("psycopg.generators", "connect", 5432),
    ("psycopg2", "_connect", 5432),
    ("MySQLdb.connections", "Connection.__init__", 3306),
    ("pyodbc", "connect", 1433),
    ("oracledb", "connect", 1521),
)
"""Drivers in C: the module, what connects in it, and the port where none is said."""


def install() -> None:
    """Have the libraries wrapped, those that are loaded at once, the others when they are."""
    hooks: dict[str, Callable[[Any], None]] = {
        "aiohttp.connector": _wrap_aiohttp,
        "uvloop": _wrap_uvloop,
        "grpc._channel": _wrap_grpc,
        "grpc.aio._channel": _wrap_grpc_aio,
    }
    for module, hook in hooks.items():
        wrapt.register_post_import_hook(hook, module)
    for module, name, port in DATABASES:
        wrapt.register_post_import_hook(_wrap_driver(name, port), module)


def looked_up(host: Any) -> Address | None:
    """The name that is looked up; None for this machine's own, and for what is a number already."""
    name = host.decode(errors="replace") if isinstance(host, bytes) else host
    if not isinstance(name, str) or name in ("", "localhost", socket.gethostname()) or is_literal(name):
        return None
    return name, None


def is_literal(host: str) -> bool:
    """Whether this is an address, and no name."""
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


# -- uvloop ----------------------------------------------------------------------------------------------------------


def _wrap_uvloop(module: Any) -> None:
    readers: dict[str, Callable[[tuple[Any, ...], Mapping[str, Any]], Address | None]] = {
        "create_connection": lambda args, named: _host_and_port(args[1:], named),
        "create_unix_connection": lambda args, named: _unix(args[1:], named),
        "create_datagram_endpoint": lambda args, named: _datagrams(args[1:], named),
        "sock_connect": lambda args, _: _pair(args[1]) if len(args) > 1 else None,
        "getaddrinfo": lambda args, named: looked_up(args[0] if args else named.get("host")),
    }
    for name, read in readers.items():
        wrapt.wrap_function_wrapper(module, f"Loop.{name}", _deciding(read))
    for name in ("subprocess_exec", "subprocess_shell"):
        wrapt.wrap_function_wrapper(module, f"Loop.{name}", _uvloop_program)


def _deciding(read: Callable[[tuple[Any, ...], Mapping[str, Any]], Address | None]) -> Callable[..., Any]:
    def wrapper(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        if gate.is_active() and (address := read(args, kwargs)) is not None:
            gate.decide(address)
        return wrapped(*args, **kwargs)

    return wrapper


def _host_and_port(given: tuple[Any, ...], named: Mapping[str, Any]) -> Address | None:
    host = given[0] if given else named.get("host")
    port = given[1] if len(given) > 1 else named.get("port")
    return None if host is None else (str(host), int(port or 0))


def _unix(given: tuple[Any, ...], named: Mapping[str, Any]) -> Address | None:
    path = given[0] if given else named.get("path")
    return None if path is None else (f"{UNIX}{path}", None)


def _datagrams(given: tuple[Any, ...], named: Mapping[str, Any]) -> Address | None:
    # Without a remote address, where its datagrams will go is not known yet.
    remote = named.get("remote_addr") or (given[1] if len(given) > 1 else None)
    return _pair(remote) if remote else ("datagrams to anywhere", None)


def _pair(address: Any) -> Address | None:
    if isinstance(address, tuple) and len(address) > 1:
        return str(address[0]), int(address[1])
    return (f"{UNIX}{address}", None) if isinstance(address, str) else None


def _uvloop_program(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
    if gate.is_active() and len(args) > 1:
        if wrapped.__name__ == "subprocess_shell":
            program = program_of("os.system", (args[1],))
        else:
            program = program_of("subprocess.Popen", (None, args[1:], None, kwargs.get("env")))
        if program is not None:
            gate.decide_program(program)
    return wrapped(*args, **kwargs)


# -- aiohttp, which keeps connections open -------------------------------------------------------------------------


def _wrap_aiohttp(module: Any) -> None:
    wrapt.wrap_function_wrapper(module, "BaseConnector.connect", _aiohttp_connect)


async def _aiohttp_connect(wrapped: Any, _instance: Any, args: Any, kwargs: Any) -> Any:
    """What a request is sent through, be it open already; what a replay answers does not come here."""
    if gate.is_active():
        url = (args[0] if args else kwargs["req"]).url
        if url.host:
            gate.decide((url.host, url.port))
    return await wrapped(*args, **kwargs)


# -- gRPC ------------------------------------------------------------------------------------------------------------


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
    wrapt.wrap_function_wrapper(module, "Channel.subscribe", _grpc_connecting)


def _wrap_grpc_aio(module: Any) -> None:
    for name in ("UnaryUnary", "UnaryStream", "StreamUnary", "StreamStream"):
        if hasattr(module, f"{name}MultiCallable"):
            wrapt.wrap_function_wrapper(module, f"{name}MultiCallable.__call__", _grpc_call)
    wrapt.wrap_function_wrapper(module, "Channel.get_state", _grpc_connecting)


def _grpc_call(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
    if gate.is_active():
        gate.decide(_grpc_target(getattr(instance, "_target", None)))
    return wrapped(*args, **kwargs)


def _grpc_connecting(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
    """A look at a channel's state, which may be asked to connect it."""
    if gate.is_active() and (kwargs.get("try_to_connect") or args[-1:] == (True,)):
        channel = getattr(instance, "_channel", None)
        gate.decide(_grpc_target(channel.target() if channel is not None and hasattr(channel, "target") else None))
    return wrapped(*args, **kwargs)


def _grpc_target(target: Any) -> Address:
    text = target.decode(errors="replace") if isinstance(target, bytes) else str(target or "a gRPC server")
    host, _, port = text.rpartition("///")[2].removeprefix("dns:").rpartition(":")
    return (host, int(port)) if host and port.isdecimal() else (text, None)


# -- drivers of databases --------------------------------------------------------------------------------------------


def _wrap_driver(name: str, port: int) -> Callable[[Any], None]:
    def connecting(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        if gate.is_active():
            gate.decide(_database(args, kwargs, port))
        return wrapped(*args, **kwargs)

    def hook(module: Any) -> None:
        first, _, rest = name.partition(".")
        if hasattr(module, first) and (not rest or hasattr(getattr(module, first), rest)):
            wrapt.wrap_function_wrapper(module, name, connecting)

    return hook


def _database(args: tuple[Any, ...], kwargs: Mapping[str, Any], port: int) -> Address:
    """Where a driver connects to: said by name, or in the text that all of them take first."""
    told = dict(_read_dsn(str(args[0])) if args else ()) | {name: str(value) for name, value in kwargs.items() if value}
    host = told.get("host") or told.get("server") or "localhost"
    if host.startswith(("/", "@")):
        return f"{UNIX}{host}", None
    number = told.get("port", "")
    return host, int(number) if number.isdecimal() else port


def _read_dsn(text: str) -> Iterator[tuple[str, str]]:
    if "://" in text:
        parts = urlsplit(text)
        yield "host", parts.hostname or ""
        yield "port", str(parts.port or "")
    for name, value in re.findall(r"(?i)\b(host|server|port)\s*=\s*'?([^\s';,]+)", text):
        yield name.lower(), value
