"""Values that may be JSON text, with what is whole of a text that was cut off."""

from __future__ import annotations

from spanreel.model import Fidelity, Json
from spanreel_collector import json_text
from spanreel_collector.dialects import values

_DEEPEST = 3
"""How often a value is taken out of the text that it is: JSON in JSON in JSON."""


def decode(value: Json) -> tuple[Json, Fidelity]:
    """What a value holds, and whether it is whole; of JSON text that breaks off, what is whole of it."""
    if value is None:
        return None, Fidelity.ABSENT
    found, state = values.decode(value)
    if state is not Fidelity.TRUNCATED:
        return found, state
    try:
        found, _ = json_text.parse_prefix(value)
    except ValueError:
        return value, state
    return (found if isinstance(found, dict | list) else value), state


def decode_json(value: Json) -> tuple[Json, Fidelity]:
    """What a value holds that is JSON whatever it is, so that numbers and words of JSON are such too."""
    if isinstance(value, str):
        try:
            return json_text.parse(value), Fidelity.WHOLE
        except ValueError:
            pass
    return decode(value)


def decode_deep(value: Json) -> tuple[Json, Fidelity]:
    """The same of a value that was encoded more than once, up to three times."""
    found, state = decode(value)
    for _ in range(_DEEPEST - 1):
        if not isinstance(found, str) or found == value:
            break
        value = found
        found, state = decode(found)
    return found, state
