"""Loops without an agent, whose very calls may be traces of their own: which continue one another, and as what."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from spanreel.model import Answer, Message, Status
from spanreel.records import ModelRecord
from spanreel_collector.sessions.continuing import (
    asking,
    asks_for_tools,
    chained,
    completed,
    goes_on_from,
    lacks_calls,
    may_be_partial,
    with_calls,
)
from spanreel_collector.sessions.drafts import Draft
from spanreel_collector.sessions.facts import merge_sessions
from spanreel_collector.sessions.gists import answers_before, calls_in, gist, gists, joined, prefixes, without_calls
from spanreel_collector.sessions.requests import calls_before, calls_of, told_of
from spanreel_collector.trace import Placed

_WITHOUT = b"-"
"""Ends the name of what was said without the calls of tools."""
_ASKED = b"!"
"""Ends the name of what was said before tools were asked for, where those who answer have no ids."""
_UNTOLD = b"?"
"""Ends the name of what was said before an answer that nobody told."""


def is_loop(root: Draft) -> bool:
    """Whether another trace may go on with this very run, or it with another's: of no known agent and session."""
    return root.run is None and root.session.id is None and bool(root.models)


def loop_ends(root: Draft) -> tuple[list[bytes], list[bytes]]:
    """What a loop would go on from, and what would go on from it."""
    return [head for _, head in _heads(root.models[0])[1]], _tails(root.models[-1])


def join_loops(roots: Iterable[Draft]) -> list[list[Draft]]:
    """Loops by conversation: lists of runs that continue one another, loops cut into several traces made whole.

    A call whose messages begin with those of an earlier one and its answer continues it: with a tool's result it is
    the same run, with new words of the user the next run of the conversation.
    """
    conversations: list[list[Draft]] = []
    tails: dict[bytes, list[tuple[list[Draft], Draft]]] = defaultdict(list)
    for root in sorted(roots, key=lambda root: root.started):
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
        for key in dict.fromkeys(_tails(current.models[-1])):  # one call may be named alike alone and among all
            tails[key].append((conversation, current))
    return conversations


def _complete(run: Draft, more: Draft) -> None:
    """What the run's last call answered, where only the call that continues it tells; and what that leaves out."""
    last, after = run.models[-1], more.models[0].record
    if not isinstance(after, ModelRecord) or not isinstance(last.record, ModelRecord):
        return
    if may_be_partial(last.record):
        run.models[-1] = replace(last, record=completed(last.record, after))
    if after.protocol is None and calls_before(after):
        more.models[0] = replace(more.models[0], record=chained(after, last.record))
    elif after.protocol is None and lacks_calls(after):
        more.models[0] = replace(more.models[0], record=with_calls(after, asking(last.record)))


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
    said = joined(record.request.messages)
    first = [gist(message) for message in said]
    named = [(0, _name(one)) for one in goes_on_from(record)]
    beginnings = prefixes(first)
    found: list[tuple[int, bytes]] = []
    for length in range(len(first), 0, -1):
        if length < len(first):
            found.append((length, beginnings[length - 1]))
        if length > 1 and first[length - 1].startswith('["assistant"'):
            found.append((length, beginnings[length - 2] + _UNTOLD))
            if calls := calls_in(said[length - 1 : length], "tool_call"):
                found.append((length, beginnings[length - 2] + calls))
        start = answers_before(said, length)
        if start < length:
            # The calls may be left out, and what the model said beside them or not; and ids.
            calls = calls_in(said[start:length], "tool_call_response") or _ASKED
            found += [(length, beginnings[at - 1] + calls) for at in (start, start - 1) if at > 0]
    if length_asked := _asked_at(said):
        # Of several calls, a stream may have told one.
        named_alone = _ids_in(said[length_asked - 1])
        if len(named_alone) > 1 and length_asked > 1:
            found += [(length_asked, beginnings[length_asked - 2] + _name(one)) for one in named_alone]
    last = next((at for at in range(len(said) - 1, 0, -1) if said[at].get("role") == "assistant"), 0)
    if last and (words := without_calls(said[last : last + 1])) and words[0]["parts"] != said[last]["parts"]:
        # Of an answer that asked for tools, the words alone may have been told.
        found.append((last + 1, prefixes([*first[:last], gist(words[0])])[-1]))
    if lacks_calls(record):
        bare = without_calls(said)
        without = prefixes(map(gist, bare))
        for at in range(len(bare) - 1, 0, -1):
            if bare[at - 1].get("role") == "assistant":
                found.append((len(said) - len(bare) + at, without[at - 1] + _WITHOUT))
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
        said = prefixes(gists((*record.request.messages, *answer)))[-1]
        keys.append(said if answer else said + _UNTOLD)
        if answer and any(message.get("role") == "tool" for message in record.request.messages):
            bare = without_calls(joined((*record.request.messages, *answer)))
            keys.append(prefixes(map(gist, bare))[-1] + _WITHOUT)
        if asks_for_tools(record):
            asked = prefixes(gists(record.request.messages))[-1]
            named = calls_in(answer, "tool_call")
            keys += [asked + calls for calls in (named or _UNTOLD, _ASKED)]
            keys += [asked + _name(one) for one in calls_of(record)]
            if any(isinstance(call.get("arguments"), str) for message in answer for call in message["parts"]):
                keys.append(asked + _UNTOLD)  # several calls run together, it may be
    return keys


def _asked_at(said: Sequence[Message]) -> int:
    """How many messages there are up to the last that asks for tools; 0 where none does."""
    return next((at for at in range(len(said), 0, -1) if _ids_in(said[at - 1])), 0)


def _ids_in(message: Message) -> tuple[str, ...]:
    return told_of(message).called


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
