"""Runs before they are written down: which calls belong to which run, which runs are one loop or conversation."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from spanreel.model import Json, Message, ModelRecord, RunRecord, SessionInfo, Status, ToolRecord, TurnRecord
from spanreel_collector import json_text
from spanreel_collector.sessions.facts import merge_sessions
from spanreel_collector.trace import Forest, Placed, Trace


@dataclass(eq=False, slots=True)
class Draft:
    """A run being put together. ``run`` is None for an implicit one; ``tool`` is the tool call it was made in.

    ``asked_in`` says inside which model call a tool's span stood, ``turns`` what turn a span stood in.
    """

    id: str
    trace_id: str
    run: Placed | None = None
    parent: Draft | None = None
    tool: Placed | None = None
    models: list[Placed] = field(default_factory=list)
    tools: list[Placed] = field(default_factory=list)
    asked_in: dict[str, str] = field(default_factory=dict)
    turns: dict[str, int] = field(default_factory=dict)
    children: list[Draft] = field(default_factory=list)
    around: list[Placed] = field(default_factory=list)
    session: SessionInfo = field(default_factory=SessionInfo)

    @property
    def record(self) -> RunRecord | None:
        """What the run's own span says."""
        return self.run.record if self.run is not None and isinstance(self.run.record, RunRecord) else None

    @property
    def started(self) -> tuple[int, int]:
        """When it started (0 where unknown), and as the how-many-eth span it came."""
        starts = [placed.started for placed in ([self.run] if self.run else self.own()) if placed.started]
        return min(starts, default=0), min((placed.arrival for placed in self.own()), default=0)

    @property
    def ended(self) -> int:
        """When it ended; nanoseconds, 0 where unknown."""
        return self.run.span.end if self.run else max((placed.span.end for placed in self.own()), default=0)

    def own(self) -> list[Placed]:
        """Its own spans: the run's and its calls'."""
        return [*([self.run] if self.run else []), *self.models, *self.tools]

    def all(self) -> Iterator[Draft]:
        """This run, and those inside it, depth first."""
        yield self
        for child in self.children:
            yield from child.all()


def draft_runs(trace: Trace) -> list[Draft]:
    """The root runs of a trace, with all that belongs to them."""
    forest = Forest(trace)
    drafts: dict[str, Draft] = {
        placed.id: Draft(placed.id, placed.span.trace_id, run=placed)
        for placed in trace
        if isinstance(placed.record, RunRecord)
    }
    loose: Draft | None = None
    for placed in trace:
        if placed.record is None or isinstance(placed.record, TurnRecord | RunRecord):
            continue
        holder = forest.holder(placed)
        if holder is None:
            loose = loose or _loose_run(forest, placed)
            draft = loose
        else:
            if holder.id not in drafts:
                drafts[holder.id] = Draft(holder.id, holder.span.trace_id, tool=holder)
            draft = drafts[holder.id]
        _put(draft, placed, forest)
    roots = _hang(drafts, loose, forest)
    _tell_sessions(roots, trace, forest)
    return sorted(roots, key=lambda root: root.started)


def _loose_run(forest: Forest, first: Placed) -> Draft:
    """The implicit run of a trace's calls that have no agent around them."""
    top = forest.top(first)
    identity = top.id if top.record is None else f"{first.id}-run"
    return Draft(identity, first.span.trace_id, around=[top] if top.record is None else [])


def _put(draft: Draft, placed: Placed, forest: Forest) -> None:
    (draft.models if isinstance(placed.record, ModelRecord) else draft.tools).append(placed)
    for above in forest.records_above(placed):
        if isinstance(above.record, TurnRecord):
            draft.turns.setdefault(placed.id, above.record.index)
        elif isinstance(above.record, ModelRecord):
            draft.asked_in.setdefault(placed.id, above.id)
        else:
            break


def _hang(drafts: dict[str, Draft], loose: Draft | None, forest: Forest) -> list[Draft]:
    """Put each run into the run (or the tool call of it) that it was made in; returns those that stand alone."""
    roots = [loose] if loose is not None else []
    homes = {tool.id: draft for draft in (*drafts.values(), *roots) for tool in draft.tools}
    for draft in drafts.values():
        anchor = draft.tool or draft.run
        holder = draft.tool or (forest.holder(anchor) if anchor else None)
        if holder is not None and isinstance(holder.record, ToolRecord):
            draft.tool, draft.parent = holder, homes.get(holder.id)
        elif holder is not None:
            draft.parent = drafts.get(holder.id)
        if draft.parent is None:
            roots.append(draft)
        else:
            draft.parent.children.append(draft)
    for draft in (*drafts.values(), *roots):
        draft.children.sort(key=lambda child: child.started)
    return roots


