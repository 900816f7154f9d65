"""Ways of writing agent spans, each a module with ``speaks(span)`` and ``read(span)``; read only, never guessing."""

from __future__ import annotations

from typing import Protocol

from spanreel.model import Record
from spanreel_collector.dialects import genai, spanreel
from spanreel_collector.span import RawSpan


class Dialect(Protocol):
    """One way of writing agent spans."""

    NAME: str

    def speaks(self, span: RawSpan) -> bool:
        """Whether the span is written in this dialect."""
        ...

    def read(self, span: RawSpan) -> Record | None:
        """What the span says; None where it only groups others."""
        ...


# The first that speaks wins: our own spans carry the GenAI conventions' names too.
DIALECTS: tuple[Dialect, ...] = (spanreel, genai)


def find(span: RawSpan) -> Dialect | None:
    """The dialect that a span is written in."""
    return next((dialect for dialect in DIALECTS if dialect.speaks(span)), None)
