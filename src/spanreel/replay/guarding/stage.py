"""What a process is made ready with while any replay is active: instrumentation, placeholder keys, exporters off.

Process-wide and counted: set up by the first replay that enters, put back by the last that leaves.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Final

from spanreel import draws, playing
from spanreel.errors import NotIntercepted
from spanreel.frameworks import FRAMEWORKS
from spanreel.instrumenting import instrument, is_instrumented, uninstrument
from spanreel.launch import recorded_environment
from spanreel.player import Player
from spanreel.replay.guarding import children, gate, guard
from spanreel.settings import REPLAY_GUARD
from spanreel.wrapping import not_intercepted

PLACEHOLDER: Final = "spanreel-replay-placeholder"
KEYS: Final = (
    "OPENAI_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GOOGLE_API_KEY",
    "MISTRAL_API_KEY",
    "GROQ_API_KEY",
    "CO_API_KEY",
)
"""SDK constructors ask for a key although none is needed to be answered from a recording."""

_lock = threading.Lock()
_count = 0
_before: dict[str, str | None] = {}
_ours = False


def enter(player: Player, allow: Sequence[str] = ()) -> None:
    """Make the process ready and the player active.

    Raises:
        NotIntercepted: an HTTP client is loaded whose requests would go past the replay.
    """
    changes = getattr(player, "changes", None)
    _set_up(live=changes is not None and changes.touches_models)
    missed = not_intercepted()
    if missed:
        _take_down()
        raise NotIntercepted(
            f"{', '.join(missed)}: loaded, and not wrapped by spanreel, so that its requests would go live. "
            "Was it replaced by another library, or left out by instrument(only=...)?"
        )
    guard.watch(player, allow)
    if getattr(player, "freezes", False):
        draws.install()
    playing.enter(player)


def leave(player: Player) -> None:
    """The player is no longer active; put the process back where it was the last."""
    playing.leave(player)
    if getattr(player, "freezes", False):
        draws.uninstall()
    gate.release(player)
    _take_down()


def _set_up(*, live: bool) -> None:
    global _count, _ours  # noqa: PLW0603 - counted for the process, as the module docstring says
    with _lock:
        _count += 1
        if _count > 1:
            return
        _ours = not is_instrumented()
        if _ours:
            instrument()
        # Where the model will be asked live, a missing key is the program's to complain of.
        wanted = {} if live else {key: PLACEHOLDER for key in KEYS if not os.environ.get(key)}
        if os.environ.get("GEMINI_API_KEY"):
            wanted.pop("GOOGLE_API_KEY", None)
        for framework in FRAMEWORKS:
            wanted.update(framework.replay_environment)
        # A child process must not run tools live; one that replaces this process keeps its id, and may replay.
        wanted[REPLAY_GUARD] = f"deny:{os.getpid()}"
        wanted["PYTHONPATH"] = recorded_environment(os.environ)["PYTHONPATH"]
        for name, value in wanted.items():
            _before[name] = os.environ.get(name)
            os.environ[name] = value
        children.listen()


def _take_down() -> None:
    global _count  # noqa: PLW0603 - as above
    with _lock:
        _count -= 1
        if _count:
            return
        children.stop_listening()
        for name, value in _before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        _before.clear()
        if _ours:
            uninstrument()
