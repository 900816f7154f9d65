"""What all tests share."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

os.environ["SPANREEL_STRICT"] = "1"  # faults of ours, which users see as a log line, are raised under test
os.environ["SPANREEL_REDACTION_KEY"] = "of the tests alone " * 2  # none is made in the home of who runs them

# A slow machine is no failure, and CI must say the same about the same commit twice.
settings.register_profile(
    "spanreel",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
    print_blob=True,
)
settings.register_profile("check", settings.get_profile("spanreel"), max_examples=10)  # of `make check`
settings.load_profile("spanreel")

ROOT = Path(__file__).resolve().parent.parent

CASES_ABSENT = "shared cases not here"
POSTGRESQL_ABSENT = "PostgreSQL is not installed"
CHROMIUM_ABSENT = "chromium is not installed"
PERMITTED_SKIPS = (CASES_ABSENT,)
"""How the reason of a skip may begin in CI. Any other skipped test is a promise not kept, and fails the run.

What is absent from a developer's machine `.ci/run` installs.
"""


KINDS = ("hand_written", "openai_agents", "langgraph", "pydantic_ai")
FAST_KIND, *SLOW_KINDS = KINDS


@pytest.fixture(params=[FAST_KIND, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW_KINDS)])
def kind(request: pytest.FixtureRequest) -> Any:
    """One kind of agent after the other, as `kinds` makes them; imported here, since not every environment has all."""
    return getattr(importlib.import_module("kinds"), request.param)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """A running PostgreSQL, as `postgres.Cluster`; imported here, since not every environment has its client."""
    with importlib.import_module("postgres").running_cluster() as running:
        yield running


def cases(name: str) -> Path:
    """The folder (or file) of this name among the shared cases; skips the test where they are absent."""
    folder = Path(os.environ.get("SPANREEL_CASES", ROOT.parent / "shared" / "cases"))
    if not (folder / name).exists():
        pytest.skip(f"{CASES_ABSENT}: {name} is looked for in ../shared/cases or $SPANREEL_CASES")
    return folder / name


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run in CI that skipped a test for a reason which is not permitted."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not os.environ.get("CI") or hasattr(session.config, "workerinput"):
        return
    for report in reporter.stats.get("skipped", []):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if not reason.startswith(PERMITTED_SKIPS):
            reporter.write_line(
                f"\nskipped, and CI permits no skip for this reason: {report.nodeid}: {reason}", red=True
            )
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
