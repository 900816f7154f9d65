"""The account of a conversion, in numbers: what was read, what nothing came of, which runs could be replayed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from spanreel.model import Json
from spanreel.records import Record
from spanreel.session import Session
from spanreel_collector import dialects
from spanreel_collector.dialects import evaluations
from spanreel_collector.sessions.eligibility import NOTHING, find_obstacles
from spanreel_collector.sessions.facts import read_session
from spanreel_collector.span import Attributes, Fault, RawSpan

TRIED = 3
"""How often an attribute is left out, in the traces of one cluster, before it is believed that nothing comes of it."""
_NUMBERS = re.compile(r"(?<=\.)\d+(?=\.|$)")
_OURS = "spanreel."


@dataclass(eq=False, slots=True)
class Account:
    """Counts, which add up over clusters; attributes by the scope that wrote them."""

    spans: Counter[tuple[str, str]] = field(default_factory=Counter)
    strangers: Counter[tuple[str, str]] = field(default_factory=Counter)
    attributes: Counter[tuple[str, str]] = field(default_factory=Counter)
    used: set[tuple[str, str]] = field(default_factory=set)
    dropped: Counter[str] = field(default_factory=Counter)
    runs: Counter[tuple[str, bool]] = field(default_factory=Counter)
    obstacles: Counter[tuple[str, str, str | None]] = field(default_factory=Counter)
    _tried: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add_span(self, span: RawSpan) -> None:
        """Take in a span as it came: what it says, and what of it is not understood."""
        scope = span.origin.scope
        spoken = dialects.find(span)
        self.spans[scope, spoken[0].NAME if spoken else ""] += 1
        if span.dropped_attributes:
            self.dropped[scope] += span.dropped_attributes
        if not spoken:
            self.strangers[scope, span.name] += 1
            return
        names = {key: (scope, _NUMBERS.sub("N", key)) for key in span.attributes if not key.startswith(_OURS)}
        self.attributes.update(names.values())
        if not self.used.issuperset(names.values()):
            asked = _asked_for(span, spoken)
            self.used.update(name for key, name in names.items() if key in asked)
        for key, name in names.items():
            if name not in self.used and self._tried[name] < TRIED:
                self._tried[name] += 1
                if _matters(span, key, spoken):
                    self.used.add(name)

    def add_session(self, session: Session) -> None:
        """Take in a document: which of its runs could be replayed, and what is in the way of the others."""
        told = session.source.get("dialects")
        dialect = ", ".join(told) if isinstance(told, list) else ""
        obstacles = find_obstacles(session)
        empty = any(reason.place == NOTHING.place for reason in session.replay.reasons)
        for number in range(len(session.runs)):
            found = [*obstacles.get(number, []), *([NOTHING] if empty else [])]
            self.runs[dialect, not found] += 1
            # A run counts once for each thing in its way, however often it meets it.
            self.obstacles.update({(dialect, one.kind, one.remedy) for one in found})

    def merge(self, other: Account) -> None:
        """Add another's counts."""
        for name in ("spans", "strangers", "attributes", "dropped", "runs", "obstacles"):
            getattr(self, name).update(getattr(other, name))
        self.used |= other.used

    def unread(self) -> list[tuple[str, str, int]]:
        """Attributes that nothing came of: scope, name (N for a number in it) and how often."""
        left = ((scope, key, count) for (scope, key), count in self.attributes.items() if (scope, key) not in self.used)
        return sorted(left, key=lambda one: (one[0], -one[2], one[1]))


@dataclass(eq=False, slots=True)
class Tally:
    """What there is to say of a conversion beside its documents. Of the faults, ``most`` are kept, and all counted."""

    most: int | None = None
    account: Account | None = None
    faults: list[Fault] = field(default_factory=list)
    failed: int = 0
    skipped: Counter[str] = field(default_factory=Counter)

    def add(self, faults: Iterable[Fault], skipped: Mapping[str, int]) -> None:
        """Take in more of it."""
        for fault in faults:
            self.failed += 1
            if self.most is None or len(self.faults) < self.most:
                self.faults.append(fault)
        for kind, count in skipped.items():
            if count:
                self.skipped[kind] += count

    def merge(self, other: Tally) -> None:
        """Take in another's, whose faults may not all have been kept."""
        self.add(other.faults, other.skipped)
        self.failed += other.failed - len(other.faults)
        if self.account is not None and other.account is not None:
            self.account.merge(other.account)


class _Watched(dict[str, Json]):
    """Attributes that remember by which names they were asked for; those looked through for a prefix are not seen."""

    def __init__(self, attributes: Attributes) -> None:
        super().__init__(attributes)
        self.asked: set[str] = set()

    def __getitem__(self, key: str) -> Json:
        self.asked.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Json = None) -> Json:
        self.asked.add(key)
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        if isinstance(key, str):
            self.asked.add(key)
        return super().__contains__(key)


def _asked_for(span: RawSpan, spoken: Iterable[dialects.Dialect]) -> set[str]:
    """The attributes that are asked for by their names when the span is read."""
    watched = _Watched(span.attributes)
    seen = replace(span, attributes=watched)
    with suppress(Exception):  # the conversion reports the fault; what was asked for until then was
        read_session(seen)
        list(evaluations.read(seen))
        for dialect in spoken:
            dialect.read(seen)
        dialects.gather([seen], [])
    return watched.asked


def _matters(span: RawSpan, key: str, spoken: Iterable[dialects.Dialect]) -> bool:
    """Whether the span says something else without this attribute."""
    without = replace(span, attributes={name: value for name, value in span.attributes.items() if name != key})
    try:
        if list(evaluations.read(without)) != list(evaluations.read(span)):
            return True
        if read_session(without) != read_session(span) or dialects.find(without) != tuple(spoken):
            return True
        return _records(without, spoken) != _records(span, spoken)
    except Exception:  # noqa: BLE001 - a dialect that fails on it has looked at it; the conversion reports the fault
        return True


def _records(span: RawSpan, spoken: Iterable[dialects.Dialect]) -> list[Record | None]:
    """What the span says by itself, and what it says as far as it could be gathered from it alone."""
    return [dialect.read(one) for one in (span, *dialects.gather([span], [])[0]) for dialect in spoken]
