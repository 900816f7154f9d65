"""A model's request and answer out of the two values that hold them, in whatever form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spanreel.model import Answer, Fidelity, Json, Operation, Request
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
