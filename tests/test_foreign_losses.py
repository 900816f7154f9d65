"""What another recorder lost stays lost through conversion and replay: it is no identity, and no answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import cases
from spanreel.model import Fidelity
from spanreel.replay.matching.matching import LiveTool, Match, Miss, MissReason, match_tool
from spanreel.replay.matching.recording import Recording
from spanreel.session import Session
from spanreel_collector.conversion.convert import convert_files


def span(number: int, name: str, parent: int | None = 1, **attributes: Any) -> dict[str, Any]:
    """A span of the GenAI conventions, as somebody else writes it."""
    start = 1_800_000_000_000_000_000 + number * 1000
    written = {
        "traceId": f"{0xABC:032x}",
        "spanId": f"{number:016x}",
        "name": name,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + 500),
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
    }
    return written if parent is None else {**written, "parentSpanId": f"{parent:016x}"}


def converted(folder: Path, *spans: dict[str, Any]) -> Session:
    """The session of these spans."""
    request = {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "somebody"}, "spans": list(spans)}]}]}
    file = folder / "traces.jsonl"
    file.write_text(json.dumps(request) + "\n")
    conversion = convert_files([str(file)])
    assert not conversion.faults
    (session,) = conversion.sessions
    return session


def run(folder: Path, *calls: tuple[Any, Any]) -> Session:
    """A run of somebody's agent with these tool calls: arguments and result."""
    tools = [
        span(
            number,
            "execute_tool look",
            1,
            **{
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "look",
                "gen_ai.tool.call.arguments": json.dumps(arguments),
                "gen_ai.tool.call.result": json.dumps(result),
            },
        )
        for number, (arguments, result) in enumerate(calls, 2)
    ]
    agent = span(1, "invoke_agent a", None, **{"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"})
    return converted(folder, agent, *tools)


MARKERS = [
    ({"key": "[REDACTED]"}, Fidelity.REDACTED),
    ({"key": "__REDACTED__"}, Fidelity.REDACTED),
    ({"key": "[Scrubbed due to 'key']"}, Fidelity.REDACTED),
    ({"key": "<truncated>"}, Fidelity.TRUNCATED),
    ({"key": {"deep": "[MaxDepth]"}}, Fidelity.TRUNCATED),
    ({"key": "long …[truncated]"}, Fidelity.TRUNCATED),
    ({"key": "text [TRUNCATED - Content exceeds 60KB limit]"}, Fidelity.TRUNCATED),
    ({"key": "<not serializable>"}, Fidelity.TRUNCATED),
]


@pytest.mark.parametrize(("lost", "state"), MARKERS, ids=json.dumps)
def test_lost_arguments_are_no_identity(lost: Any, state: Fidelity, tmp_path: Path) -> None:
    session = run(tmp_path, (lost, "first"), (lost, "second"), ({"key": "whole"}, "third"))
    (one,) = session.runs
    assert [call.fidelity.get("arguments") for call in one.tool_calls()] == [state, state, None]
    reasons = [reason for reason in session.replay.reasons if reason.place.endswith("/arguments")]
    assert [reason.reason for reason in reasons] == [f"tool 'look': arguments {state.value}"] * 2
    scope = next(scope for scope in Recording(session).all_scopes() if scope.tools)
    # The very marker, fed back by an agent that was told it, is no more than an unknown value.
    missed = match_tool(scope, LiveTool("look", lost))
    assert isinstance(missed, Miss)
    assert isinstance(match_tool(scope, LiveTool("look", {"key": "whole"})), Match)


@pytest.mark.parametrize(("lost", "state"), MARKERS, ids=json.dumps)
def test_a_lost_result_is_never_served(lost: Any, state: Fidelity, tmp_path: Path) -> None:
    session = run(tmp_path, ({"key": 1}, lost))
    (call,) = session.runs[0].tool_calls()
    assert call.fidelity["result"] is state
    assert not session.replay.eligible
    scope = next(scope for scope in Recording(session).all_scopes() if scope.tools)
    missed = match_tool(scope, LiveTool("look", {"key": 1}))
    assert isinstance(missed, Miss)
    assert missed.reason is MissReason.LOSSY


def test_what_mastra_redacted_itself_is_not_eligible() -> None:
    for name in ("mastra_getTrace_core1.51_obs1.17.9.json", "mastra_otel_exporter1.4.0_spans.json"):
        (session,) = convert_files([str(cases(f"imports/{name}"))]).sessions
        states = {call.name: dict(call.fidelity) for one in session.runs for call in one.tool_calls()}
        assert states["lookupOrder"]["result"] is Fidelity.REDACTED
        assert states["failTool"]["arguments"] is Fidelity.REDACTED
        places = {reason.place.rpartition("/")[2] for reason in session.replay.reasons}
        assert {"arguments", "result"} <= places
        assert not session.replay.eligible


def test_040_what_cannot_be_recovered_is_marked(tmp_path: Path) -> None:
    text = cases("reports/040-adk-not-serializable.jsonl").read_text()
    whole = tmp_path / "whole.jsonl"
    whole.write_text(text)
    request = json.loads(text)
    spans = request["resourceSpans"][0]["scopeSpans"][0]["spans"]
    request["resourceSpans"][0]["scopeSpans"][0]["spans"] = [one for one in spans if not one["spanId"].endswith("5")]
    cut = tmp_path / "cut.jsonl"
    cut.write_text(json.dumps(request))
    found = []
    for file in (whole, cut):
        (session,) = convert_files([str(file)]).sessions
        (call,) = [call for one in session.runs for call in one.tool_calls()]
        found.append((call.result, call.fidelity["result"]))
    assert found[0] == ({"query": "docs", "total": 2, "items": ["a", "b"]}, Fidelity.RECONSTRUCTED)
    assert found[1][1] is Fidelity.TRUNCATED
