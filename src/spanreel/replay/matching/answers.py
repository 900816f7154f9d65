"""What a replay answers with: a recorded model answer as HTTP, a recorded tool result or failure. Chooses nothing."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, NoReturn

from spanreel import json_text
from spanreel.exchange import HttpAnswer, ModelProtocol
from spanreel.failures import is_exception, rebuild_error
from spanreel.model import Answer, Error, ErrorCategory, Fidelity, Json, Message, Request, Status, Usage
from spanreel.point import BrokenOff, RecordedError, ToolResult
from spanreel.protocols import as_asked
from spanreel.replay.comparing.identity import answer_of, error_of, without_provider_fields
from spanreel.replay.matching.slots import ModelSlot, Slot
from spanreel.session import Attempt, ModelCall, ToolCall
from spanreel.shapes import before_failure

RETRY_AT_ONCE: Final = {"retry-after-ms": "1"}
"""SDKs read it as how long to sleep before the next attempt."""
NO_RETRY: Final = {"x-should-retry": "false"}
"""SDKs read it as the server's word that another attempt is of no use; the recording has none."""
JSON: Final = "application/json"
PATIENCE: Final = 10.0
"""Seconds; what breaks a call off may be slower than it was."""


def model_answer(  # noqa: PLR0913 - which answer, to what, and how it comes
    slot: ModelSlot,
    attempt: int,
    protocol: ModelProtocol,
    request: Request,
    give_up: Callable[[], NoReturn],
    *,
    pace: bool = False,
) -> HttpAnswer:
    """The recorded answer to an attempt of a model call, as the live protocol writes it; streams wait where they pace.

    ``give_up()`` ends the run, where a call that was broken off is not broken off again.

    Raises:
        Exception: the failure to connect that was recorded of the attempt, as the HTTP client would raise it.
    """
    call, last = slot.call, attempt == slot.attempts - 1
    told = call if last else call.attempts[attempt]
    answer = answer_of(slot.session, call) if last else _attempt_answer(call.attempts[attempt])
    same = call.protocol in (None, protocol.NAME)
    if not same:
        answer = without_provider_fields(answer)
    broken_off = BrokenOff(patience(slot), give_up) if last and call.status is Status.CANCELLED else None
    if broken_off is not None and not (answer.messages and request.stream):
        return HttpAnswer(200, {}, (), broken_off)
    if broken_off is None and answer.status < 400 and answer.error is not None and not answer.messages:
        raise rebuild_error(RecordedError(answer.error.type, answer.error.message, ErrorCategory.MODEL))
    headers = _headers(told.headers, answer.status, last=last)
    if same and told.raw_response is not None:
        return HttpAnswer(answer.status, headers, [(0.0, told.raw_response.encode())])
    if answer.status < 400 and request.stream:
        pieces = protocol.split(as_asked(protocol, request, answer))
        pieces = pieces if pace else [(0.0, piece) for _, piece in pieces]
        failure = _break(call, answer) if last else None
        return HttpAnswer(answer.status, {**headers, "content-type": protocol.STREAM_TYPE}, pieces, broken_off, failure)
    return HttpAnswer(answer.status, {**headers, "content-type": JSON}, [(0.0, protocol.write_response(answer))])


def _break(call: ModelCall, answer: Answer) -> Exception | None:
    """What the HTTP client raised in the middle of a stream; what a provider says has failed stands in the stream."""
    if answer.error is None or call.complete or not is_exception(answer.error.type):
        return None
    return rebuild_error(RecordedError(answer.error.type, answer.error.message, ErrorCategory.MODEL))


def patience(slot: Slot) -> float:
    """Seconds to wait with a call that was broken off: twice as long as it took then, and some."""
    if slot.call.started_at is None or slot.call.ended_at is None:
        return PATIENCE
    took = datetime.fromisoformat(slot.call.ended_at) - datetime.fromisoformat(slot.call.started_at)
    return 2 * max(0.0, took.total_seconds()) + PATIENCE


def edited_answer(slot: ModelSlot, text: str, protocol: ModelProtocol, request: Request) -> HttpAnswer:
    """A text in the place of what was recorded."""
    part = {"type": "text", "content": text}
    said: Message = {"role": "assistant", "parts": [part], "finish_reason": "stop"}
    answer = Answer(model=slot.call.response_model or slot.call.model, messages=(said,), usage=Usage(0, 0))
    if request.stream:
        pieces = [(0.0, piece) for _, piece in protocol.split(as_asked(protocol, request, answer))]
        return HttpAnswer(200, {"content-type": protocol.STREAM_TYPE}, pieces)
    return HttpAnswer(200, {"content-type": JSON}, [(0.0, protocol.write_response(answer))])


def tool_answer(call: ToolCall, *, imported: bool = False) -> ToolResult | RecordedError:
    """The recorded outcome of a tool call, a copy of its own; what was blocked stays blocked.

    A framework may have made a failure into a text for the model: then that text is the outcome. A text that was only
    found in the next request is what the agent's own code made of it, and will make again; of what others recorded
    nothing tells which of both it is, and the text is the safer outcome.
    """
    if (shape := before_failure(call.result_type)) is not None:
        raises = _recorded_error(call) if call.status is Status.ERROR else None
        return ToolResult(copy.deepcopy(call.result), call.status, type=shape, raises=raises)
    found_later = call.fidelity.get("result") is Fidelity.RECONSTRUCTED and not imported
    if call.status is Status.ERROR and call.error is not None and (call.result is None or found_later):
        return _recorded_error(call)
    whole = "arguments_after" not in call.fidelity  # what is redacted or cut would be no argument's value
    after = copy.deepcopy(call.arguments_after) if whole else None
    return ToolResult(copy.deepcopy(call.result), call.status, call.target, type=call.result_type, changed=after)


def _recorded_error(call: ToolCall) -> RecordedError:
    assert call.error is not None
    state = call.fidelity.get("raised")
    parts = (
        copy.deepcopy(call.raised) if state is None else _left_of(call.raised) if state is Fidelity.REDACTED else None
    )
    return RecordedError(call.error.type or "Exception", call.error.message, call.error.category, parts)


def _left_of(raised: Mapping[str, Json] | None) -> dict[str, Json] | None:
    """The attributes of an exception that nothing was taken out of: what is redacted would be no part of it."""
    fields = raised.get("fields") if raised is not None else None
    if not isinstance(fields, dict):
        return None
    texts = {name: json_text.encode(value) for name, value in fields.items()}
    return {"fields": {name: fields[name] for name, text in texts.items() if not any(map(text.__contains__, _TAKEN))}}


_TAKEN: Final = ("[redacted", "[binary ")
"""With what begins that stands for content that was not recorded."""


def _headers(recorded: Mapping[str, str], status: int, *, last: bool) -> dict[str, str]:
    """The recorded headers, with advice on retrying that leads to the recorded number of attempts, without sleeping."""
    headers = {name.lower(): value for name, value in recorded.items() if "retry" not in name.lower()}
    if status < 400:
        return headers
    return {**headers, **(NO_RETRY if last else RETRY_AT_ONCE)}


def _attempt_answer(attempt: Attempt) -> Answer:
    # A failed attempt without a status never got an answer: it fails as it did, or, where nothing tells how, as what an
    # SDK tries again.
    error = error_of(attempt.error) or Error(ErrorCategory.MODEL, "error", "recorded without its text")
    status = attempt.status if attempt.status is not None and attempt.status >= 400 else None
    return Answer(
        status=status or (200 if is_exception(error.type) else 503),
        error=error,
        provider_fields=attempt.provider_fields,
    )
