"""Sessions out of segments: traces that have gone quiet are read, with those they share sessions with, and saved.

Converting them is `retelling`'s, where that happens `workshop`'s, keeping them the store's.
"""

from __future__ import annotations

import logging
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from spanreel_collector.service.noting import Noting
from spanreel_collector.service.reading_code import reading_code
from spanreel_collector.service.relations import deal, part, related
from spanreel_collector.service.resting import Resting
from spanreel_collector.service.retelling import Group, Job, Told, write_segment
from spanreel_collector.service.workshop import Closed, Died, Unmade
from spanreel_collector.span import Fault
from spanreel_collector.stores.records import Derived, Pending, TraceKey, is_loose
from spanreel_collector.stores.rows import chunks
from spanreel_collector.stores.store import Conflict, Store, StoreError

_SECOND = 1_000_000_000
_CLAIMED = 400
"""Traces that are taken at a time, by each hand."""
_WORTHWHILE = 150
"""So few traces are not dealt out."""
_HANDFUL = 64 * 1024 * 1024
"""Bytes of segments (as they came) that are worked on together; one conversation may be larger."""
_ROUNDS = 10
"""How often traces are read again, since more turned out to belong to them, or others saved in between."""

_log = logging.getLogger("spanreel.derivation")

Make = Callable[[Job], Told]
Publish = Callable[[str, str, int], None]
"""Told of a session that is new or changed: tenant, id, revision."""


@dataclass(eq=False, slots=True)
class Progress:
    """What was done so far, for metrics; ``behind`` is how many seconds the oldest quiet trace has waited."""

    traces: int = 0
    sessions: int = 0
    failed: int = 0
    seconds: float = 0.0
    behind: float = 0.0


