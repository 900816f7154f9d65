"""What segments of some traces become, by the code that `spanreel convert` uses.

Knows no store, so that it can run in a process of its own (`workshop`).
"""

from __future__ import annotations

import struct
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import zstandard
from pydantic_core import from_json

from spanreel.session import Session
from spanreel.session_files import read_session, write_session
from spanreel_collector.conversion.account import Tally
from spanreel_collector.conversion.clusters import Cluster, Part
from spanreel_collector.conversion.convert import convert_cluster, fill
from spanreel_collector.conversion.growth import as_many, says_the_same
from spanreel_collector.conversion.packing import Packed, pack
from spanreel_collector.conversion.reading import Reading
from spanreel_collector.conversion.remembering import Remembered
from spanreel_collector.conversion.spool import Spool
from spanreel_collector.conversion.unions import Unions
from spanreel_collector.otlp.protobuf_form import read_message
from spanreel_collector.service.summaries import searchable, summarise
from spanreel_collector.sources.references import resolve
from spanreel_collector.span import Batch, Fault
from spanreel_collector.stores.names import (
    beginning_name,
    call_name,
    conversation_name,
    end_name,
    own_name,
    session_name,
    user_name,
)
from spanreel_collector.stores.records import KeptSignal, Made, Segment
from spanreel_collector.stores.words import distinct_words

MOST_FAULTS = 50
_PLACE = "otlp"
_HEADER = struct.Struct("<16scQQ")
_SIGNALS: dict[bytes, KeptSignal] = {b"t": "traces", b"l": "logs"}


@dataclass(frozen=True, slots=True)
class Job:
    """A file of segments; the last revision of each session that is known of their traces; the moment that it is.

    ``survey`` asks for no sessions, but only for what may join the traces to others.
    """

    path: str
    heads: Mapping[str, tuple[int, bytes]]
    now: int
    survey: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Traces that may share sessions, what may join each to others, and their sessions, changed and not.

    ``linked`` are traces that are one with them, here or not.
    """

    names: Mapping[bytes, frozenset[str]]
    linked: frozenset[bytes]
    made: tuple[Made, ...]
    same: frozenset[str]

    @property
    def traces(self) -> frozenset[bytes]:
        """The traces."""
        return frozenset(self.names)


@dataclass(frozen=True, slots=True)
class Told:
    """What came of a job: groups that have nothing in common, and what could not be read.

    ``seconds`` is the processor's time that it took: a machine that is busy with others makes no job dear.
    """

    groups: tuple[Group, ...]
    faults: tuple[Fault, ...] = ()
    seconds: float = field(default=0.0, compare=False)


# -- a file of segments ----------------------------------------------------------------------------------------------


def write_segment(file: IO[bytes], segment: Segment) -> None:
    """Add a segment to a file."""
    file.write(_HEADER.pack(segment.trace, segment.signal[:1].encode(), segment.size, len(segment.body)))
    file.write(segment.body)


def _read_segments(path: str, remembered: Remembered) -> Iterator[tuple[bytes, Packed]]:
    decompressor = zstandard.ZstdDecompressor()
    with Path(path).open("rb") as file:
        while header := file.read(_HEADER.size):
            trace, signal, size, length = _HEADER.unpack(header)
            body, about = file.read(length), (trace, _SIGNALS[signal], size)
            yield trace, remembered.packed(header, body, lambda: pack(_read(decompressor, body, about)))  # noqa: B023


def _read(decompressor: zstandard.ZstdDecompressor, body: bytes, about: tuple[bytes, KeptSignal, int]) -> Batch:
    trace, signal, size = about
    place = f"{_PLACE}:{trace.hex()}"
    try:
        data = decompressor.decompress(body, max_output_size=max(size, 1))
        return resolve(read_message(data, place, signal), None)
    except (ValueError, zstandard.ZstdError) as error:
        return Batch(faults=(Fault(place, f"a segment cannot be read: {error}"),))


# -- sessions --------------------------------------------------------------------------------------------------------


def retell(job: Job, remembered: Remembered | None = None) -> Told:
    """Read a job's segments and make their sessions. What is remembered of other jobs is not read again."""
    began = time.thread_time()
    book, remembered = _Book(job), remembered or Remembered(0)
    packed = (book.noted(trace, one) for trace, one in _read_segments(job.path, remembered))
    if job.survey:
        deque(packed, maxlen=0)
        return Told(tuple(book.surveyed()))
    with Spool(beside=True) as spool:

        def make(clusters: Iterable[Cluster]) -> Iterator[Part]:
            for cluster in clusters:
                part, finished = convert_cluster(cluster, Reading(spool.read, remembered), Tally(most=MOST_FAULTS))
                book.add(cluster, part, [one.session for one in finished])
                yield part

        tally = fill(spool, packed, make, Tally(most=MOST_FAULTS))
        groups = tuple(book.groups(identity for identity, _ in spool.documents()))
        return Told(groups, (*tally.faults, *book.faults), time.thread_time() - began)


