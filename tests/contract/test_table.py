"""The committed table is what the suite says, in the environment that runs here."""

from __future__ import annotations

from conftest import ROOT
from contract import table
from contract.scenarios import LISTED


def test_the_committed_table_is_what_the_suite_says() -> None:
    # A case that fails fails this run by itself, so here all are as if they had passed.
    page = ROOT / "docs" / "contract.md"
    assert page.read_text() == table.written(page.read_text(), table.ALL), "make docs-contract writes it"


def test_every_scenario_s_file_is_listed() -> None:
    files = {file.stem for file in (ROOT / "tests" / "contract" / "scenarios").glob("[a-z]*.py")}
    assert files == {listed.name for listed in LISTED}
