"""The one place that opens spans: a run, a turn, a model call or a tool call crosses here, recorded or replayed.

Holds the process-wide boundary that decorators and wraps go through; what crosses is opened by the modules beside it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from opentelemetry.context import Context
from opentelemetry.trace import NoOpTracer, Span, Tracer

from spanreel.player import Player
from spanreel.protocols import recognise
from spanreel.scope import FailedAttempts
from spanreel.settings import CaptureLevel, Settings
from spanreel.tracing import Hold, TracerSource

UNRECORDED = NoOpTracer()
"""Spans of a replay that nobody asked to record."""

PATHS_KNOWN = 256


class Boundary:
    """What all crossings of a process have in common: the settings, and whose tracer a span gets. Thread-safe."""

    def __init__(self, settings: Settings, source: TracerSource) -> None:
        self.settings = settings
        self.source = source
        self.records = settings.capture is not CaptureLevel.OFF
        """Whether anything is recorded at all."""
        self.content = settings.content
        """Whether content is recorded."""
        self.recognise = lru_cache(PATHS_KNOWN)(lambda path: recognise("POST", path, settings.paths))
        """The protocol and operation of what is posted to a path; None where that is no model's."""
        self.loose_failures = FailedAttempts()
        """The failed attempts of model calls that stand in no run."""

    def tracer(self, context: Context, player: Player | None) -> tuple[Tracer, Hold]:
        """The tracer for a span under this context, and what takes the capture when the span ends."""
        if self.records and (player is None or getattr(player, "records", False)):
            return self.source.tracer_for(context)
        return UNRECORDED, _hold_nothing


def _hold_nothing(_span: Span, _capture: Any) -> None:
    """What an unrecorded span keeps."""


_boundary: Boundary | None = None


def install(boundary: Boundary | None) -> None:
    """Make this the process's boundary; None takes it away."""
    global _boundary  # noqa: PLW0603 - the holder that the module docstring names
    _boundary = boundary


def installed() -> Boundary | None:
    """The process's boundary."""
    return _boundary
