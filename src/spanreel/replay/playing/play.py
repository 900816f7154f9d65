"""One session being played: what its runs, model calls and tool calls are answered from, and how that is told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NoReturn, TypeVar

from spanreel import conventions as names
from spanreel.model import Json
from spanreel.player import LiveRun
from spanreel.replay.changing.changes import Changes
from spanreel.replay.comparing.canonical import canonical
from spanreel.replay.comparing.placeholders import Placeholders, redact_value
from spanreel.replay.comparing.value_map import ValueMap
from spanreel.replay.matching.casting import Casting, Role
from spanreel.replay.matching.events import Event, Happening, Subject
from spanreel.replay.matching.lanes import Lane, current_lane
from spanreel.replay.matching.matching import Match, Miss, MissReason
from spanreel.replay.matching.naming import name_of
from spanreel.replay.matching.recording import Recording
from spanreel.replay.matching.slots import ModelSlot, Slot
from spanreel.replay.playing.ledger import Ledger
from spanreel.replay.playing.live_models import LiveModels
from spanreel.replay.playing.rulings import missed
from spanreel.session import Run, Session

Way = TypeVar("Way")


class Play:
    """What all calls of one replay share. Not thread-safe: whoever uses it holds the ledger's lock."""

    def __init__(
        self, session: Session, run: Run | None, placeholders: Placeholders, changes: Changes, ledger: Ledger
    ) -> None:
        self.session = session
        self.imported = session.origin == "imported"
        self.placeholders = placeholders
        self.changes = changes
        self.ledger = ledger
        self.casting = Casting(Recording(session, run))
        self.models = LiveModels(session, changes)
        self.ids = ValueMap() if changes.map_ids else None
        self.known = placeholders.known if placeholders.missing else None
        """The ids of the keys whose digests can be compared; None where all can."""
        self.stale: set[str] = set()
        """The root runs in which something was written that was not as recorded."""
        self.lanes: dict[str | None, Lane] = {}

    def check(self, run: LiveRun | None) -> None:
        """Stop a call that nothing may answer."""
        self.ledger.check(self.casting.root(run))

    def miss(self, run: LiveRun | None, event: Event) -> NoReturn:
        """A call has no counterpart, which ends its root run."""
        self.ledger.miss(self.casting.root(run), event)

    def decide(self, run: LiveRun | None, role: Role, event: Event, found: Match | Miss) -> Slot:
        """Tell what was found; a miss ends the run."""
        if isinstance(found, Miss):
            self.miss(run, missed(replace(event, recorded_id=role.recorded_id), found))
        slot = found.slot
        redacted = slot.redacted and event.happening is Happening.SERVED
        self.ledger.tell(
            replace(
                event,
                recorded_id=slot.call.id,
                tier=found.tier.value,
                attempt=found.attempt,
                ambiguous=found.ambiguous,
                redacted=redacted,
                skipped=tuple(one.call.id for one in found.skipped),
                uncompared=found.uncompared,
                lenient=found.lenient,
            )
        )
        return slot

    def give_up(self, run: LiveRun | None, role: Role, slot: Slot) -> NoReturn:
        """A call that was broken off when it was recorded has been waited with in vain."""
        subject = Subject.MODEL if isinstance(slot, ModelSlot) else Subject.TOOL
        name = slot.call.model if isinstance(slot, ModelSlot) else slot.call.name
        event = Event(Happening.MISSED, subject, role.path, name, slot.number, role.recorded_id)
        self.miss(run, missed(event, Miss(MissReason.BROKEN_OFF, slot)))

    def edit(self, run: LiveRun | None, role: Role, slot: Slot) -> None:
        """What comes after an answer that was changed was never recorded."""
        self.models.live.add(self.casting.root(run))
        subject = Subject.MODEL if isinstance(slot, ModelSlot) else Subject.TOOL
        self.ledger.tell(Event(Happening.EDITED, subject, role.path, name_of(slot), recorded_id=slot.call.id))

    def is_apart(self, run_id: str | None) -> bool:
        """Whether this is another thread or task than the run's: that of its first call, where it is none of ours."""
        lane = current_lane()
        return self.lanes.setdefault(run_id, lane) != lane

    def with_known(self, ways: Sequence[Way]) -> Iterator[tuple[Way, frozenset[str] | None]]:
        """Each way of placing placeholders; in the last, what has a key that is not here is unknown."""
        for number, way in enumerate(ways, 1):
            yield way, self.known if number == len(ways) else None

    def as_recorded(self, arguments: object) -> Json:
        """Arguments of a run, as the recording would have them."""
        value = canonical(arguments)
        ways = self.placeholders.ways
        return canonical(redact_value(ways[0], names.RUN_ARGUMENTS, value)) if ways else value
