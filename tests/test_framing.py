"""The ways in which export requests are written one after the other, and protobuf by itself."""

from __future__ import annotations

import base64
import gzip
import io
import json
import struct
import sys
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
from opentelemetry.proto.trace.v1.trace_pb2 import Status, TracesData

from otlp_lines import BEGAN, GENAI, TRACE, agent, chat, log, request, said
from spanreel_collector.conversion.convert import convert_files
from spanreel_collector.otlp import DEEPEST_VALUE, read_request
from spanreel_collector.otlp.protobuf_form import read_message
from spanreel_collector.sources import framing, unpacking
from spanreel_collector.sources.files import read_body, read_file
from spanreel_collector.span import Batch, RawSpan

ZSTD = zstandard.ZstdCompressor()
DOCUMENTS: list[Any] = [
    request(agent(1, "demo"), scope=GENAI),
    log("note", {}, 1, "kept"),
    {"resourceMetrics": []},
    request(chat(2, [said("user", "Hi")], said("assistant", "Ho"), 1), scope=GENAI),
]


# -- the same in protobuf --------------------------------------------------------------------------------------------


def any_value(value: dict[str, Any]) -> AnyValue:
    kind: str
    content: Any
    kind, content = next(iter(value.items()), ("none", None))
    match kind:
        case "stringValue":
            return AnyValue(string_value=content)
        case "intValue":
            return AnyValue(int_value=int(content))
        case "doubleValue":
            return AnyValue(double_value=content)
        case "boolValue":
            return AnyValue(bool_value=content)
        case "arrayValue":
            message = AnyValue()
            message.array_value.values.extend(any_value(item) for item in content["values"])
            return message
        case "kvlistValue":
            message = AnyValue()
            message.kvlist_value.values.extend(key_values(content["values"]))
            return message
    return AnyValue()


def key_values(pairs: list[dict[str, Any]]) -> list[KeyValue]:
    return [KeyValue(key=pair["key"], value=any_value(pair["value"])) for pair in pairs]


def traces_message(document: dict[str, Any]) -> TracesData:
    message = TracesData()
    for resource in document["resourceSpans"]:
        read = message.resource_spans.add()
        read.resource.attributes.extend(key_values(resource["resource"]["attributes"]))
        for scope in resource["scopeSpans"]:
            group = read.scope_spans.add()
            group.scope.name = scope["scope"]["name"]
            for span in scope["spans"]:
                group.spans.add(
                    trace_id=bytes.fromhex(span["traceId"]),
                    span_id=bytes.fromhex(span["spanId"]),
                    parent_span_id=bytes.fromhex(span.get("parentSpanId", "")),
                    name=span["name"],
                    kind=span["kind"],
                    start_time_unix_nano=int(span["startTimeUnixNano"]),
                    end_time_unix_nano=int(span["endTimeUnixNano"]),
                    attributes=key_values(span["attributes"]),
                )
    return message


def logs_message(document: dict[str, Any]) -> LogsData:
    message = LogsData()
    record = document["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]
    group = message.resource_logs.add().scope_logs.add()
    group.scope.name = GENAI
    group.log_records.add(
        time_unix_nano=int(record["timeUnixNano"]),
        trace_id=bytes.fromhex(record["traceId"]),
        span_id=bytes.fromhex(record["spanId"]),
        event_name=record["eventName"],
        body=any_value(record["body"]),
    )
    return message


def metrics_message() -> bytes:
    message = ExportMetricsServiceRequest()
    metric = (
        message.resource_metrics.add().scope_metrics.add().metrics.add(name="sixteen.letters.", description="eight ch")
    )
    metric.gauge.data_points.add(as_int=3)
    return bytes(message.SerializeToString())


def in_protobuf(document: dict[str, Any]) -> bytes:
    if "resourceSpans" in document:
        return bytes(traces_message(document).SerializeToString())
    return bytes(logs_message(document).SerializeToString()) if "resourceLogs" in document else metrics_message()


def lengths(*records: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(record)) + record for record in records)


