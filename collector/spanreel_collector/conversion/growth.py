"""A session that was converted before, and what came since: runs that are known stay, new ones join them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spanreel.model import Json, Status
from spanreel.policy_labels import join_labels
from spanreel.session import ModelCall, Run, Session
from spanreel_collector import json_text
from spanreel_collector.sessions.assemble import summarise

_OF_ITSELF = {"revision", "runs", "messages", "tools", "source", "started_at", "ended_at", "replay"}
"""Fields that are compared otherwise, or follow from the others."""


def grow(known: Session, new: Session) -> Session | None:
    """The new document, with the runs that only the known one holds; None where it says nothing that is not known.

    Of a run that both hold the new one counts, unless it tells less: part of its spans may have come this time.
    """
    grown = new.model_copy(deep=True)
    _adopt(grown, known)
    if says_the_same(grown, known):
        return None
    grown.revision = known.revision + 1
    return grown


def says_the_same(new: Session, known: Session) -> bool:
    """Whether a document says what a known one of the same session says, its revision and its tables' order aside."""
    return _said(new) == _said(known)


def as_many(new: Session, known: dict[str, Any]) -> bool:
    """Whether a document has as many runs, turns and calls of tools as the JSON of a known one: else it says more."""
    before = [run.get("turns", ()) for run in known.get("runs", ())]
    now = [run.turns for run in new.runs]
    return [[len(turn.tool_calls) for turn in turns] for turns in now] == [
        [len(turn.get("tool_calls", ())) for turn in turns] for turns in before
    ]


def _adopt(grown: Session, known: Session) -> None:
    """Take from the known document what the grown one lacks."""
    own = {(run.trace_id, run.id): number for number, run in enumerate(grown.runs)}
    tables = _Tables(grown)
    kept = False
    for run in known.runs:
        number = own.get((run.trace_id, run.id))
        if number is None:
            grown.runs.append(tables.moved(run, known))
            kept = True
        elif _tells_less(grown.runs[number], run):
            grown.runs[number] = tables.moved(run, known)
            kept = True
    if kept:
        grown.runs = _in_order(grown.runs)
        for key in ("scopes", "dialects", "files"):
            grown.source[key] = sorted({*_texts(grown.source.get(key)), *_texts(known.source.get(key))})
        grown.tags = [*grown.tags, *(tag for tag in known.tags if tag not in grown.tags)]
        grown.metadata = {**known.metadata, **grown.metadata}
        grown.user_id = grown.user_id or known.user_id
        grown.name = grown.name or known.name
        grown.redaction.policy = join_labels(grown.redaction.policy, known.redaction.policy)
        grown.redaction.key_ids = sorted({*grown.redaction.key_ids, *known.redaction.key_ids})
        summarise(grown)


def _tells_less(run: Run, known: Run) -> bool:
    if run.status is Status.UNFINISHED and known.status is not Status.UNFINISHED:
        return True
    return _calls(run) < _calls(known)


def _calls(run: Run) -> int:
    return sum(1 for _ in (*run.model_calls(), *run.tool_calls()))


def _in_order(runs: list[Run]) -> list[Run]:
    """Root runs by start, each followed by those inside it, which keep their order."""
    children: dict[str, list[Run]] = {}
    ids = {run.id for run in runs}
    roots = []
    for run in runs:
        if run.parent is None or run.parent.run not in ids:
            roots.append(run)
        else:
            children.setdefault(run.parent.run, []).append(run)
    ordered: list[Run] = []
    waiting = sorted(roots, key=lambda run: run.started_at or "", reverse=True)
    while waiting:
        run = waiting.pop()
        ordered.append(run)
        waiting += reversed(children.pop(run.id, []))
    return ordered


class _Tables:
    """A document's messages and tools, and where runs of another document find theirs in them."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._messages = {_text(one.model_dump()): number for number, one in enumerate(session.messages)}
        self._tools = {_text(one): number for number, one in enumerate(session.tools)}

    def moved(self, run: Run, home: Session) -> Run:
        """The run, with its references into this document."""
        moved = run.model_copy(deep=True)
        moved.input, moved.output = self._moved(moved.input, home), self._moved(moved.output, home)
        for call in moved.model_calls():
            call.input, call.output = self._moved(call.input, home), self._moved(call.output, home)
            call.tools = [self._tool(home.tools[index]) for index in call.tools]
        return moved

    def _moved(self, indexes: list[int], home: Session) -> list[int]:
        found = []
        for index in indexes:
            key = _text(home.messages[index].model_dump())
            if key not in self._messages:
                self._messages[key] = len(self._session.messages)
                self._session.messages.append(home.messages[index])
            found.append(self._messages[key])
        return found

    def _tool(self, tool: dict[str, Json]) -> int:
        key = _text(tool)
        if key not in self._tools:
            self._tools[key] = len(self._session.tools)
            self._session.tools.append(tool)
        return self._tools[key]


# -- what a document says --------------------------------------------------------------------------------------------


def _said(session: Session) -> list[Any]:
    """What the document says, whatever the order of its tables, and the names of the files that it came in."""
    messages = [_text(message.model_dump()) for message in session.messages]
    tools = [_text(tool) for tool in session.tools]
    source = {key: value for key, value in session.source.items() if key != "files"}
    return [session.model_dump(exclude=_OF_ITSELF), source, list(_spelled_out(session, messages, tools))]


def _spelled_out(session: Session, messages: list[str], tools: list[str]) -> Iterator[Any]:
    for run in session.runs:
        refs = [[messages[index] for index in indexes] for indexes in (run.input, run.output)]
        calls = [_refs(call, messages, tools) for call in run.model_calls()]
        yield [_without_refs(run.model_dump()), refs, calls]


def _refs(call: ModelCall, messages: list[str], tools: list[str]) -> list[list[str]]:
    told = [[messages[index] for index in indexes] for indexes in (call.input, call.output)]
    return [*told, [tools[index] for index in call.tools]]


def _without_refs(run: dict[str, Any]) -> dict[str, Any]:
    for call in (run, *(turn["model_call"] for turn in run["turns"]), *run["side_calls"]):
        if call is not None:
            for key in ("input", "output", "tools"):
                call.pop(key, None)
    return run


def _text(value: Any) -> str:
    return json_text.canonical(value)


def _texts(value: Json) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
