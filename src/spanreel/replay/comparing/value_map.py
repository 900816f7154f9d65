"""Ids that are made anew in each run: one live id stands for one recorded id, from where they first meet.

Only where it is asked for, and only what looks made: uuids, and long texts of letters and digits. An id that met
another one before differs. Not thread-safe: the player holds the lock.
"""

from __future__ import annotations

import re
from typing import Any, Final

from spanreel.model import Json

MADE: Final = re.compile(
    r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"
    r"|\b(?=[0-9A-Za-z_-]*\d)(?=[0-9A-Za-z_-]*[A-Za-z])[0-9A-Za-z_-]{16,}\b"
)
"""Uuids, and words of 16 and more letters and digits, some of each; shorter ones mean something too often."""


class ValueMap:
    """Live ids by recorded ones, and the other way round."""

    def __init__(self) -> None:
        self.recorded: dict[str, str] = {}
        """The recorded id of each live one."""
        self._live: dict[str, str] = {}

    def translated(self, live: Json) -> Json:
        """A live value with the recorded ids in the place of those that are known."""
        return _mapped(live, self.recorded) if self.recorded else live

    def pairs(self, recorded: Json, live: Json) -> dict[str, str] | None:
        """The new pairs (live to recorded) by which two values are equal; None where they differ in anything else."""
        found: dict[str, str] = {}
        return found if self._meet(recorded, live, found) else None

    def learn(self, pairs: dict[str, str]) -> None:
        """From now on these live ids are those recorded ones."""
        self.recorded.update(pairs)
        self._live.update({recorded: live for live, recorded in pairs.items()})

    def _meet(self, recorded: Json, live: Json, found: dict[str, str]) -> bool:
        if isinstance(recorded, dict) and isinstance(live, dict):
            same = recorded.keys() == live.keys()
            return same and all(self._meet(recorded[key], live[key], found) for key in recorded)
        if isinstance(recorded, list) and isinstance(live, list):
            pairs = zip(recorded, live, strict=False)
            return len(recorded) == len(live) and all(self._meet(one, other, found) for one, other in pairs)
        if isinstance(recorded, str) and isinstance(live, str):
            return recorded == live or self._texts_meet(recorded, live, found)
        return type(recorded) is type(live) and recorded == live

    def _texts_meet(self, recorded: str, live: str, found: dict[str, str]) -> bool:
        if MADE.sub("", recorded) != MADE.sub("", live):
            return False
        ours, theirs = MADE.findall(live), MADE.findall(recorded)
        return len(ours) == len(theirs) and all(
            one == other or self._is_pair(one, other, found) for one, other in zip(ours, theirs, strict=True)
        )

    def _is_pair(self, live: str, recorded: str, found: dict[str, str]) -> bool:
        known = self.recorded.get(live, found.get(live))
        taken = self._live.get(recorded, next((one for one, other in found.items() if other == recorded), None))
        if known is not None or taken is not None:
            return known == recorded and taken == live
        if len(live) != len(recorded):
            return False
        found[live] = recorded
        return True


def _mapped(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _mapped(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [_mapped(item, names) for item in value]
    return MADE.sub(lambda found: names.get(found[0], found[0]), value) if isinstance(value, str) else value
