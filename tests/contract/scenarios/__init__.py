"""The frameworks under contract: a line each. Where a library is not installed, its scenario is not there."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass

from contract.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Listed:
    """A scenario's file, the module it needs to be importable, and the environment that it belongs to."""

    name: str
    module: str
    environment: str


LISTED = (
    Listed("hand_written", "openai", "a"),
    Listed("openai_agents", "agents", "a"),
    Listed("anthropic_runner", "anthropic", "a"),
    Listed("langgraph", "langchain", "a"),
    Listed("pydantic_ai", "pydantic_ai", "a"),
)


def installed() -> list[tuple[Listed, Scenario]]:
    """The scenarios whose library is installed here, in their order."""
    found = []
    for listed in LISTED:
        if importlib.util.find_spec(listed.module) is not None:
            found.append((listed, load(listed.name)))
    return found


def load(name: str) -> Scenario:
    """The scenario of this name."""
    scenario: Scenario = importlib.import_module(f"contract.scenarios.{name}").SCENARIO
    return scenario
