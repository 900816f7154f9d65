"""How `opentelemetry-instrument` finds us: the class that our entry point names. It decides nothing."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any


class SpanreelInstrumentor:
    """The shape of OpenTelemetry's instrumentors, which their loader knows by methods and not by a base class."""

    def instrumentation_dependencies(self) -> Collection[str]:
        """None: what is not installed is simply not wrapped."""
        return ()

    def instrument(self, **kwargs: Any) -> None:
        """Wrap everything; of the loader's arguments only ``tracer_provider`` is ours."""
        from spanreel.instrumenting import is_instrumented, start_recording

        if not is_instrumented() or kwargs.get("tracer_provider") is not None:
            start_recording(kwargs.get("tracer_provider"))

    def uninstrument(self, **_: Any) -> None:
        """Take the wraps away again."""
        from spanreel.instrumenting import uninstrument

        uninstrument()
