"""Whose provider a span goes to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping

import pytest
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import NonRecordingSpan, SpanContext, StatusCode, TraceFlags, set_span_in_context
from opentelemetry.util.types import AttributeValue

from spanreel import conventions as names
from spanreel import wire
from spanreel.digest import make_key
from spanreel.keyring import OneKey
from spanreel.model import Fidelity
from spanreel.records import ToolRecord
from spanreel.redaction import make_policy
from spanreel.settings import Settings
from spanreel.spans import OwnSpan
from spanreel.tracing import TracerSource


class Kept:
    size = 100

    def __init__(self, record: ToolRecord) -> None:
        self.record = record

    def attributes(self) -> Mapping[str, AttributeValue]:
        return wire.write(self.record)


class Users:
    """A user's provider with an exporter of the user's."""

    def __init__(self, **provided: object) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False, **provided)  # type: ignore[arg-type]
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    def names(self) -> list[str]:
        return [span.name for span in self.exporter.get_finished_spans()]

    def become_global(self, monkeypatch: pytest.MonkeyPatch) -> None:
        # What `trace.set_tracer_provider` does, but so that the test can undo it.
        monkeypatch.setattr(trace, "_TRACER_PROVIDER", self.provider)


@pytest.fixture
def own() -> Iterator[tuple[TracerSource, InMemorySpanExporter]]:
    exporter = InMemorySpanExporter()
    source = TracerSource(Settings(), exporters=[exporter])
    yield source, exporter
    source.shutdown(2)


Own = tuple[TracerSource, InMemorySpanExporter]


def end_span(source: TracerSource, name: str, context: Context | None = None) -> None:
    tracer, hold = source.tracer_for(context)
    span = tracer.start_span(name, context)
    hold(span, Kept(ToolRecord("t", {"password": "hunter2"}, SECRET)))
    span.end()


SECRET = "sk-proj-SENTINEL0123"


def own_names(own: Own) -> list[str]:
    assert own[0].flush()
    return [span.name for span in own[1].get_finished_spans()]


def test_without_a_users_provider_spans_go_through_ours_and_none_is_set(own: Own) -> None:
    end_span(own[0], "ours")
    assert own_names(own) == ["ours"]
    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
    (span,) = own[1].get_finished_spans()
    assert span.instrumentation_scope is not None
    assert (span.instrumentation_scope.name, span.instrumentation_scope.schema_url) == ("spanreel", "")
    assert span.instrumentation_scope.version


def test_from_the_moment_a_users_provider_appears_new_roots_go_through_it(
    own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = own[0]
    tracer, _ = source.tracer_for()
    root = tracer.start_span("root of ours")
    users = Users()
    users.become_global(monkeypatch)
    end_span(source, "child of ours", set_span_in_context(root))
    end_span(source, "new root")
    root.end()
    assert own_names(own) == ["child of ours", "root of ours"]
    assert users.names() == ["new root"]


def test_under_a_span_of_the_user_ours_go_through_the_users_provider(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    end_span(own[0], "ours")
    users = Users()
    users.become_global(monkeypatch)
    parent = users.provider.get_tracer("app").start_span("request")
    end_span(own[0], "ours inside", set_span_in_context(parent))
    parent.end()
    inside, request = users.exporter.get_finished_spans()
    assert (inside.name, inside.parent) == ("ours inside", request.context)
    assert own_names(own) == ["ours"]


def test_a_remote_parent_goes_to_the_user_where_there_is_one_else_to_us(
    own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = SpanContext(1, 2, is_remote=True, trace_flags=TraceFlags(1))
    context = set_span_in_context(NonRecordingSpan(remote))
    end_span(own[0], "before", context)
    users = Users()
    users.become_global(monkeypatch)
    end_span(own[0], "after", context)
    assert (own_names(own), users.names()) == (["before"], ["after"])


def test_an_explicit_provider_wins(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    others, explicit = Users(), Users()
    others.become_global(monkeypatch)
    source = TracerSource(Settings(), explicit.provider)
    end_span(source, "told where")
    assert (explicit.names(), others.names(), source.pipeline) == (["told where"], [], None)
    assert source.flush()
    source.shutdown()


def test_on_a_users_provider_what_leaves_is_redacted_before_the_span_ends() -> None:
    users = Users()
    tracer, hold = TracerSource(Settings(), users.provider).tracer_for()
    span = tracer.start_span("execute_tool t")
    span.set_status(StatusCode.ERROR, f"refused {SECRET}")
    hold(span, Kept(ToolRecord("t", {"password": "hunter2"}, SECRET)))
    span.end()
    (left,) = users.exporter.get_finished_spans()
    assert (left.attributes or {})[names.TOOL_CALL_ARGUMENTS] == '{"password":"[redacted]"}'
    assert (left.attributes or {})[names.TOOL_CALL_RESULT] == '"[redacted]"'
    assert left.status.description == "refused [redacted]"


def test_on_a_users_provider_a_span_says_by_which_key_what_it_began_with_was_redacted() -> None:
    users = Users()
    key = make_key(b"a key of the tests, and of nobody else")
    policy = make_policy("house/1", digests=OneKey(key))
    tracer, hold = TracerSource(Settings(redaction=policy), users.provider).tracer_for()
    user = "jane.doe" + "@mail.example"
    span = tracer.start_span("execute_tool t", attributes={names.USER_ID: user})
    hold(span, Kept(ToolRecord("t", {"a": 1}, "fine", fidelity={"arguments": Fidelity.RECONSTRUCTED})))
    span.end()
    (left,) = users.exporter.get_finished_spans()
    said = dict(left.attributes or {})
    assert user not in str(said)
    assert json.loads(str(said[names.REDACTION])) == {"policy": policy.label, "key_ids": [key.id]}
    marks = json.loads(str(said[names.FIDELITY]))
    assert marks == {names.TOOL_CALL_ARGUMENTS: "reconstructed", names.USER_ID: "redacted"}


def test_a_span_that_the_users_sampler_dropped_costs_nothing() -> None:
    users = Users(sampler=ALWAYS_OFF)
    tracer, hold = TracerSource(Settings(), users.provider).tracer_for()

    class Untouched:
        size = 0

        def attributes(self) -> Mapping[str, AttributeValue]:
            raise AssertionError("read though unsampled")

    hold(tracer.start_span("dropped"), Untouched())


def test_the_sampler_of_the_environment_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    source = TracerSource(Settings(), exporters=[InMemorySpanExporter()])
    tracer, _ = source.tracer_for()
    assert not tracer.start_span("x").is_recording()


def test_a_disabled_sdk_records_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    tracer, _ = TracerSource(Settings(disabled=True)).tracer_for()
    assert not tracer.start_span("x").is_recording()


def test_the_resource_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
    tracer, _ = TracerSource(Settings(), exporters=[InMemorySpanExporter()]).tracer_for()
    span = tracer.start_span("x")
    assert isinstance(span, OwnSpan)
    attributes = span.resource.attributes
    assert (attributes["service.name"], attributes["deployment.environment"]) == ("shop", "test")


@pytest.mark.slow
def test_a_provider_that_the_environment_names_is_not_loaded_by_us() -> None:
    script = """
        from spanreel.settings import Settings
        from spanreel.tracing import TracerSource
        from opentelemetry import trace
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
        source = TracerSource(Settings(), exporters=[InMemorySpanExporter()])
        source.tracer_for()[0].start_span("ours").end()
        assert source.pipeline is not None and trace._TRACER_PROVIDER is None
        loaded = trace.get_tracer_provider()
        hold = source.tracer_for()[1]
        assert hold == source._write_now, hold
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**os.environ, "OTEL_PYTHON_TRACER_PROVIDER": "sdk_tracer_provider"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
