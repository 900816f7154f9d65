"""What differs between two recorded sessions, call by call, in the form and with the words of a replay's report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, zip_longest

from spanreel.model import Json
from spanreel.replay.comparing.canonical import Difference, canonical, canonical_arguments, first_difference
from spanreel.replay.comparing.identity import identity, message_of, output_identity, request_of
from spanreel.replay.comparing.sharing import shared_fields, shared_outcome
from spanreel.replay.matching.events import Subject, contrast, told
from spanreel.session import ModelCall, Run, Session, ToolCall

MOST = 500
"""Differences that are told."""


@dataclass(frozen=True, slots=True)
class Differing:
    """One thing that differs. ``places`` are the calls (or runs) in the two documents, as JSON pointers."""

    subject: Subject
    path: str
    number: int
    name: str | None
    reason: str
    difference: Mapping[str, Json] | None
    places: tuple[str | None, str | None]

    @property
    def text(self) -> str:
        """It, as a sentence."""
        what = f"{self.subject} {self.number} of {self.path}" if self.number else f"{self.subject} at {self.path}"
        if self.name:
            what = f"{what} ({self.name!r})"
        if self.difference is None:
            there = "the first" if self.places[1] is None else "the second"
            return f"{what} is in {there} session only"
        place = self.difference["pointer"] or "its root"
        return f"{what}: {self.reason} differs at {place}: {contrast(self.difference)}"


@dataclass(frozen=True, slots=True)
class RunPair:
    """Two runs that correspond; None where there is none."""

    path: str
    runs: tuple[Run | None, Run | None]
    differs: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """The runs in pairs, and what differs; ``cut``: there is more."""

    runs: tuple[RunPair, ...]
    differences: tuple[Differing, ...]
    cut: bool


def compare(one: Session, other: Session) -> Comparison:
    """What differs, the first being the baseline: root runs correspond by their order, those inside by their paths."""
    sides = _Sides(one, other)
    pairs: list[RunPair] = []
    differences: list[Differing] = []
    left, right = _by_place(one), _by_place(other)
    for key in [*left, *(key for key in right if key not in left)]:
        pair = (left.get(key), right.get(key))
        found = list(islice(sides.runs(*pair), MOST + 1 - len(differences)))
        differences += found
        pairs.append(RunPair(key[1], (pair[0] and pair[0][1], pair[1] and pair[1][1]), bool(found)))
    return Comparison(tuple(pairs), tuple(differences[:MOST]), len(differences) > MOST)


_Placed = tuple[str, Run]
_Key = tuple[int, str, int]


def _by_place(session: Session) -> dict[_Key, _Placed]:
    """Runs, with their pointers, by the number of their root run, their path, and their number among its like."""
    roots: dict[str, int] = {}
    found: dict[_Key, _Placed] = {}
    for number, run in enumerate(session.runs):
        inside = roots.get(run.parent.run) if run.parent is not None else None
        roots[run.id] = root = inside if inside is not None else len(set(roots.values()))
        like = 0
        while (root, run.path, like) in found:
            like += 1
        found[root, run.path, like] = f"/runs/{number}", run
    return found


@dataclass(frozen=True, slots=True)
class _Sides:
    one: Session
    other: Session

    def runs(self, left: _Placed | None, right: _Placed | None) -> Iterator[Differing]:
        """What differs between two runs."""
        if left is None or right is None:
            place, run = left or right or ("", Run(id="", trace_id=""))
            places = (place if left else None, place if right else None)
            yield Differing(Subject.RUN, run.path, 0, run.agent.name, "missing", None, places)
            return
        yield from self._models(left, right)
        yield from self._tools(left, right)
        difference, reason = self._outcome(left[1], right[1])
        if difference is not None:
            places = (left[0], right[0])
            yield Differing(Subject.RUN, left[1].path, 0, left[1].agent.name, reason, told(difference), places)

    def _models(self, left: _Placed, right: _Placed) -> Iterator[Differing]:
        pairs = zip_longest(_model_calls(left), _model_calls(right))
        for number, (mine, theirs) in enumerate(pairs, 1):
            places = (mine and mine[0], theirs and theirs[0])
            call = (mine or theirs or ("", ModelCall(id="")))[1]
            if mine is None or theirs is None:
                yield Differing(Subject.MODEL, left[1].path, number, call.model, "missing", None, places)
                continue
            for reason, difference in (
                ("request", self._request(mine[1], theirs[1])),
                ("answer", self._answer(mine[1], theirs[1])),
            ):
                if difference is not None:
                    yield Differing(Subject.MODEL, left[1].path, number, call.model, reason, told(difference), places)

    def _request(self, mine: ModelCall, theirs: ModelCall) -> Difference | None:
        try:
            asked = (identity(request_of(self.one, mine)), identity(request_of(self.other, theirs)))
        except ValueError:  # an operation that this release does not know
            return first_difference(mine.operation, theirs.operation, "/operation")
        if "imported" in (self.one.origin, self.other.origin):
            asked = shared_fields(*asked, [])
        return first_difference(*asked)

    def _answer(self, mine: ModelCall, theirs: ModelCall) -> Difference | None:
        if mine.status is not theirs.status:
            return Difference("/status", str(mine.status), str(theirs.status))
        return first_difference(_said(self.one, mine.output), _said(self.other, theirs.output), "/output")

    def _tools(self, left: _Placed, right: _Placed) -> Iterator[Differing]:
        pairs = zip_longest(_tool_calls(left), _tool_calls(right))
        for number, (mine, theirs) in enumerate(pairs, 1):
            places = (mine and mine[0], theirs and theirs[0])
            call = (mine or theirs or ("", ToolCall(id="", name="")))[1]
            about = (Subject.TOOL, left[1].path, number, call.name)
            if mine is None or theirs is None:
                yield Differing(*about, "missing", None, places)
                continue
            for reason, difference in _compare_tools(mine[1], theirs[1]):
                yield Differing(*about, reason, told(difference), places)

    def _outcome(self, mine: Run, theirs: Run) -> tuple[Difference | None, str]:
        if mine.status is not theirs.status:
            return Difference("/status", str(mine.status), str(theirs.status)), "outcome"
        if mine.result is not None and theirs.result is not None:
            return first_difference(canonical(mine.result), canonical(theirs.result), "/result"), "outcome"
        said = _said(self.one, mine.output), _said(self.other, theirs.output)
        if "imported" in (self.one.origin, self.other.origin):
            said = shared_outcome(*said)
        return first_difference(*said, "/output"), "outcome"


def _said(session: Session, indexes: list[int]) -> list[Json]:
    said = output_identity(tuple(message_of(session.messages[index]) for index in indexes))
    return said if isinstance(said, list) else [said]


def _compare_tools(mine: ToolCall, theirs: ToolCall) -> Iterator[tuple[str, Difference]]:
    found = (
        ("name", first_difference(mine.name, theirs.name, "/name")),
        ("arguments", first_difference(_arguments(mine), _arguments(theirs), "/arguments")),
        ("status", first_difference(str(mine.status), str(theirs.status), "/status")),
        ("result", first_difference(canonical(mine.result), canonical(theirs.result), "/result")),
    )
    yield from ((reason, difference) for reason, difference in found if difference is not None)


def _arguments(call: ToolCall) -> Json:
    return canonical_arguments(call.arguments if call.arguments is not None else call.requested)


def _model_calls(placed: _Placed) -> Iterator[tuple[str, ModelCall]]:
    place, run = placed
    for number, turn in enumerate(run.turns):
        if turn.model_call is not None:
            yield f"{place}/turns/{number}/model_call", turn.model_call
    for number, call in enumerate(run.side_calls):
        yield f"{place}/side_calls/{number}", call


def _tool_calls(placed: _Placed) -> Iterator[tuple[str, ToolCall]]:
    place, run = placed
    for number, turn in enumerate(run.turns):
        for index, call in enumerate(turn.tool_calls):
            yield f"{place}/turns/{number}/tool_calls/{index}", call
    for number, call in enumerate(run.loose_tool_calls):
        yield f"{place}/loose_tool_calls/{number}", call
