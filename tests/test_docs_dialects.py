"""docs/dialects.md: its table is what the golden dumps convert to; `SPANREEL_GOLDEN=write` writes it anew."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from golden_sessions import GOLDEN
from spanreel_collector.conversion.account import Account
from spanreel_collector.conversion.progress import Progress
from spanreel_collector.conversion.spool import Spool
from spanreel_collector.conversion.streaming import Settings, convert_pieces
from spanreel_collector.sources.files import read_pieces

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parent.parent / "docs" / "dialects.md"
BEGINS = "<!-- from here on as tests/test_docs_dialects.py writes it -->\n"
REASONS = 3


def account_of(dump: Path) -> Account:
    with Spool() as spool:
        tally = convert_pieces(spool, read_pieces(str(dump)), Settings(report=True), Progress())
    assert tally.account is not None
    return tally.account


def row(name: str, account: Account) -> str:
    """A dump with the dialects that its sessions are read by, the share that could replay, and what is in the way."""
    dialects = sorted({one for told, _ in account.runs for one in told.split(", ")})
    runs, good = sum(account.runs.values()), sum(count for (_, can), count in account.runs.items() if can)
    obstacles = Counter[str]()
    for (_, kind, _), count in account.obstacles.items():
        obstacles[kind] += count
    ordered = sorted(obstacles.items(), key=lambda one: (-one[1], one[0]))[:REASONS]
    reasons = "; ".join(f"{kind} ({count})" for kind, count in ordered)
    return f"| {', '.join(dialects)} | `{name}` | {good} of {runs} | {reasons or '-'} |"


def table() -> str:
    forms = ("*.otlp.jsonl", "*.trace.json", "*.session.jsonl")
    dumps = sorted((dump for form in forms for dump in GOLDEN.glob(form)), key=lambda one: one.name)
    rows = [row(dump.name.removesuffix(".jsonl").removesuffix(".json"), account_of(dump)) for dump in dumps]
    return "\n".join(["| dialect | dump | runs | in the way (runs) |", "|---|---|---|---|", *sorted(rows)]) + "\n"


def test_the_table_of_dialects_says_what_their_dumps_convert_to() -> None:
    found, page = table(), PAGE.read_text(encoding="utf-8")
    text, begins, agreed = page.partition(BEGINS)
    if os.environ.get("SPANREEL_GOLDEN") == "write":
        PAGE.write_text(text + begins + "\n" + found, encoding="utf-8")
        agreed = "\n" + found
    assert agreed == "\n" + found, "SPANREEL_GOLDEN=write writes it"
