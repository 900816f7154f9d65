"""AutoGen's own spans: agents and tools by the GenAI conventions, without content, and the messages between them.

One run is many traces, one a message, that links join. What was said stands on the spans of messages; models are not
traced. Nothing tells an agent's instructions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spanreel import conventions as names
from spanreel.model import Error, ErrorCategory, Fidelity, Json, Status
from spanreel.records import Record, RunRecord, ToolRecord
from spanreel_collector.dialects import genai_spans, values
from spanreel_collector.dialects.autogen import messages
from spanreel_collector.dialects.content.messages import FACTS
from spanreel_collector.span import RawLog, RawSpan

NAME = "autogen"

_SCOPE = "autogen"
_MESSAGE = "message"
_MANAGER = "GroupChatManager"
_PROCESS = "process"
_TEAM = "autogen.team"
_TOLD, _SAID = "autogen.told", "autogen.said"
"""What `gather` adds: that a span is a team's run; the messages that a run was told, and those said in it."""
_RUNTIME_KEY = re.compile(r"\.\(([^()]+)\)-[AT]$")
_NO_SESSION = ("default", "")


def speaks(span: RawSpan) -> bool:
    """Whether AutoGen wrote the span."""
    return span.origin.scope.startswith(_SCOPE)


def read(span: RawSpan) -> Record | None:
    """What the span says; None for the spans of messages, but for the one that starts a team's run."""
    if span.attributes.get(_TEAM) is True:
        return _with_messages(span, RunRecord(error=values.failure(span, ErrorCategory.OTHER)))
    record = genai_spans.read(span)
    if isinstance(record, RunRecord):
        return _with_messages(span, record)
    return record if isinstance(record, ToolRecord) else None


def linked(span: RawSpan) -> frozenset[str]:
    """The traces that are one with the span's: those of the messages that it came of."""
    if not speaks(span):
        return frozenset()
    return frozenset(link.trace_id for link in span.links if link.trace_id != span.trace_id)


def trace_of(_log: RawLog) -> str | None:
    """AutoGen writes no log records of its own that name no trace."""
    return None


def _with_messages(span: RawSpan, record: RunRecord) -> RunRecord:
    told, said = span.attributes.get(_TOLD), span.attributes.get(_SAID)
    asked = messages.read_input(told) if isinstance(told, list) else ()
    output = messages.read_rounds(said) if isinstance(said, list) else ()
    if span.attributes.get(_TEAM) is True:
        output = tuple({key: value for key, value in one.items() if key != FACTS} for one in output[-1:])
    error = record.error or _failure(said)
    fidelity = {"input": asked, "output": output}
    return replace(
        record,
        input=asked,
        output=output,
        error=error,
        status=Status.ERROR if error is not None else record.status,
        fidelity={key: Fidelity.ABSENT for key, found in {**fidelity, "instructions": ()}.items() if not found},
    )


def _failure(said: Json) -> Error | None:
    """What ended a team that failed, as it tells its agents."""
    for item in said if isinstance(said, list) else []:
        error = item.get("error") if isinstance(item, dict) else None
        if isinstance(error, dict):
            kind = values.text(error, "error_type") or "error"
            return Error(ErrorCategory.OTHER, kind, values.text(error, "error_message"))
    return None


# -- messages, before spans are read ---------------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class _Team:
    """A team while its messages are looked through: what all heard, and from where on each agent has not answered."""

    thread: list[Json] = field(default_factory=list)
    said: list[Json] = field(default_factory=list)
    heard: dict[Json, int] = field(default_factory=dict)


def gather(spans: Sequence[RawSpan], logs: Sequence[RawLog]) -> tuple[list[RawSpan], list[RawLog]]:
    """The spans of a run in one tree, with the messages between agents put on the runs of team and agents."""
    if not any(speaks(span) for span in spans):
        return list(spans), list(logs)
    by_id = {span.span_id: span for span in spans}
    parents = {identity: _parent(span, by_id) for identity, span in by_id.items()}
    starts = {span.span_id for span in spans if _starts_team(span)}
    ordered = sorted(spans, key=lambda span: span.start)
    for span in ordered:  # so that the way up stays short, however long they talk
        if span.attributes.get(names.OPERATION) == names.INVOKE_AGENT and speaks(span):
            # An agent answers to its team, not to whoever spoke before it.
            homes = (above for above in _above(span.span_id, parents) if above in starts or _is_tool(by_id[above]))
            home = next(homes, None)
            parents[span.span_id] = home if home in starts else parents[span.span_id]
    added = _read_messages(ordered, parents, starts)
    for span in spans:
        if _is_tool(span) and speaks(span):
            home = next((above for above in _above(span.span_id, parents) if _SAID in added.get(above, {})), None)
            identity = values.text(span.attributes, names.TOOL_CALL_ID)
            added[span.span_id] = messages.read_tool_call(added[home][_SAID], identity) if home is not None else {}
    ends: dict[str, int] = {}
    for span in spans:
        for above in _above(span.span_id, parents):
            if above in starts:
                ends[above] = max(ends.get(above, 0), span.end)
    return [_placed(span, parents, added, ends.get(span.span_id, span.end)) for span in spans], list(logs)


