"""Values that may be JSON text, with what is whole of a text that was cut off."""

from __future__ import annotations

import re

from spanreel.loss_markers import find_loss
from spanreel.model import Fidelity, Json
from spanreel_collector import json_text
from spanreel_collector.dialects import values

_DEEPEST = 3
"""How often a value is taken out of the text that it is: JSON in JSON in JSON."""
_NO_WORDS = re.compile(
    r"""\s*(?:[{\[]                                   # JSON, of something else or broken off
    |<[\w.]+(?:\ object)?\ at\ 0x[0-9a-fA-F]+>\s*$   # what Python shows of an object
    |[A-Za-z_][\w.]*\(.*\)\s*$                        # and of what it was made with
    |-?\d+(?:\.\d+)?\s*$|(?:null|true|false|None)\s*$)""",
    re.DOTALL | re.VERBOSE,
)
"""What no words begin with or are."""


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


def plain_text(value: Json) -> str | None:
    """The words that a value is, as JSON or as they are; None of all other JSON, of reprs, and of what stands for none.

    Words that were cut off are words still.
    """
    found = values.decode(value)[0] if isinstance(value, str) else None
    if not isinstance(found, str) or not found.strip() or _NO_WORDS.match(found):
        return None
    if find_loss(found) not in (None, Fidelity.TRUNCATED):
        return None
    return found
