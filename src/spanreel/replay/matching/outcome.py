"""Whether a replayed run came out as the recorded one did."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from spanreel.model import Fidelity, Json, Status
from spanreel.point import RunResult
from spanreel.replay.comparing.canonical import NOTHING, Difference, canonical, first_difference
from spanreel.replay.comparing.identity import message_of, output_identity
from spanreel.replay.comparing.leniencies import outcome_leniencies
from spanreel.replay.comparing.sharing import shared_outcome
from spanreel.replay.matching.slots import LOST, is_ours
from spanreel.session import Run, Session

_ADDRESS: Final = re.compile(r"\b0x[0-9a-fA-F]{6,}")


@dataclass(frozen=True, slots=True)
class Ending:
    """How a live run ended: with its result, or with the exception that left it, whose text is ``said``.

    Both are as the recording would have them, its redaction included. ``opaque``: an object is in the result that says
    what it is and not what it holds.
    """

    result: RunResult | None
    error: BaseException | None = None
    said: Json = None
    opaque: bool = False


def as_it_is(value: Json) -> Json:
    """The value."""
    return value


def compare_outcome(
    session: Session, run: Run, ending: Ending, see: Callable[[Json], Json] = as_it_is
) -> tuple[Difference | None, tuple[str, ...]]:
    """The first difference in how a run ended and in what it gave, and the names of what could not be compared.

    Both sides are looked at as ``see`` gives them.
    """
    if run.status is Status.UNFINISHED:
        return None, ("outcome",)
    failed = run.status in (Status.ERROR, Status.CANCELLED) and run.error is not None
    if ending.error is not None or failed:
        return _compare_errors(session, run, ending, see), ()
    if ending.result is None:
        return None, ()
    if run.status is not ending.result.status:
        return Difference("/status", str(run.status), str(ending.result.status)), ()
    return _compare_values(session, run, ending, see)


def compare_form(session: Session, run: Run, ending: Ending) -> tuple[Difference | None, tuple[str, ...]]:
    """`compare_outcome` where a live model has answered: how it ended, and of what it gave the form, not the words."""
    return compare_outcome(session, run, ending, _form)


def _form(value: Json) -> Json:
    """A value with the kinds of its leaves in the place of the leaves; a list with those of its items, each once."""
    if isinstance(value, dict):
        return {key: _form(item) for key, item in value.items()}
    if isinstance(value, list):
        forms = [_form(item) for item in value]
        return [form for number, form in enumerate(forms) if form not in forms[:number]]
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__


def _compare_errors(session: Session, run: Run, ending: Ending, see: Callable[[Json], Json]) -> Difference | None:
    raised = run.error if run.status in (Status.ERROR, Status.CANCELLED) else None
    recorded = (raised.type or "error") if raised is not None else None
    live = ending.error
    said = getattr(live, "recorded_type", None) or (class_name(type(live)) if live is not None else None)
    if recorded is None or said is None or recorded.rpartition(".")[2] != said.rpartition(".")[2]:
        return Difference("/error", recorded or NOTHING, f"{said}: {live}" if live is not None else NOTHING)
    text = raised.message if raised is not None else None
    if text is None or run.fidelity.get("error") in LOST or not is_ours(session):  # others write there what they like
        return None
    before, now = (see(_ADDRESS.sub("0x", one)) for one in (text, str(ending.said)))
    return first_difference(before, now, "/error/message")


def _compare_values(
    session: Session, run: Run, ending: Ending, see: Callable[[Json], Json]
) -> tuple[Difference | None, tuple[str, ...]]:
    result = ending.result
    assert result is not None
    state = run.fidelity.get("result")
    if (run.result is not None and state not in LOST) or (state is Fidelity.WHOLE and result.value is not None):
        difference = first_difference(see(canonical(run.result)), see(canonical(result.value)), "/result")
        return difference, ("outcome",) if difference is None and ending.opaque else ()
    if run.output and run.fidelity.get("output", Fidelity.WHOLE) not in (*LOST, Fidelity.RECONSTRUCTED):
        recorded = output_identity(tuple(message_of(session.messages[number]) for number in run.output))
        live = output_identity(result.output)
        if session.origin == "imported":
            recorded, live = shared_outcome(recorded, live)
        return first_difference(see(recorded), see(live), "/output"), ()
    return None, ("outcome",) if result.value is not None or result.output else ()


def class_name(kind: type[BaseException]) -> str:
    """An exception's full class name, as recordings write it."""
    return f"{kind.__module__}.{kind.__qualname__}"


def lenient_outcome(session: Session, run: Run, result: RunResult | None) -> tuple[str, ...]:
    """The conventions in which equal outcomes differ, where others wrote the recording."""
    if session.origin != "imported" or result is None or run.result is not None or not run.output:
        return ()
    recorded = output_identity(tuple(message_of(session.messages[number]) for number in run.output))
    return outcome_leniencies(recorded, output_identity(result.output))
