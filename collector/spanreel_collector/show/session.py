"""A session as text for people: runs, turns, calls, with tokens, times and errors. Prints nothing itself."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from spanreel.model import Fidelity, Json, Status, ToolKind
from spanreel.session import ErrorInfo, Evaluation, Message, ModelCall, Run, Session, ToolCall, Usage
from spanreel_collector import json_text

_STEP = "  "
_SHORTEST = 40
_MEDIA = ("blob", "uri", "file")
_BOLD, _DIM, _RED, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[0m"


@dataclass(frozen=True, slots=True)
class Look:
    """How to print: columns to fit into, whether in colour, and whether texts are given in full."""

    width: int = 100
    colour: bool = False
    full: bool = False


def show_session(session: Session, look: Look) -> str:
    """The session, with all its runs."""
    lines = [*_head(session, look)]
    for number, run in enumerate(session.roots()):
        lines += ["", *_run(session, run, look, 0, str(number))]
    return "\n".join(lines)


def show_run(session: Session, run: Run, look: Look) -> str:
    """One run of the session, with those inside it."""
    return "\n".join([*_head(session, look), "", *_run(session, run, look, 0, "")])


def _head(session: Session, look: Look) -> Iterator[str]:
    title = f"session {session.id}"
    yield _fit(title, f"{session.key.kind} {session.key.value}, {session.origin}, {session.status}", look, 0, _BOLD)
    facts = [f"name {session.name!r}" if session.name else "", f"user {session.user_id}" if session.user_id else ""]
    facts += [f"tags {', '.join(session.tags)}" if session.tags else ""]
    if any(facts):
        yield _fit("", ", ".join(filter(None, facts)), look, 1)
    when = f"{session.started_at[:19].replace('T', ' ')} UTC" if session.started_at else "time unknown"
    yield _fit("", ", ".join(filter(None, (when, _length(session.started_at, session.ended_at)))), look, 1)
    yield _fit("", f"tokens: {_tokens(session.usage) or 'unknown'}", look, 1)
    yield from _evaluations(session.evaluations, look, 1)
    if session.replay.eligible:
        yield _fit("", "replay: can be exact", look, 1)
    else:
        yield _fit("", f"replay: {len(session.replay.reasons)} in the way", look, 1)
        for reason in session.replay.reasons[: None if look.full else 5]:
            yield from _wrapped(f"{reason.place}: {reason.reason}", look, 2)
        if not look.full and len(session.replay.reasons) > 5:
            yield _fit("", f"and {len(session.replay.reasons) - 5} more", look, 2)


def _run(session: Session, run: Run, look: Look, depth: int, number: str) -> Iterator[str]:
    name = run.agent.name or ("calls without an agent" if run.implicit else "agent")
    version = f" {run.agent.version}" if run.agent.version else ""
    facts = [run.path, f"#{number} {run.id}" if number else run.id, _length(run.started_at, run.ended_at)]
    yield _fit(f"{name}{version}", _facts(*facts, *_state(run.status), _marks(run.fidelity)), look, depth, _BOLD)
    yield from _messages(session, run.input, look, depth + 1)
    for turn in run.turns:
        yield _fit(f"turn {turn.index}", "", look, depth + 1, _DIM)
        if turn.model_call is not None:
            yield from _model_call(session, turn.model_call, look, depth + 2)
        for call in turn.tool_calls:
            yield from _tool_call(session, call, look, depth + 2)
    for side_call in run.side_calls:
        yield from _model_call(session, side_call, look, depth + 1)
    for call in run.loose_tool_calls:
        yield from _tool_call(session, call, look, depth + 1)
    shown = {call.run for call in run.tool_calls()}
    for child in session.runs:
        if child.parent is not None and child.parent.run == run.id and child.id not in shown:
            yield from _run(session, child, look, depth + 1, "")
    yield from _error(run.error, look, depth + 1)
    if run.output and run.fidelity.get("output") is not Fidelity.RECONSTRUCTED:
        yield from _messages(session, run.output, look, depth + 1)
    yield from _evaluations(run.evaluations, look, depth + 1)


def _model_call(session: Session, call: ModelCall, look: Look, depth: int) -> Iterator[str]:
    failed = len(call.attempts) - 1
    facts = [
        _length(call.started_at, call.ended_at),
        _tokens(call.usage),
        ", ".join(call.finish_reasons),
        "streamed" if call.streamed else "",
        "cut off" if not call.complete else "",
        f"{failed + 1} attempts" if failed > 0 else "",
        _id(call, look),
    ]
    title = f"{call.operation} {call.model or call.response_model or ''}".rstrip()
    yield _fit(title, _facts(*facts, *_state(call.status), _marks(call.fidelity)), look, depth)
    yield from _messages(session, call.output, look, depth + 1)
    yield from _error(call.error, look, depth + 1)
    yield from _evaluations(call.evaluations, look, depth + 1)


def _tool_call(session: Session, call: ToolCall, look: Look, depth: int) -> Iterator[str]:
    kind = f"{call.kind} " if call.kind != "function" else "tool "
    facts = [_length(call.started_at, call.ended_at), _seen(call)]
    facts += [f"to {call.target}" if call.target else "", "side effect" if call.side_effect else "", _id(call, look)]
    yield _fit(f"{kind}{call.name}", _facts(*facts, *_state(call.status), _marks(call.fidelity)), look, depth)
    if call.arguments is not None:
        yield _fit("", f"asked  {_short(call.arguments)}", look, depth + 1)
    for run in session.runs:
        if run.id == call.run and run.parent is not None:
            yield from _run(session, run, look, depth + 1, "")
    if (
        call.error is None
        and call.fidelity.get("result") is not Fidelity.ABSENT
        and call.status is not Status.UNFINISHED
    ):
        yield _fit("", f"gave   {_short(call.result)}", look, depth + 1)
    yield from _error(call.error, look, depth + 1)
    yield from _evaluations(call.evaluations, look, depth + 1)


def _id(call: ModelCall | ToolCall, look: Look) -> str:
    """What a replay's ``--edit`` names a call by."""
    return f"id {call.id}" if look.full else ""


