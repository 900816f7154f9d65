"""Export requests taken apart and put together by trace: nothing is lost on the way, in either form."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

import otlp_lines
from conftest import cases
from otlp_doors import TRACE, request, span, spans_of
from spanreel_collector.otlp import read_request
from spanreel_collector.otlp.grouping import group
from spanreel_collector.otlp.items import KeptSignal
from spanreel_collector.otlp.json_parts import take_json_apart
from spanreel_collector.otlp.json_writing import write_json
from spanreel_collector.otlp.parts import Apart, Bounds, TooLarge, Undecodable, take_apart
from spanreel_collector.otlp.protobuf_form import read_message
from spanreel_collector.otlp.rewriting import rewrite
from spanreel_collector.span import RawLog, RawSpan

MUCH = 10**9


def bodies(apart: Apart) -> list[bytes]:
    return [each.body for each in group(apart.parts, MUCH)]


def placeless(found: Iterable[RawSpan | RawLog]) -> list[Any]:
    return sorted((repr(replace(one, place="")) for one in found), key=str)


def requests(folder: Path) -> list[tuple[str, Any]]:
    """Every export request of the dumps of agents in a folder."""
    found = []
    for path in sorted(folder.rglob("*.jsonl")):
        for number, line in enumerate(path.read_bytes().splitlines(), 1):
            document = json.loads(line)
            if isinstance(document, dict) and ("resourceSpans" in document or "resourceLogs" in document):
                found.append((f"{path.name}:{number}", document))
    return found


MEMBERS: tuple[tuple[KeptSignal, str], ...] = (("traces", "resourceSpans"), ("logs", "resourceLogs"))


@pytest.mark.slow
@pytest.mark.parametrize("source", ["ours", "shared"])
def test_every_dump_of_an_agent_says_the_same_after_it_was_taken_apart(source: str) -> None:
    found = requests(Path(__file__).with_name("golden") if source == "ours" else cases("dialects"))
    assert len(found) > 20
    for place, document in found:
        for signal, member in MEMBERS:
            if member not in document:
                continue
            before = read_request({member: document[member]}, place)
            apart = take_json_apart(json.dumps({member: document[member]}).encode(), signal, Bounds())
            after = [read_message(body, place, signal) for body in bodies(apart)]
            assert apart.refused == len(before.faults), place
            assert placeless(one for batch in after for one in batch.spans) == placeless(before.spans), place
            assert placeless(one for batch in after for one in batch.logs) == placeless(before.logs), place
            # And again in JSON, from protobuf: not one byte differs.
            for body in bodies(apart):
                written = json.dumps(write_json(body, signal)).encode()
                assert bodies(take_json_apart(written, signal, Bounds())) == [body], place


IDS = st.integers(1, 5).map(lambda number: number.to_bytes(16, "big"))


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), IDS), max_size=30))
def test_each_span_is_in_the_request_of_its_trace_under_what_it_stood_under(
    places: list[tuple[int, int, bytes]],
) -> None:
    asked = ExportTraceServiceRequest()
    for number in range(3):
        resource = asked.resource_spans.add(schema_url=f"resource {number}")
        for inner in range(3):
            resource.scope_spans.add(schema_url=f"scope {inner}")
    for number, (resource_number, scope_number, trace) in enumerate(places, 1):
        asked.resource_spans[resource_number].scope_spans[scope_number].spans.add().CopyFrom(span(number, trace))

    def standing(data: bytes) -> set[tuple[str, str, bytes, bytes]]:
        return {
            (resource.schema_url, scope.schema_url, one.trace_id, one.span_id)
            for resource in ExportTraceServiceRequest.FromString(data).resource_spans
            for scope in resource.scope_spans
            for one in scope.spans
        }

    groups = list(group(take_apart(asked.SerializeToString(), "traces", Bounds()).parts, MUCH))
    assert set().union(*(standing(each.body) for each in groups)) == standing(asked.SerializeToString())
    assert all({found[2] for found in standing(each.body)} == {each.trace} for each in groups)
    assert sum(len(each.identities) for each in groups) == len(places)


def say(**members: Any) -> Apart:
    """A request of one span that says this."""
    document = otlp_lines.request({**otlp_lines.span(1, "said", {}), **members})
    return take_json_apart(json.dumps(document).encode(), "traces", Bounds())


def said(**members: Any) -> Span:
    (body,) = bodies(say(**members))
    (one,) = spans_of(body)
    return one


def value(**kind: Any) -> Any:
    return said(attributes=[{"key": "k", "value": kind}]).attributes[0].value


def test_values_are_read_in_all_forms_that_exporters_write() -> None:
    assert value(intValue="-5").int_value == value(intValue=-5).int_value == value(int_value="-5").int_value == -5
    assert math.isnan(value(doubleValue="NaN").double_value)
    assert value(doubleValue="-Infinity").double_value == -math.inf
    assert value(doubleValue=1).double_value == 1.0
    assert value(boolValue=True).bool_value is value(boolValue="true").bool_value is True
    assert value(bytesValue="AAH/").bytes_value == value(bytesValue="AAH_").bytes_value == b"\x00\x01\xff"
    assert value(bytesValue="AAE").bytes_value == b"\x00\x01"
    assert [
        each.string_value for each in value(arrayValue={"values": [{"stringValue": "a"}, {}]}).array_value.values
    ] == [
        "a",
        "",
    ]
    pairs = value(kvlistValue={"values": [{"key": "a", "value": {"intValue": 1}}]}).kvlist_value.values
    assert (pairs[0].key, pairs[0].value.int_value) == ("a", 1)
    assert value(stringValue=None).WhichOneof("value") is None
    assert value(stringValue="").WhichOneof("value") == "string_value"
    assert said(kind="SPAN_KIND_SERVER").kind == said(kind=2).kind == said(kind="2").kind == 2
    assert said(startTimeUnixNano="").start_time_unix_nano == 0
    assert said(startTimeUnixNano=5.0).start_time_unix_nano == 5
    assert said(traceId=TRACE.hex().upper()).trace_id == TRACE
    assert said(flags=257, droppedAttributesCount=3).flags == 257
    assert said(links=[{"traceId": TRACE.hex(), "spanId": "b5" * 8}]).links[0].span_id == b"\xb5" * 8


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"name": 5}, "name is int, not text"),
        ({"attributes": {}}, "attributes is dict, not a list"),
        ({"attributes": [5]}, "expected an object, got int"),
        ({"attributes": [{"key": "k", "value": {"boolValue": "yes"}}]}, "boolValue is str, not true or false"),
        ({"attributes": [{"key": "k", "value": {"bytesValue": "*"}}]}, "bytesValue is not base64"),
        ({"attributes": [{"key": "k", "value": {"bytesValue": 5}}]}, "bytesValue is int, not base64"),
        ({"attributes": [{"key": "k", "value": {"intValue": "sk-secret"}}]}, "intValue is not a whole number"),
        ({"attributes": [{"key": "k", "value": {"intValue": 2**63}}]}, "intValue is out of range"),
        ({"attributes": [{"key": "k", "value": {"intValue": True}}]}, "intValue is bool, not a number"),
        ({"attributes": [{"key": "k", "value": {"doubleValue": "one"}}]}, "doubleValue is not a number"),
        ({"attributes": [{"key": "k", "value": {"doubleValue": []}}]}, "doubleValue is list, not a number"),
        ({"startTimeUnixNano": -1}, "startTimeUnixNano is out of range"),
        ({"kind": "SPAN_KIND_NONE"}, "kind is not a whole number"),
        ({"traceId": 5}, "traceId '5' is not 32 hex digits"),
        ({"status": "ok"}, "expected an object, got str"),
    ],
)
def test_a_span_that_says_what_no_span_can_is_refused_by_the_name_of_the_member(
    members: dict[str, Any], reason: str
) -> None:
    document = otlp_lines.request(otlp_lines.span(1, "good", {}), {**otlp_lines.span(2, "bad", {}), **members})
    apart = take_json_apart(json.dumps(document).encode(), "traces", Bounds())
    (fault,) = apart.faults
    assert fault.place == "resource 0, scope 0, span 1"
    assert fault.reason.startswith(reason)
    assert "secret" not in fault.reason
    assert sum(len(part.items) for part in apart.parts) == 1


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"resource": 5}, "resource 1"),
        ({"resource": {"attributes": [{"key": 5}]}}, "resource 1"),
        ({"scopeSpans": [{"scope": {"name": 5}, "spans": []}]}, "resource 1, scope 0"),
        ({"scopeSpans": [5]}, "resource 1, scope 0"),
    ],
)
def test_a_resource_or_scope_that_cannot_be_read_costs_itself(changes: dict[str, Any], place: str) -> None:
    good = otlp_lines.request(otlp_lines.span(1, "good", {}))["resourceSpans"][0]
    apart = take_json_apart(json.dumps({"resourceSpans": [good, {**good, **changes}]}).encode(), "traces", Bounds())
    assert [fault.place for fault in apart.faults] == [place]
    assert sum(len(part.items) for part in apart.parts) == 1


def field(number: int, content: bytes) -> bytes:
    assert len(content) < 128
    return bytes((number << 3 | 2, len(content))) + content


@pytest.mark.parametrize(
    ("bad", "place"),
    [
        (field(1, field(1, b"\xff")), "resource 1"),  # what it says of itself cannot be decoded
        (field(1, b"\x0f"), "resource 1"),  # it cannot be taken apart
        (field(1, field(2, b"\x0f")), "resource 1, scope 0"),
        (field(1, field(2, field(1, b"\xff"))), "resource 1, scope 0"),
    ],
)
def test_a_resource_or_scope_in_protobuf_that_cannot_be_read_costs_itself(bad: bytes, place: str) -> None:
    apart = take_apart(request(span(1)) + bad, "traces", Bounds())
    assert [fault.place for fault in apart.faults] == [place]
    assert sum(len(part.items) for part in apart.parts) == 1


@pytest.mark.parametrize(
    "data", [b"\x00\x00", b"\x0a", b"\x0a\xff", b"\x0a\x05a", b"\x08\xff" + b"\xff" * 10, b"\x0b\x0c"]
)
def test_what_is_no_message_is_undecodable(data: bytes) -> None:
    with pytest.raises(Undecodable):
        take_apart(data, "traces", Bounds())


def test_no_more_is_taken_than_the_bounds_say() -> None:
    many = request(*(span(number) for number in range(1, 12)))
    with pytest.raises(TooLarge, match="more than 10 "):
        take_apart(many, "traces", Bounds(items=10))
    with pytest.raises(TooLarge, match="more than 3 "):
        take_apart(request(span(1)) * 4, "traces", Bounds(groups=3))
    with pytest.raises(TooLarge, match="more than 3 "):
        take_apart(field(1, field(2, b"") * 4), "traces", Bounds(groups=3))
    with pytest.raises(TooLarge, match="more than 3 "):
        take_json_apart(b'{"resourceSpans":[{},{},{},{}]}', "traces", Bounds(groups=3))
    with pytest.raises(TooLarge, match="more than 1 "):
        document = otlp_lines.request(otlp_lines.span(1, "a", {}), otlp_lines.span(2, "b", {}))
        take_json_apart(json.dumps(document).encode(), "traces", Bounds(items=1))
    bad = take_apart(request(span(1), *(span(number, trace=b"") for number in range(2, 9))), "traces", Bounds(faults=3))
    assert (len(bad.faults), bad.refused) == (3, 7)


def test_what_is_changed_on_the_way_keeps_its_trace_and_what_cannot_be_changed_is_refused() -> None:
    apart = take_apart(request(span(1), span(2), service="mine"), "traces", Bounds())

    def change(document: Any) -> Any:
        if document.get("name") == "span 2":
            return {"name": 5}
        return json.loads(json.dumps(document).replace("mine", "yours").replace("span 1", "span one"))

    changed = rewrite(apart, "traces", change)
    (body,) = bodies(changed)
    assert [one.name for one in spans_of(body)] == ["span one"]
    assert b"yours" in body
    assert (changed.refused, changed.faults[0].place) == (1, "span 0000000000000002")
    broken = rewrite(apart, "traces", lambda document: {"resource": 5} if "resource" in document else document)
    assert (broken.refused, broken.parts) == (2, ())


def test_a_log_record_is_the_same_only_where_resource_and_scope_are() -> None:
    def identity(resource: str, scope: str) -> bytes:
        record = {"timeUnixNano": "1", "body": {"stringValue": "x"}}
        scopes = [{"scope": {"name": scope}, "logRecords": [record]}]
        document = {"resourceLogs": [{"resource": {"attributes": [{"key": resource}]}, "scopeLogs": scopes}]}
        kept: KeptSignal = "logs"
        (part,) = take_json_apart(json.dumps(document).encode(), kept, Bounds()).parts
        return part.items[0].identity

    assert identity("a", "b") == identity("a", "b")
    assert len({identity("a", "b"), identity("a", "c"), identity("c", "b")}) == 3
