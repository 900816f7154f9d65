"""Several spans of one thing made one: views of a model call, its attempts, a tool's spans, a workflow's wrapping."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise

from spanreel.conventions import SECOND_VIEW
from spanreel.model import Json, Message, Status
from spanreel.records import ModelRecord, RunRecord, ToolRecord, TurnRecord
from spanreel_collector.repair.merging import fill_model, fill_run, fill_tool, has_answer
from spanreel_collector.repair.views import has_content, is_one_tool, is_ours, response_id, richness, said, same_answer
from spanreel_collector.sessions.facts import merge_sessions
from spanreel_collector.trace import Forest, Placed, Trace, moved


def fold_second_views(trace: Trace) -> Trace:
    """Two spans of one model call, one inside the other, become one: the fuller, with what only the other says.

    One call it is where ours says so, where the response ids are equal, where one has content and the other none, or
    where the one inside is alone there and one of the two has no answer, or both cost the same. A span around several
    calls that says what the last of them said stands for none: it only groups.
    """
    forest = Forest(trace)
    current = dict(forest.by_id)
    gone: dict[str, str] = {}
    inside = [(above, placed) for placed in trace if (above := _model_around(forest, placed)) is not None]
    if not inside:
        return trace
    around = Counter([above.id for above, _ in inside])
    for outer_then, placed in inside:
        outer, inner = current[_survivor(outer_then.id, gone)], current[_survivor(placed.id, gone)]
        if outer.id == inner.id or not isinstance(outer.record, ModelRecord):
            continue
        otherwise = _is_one_told_otherwise if around[outer.id] == 1 else _is_the_last_asked
        if not _one_call(outer, inner) and not otherwise(outer, inner):
            continue
        if around[outer.id] > 1 and response_id(outer.record) is not None and not is_ours(outer):
            current[inner.id] = replace(inner, record=fill_model(inner.record, outer.record))
            current[outer.id] = replace(outer, record=None)
            continue
        survivor, other = (inner, outer) if richness(inner) > richness(outer) else (outer, inner)
        # Ours says all there is to say; what a view around several attempts says is the last one's.
        record = survivor.record if is_ours(survivor) else fill_model(survivor.record, other.record)
        session = merge_sessions((survivor.session, other.session))
        current[survivor.id] = replace(survivor, record=record, parent=outer.parent, session=session)
        gone[other.id] = survivor.id
        current.pop(other.id)
    return moved(tuple(current[placed.id] for placed in trace if placed.id in current), gone)


def fold_attempts(trace: Trace) -> Trace:
    """The attempts of one model call become one: the last gives the answer, the others stand before it."""
    calls: dict[str, list[Placed]] = defaultdict(list)
    for placed in trace:
        if isinstance(placed.record, ModelRecord) and placed.record.call_id:
            calls[placed.record.call_id].append(placed)
    if not calls:
        return trace
    gone: dict[str, str] = {}
    last: dict[str, Placed] = {}
    for attempts in calls.values():
        ordered = sorted(attempts, key=_attempt)
        final = ordered[-1]
        last[final.id] = replace(final, earlier=tuple(ordered[:-1]), parent=ordered[0].parent)
        gone.update({placed.id: final.id for placed in ordered[:-1]})
    return moved(tuple(last.get(placed.id, placed) for placed in trace if placed.id not in gone), gone)


def fold_nested_tools(trace: Trace) -> Trace:
    """A tool's span directly inside another's of the same name is its second view, as an MCP client's is."""
    forest = Forest(trace)
    gone: dict[str, str] = {}
    fuller: dict[str, Placed] = {}
    for placed in trace:
        outer = forest.record_above(placed) if isinstance(placed.record, ToolRecord) else None
        if not isinstance(placed.record, ToolRecord) or outer is None or not isinstance(outer.record, ToolRecord):
            continue
        if is_one_tool(placed.record, outer.record) and placed.id != outer.id:
            target = _survivor(outer.id, gone)
            base = fuller.get(target, forest.by_id[target])
            # Ours says all there is to say.
            ours_inside = placed.record.run_id is not None and getattr(base.record, "run_id", None) is None
            record = placed.record if ours_inside else fill_tool(base.record, placed.record)
            fuller[target] = replace(base, record=record)
            gone[placed.id] = target
    if not gone:
        return trace
    return moved(tuple(fuller.get(placed.id, placed) for placed in trace if placed.id not in gone), gone)


