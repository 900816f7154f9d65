"""Programs that a replayed process starts, as audit events tell of them: which it is, and whether it guards itself.

Decides nothing about what is allowed; that is `guard`'s.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from spanreel.launch import BOOTSTRAP
from spanreel.settings import REPLAY_GUARD

LOOKING: Final = ("platform", "ctypes.util", "uuid", "sysconfig", "distro.distro")
"""Modules that look at the machine by way of programs, and change nothing."""

SERVERS: Final = ("mcp.client.stdio",)
"""Modules that start the servers of tools, whose calls are answered from the recording."""

_PYTHON = re.compile(r"python[\d.]*(\.exe)?")
_SHELLS = ("sh", "bash", "dash", "zsh")
_PLAIN_COMMAND = re.compile(r"[^;|&$`<>()\n]*")


def program_of(event: str, arguments: tuple[Any, ...]) -> str | None:
    """The name of the program that an audit event is about to start; None for a Python that guards itself.

    The name alone, since a command line may hold secrets.
    """
    words, environment = _READERS[event](arguments)
    if not words:
        return "a program"
    if is_guarded(words, environment):
        return None
    name = Path(words[0]).name
    if name in _SHELLS and len(words) > 2 and words[1] == "-c" and _PLAIN_COMMAND.fullmatch(words[2]):
        # A shell that runs one command is that command.
        return program_name(words[2])
    return name


def program_name(command: str) -> str:
    """The first word of a shell's command."""
    try:
        words = [word for word in shlex.split(command) if "=" not in word]
    except ValueError:
        words = []
    return Path(words[0]).name if words else _SHELLS[0]


def is_guarded(words: Sequence[str], environment: Mapping[str, str] | None) -> bool:
    """Whether it is a Python that will load us, by its environment, and find there that it must run nothing live."""
    if words[0] != sys.executable and not _PYTHON.fullmatch(Path(words[0]).name):
        return False
    for word in words[1:]:
        if not word.startswith("-") or word[1:2] in ("c", "m", "-"):
            break
        if {"I", "E", "S"} & set(word[1:]) and word[1:2] not in ("X", "W"):
            return False
    known = os.environ if environment is None else environment
    path = _text(known.get("PYTHONPATH", "")).split(os.pathsep)
    return REPLAY_GUARD in known and str(BOOTSTRAP) in path


def _words(given: Any) -> list[str]:
    if isinstance(given, str | bytes | os.PathLike):
        return [_text(given)]
    return [_text(word) for word in given or ()]


def _text(given: Any) -> str:
    return os.fsdecode(given) if isinstance(given, str | bytes | os.PathLike) else str(given)


def _environment(given: Any) -> dict[str, str] | None:
    return None if given is None else {_text(name): _text(value) for name, value in dict(given).items()}


def _popen(arguments: tuple[Any, ...]) -> tuple[list[str], Mapping[str, str] | None]:
    executable, words, _, environment = arguments
    found = _words(words)
    return [_text(executable), *found[1:]] if executable else found, _environment(environment)


def _exec(arguments: tuple[Any, ...]) -> tuple[list[str], Mapping[str, str] | None]:
    path, words, environment = arguments
    return [_text(path), *_words(words)[1:]], _environment(environment)


_READERS: Final[dict[str, Callable[[tuple[Any, ...]], tuple[list[str], Mapping[str, str] | None]]]] = {
    "subprocess.Popen": _popen,
    "os.exec": _exec,
    "os.posix_spawn": _exec,
    "os.system": lambda arguments: ([_SHELLS[0], "-c", _text(arguments[0])], None),
}

EVENTS: Final = frozenset(_READERS)
"""The audit events that `program_of` reads."""
