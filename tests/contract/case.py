"""One case of the contract: a test function, as far as choosing scenarios for it and the table go."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from contract.scenario import WAYS, Ability, Scenario


@dataclass(frozen=True, slots=True)
class Case:
    """``by_way`` is whether the case runs the agent in each of ``ways`` that a scenario has, or in the first alone."""

    name: str
    needs: tuple[Ability, ...]
    ways: tuple[Ability, ...]
    by_way: bool

    @property
    def sentence(self) -> str:
        """What it says, for the table."""
        return self.name.removeprefix("test_").replace("_", " ")

    def ways_of(self, scenario: Scenario) -> list[Ability]:
        """The ways in which this case runs for the scenario; none where it cannot do what the case needs."""
        if any(ability in scenario.absent for ability in self.needs):
            return []
        possible = [way for way in self.ways if way not in scenario.absent]
        return possible if self.by_way else possible[:1]

    def id_of(self, scenario: Scenario, way: Ability) -> str:
        """The parameters' part of the test's id."""
        return f"{scenario.name}-{way.replace(' ', '_')}" if self.by_way else scenario.name


def case_of(function: Callable[..., Any]) -> Case | None:
    """The case that a test function is; None where it takes no trial."""
    parameters = inspect.signature(function).parameters
    if "trial" not in parameters:
        return None
    marks = getattr(function, "pytestmark", ())
    needs = tuple(ability for mark in marks if mark.name == "needs" for ability in mark.args)
    ways = tuple(way for mark in marks if mark.name == "ways" for way in mark.args)
    return Case(function.__name__, needs, ways or WAYS, "way" in parameters)
