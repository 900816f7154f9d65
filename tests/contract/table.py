"""The table of framework and case in docs/contract.md: written by a run of the suite, a section an environment."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Container, Iterable

from contract import test_contract
from contract.case import Case, case_of
from contract.scenario import Scenario
from contract.scenarios import installed

HEAD = """# What holds for every framework

`make docs-contract` writes the tables below from what the contract suite says (`tests/contract`). A cell names the ways
to run an agent in which the case holds: plain, async, stream, async stream. Each case runs the agent without spanreel
and with it, and compares what its caller, its model, its tools and the user's own hooks saw.
"""


class _Everything(Container[str]):
    def __contains__(self, name: object) -> bool:
        return True


ALL = _Everything()
"""As if every case had passed: what CI, which lets no failure pass, makes of the table."""


def written(text: str, passed: Container[str]) -> str:
    """The page, with the sections of the environments whose scenarios are installed here written anew."""
    found = re.findall(r"^## Environment (\w+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    sections: dict[str, str] = dict(found)
    here = installed()
    for name in sorted({listed.environment for listed, _ in here}):
        sections[name] = section([scenario for listed, scenario in here if listed.environment == name], passed)
    return HEAD + "".join(f"\n## Environment {name}\n{sections[name].rstrip()}\n" for name in sorted(sections))


def section(scenarios: Iterable[Scenario], passed: Container[str]) -> str:
    """A row a case, a column a framework; below it, what a framework cannot do, and why."""
    scenarios = list(scenarios)
    titles = [f"{scenario.name}<br>{scenario.distribution} {_version(scenario)}" for scenario in scenarios]
    lines = ["", f"| | {' | '.join(titles)} |", f"|---|{'---|' * len(scenarios)}"]
    for case in cases():
        cells = [_cell(case, scenario, passed) for scenario in scenarios]
        lines.append(f"| {case.sentence} | {' | '.join(cells)} |")
    lines.append("")
    for scenario in scenarios:
        lines += [f"- {scenario.name}, no {ability}: {reason}." for ability, reason in scenario.absent.items()]
    return "\n".join([*lines, ""])


def cases() -> list[Case]:
    """The suite's cases, in the order of the file."""
    found = [case_of(function) for name, function in vars(test_contract).items() if name.startswith("test_")]
    return [case for case in found if case is not None]


def _cell(case: Case, scenario: Scenario, passed: Container[str]) -> str:
    ways = case.ways_of(scenario)
    if not ways:
        return "-"
    good = [way for way in ways if f"{case.name}[{case.id_of(scenario, way)}]" in passed]
    if len(good) < len(ways):
        return "**no**"
    return ", ".join(good) if case.by_way else "yes"


def _version(scenario: Scenario) -> str:
    return importlib.metadata.version(scenario.distribution)
