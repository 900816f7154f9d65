"""Recorders of frameworks that know agents and tools only: what they recorded cannot be replayed without the models."""

from __future__ import annotations

import pytest

from otlp_lines import agent, session, tool
from spanreel.session import Session


def called(scope: str) -> Session:
    """An agent that called a tool, and of whose model nothing is told."""
    return session(agent(1, "clerk", seconds=9), tool(2, "look", {}, "25", 1), scope=scope)


@pytest.mark.parametrize(
    "scope",
    [
        "opentelemetry.instrumentation.llamaindex",
        "opentelemetry.instrumentation.genai.agno",
        "semantic_kernel.functions.kernel_function",
    ],
)
def test_an_agent_of_a_framework_that_called_tools_had_a_model(scope: str) -> None:
    (reason,) = called(scope).replay.reasons
    assert "no call of its model was recorded" in reason.reason


def test_an_agent_by_hand_may_have_none() -> None:
    assert called("demo").replay.eligible
