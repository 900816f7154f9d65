"""What a recorded run was asked, in the form in which a function or a child process is given it again."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from spanreel.model import Fidelity, Json
from spanreel.replay.comparing.identity import message_of
from spanreel.session import Run, Session


def recorded_input(session: Session, run: Run) -> Json:
    """The user's text where the input is one user message of text alone, else the messages."""
    numbers = run.input or _first_asked(session, run)
    messages = [message_of(session.messages[number]) for number in numbers]
    if len(messages) == 1 and messages[0]["role"] == "user":
        parts = messages[0]["parts"]
        if parts and all(part.get("type") == "text" for part in parts):
            return "".join(part.get("content") or "" for part in parts)
    return messages


def recorded_arguments(run: Run) -> Mapping[str, Json] | None:
    """The arguments that the run was called with, where they are whole, but those that were left to the function."""
    entrypoint = run.entrypoint
    if entrypoint is None or run.fidelity.get("arguments", Fidelity.WHOLE) is not Fidelity.WHOLE:
        return None
    if entrypoint.arguments is None:
        return None
    return {name: value for name, value in entrypoint.arguments.items() if name not in entrypoint.defaults}


def call_again(function: Callable[..., Any], session: Session, run: Run) -> Any:
    """Call a function with a run's recorded input: by name where that fits, else as its one argument."""
    signature = inspect.signature(function)
    arguments = recorded_arguments(run)
    if arguments:
        try:
            signature.bind(**arguments)
        except TypeError:
            pass
        else:
            return function(**arguments)
    return function(recorded_input(session, run)) if signature.parameters else function()


def _first_asked(session: Session, run: Run) -> list[int]:
    """Of a run that no agent was around: what its first model call was asked, without instructions."""
    first = next(iter(run.model_calls()), None)
    return [number for number in first.input if session.messages[number].role != "system"] if first is not None else []
