"""Whatever of ours fails at a framework's points or at a client, the agent does what it does without us."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from contract.scenario import Ability, Scenario
from contract.scenarios import installed
from contract.trial import Seen, Trial
from spanreel import testing, wrapping
from spanreel.clients import CLIENTS
from spanreel.frameworks import FRAMEWORKS

pytestmark = pytest.mark.slow

SCENARIOS = [scenario for _, scenario in installed() if scenario.name != "hand_written"]
POINTS = ("read", "read_result")
CLIENT = [
    *((Ability.ASYNC, name) for name in ("bind", "peek", "read_request", "read_headers", "read_body")),
    *((Ability.ASYNC_STREAM, name) for name in ("read_status", "pass_body")),
]
SCRIPT = [
    testing.answer(tool_calls=[testing.tool_call("weather", {"city": city}) for city in ("Paris", "Oslo")]),
    testing.text("Sunny in both."),
]


def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


@pytest.fixture
def failed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What of ours has failed; it is logged, as in production, and not raised."""
    monkeypatch.delenv("SPANREEL_STRICT")
    return []


def broken(name: str, failed: list[str]) -> Any:
    def fail(*_: Any, **__: Any) -> NoReturn:
        failed.append(name)
        raise ZeroDivisionError("a fault of ours")

    return fail


def settled(seen: Seen) -> Seen:
    """What was seen, where hooks told of two tools at the same time in an order of their own."""
    return replace(seen, told=tuple(sorted(seen.told)))


def check_unchanged(trial: Trial, failed: list[str], caplog: pytest.LogCaptureFixture) -> None:
    """Run the agent without us, and with us failing."""
    expected = settled(trial.go())
    assert failed == []
    with caplog.at_level(logging.ERROR), trial.recording():
        assert settled(trial.go()) == expected
    assert failed
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
    assert "a fault of ours" not in caplog.text


@pytest.mark.parametrize("name", POINTS)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_run_does_what_it_does_though_nothing_of_it_can_be_read(
    scenario: Scenario,
    name: str,
    failed: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    fault: dict[str, Any] = {name: broken(name, failed)}
    tables = [replace(one, points=tuple(replace(point, **fault) for point in one.points)) for one in FRAMEWORKS]
    monkeypatch.setattr(wrapping, "FRAMEWORKS", tuple(tables))
    check_unchanged(Trial(scenario, Ability.PLAIN, SCRIPT, [weather], tmp_path), failed, caplog)


@pytest.mark.parametrize(("way", "name"), CLIENT)
def test_a_run_does_what_it_does_though_no_exchange_can_be_read(
    way: Ability,
    name: str,
    failed: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    fault: dict[str, Any] = {name: broken(name, failed)}
    monkeypatch.setattr(wrapping, "CLIENTS", tuple(replace(client, **fault) for client in CLIENTS))
    (scenario,) = (one for one in SCENARIOS if one.name == "openai_agents")
    check_unchanged(Trial(scenario, way, SCRIPT, [weather], tmp_path), failed, caplog)
