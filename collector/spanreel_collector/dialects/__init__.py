"""Ways of writing agent spans, each a module with ``speaks(span)`` and ``read(span)``; read only, never guessing."""

from __future__ import annotations

from typing import Protocol

from spanreel.model import Record
from spanreel_collector.dialects import genai, openinference, spanreel
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


# Who speaks first is believed first: our own spans carry the GenAI conventions' names too, and what a library says by
# itself is more exact than what a processor of OpenInference made of it.
DIALECTS: tuple[Dialect, ...] = (spanreel, genai, openinference)

# Libraries that write the GenAI conventions' spans in a way of their own, and read those names too: where one of them
# speaks, the conventions by themselves have nothing to add.
OF_THE_CONVENTIONS: tuple[Dialect, ...] = ()


def find(span: RawSpan) -> tuple[Dialect, ...]:
    """The dialects that a span is written in; ours alone where it is ours."""
    found = tuple(dialect for dialect in DIALECTS if dialect.speaks(span))
    if spanreel in found:
        return (spanreel,)
    if any(dialect in OF_THE_CONVENTIONS for dialect in found):
        return tuple(dialect for dialect in found if dialect is not genai)
    return found