JSON = [json.dumps(document).encode() for document in DOCUMENTS]
PROTOBUF = [in_protobuf(document) for document in DOCUMENTS]
FRAMINGS = {
    "JSON lines": b"\n".join(JSON) + b"\n",
    "protobuf after lengths": lengths(*PROTOBUF),
    "zstd frames of JSON": lengths(*map(ZSTD.compress, JSON)),
    "zstd frames of protobuf": lengths(*map(ZSTD.compress, PROTOBUF)),
    "one zstd stream of JSON lines": ZSTD.compress(b"\n".join(JSON)),
    "one zstd stream of protobuf": ZSTD.compress(lengths(*PROTOBUF)),
    "zstd streams one after the other": b"".join(ZSTD.compress(line + b"\n") for line in JSON),
    "gzip of JSON lines": gzip.compress(b"\n".join(JSON)),
    "gzip of protobuf after lengths": gzip.compress(lengths(*PROTOBUF)),
    "gzip of zstd frames": gzip.compress(lengths(*map(ZSTD.compress, PROTOBUF))),
    "several gzips one after the other": b"".join(gzip.compress(line + b"\n") for line in JSON),
}


def read_all(path: Path | str) -> Batch:
    batches = list(read_file(str(path)))
    return Batch(
        tuple(span for batch in batches for span in batch.spans),
        tuple(record for batch in batches for record in batch.logs),
        tuple(fault for batch in batches for fault in batch.faults),
        {"metrics": sum(batch.skipped.get("metrics", 0) for batch in batches)},
    )


def content_of(span: RawSpan) -> tuple[Any, ...]:
    return (span.trace_id, span.span_id, span.parent_id, span.name, span.kind, span.start, span.end, span.attributes)


@pytest.mark.parametrize("name", FRAMINGS)
def test_every_framing_gives_the_same_spans_logs_and_metrics(name: str, tmp_path: Path) -> None:
    path = tmp_path / "traces"
    path.write_bytes(FRAMINGS[name])
    plain = [read_request(document, "x") for document in DOCUMENTS]
    batch = read_all(path)
    assert batch.faults == ()
    assert [content_of(span) for span in batch.spans] == [content_of(span) for one in plain for span in one.spans]
    assert [span.origin.scope for span in batch.spans] == [GENAI, GENAI]
    assert [(record.event_name, record.body, record.trace_id) for record in batch.logs] == [("note", "kept", TRACE)]
    assert batch.skipped == {"metrics": 1}
    assert [span.place for span in batch.spans][-1] == f"{path}:4, span 0"


@pytest.mark.parametrize("name", FRAMINGS)
def test_every_framing_cut_anywhere_gives_what_was_whole(name: str, tmp_path: Path) -> None:
    path = tmp_path / "traces"
    for cut in range(0, len(FRAMINGS[name]), 37):
        path.write_bytes(FRAMINGS[name][:cut])
        batch = read_all(path)
        assert len(batch.spans) <= 2
        assert len(batch.faults) <= 1


