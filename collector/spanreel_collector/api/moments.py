"""Moments as the API writes and reads them: RFC 3339 in UTC; within, they are nanoseconds since 1970."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

from spanreel_collector.sources.times import nanoseconds

_SECOND = 1_000_000_000
_ZONE = re.compile(r"(Z|[+-]\d\d:?\d\d)$")


def write_moment(moment: int | None) -> str | None:
    """A moment as text; one that Python's calendar does not reach is its end."""
    if moment is None:
        return None
    seconds, rest = divmod(moment, _SECOND)
    second, reached = _write_second(seconds)
    return f"{second}.{rest:09d}".rstrip("0") + "Z" if rest and reached else f"{second}Z"


@lru_cache(maxsize=4096)
def _write_second(seconds: int) -> tuple[str, bool]:
    """A second, of which a list has many twice, and whether the calendar reaches it."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()[:19], True
    except (ValueError, OverflowError, OSError):
        return ("9999-12-31T23:59:59" if seconds > 0 else "0001-01-01T00:00:00"), False


def read_moment(text: str) -> int:
    """A moment from text; without a zone it is UTC. The ``+`` of a zone may have become a space on its way in a URL.

    Raises:
        ValueError: this is no moment.
    """
    said = text.strip()
    if said[-6:-5] == " " and said[-3] == ":":
        said = f"{said[:-6]}+{said[-5:]}"
    if len(said) == len("2026-01-01"):
        said += "T00:00:00"
    return nanoseconds(said if _ZONE.search(said[10:]) else f"{said}Z")
