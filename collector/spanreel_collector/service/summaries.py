"""What lists and searches need of a session, drawn from its document once, when it is made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spanreel.model import ErrorCategory, Json, Status
from spanreel.session import ErrorInfo, Message, ModelCall, Run, Session, ToolCall
from spanreel_collector.sources.times import nanoseconds
from spanreel_collector.stores.records import Summary

MOST_TEXT = 4_000_000
"""Characters of a session that are searched."""
_OPENING = 200
_BINARY = ("blob", "file")
_SILENT = ("type", "id", "mime_type", "signature")
"""Fields of parts that nobody looks for."""


def summarise(session: Session, at: int) -> Summary:
    """The session as lists show it, made at this moment."""
    tools = [tool for run in session.runs for tool in run.tool_calls()]
    models = [call for run in session.runs for call in run.model_calls()]
    return Summary(
        id=session.id,
        revision=session.revision,
        at=at,
        kind=session.key.kind,
        key=session.key.value,
        origin=session.origin,
        status=str(session.status),
        name=session.name,
        user=session.user_id,
        users=_each_once((session.user_id, *(run.user_id for run in session.runs))),
        started=_moment(session.started_at),
        ended=_moment(session.ended_at),
        agents=_each_once(run.agent.name for run in session.runs),
        versions=_each_once(run.agent.version for run in session.runs),
        models=_each_once(call.model or call.response_model for call in models),
        tools=_each_once(tool.name for tool in tools),
        tags=_each_once(session.tags),
        runs=len(session.runs),
        model_calls=len(models),
        tool_calls=len(tools),
        input_tokens=session.usage.input_tokens,
        output_tokens=session.usage.output_tokens,
        cost=session.cost.usd if session.cost else None,
        eligible=session.replay.eligible,
        baseline=session.baseline,
        opening=_opening(session),
        failure=_failure(session),
    )


def searchable(session: Session) -> str:
    """The words that a session is found by: its names, what was said, and what tools were asked and answered."""
    pieces: list[str] = []
    size = 0
    for piece in _pieces(session):
        pieces.append(piece[: MOST_TEXT - size])
        size += len(piece) + 1
        if size >= MOST_TEXT:
            break
    return "\n".join(pieces)


def _moment(text: str | None) -> int | None:
    return nanoseconds(text) if text else None


def _each_once(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value))


def _opening(session: Session) -> str:
    """The first words of the last thing that the first run was told by its user."""
    said = [session.messages[index] for run in session.roots()[:1] for index in _asked(run)]
    spoken = [message for message in said if message.role == "user"] or said
    return _in_a_line(" ".join(text for message in spoken[-1:] for text in _texts(message)))


def _in_a_line(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _OPENING else f"{words[: _OPENING - 1]}…"


def _asked(run: Run) -> list[int]:
    if run.input:
        return run.input
    return next((call.input for call in run.model_calls()), [])


def _texts(message: Message) -> Iterator[str]:
    for part in message.parts:
        content = part.get("content")
        if part.get("type") == "text" and isinstance(content, str):
            yield content


def _failure(session: Session) -> str | None:
    """Why the first root run that did not end well did not: as it says itself, else as the last call that failed."""
    for run in session.roots():
        if run.status == Status.OK:
            continue
        error = run.error or (_last_error(run) if run.status == Status.ERROR else None)
        if error is not None:
            said = (None if error.category == ErrorCategory.OTHER else error.category, error.type, error.message)
            return _in_a_line(": ".join(filter(None, said))) or None
    return None


def _last_error(run: Run) -> ErrorInfo | None:
    calls: list[ModelCall | ToolCall] = [*run.model_calls(), *run.tool_calls()]
    last = max((call for call in calls if call.error), key=lambda call: call.ended_at or "", default=None)
    return last.error if last else None


def _pieces(session: Session) -> Iterator[str]:
    users = (session.user_id, *(run.user_id for run in session.runs))
    yield from filter(None, (session.name, *users, session.key.value, *session.tags))
    yield from _strings(session.metadata)
    for message in session.messages:
        for part in message.parts:
            if part.get("type") not in _BINARY:
                yield from _strings({key: value for key, value in part.items() if key not in _SILENT})
    for run in session.runs:
        yield from filter(None, (run.agent.name, run.error.message if run.error else None))
        yield from _strings(run.result)
        for call in run.model_calls():
            yield from filter(None, (call.model, call.error.message if call.error else None))
        for tool in run.tool_calls():
            yield from filter(None, (tool.name, tool.error.message if tool.error else None))
            yield from _strings([tool.arguments, tool.result])


def _strings(value: Json) -> Iterator[str]:
    """All text in a value, without recursion: what strangers wrote may be nested deep."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            waiting.extend(reversed(one.values()))
        elif isinstance(one, list):
            waiting.extend(reversed(one))
