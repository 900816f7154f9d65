"""Which traces belong together, by the names that the store keeps of each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from spanreel_collector.conversion.unions import Unions
from spanreel_collector.service.retelling import Group
from spanreel_collector.stores.names import opposites, own_name
from spanreel_collector.stores.store import Store

_OF_TRACE: Final = b"trace "
_OF_NAME: Final = b"name "


def deal(groups: Iterable[Group], hands: int) -> list[list[Group]]:
    """Groups dealt to so many hands, about as much to each: those that have a name in common to the same one."""
    unions, first = Unions[bytes](), dict[bytes, Group]()
    for group in groups:
        name = min(group.traces)
        first[name] = group
        own = frozenset(own_name(trace) for trace in group.traces)
        for joined in opposites(frozenset[str]().union(*group.names.values())) | own:
            unions.join(_OF_TRACE + name, _OF_NAME + joined.encode())
    together: dict[bytes, list[Group]] = {}
    for name, chief in unions.pairs():
        if name.startswith(_OF_TRACE):
            together.setdefault(chief, []).append(first[name.removeprefix(_OF_TRACE)])
    dealt: list[list[Group]] = [[] for _ in range(hands)]
    for some in sorted(together.values(), key=len, reverse=True):
        min(dealt, key=len).extend(some)
    return [some for some in dealt if some]


def part(
    store: Store, tenant: str, groups: Iterable[Group], read: frozenset[bytes]
) -> tuple[list[Group], list[frozenset[bytes]]]:
    """The groups to which nothing belongs that was not read with them; and of each other one, all that does."""
    whole: list[Group] = []
    open_ones: list[frozenset[bytes]] = []
    for group in groups:
        belonging = _related_to(store, tenant, group)
        # What was read together and is in another group is known to have nothing to do with this one.
        if belonging <= read:
            whole.append(group)
        else:
            open_ones.append(belonging)
    wanted = frozenset[bytes]().union(*open_ones)
    # What is read again is not saved before.
    open_ones += [group.traces for group in whole if group.traces & wanted]
    return [group for group in whole if not group.traces & wanted], open_ones


def _related_to(store: Store, tenant: str, group: Group) -> frozenset[bytes]:
    names = frozenset(name for found in group.names.values() for name in found)
    made = frozenset(one.summary.id for one in group.made) | group.same
    sessions = (store.traces_of(tenant, session) for session in made)
    traces = group.traces.union(group.linked, *sessions)
    return related(store, tenant, traces, names)


def related(store: Store, tenant: str, traces: frozenset[bytes], names: frozenset[str]) -> frozenset[bytes]:
    """These traces, and all that share a name or a session with them, or with one of those, as far as it is known."""
    found = fresh = traces
    while fresh:
        asked = opposites(names) | frozenset(own_name(trace) for trace in fresh)
        sessions = (store.traces_of(tenant, session) for session in store.sessions_of(tenant, fresh))
        fresh = store.related(tenant, asked).union(*sessions) - found
        found |= fresh
        names = store.names(tenant, fresh) if fresh else frozenset()
    return found
