"""What differs by itself when nothing was changed: found by replaying an agent twice, proposed, never applied.

A place is proposed where two replays of the same code differ from each other. Where they agree, and the recording has
something else, the code has changed, and that is said instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from spanreel.errors import ReplayRefused
from spanreel.model import Json
from spanreel.replay.changing.changes import Changes, Volatile
from spanreel.replay.changing.tool_policies import NormalForm
from spanreel.replay.matching.events import Subject
from spanreel.replay.running.entries import play_entry
from spanreel.replay.running.options import Options
from spanreel.replay.running.preflight import check, find_run, find_session
from spanreel.session import Run, Session

MOST: Final = 50
"""Places that are looked for; an agent with more is not to be replayed by declaring them."""
PATTERNS: Final = (
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?",
    r"\d\d:\d\d(?::\d\d(?:\.\d+)?)?",
    r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}",
    r"\d+(?:\.\d+)?",
    r"\b[0-9a-zA-Z_-]{8,}\b",
)
"""What is often made anew, narrowest first: of a text only that is proposed, not the whole."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What differs by itself, as changes; ``left`` is the first difference that does not, None where there is none."""

    found: Changes
    left: str | None


def calibrate(session: Session, run: Run | None, options: Options) -> Calibration:
    """Replay an entry function twice, and again without what was found, until nothing differs by itself.

    Raises:
        ReplayRefused: the session cannot be replayed, or the changes make models live.
    """
    if options.changes.touches_models:
        raise ReplayRefused("to calibrate is to replay the unchanged agent: leave out what makes models live")
    check(session, run, options.changes, serve_redacted=options.serve_redacted)
    found, given = Changes(), options.changes
    for _ in range(MOST):
        both = [play_entry(session, run, replace(options, changes=given)) for _ in range(2)]
        one, other = (report.first_divergence for report in both)
        if one is None or other is None or not _by_itself(one, other):
            left = next((report.reasons[0] for report in both if report.reasons), None)
            return Calibration(found, left)
        found, given = _declared(found, one, other), _declared(given, one, other)
    return Calibration(found, f"more than {MOST} places differ by themselves")


def calibrate_command(source: str, selector: str | None, options: Options) -> int:
    """Print the rules to put into a changes file; the exit code is 1 where something else differs too."""
    session = find_session(source)
    calibration = calibrate(session, find_run(session, selector), options)
    said = to_toml(calibration.found) or "# nothing differs by itself"
    if calibration.left is not None:
        said += f"\n# not by itself: {' '.join(calibration.left.split())}"
    print(said)  # noqa: T201 - the command's output
    return int(calibration.left is not None)


def to_toml(changes: Changes) -> str:
    """The rules as they stand in a changes file."""
    lines: list[str] = []
    for one in changes.volatile:
        lines += ["[[volatile]]", f"agent = {json.dumps(one.agent)}", f"at = {json.dumps(list(one.at))}"]
        lines += [f"pattern = {json.dumps(one.pattern)}"] if one.pattern is not None else []
        lines.append("")
    for name, form in changes.tool_policy.normal_forms.items():
        lines += [f"[tool_policy.normal_forms.{json.dumps(name)}]", f"ignore = {json.dumps(list(form.ignore))}", ""]
    return "\n".join(lines).rstrip()


def _by_itself(one: Mapping[str, Json], other: Mapping[str, Json]) -> bool:
    """Whether two replays differ at one place of one call, each having a value of its own there."""
    place = ("subject", "path", "name", "number", "pointer")
    if one.get("subject") not in (Subject.MODEL, Subject.TOOL) or not one.get("pointer"):
        return False
    same = all(one.get(key) == other.get(key) for key in place)
    return same and "live" in one and "live" in other and "recorded" in one and one["live"] != other["live"]


def _declared(changes: Changes, one: Mapping[str, Json], other: Mapping[str, Json]) -> Changes:
    pointer: Any = one["pointer"]
    if one["subject"] == Subject.TOOL:
        policy, name = changes.tool_policy, str(one["name"])
        form = policy.normal_forms.get(name, NormalForm())
        forms = {**policy.normal_forms, name: form.model_copy(update={"ignore": (*form.ignore, pointer)})}
        return changes.model_copy(update={"tool_policy": policy.model_copy(update={"normal_forms": forms})})
    told: Any = one["path"]
    values = (one["recorded"], one["live"], other["live"])
    rule = Volatile(agent=told, at=(pointer,), pattern=_pattern_of(values))
    return changes.model_copy(update={"volatile": (*changes.volatile, rule)})


def _pattern_of(values: tuple[Json, ...]) -> str | None:
    """The narrowest pattern without whose matches the texts are equal; None where only the whole will do."""
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) == len(values):
        for pattern in PATTERNS:
            if len({re.sub(pattern, "", text) for text in texts}) == 1:
                return pattern
    return None