def fold_native_runs(trace: Trace) -> Trace:
    """A library's own span of a run between a run of ours and its calls, which say whose they are, is a view of it."""
    if not any(getattr(placed.record, "run_id", None) is not None for placed in trace):
        return trace
    forest = Forest(trace)
    views: set[str] = set()
    for placed in trace:
        run = getattr(placed.record, "run_id", None)
        if run is None or isinstance(placed.record, RunRecord):
            continue
        between: list[str] = []
        for above in forest.records_above(placed):
            if isinstance(above.record, RunRecord) and above.record.run_id is not None:
                views.update(between if above.record.run_id == run else ())
                break
            if isinstance(above.record, RunRecord):
                between.append(above.id)
    return tuple(replace(placed, record=None) if placed.id in views else placed for placed in trace)


def fold_wrappers(trace: Trace) -> Trace:
    """A nameless run (a workflow) around exactly one run and nothing else is that run's wrapping, not a request.

    So is one around nothing that tells nothing, beside what another writer or another run tells. One around runs that
    each go on with what was said in the one before holds a conversation's requests together, and is none itself.
    """
    if not any(_is_wrapper(placed) for placed in trace):
        return trace
    forest = Forest(trace)
    inside: dict[str, list[Placed]] = defaultdict(list)
    for placed in trace:
        if placed.record is not None and not isinstance(placed.record, TurnRecord):
            above = forest.record_above(placed)
            if above is not None:
                inside[above.id].append(placed)
    folded: dict[str, Placed] = {}
    writers = {placed.span.origin.scope for placed in trace if isinstance(placed.record, (ModelRecord, RunRecord))}
    for placed in trace:
        below = inside[placed.id]
        if not _is_wrapper(placed):
            continue
        if not below and not _tells(placed) and (len(writers) > 1 or _is_beside_a_run(placed, forest, inside)):
            folded[placed.id] = replace(placed, record=None)
        elif len(below) == 1 and isinstance(below[0].record, RunRecord):
            outer, inner = folded.get(placed.id, placed), folded.get(below[0].id, below[0])
            folded[outer.id] = replace(outer, record=None)
            # What the wrapping calls the conversation is said of all that is in it.
            session = merge_sessions((outer.session, inner.session))
            folded[inner.id] = replace(fill_run(inner, outer), session=session)
        elif len(below) > 1 and _is_conversation(below, inside):
            folded[placed.id] = replace(folded.get(placed.id, placed), record=None)
            for run in below:
                inner = folded.get(run.id, run)
                folded[run.id] = replace(inner, session=merge_sessions((placed.session, inner.session)))
    return tuple(folded.get(placed.id, placed) for placed in trace)


def _is_beside_a_run(placed: Placed, forest: Forest, inside: dict[str, list[Placed]]) -> bool:
    """Whether another run stands in the same tool call or run."""
    above = forest.record_above(placed)
    beside = inside[above.id] if above is not None else []
    return any(isinstance(one.record, RunRecord) and one.id != placed.id for one in beside)


def _is_conversation(runs: list[Placed], inside: dict[str, list[Placed]]) -> bool:
    """Whether each of these runs but the first was told all of the one before, its answer, and new words."""
    told: list[list[dict[str, Json]]] = []
    for run in runs:
        calls = [placed.record for placed in inside[run.id] if isinstance(placed.record, ModelRecord)]
        if not isinstance(run.record, RunRecord) or not calls:
            return False
        messages = [message for message in calls[0].request.messages if message.get("role") != "system"]
        if told and not _is_answered_and_asked(messages[-2:]):
            return False
        told.append(said(messages))
    return all(len(now) > len(before) and now[: len(before)] == before for before, now in pairwise(told))


