"""What processes that a replayed one has started would have done: told to it through a file.

Process-wide, and in the environment that children inherit. Where `spanreel replay` runs a command, the file is that in
which the command's own events stand.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any

from spanreel.replay.matching.events import Event, Happening, Subject, append_event, read_event
from spanreel.settings import REPLAY_REPORT

_file: Path | None = None


def listen() -> None:
    """Have children tell; where somebody listens to them already, that stays."""
    global _file  # noqa: PLW0603 - process-wide, as the module docstring says
    if os.environ.get(REPLAY_REPORT):
        return
    handle, name = tempfile.mkstemp(prefix="spanreel-replay-", suffix=".jsonl")
    os.close(handle)
    _file = Path(name)
    os.environ[REPLAY_REPORT] = name


def stop_listening() -> None:
    """Nobody replays here any more."""
    global _file  # noqa: PLW0603 - process-wide, as the module docstring says
    if _file is None:
        return
    _file.unlink(missing_ok=True)
    if os.environ.get(REPLAY_REPORT) == str(_file):
        del os.environ[REPLAY_REPORT]
    _file = None


def tell(what: str, player: Any) -> None:
    """Tell the process that replays; ``player`` is the one of this code, where a fork has kept it."""
    if file := os.environ.get(REPLAY_REPORT):
        whose = str(id(player)) if player is not None else None
        event = Event(Happening.REFUSED, Subject.REPLAY, name=whose, detail=what)
        with contextlib.suppress(OSError):
            append_event(Path(file), event)


def heard(player: Any, *, alone: bool) -> list[str]:
    """What children have told of this player's code; where it is ``alone``, also what nobody's name stands at."""
    if _file is None:
        return []
    found = []
    for line in _lines(_file):
        event = read_event(line)
        if event.detail is not None and (event.name == str(id(player)) or (alone and event.name is None)):
            found.append(event.detail)
    return found


def _lines(file: Path) -> list[bytes]:
    with contextlib.suppress(OSError):
        return file.read_bytes().splitlines()
    return []
