"""Runs of one conversation that no id joins: what the first model call of one was told begins with another's words.

Two kinds, which never join each other: loops without an agent, whose very calls may be traces of their own, and runs of
agents. Of conversations that have an id nothing is said here.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from spanreel import conventions as names
from spanreel.model import Answer, Json, Message, ModelRecord, Record, Status
from spanreel_collector import json_text
from spanreel_collector.sessions.continuing import chained, completed, goes_on_from, may_be_partial
from spanreel_collector.sessions.drafts import Draft
from spanreel_collector.sessions.facts import merge_sessions
from spanreel_collector.sessions.requests import calls_before, calls_of
from spanreel_collector.trace import Placed

Key = TypeVar("Key")

_SAID = ("type", "content", "id", "name", "arguments", "response", "uri", "file_id", "data", "digest")
"""What of a message's part is compared."""
_UNTOLD = b"?"
"""Ends the name of what was said before an answer that nobody told."""
_TOLD_ANEW = ("system", "developer")
"""Roles of messages that an agent is told at the start of each run; they may hold the date."""


def is_loop(root: Draft) -> bool:
    """Whether another trace may go on with this very run, or it with another's: of no known agent and session."""
    return root.run is None and root.session.id is None and bool(root.models)


def is_nameless(root: Draft) -> bool:
    """Whether only its messages may tell which conversation this run of an agent belongs to."""
    return root.run is not None and root.session.id is None and bool(_calls(root))


def read_ends(root: Draft) -> tuple[list[bytes], list[bytes]]:
    """What a root run would go on from, and what would go on from it: where those of two are equal, they may be one."""
    if is_loop(root):
        shadowed = _shadowed(root)
        heads = [head for _, head in _heads(root.models[0])[1]]
        return [*heads, *([_name(shadowed)] if shadowed else [])], _tails(root.models[-1])
    return (_begins(root), _ends(root)) if is_nameless(root) else ([], [])


# -- loops -----------------------------------------------------------------------------------------------------------


def join_loops(roots: Iterable[Draft]) -> list[list[Draft]]:
    """Loops by conversation: lists of runs that continue one another, loops cut into several traces made whole.

    A call whose messages begin with those of an earlier one and its answer continues it: with a tool's result it is
    the same run, with new words of the user the next run of the conversation.
    """
    conversations: list[list[Draft]] = []
    tails: dict[bytes, list[tuple[list[Draft], Draft]]] = defaultdict(list)
    for root in _without_shadows(sorted(roots, key=lambda root: root.started)):
        continued = _continued(root.models[0], tails)
        if continued is None:
            conversation, current = [root], root
            conversations.append(conversation)
        else:
            conversation, current, rest = continued
            _complete(current, root)
            if _new_words(rest):
                conversation.append(root)
                current = root
            else:
                _append(current, root)
        for key in _tails(current.models[-1]):
            tails[key].append((conversation, current))
    return conversations


def _shadowed(root: Draft) -> str | None:
    """The response that this loop, one call of which nothing but numbers is told, may be a second view of."""
    record = root.models[0].record
    if len(root.models) > 1 or root.tools or not isinstance(record, ModelRecord) or _has_content(record):
        return None
    return record.answer.response_id if record.answer else None


def _without_shadows(roots: list[Draft]) -> Iterator[Draft]:
    """The loops without second views of a call, which fill it: SDKs may have spans of their own in their own traces."""
    shadows = [root for root in roots if _shadowed(root) is not None]
    homes: dict[str, tuple[Draft, int]] = {}
    for root in roots if shadows else ():
        for at, placed in enumerate(root.models):
            record = placed.record
            if isinstance(record, ModelRecord) and _has_content(record) and record.answer and record.answer.response_id:
                homes.setdefault(record.answer.response_id, (root, at))
    for root in roots:
        home = homes.get(_shadowed(root) or "")
        if home is None or _scope_of(home[0].models[home[1]]) == _scope_of(root.models[0]):
            yield root
            continue
        models, at = home[0].models, home[1]
        models[at] = replace(models[at], record=_filled(models[at].record, root.models[0].record))


def _filled(record: Record | None, shadow: Record | None) -> Record | None:
    """The call with the counts that only its second view has."""
    if not isinstance(record, ModelRecord) or not isinstance(shadow, ModelRecord) or not shadow.answer:
        return record
    answer = record.answer or Answer()
    return replace(record, answer=replace(answer, usage=answer.usage or shadow.answer.usage))


def _has_content(record: ModelRecord) -> bool:
    answered = record.answer is not None and any(message.get("parts") for message in record.answer.messages)
    return bool(record.request.messages) or answered


