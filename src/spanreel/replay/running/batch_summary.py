"""What came of the sessions of a batch, each and all: outcomes, the summary as data, and lines for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from spanreel.model import Json
from spanreel.replay.judging.verdict import Verdict

SUMMARY: Final = "spanreel.replay-batch/1"
REFUSED: Final = "REFUSED"
"""What stands in the place of a verdict where a session could not be replayed at all."""
EXIT_CODES: Final = {str(verdict): verdict.exit_code for verdict in Verdict} | {REFUSED: 3}
WORST_FIRST: Final = (Verdict.FAIL, Verdict.NOT_INTERCEPTED, REFUSED, Verdict.INCONCLUSIVE, Verdict.PASS)


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """What came of one session."""

    name: str
    report: dict[str, Json]
    resumed: bool = False
    source: str = ""
    """The file in which it stands."""

    @property
    def verdict(self) -> str:
        """Its verdict."""
        return str(self.report["verdict"])


def summarise(outcomes: Sequence[BatchOutcome]) -> dict[str, Any]:
    """All outcomes as one JSON value: verdicts by session, counts by verdict, calls, and the exit code of the worst."""
    verdicts = Counter(outcome.verdict for outcome in outcomes)
    worst = next((str(verdict) for verdict in WORST_FIRST if verdicts[str(verdict)]), str(Verdict.PASS))
    calls: Counter[str] = Counter()
    for outcome in outcomes:
        for kind in ("model_calls", "tool_calls"):
            counts: Any = outcome.report.get(kind) or {}
            calls.update({f"{kind}_{name}": int(counts.get(name, 0)) for name in ("matched", "missed", "live")})
    return {
        "schema": SUMMARY,
        "verdict": worst,
        "exit_code": EXIT_CODES[worst],
        "sessions": len(outcomes),
        "verdicts": dict(sorted(verdicts.items())),
        "calls": dict(sorted(calls.items())),
        "outcomes": [
            {
                "report": f"{outcome.name}.json",
                **{name: outcome.report[name] for name in ("session", "revision", "run", "verdict")},
                "reason": next(iter(outcome.report["reasons"] or []), None),
            }
            for outcome in outcomes
        ],
    }


def line_of(outcome: BatchOutcome) -> str:
    """A session, its verdict, and why."""
    reasons: Any = outcome.report["reasons"]
    said = f": {reasons[0]}" if reasons else ""
    return f"{outcome.verdict:<15} {outcome.name}{said}{' (of before)' if outcome.resumed else ''}"


def closing_of(outcomes: Sequence[BatchOutcome]) -> str:
    """How many came to what."""
    verdicts = Counter(outcome.verdict for outcome in outcomes)
    counted = ", ".join(f"{verdicts[str(one)]} {one}" for one in reversed(WORST_FIRST) if verdicts[str(one)])
    again = sum(outcome.resumed for outcome in outcomes)
    return f"{len(outcomes)} sessions: {counted}" + (f"; {again} of before" if again else "")
