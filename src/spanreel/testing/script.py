"""The answers that a scripted provider gives, as plain constructors; in which protocol, they do not know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict, Unpack

from spanreel.model import Answer, Error, ErrorCategory, Json, Message, Request, Usage
from spanreel.session import ErrorInfo, ModelCall, Session
from spanreel.session import Message as StoredMessage

_TIMEOUTS = (408, 504)
_ERROR_TYPES = {429: "rate_limit_exceeded"}


@dataclass(frozen=True, slots=True)
class Scripted:
    """An answer, and how it arrives: ``delay`` before its first byte and ``hold`` between chunks, in milliseconds."""

    answer: Answer
    delay: float = 0.0
    hold: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)


Step = Scripted | Answer | Callable[[Request], "Scripted | Answer"]
"""One entry of a script; a function makes the answer from what was asked."""
Script = Sequence[Step] | Callable[[Request], Scripted | Answer]
"""Answers in the order of the requests, or a function that answers every request."""


class Options(TypedDict, total=False):
    """What every answer may be given.

    By default it ends by stop or tool_call, has as many tokens as words, and is of the model that was asked for;
    the rest is as in `Scripted`.
    """

    finish_reason: str
    usage: Usage
    model: str
    delay: float
    hold: float
    headers: Mapping[str, str]


def text(content: str, **options: Unpack[Options]) -> Scripted:
    """An answer of text.

    testing.text("hello", delay=200, hold=20)
    """
    return answer(content, **options)


def tool_call(name: str, arguments: Json, id: str | None = None, **options: Unpack[Options]) -> Scripted:
    """An answer that asks for one tool; without an id it gets ``call_1``, ``call_2``, ... when it is given.

        testing.tool_call("get_weather", {"city": "Paris"})

    Arguments that are a str are sent as they are, be they JSON or not.
    """
    part: dict[str, Json] = {"type": "tool_call", "id": id, "name": name, "arguments": arguments}
    return _scripted([part], options)


def answer(
    content: str | None = None,
    *,
    tool_calls: Sequence[Scripted] = (),
    reasoning: str | None = None,
    refusal: str | None = None,
    **options: Unpack[Options],
) -> Scripted:
    """An answer of several parts: reasoning, text, a refusal, tool calls (made by `tool_call`), each if given.

    testing.answer("Both.", tool_calls=[testing.tool_call("add", {"a": 1}), testing.tool_call("add", {"a": 2})])
    """
    parts: list[dict[str, Json]] = []
    for kind, value in (("reasoning", reasoning), ("text", content), ("refusal", refusal)):
        if value is not None:
            parts.append({"type": kind, "content": value})
    parts.extend(part for call in tool_calls for message in call.answer.messages for part in message["parts"])
    return _scripted(parts, options)


def error(status: int, message: str, type: str | None = None, *, delay: float = 0.0, **headers: str) -> Scripted:
    """A failure with an HTTP status from 400 on; ``headers`` by name, with underscores for dashes.

    testing.error(429, "slow down", retry_after_ms="10")
    """
    if status < 400:
        raise ValueError(f"status {status!r} is no failure: expected one from 400 on")
    category = ErrorCategory.TIMEOUT if status in _TIMEOUTS else ErrorCategory.MODEL
    kind = "server_error" if status >= 500 else _ERROR_TYPES.get(status, "invalid_request_error")
    failed = Answer(status=status, error=Error(category, type or kind, message))
    return Scripted(failed, delay=delay, headers={name.replace("_", "-"): value for name, value in headers.items()})


def from_session(session: Session, run: str | None = None) -> list[Scripted]:
    """The recorded answers of a session in the order of their requests; of one run only where ``run`` selects it.

    Calls that failed before any answer came are left out.
    """
    runs = session.runs if run is None else [session.run(run)]
    calls = [call for one in runs for call in one.model_calls()]
    calls.sort(key=lambda call: call.started_at or "")
    return [Scripted(_recorded(session, call)) for call in calls if call.http_status or not call.error]


def _scripted(parts: list[dict[str, Json]], options: Options) -> Scripted:
    calls = any(part["type"] == "tool_call" for part in parts)
    message: Message = {
        "role": "assistant",
        "parts": parts,
        "finish_reason": options.get("finish_reason") or ("tool_call" if calls else "stop"),
    }
    # The tokens of the request are counted when it comes.
    usage = options.get("usage") or Usage(output_tokens=sum(map(_words, parts)))
    given = Answer(model=options.get("model"), messages=(message,), usage=usage)
    return Scripted(given, options.get("delay", 0.0), options.get("hold", 0.0), options.get("headers", {}))


def _words(part: Mapping[str, Json]) -> int:
    if part["type"] == "tool_call":
        return 1 + len(str(part["arguments"]).split())
    return len(str(part["content"]).split())


def _recorded(session: Session, call: ModelCall) -> Answer:
    return Answer(
        response_id=call.response_id,
        model=call.response_model or call.model,
        messages=tuple(_message(session.messages[index]) for index in call.output),
        usage=Usage(**{name: getattr(call.usage, name) for name in Usage.__slots__}) if call.usage else None,
        status=call.http_status or 200,
        error=_failure(call.error) if call.error else None,
        streamed=call.streamed,
        complete=call.complete,
        chunks=tuple(call.chunks),
        provider_fields=call.provider_fields,
    )


def _message(stored: StoredMessage) -> Message:
    message: Message = {"role": stored.role, "parts": stored.parts}
    for name in ("name", "finish_reason", "provider_fields"):
        if getattr(stored, name):
            message[name] = getattr(stored, name)
    return message


def _failure(stored: ErrorInfo) -> Error:
    return Error(stored.category, stored.type or "error", stored.message)
