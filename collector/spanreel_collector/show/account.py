"""The account of a conversion as text for people: what was not understood, and which runs could be replayed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spanreel_collector.conversion.account import Account
from spanreel_collector.show.session import printable

_MOST = 40
"""Lines of one table; the rest is counted."""


def show_account(account: Account) -> str:
    """The account; its tables are left out where they would be empty."""
    lines = [*_replayable(account), *_unread(account), *_strangers(account), *_dropped(account)]
    return "\n".join(printable(line) for line in lines)


def _replayable(account: Account) -> Iterator[str]:
    runs = sum(account.runs.values())
    if not runs:
        yield "replay: no run was recorded"
        return
    good = sum(count for (_, eligible), count in account.runs.items() if eligible)
    yield f"replay: {good} of {runs} runs ({good / runs:.0%}) could be replayed"
    for dialect in sorted({dialect for dialect, _ in account.runs}):
        of_dialect = account.runs[dialect, True] + account.runs[dialect, False]
        yield f"  {dialect or 'no dialect'}: {account.runs[dialect, True]} of {of_dialect}"
        found = [(count, kind, remedy) for (one, kind, remedy), count in account.obstacles.items() if one == dialect]
        for count, kind, remedy in sorted(found, key=lambda one: (-one[0], one[1])):
            yield f"    {count} not: {kind}" + (f"; {remedy}" if remedy else "")


def _unread(account: Account) -> Iterator[str]:
    rows = [f"{count:>8}  {scope or '(no scope)'}  {key}" for scope, key, count in account.unread()]
    yield from _table("attributes that nothing in the sessions comes from (N is any number):", rows)


def _strangers(account: Account) -> Iterator[str]:
    found = sorted(account.strangers.items(), key=lambda one: (-one[1], one[0]))
    rows = [f"{count:>8}  {scope or '(no scope)'}  {name}" for (scope, name), count in found]
    yield from _table("spans of no known dialect, by scope and name:", rows)


def _dropped(account: Account) -> Iterator[str]:
    rows = [f"{count:>8}  {scope or '(no scope)'}" for scope, count in sorted(account.dropped.items())]
    yield from _table("attributes that the recorder's limits dropped, by scope:", rows)


def _table(title: str, rows: Iterable[str]) -> Iterator[str]:
    listed = list(rows)
    if not listed:
        return
    yield title
    yield from listed[:_MOST]
    if len(listed) > _MOST:
        yield f"          and {len(listed) - _MOST} more"
