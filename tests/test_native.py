"""Spans that a library makes of the same calls by itself: silenced by default and the tree whole, kept where asked."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import spanreel
from conftest import ROOT
from recording import Recording, recording
from spanreel.errors import SettingsError
from spanreel.native import SilencedSpan, live_span
from spanreel.settings import Native, Settings, read_settings

SCOPE = "com.anthropic.sdk.python"


def test_a_silenced_span_is_not_made_and_what_is_below_it_is_below_what_is_above_it() -> None:
    with recording() as rec:
        native = rec.provider.get_tracer(SCOPE)
        with rec.tracer.start_as_current_span("outer") as outer:
            with native.start_as_current_span("theirs") as theirs:
                assert not theirs.is_recording()
                assert theirs.get_span_context() == outer.get_span_context()
                assert live_span() is outer
                with native.start_as_current_span("theirs too"), rec.tracer.start_as_current_span("inner"):
                    pass
            theirs.set_attribute("ignored", 1)
    assert rec.tree() == ["outer", "  inner"]
    assert rec.named("outer").attributes == {}


def test_a_silenced_root_is_no_parent() -> None:
    with recording() as rec, rec.provider.get_tracer(SCOPE).start_as_current_span("theirs") as theirs:
        assert isinstance(theirs, SilencedSpan)
        with rec.tracer.start_as_current_span("inner"):
            pass
    assert rec.named("inner").parent is None


@pytest.mark.parametrize(("scope", "silenced"), [(f"{SCOPE}.vertex", True), (f"{SCOPE}er", False), ("httpx", False)])
def test_scopes_below_a_silenced_one_are_silenced_and_no_others(scope: str, silenced: bool) -> None:
    with recording() as rec:
        context = trace.set_span_in_context(trace.INVALID_SPAN)
        rec.provider.get_tracer(scope).start_span("theirs", context).end()
    assert ([span.name for span in rec.spans] == []) is silenced


def test_tracers_that_were_there_before_us_are_silenced_until_we_go() -> None:
    made = Recording()
    tracer = made.provider.get_tracer(SCOPE)
    tracer.start_span("before").end()
    spanreel.instrument(tracer_provider=made.provider)
    try:
        tracer.start_span("during").end()
    finally:
        spanreel.uninstrument()
    tracer.start_span("after").end()
    assert [span.name for span in made.spans] == ["before", "after"]


def test_spans_are_kept_where_asked() -> None:
    with recording(native="keep") as rec:
        rec.provider.get_tracer(SCOPE).start_span("theirs").end()
    with recording(settings=read_settings({"SPANREEL_NATIVE": "keep"})) as by_environment:
        by_environment.provider.get_tracer(SCOPE).start_span("theirs").end()
    assert [span.name for span in (*rec.spans, *by_environment.spans)] == ["theirs", "theirs"]


def test_where_nothing_is_recorded_nothing_is_silenced() -> None:
    with recording(settings=read_settings({"SPANREEL_CAPTURE": "off"})) as rec:
        rec.provider.get_tracer(SCOPE).start_span("theirs").end()
    assert [span.name for span in rec.spans] == ["theirs"]


def test_where_the_library_is_not_wrapped_it_is_not_silenced() -> None:
    with recording(only=["openai-agents"]) as rec:
        rec.provider.get_tracer(SCOPE).start_span("theirs").end()
    assert [span.name for span in rec.spans] == ["theirs"]


def test_a_wrong_word_names_the_right_ones() -> None:
    with pytest.raises(SettingsError, match="SPANREEL_NATIVE is 'drop'; allowed: silence, keep"):
        spanreel.instrument(native="drop")
    assert read_settings({}).native is Native.SILENCE
    assert Settings().native is Native.SILENCE


def test_a_span_of_ours_below_a_silenced_one_stays_in_the_trace_where_it_began() -> None:
    """The user's provider appears while a run of ours is under way on the private one."""
    exporter = InMemorySpanExporter()
    users = TracerProvider(shutdown_on_exit=False)
    users.add_span_processor(SimpleSpanProcessor(exporter))
    spanreel.instrument(settings=read_settings({"OTEL_TRACES_EXPORTER": "none"}))
    before = trace._TRACER_PROVIDER
    try:
        with spanreel.run(agent="outer"):
            run = trace.get_current_span()
            trace._TRACER_PROVIDER = users
            with users.get_tracer(SCOPE).start_as_current_span("theirs"), spanreel.tool("look", arguments={}) as call:
                tool = trace.get_current_span()
                call.result = "seen"
    finally:
        trace._TRACER_PROVIDER = before
        spanreel.uninstrument()
    assert exporter.get_finished_spans() == ()
    assert tool.get_span_context().trace_id == run.get_span_context().trace_id
    assert tool.parent.span_id == run.get_span_context().span_id  # type: ignore[attr-defined]  # an SDK span has one


