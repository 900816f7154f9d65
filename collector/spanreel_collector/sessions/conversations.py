"""Runs of one conversation that no id joins: what the first model call of one was told begins with another's words.

Two kinds, which never join each other: loops without an agent, whose very calls may be traces of their own, and runs of
agents. Of conversations that have an id nothing is said here.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, TypeVar

from spanreel import conventions as names
from spanreel.model import Message, Status
from spanreel.records import ModelRecord
from spanreel_collector import json_text
from spanreel_collector.sessions.drafts import Draft
from spanreel_collector.sessions.gists import gist, prefixes
from spanreel_collector.sessions.loops import is_loop, loop_ends
from spanreel_collector.trace import Placed

Key = TypeVar("Key")

_TOLD_ANEW = ("system", "developer")
"""Roles of messages that an agent is told at the start of each run; they may hold the date."""


def is_nameless(root: Draft) -> bool:
    """Whether only its messages may tell which conversation this run of an agent belongs to."""
    return root.run is not None and root.session.id is None and bool(_calls(root))


def read_ends(root: Draft) -> tuple[list[bytes], list[bytes]]:
    """What a root run would go on from, and what would go on from it: where those of two are equal, they may be one."""
    if is_loop(root):
        return loop_ends(root)
    return (_begins(root), _ends(root)) if is_nameless(root) else ([], [])


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

    _ended: dict[bytes, deque[_Ended[Key]]] = field(default_factory=lambda: defaultdict(deque))

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
            ended = self._ended.get(name, deque())
            while ended and ended[0].taken:
                ended.popleft()
            # Many may have ended so, of whom two are enough to know that nobody knows.
            open_ones = (one for one in ended if not one.taken and (not began or one.at <= began))
            if fitting := list(islice(open_ones, 2)):
                return fitting[0] if len(fitting) == 1 else None
        return None


def _begins(root: Draft) -> list[bytes]:
    """The beginnings of the history that the run was given which end with the model's words, longest first."""
    told = [message for message in _history(root) if message.get("role") not in _TOLD_ANEW]
    answered = [number for number, message in enumerate(told[:-1]) if message.get("role") == "assistant"]
    if not answered:
        return []
    name = root.record.agent.name if root.record else None
    digests = prefixes([_scope(root, name), *map(gist, told)])
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
    said = [[gist(one) for one in whole if one.get("role") not in _TOLD_ANEW] for whole in wholes]
    # Whoever was handed over to may be who is asked next.
    agents = dict.fromkeys((root.record.agent.name if root.record else None, _calls(root)[-1][0]))
    return list(dict.fromkeys(prefixes([_scope(root, agent), *told])[-1] for agent in agents for told in said))


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
