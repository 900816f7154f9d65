"""What the command line says of a replay beside the session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from spanreel.replay.changing.changes import Changes

GiveBack = Callable[[str, dict[str, Any]], str | None]
"""Hands the report of a session's file to where that came from, and says what went wrong with it."""


@dataclass(frozen=True, slots=True)
class Options:
    """What ``spanreel replay`` was told: where the JSON report goes, what to call, which addresses may be reached.

    ``serve_redacted``: answers that are redacted may be given. ``changes``: what becomes different. ``times``: how
    often it is replayed; with ``control`` as often with the model live and nothing else changed. ``junit``: where the
    verdicts go as JUnit XML. ``timeout``: the seconds that a command may take.
    """

    report: str | None = None
    entry: str | None = None
    allow: tuple[str, ...] = ()
    serve_redacted: bool = False
    changes: Changes = field(default_factory=Changes)
    times: int = 1
    control: bool = False
    junit: str | None = None
    timeout: float | None = None
