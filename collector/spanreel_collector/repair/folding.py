"""Several spans of one thing made one: views of a model call, its attempts, a tool's spans, a workflow's wrapping."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

from spanreel.conventions import SECOND_VIEW
from spanreel.model import Json, ModelRecord, Record, RunRecord, ToolKind, ToolRecord, TurnRecord
from spanreel_collector.repair.merging import fill_model, fill_run, fill_tool, has_answer
from spanreel_collector.sessions.facts import merge_sessions
from spanreel_collector.trace import Forest, Placed, Trace, moved


def fold_second_views(trace: Trace) -> Trace:
    """Two spans of one model call, one inside the other, become one: the fuller, with what only the other says.

    One call it is where ours says so, where the response ids are equal, or where one has content, the other none. A
    span around several calls that says what the last of them said stands for none: it only groups.
    """
    forest = Forest(trace)
    current = dict(forest.by_id)
    gone: dict[str, str] = {}
    inside = [(above, placed) for placed in trace if (above := _model_around(forest, placed)) is not None]
    around = Counter([above.id for above, _ in inside])
    for outer_then, placed in inside:
        outer, inner = current[_survivor(outer_then.id, gone)], current[_survivor(placed.id, gone)]
        if outer.id == inner.id or not isinstance(outer.record, ModelRecord) or not _one_call(outer, inner):
            continue
        if around[outer.id] > 1 and _response_id(outer.record) is not None and not _is_ours(outer):
            current[inner.id] = replace(inner, record=fill_model(inner.record, outer.record))
            current[outer.id] = replace(outer, record=None)
            continue
        survivor, other = (inner, outer) if _richness(inner) > _richness(outer) else (outer, inner)
        # Ours says all there is to say; what a view around several attempts says is the last one's.
        record = survivor.record if _is_ours(survivor) else fill_model(survivor.record, other.record)
        session = merge_sessions((survivor.session, other.session))
        current[survivor.id] = replace(survivor, record=record, parent=outer.parent, session=session)
        gone[other.id] = survivor.id
        current.pop(other.id)
    return moved(tuple(current[placed.id] for placed in trace if placed.id in current), gone)


def fold_beside(trace: Trace) -> Trace:
    """A span without content beside one that tells of the same call, within its time, is its second view.

    SDKs that write spans of their own end up there where an instrumentation's span is not the current one.
    """
    if len({placed.span.origin.scope for placed in trace if isinstance(placed.record, ModelRecord)}) < 2:
        return trace
    beside: dict[str | None, list[Placed]] = defaultdict(list)
    for placed in trace:
        if isinstance(placed.record, ModelRecord):
            beside[placed.parent].append(placed)
    current = {placed.id: placed for placed in trace}
    gone: dict[str, str] = {}
    for calls in beside.values():
        for shadow in calls:
            views = [call for call in calls if call.id not in gone and _is_shadow(shadow, call)]
            if not views:
                continue
            # Of calls side by side, the one that it fits most closely.
            nearest = min(views, key=lambda view: view.span.end - view.span.start)
            view = current[nearest.id]
            current[view.id] = replace(view, record=fill_model(view.record, shadow.record))
            gone[shadow.id] = view.id
    return moved(tuple(current[placed.id] for placed in trace if placed.id not in gone), gone)


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
        outer = next(forest.records_above(placed), None) if isinstance(placed.record, ToolRecord) else None
        if not isinstance(placed.record, ToolRecord) or outer is None or not isinstance(outer.record, ToolRecord):
            continue
        if _one_tool(placed.record, outer.record) and placed.id != outer.id:
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


def _one_tool(inner: ToolRecord, outer: ToolRecord) -> bool:
    """Whether two tools are one; what an MCP server calls its tool, its clients put the server's name before."""
    return inner.name == outer.name or (inner.kind is ToolKind.MCP and outer.name.endswith(f"_{inner.name}"))


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
    """A nameless run (a workflow) around exactly one run and nothing else is that run's wrapping, not a request."""
    if not any(_is_wrapper(placed) for placed in trace):
        return trace
    forest = Forest(trace)
    inside: dict[str, list[Placed]] = defaultdict(list)
    for placed in trace:
        if placed.record is not None and not isinstance(placed.record, TurnRecord):
            above = next(forest.records_above(placed), None)
            if above is not None:
                inside[above.id].append(placed)
    folded: dict[str, Placed] = {}
    for placed in trace:
        below = inside[placed.id]
        if _is_wrapper(placed) and len(below) == 1 and isinstance(below[0].record, RunRecord):
            outer, inner = folded.get(placed.id, placed), folded.get(below[0].id, below[0])
            folded[outer.id] = replace(outer, record=None)
            # What the wrapping calls the conversation is said of all that is in it.
            session = merge_sessions((outer.session, inner.session))
            folded[inner.id] = replace(fill_run(inner, outer), session=session)
    return tuple(folded.get(placed.id, placed) for placed in trace)


