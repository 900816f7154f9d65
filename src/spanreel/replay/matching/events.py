"""What happens in a replay, as data that leaves the process line by line, and the sentence that says it to people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from spanreel.keyring import Keyring
from spanreel.model import Json
from spanreel.presets import compile_preset
from spanreel.redaction import redact_json, redact_text
from spanreel.replay.comparing.canonical import Difference, Nothing

SHOWN: Final = 96
"""Characters of a value that a sentence shows."""

FORBIDDEN: Final = "forbidden"
"""The reason of a miss whose tool may not run, since it is known to change something in the world."""
REWORDED: Final = "reworded"
"""The reason of a run's end that differs in words only, where a live model has answered."""


class Happening(StrEnum):
    """What happened."""

    STARTED = "started"
    """The replay is in place in its process."""
    RUN_STARTED = "run_started"
    RUN_ENDED = "run_ended"
    SERVED = "served"
    """Answered from the recording."""
    LET_THROUGH = "let_through"
    """Ran, and meets recorded answers inside: an agent as a tool, a handoff."""
    LIVE = "live"
    """Went to the model itself, or to the tool itself."""
    ANSWERED = "answered"
    """The live model has answered."""
    CHANGED = "changed"
    """What the replay was told to change."""
    EDITED = "edited"
    """Answered with what the replay was told to answer in the place of the recording."""
    UNANSWERED = "unanswered"
    """No counterpart, and the agent was told so and went on."""
    MISSED = "missed"
    """No counterpart: nothing more is answered in this run."""
    REFUSED = "refused"
    """Something went past every point."""
    RAISED = "raised"
    """An exception left the replayed code."""
    NOTED = "noted"
    ENDED = "ended"