def _seen(call: ToolCall) -> str:
    return "" if call.executed or call.kind is ToolKind.PROVIDER else "not recorded, seen in messages"


def _messages(session: Session, indexes: list[int], look: Look, depth: int) -> Iterator[str]:
    for index in indexes:
        if 0 <= index < len(session.messages):
            text = _said(session.messages[index])
            if text:
                yield _fit("", f"{session.messages[index].role}: {text}", look, depth)


def _said(message: Message) -> str:
    found = []
    for part in message.parts:
        kind = part.get("type")
        if kind in ("text", "refusal"):
            found.append(str(part.get("content", "")))
        elif kind == "reasoning":
            found.append(f"({part.get('content', '')})")
        elif kind == "tool_call":
            found.append(f"-> {part.get('name')}({_short(part.get('arguments'))})")
        elif kind == "tool_call_response":
            found.append(f"= {_short(part.get('response'))}")
        elif kind in _MEDIA:
            found.append(f"[{part.get('modality') or kind}]")
        elif kind in ("server_tool_call", "server_tool_call_response"):
            found.append(f"[{part.get('name') or kind}]")
    return " ".join(found)


def _error(error: ErrorInfo | None, look: Look, depth: int) -> Iterator[str]:
    if error is not None:
        yield _fit(
            "", f"{error.category}: {error.type or 'error'}: {error.message or ''}".rstrip(": "), look, depth, _RED
        )


def _evaluations(told: list[Evaluation] | None, look: Look, depth: int) -> Iterator[str]:
    for one in told or ():
        verdict = _facts("" if one.score is None else f"{one.score:g}", one.label or "", one.error_type or "")
        by = f" (by {one.evaluator})" if one.evaluator else ""
        said = f": {one.explanation}" if one.explanation else ""
        yield _fit("", f"judged {one.name or 'as'} {verdict}{by}{said}", look, depth)


def _facts(*facts: str) -> str:
    return ", ".join(filter(None, facts))


def _state(status: Status) -> tuple[str, ...]:
    return () if status is Status.OK else (str(status),)


def _marks(fidelity: dict[str, Fidelity]) -> str:
    marks = [f"{field} {state}" for field, state in sorted(fidelity.items()) if state is not Fidelity.WHOLE]
    return f"[{'; '.join(marks)}]" if marks else ""


def _tokens(usage: Usage | None) -> str:
    if usage is None or (usage.input_tokens is None and usage.output_tokens is None):
        return ""
    cached = f" ({usage.cache_read_tokens} cached)" if usage.cache_read_tokens else ""
    reasoned = f" ({usage.reasoning_tokens} reasoning)" if usage.reasoning_tokens else ""
    came, went = ("?" if count is None else count for count in (usage.input_tokens, usage.output_tokens))
    return f"{came} in{cached}, {went} out{reasoned}"


def _length(started: str | None, ended: str | None) -> str:
    if started is None or ended is None:
        return ""
    try:
        # To microseconds: that is what datetime reads, and more than people do.
        span = datetime.fromisoformat(ended[:26]) - datetime.fromisoformat(started[:26])
    except ValueError:
        return ""
    seconds = span.total_seconds()
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _short(value: Json) -> str:
    return value if isinstance(value, str) else json_text.canonical(value)


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """The text without what would move a terminal's cursor, or turn its letters round."""
    return _CONTROL.sub("\ufffd", text)


def _wrapped(text: str, look: Look, depth: int) -> Iterator[str]:
    """A text whose end matters as much as its beginning, in as many lines as it needs."""
    room = max(_SHORTEST, look.width) - len(_STEP * (depth + 1))
    for number, line in enumerate(textwrap.wrap(printable(text), room)):
        yield _STEP * (depth + bool(number)) + line


def _fit(title: str, rest: str, look: Look, depth: int, style: str = "") -> str:
    """One line, cut to the width; what a model said cannot move the terminal's cursor."""
    text = f"{title}  {rest}".rstrip() if title and rest else title or rest
    text = re.sub(r"[ \t\r\n]+", " ", text)
    text = printable(text).strip()
    indent = _STEP * depth
    room = max(_SHORTEST, look.width) - len(indent)
    if not look.full and len(text) > room:
        text = text[: max(1, room - 3)] + "..."
    if look.colour and style:
        cut = len(title) if title and style != _RED else len(text)
        text = f"{style}{text[:cut]}{_PLAIN}{text[cut:]}"
    return indent + text
