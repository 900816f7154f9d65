"""Marks that writers leave inside values in place of what they took out or cut off."""

from __future__ import annotations

import re
from typing import Final

from spanreel.model import Fidelity, Json

GRAVITY: Final = (Fidelity.WHOLE, Fidelity.RECONSTRUCTED, Fidelity.REDACTED, Fidelity.TRUNCATED, Fidelity.ABSENT)
"""How fields came to us, the gravest last."""

_REDACTED = re.compile(r"\[redacted\]|<redacted>|\[[A-Z]+_\d+\]", re.IGNORECASE)
"""Mastra's, Kitaru's and Claude Code's marks, which stand alone; Mastra's indexed ones too."""
_ENDS = (
    re.compile(r"…\[(truncated|\d+ chars|\d+ items)\]$"),
    re.compile(r"\[TRUNCATED - Content exceeds \d+KB limit\]$"),
)
"""Ends of texts that were cut off."""
_CUT = (
    re.compile(r"\[…\d+ more items\]"),
    re.compile(r"\[(MaxDepth|Circular|Circular Reference|Function|Symbol\(.*\))\]"),
    re.compile(r"\[(Buffer length|ArrayBuffer byteLength)=\d+\]"),
    re.compile(r"<(nested|truncated)>"),
)
_CUT_KEYS = ("__truncated", "…", "_kitaru_truncated", "__kitaru_capture__")


def state(value: Json) -> Fidelity:
    """How whole a value is by the marks in it: whole, redacted, or (graver) truncated; however deep it is nested."""
    found = Fidelity.WHOLE
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            if _is_cut(item):
                return Fidelity.TRUNCATED
            if len(item) < 40 and _REDACTED.fullmatch(item):
                found = Fidelity.REDACTED
        elif isinstance(item, dict):
            if any(key in item for key in _CUT_KEYS):
                return Fidelity.TRUNCATED
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
    return found


def graver(*states: Fidelity) -> Fidelity:
    """The gravest of these."""
    return max(states, key=GRAVITY.index)


def _is_cut(text: str) -> bool:
    # Marks are short; what stands in the middle of a text is somebody's words.
    alone = len(text) < 80 and any(pattern.fullmatch(text) for pattern in _CUT)
    return alone or (text.endswith("]") and any(pattern.search(text[-80:]) for pattern in _ENDS))
