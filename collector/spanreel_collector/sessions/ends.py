"""What a run was asked and came to: as its span says, else as its model calls show, or those of whoever took over."""

from __future__ import annotations

from spanreel.model import Fidelity, Message, ToolKind
from spanreel.records import ModelRecord, ToolRecord
from spanreel.session import Run
from spanreel_collector.sessions.drafts import Draft, cause, opens_turn
from spanreel_collector.sessions.requests import read_requests
from spanreel_collector.sessions.tables import Tables
from spanreel_collector.trace import Placed


def write_ends(run: Run, draft: Draft, models: list[Placed], tables: Tables) -> None:
    """The run's input and output, as its span says them; else as its first request and last answer show them."""
    record = draft.record
    given = {"input": list(record.input), "output": list(record.output)} if record else {"input": [], "output": []}
    answering = _taken_over(draft, models) or models or _handed(draft, -1)
    shown = {"input": _shown_input(models or _handed(draft, 0)), "output": _shown_output(answering)}
    fidelity = dict(record.fidelity) if record else {}
    for field_name in ("input", "output"):
        absent = fidelity.get(field_name) in (Fidelity.ABSENT, None)
        if not given[field_name] and absent and shown[field_name]:
            given[field_name], fidelity[field_name] = shown[field_name], Fidelity.RECONSTRUCTED
    run.input, run.output = tables.add_messages(given["input"]), tables.add_messages(given["output"])
    run.fidelity = fidelity


def _handed(draft: Draft, which: int) -> list[Placed]:
    """Of a run without model calls that handed over to others (a workflow), those of the first or the last of these."""
    while not draft.models:
        others = [child for child in draft.children if child.tool is None]
        if not others:
            return []
        draft = others[which]
    return [placed for placed in sorted(draft.models, key=lambda one: cause(draft, one)) if opens_turn(placed)]


def _taken_over(draft: Draft, models: list[Placed]) -> list[Placed]:
    """Of a run whose last word was to hand over to a run inside it, the model calls of that one."""
    if not models or not draft.children or not read_requests(models[-1:]):
        return []
    last = draft.children[-1]
    kind = last.tool.record.kind if last.tool is not None and isinstance(last.tool.record, ToolRecord) else None
    if last.started[0] < models[-1].span.start or (last.tool is not None and kind is not ToolKind.HANDOFF):
        return []
    own = [placed for placed in sorted(last.models, key=lambda one: cause(last, one)) if opens_turn(placed)]
    return _taken_over(last, own) or own


def _shown_input(models: list[Placed]) -> list[Message]:
    """The first request's messages since the model's last word to the user, without the system's."""
    record = models[0].record if models else None
    found: list[Message] = []
    for message in record.request.messages if isinstance(record, ModelRecord) else ():
        parts = message.get("parts")
        asks = any(part.get("type") == "tool_call" for part in parts if isinstance(part, dict)) if parts else False
        if message.get("role") == "assistant" and not asks:
            found = []
        elif message.get("role") != "system":
            found.append(message)
    return found


def _shown_output(models: list[Placed]) -> list[Message]:
    """The last answer, where it asks for no tool."""
    record = models[-1].record if models else None
    if not isinstance(record, ModelRecord) or record.answer is None or read_requests(models[-1:]):
        return []
    return [message for message in record.answer.messages if message.get("parts")]
