"""Log records that name no trace, put under the trace that their dialect says, so that they are found with their like.

The records stay as they came. Those of no known dialect are kept by the user that they name, or with those of nobody.
"""

from __future__ import annotations

from dataclasses import replace

from spanreel_collector import dialects
from spanreel_collector.otlp.grouping import group
from spanreel_collector.otlp.items import Item
from spanreel_collector.otlp.parts import Apart, ScopePart
from spanreel_collector.otlp.protobuf_form import read_message
from spanreel_collector.sessions.facts import read_ids, read_resource
from spanreel_collector.span import RawLog
from spanreel_collector.stores.records import NO_TRACE, loose_trace


def place_logs(apart: Apart) -> Apart:
    """The same, each record under its trace."""
    if not any(item.trace == NO_TRACE for part in apart.parts for item in part.items):
        return apart
    return replace(apart, parts=tuple(replace(part, items=_placed(part)) for part in apart.parts))


def _placed(part: ScopePart) -> tuple[Item, ...]:
    loose = tuple(item for item in part.items if item.trace == NO_TRACE)
    if not loose:
        return part.items
    size = len(part.resource) + len(part.scope) + sum(len(item.data) for item in loose)
    (together,) = group((replace(part, items=loose),), size)
    records = read_message(together.body, "", "logs").logs
    if len(records) != len(loose):
        return part.items  # which of them says what cannot be read is told when sessions are made
    traces = iter([_place(record) for record in records])
    return tuple(item if item.trace != NO_TRACE else item._replace(trace=next(traces)) for item in part.items)


def _place(record: RawLog) -> bytes:
    if (trace := dialects.place(record).trace_id) is not None:
        return bytes.fromhex(trace)
    # Of several users the first: a record is kept once.
    _, users = read_ids(record.attributes)
    user = users[0] if users else read_resource(record.origin).user_id
    return loose_trace(user) if user is not None else NO_TRACE
