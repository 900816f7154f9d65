"""What went into a function that is an agent's run, and what came out of it, as decorators and callbacks tell it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spanreel.model import Agent, Error, Fidelity, Json, Message
from spanreel.records import RunRecord
from spanreel_collector.dialects import values
from spanreel_collector.dialects.content import blocks, messages
from spanreel_collector.dialects.content.decoding import decode


@dataclass(frozen=True, slots=True)
class Ends:
    """A run's input and output as messages, where they are such; else its arguments and its result."""

    input: tuple[Message, ...] = ()
    output: tuple[Message, ...] = ()
    arguments: Mapping[str, Json] | None = None
    result: Json = None
    fidelity: Mapping[str, Fidelity] = field(default_factory=dict)


def read(given: Json, came: Json) -> Ends:
    """Both ends of a run from the values that say them; None is a value that was not recorded."""
    asked, arguments, input_state = _read_input(given)
    decoded, output_state = decode(came)
    decoded = _callback(decoded, "outputs")
    answered = _answered(decoded)
    asked = messages.with_system(asked, messages.read_messages(decoded))
    states = {"input": _state(asked, input_state), "output": _state(answered, output_state)}
    return Ends(
        input=asked,
        output=answered,
        arguments=arguments,
        result=decoded if not answered else None,
        fidelity=values.marks(states),
    )


def as_run(told: Ends, agent: Agent, error: Error | None, *, outermost_only: bool) -> RunRecord:
    """A run of which its ends are all that is known, and how it failed."""
    return RunRecord(
        agent=agent,
        input=told.input,
        output=told.output,
        arguments=told.arguments,
        result=told.result,
        status=values.status_of(error),
        error=error,
        outermost_only=outermost_only,
        fidelity=told.fidelity,
    )


def _read_input(given: Json) -> tuple[tuple[Message, ...], Mapping[str, Json] | None, Fidelity]:
    decoded, state = decode(given)
    decoded = _callback(decoded, "inputs")
    arguments = decoded if isinstance(decoded, dict) else None
    if isinstance(decoded, dict) and set(decoded) == {"args", "kwargs"}:
        positional, named = decoded["args"], decoded["kwargs"]
        if not positional:
            decoded = arguments = named
        elif not named and isinstance(positional, list) and len(positional) == 1:
            decoded = positional[0]
    if isinstance(decoded, str) and decoded and state is Fidelity.WHOLE:
        return ({"role": "user", "parts": blocks.parts_of(decoded)},), arguments, state
    asked = messages.asked(decoded)
    return asked, arguments if isinstance(arguments, dict) and not asked else None, state


def _answered(decoded: Json) -> tuple[Message, ...]:
    if isinstance(decoded, str):
        return ({"role": "assistant", "parts": blocks.parts_of(decoded)},) if decoded else ()
    return messages.answered(decoded)


def _callback(decoded: Json, member: str) -> Json:
    """What stands in a LangChain callback's arguments, which OpenLLMetry writes down as they are."""
    if isinstance(decoded, dict) and member in decoded and set(decoded) <= {member, "tags", "metadata", "kwargs"}:
        return decoded[member]
    return decoded


def _state(found: tuple[Message, ...], state: Fidelity) -> Fidelity:
    return state if found or state is Fidelity.TRUNCATED else Fidelity.ABSENT
