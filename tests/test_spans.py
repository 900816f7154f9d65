"""Spans of our own pipeline, beside those of the SDK: they say the same, and end as them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags, Tracer

from spanreel.own_tracer import Given, OwnTracer, begin
from spanreel.settings import Settings
from spanreel.spans import OwnSpan, say
from spanreel.tracing import TracerSource

Work = Callable[[Tracer], None]
OTHER = SpanContext(1, 2, is_remote=True, trace_flags=TraceFlags(1))


def said(span: ReadableSpan) -> dict[str, Any]:
    """All that a span says but its ids, its times and whose it is."""
    attributes = span.attributes or {}
    return {
        "name": span.name,
        "kind": span.kind,
        "status": (span.status.status_code, span.status.description),
        "attributes": {key: list(value) if isinstance(value, tuple) else value for key, value in attributes.items()},
        "links": [(link.context, dict(link.attributes or {})) for link in span.links],
        "events": [
            (event.name, {key: value for key, value in (event.attributes or {}).items() if "stacktrace" not in key})
            for event in span.events
        ],
        "flags": span.context.trace_flags if span.context else None,
        "is root": span.parent is None,
    }


def by_the_sdk(work: Work) -> list[dict[str, Any]]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    work(provider.get_tracer("spanreel"))
    return [said(span) for span in exporter.get_finished_spans()]


def by_ours(work: Work) -> list[dict[str, Any]]:
    exporter = InMemorySpanExporter()
    source = TracerSource(Settings(), exporters=[exporter])
    work(source.tracer_for()[0])
    assert source.flush()
    source.shutdown(1)
    return [said(span) for span in exporter.get_finished_spans()]


def attributes_of_all_kinds(tracer: Tracer) -> None:
    span = tracer.start_span("first", kind=SpanKind.CLIENT, attributes={"a": 1, "b": ("x", "y")})
    span.set_attribute("text", "words")
    span.set_attributes({"yes": True, "number": 1.5, "list": [1, 2]})
    span.set_attribute("none of OTLP's", object())  # type: ignore[arg-type]
    span.update_name("second")
    span.end()
    span.set_attribute("too", "late")
    span.update_name("third")
    span.set_status(StatusCode.ERROR)
    span.add_event("late")
    span.end()


def events_links_and_a_status(tracer: Tracer) -> None:
    span = tracer.start_span("x", links=[Link(OTHER, {"why": "because"})])
    span.add_event("seen", {"by": "me"})
    span.add_link(OTHER, {"also": 1})
    span.set_status(Status(StatusCode.ERROR, "bad"))
    span.set_status(StatusCode.UNSET)
    span.set_status(StatusCode.OK)
    span.set_status(StatusCode.ERROR, "too late")
    span.end()


def a_block_that_raises(tracer: Tracer) -> None:
    with pytest.raises(ValueError, match="broken"), tracer.start_span("x"):
        raise ValueError("broken")


def a_current_span_that_raises(tracer: Tracer) -> None:
    with pytest.raises(ValueError, match="broken"), tracer.start_as_current_span("outer"):
        with tracer.start_as_current_span("inner", attributes={"a": 1}):
            pass
        raise ValueError("broken")


def an_exception_that_is_noted(tracer: Tracer) -> None:
    span = tracer.start_span("x")
    span.record_exception(KeyError("k"), {"more": 1}, escaped=True)
    span.end()


def below_a_span_of_another_process(tracer: Tracer) -> None:
    tracer.start_span("x", trace.set_span_in_context(trace.NonRecordingSpan(OTHER))).end()


def begun_and_asked_when_they_leave(tracer: Tracer) -> None:
    above = begin(tracer, Given("above", {"a": 1}), Context(), SpanKind.CLIENT)
    below = begin(tracer, Given("below", {"b": 2}), trace.set_span_in_context(above))
    say(above, {"a": 10})
    say(above, {"more": 3})
    below.end()
    above.end()


def begun_and_asked_before(tracer: Tracer) -> None:
    span: Any = begin(tracer, Given("first", {"a": 1}), Context())
    assert (span.name, span.attributes["a"]) == ("first", 1)
    span.update_name("second")
    span.set_attribute("b", 2)
    say(span, {"c": 3})
    span.end()


def begun_and_renamed_before(tracer: Tracer) -> None:
    span = begin(tracer, Given("first", {"a": 1}), Context())
    span.update_name("second")
    span.end()


def begun_below_a_span_of_another_process(tracer: Tracer) -> None:
    begin(tracer, Given("x", {}), trace.set_span_in_context(trace.NonRecordingSpan(OTHER))).end()


@pytest.mark.parametrize(
    "work",
    [
        attributes_of_all_kinds,
        begun_and_asked_when_they_leave,
        begun_and_asked_before,
        begun_and_renamed_before,
        begun_below_a_span_of_another_process,
        events_links_and_a_status,
        a_block_that_raises,
        a_current_span_that_raises,
        an_exception_that_is_noted,
        below_a_span_of_another_process,
    ],
)
def test_our_spans_say_what_the_sdks_would(work: Work) -> None:
    assert by_ours(work) == by_the_sdk(work)


class Deciding(Sampler):
    """Notes what it is asked, and has one attribute said more."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def should_sample(
        self,
        parent_context: Any,
        trace_id: int,
        name: str,
        kind: Any = None,
        attributes: Any = None,
        *_: Any,
        **__: Any,
    ) -> SamplingResult:
        self.asked.append((name, kind, dict(attributes)))
        return SamplingResult(Decision.RECORD_AND_SAMPLE, {**attributes, "sampled": True})

    def get_description(self) -> str:
        return "deciding"


