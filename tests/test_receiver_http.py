"""OTLP over HTTP, by its socket: the answers of the specification, and what is kept."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import zstandard
from google.rpc.error_details_pb2 import BadRequest, RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

import otlp_lines
from otlp_doors import (
    JSON,
    PROTOBUF,
    TRACE,
    Doors,
    body,
    doors,
    log_request,
    request,
    span,
    status_of,
)
from spanreel_collector.otlp.parts import TooLarge, Undecodable
from spanreel_collector.receiver import bodies
from spanreel_collector.receiver.intake import Intake, IntakeLimits
from spanreel_collector.stores.records import NO_TRACE, Appended
from spanreel_collector.stores.store import StoreError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    with doors(tmp_path_factory.mktemp("door")) as made:
        yield made


ONE = request(span(1))
SPOKEN = otlp_lines.request(otlp_lines.span(1, "said", {"n": 1}))


def changed(**members: Any) -> dict[str, Any]:
    """A request in OTLP/JSON whose one span says this too."""
    document: dict[str, Any] = json.loads(json.dumps(SPOKEN))
    document["resourceSpans"][0]["scopeSpans"][0]["spans"][0].update(members)
    return document


def snake(value: Any) -> Any:
    if isinstance(value, dict):
        return {"".join(f"_{c.lower()}" if c.isupper() else c for c in key): snake(item) for key, item in value.items()}
    return [snake(item) for item in value] if isinstance(value, list) else value


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"stringValue": "x"}
    for _ in range(levels):
        value = {"arrayValue": {"values": [value]}}
    return {"key": "deep", "value": value}


def deep(levels: int) -> bytes:
    """A request of one span whose one attribute is nested so deep, written by hand: protobuf would not write it."""

    def field(number: int, content: bytes) -> bytes:
        size, length = len(content), b""
        while size >= 0x80:
            length, size = length + bytes((size & 0x7F | 0x80,)), size >> 7
        return bytes((number << 3 | 2,)) + length + bytes((size,)) + content

    value = field(1, b"x")
    for _ in range(levels):
        value = field(5, field(1, value))
    item = span(1).SerializeToString() + field(9, field(1, b"deep") + field(2, value))
    return field(1, field(2, field(2, item)))


BAD_TEXT = request(span(1, name="12345")).replace(b"12345", b"1234\xff")

# The matrix: what comes, and the status that the specification asks for.
MATRIX: dict[str, tuple[dict[str, Any], int]] = {
    "protobuf": ({"body": ONE}, 200),
    "content type with parameters": ({"body": ONE, "kind": "application/x-protobuf; charset=utf-8"}, 200),
    "content type in capitals": ({"body": ONE, "kind": "Application/X-Protobuf"}, 200),
    "json": ({"body": SPOKEN}, 200),
    "json with a charset": ({"body": SPOKEN, "kind": "application/json;charset=UTF-8"}, 200),
    "json, an unknown field and a number as number": ({"body": changed(later={"x": [1]}, startTimeUnixNano=5)}, 200),
    "json, an enum by name": ({"body": changed(kind="SPAN_KIND_CLIENT")}, 200),
    "json, numbers in no form of JSON": ({"body": changed(startTimeUnixNano="1_000")}, 400),
    "json, digits of another script": ({"body": changed(startTimeUnixNano="\uff15")}, 400),
    "json, a number with a sign": ({"body": changed(startTimeUnixNano="+5", endTimeUnixNano="6")}, 200),
    "json after a byte order mark": ({"body": b"\xef\xbb\xbf" + json.dumps(SPOKEN).encode(), "kind": JSON}, 200),
    "json in snake case": ({"body": snake(SPOKEN)}, 200),
    "json, null members": ({"body": changed(events=None, status=None, parentSpanId=None)}, 200),
    "json, an object without spans": ({"body": {}}, 200),
    "json, nothing": ({"body": b"", "kind": JSON}, 200),
    "json, of no request": ({"body": {"hello": 1}}, 400),
    "json, a list": ({"body": b"[]", "kind": JSON}, 400),
    "json, cut off": ({"body": json.dumps(SPOKEN).encode()[:-9], "kind": JSON}, 400),
    "json, spans of the wrong type": ({"body": {"resourceSpans": "x"}}, 400),
    "json, bytes that are no text": ({"body": b'{"resourceSpans":"\xff"}', "kind": JSON}, 400),
    "garbage": ({"body": b"garbage, and no protobuf"}, 400),
    "cut off": ({"body": ONE[:-5]}, 400),
    "protobuf of something else": ({"body": b"\x12\x03abc"}, 400),
    "empty": ({"body": b""}, 200),
    "text": ({"body": ONE, "kind": "text/plain"}, 415),
    "form": ({"body": ONE, "kind": "application/x-www-form-urlencoded"}, 415),
    "gzip": ({"body": gzip.compress(ONE), "content_encoding": "gzip"}, 200),
    "gzip of two members": ({"body": gzip.compress(ONE[:9]) + gzip.compress(ONE[9:]), "content_encoding": "gzip"}, 200),
    "gzip with padding": ({"body": gzip.compress(ONE) + b"\0" * 9, "content_encoding": "GZIP"}, 200),
    "bad gzip": ({"body": b"no gzip at all", "content_encoding": "gzip"}, 400),
    "gzip cut off": ({"body": gzip.compress(ONE)[:-9], "content_encoding": "gzip"}, 400),
    "gzip with a wrong sum": ({"body": gzip.compress(ONE)[:-8] + b"\1" * 8, "content_encoding": "gzip"}, 400),
    "gzip and then garbage": ({"body": gzip.compress(ONE) + b"garbage", "content_encoding": "gzip"}, 400),
    "zstd": ({"body": zstandard.compress(ONE), "content_encoding": "zstd"}, 200),
    "zstd of two frames": (
        {"body": zstandard.compress(ONE[:9]) + zstandard.compress(ONE[9:]), "content_encoding": "zstd"},
        200,
    ),
    "zstd after a frame to skip": (
        {"body": b"\x50\x2a\x4d\x18\x03\0\0\0abc" + zstandard.compress(ONE), "content_encoding": "zstd"},
        200,
    ),
    "zstd of frames to skip alone": (
        {"body": lambda: b"\x50\x2a\x4d\x18\0\0\0\0" * 200_000, "content_encoding": "zstd"},
        400,
    ),
    "zstd with a block of no kind": (
        {"body": b"\x28\xb5\x2f\xfd\x20\x01\x0f\0\0\0", "content_encoding": "zstd"},
        400,
    ),
    "zstd of a window too large": (
        {"body": b"\x28\xb5\x2f\xfd\x00\x90\x0b\0\0a", "content_encoding": "zstd"},
        400,
    ),
    "zstd without its sum": (
        {"body": zstandard.ZstdCompressor(write_checksum=True).compress(ONE)[:-4], "content_encoding": "zstd"},
        400,
    ),
    "zstd cut off": ({"body": zstandard.compress(ONE)[:-3], "content_encoding": "zstd"}, 400),
    "bad zstd": ({"body": b"no zstd at all", "content_encoding": "zstd"}, 400),
    "deflate": ({"body": zlib.compress(ONE), "content_encoding": "deflate"}, 200),
    "deflate cut off": ({"body": zlib.compress(ONE)[:-3], "content_encoding": "deflate"}, 400),
    "identity": ({"body": ONE, "content_encoding": "identity"}, 200),
    "gzip of what is packed no further": ({"body": gzip.compress(ONE), "content_encoding": "identity, gzip"}, 200),
    "brotli": ({"body": ONE, "content_encoding": "br"}, 415),
    "gzip twice": ({"body": gzip.compress(gzip.compress(ONE)), "content_encoding": "gzip, gzip"}, 415),
    "end before start": ({"body": request(span(1, end_time_unix_nano=1))}, 200),
    "no start": ({"body": request(span(1, start_time_unix_nano=0))}, 200),
    "the last moment there is": ({"body": request(span(1, end_time_unix_nano=2**64 - 1))}, 200),
    "json, the last moment there is": ({"body": changed(endTimeUnixNano=str(2**64 - 1))}, 200),
    "json, a moment too late": ({"body": changed(endTimeUnixNano=str(2**64))}, 400),
    "nested 400 deep": ({"body": deep(400)}, 400),
    "json nested 45 deep": ({"body": changed(attributes=[nested(45)])}, 400),
    "json nested 2000 deep": ({"body": b"[" * 2_000, "kind": JSON}, 400),
    "no UTF-8": ({"body": BAD_TEXT}, 400),
    "bomb": ({"body": lambda: gzip.compress(b"\0" * 256 * 2**20), "content_encoding": "gzip"}, 413),
    "zstd bomb": ({"body": lambda: zstandard.compress(b"\0" * 256 * 2**20), "content_encoding": "zstd"}, 413),
    "deflate bomb": ({"body": lambda: zlib.compress(b"\0" * 256 * 2**20), "content_encoding": "deflate"}, 413),
    "bomb of an unknown field": (
        {
            "body": lambda: gzip.compress(ONE + b"\xfa\x7f\x80\x80\x80\x20" + b"\0" * 2**26),
            "content_encoding": "gzip",
        },
        413,
    ),
    "json, ten million empty lists": ({"body": lambda: b"[" + b"[]," * 6_000_000 + b"[]]", "kind": JSON}, 413),
    "a hundred megabytes": ({"body": lambda: b"\0" * 100 * 2**20}, 413),
    "four million empty spans": (
        {"body": lambda: b"\x0a\x85\x80\x80\x04\x12\x80\x80\x80\x04" + b"\x12\0" * 2**22},
        413,
    ),
    "a million empty resources": ({"body": lambda: b"\x0a\0" * 2**20}, 413),
}


@pytest.mark.parametrize("case", [case for case in MATRIX if "gzip" in case or "deflate" in case or "bomb" in case])
def test_what_is_packed_is_unpacked_alike_by_either_library(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body, encoding = MATRIX[case][0]["body"], MATRIX[case][0].get("content_encoding", "")
    data = body() if callable(body) else body
    unpacked: list[bytes | type[Exception]] = []
    for library in (bodies.inflating, zlib):  # the first is zlib where there is no isal
        monkeypatch.setattr(bodies, "inflating", library)
        try:
            unpacked.append(bodies.unpack(data, encoding, 20 * 2**20))
        except (TooLarge, Undecodable, bodies.UnknownEncoding) as error:
            unpacked.append(type(error))
    assert unpacked[0] == unpacked[1]


@pytest.mark.parametrize("case", MATRIX)
def test_each_row_of_the_matrix_is_answered_as_the_specification_says(case: str, door: Doors) -> None:
    arguments, expected = MATRIX[case]
    if callable(arguments["body"]):
        arguments = {**arguments, "body": arguments["body"]()}
    response = door.post(**arguments)
    assert response.status_code == expected, response.content[:300]
    form = arguments.get("kind") or (PROTOBUF if isinstance(arguments["body"], bytes) else JSON)
    media = form.partition(";")[0].lower()
    if media in (PROTOBUF, JSON):
        assert response.headers["content-type"] == media
    if expected == 200:
        assert response.content == (b"{}" if media == JSON else b"")
        return
    code, message = status_of(response)
    assert (code, bool(message)) == ({400: 3, 413: 8, 415: 3}[expected], True)
    assert "retry-after" not in response.headers


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"])
def test_other_methods_are_not_allowed(method: str, door: Doors) -> None:
    response = httpx.request(method, f"{door.url}/v1/traces", timeout=60)
    assert (response.status_code, response.headers["allow"]) == (405, "POST")
    if method != "HEAD":
        assert status_of(response)[0] == 12


def test_other_paths_are_not_found(door: Doors) -> None:
    response = door.post(ONE, signal="profiles")
    assert (response.status_code, status_of(response)[0]) == (404, 5)


def test_an_undecodable_body_is_told_with_a_bad_request(door: Doors) -> None:
    response = door.post(b"garbage")
    status = Status.FromString(response.content)
    (detail,) = status.details
    wrong = BadRequest()
    assert detail.Unpack(wrong)
    assert [(one.field, one.description) for one in wrong.field_violations] == [("request", status.message)]
    said = door.post(b"garbage", JSON).json()
    assert said["details"][0]["@type"] == "type.googleapis.com/google.rpc.BadRequest"
    assert said["details"][0]["fieldViolations"][0]["field"] == "request"


BAD_IDS = {
    "no trace id": span(2, trace_id=b""),
    "an empty span id": span(2, span_id=b""),
    "a trace id of zeros": span(2, trace_id=bytes(16)),
    "a span id of zeros": span(2, span_id=bytes(8)),
    "a trace id of 8 bytes": span(2, trace_id=b"12345678"),
    "a trace id of 32 letters": span(2, trace_id=b"a5" * 16),
    "a span id of 16 bytes": span(2, span_id=b"a5" * 8),
    "a parent id of 4 bytes": span(2, parent_span_id=b"1234"),
}


@pytest.mark.parametrize("case", BAD_IDS)
def test_a_span_with_bad_ids_is_refused_and_the_good_one_kept(case: str, tmp_path: Path) -> None:
    with doors(tmp_path) as door:
        response = door.post(request(span(1), BAD_IDS[case], span(3)))
        assert response.status_code == 200
        told = ExportTraceServiceResponse.FromString(response.content).partial_success
        assert told.rejected_spans == 1
        assert "resource 0, scope 0, span 1" in told.error_message
        assert [one.name for one in door.spans()] == ["span 1", "span 3"]
        (refusal,) = door.store.refusals("default")
        assert refusal.place == "traces over HTTP, resource 0, scope 0, span 1"


def test_a_span_that_cannot_be_decoded_costs_itself(tmp_path: Path) -> None:
    with doors(tmp_path) as door:
        response = door.post(request(span(1), span(2, name="12345"), span(3)).replace(b"12345", b"1234\xff"))
        told = ExportTraceServiceResponse.FromString(response.content).partial_success
        assert (response.status_code, told.rejected_spans) == (200, 1)
        assert [one.name for one in door.spans()] == ["span 1", "span 3"]


def test_a_span_nested_too_deep_costs_itself_in_json_too(tmp_path: Path) -> None:
    document = changed()
    spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    spans.append({**spans[0], "spanId": "b5" * 8, "attributes": [{"key": "deep", "value": "DEEP"}]})
    for levels in (45, 100, 5_000):
        deep_value = '{"arrayValue":{"values":[' * levels + '{"stringValue":"x"}' + "]}}" * levels
        sent = json.dumps(document).replace('"DEEP"', deep_value).encode()
        with doors(tmp_path) as door:
            response = door.post(sent, JSON)
            assert response.status_code == 200
            assert response.json()["partialSuccess"]["rejectedSpans"] == "1"
            assert [one.name for one in door.spans()] == ["said"]


def test_fields_of_a_newer_protocol_stay_where_they_stand(tmp_path: Path) -> None:
    unknown = b"\xfa\x7f\x05later"  # field 2047
    asked = ExportTraceServiceRequest()
    resource = asked.resource_spans.add(schema_url="resource's")
    resource.MergeFromString(unknown)
    scope = resource.scope_spans.add(schema_url="scope's")
    scope.MergeFromString(unknown)
    one = scope.spans.add()
    one.CopyFrom(span(1))
    one.MergeFromString(unknown)
    one.attributes.add(key="k").MergeFromString(unknown)
    with doors(tmp_path) as door:
        assert door.post(asked.SerializeToString()).content == b""
        (segment,) = door.segments()
        kept = ExportTraceServiceRequest.FromString(body(segment))
        assert kept == asked
        assert body(segment).count(b"later") == 4


def test_a_request_is_kept_trace_by_trace_each_under_its_resource_and_scope(tmp_path: Path) -> None:
    traces = [number.to_bytes(16, "big") for number in (1, 2, 3)]
    asked = ExportTraceServiceRequest()
    for name in ("one", "other"):
        resource = asked.resource_spans.add()
        resource.resource.attributes.add(key="service.name").value.string_value = name
        for scope_name in ("a", "b"):
            scope = resource.scope_spans.add()
            scope.scope.name = scope_name
            scope.spans.extend(
                span(len(name) * 10 + ord(scope_name) + number, trace) for number, trace in enumerate(traces)
            )
    with doors(tmp_path) as door:
        assert door.post(asked.SerializeToString()).status_code == 200
        assert door.traces() == set(traces)
        for trace in traces:
            (segment,) = door.segments(traces=frozenset({trace}))
            kept = ExportTraceServiceRequest.FromString(body(segment))
            found = [
                (resource.resource.attributes[0].value.string_value, scope.scope.name, one.trace_id)
                for resource in kept.resource_spans
                for scope in resource.scope_spans
                for one in scope.spans
            ]
            assert found == [(name, scope, trace) for name in ("one", "other") for scope in ("a", "b")]
            assert len(segment.items) == 4


def test_what_comes_twice_is_kept_once_and_a_corrected_version_is_kept_too(tmp_path: Path) -> None:
    with doors(tmp_path) as door:
        for _ in range(3):
            door.post(request(span(1), span(2)))
        assert len(door.segments()) == 1
        door.post(request(span(1), span(2, name="corrected")))
        assert [one.name for one in door.spans()] == ["span 1", "span 2", "span 1", "corrected"]


def test_logs_are_kept_with_their_trace_or_with_none_and_once(tmp_path: Path) -> None:
    with doors(tmp_path) as door:
        for _ in range(2):
            assert door.post(log_request("a", "b", trace=TRACE), signal="logs").content == b""
            assert door.post(log_request("c"), signal="logs").content == b""
        assert door.traces() == {TRACE, NO_TRACE}
        assert [len(segment.items) for segment in door.segments()] == [2, 1]
        assert door.post(log_request("c", service="another"), signal="logs").content == b""
        assert len(door.segments()) == 3


def test_a_log_record_with_a_bad_id_is_refused_and_counted_as_one(tmp_path: Path) -> None:
    with doors(tmp_path) as door:
        sent = log_request("a", trace=b"short") + log_request("b")
        told = ExportLogsServiceResponse.FromString(door.post(sent, signal="logs").content).partial_success
        assert told.rejected_log_records == 1
        assert len(door.segments()) == 1


def test_spans_at_the_door_of_logs_are_refused_by_name(door: Doors) -> None:
    response = door.post(ONE, signal="logs")
    assert response.status_code == 400
    assert "/v1/traces" in status_of(response)[1]
    assert door.post(log_request("a"), signal="traces").status_code == 200  # refused as spans without ids


@pytest.mark.parametrize("kind", [PROTOBUF, JSON])
def test_metrics_are_accepted_and_dropped_or_not_found_as_it_is_set(kind: str, tmp_path: Path) -> None:
    with doors(tmp_path) as door:
        response = door.post(b"whatever", kind, signal="metrics")
        assert (response.status_code, response.content) == (200, b"{}" if kind == JSON else b"")
        assert response.headers["content-type"] == kind
        assert door.traces() == frozenset()
    with doors(tmp_path, metrics=False) as door:
        assert door.post(b"", kind, signal="metrics").status_code == 404


# -- when it cannot be written ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [StoreError("disk full at secret.example"), ValueError("a fault of ours")])
def test_a_store_that_cannot_write_is_told_as_something_to_send_again(error: Exception, tmp_path: Path) -> None:
    def fail(*_: Any) -> Appended:
        raise error

    with doors(tmp_path, append=fail) as door:
        for kind, sent in ((PROTOBUF, ONE), (JSON, json.dumps(SPOKEN).encode())):
            response = door.post(sent, kind)
            assert (response.status_code, response.headers["retry-after"]) == (503, "1")
            assert status_of(response)[0] == 14
            assert b"secret" not in response.content
        status = Status.FromString(door.post(ONE).content)
        again = RetryInfo()
        assert status.details[0].Unpack(again)
        assert again.retry_delay.seconds == 1
        assert door.post(SPOKEN).json()["details"][0]["retryDelay"] == "1s"


async def test_a_body_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    with doors(tmp_path, body_seconds=1) as door:
        port = int(door.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(
            b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\n"
            b"Content-Length: 1000\r\n\r\n\x0a"
        )
        await writer.drain()
        answered = await asyncio.wait_for(reader.read(), 60)
        assert answered.startswith(b"HTTP/1.1 503")
        assert b"retry-after: 1\r\n" in answered
        writer.close()
        assert door.serves(ONE)


async def test_a_body_in_chunks_is_bounded_too(tmp_path: Path) -> None:
    limits = IntakeLimits(body=10_000)

    async def chunks() -> Any:
        for _ in range(100):
            yield b"\0" * 1_000

    with doors(tmp_path, intake=Intake(limits)) as door:
        async with httpx.AsyncClient(timeout=60) as client:
            response = await client.post(f"{door.url}/v1/traces", content=chunks(), headers={"content-type": PROTOBUF})
        assert response.status_code == 413


def test_a_request_that_would_grow_with_each_trace_is_too_large(tmp_path: Path) -> None:
    spans = [span(number, number.to_bytes(16, "big")) for number in range(1, 1_000)]
    sent = request(*spans, service="x" * 100_000)
    with doors(tmp_path, intake=Intake(replace(IntakeLimits(), copies=10_000_000))) as door:
        response = door.post(sent)
        assert (response.status_code, status_of(response)[0]) == (413, 8)
        assert door.traces() == frozenset()


def test_a_span_of_very_many_values_is_refused(tmp_path: Path) -> None:
    many = span(2).SerializeToString() + b"\x4a\0" * 300_000
    sent = request(span(1), type(span(1)).FromString(many))
    with doors(tmp_path) as door:
        told = ExportTraceServiceResponse.FromString(door.post(sent).content).partial_success
        assert told.rejected_spans == 1
        assert "more than 200000 values in one span" in told.error_message