def _scope_of(placed: Placed) -> str:
    return placed.span.origin.scope


def _complete(run: Draft, more: Draft) -> None:
    """What the run's last call answered, where only the call that continues it tells; and what that leaves out."""
    last, after = run.models[-1], more.models[0].record
    if not isinstance(after, ModelRecord) or not isinstance(last.record, ModelRecord):
        return
    if may_be_partial(last.record):
        run.models[-1] = replace(last, record=completed(last.record, after))
    if after.protocol is None and calls_before(after):
        more.models[0] = replace(more.models[0], record=chained(after, last.record))


def _continued(
    placed: Placed, tails: dict[bytes, list[tuple[list[Draft], Draft]]]
) -> tuple[list[Draft], Draft, list[str]] | None:
    """The newest run that this call continues, taken (a run is continued once), and the messages that are new."""
    first, heads = _heads(placed)
    for length, head in heads:
        if tails.get(head):
            return *tails[head].pop(), first[length:]
    return None


def _heads(placed: Placed) -> tuple[list[str], list[tuple[int, bytes]]]:
    """What this call's messages say, and the tails that it would continue, each with how many messages it has of them.

    First what it names itself, then its own beginnings, longest first.
    """
    record = placed.record
    if not isinstance(record, ModelRecord):
        return [], []
    said = _joined(record.request.messages)
    first = [_gist(message) for message in said]
    named = [(0, _name(one)) for one in goes_on_from(record)]
    prefixes = _prefixes(first)
    found: list[tuple[int, bytes]] = []
    for length in range(len(first) - 1, 0, -1):
        found.append((length, prefixes[length - 1]))
        if length > 1 and first[length - 1].startswith('["assistant"'):
            found.append((length, prefixes[length - 2] + _UNTOLD))
            if calls := _calls_in(said[length - 1]):
                found.append((length, prefixes[length - 2] + calls))
    return first, [*named, *found]


def _tails(placed: Placed) -> list[bytes]:
    """What the next call of the same conversation would begin with: this one's messages and answer, or its id."""
    record = placed.record
    if not isinstance(record, ModelRecord) or record.status is not Status.OK:
        return []
    told = record.answer or Answer()
    identity = told.response_id
    keys = [_name(one) for one in (identity, *calls_of(record)) if one]
    answer = [message for message in told.messages[:1] if message.get("parts")]
    if record.request.messages:
        said = _prefixes(_gists((*record.request.messages, *answer)))[-1]
        keys.append(said if answer else said + _UNTOLD)
        if answer and (calls := _calls_in(answer[0])):
            keys.append(_prefixes(_gists(record.request.messages))[-1] + calls)
    return keys


def _name(response: str) -> bytes:
    return response.encode("utf-8", "replace")


def _append(run: Draft, more: Draft) -> None:
    run.models += more.models
    run.tools += more.tools
    run.asked_in.update(more.asked_in)
    run.turns.update(more.turns)
    run.around += more.around
    run.session = merge_sessions([run.session, more.session])
    for child in more.children:
        child.parent = run
        run.children.append(child)


def _new_words(rest: list[str]) -> bool:
    return any(gist.startswith('["user"') and '"type":"text"' in gist for gist in rest)


# -- runs of agents --------------------------------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class _Ended(Generic[Key]):
    """A run that another may go on from, with the key of its conversation; a run is gone on from once."""

    key: Key
    at: int
    taken: bool = False


@dataclass(eq=False, slots=True)
class Conversations(Generic[Key]):
    """The conversations of agents' runs that no id joins, while the runs come in the order of their start.

    A run goes on from an earlier one of the same agent, service and user where the history that it begins with is what
    that one was told and answered, an answer of the model's included: equal questions alone are no conversation. Where
    several ended so nobody knows from which, and it stands alone.
    """

    _ended: dict[bytes, list[_Ended[Key]]] = field(default_factory=lambda: defaultdict(list))

    def join(self, root: Draft, key: Key) -> Key:
        """The key of the conversation that this run goes on with; ``key``, its own, where there is none."""
        before = self._before(root)
        ends = _ends(root)
        if before is not None:
            key = before.key
            # One that failed leaves its place to the same question asked again.
            before.taken = bool(ends)
        end = _Ended(key, root.ended)
        for name in ends:
            self._ended[name].append(end)
        return key

    def _before(self, root: Draft) -> _Ended[Key] | None:
        began, _ = root.started
        for name in _begins(root):
            open_ones = [one for one in self._ended.get(name, ()) if not one.taken and (not began or one.at <= began)]
            if open_ones:
                return open_ones[0] if len(open_ones) == 1 else None
        return None