SDK = """
    import sys, anthropic, httpx2
    from opentelemetry import trace
    sys.path[:0] = [TESTS]
    from recording import Recording
    from spanreel import testing

    def client(*script):
        transport = testing.ScriptedProvider(script).transport("httpx2")
        return anthropic.Anthropic(api_key="k", base_url="http://m", http_client=httpx2.Client(transport=transport))

    rec = Recording()
    trace.set_tracer_provider(rec.provider)
    ask = {"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": "Go."}]}
    early = client(testing.text("Hi."), testing.text("Hi."), testing.text("Hi."))
    early.messages.create(**ask)
    assert [span.instrumentation_scope.name for span in rec.spans] == ["com.anthropic.sdk.python"]
    rec.exporter.clear()

    import spanreel
    spanreel.instrument(native=NATIVE)

    @anthropic.beta_tool
    def look(city: str) -> str:
        "Look."
        rec.tracer.start_span("inside").end()
        return "sunny"

    early.messages.create(**ask)
    with early.messages.stream(**ask) as stream:
        stream.until_done()
    late = client(testing.tool_call("look", {"city": "Rome"}), testing.text("Sunny."))
    late.beta.messages.tool_runner(**ask, tools=[look]).until_done()
    spanreel.flush()
    print("\\n".join(rec.tree()))
"""


@pytest.mark.slow
@pytest.mark.parametrize("native", ["silence", "keep"])
def test_the_sdk_of_anthropic_makes_one_set_of_spans(native: str, tmp_path: Path) -> None:
    """With the user's global provider set, as in production; a client from before us, and one from after."""
    script = tmp_path / "script.py"
    head = f"TESTS, NATIVE = {str(ROOT / 'tests')!r}, {native!r}\n"
    script.write_text(head + textwrap.dedent(SDK))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    silenced = [
        "chat claude-x",
        "chat claude-x",
        "invoke_agent",
        "  agent_step 0",
        "    chat claude-x",
        "    execute_tool look",
        "      inside",
        "  agent_step 1",
        "    chat claude-x",
    ]
    kept = [
        "anthropic.messages.create",
        "  chat claude-x",
        "anthropic.messages.create",
        "  chat claude-x",
        "invoke_agent",
        "  anthropic.messages.tool_runner",
        "    anthropic.messages.create",
        "      chat claude-x",
        "    anthropic.custom_tool_use look",
        "      execute_tool look",
        "        inside",
        "    anthropic.messages.create",
        "      chat claude-x",
        "  agent_step 0",
        "  agent_step 1",
    ]
    assert done.stdout.splitlines() == (silenced if native == "silence" else kept)


def test_requests_are_the_same_bytes_silenced_or_not() -> None:
    sent: dict[str, list[Any]] = {"silence": [], "keep": []}
    for native, requests in sent.items():

        def respond(request: httpx2.Request, requests: list[Any] = requests) -> httpx2.Response:
            requests.append((request.method, str(request.url), request.content))
            body = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
            return httpx2.Response(200, content=json.dumps({**body, "usage": {"input_tokens": 1, "output_tokens": 1}}))

        with recording(native=native):
            http = httpx2.Client(transport=httpx2.MockTransport(respond))
            client = anthropic.Anthropic(api_key="k", base_url="http://model.test", http_client=http)
            client.messages.create(model="m", max_tokens=1, messages=[{"role": "user", "content": "Go."}])
    assert sent["silence"] == sent["keep"] != []