def _tell_sessions(roots: list[Draft], trace: Trace, forest: Forest) -> None:
    """What each root run knows of its session: from its spans, those around it, or the only id in the trace."""
    known = {placed.session.id for placed in trace if placed.session.id}
    for root in roots:
        inside = [placed.session for draft in root.all() for placed in draft.own()]
        around = [placed.session for placed in _above(root, forest)]
        root.session = merge_sessions([*inside, *around])
        if root.session.id is None and len(known) == 1:
            root.session = merge_sessions([root.session, SessionInfo(id=next(iter(known)))])


def _above(root: Draft, forest: Forest) -> Iterator[Placed]:
    current = forest.by_id.get((root.run.parent if root.run else None) or "")
    yield from root.around
    while current is not None:
        yield current
        current = forest.by_id.get(current.parent or "")


# -- loops and conversations across traces ---------------------------------------------------------------------------


def may_join(root: Draft) -> bool:
    """Whether another trace may go on with this root run, or it with another: a loop of no known agent and session."""
    return root.run is None and root.session.id is None and bool(root.models)


def join_loops(roots: Iterable[Draft]) -> list[list[Draft]]:
    """Root runs by conversation: lists of runs that continue one another, loops cut into several traces made whole.

    A call whose messages begin with those of an earlier one and its answer continues it: with a tool's result it is
    the same run, with new words of the user the next run of the conversation. Only agentless runs of no known session
    join.
    """
    conversations: list[list[Draft]] = []
    tails: dict[bytes, list[tuple[list[Draft], Draft]]] = defaultdict(list)
    for root in sorted(roots, key=lambda root: root.started):
        if not may_join(root):
            conversations.append([root])
            continue
        continued = _continued(root.models[0], tails)
        if continued is None:
            conversation, current = [root], root
            conversations.append(conversation)
        else:
            conversation, current, rest = continued
            if _new_words(rest):
                conversation.append(root)
                current = root
            else:
                _append(current, root)
        for key in _tails(current.models[-1]):
            tails[key].append((conversation, current))
    return conversations


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
    first = [_gist(message) for message in record.request.messages]
    previous = record.request.settings.get("previous_response_id")
    named = [(0, previous.encode("utf-8", "replace"))] if isinstance(previous, str) else []
    prefixes = _prefixes(first)
    return first, [*named, *((length, prefixes[length - 1]) for length in range(len(first) - 1, 0, -1))]


def read_ends(root: Draft) -> tuple[list[bytes], list[bytes]]:
    """The tails that a loop would continue, and its own: where one's stands among another's, they may be one."""
    return [head for _, head in _heads(root.models[0])[1]], _tails(root.models[-1])


def _tails(placed: Placed) -> list[bytes]:
    """What the next call of the same conversation would begin with: this one's messages and answer, or its id."""
    record = placed.record
    if not isinstance(record, ModelRecord) or record.status is not Status.OK or not record.answer:
        return []
    identity = record.answer.response_id
    keys = [identity.encode("utf-8", "replace")] if identity else []
    answer = [message for message in record.answer.messages[:1] if message.get("parts")]
    if answer and record.request.messages:
        keys.append(_prefixes([_gist(message) for message in (*record.request.messages, *answer)])[-1])
    return keys


def _prefixes(gists: list[str]) -> list[bytes]:
    """A digest of each beginning of these messages."""
    running = hashlib.sha256()
    digests = []
    for gist in gists:
        running.update(gist.encode("utf-8", "replace") + b"\x1e")
        digests.append(running.digest())
    return digests


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


def _gist(message: Message) -> str:
    """What a message says, without what differs between an answer and its repetition in the next request."""
    kept = ("type", "content", "id", "name", "arguments", "response")
    parts: list[Json] = []
    for part in message.get("parts", []):
        if isinstance(part, dict) and part.get("type") != "reasoning":
            parts.append({key: part[key] for key in kept if part.get(key) not in (None, "")})
    return json_text.canonical([message.get("role"), parts])


def _new_words(rest: list[str]) -> bool:
    return any(gist.startswith('["user"') and '"type":"text"' in gist for gist in rest)
