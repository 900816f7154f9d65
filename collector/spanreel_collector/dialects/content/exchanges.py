"""A model's request and answer out of the two values that hold them, in whatever form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from spanreel.model import Answer, Fidelity, Json, Message, Operation, Request
from spanreel_collector.dialects import values
from spanreel_collector.dialects.content import bodies
from spanreel_collector.dialects.content.decoding import decode


@dataclass(frozen=True, slots=True)
class Exchange:
    """What was asked and answered; the protocol's name where the request stands there as it was sent."""

    request: Request
    answer: Answer | None = None
    protocol: str | None = None
    fidelity: Mapping[str, Fidelity] = field(default_factory=dict)


def read(given: Json, came: Json, operation: Operation = Operation.CHAT) -> Exchange:
    """The exchange that two values tell of; None is a value that was not recorded."""
    asked, input_state = decode(given)
    answered, output_state = decode(came)
    request = bodies.read_request(asked, operation)
    answer = bodies.read_answer(answered) if answered is not None else None
    if request is not None and input_state is Fidelity.TRUNCATED:
        request = replace(request[0], messages=_without_cut(request[0].messages)), request[1]
    if answer is not None and output_state is Fidelity.TRUNCATED:
        answer = replace(answer, messages=_without_cut(answer.messages))
    if request is None:
        input_state = Fidelity.TRUNCATED if input_state is Fidelity.TRUNCATED else Fidelity.ABSENT
    if answer is None or not any(message.get("parts") for message in answer.messages):
        output_state = Fidelity.TRUNCATED if output_state is Fidelity.TRUNCATED else Fidelity.ABSENT
    fidelity = {"input": input_state, "output": output_state}
    if operation is not Operation.CHAT:
        del fidelity["output"]
    whole = request is not None and request[1] is not None and input_state is Fidelity.WHOLE
    return Exchange(
        request=request[0] if request is not None else Request(operation, None),
        answer=answer,
        protocol=request[1].NAME if whole and request is not None and request[1] is not None and answer else None,
        fidelity=values.marks(fidelity),
    )


def _without_cut(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Messages of a text that broke off, without the call that it broke off in: one whose name is lost."""
    if not messages or not messages[-1].get("parts"):
        return messages
    *before, last = messages[-1]["parts"]
    cut = last.get("type") == "tool_call" and not last.get("name")
    return (*messages[:-1], {**messages[-1], "parts": before}) if cut else messages
