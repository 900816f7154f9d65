"""The clock, uuid4 and random as the user's code draws them inside a run: noted where asked, given again in a replay.

Each draw has a site (the function and the text of the line), so that one more elsewhere shifts no other. What libraries
draw is left alone: timeouts stay true. Process-wide, counted, and in place only while somebody asks for it.
"""

from __future__ import annotations

import importlib
import linecache
import os
import random
import sys
import threading
import uuid
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from opentelemetry import context as otel

from spanreel.errors import ReplayStop
from spanreel.own_code import is_own
from spanreel.playing import current_player
from spanreel.quiet import log_once
from spanreel.scope import RunScope, scope_in

CLOCK: Final = "clock"
UUID: Final = "uuid"
RANDOM: Final = "random"
BITS: Final = "bits"

_THROUGH = frozenset({"time_machine", "uuid", "random", "datetime", "_pydatetime", __name__})
"""Modules that draw on behalf of their callers."""
_lock = threading.RLock()
_count = 0
_undo: list[Callable[[], None]] = []
_inside = threading.local()


def can_stop_the_clock() -> bool:
    """Whether time-machine is there, without which only uuid4 and random are given again."""
    try:
        importlib.import_module("time_machine")
    except ImportError:
        return False
    return True


def install() -> None:
    """Put the hooks in place, or count one more who wants them."""
    global _count  # noqa: PLW0603 - counted for the process, as the module docstring says
    with _lock:
        _count += 1
        if _count == 1:
            _hook_uuid()
            _hook_random()
            _hook_clock()


def uninstall() -> None:
    """The last who wanted the hooks takes them away."""
    global _count  # noqa: PLW0603 - as above
    with _lock:
        _count -= 1
        while _count == 0 and _undo:
            _undo.pop()()


def _draw(kind: str, fresh: Callable[[], str]) -> str:
    """What a draw gives, as text: the recorded value in a replay, else a fresh one, noted with the run."""
    if getattr(_inside, "us", False):
        return fresh()
    _inside.us = True
    try:
        site = _site()
        if site is None:
            return fresh()
        run = _run()
        try:
            player = current_player()
        except ReplayStop:  # a thread that belongs to none of several replays: stopped at the next call
            return fresh()
        if player is not None:
            given = player.draw(run.live if run is not None else None, kind, site)
            return fresh() if given is None else given
        value = fresh()
        if run is not None and run.draws is not None:
            run.draws.note(kind, site, value)
        return value
    finally:
        _inside.us = False


def _site() -> str | None:
    """The place in the user's code that draws; None where a library does."""
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001 - the documented way to walk a stack cheaply
    while frame is not None and frame.f_globals.get("__name__") in _THROUGH:
        frame = frame.f_back
    if frame is None or not is_own(frame):
        return None
    code = frame.f_code
    line = linecache.getline(code.co_filename, frame.f_lineno, frame.f_globals).strip()
    return f"{frame.f_globals.get('__name__')}.{code.co_qualname}: {line or frame.f_lineno - code.co_firstlineno}"


def _run() -> RunScope | None:
    """The run whose code this is; after a handoff still the run that handed over, whose loop goes on."""
    scope = scope_in(otel.get_current())
    run = scope if isinstance(scope, RunScope) or scope is None else scope.run
    while run is not None and run.parent is not None and run.parent.delegate is run:
        run = run.parent
    return run


# -- the hooks -------------------------------------------------------------------------------------------------------


class _Os:
    """The operating system as the module ``uuid`` sees it; functions imported from there see it too."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    @staticmethod
    def urandom(size: int) -> bytes:
        """Random bytes, those of a uuid drawn."""
        return bytes.fromhex(_draw(UUID, lambda: os.urandom(size).hex()))


def _hook_uuid() -> None:
    module: Any = uuid
    before, module.os = module.os, _Os()

    def undo() -> None:
        module.os = before

    _undo.append(undo)


def _hook_random() -> None:
    """The one generator behind the functions of ``random``; whoever has another one seeds it."""
    module: Any = random
    generator: Any = module._inst  # noqa: SLF001 - the functions are its methods, and imported as such
    number, bits = generator.random, generator.getrandbits

    def draw_number() -> float:
        return float(_draw(RANDOM, lambda: repr(number())))

    def draw_bits(count: int) -> int:
        return int(_draw(f"{BITS}{count}", lambda: f"{bits(count):x}"), 16)

    generator.random, generator.getrandbits = draw_number, draw_bits
    module.random, module.getrandbits = draw_number, draw_bits

    def undo() -> None:
        del generator.random, generator.getrandbits
        module.random, module.getrandbits = number, bits

    _undo.append(undo)


def _hook_clock() -> None:
    if not can_stop_the_clock():
        log_once("the clock is neither noted nor given again: that takes spanreel[freeze]")
        return
    machine: Any = importlib.import_module("time_machine")
    real = importlib.import_module("_time_machine")

    class Clock(machine.Traveller):  # type: ignore[misc]  # known at run time only
        """The clock of whoever asks."""

        def time_ns(self) -> int:
            return int(_draw(CLOCK, lambda: str(real.original_time_ns())))

    travelling = machine.travel(0)
    travelling.start()
    clock = machine.traveller_stack[-1] = Clock(0, None, tick=True)

    def undo() -> None:
        # Somebody may have begun a journey of their own meanwhile, which ends the patching when it ends.
        if machine.traveller_stack and machine.traveller_stack[-1] is clock:
            travelling.stop()
        elif clock in machine.traveller_stack:
            machine.traveller_stack.remove(clock)

    _undo.append(undo)