class Subject(StrEnum):
    """What it happened to."""

    RUN = "run"
    MODEL = "model call"
    TOOL = "tool call"
    REPLAY = "replay"


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened.

    ``path`` and ``number`` say where in the live run, ``recorded_id`` what was matched (of a miss: the recorded run).
    ``difference`` is ``{"pointer", "recorded"?, "live"?}``: a side that has nothing there is absent. ``nearest`` names
    the recorded call that is most like a missed one; ``skipped`` are the ids of recorded calls that should have come
    before this one.
    """

    happening: Happening
    subject: Subject
    path: str = ""
    name: str | None = None
    number: int = 0
    recorded_id: str | None = None
    tier: str | None = None
    attempt: int = 0
    reason: str | None = None
    difference: Mapping[str, Json] | None = None
    nearest: str | None = None
    ambiguous: bool = False
    redacted: bool = False
    stale: bool = False
    """Answered from the recording after something was written that was not as recorded."""
    skipped: tuple[str, ...] = ()
    uncompared: tuple[str, ...] = ()
    lenient: tuple[str, ...] = ()
    """The conventions in which it differs from a recording of others, and may."""
    detail: str | None = None
    tokens: Mapping[str, int] | None = None
    """Of a live answer: ``input_tokens`` and ``output_tokens``."""


_EVENT: Final = TypeAdapter(Event)
_POLICY: Final = compile_preset("default", Keyring(makes=False))
"""Of what stands in reports: no key is made for them."""


def write_event(event: Event) -> bytes:
    """The event as one line of JSON."""
    # In ASCII, so that a lone surrogate in a value survives as its escape.
    return json.dumps(_EVENT.dump_python(event, exclude_defaults=True)).encode() + b"\n"


def append_event(file: Path, event: Event) -> None:
    """Append the event to a file at once, whole."""
    with file.open("ab", buffering=0) as events:
        events.write(write_event(event))


def read_event(line: bytes) -> Event:
    """Read what `write_event` wrote.

    Raises:
        ValueError: it is not an event.
    """
    return _EVENT.validate_python(json.loads(line))


def without_secrets(event: Event) -> Event:
    """The event as it may leave: reports are read by others, and stand in the logs of CI."""
    return replace(
        event,
        path=redact_text(event.path, _POLICY),
        name=None if event.name is None else redact_text(event.name, _POLICY),
        detail=None if event.detail is None else redact_text(event.detail, _POLICY),
        difference=None if event.difference is None else redact_json(dict(event.difference), _POLICY)[0],
    )


def told(difference: Difference | None) -> Mapping[str, Json] | None:
    """A difference as data."""
    if difference is None:
        return None
    sides = {"recorded": difference.recorded, "live": difference.live}
    return {"pointer": difference.pointer, **{name: side for name, side in sides.items() if side not in tuple(Nothing)}}


def describe(event: Event) -> str:
    """The event as a sentence: where, what, and what was there before."""
    if event.happening in (Happening.MISSED, Happening.UNANSWERED):
        return _describe_miss(event)
    if event.happening is Happening.LIVE and event.subject is Subject.TOOL:
        why = ", since it is not in the recording" if event.reason else ""
        return f"{where(event)} ran for real{why}"
    if event.happening is Happening.REFUSED:
        return f"{event.detail} would have gone past the replay"
    if event.happening is Happening.RUN_ENDED and event.difference is not None:
        return f"the outcome of {event.path} differs at {_place(event)}: {contrast(event.difference)}"
    if event.happening is Happening.EDITED:
        return f"{event.name} was answered with another answer than the recorded one"
    if event.happening is Happening.ANSWERED and event.detail:
        return f"the live model of {event.path} failed: {event.detail}"
    if event.happening is Happening.RAISED:
        return f"the replayed code raised {event.detail}"
    return event.detail or f"{event.subject} {event.name!r} of {event.path}"


def contrast(difference: Mapping[str, Json]) -> str:
    """Both sides of a difference, cut to where they part."""
    recorded, live = difference.get("recorded"), difference.get("live")
    if isinstance(recorded, str) and isinstance(live, str):
        start = _parting(recorded, live)
        return f"recorded {_cut(recorded, start)}, now {_cut(live, start)}"
    sides = [_cut_value(difference[name]) if name in difference else "nothing" for name in ("recorded", "live")]
    return f"recorded {sides[0]}, now {sides[1]}"


def where(event: Event) -> str:
    """Which call it was."""
    if event.subject is Subject.MODEL:
        return f"model call {event.number} of {event.path}"
    if event.subject is Subject.TOOL:
        return f"tool call {event.name!r} of {event.path}"
    return f"run of agent {event.name!r} at {event.path}"


def _describe_miss(event: Event) -> str:
    place = where(event)
    if event.reason == "diverged" and event.difference is not None:
        nearest = f" (nearest recorded: {event.nearest})" if event.nearest else ""
        return f"{place} diverged at {_place(event)}: {contrast(event.difference)}{nearest}"
    sentences = {
        "forbidden": "may not run: it changes something in the world, and no policy names it with side_effects = true",
        "not_allowed": f"may not be asked live: `models` allows others than {event.name!r}",
        "no_case": "fits none of the policy's cases",
        "exhausted": f"is made once more than it was recorded; {event.nearest} is used already",
        "too_early": f"was recorded as {event.nearest}, after calls that have not been made yet",
        "lossy": "cannot be matched or served: the recording has "
        f"{event.nearest} cut short or without content; spanreel show says where",
        "keyless": f"cannot be compared with {event.nearest}: the key of its digests is not here",
        "no_result": f"cannot be served: the recording ended before {event.nearest} had a result",
        "not_kept": f"cannot be served: the recording has not kept the result of {event.nearest}",
        "broken_off": f"cannot be served: {event.nearest} was broken off by who asked for it, and is waited for now",
        "unreadable": f"could not be read: {event.detail}",
    }
    return f"{place} {sentences.get(event.reason or '', 'is not in the recording' + _hint(event))}"


def _hint(event: Event) -> str:
    return f" ({event.detail})" if event.detail else ""


def _place(event: Event) -> str:
    pointer = event.difference["pointer"] if event.difference else ""
    return pointer or "its root"


def _parting(one: str, other: str) -> int:
    for number, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return number
    return min(len(one), len(other))


def _cut(value: str, parting: int) -> str:
    start = max(0, parting - SHOWN // 3) if len(value) > SHOWN else 0
    piece = value[start : start + SHOWN]
    before = "..." if start else ""
    after = "..." if start + SHOWN < len(value) else ""
    return f"{before}{piece!r}{after}"


def _cut_value(value: Json) -> str:
    shown = repr(value)
    return shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}..."
