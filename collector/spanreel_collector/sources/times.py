"""Times as documents of other ecosystems write them, in nanoseconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from spanreel.model import Json

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def nanoseconds(value: Json) -> int:
    """An ISO 8601 text with its zone, or JavaScript's ``[seconds, nanoseconds]``; 0 where there is none.

    Raises:
        ValueError: no time, or one whose zone nobody knows.
    """
    if value is None:
        return 0
    if isinstance(value, list) and len(value) == 2 and all(isinstance(part, int) for part in value):
        return int(value[0]) * 1_000_000_000 + int(value[1])
    if not isinstance(value, str):
        raise ValueError(f"no time: {value!r}")
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError(f"a time without its zone: {value!r}")
    return (moment - _EPOCH) // _MICROSECOND * 1000 + _beyond_microseconds(value)


def _beyond_microseconds(text: str) -> int:
    """The nanoseconds that a text has and Python's datetime does not keep."""
    digits = ""
    for character in text.partition(".")[2]:
        if not character.isdigit():
            break
        digits += character
    return int(digits[6:9].ljust(3, "0")) if len(digits) > 6 else 0