class Taken:
    """Where spans go that have ended."""

    def __init__(self) -> None:
        self.spans: list[OwnSpan] = []

    def take(self, span: OwnSpan) -> None:
        self.spans.append(span)

    def announce(self, run: OwnSpan, begun: Callable[[], OwnSpan], size: int) -> None:
        self.spans.append(begun())


def test_a_sampler_that_asks_is_told_at_once_what_a_span_says() -> None:
    taken = Taken()
    sampler = Deciding()
    provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
    tracer = OwnTracer(provider, InstrumentationScope("test"), taken)
    begin(tracer, Given("chat m", {"a": 1}), Context(), SpanKind.CLIENT).end()
    assert sampler.asked == [("chat m", SpanKind.CLIENT, {"a": 1})]
    assert [(span.name, span.attributes) for span in taken.spans] == [("chat m", {"a": 1, "sampled": True})]


def test_the_limits_of_the_environment_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SPAN_EVENT_COUNT_LIMIT", "2")
    monkeypatch.setenv("OTEL_SPAN_LINK_COUNT_LIMIT", "1")
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "3")
    monkeypatch.setenv("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "5")

    def work(tracer: Tracer) -> None:
        span = tracer.start_span("x")
        for number in range(5):
            span.set_attribute(f"key{number}", "a long value")
            span.add_event("event", {"long": "a long value"})
            span.add_link(OTHER)
        span.end()

    (ours,) = by_ours(work)
    assert ours["attributes"] == {"key0": "a lon", "key1": "a lon", "key2": "a lon"}
    assert ours["events"] == [("event", {"long": "a lon"})] * 2
    assert len(ours["links"]) == 1


@pytest.mark.parametrize(
    ("sampler", "argument"), [("always_off", ""), ("traceidratio", "0"), ("parentbased_always_off", "")]
)
def test_a_sampler_of_the_environment_decides(sampler: str, argument: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", sampler)
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", argument)
    spans: list[Span] = []
    assert by_ours(lambda tracer: spans.append(tracer.start_span("x"))) == []
    assert (spans[0].is_recording(), spans[0].get_span_context().trace_flags.sampled) == (False, False)
    assert spans[0].get_span_context().is_valid


def test_below_a_parent_that_is_not_sampled_nothing_is(monkeypatch: pytest.MonkeyPatch) -> None:
    unsampled = trace.NonRecordingSpan(SpanContext(1, 2, is_remote=True))
    spans: list[Span] = []
    by_ours(lambda tracer: spans.append(tracer.start_span("x", trace.set_span_in_context(unsampled))))
    assert not spans[0].is_recording()
    assert spans[0].get_span_context().trace_id == 1


def test_the_sdk_switched_off_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    assert by_ours(lambda tracer: tracer.start_span("x").end()) == []