def _parent(span: RawSpan, by_id: Mapping[str, RawSpan]) -> str | None:
    above = by_id.get(span.parent_id or "")
    if not speaks(span) or (above is not None and speaks(above)):
        return span.parent_id
    # What the application or another service stands around, its messages join all the same.
    linked = (link.span_id for link in span.links if link.span_id in by_id and link.span_id != span.span_id)
    return next(linked, span.parent_id)


def _above(identity: str, parents: Mapping[str, str | None]) -> Iterator[str]:
    """The ids above a span that are here, innermost first; a circle ends them."""
    seen = {identity}
    current = parents.get(identity)
    while current is not None and current in parents and current not in seen:
        seen.add(current)
        yield current
        current = parents[current]


def _is_tool(span: RawSpan) -> bool:
    return span.attributes.get(names.OPERATION) == names.EXECUTE_TOOL


def _message(span: RawSpan) -> dict[str, Any]:
    """The message that a span's agent was handed, where it was."""
    if span.attributes.get("messaging.operation") != _PROCESS or not speaks(span):
        return {}
    return values.members(span.attributes.get(_MESSAGE))


def _is_manager(span: RawSpan) -> bool:
    return str(span.attributes.get("recipient_agent_class") or "").endswith(_MANAGER)


def _starts_team(span: RawSpan) -> bool:
    return _is_manager(span) and isinstance(_message(span).get("messages"), list)


def _read_messages(
    ordered: list[RawSpan], parents: Mapping[str, str | None], starts: set[str]
) -> dict[str, dict[str, Json]]:
    """What is to be added to the spans of runs: a team's manager hears all, each message once."""
    teams = {identity: _Team() for identity in starts}
    added: dict[str, dict[str, Json]] = {}
    for span in ordered:
        home = span.span_id if span.span_id in starts else None
        home = home or next((above for above in _above(span.span_id, parents) if above in starts), None)
        if home is None:
            continue
        team = teams[home]
        if span.attributes.get(names.OPERATION) == names.INVOKE_AGENT:
            name = span.attributes.get(names.AGENT_NAME)
            heard = team.thread[team.heard.get(name, 0) :]
            others = [item for item in heard if not (isinstance(item, dict) and item.get("source") == name)]
            added[span.span_id] = {_TOLD: others}
            team.heard[name] = len(team.thread)
        elif _is_manager(span):
            _hear(span, team, _agents_above(span.span_id, parents, added), added)
    for identity, team in teams.items():
        added[identity] = {**added.get(identity, {}), _TEAM: True, _SAID: team.said}
    return added


def _agents_above(identity: str, parents: Mapping[str, str | None], added: dict[str, dict[str, Json]]) -> list[str]:
    return [above for above in _above(identity, parents) if above in added]


def _hear(span: RawSpan, team: _Team, agents: list[str], added: dict[str, dict[str, Json]]) -> None:
    """Take what the manager was handed into the team's thread, and to the agent that said it."""
    told = _message(span)
    if isinstance(told.get("messages"), list) and span.span_id not in agents:
        team.thread += told["messages"]
        added[span.span_id] = {_TOLD: told["messages"]}
    response = told["response"] if isinstance(told.get("response"), dict) else None
    if response is not None:
        last = response.get("chat_message")
        inner = response["inner_messages"] if isinstance(response.get("inner_messages"), list) else []
        team.thread.append(last)
        team.said.append(last)
        if agents:
            added[agents[0]][_SAID] = [*inner, last]
    elif isinstance(told.get("result"), dict) and isinstance(told["result"].get("messages"), list):
        team.thread += told["result"]["messages"][-1:]
        team.said += told["result"]["messages"][-1:]
    elif isinstance(told.get("message"), dict) and agents and "error" not in told:
        # While the agent is at work; its response will tell all of it again.
        home = added[agents[0]]
        home.setdefault(_SAID, [])
        home[_SAID] = [*home[_SAID], told["message"]] if told["message"] not in home[_SAID] else home[_SAID]
    if isinstance(told.get("error"), dict):
        team.said.append({"error": told["error"]})


def _placed(
    span: RawSpan, parents: Mapping[str, str | None], added: Mapping[str, dict[str, Json]], end: int
) -> RawSpan:
    """The span in its place; a team's run ends with the last that came of its start, not when that was handed over."""
    parent = parents.get(span.span_id, span.parent_id)
    more = dict(added.get(span.span_id, {}))
    if _SAID in more or _TOLD in more:
        key = _RUNTIME_KEY.search(str(span.attributes.get("messaging.destination") or ""))
        if key is not None and key.group(1) not in _NO_SESSION:
            more[names.CONVERSATION_ID] = key.group(1)
    if parent == span.parent_id and not more:
        return span
    return replace(
        span, parent_id=parent, end=max(end, span.end) if span.end else 0, attributes={**span.attributes, **more}
    )