def _begins(root: Draft) -> list[bytes]:
    """The beginnings of the history that the run was given which end with the model's words, longest first."""
    told = [message for message in _history(root) if message.get("role") not in _TOLD_ANEW]
    answered = [number for number, message in enumerate(told[:-1]) if message.get("role") == "assistant"]
    if not answered:
        return []
    name = root.record.agent.name if root.record else None
    digests = _prefixes([_scope(root, name), *map(_gist, told)])
    return [digests[number + 1] for number in reversed(answered)]


def _ends(root: Draft) -> list[bytes]:
    """What the next run of the conversation would begin with: all that was said, or its question and answer alone."""
    last = _calls(root)[-1][1]
    record = last.record
    if not isinstance(record, ModelRecord) or record.status is not Status.OK or record.answer is None:
        return []
    answer = next((message for message in record.answer.messages[:1] if message.get("parts")), None)
    if answer is None or not record.request.messages:
        return []
    wholes = [[*record.request.messages, answer]]
    if history := _history(root):
        wholes.append([*history, answer])
    said = [[_gist(one) for one in whole if one.get("role") not in _TOLD_ANEW] for whole in wholes]
    # Whoever was handed over to may be who is asked next.
    agents = dict.fromkeys((root.record.agent.name if root.record else None, _calls(root)[-1][0]))
    return list(dict.fromkeys(_prefixes([_scope(root, agent), *gists])[-1] for agent in agents for gists in said))


def _history(root: Draft) -> Sequence[Message]:
    """What the run's first model call was told."""
    record = _calls(root)[0][1].record
    return record.request.messages if isinstance(record, ModelRecord) else ()


def _calls(root: Draft) -> list[tuple[str | None, Placed]]:
    """The run's model calls and those of runs that it handed over to, by start, each with its agent's name."""
    return sorted(_all_calls(root), key=lambda call: (call[1].started, call[1].arrival))


def _all_calls(run: Draft) -> Iterator[tuple[str | None, Placed]]:
    name = run.record.agent.name if run.record else None
    yield from ((name, model) for model in run.models)
    for child in run.children:
        if child.tool is None:
            yield from _all_calls(child)


def _scope(root: Draft, agent: str | None) -> str:
    """Whose conversation it is, as far as that is known; a replay's is not that of what it replays."""
    assert root.run is not None
    span = root.run.span
    whose = [span.origin.resource.get("service.name"), agent, root.session.user_id]
    apart = (names.SESSION_NAMESPACE, names.ORIGIN, names.BASELINE)
    return json_text.canonical([*whose, *(span.attributes.get(name) for name in apart)])


# -- what messages say -----------------------------------------------------------------------------------------------


def _prefixes(gists: Iterable[str]) -> list[bytes]:
    """A digest of each beginning of these messages."""
    running = hashlib.sha256()
    digests = []
    for gist in gists:
        running.update(gist.encode("utf-8", "replace") + b"\x1e")
        digests.append(running.digest())
    return digests


def _calls_in(message: Message) -> bytes:
    """The tool calls that a message asks for, by their ids: what is told of an answer beside them may differ."""
    asked = [part for part in message.get("parts", ()) if isinstance(part, dict) and part.get("type") == "tool_call"]
    return _name(" ".join(sorted(str(part["id"]) for part in asked if part.get("id"))))


def _gists(messages: Iterable[Message]) -> list[str]:
    return [_gist(message) for message in _joined(messages)]


def _joined(messages: Iterable[Message]) -> list[Message]:
    """The messages, where what the model said in several at once is one, as an answer is."""
    joined: list[Message] = []
    for message in messages:
        parts = [part for part in message.get("parts", ()) if not _is_unsaid(part)]
        if message.get("role") != "assistant":
            joined.append(message)
        elif parts and joined and joined[-1].get("role") == "assistant":
            joined[-1] = {**joined[-1], "parts": [*joined[-1].get("parts", ()), *parts]}
        elif parts:
            joined.append({**message, "parts": parts})
    return joined


def _is_unsaid(part: Json) -> bool:
    """Whether a part is the model's reasoning, which later requests leave out, or stand apart."""
    return isinstance(part, dict) and part.get("type") == "reasoning"


def _gist(message: Message) -> str:
    """What a message says, without what differs between an answer and its repetition in the next request."""
    parts: list[Json] = []
    for part in message.get("parts", []):
        if isinstance(part, dict) and not _is_unsaid(part):
            said = {key: part[key] for key in _SAID if part.get(key) not in (None, "")}
            if said != {"type": "text"}:
                parts.append(said)
    return json_text.canonical([message.get("role"), parts])