def _survivor(identity: str, gone: dict[str, str]) -> str:
    while identity in gone:
        identity = gone[identity]
    return identity


def _model_around(forest: Forest, placed: Placed) -> Placed | None:
    return forest.model_above(placed) if isinstance(placed.record, ModelRecord) else None


def _is_shadow(shadow: Placed, call: Placed) -> bool:
    """Whether a span without content tells of the call that another span, of another writer, holds the content of."""
    if shadow.span.origin.scope == call.span.origin.scope or _has_content(shadow.record) or _is_ours(shadow):
        return False
    if not call.span.start <= shadow.span.start or not shadow.span.end <= call.span.end:
        return False
    ids = {_response_id(shadow.record), _response_id(call.record)} - {None}
    return _has_content(call.record) and len(ids) < 2 and _model(shadow.record) == _model(call.record)


def _one_call(outer: Placed, inner: Placed) -> bool:
    if _is_ours(outer) and _is_ours(inner):
        return False
    if SECOND_VIEW in inner.span.attributes or SECOND_VIEW in outer.span.attributes:
        return True
    first, second = _response_id(outer.record), _response_id(inner.record)
    if first and second:
        return first == second
    return not (_has_content(outer.record) and _has_content(inner.record)) or _same_answer(outer.record, inner.record)


def _same_answer(outer: Record | None, inner: Record | None) -> bool:
    """Whether two model calls came to the same, word for word; ids of tool calls, which some writers make up, aside."""
    first, second = _answered(outer), _answered(inner)
    return bool(first) and first == second


def _answered(record: Record | None) -> list[dict[str, Json]]:
    answer = record.answer if isinstance(record, ModelRecord) else None
    parts = [part for message in (answer.messages if answer else ()) for part in message.get("parts") or ()]
    return [{key: value for key, value in part.items() if key != "id"} for part in parts if isinstance(part, dict)]


def _richness(placed: Placed) -> tuple[bool, bool]:
    """Ours can be replayed byte by byte; else content counts."""
    return _is_ours(placed), _has_content(placed.record)


def _is_ours(placed: Placed) -> bool:
    return isinstance(placed.record, ModelRecord) and placed.record.call_id is not None


def _has_content(record: Record | None) -> bool:
    if not isinstance(record, ModelRecord):
        return False
    return bool(record.request.messages) or has_answer(record)


def _response_id(record: Record | None) -> str | None:
    return record.answer.response_id if isinstance(record, ModelRecord) and record.answer else None


def _model(record: Record | None) -> str | None:
    return record.request.model if isinstance(record, ModelRecord) else None


def _attempt(placed: Placed) -> tuple[int, int, int]:
    record = placed.record
    return (record.attempt if isinstance(record, ModelRecord) else 0), placed.span.start, placed.arrival


def _is_wrapper(placed: Placed) -> bool:
    record = placed.record
    return isinstance(record, RunRecord) and record.agent.name is None and record.run_id is None
