"""Requests that are written at once say what the SDK's encoder says, byte by byte."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.attributes import BoundedAttributes
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from receivers import grpc_receiver, http_receiver
from spanreel.exporters import write_at_once
from spanreel.otlp_bytes import encode

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=200) | st.sampled_from(["", "x" * 63, "x" * 20_000])
SCALARS = TEXT | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.binary(max_size=9)
VALUES = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(TEXT, SCALARS, max_size=3)
ATTRIBUTES = st.dictionaries(TEXT.filter(bool), VALUES, max_size=8)
STATES = st.none() | st.just(TraceState([("vendor", "a"), ("other", "b")]))
CONTEXTS = st.builds(
    SpanContext,
    st.integers(1, 2**128 - 1),
    st.integers(1, 2**64 - 1),
    st.booleans(),
    st.just(TraceFlags(1)),
    STATES,
)
TIMES = st.integers(0, 2**63)


def counted(attributes: dict[str, Any], dropped: int) -> BoundedAttributes:
    made = BoundedAttributes(attributes={}, immutable=False)
    made._dict.update(attributes)
    made.dropped = dropped
    return made


SPANS = st.builds(
    ReadableSpan,
    name=TEXT,
    context=CONTEXTS,
    parent=st.none() | CONTEXTS,
    resource=st.builds(Resource, st.just({"service.name": "a"}), st.sampled_from(["", "https://schema.test"])),
    attributes=ATTRIBUTES | st.builds(counted, ATTRIBUTES, st.integers(0, 300)),
    events=st.lists(st.builds(Event, TEXT, ATTRIBUTES, TIMES), max_size=2),
    links=st.lists(st.builds(Link, CONTEXTS, ATTRIBUTES), max_size=2),
    kind=st.sampled_from(SpanKind),
    status=st.sampled_from(
        [Status(), Status(StatusCode.OK), Status(StatusCode.ERROR, "failed"), Status(StatusCode.ERROR)]
    ),
    start_time=TIMES,
    end_time=TIMES,
    instrumentation_scope=st.none()
    | st.builds(InstrumentationScope, TEXT, st.none() | TEXT, st.none() | TEXT, st.none() | st.just({"a": 1})),
)


@pytest.mark.slow
@given(st.lists(SPANS, max_size=4))
def test_a_request_is_what_the_sdk_would_have_sent(spans: list[ReadableSpan]) -> None:
    assert encode(spans) == encode_spans(spans).SerializePartialToString()


def test_what_otlp_has_no_value_for_is_refused() -> None:
    context = SpanContext(1, 2, is_remote=False)
    with pytest.raises(TypeError, match="no value for object"):
        encode([ReadableSpan("a", context, attributes={"a": object()})])  # type: ignore[dict-item]  # that is the test


@pytest.mark.parametrize("kind", [HttpExporter, GrpcExporter])
def test_the_sdk_s_exporter_writes_with_our_encoder_and_others_of_its_kind_do_not(kind: type[Any]) -> None:
    endpoint = "http://127.0.0.1:9/v1/traces"
    exporter, other = kind(endpoint=endpoint), kind(endpoint=endpoint)
    assert write_at_once(exporter)
    assert not {"export", "_translate_data", "_serialize_spans"} & vars(other).keys()
    exporter.shutdown()
    other.shutdown()


def test_an_exporter_of_another_kind_stays_as_it_is() -> None:
    assert not write_at_once(ConsoleSpanExporter())


@pytest.mark.parametrize(
    ("kind", "receiver", "path"), [(HttpExporter, http_receiver, "/v1/traces"), (GrpcExporter, grpc_receiver, "")]
)
def test_what_is_sent_is_the_request(kind: type[Any], receiver: Any, path: str) -> None:
    span = ReadableSpan(
        "a", SpanContext(1, 2, is_remote=False), attributes={"long": "x" * 900}, start_time=1, end_time=2
    )
    with receiver() as received:
        exporter = kind(endpoint=received.endpoint + path)
        assert write_at_once(exporter)
        assert exporter.export([span]) is SpanExportResult.SUCCESS
        exporter.shutdown()
    assert bytes(received.data) == encode_spans([span]).SerializeToString()