@dataclass(eq=False, slots=True)
class Derivation:
    """A store's pending traces become sessions, in steps.

    Nobody else takes a claimed trace for ``claim_seconds``; a service that was killed leaves them for so long.
    What took the processor longer than ``dear_seconds`` rests. Of more than ``most_bytes`` of spans no session is made.
    ``make`` is called by as many threads as there are ``hands``, where very many traces wait.
    """

    store: Store
    make: Make
    publish: Publish
    quiet_seconds: float = 2.0
    reader: str = field(default_factory=reading_code)
    progress: Progress = field(default_factory=Progress)
    claim_seconds: float = 30.0
    dear_seconds: float = 3.0
    most_bytes: int = 512 * 1024 * 1024
    hands: int = 1
    _saving: threading.Lock = field(default_factory=threading.Lock)
    _resting: Resting = field(init=False)
    _noting: Noting = field(init=False)
    _unreleased: list[Pending] = field(default_factory=list)
    _read_again: set[TraceKey] | None = None

    def __post_init__(self) -> None:
        """Nothing rests and nothing is noted yet."""
        self._resting = Resting(self.dear_seconds)
        self._noting = Noting(self.store)

    def run(self, stop: threading.Event) -> None:
        """Work until told to stop; what cannot be done now is tried again."""
        pause = min(0.25, max(0.02, self.quiet_seconds / 4))
        troubled = False
        while not stop.is_set():
            try:
                done = self.step(stop)
            except Closed:
                return
            except StoreError as error:
                if not troubled:  # once, not every other second of a night
                    _log.warning("sessions are not made while the store cannot be used: %s", error)
                troubled = True
                stop.wait(2.0)
                continue
            except Exception:  # noqa: BLE001 - a fault of ours must not end what everything waits for
                _log.exception("making sessions failed; it goes on")
                stop.wait(2.0)
                continue
            if troubled:
                _log.warning("sessions are made again")
                troubled = False
            if not done:
                self.progress.behind = 0.0
                stop.wait(pause)

    def step(self, stop: threading.Event | None = None) -> int:
        """Make the sessions of traces that are quiet now; returns how many traces there were."""
        self._release(())
        now = time.time_ns()
        claimed = self.store.claim(
            now - int(self.quiet_seconds * _SECOND), now + int(self.claim_seconds * _SECOND), _CLAIMED * self.hands
        )
        if claimed:
            quiet_since = min(pending.last for pending in claimed) + int(self.quiet_seconds * _SECOND)
            self.progress.behind = max(0.0, (now - quiet_since) / _SECOND)
        done = False
        try:
            done = self._derive_claimed(claimed, stop)
        finally:
            if not done:
                with suppress(StoreError):
                    self._release(claimed)
        return len(claimed)

    def _release(self, claimed: Iterable[Pending]) -> None:
        """Give back what was claimed and not done; what cannot be given back now is at the next step."""
        self._unreleased += claimed
        if self._unreleased:
            self.store.release(self._unreleased)
            self._unreleased = []

    def _derive_claimed(self, claimed: Iterable[Pending], stop: threading.Event | None) -> bool:
        """Whether there was time for all of them."""
        for tenant, marks in _by_tenant(claimed).items():
            if stop is not None and stop.is_set():
                return False
            if loose := {trace: marks.pop(trace) for trace in list(marks) if is_loose(trace)}:
                # Log records of no trace and no known dialect: ever more of them, and no session is made of them.
                self._save(tenant, [_nothing(loose)], loose)
            if marks:
                self._deal(tenant, marks)
        return True

    def _deal(self, tenant: str, marks: Mapping[bytes, int]) -> None:
        """Make the sessions of these traces; of very many, by several hands, each with whole conversations."""
        if self.hands == 1 or len(marks) <= _WORTHWHILE:
            self.derive(tenant, marks)
            return
        with ThreadPoolExecutor(self.hands, "spanreel-derivation") as threads:
            surveys = [
                threads.submit(self._surveyed, tenant, {trace: marks[trace] for trace in some})
                for some in chunks(marks, -(-len(marks) // self.hands))
            ]
            try:
                surveyed = [one for done in surveys for one in done.result()]
            except (Unmade, _TooMuch):  # whose fault it is, is found out by halves
                self.derive(tenant, marks)
                return
            for done in [
                threads.submit(self.derive, tenant, {trace: marks[trace] for one in some for trace in one.traces}, some)
                for some in deal(surveyed, self.hands)
            ]:
                done.result()

    def rebuild(self, told: Callable[[int], None], *, everything: bool = False) -> int:
        """Make the sessions again that other code has read, or all; returns how many traces that were."""
        self._read_again = set()
        done, after = 0, ("", b"")
        while behind := self.store.read_traces(after, _CLAIMED, None if everything else self.reader):
            after = behind[-1]
            tenants: dict[str, dict[bytes, int]] = {}
            for tenant, trace in behind:
                if (tenant, trace) not in self._read_again:  # with another, of whose session it is
                    tenants.setdefault(tenant, {})[trace] = 0
            for tenant, marks in tenants.items():
                self._resting.wake()
                self.derive(tenant, marks)
            done += len(behind)
            told(done)
        self._read_again = None
        return done

    def derive(
        self, tenant: str, marks: Mapping[bytes, int], surveyed: Sequence[Group] | None = None, *, again: bool = False
    ) -> None:
        """Make the sessions of these traces. Those on which it fails are noted as refused, and left out.

        ``surveyed`` is what joins them to others, if it is known; ``again`` says that the process died at them already.
        """
        began = time.monotonic()
        try:
            self._derive(tenant, dict(marks), surveyed)
        except (Unmade, _TooMuch) as error:
            if len(marks) > 1:
                # Which of them it is, the halves tell.
                traces = list(marks)
                for half in (traces[: len(traces) // 2], traces[len(traces) // 2 :]):
                    self.derive(tenant, {trace: marks[trace] for trace in half})
            elif isinstance(error, Died) and not again:
                # It may have been killed for the memory that others take; one that kills it does so again.
                self.derive(tenant, marks, again=True)
            else:
                self._give_up(tenant, marks, str(error))
        finally:
            with self._saving:
                self.progress.seconds += time.monotonic() - began

    def _derive(self, tenant: str, marks: dict[bytes, int], surveyed: Sequence[Group] | None) -> None:
        surveyed = self._surveyed(tenant, marks) if surveyed is None else surveyed
        names = {trace: found for group in surveyed for trace, found in group.names.items()}
        wanted = self._awake(tenant, marks, self._known(tenant, surveyed), names)
        alone = len(marks) == 1
        for _ in range(_ROUNDS):
            if not wanted:
                return
            try:
                read, told = self._read(tenant, wanted, alone=alone)
            except _TooMuch:
                if not alone:
                    raise
                self._resting.too_large |= wanted
                self._awake(tenant, marks, [wanted], names)
                return
            # One hand at a time: the next one sees among the names in the store what this one has found.
            with self._saving:
                self._noting.note(tenant, told.faults)
                closed, opened = part(self.store, tenant, told.groups, wanted)
                # Of a trace that was erased meanwhile nothing is left to read, and nothing is to wait for.
                closed.append(_nothing({trace for trace in marks if trace in wanted and trace not in read}))
                if self._save(tenant, closed, {**marks, **read}):
                    for group in closed:
                        self._resting.note(group.names, told.seconds / len(wanted) * len(group.names))
                else:
                    opened += [group.traces for group in closed]
            names |= {trace: found for group in told.groups for trace, found in group.names.items()}
            wanted = self._awake(tenant, marks, opened, names)
            marks = {trace: mark for trace, mark in marks.items() if trace in wanted}
        raise Unmade(f"more traces kept joining it, or others saved it, {_ROUNDS} times in a row")

    def _surveyed(self, tenant: str, marks: Mapping[bytes, int]) -> list[Group]:
        """These traces, each with what joins it to others: found out with their sessions, those are made twice."""
        nothing = [_nothing({trace}) for trace in marks]
        # What is made again was read before, and so was a single one that has names.
        if self._read_again is not None or (len(marks) == 1 and self.store.names(tenant, frozenset(marks))):
            return nothing
        _, told = self._read(tenant, frozenset(marks), alone=len(marks) == 1, survey=True)
        read = frozenset().union(*(group.traces for group in told.groups))
        return [*told.groups, *(group for group in nothing if not group.traces & read)]

    def _known(self, tenant: str, groups: Sequence[Group]) -> Iterator[frozenset[bytes]]:
        """What is known to belong to each; together where nothing rests, which costs less."""
        for some in [[group] for group in groups] if self._resting else [groups]:
            traces = frozenset().union(*(group.traces for group in some))
            names = self.store.names(tenant, traces).union(*(found for one in some for found in one.names.values()))
            yield related(self.store, tenant, traces.union(*(group.linked for group in some)), names)

    def _awake(
        self,
        tenant: str,
        marks: Mapping[bytes, int],
        together: Iterable[frozenset[bytes]],
        names: Mapping[bytes, frozenset[str]],
    ) -> frozenset[bytes]:
        """All traces of these but of those that rest: they are looked at again when the claim on them ends.

        What belongs to a conversation that was too large is given up, under its names.
        """
        awake: set[bytes] = set()
        why = f"its conversation has more than {self.most_bytes} bytes of spans, which are kept"
        for traces in together:
            if traces & self._resting.too_large:
                for trace in sorted(traces & marks.keys()):
                    self._give_up(tenant, {trace: marks[trace]}, why, names.get(trace, frozenset()))
            elif not self._resting.rests(traces):
                awake |= traces
        return frozenset(awake)

    def _read(
        self, tenant: str, wanted: frozenset[bytes], *, alone: bool, survey: bool = False
    ) -> tuple[dict[bytes, int], Told]:
        """What these traces become, and up to which mark each was read."""
        marks: dict[bytes, int] = {}
        size = 0
        with tempfile.TemporaryDirectory(prefix="spanreel-") as folder:
            path = Path(folder) / "segments"
            with path.open("wb") as file:
                for mark, segment in self.store.segments(tenant, wanted):
                    marks[segment.trace] = max(marks.get(segment.trace, 0), mark)
                    write_segment(file, segment)
                    size += segment.size
                    if size > (self.most_bytes if alone else min(_HANDFUL, self.most_bytes)):
                        raise _TooMuch
            heads = {} if survey else self.store.heads(tenant, self.store.sessions_of(tenant, wanted))
            return marks, self.make(Job(str(path), heads, time.time_ns(), survey))

    def _save(self, tenant: str, groups: list[Group], marks: Mapping[bytes, int]) -> bool:
        """Save groups, and say so; False where others saved something of them meanwhile."""
        names = {trace: found for group in groups for trace, found in group.names.items()}
        if not names:
            return True
        made = tuple(one for group in groups for one in group.made)
        derived = Derived(
            tenant=tenant,
            marks={trace: marks.get(trace, 0) for trace in names},
            names=names,
            made=made,
            same=frozenset(one for group in groups for one in group.same),
            reader=self.reader,
        )
        try:
            self.store.save(derived)
        except Conflict:
            return False
        self.progress.traces += len(names)
        if self._read_again is not None:
            self._read_again.update((tenant, trace) for trace in names)
        self.progress.sessions += len(made)
        for one in made:
            self.publish(tenant, one.summary.id, one.summary.revision)
        return True

    def _give_up(self, tenant: str, marks: Mapping[bytes, int], why: str, named: frozenset[str] = frozenset()) -> None:
        """Note a trace that cannot be read; it is tried again when more of it comes, or by another release."""
        (trace,) = marks
        _log.warning("no session can be made of trace %s: %s", trace.hex(), why)
        with self._saving:
            self.progress.failed += 1
            self._noting.note(tenant, [Fault(f"trace {trace.hex()}", f"no session can be made of it: {why}")])
            names = {trace: self.store.names(tenant, frozenset(marks)) | named}
            known = self.store.sessions_of(tenant, frozenset(marks))
            self.store.save(Derived(tenant, dict(marks), names, (), known, self.reader))


class _TooMuch(Exception):
    """More than is worked on together, or at all."""


def _nothing(traces: Iterable[bytes]) -> Group:
    """Traces of which nothing comes."""
    return Group({trace: frozenset() for trace in traces}, frozenset(), (), frozenset())


def _by_tenant(claimed: Iterable[Pending]) -> dict[str, dict[bytes, int]]:
    tenants: dict[str, dict[bytes, int]] = {}
    for pending in claimed:
        tenants.setdefault(pending.tenant, {})[pending.trace] = pending.mark
    return tenants