@pytest.mark.parametrize("pack", [gzip.compress, ZSTD.compress], ids=["gzip", "zstd"])
def test_a_packed_file_that_is_cut_off_or_damaged_gives_what_was_whole_before(pack: Any, tmp_path: Path) -> None:
    path = tmp_path / "traces"
    first, second = pack(JSON[0] + b"\n"), pack(JSON[3] + b"\n")
    for content, spans, faults in (
        (first + second[: len(second) // 2], 1, 1),
        (first + second[:20] + b"\xff" * 60, 1, 1),
        (first + second + b"rest", 2, 1),
        (first + second + b"\0" * 50, 2, 0),
        (pack(JSON[0])[:-20], 0, 1),
        (pack(JSON[0]) + pack(JSON[3]), 2, 0),
    ):
        path.write_bytes(content)
        batch = read_all(path)
        assert (len(batch.spans), len(batch.faults)) == (spans, faults)
        assert all(fault.reason.startswith("cannot be read on: ") for fault in batch.faults)


@pytest.mark.slow
def test_a_file_that_is_unpacked_needs_little_memory_whatever_it_says(tmp_path: Path) -> None:
    path = tmp_path / "traces"
    for packed in (gzip.compress(b" " * 50_000_000 + b"\n"), ZSTD.compress(b" " * 50_000_000 + b"\n")):
        path.write_bytes(packed)
        assert read_all(path) == Batch(skipped={"metrics": 0})


def pretty(*documents: Any) -> bytes:
    return b"\n".join(json.dumps(document, indent=2).encode() for document in documents)


@pytest.mark.parametrize(
    "content",
    [
        JSON[0] + JSON[3],
        JSON[0] + b" " + JSON[3] + b"\n",
        JSON[0] + b",\n" + JSON[3] + b",\n",
        JSON[0] + b"\r" + JSON[3],
        b"\x1e" + JSON[0] + b"\n\x1e" + JSON[3] + b"\n",
        b"INFO: " + JSON[0] + b"\n2026-11-30T10:00:00Z stdout F " + JSON[3],
        b"data: " + JSON[0] + b"\n\ndata: " + JSON[3] + b"\n\n",
        b"[" + JSON[0] + b"," + JSON[3] + b"]",
        pretty([DOCUMENTS[0], DOCUMENTS[3]]),
        pretty(DOCUMENTS[0], DOCUMENTS[3]),
    ],
)
def test_documents_need_no_line_each_nor_begin_it(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "traces"
    path.write_bytes(content)
    batch = read_all(path)
    assert ([span.name for span in batch.spans], batch.faults) == (["invoke_agent demo", "chat gpt-5"], ())


def test_of_documents_printed_for_people_the_cut_one_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "traces"
    path.write_bytes(pretty(DOCUMENTS[0], DOCUMENTS[3])[:-20])
    batch = read_all(path)
    lines = pretty(DOCUMENTS[0]).count(b"\n") + 2
    assert ([span.name for span in batch.spans], [fault.place for fault in batch.faults]) == (
        ["invoke_agent demo"],
        [f"{path}:{lines}"],
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"PK\x03\x04 and more", "a zip archive: unpack it first"),
        (b"BZh91AY&SY and more", "compressed with bzip2: unpack it first"),
        ("{}".encode("utf-16"), "text in UTF-16: write it anew in UTF-8"),
        (b"Something else.", "not JSON: expected value at line 1 column 1"),
        (b'{"log": "x"}', "not an OTLP export request: an object with ['log']"),
    ],
)
def test_what_is_no_telemetry_is_said_once_with_what_to_do(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "traces"
    path.write_bytes(content)
    batch = read_all(path)
    assert [fault.reason for fault in batch.faults] == [reason]


@pytest.mark.parametrize("content", [b"", b"\n\n  \n", b"\xef\xbb\xbf", b"[]", b"{}", b"\n" * 100])
def test_nothing_is_no_fault(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "traces"
    path.write_bytes(content)
    assert read_all(path) == Batch(skipped={"metrics": 0})


def in_base64(document: Any) -> Any:
    text = json.dumps(document)
    for identity in (TRACE, *(f"{number:016x}" for number in (1, 2))):
        text = text.replace(identity, base64.b64encode(bytes.fromhex(identity)).decode())
    return json.loads(text)


@pytest.mark.parametrize(
    "answer",
    [
        {"batches": in_base64(DOCUMENTS[0]["resourceSpans"] + DOCUMENTS[3]["resourceSpans"])},
        {"trace": in_base64({"resourceSpans": DOCUMENTS[0]["resourceSpans"] + DOCUMENTS[3]["resourceSpans"]})},
        {"result": {"resourceSpans": DOCUMENTS[0]["resourceSpans"] + DOCUMENTS[3]["resourceSpans"]}},
    ],
)
def test_what_tempo_and_jaeger_answered_with_is_read(answer: Any, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(json.dumps(answer).encode())
    batch = read_all(path)
    assert [(span.trace_id, span.parent_id) for span in batch.spans] == [(TRACE, None), (TRACE, f"{1:016x}")]
    assert batch.faults == ()


def test_scopes_by_their_old_name_are_read(tmp_path: Path) -> None:
    path = tmp_path / "traces"
    old = JSON[0].replace(b'"scopeSpans"', b'"instrumentationLibrarySpans"')
    path.write_bytes(old.replace(b'"scope"', b'"instrumentationLibrary"'))
    assert [span.origin.scope for span in read_all(path).spans] == [GENAI]


def test_a_cut_last_record_is_reported_by_number(tmp_path: Path) -> None:
    path = tmp_path / "traces.binpb"
    path.write_bytes(lengths(*PROTOBUF)[:-5])
    batch = read_all(path)
    size = len(PROTOBUF[3])
    assert len(batch.spans) == 1
    assert [(fault.place, fault.reason) for fault in batch.faults] == [
        (f"{path}:4", f"cut off after {size - 5} of {size} bytes")
    ]


def test_a_damaged_zstd_frame_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "traces.json"
    frames = [ZSTD.compress(record) for record in JSON]
    frames[0] = frames[0][:4] + b"\xff" * 20
    path.write_bytes(lengths(*frames))
    batch = read_all(path)
    assert ([span.name for span in batch.spans], len(batch.faults)) == (["chat gpt-5"], 1)
    assert batch.faults[0].place == f"{path}:1"
    assert "not a whole zstd frame" in batch.faults[0].reason


def test_standard_input_may_come_in_single_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Drops(io.RawIOBase):
        def __init__(self, data: bytes) -> None:
            self._left = data

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            piece, self._left = self._left[:1], self._left[1:]
            buffer[: len(piece)] = piece
            return len(piece)

    for name in ("JSON lines", "zstd frames of JSON", "one zstd stream of protobuf", "gzip of JSON lines"):
        standard_input = io.TextIOWrapper(io.BufferedReader(Drops(FRAMINGS[name])))
        monkeypatch.setattr(sys, "stdin", standard_input)
        batch = read_all("-")
        assert (len(batch.spans), batch.faults) == (2, ()), name


@pytest.mark.parametrize("lead", ["", "\n", "\r\n\n", "\ufeff", "\ufeff\n"])
def test_lines_may_begin_late(lead: str, tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_bytes(lead.encode() + b"\r\n".join(JSON))
    batch = read_all(path)
    assert (len(batch.spans), batch.faults) == (2, ())


@pytest.mark.parametrize("body", [JSON[0], PROTOBUF[0], gzip.compress(PROTOBUF[0]), ZSTD.compress(JSON[0])])
def test_a_body_of_a_request_is_a_file_by_itself(body: bytes, tmp_path: Path) -> None:
    path = tmp_path / "body"
    path.write_bytes(body)
    (session,) = convert_files([str(path)]).sessions
    assert session.runs[0].agent.name == "demo"


def test_what_is_larger_than_is_read_is_left_out_by_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(framing, "LARGEST", 2_000)
    long = json.dumps(request(agent(9, "x" * 3_000))).encode()
    for content in (
        b"\n".join([JSON[0], long, JSON[3]]),
        lengths(*map(ZSTD.compress, [JSON[0], long, JSON[3]])),
    ):
        path = tmp_path / "traces"
        path.write_bytes(content)
        batch = read_all(path)
        assert [span.name for span in batch.spans] == ["invoke_agent demo", "chat gpt-5"]
        assert [fault.place for fault in batch.faults] == [f"{path}:2"]
        assert "2000 are read" in batch.faults[0].reason
    path.write_bytes(lengths(PROTOBUF[0]) + b"\x7f\xff\xff\xff" + b"rest")
    batch = read_all(path)
    assert (len(batch.spans), len(batch.faults)) == (1, 1)


def test_without_zstandard_a_packed_file_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    path = tmp_path / "traces.zst"
    path.write_bytes(FRAMINGS["one zstd stream of JSON lines"])
    (fault,) = read_all(path).faults
    assert fault.reason == unpacking.NO_ZSTD


# -- protobuf --------------------------------------------------------------------------------------------------------


def test_a_span_that_cannot_be_decoded_costs_only_itself() -> None:
    message = traces_message(request(agent(1, "a"), agent(2, "b"), agent(3, "c"), agent(4, "d"), agent(5, "e")))
    spans = message.resource_spans[0].scope_spans[0].spans
    spans[0].trace_id = b"short"
    spans[1].span_id = b"\0" * 8
    value = spans[2].attributes.add(key="deep").value
    for _ in range(DEEPEST_VALUE + 2):
        value = value.array_value.values.add()
    data = message.SerializeToString().replace(b"invoke_agent d", b"invoke_agent \xff")
    batch = read_message(data, "body")
    assert [span.name for span in batch.spans] == ["invoke_agent e"]
    assert [fault.place for fault in batch.faults] == [f"body, span {number}" for number in range(4)]
    reasons = [fault.reason for fault in batch.faults]
    assert reasons[0] == "traceId is of 5 bytes, not 16"
    assert reasons[1] == "spanId is missing or all zeros"


def test_every_kind_of_value_comes_from_protobuf_as_it_is() -> None:
    message = TracesData()
    span = message.resource_spans.add().scope_spans.add().spans.add(trace_id=b"\xab" * 16, span_id=b"\xcd" * 8)
    span.attributes.add(key="bytes").value.bytes_value = b"\x00\x01\xff"
    span.attributes.add(key="none")
    span.attributes.add(key="list").value.array_value.values.add(int_value=-(2**63))
    span.attributes.add(key="map").value.kvlist_value.values.add(key="k").value.double_value = 1.5
    span.attributes.add(key="empty").value.array_value.SetInParent()
    span.events.add(name="e", time_unix_nano=BEGAN).attributes.add(key="yes").value.bool_value = True
    span.links.add(trace_id=b"u" * 16, span_id=b"v" * 8)
    span.status.code, span.status.message = Status.STATUS_CODE_ERROR, "boom"
    span.dropped_attributes_count = 3
    (read,) = read_message(message.SerializeToString(), "body").spans
    assert read.attributes == {
        "bytes": b"\x00\x01\xff",
        "none": None,
        "list": [-(2**63)],
        "map": {"k": 1.5},
        "empty": [],
    }
    assert [(event.name, event.time, event.attributes) for event in read.events] == [("e", BEGAN, {"yes": True})]
    assert [(link.trace_id, link.span_id) for link in read.links] == [((b"u" * 16).hex(), (b"v" * 8).hex())]
    assert (read.status, read.status_message, read.dropped_attributes, read.start, read.end) == (2, "boom", 3, 0, 0)


def test_spans_without_times_are_told_from_metrics() -> None:
    message = TracesData()
    message.resource_spans.add().scope_spans.add().spans.add(trace_id=b"\xab" * 16, span_id=b"\xcd" * 8, name="n")
    assert len(read_message(message.SerializeToString(), "body").spans) == 1
    assert read_message(metrics_message(), "body") == Batch(skipped={"metrics": 1})
    assert read_message(metrics_message(), "body", "metrics").skipped == {"metrics": 1}


def test_an_empty_request_is_good_and_no_request_is_refused() -> None:
    assert read_message(b"", "body") == Batch(skipped={})
    for nothing in (b"\x08\x01", b"\xff\xff", b"\x0a\xff", b"\x0b"):
        assert read_body(nothing, "protobuf", "body").faults


@given(st.binary(max_size=200), st.integers(0, 400), st.integers(0, 255))
def test_no_bytes_make_the_reader_fail(noise: bytes, place: int, byte: int) -> None:
    for data in (noise, PROTOBUF[0][:place] + noise + PROTOBUF[0][place:], PROTOBUF[1][:place] + bytes([byte])):
        batch = read_body(data, "protobuf", "x")
        assert len(batch.spans) <= 400
        list(framing.read_records(io.BytesIO(data)))
        list(framing.read_records(io.BytesIO(lengths(data))))