@dataclass(eq=False, slots=True)
class _Book:
    """What is noted of traces while they are read: what may join them, which belong together, their sessions.

    A trace that is read may have come under another id (logs that name none), and may be one with others.
    """

    job: Job
    homes: dict[bytes, set[bytes]] = field(default_factory=dict)
    names: dict[bytes, set[str]] = field(default_factory=dict)
    linked: dict[bytes, set[bytes]] = field(default_factory=dict)
    one: Unions[bytes] = field(default_factory=Unions)
    together: Unions[bytes] = field(default_factory=Unions)
    sessions: dict[str, Session] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    _merged: dict[bytes, set[bytes]] | None = None

    def noted(self, home: bytes, packed: Packed) -> Packed:
        """The same, with what it says of its traces noted."""
        names = self.names.setdefault(home, set())
        self.together.join(home, home)
        for segment in packed.segments:
            trace = segment.trace.encode()
            self.one.join(trace, trace)
            self.homes.setdefault(trace, set()).add(home)
            names.update(map(conversation_name, segment.keys), map(user_name, segment.users))
            for other in segment.linked:
                self.one.join(trace, other.encode())
                names.add(own_name(bytes.fromhex(other)))
                self.linked.setdefault(home, set()).add(bytes.fromhex(other))
        return packed

    def add(self, cluster: Cluster, part: Part, sessions: list[Session]) -> None:
        """Note what a cluster became."""
        for group in cluster.twins:
            for trace in group:
                self.one.join(min(group).encode(), trace.encode())
            self._merged = None
        # Each name at the traces that have it, and at no others: with all names at all of them, those of a conversation
        # would grow with its square.
        self._name(((beginning_name(name), trace) for name, trace in part.heads))
        self._name(((end_name(name), trace) for name, trace in part.tails))
        self._name((session_name(one.id), run.trace_id) for one in sessions for run in one.runs)
        # Where only what was said names a call, too many are named alike.
        self._name((call_name(twin.name), twin.trace) for twin in part.twins if twin.sure)
        homes = sorted(home for trace, _ in cluster.traces for home in self.homes_of(trace))
        for home in homes:
            self.together.join(homes[0], home)
        self.sessions.update({session.id: session for session in sessions})

    def _name(self, names: Iterable[tuple[str, str]]) -> None:
        for name, trace in names:
            for home in self.homes_of(trace):
                self.names[home].add(name)

    def homes_of(self, trace: str) -> set[bytes]:
        """The ids under which a trace came, and all that is one with it."""
        if self._merged is None:
            self._merged = {}
            for name, chief in self.one.pairs():
                self._merged.setdefault(chief, set()).update(self.homes.get(name, ()))
            self._merged |= {name: self._merged[chief] for name, chief in self.one.pairs()}
        return self._merged.get(trace.encode(), set())

    def surveyed(self) -> Iterator[Group]:
        """What may join each trace to others, as far as its spans say it one by one."""
        for trace, names in self.names.items():
            yield Group({trace: frozenset(names)}, frozenset(self.linked.get(trace, ())), (), frozenset())

    def groups(self, written: Iterable[str]) -> Iterator[Group]:
        """What there is of each group, of these sessions."""
        chiefs = dict(self.together.pairs())
        made: dict[bytes, list[Made]] = {}
        same: dict[bytes, set[str]] = {}
        members: dict[bytes, list[bytes]] = {}
        for trace, chief in chiefs.items():
            members.setdefault(chief, []).append(trace)
        for session in (self.sessions[identity] for identity in written):
            traces = frozenset(home for run in session.runs for home in self.homes_of(run.trace_id))
            chief = chiefs[min(traces)]
            try:
                fresh = _settled(session, traces, self.job)
            except Exception as error:  # noqa: BLE001 - what strangers wrote may fail anywhere: a session costs only itself
                place = f"session of {session.key.kind} {session.key.value!r}"
                self.faults.append(Fault(place, f"{type(error).__name__}: {error}"))
                fresh = None
                if session.id not in self.job.heads:
                    continue
            if fresh is None:
                same.setdefault(chief, set()).add(session.id)
            else:
                made.setdefault(chief, []).append(fresh)
        for chief, traces_of in members.items():
            names = {trace: frozenset(self.names[trace]) for trace in traces_of}
            linked = frozenset(other for trace in traces_of for other in self.linked.get(trace, ()))
            yield Group(names, linked, tuple(made.get(chief, ())), frozenset(same.get(chief, ())))


def _settled(session: Session, traces: frozenset[bytes], job: Job) -> Made | None:
    """The session's next revision; None where it says what it said."""
    head = job.heads.get(session.id)
    if head is not None:
        session.revision, known = head
        document = from_json(known)
        # Most of what is made again has grown, which is seen before all of it is compared.
        if as_many(session, document) and says_the_same(session, read_session(document)):
            return None
        session.revision += 1
    # A store indexes each word once. They are found here, and not where whoever commits waits for it.
    words = " ".join(distinct_words(searchable(session)))
    return Made(summarise(session, job.now), _written(session), words, traces)


def _written(session: Session) -> bytes:
    return write_session(session).encode()
