"""How the service runs: one typed place, filled from the environment (``SPANREEL_SERVE_*``), flags beating it."""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from spanreel.errors import SettingsError
from spanreel.slips import find_slips

PREFIX: Final = "SPANREEL_SERVE_"
STORE: Final = "SPANREEL_STORE"
"""The store's URL, for all commands on a store."""
OFF: Final = "off"

MIB: Final = 1024 * 1024
_UNITS: Final = {"": 1, "k": 1024, "m": MIB, "g": 1024 * MIB, "t": 1024 * 1024 * MIB}
_DAY: Final = 86_400.0
_MOST_PROCESSES: Final = 4
_SPANS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": _DAY, "w": 7 * _DAY}


def default_store() -> str:
    """A file of this user, whatever folder the service is started in; of one without a home, in that folder."""
    home = os.environ.get("XDG_DATA_HOME", "").strip()
    try:
        home = home or str(Path("~/.local/share").expanduser())
    except RuntimeError:  # a user of a container, whom nobody knows
        home = str(Path.cwd())
    return f"sqlite:///{home}/spanreel/spanreel.db"


def _text(said: str) -> str:
    return said


def _address(said: str) -> str:
    host, separator, port = said.rpartition(":")
    if said.lower() == OFF:
        return OFF
    if not (separator and host and port.isdecimal() and int(port) < 65536):
        raise ValueError("expected HOST:PORT, as 127.0.0.1:4318")
    return said


def _size(said: str) -> int:
    text = said.strip().lower().removesuffix("b").removesuffix("i")
    number, unit = (text[:-1], text[-1]) if text[-1:].isalpha() else (text, "")
    if unit not in _UNITS or not number.replace(".", "", 1).isdecimal():
        raise ValueError("expected bytes, as 500m or 20g")
    return int(float(number) * _UNITS[unit])


def _some(said: str) -> int:
    if not (size := _size(said)):
        raise ValueError("expected bytes, as 500m or 20g, and more than none")
    return size


def _duration(said: str) -> float:
    text = said.strip().lower()
    number, unit = (text[:-1], text[-1]) if text[-1:].isalpha() else (text, "s")
    if unit not in _SPANS or not number.replace(".", "", 1).isdecimal():
        raise ValueError("expected a time, as 2 (seconds), 30m, 12h or 90d")
    return float(number) * _SPANS[unit]


def _some_time(said: str) -> float:
    if not (seconds := _duration(said)):
        raise ValueError("expected a time, as 2 (seconds), 30m, 12h or 90d, and more than none")
    return seconds


def _long_duration(said: str) -> float:
    """With its unit: who means days and gets seconds has lost what is older."""
    if said.strip()[-1:].isdecimal() and said.strip().strip("0."):
        raise ValueError("expected a time with its unit, as 12h or 90d")
    return _duration(said)


def _number(said: str) -> float:
    if not said.strip().replace(".", "", 1).isdecimal():
        raise ValueError("expected a number, as 50 or 0.5")
    return float(said)


def _count(said: str) -> int:
    if not said.strip().isdecimal() or not int(said):
        raise ValueError("expected a number from 1 on")
    return int(said)


def _one_of(*words: str) -> Callable[[str], str]:
    def read(said: str) -> str:
        if said not in words:
            raise ValueError(f"expected one of {', '.join(words)}")
        return said

    return read


def _names(said: str) -> frozenset[str]:
    return frozenset(name.strip().lower() for name in said.split(",") if name.strip())


