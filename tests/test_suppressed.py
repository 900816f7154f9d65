"""Calls that the program, or another instrumentation, wants no spans of."""

from __future__ import annotations

from pathlib import Path

import openai
import pytest
from opentelemetry import context as otel
from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, set_value

import spanreel
from recording import attribute, recording
from spanreel import testing
from spanreel.replay.judging.verdict import Verdict
from spanreel.replay.running.runner import replay
from spanreel_collector.conversion.convert import convert_files


@spanreel.run(agent="asker")
def ask(base_url: str, *, suppressed: bool) -> str | None:
    token = otel.attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, suppressed))
    try:
        with openai.OpenAI(base_url=base_url, api_key="none", max_retries=0) as client:
            asked = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hello?"}])
            return asked.choices[0].message.content
    finally:
        otel.detach(token)


def test_where_the_program_wants_no_spans_a_model_call_passes_untouched() -> None:
    with testing.ScriptedProvider([testing.text("Hello.")]) as provider, recording() as rec:
        assert ask(provider.base_url, suppressed=True) == "Hello."
    assert rec.of("chat") == []


def test_below_the_span_of_another_instrumentation_it_is_recorded_as_a_second_view() -> None:
    """Logfire suppresses spans there, against a second one of its own."""
    with testing.ScriptedProvider([testing.text("Hello.")]) as provider, recording() as rec:
        tracer = rec.provider.get_tracer("logfire.openai")
        with tracer.start_as_current_span("Chat Completion", attributes={"gen_ai.operation.name": "chat"}):
            assert ask.__wrapped__(provider.base_url, suppressed=True) == "Hello."  # type: ignore[attr-defined]
    (ours,) = [span for span in rec.of("chat") if span.name == "chat m"]
    assert attribute(ours, "spanreel.second_view") == "logfire.openai"


def test_a_replay_answers_it_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "traces.jsonl"
    monkeypatch.setenv("SPANREEL_FILE", str(file))
    monkeypatch.setenv("SPANREEL_LOG", "off")
    with testing.ScriptedProvider([testing.text("Hello.")]) as provider:
        spanreel.instrument()
        try:
            ask(provider.base_url, suppressed=False)
            assert spanreel.flush()
        finally:
            spanreel.uninstrument()
    (session,) = convert_files([str(file)]).sessions
    with replay(session, check=False) as played:
        assert ask("http://127.0.0.1:9/v1", suppressed=True) == "Hello."
    assert played.report is not None
    assert played.report.verdict is Verdict.PASS, played.report.reasons