def _is_answered_and_asked(messages: list[Message]) -> bool:
    """Whether these are an answer that asks for no tool, and what the user said to it."""
    if [message.get("role") for message in messages] != ["assistant", "user"]:
        return False
    return not any(part.get("type") == "tool_call" for part in messages[0].get("parts") or ())


def _survivor(identity: str, gone: dict[str, str]) -> str:
    while identity in gone:
        identity = gone[identity]
    return identity


def _model_around(forest: Forest, placed: Placed) -> Placed | None:
    return forest.model_above(placed) if isinstance(placed.record, ModelRecord) else None


def _is_one_told_otherwise(outer: Placed, inner: Placed) -> bool:
    """Whether a call and the only one inside it are one, though they do not tell the same."""
    return _is_unanswered(inner) or _asks_as(outer, inner) or _costs_as(outer, inner)


def _is_the_last_asked(outer: Placed, inner: Placed) -> bool:
    """Whether a span around several calls tells of one of them: by what it asks, where that says nothing of its end.

    Else by all that both tell: LiteLLM has ids of its own for answers of some providers.
    """
    return _asks_as(inner, outer) or (_asks_alike(outer, inner) and same_answer(outer.record, inner.record))


def _costs_as(outer: Placed, inner: Placed) -> bool:
    """Whether two calls of one writer came to the same counts, as ADK has it: thoughts are told by one of them only."""
    first = outer.record.answer if isinstance(outer.record, ModelRecord) else None
    second = inner.record.answer if isinstance(inner.record, ModelRecord) else None
    if not first or not second or not first.usage or not second.usage or outer.span.origin != inner.span.origin:
        return False
    asked, came = first.usage.input_tokens, first.usage.output_tokens
    if not asked or not came or second.usage.output_tokens is None:
        return False
    thought = first.usage.reasoning_tokens or second.usage.reasoning_tokens or 0
    return asked == second.usage.input_tokens and abs(came - second.usage.output_tokens) in (0, thought)


def _asks_as(outer: Placed, inner: Placed) -> bool:
    """Whether a call that tells what was asked, but nothing of its end, asks what the only call inside it asks."""
    return _is_unanswered(outer) and _asks_alike(outer, inner)


def _asks_alike(outer: Placed, inner: Placed) -> bool:
    """Whether two calls were asked the same; instructions stand beside the messages for some writers."""
    asked = [
        said(message for message in placed.record.request.messages if message.get("role") != "system")
        for placed in (outer, inner)
        if isinstance(placed.record, ModelRecord)
    ]
    return len(asked) == 2 and bool(asked[0]) and asked[0] == asked[1]


def _is_unanswered(placed: Placed) -> bool:
    """Whether a call says nothing of its end: so look streams that were not followed."""
    record = placed.record
    ended = isinstance(record, ModelRecord) and (record.status is not Status.OK or has_answer(record))
    return not ended and response_id(record) is None


def _one_call(outer: Placed, inner: Placed) -> bool:
    if is_ours(outer) and is_ours(inner):
        return False
    if SECOND_VIEW in inner.span.attributes or SECOND_VIEW in outer.span.attributes:
        return True
    first, second = response_id(outer.record), response_id(inner.record)
    if first and second:
        return first == second
    return not (has_content(outer.record) and has_content(inner.record)) or same_answer(outer.record, inner.record)


def _attempt(placed: Placed) -> tuple[int, int, int]:
    record = placed.record
    return (record.attempt if isinstance(record, ModelRecord) else 0), placed.span.start, placed.arrival


def _is_wrapper(placed: Placed) -> bool:
    record = placed.record
    return isinstance(record, RunRecord) and record.agent.name is None and record.run_id is None


def _tells(placed: Placed) -> bool:
    record = placed.record
    return isinstance(record, RunRecord) and bool(record.input or record.output or record.error)
