"""A replay with a live model, made several times: how much it differs by itself, beside the unchanged agent's spread.

A live model says something else each time, so that one replay proves little. The verdict is the worst of all.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from spanreel.model import Json
from spanreel.replay.changing.changes import Changes
from spanreel.replay.judging.report import to_json
from spanreel.replay.judging.verdict import Report, Verdict

ENOUGH: Final = 3
"""Replays with a live model below which a spread says little."""
WORST_FIRST: Final = (Verdict.NOT_INTERCEPTED, Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.PASS)


@dataclass(frozen=True, slots=True)
class Repeats:
    """Replays of the same; ``unchanged`` are those of the agent as it was, its model as live as in the others."""

    reports: tuple[Report, ...]
    unchanged: tuple[Report, ...] = ()

    @property
    def worst(self) -> Report:
        """The report that stands for all."""
        return min(self.reports, key=lambda report: WORST_FIRST.index(report.verdict))


def repeat(play: Callable[[Changes], Report], changes: Changes, times: int, *, control: bool) -> Repeats:
    """Replay so many times; with ``control`` as often with the model live and nothing else changed."""
    reports = tuple(play(changes) for _ in range(times))
    if not (control and any(report.model_calls.live for report in reports)):
        return Repeats(reports)
    as_it_was = Changes(from_turn=changes.from_turn or 0, tool_policy=changes.tool_policy, prices=changes.prices)
    return Repeats(reports, tuple(play(as_it_was) for _ in range(times)))


def advised(report: Report) -> Report:
    """A report of one replay with a live model says that one is few."""
    if not report.model_calls.live:
        return report
    said = f"a live model was asked, in one replay: --times {ENOUGH} or more shows how much it differs by itself"
    return replace(report, notes=(*report.notes, said))


def repeats_to_json(repeats: Repeats) -> dict[str, Json]:
    """The report of the worst, with what all came to."""
    return {**to_json(repeats.worst), "repeats": _told(repeats)}


def repeats_to_text(repeats: Repeats) -> list[str]:
    """Lines for people."""
    told: Any = _told(repeats)
    verdicts = ", ".join(f"{number} {verdict}" for verdict, number in told["verdicts"].items())
    lines = [f"  times     {told['times']}: {verdicts}"]
    for name, spread in told["spread"].items():
        beside = told.get("unchanged", {}).get(name)
        said = f"{spread['median']:g} ({spread['least']:g} to {spread['most']:g})"
        if beside is not None:
            said += f"; unchanged {beside['median']:g} ({beside['least']:g} to {beside['most']:g})"
            said += ", apart" if name in told["apart"] else ""
        lines.append(f"  spread    {name} {said}")
    return lines


def _told(repeats: Repeats) -> dict[str, Any]:
    spread = _spreads(repeats.reports)
    told: dict[str, Any] = {
        "times": len(repeats.reports),
        "verdicts": dict(sorted(Counter(str(report.verdict) for report in repeats.reports).items())),
        "spread": spread,
    }
    if repeats.unchanged:
        told["unchanged"] = beside = _spreads(repeats.unchanged)
        told["apart"] = [name for name in spread if name in beside and _is_apart(spread[name], beside[name])]
    return told


def _spreads(reports: Sequence[Report]) -> dict[str, dict[str, Any]]:
    measured = [_measures(report) for report in reports]
    names = [name for name in measured[0] if all(name in one for one in measured)]
    return {name: _spread([one[name] for one in measured]) for name in names}


def _measures(report: Report) -> dict[str, float]:
    measures: dict[str, float] = {
        "model_calls": report.model_calls.matched + report.model_calls.live,
        "tool_calls": report.tool_calls.matched + report.tool_calls.live,
        "missed": report.misses,
        "unused": len(report.unused),
        **{name: report.tokens["served"][name] + report.tokens["live"][name] for name in report.tokens["live"]},
    }
    return measures if report.cost is None or "live" not in report.cost else {**measures, "usd": report.cost["live"]}


def _spread(values: Sequence[float]) -> dict[str, Any]:
    return {"values": list(values), "least": min(values), "median": statistics.median(values), "most": max(values)}


def _is_apart(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    """Whether no value of one lies among the values of the other."""
    return one["least"] > other["most"] or one["most"] < other["least"]