def _setting(default: Any, read: Callable[[str], Any], about: str, *, shown: str, metavar: str = "VALUE") -> Any:
    """One setting: its default (or what makes it), how it is read, and what people are told."""
    metadata = {"read": read, "about": about, "shown": shown, "metavar": metavar}
    return field(default_factory=default if callable(default) else lambda: default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """All settings; of each, its metadata say how it is read and what people are told."""

    store: str = _setting(
        default_store,
        _text,
        "where everything is kept: sqlite:///PATH, or postgresql://USER@HOST/DATABASE",
        shown="sqlite:///~/.local/share/spanreel/spanreel.db",
        metavar="URL",
    )
    http: str = _setting(
        "127.0.0.1:4318", _address, "OTLP/HTTP, the API and the page", shown="127.0.0.1:4318", metavar="HOST:PORT"
    )
    grpc: str = _setting(
        "127.0.0.1:4317", _address, "OTLP/gRPC; off for none", shown="127.0.0.1:4317", metavar="HOST:PORT"
    )
    tokens: str = _setting("", _text, "a TOML file with tokens, by their digests", shown="none", metavar="FILE")
    hosts: frozenset[str] = _setting(
        frozenset(),
        _names,
        "names that the service is reached by without tokens",
        shown="this machine's",
        metavar="A,B",
    )
    tls_certificate: str = _setting("", _text, "TLS: the certificate chain, PEM", shown="none", metavar="FILE")
    tls_key: str = _setting("", _text, "TLS: its key, PEM", shown="none", metavar="FILE")
    tls_client_authority: str = _setting(
        "", _text, "TLS: who signs the certificates that callers must show, PEM", shown="none", metavar="FILE"
    )
    policy: str = _setting(
        "", _text, "redact what arrives by this policy, before it is kept: a name or a file", shown="none"
    )
    quiet_seconds: float = _setting(
        2.0, _duration, "a trace of which nothing came for so long becomes sessions", shown="2", metavar="TIME"
    )
    derive_patience: float = _setting(
        600.0, _some_time, "making the sessions of one conversation takes so long at most", shown="10m", metavar="TIME"
    )
    derive_bytes: int = _setting(
        512 * MIB,
        _some,
        "of a conversation of more than this its spans are kept, and its sessions stay as they are",
        shown="512m",
        metavar="SIZE",
    )
    derive_processes: int = _setting(
        lambda: min(_MOST_PROCESSES, os.cpu_count() or 1),
        _count,
        "processes that make sessions, at most; more than one only while very many traces wait",
        shown="one a core, at most 4",
        metavar="NUMBER",
    )
    keep: float = _setting(
        0.0, _long_duration, "remove sessions of which nothing came for so long: 90d", shown="never", metavar="TIME"
    )
    keep_bytes: int = _setting(
        0, _size, "remove the oldest sessions while more than this is in use: 20g", shown="no bound", metavar="SIZE"
    )
    body_bytes: int = _setting(
        20 * MIB, _some, "a request is at most this large, unpacked", shown="20m", metavar="SIZE"
    )
    queue_bytes: int = _setting(
        128 * MIB, _some, "so much waits to be written; then senders are told to wait", shown="128m", metavar="SIZE"
    )
    rate: float = _setting(
        0.0, _number, "requests a second that each token may make, on average", shown="no bound", metavar="NUMBER"
    )
    connections: int = _setting(
        1000,
        _count,
        "connections of HTTP at a time; then those that are idle are ended",
        shown="1000",
        metavar="NUMBER",
    )
    log_format: Literal["text", "json"] = _setting("text", _one_of("text", "json"), "logs", shown="text")
    log_level: str = _setting(
        "info", _one_of("debug", "info", "warning", "error"), "logs from this level on", shown="info"
    )
    stop_seconds: float = _setting(
        20.0, _duration, "when told to stop, finish what was begun within this time", shown="20", metavar="TIME"
    )

    def address(self, door: Literal["http", "grpc"]) -> tuple[str, int] | None:
        """Host and port of a door; None where it is off."""
        said: str = getattr(self, door)
        if said == OFF:
            return None
        host, _, port = said.rpartition(":")
        return host.strip("[]"), int(port)


def variable_of(setting: str) -> str:
    """The environment variable of a setting."""
    return STORE if setting == "store" else f"{PREFIX}{setting.upper()}"


def add_flags(parser: argparse.ArgumentParser, *names: str) -> None:
    """Declare the flags of these settings, or of all."""
    for one in dataclasses.fields(ServiceSettings):
        if names and one.name not in names:
            continue
        said = one.metadata
        parser.add_argument(
            f"--{one.name.replace('_', '-')}",
            dest=one.name,
            metavar=said["metavar"],
            help=f"{said['about']} (default: {said['shown']}; ${variable_of(one.name)})",
        )


def read_settings(environment: Mapping[str, str], flags: Mapping[str, Any]) -> ServiceSettings:
    """The settings, flags beating the environment.

    Raises:
        SettingsError: one cannot be read; says which, and what was expected. Or a variable is misspelt: what it was to
            bound, redact or remove would go on without it.
    """
    variables = [variable_of(one.name) for one in dataclasses.fields(ServiceSettings)]
    for slip in find_slips(environment, service=variables):
        raise SettingsError(slip)
    known = {}
    for one in dataclasses.fields(ServiceSettings):
        variable = variable_of(one.name)
        for place, said in (
            (f"--{one.name.replace('_', '-')}", flags.get(one.name)),
            (variable, environment.get(variable)),
        ):
            if not said:
                continue
            try:
                known[one.name] = one.metadata["read"](said)
            except ValueError as error:
                raise SettingsError(f"{place}={said!r}: {error}") from error
            break
    return ServiceSettings(**known)
