"""OTLP/JSON, as anybody writes it, into raw spans and logs; and files of it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import cases
from otlp_lines import SECOND, TRACE, any_value, log, request, span, span_id
from spanreel_collector.otlp import DEEPEST_VALUE, read_request
from spanreel_collector.sources.documents import read_line
from spanreel_collector.sources.files import read_file
from spanreel_collector.span import Batch, RawSpan


def one_span(**fields: Any) -> RawSpan:
    batch = read_request(request({**span(1, "work", {}), **fields}), "here")
    assert batch.faults == ()
    (read,) = batch.spans
    return read


def read_all(path: Path) -> Batch:
    batches = list(read_file(str(path)))
    return Batch(
        spans=tuple(one for batch in batches for one in batch.spans),
        logs=tuple(one for batch in batches for one in batch.logs),
        faults=tuple(one for batch in batches for one in batch.faults),
        skipped={"metrics": sum(batch.skipped.get("metrics", 0) for batch in batches)},
    )


@pytest.mark.parametrize(
    "value",
    ["text", True, 7, -(2**63), 0.5, [], ["a", [1, {"b": None}]], {"a": {"b": ["c"]}}, None],
)
def test_every_kind_of_value_is_decoded(value: Any) -> None:
    assert one_span(attributes=[{"key": "it", "value": any_value(value)}]).attributes == {"it": value}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ({"bytesValue": "AAH/"}, b"\x00\x01\xff"),
        ({"bytesValue": "AAH_"}, b"\x00\x01\xff"),
        ({"intValue": 7}, 7),
        ({"int_value": "7"}, 7),
        ({"doubleValue": "Infinity"}, float("inf")),
        ({"kvlistValue": {}}, {}),
        ({"arrayValue": {}}, []),
        ({}, None),
        (None, None),
    ],
)
def test_the_looser_forms_of_values_are_decoded_too(written: Any, value: Any) -> None:
    assert one_span(attributes=[{"key": "it", "value": written}]).attributes == {"it": value}


def test_missing_fields_take_the_defaults_of_protobuf() -> None:
    batch = read_request(
        {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": TRACE, "spanId": "b" * 16}]}]}]}, "x"
    )
    (read,) = batch.spans
    assert (read.parent_id, read.name, read.kind, read.start, read.end, read.status) == (None, "", 0, 0, 0, 0)
    assert (read.attributes, read.origin.scope, read.origin.resource) == ({}, "", {})


def test_enum_names_snake_case_and_upper_case_ids_are_understood() -> None:
    written = {
        "trace_id": TRACE.upper(),
        "span_id": "AB" * 8,
        "parent_span_id": "",
        "name": "work",
        "kind": "SPAN_KIND_CLIENT",
        "start_time_unix_nano": 5,
        "status": {"code": "STATUS_CODE_ERROR", "message": "boom"},
        "dropped_attributes_count": 3,
    }
    (read,) = read_request({"resource_spans": [{"scope_spans": [{"spans": [written]}]}]}, "here").spans
    assert (read.trace_id, read.span_id, read.parent_id) == (TRACE, "ab" * 8, None)
    assert (read.kind, read.start, read.status, read.status_message) == (3, 5, 2, "boom")
    assert read.dropped_attributes == 3


def test_events_and_links_are_read() -> None:
    read = one_span(
        events=[{"name": "exception", "timeUnixNano": "5", "attributes": [{"key": "a", "value": {"intValue": 1}}]}],
        links=[{"traceId": "c" * 32, "spanId": "d" * 16}, {"traceId": "c" * 32}],
    )
    assert [(event.name, event.time, event.attributes) for event in read.events] == [("exception", 5, {"a": 1})]
    assert [(link.trace_id, link.span_id) for link in read.links] == [("c" * 32, "d" * 16)]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"traceId": "pRAAAAAAAAAAAAAAAAAAGg=="}, "traceId 'pRAAAAAAAAAAAAAAAAAAGg=='"),
        ({"spanId": "abcd"}, "spanId 'abcd' is not 16 hex digits"),
        ({"spanId": None}, "spanId is missing"),
        ({"traceId": "0" * 32}, "traceId is missing or all zeros"),
        ({"parentSpanId": "uRAAAAAAAAE="}, "parentSpanId"),
        ({"startTimeUnixNano": "soon"}, "startTimeUnixNano is not a whole number"),
        ({"startTimeUnixNano": -1}, "startTimeUnixNano -1 is out of range"),
        ({"attributes": [{"key": 5}]}, "an attribute's key is int"),
        ({"attributes": {"gen_ai.operation.name": "chat"}}, "attributes are dict, not a list"),
        ({"attributes": [{"key": "a", "value": {"newValue": 1}}]}, "attribute 'a': unknown kind of value 'newValue'"),
        ({"attributes": [{"key": "a", "value": {"bytesValue": "%"}}]}, "attribute 'a': bytesValue is not base64"),
        ({"attributes": [{"key": "a", "value": {"doubleValue": {}}}]}, "attribute 'a': doubleValue is dict"),
        ({"attributes": [{"key": "a", "value": {"doubleValue": "x"}}]}, "attribute 'a': doubleValue 'x'"),
        ({"attributes": [{"key": "a", "value": {"intValue": "9" * 5000}}]}, "attribute 'a': intValue"),
        ({"attributes": [{"key": "a", "value": 7}]}, "attribute 'a': expected an AnyValue, got int"),
    ],
)
def test_a_bad_span_costs_only_itself_and_is_reported_with_place_and_reason(fields: Any, reason: str) -> None:
    good = span(2, "good", {})
    batch = read_request(request({**span(1, "bad", {}), **fields}, good), "file:3")
    assert [read.name for read in batch.spans] == ["good"]
    (fault,) = batch.faults
    assert fault.place == "file:3, span 0"
    assert reason in fault.reason


def test_a_bad_resource_costs_its_spans_and_no_others() -> None:
    bad = {"resource": {"attributes": [{"key": 1}]}, "scopeSpans": [{"spans": [span(1, "a", {}), "no span"]}]}
    batch = read_request(
        {"resourceSpans": [bad, "nothing", {"scopeSpans": ["nothing"]}, *request(span(2, "b", {}))["resourceSpans"]]},
        "x",
    )
    assert [read.name for read in batch.spans] == ["b"]
    assert [fault.place for fault in batch.faults] == ["x, span 0", "x, span 1"]


@pytest.mark.parametrize("document", [[], 7, "text", None, {"what": 1}])
def test_what_is_no_export_request_is_refused(document: Any) -> None:
    with pytest.raises(ValueError, match="not an OTLP export request"):
        read_request(document, "here")


def test_bare_resource_spans_and_logs_are_accepted() -> None:
    assert len(read_request(request(span(1, "a", {}))["resourceSpans"][0], "x").spans) == 1
    assert len(read_request(log("it", {}, 1)["resourceLogs"][0], "x").logs) == 1


def test_a_log_knows_its_event_from_the_field_or_from_the_attribute() -> None:
    (new,) = read_request(log("gen_ai.choice", {}, 1, body={"index": 0}), "x").logs
    (old,) = read_request(log("", {"event.name": "gen_ai.choice"}, 1), "x").logs
    assert (new.event_name, new.body, new.span_id) == ("gen_ai.choice", {"index": 0}, span_id(1))
    assert (old.event_name, old.body) == ("gen_ai.choice", None)


def nested(levels: int) -> str:
    return '{"arrayValue":{"values":[' * levels + '{"stringValue":"x"}' + "]}}" * levels


@pytest.mark.parametrize("levels", [DEEPEST_VALUE + 1, 60, 2_000, 50_000])
def test_a_value_nested_too_deeply_costs_its_span_only(levels: int) -> None:
    deep = json.dumps(span(1, "deep", {})).replace('"attributes": []', '"attributes":[{"key":"a","value":VALUE}]')
    text = json.dumps(request(span(2, "good", {"b": "}]{["}))).replace('"spans": [', f'"spans": [{deep},', 1)
    batch = read_line(text.replace("VALUE", nested(levels)).encode(), "file:1")
    assert [read.name for read in batch.spans] == ["good"]
    assert ["nested more than 40" in fault.reason for fault in batch.faults] == [True]


def test_a_value_nested_as_deeply_as_is_read_survives() -> None:
    text = json.dumps(request(span(1, "deep", {"a": 1}))).replace('{"intValue": "1"}', nested(DEEPEST_VALUE))
    batch = read_line(text.encode(), "file:1")
    assert batch.faults == ()
    assert len(batch.spans) == 1


def test_half_a_surrogate_pair_becomes_the_replacement_character() -> None:
    text = json.dumps(request(span(1, "a", {"k": "VALUE"}))).replace("VALUE", "x\\ud800y")
    (read,) = read_line(text.encode(), "file:1").spans
    assert read.attributes == {"k": "x\ufffdy"}


# -- files -----------------------------------------------------------------------------------------------------------


def lines(*texts: str, end: str = "\n") -> bytes:
    return "".join(text + end for text in texts).encode()


A, B = json.dumps(request(span(1, "a", {}))), json.dumps(request(span(2, "b", {})))


@pytest.mark.parametrize(
    "content",
    [
        lines(A, B),
        lines(A, "", "  ", B, end="\r\n"),
        b"\xef\xbb\xbf" + lines(A, B),
        gzip.compress(lines(A, B)),
        gzip.compress(lines(A)) + gzip.compress(lines(B)),
        lines(A, B).rstrip(),
    ],
)
def test_files_are_read_whatever_their_ends_and_compression(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "traces"
    path.write_bytes(content)
    batch = read_all(path)
    assert [read.name for read in batch.spans] == ["a", "b"]
    assert batch.faults == ()


def test_a_cut_last_line_is_reported_by_number_and_loses_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_bytes(lines(A, B)[:-30])
    batch = read_all(path)
    assert [read.name for read in batch.spans] == ["a"]
    (fault,) = batch.faults
    assert fault.place == f"{path}:2"
    assert "cut off after" in fault.reason


def test_a_gzip_file_cut_in_the_middle_gives_what_was_whole(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl.gz"
    path.write_bytes(gzip.compress(lines(*[A] * 50, json.dumps({"resourceSpans": []})))[:-12])
    batch = read_all(path)
    assert batch.spans
    assert "cannot be read on" in batch.faults[-1].reason


@pytest.mark.parametrize("name", ["absent.jsonl", "."])
def test_a_file_that_cannot_be_opened_is_a_fault(tmp_path: Path, name: str) -> None:
    (fault,) = read_all(tmp_path / name).faults
    assert "cannot be opened" in fault.reason


def test_standard_input_is_read_under_the_name_of_a_dash(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_bytes(lines(A, "no JSON"))
    with path.open("rb") as opened:
        monkeypatch.setattr("sys.stdin", type("Stdin", (), {"buffer": opened}))
        batches = list(read_file("-"))
    assert [read.name for batch in batches for read in batch.spans] == ["a"]
    assert [fault.place for batch in batches for fault in batch.faults] == ["standard input:2"]


def test_the_mix_of_the_collectors_file_exporter_is_read(tmp_path: Path) -> None:
    report = cases("reports/029-file-exporter-mix.jsonl").read_bytes()
    for content in (report, gzip.compress(report), report.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + report):
        path = tmp_path / "mix"
        path.write_bytes(content)
        batch = read_all(path)
        assert (len(batch.spans), len(batch.logs), batch.skipped["metrics"]) == (3, 1, 1)
        assert [fault.place for fault in batch.faults] == [f"{path}:7"]


@pytest.mark.parametrize(
    ("report", "names", "faults"),
    [
        ("022-poison-span-batch", 3, 2),
        ("023-omitted-defaults", 3, 0),
        ("026-base64-and-case-ids", 2, 1),
    ],
)
def test_the_reports_of_bad_spans_come_out_right(report: str, names: int, faults: int) -> None:
    batch = read_all(cases(f"reports/{report}.jsonl"))
    assert (len(batch.spans), len(batch.faults)) == (names, faults)


def test_nested_values_and_json_text_say_the_same() -> None:
    batch = read_all(cases("reports/025-anyvalue-nesting.jsonl"))
    raw = {key: value for read in batch.spans for key, value in read.attributes.items() if key.startswith("demo.")}
    assert raw["demo.raw"] == b"\x00\x01\xff"
    assert raw["demo.empty_list"] == []


# -- anything --------------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    ["traceId", "spanId", "name", "kind", "attributes", "events", "status", "startTimeUnixNano", "links"]
)


@given(st.dictionaries(FIELDS, JSON), JSON)
def test_no_span_and_no_document_makes_the_reader_fail(fields: dict[str, Any], anything: Any) -> None:
    batch = read_request(request({**span(1, "a", {}), **fields}, span(2, "good", {})), "x")
    assert batch.spans[-1].name == "good"
    assert len(batch.spans) + len(batch.faults) == 2
    for key in ("resourceSpans", "scopeSpans", "resourceLogs"):
        read_request({key: anything}, "x")


@given(st.binary(max_size=200))
def test_no_line_makes_the_reader_fail(text: bytes) -> None:
    batch = read_line(text, "x")
    assert batch.spans == ()


def test_times_are_nanoseconds() -> None:
    assert one_span().end - one_span().start == SECOND // 2
