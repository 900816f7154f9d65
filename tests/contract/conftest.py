"""Which scenarios each case is for, and the table of what the suite said (``CONTRACT_TABLE=docs/contract.md``)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from contract import table
from contract.case import case_of
from contract.scenarios import installed

TABLE = "CONTRACT_TABLE"

_outcomes: dict[str, bool] = {}
"""The cases of this process that have run, by the name and the parameters of the test, and whether they passed."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A case for each scenario that is installed and can do what it needs; in each way where it asks for a way."""
    case = case_of(metafunc.function)
    if case is None:
        return
    given = [(scenario, way) for _, scenario in installed() for way in case.ways_of(scenario)]
    ids = [case.id_of(scenario, way) for scenario, way in given]
    if case.by_way:
        metafunc.parametrize(("scenario", "way"), given, ids=ids)
    else:
        metafunc.parametrize("scenario", [scenario for scenario, _ in given], ids=ids)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep what was said, for the table."""
    name = report.nodeid.rpartition("::")[2]
    if report.when == "call" or report.failed:
        _outcomes[name] = report.passed and _outcomes.get(name, True)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the table where one is asked for."""
    if os.environ.get(TABLE) and not hasattr(session.config, "workerinput"):
        file = Path(session.config.rootpath, os.environ[TABLE])
        passed = {name for name, good in _outcomes.items() if good}
        file.write_text(table.written(file.read_text() if file.exists() else table.HEAD, passed))
