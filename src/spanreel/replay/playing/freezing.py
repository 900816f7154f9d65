"""What the agent's own code draws from the clock, uuid4 and random in a replay: as recorded, else always the same.

Not thread-safe: the player holds the lock.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections import Counter

from spanreel.draws import BITS, CLOCK, RANDOM, UUID
from spanreel.session import Run, Session


class Frozen:
    """The draws of a session's runs, to be given again: by kind, site and run, each in its order.

    What was not recorded is the time at which its run started, or a value that only the session and the place decide.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._drawn: Counter[tuple[str, str, str]] = Counter()
        self.unknown: dict[str, None] = {}
        """The sites of draws that the recording has, but for these."""

    def draw(self, run: Run | None, kind: str, site: str) -> str:
        """The next value drawn there."""
        name = run.id if run is not None else ""
        number = self._drawn[name, kind, site]
        self._drawn[name, kind, site] += 1
        for draws in (run.draws or ()) if run is not None else ():
            if (draws.kind, draws.site) == (kind, site) and number < len(draws.values):
                value = draws.values[number]
                if _is_one(kind, value):
                    return value
        if any(one.draws for one in self._session.runs):
            self.unknown[site] = None
        return self._clock(run) if kind == CLOCK else self._derived(kind, f"{name} {kind} {site} {number}")

    def _clock(self, run: Run | None) -> str:
        """When the run started when it was recorded; the session, where it is in none."""
        started = run.started_at if run is not None and run.started_at is not None else self._session.started_at
        if started is None:
            return "0"
        seconds, _, fraction = started.removesuffix("Z").partition(".")
        whole = dt.datetime.fromisoformat(seconds).replace(tzinfo=dt.UTC)
        return str(int(whole.timestamp()) * 10**9 + int(fraction.ljust(9, "0")[:9] or 0))

    def _derived(self, kind: str, place: str) -> str:
        digest = hashlib.sha512(f"{self._session.id} {place}".encode()).digest()
        if kind == UUID:
            return digest[:16].hex()
        if kind == RANDOM:
            return repr(int.from_bytes(digest[:8]) / 2**64)
        bits = int(kind.removeprefix(BITS))
        while len(digest) * 8 < bits:
            digest += hashlib.sha512(digest).digest()
        return f"{int.from_bytes(digest) % (1 << bits):x}"


def _is_one(kind: str, value: str) -> bool:
    """Whether a recorded value can be drawn: redaction may have made something else of it."""
    try:
        if kind == UUID:
            return len(bytes.fromhex(value)) == 16
        if kind == RANDOM:
            return 0 <= float(value) < 1
        if kind == CLOCK:
            return int(value) >= 0
        return int(value, 16) < 1 << int(kind.removeprefix(BITS))
    except ValueError:
        return False
