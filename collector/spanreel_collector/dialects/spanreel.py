"""Our own spans. What their attributes mean is `spanreel.wire`'s, which also writes them."""

from __future__ import annotations

from spanreel import wire
from spanreel.conventions import SCOPE
from spanreel.model import Record
from spanreel_collector.span import RawSpan

NAME = "spanreel"


def speaks(span: RawSpan) -> bool:
    """Whether spanreel wrote the span."""
    return span.origin.scope == SCOPE


def read(span: RawSpan) -> Record | None:
    """What the span says; None where it only groups others."""
    return wire.read(span.attributes)
