"""OTLP over gRPC, by a real channel: the codes of the specification, and what is kept."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]  # it ships no types
import pytest
from google.rpc.error_details_pb2 import BadRequest, RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from otlp_doors import SERVICES, TRACE, Doors, doors, log_request, request, span
from spanreel.errors import SettingsError
from spanreel_collector.access import Access
from spanreel_collector.receiver.grpc import start_grpc
from spanreel_collector.stores.records import Appended
from spanreel_collector.stores.store import StoreError

ONE = request(span(1))


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    with doors(tmp_path_factory.mktemp("door")) as made:
        yield made


def refused(door: Doors, body: bytes, signal: str = "traces", **options: Any) -> tuple[grpc.StatusCode, Status | None]:
    with pytest.raises(grpc.RpcError) as error:
        door.call(body, signal, **options)
    said = dict(error.value.trailing_metadata() or ())
    details = said.get("grpc-status-details-bin")
    return error.value.code(), Status.FromString(details) if details else None


@pytest.mark.parametrize("packing", [grpc.Compression.NoCompression, grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_a_request_is_kept_and_answered_with_nothing_to_say(packing: grpc.Compression, tmp_path: Path) -> None:
    with doors(tmp_path) as door:
        assert door.call(ONE, compression=packing) == b""
        assert door.call(log_request("a", trace=TRACE), "logs", compression=packing) == b""
        assert door.call(b"") == b""
        assert door.call(b"whatever", "metrics") == b""
        assert [one.name for one in door.spans()] == ["span 1"]
        assert len(door.segments()) == 2


@pytest.mark.parametrize(
    "body", [b"garbage, and no protobuf", ONE[:-5], b"\x12\x03abc"], ids=["garbage", "cut off", "of something else"]
)
@pytest.mark.parametrize("signal", ["traces", "logs"])
def test_what_is_no_request_is_an_invalid_argument(body: bytes, signal: str, door: Doors) -> None:
    code, status = refused(door, body, signal)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert status is not None
    assert status.code == 3
    wrong = BadRequest()
    assert status.details[0].Unpack(wrong)


def test_a_bad_span_is_refused_and_the_good_one_kept(tmp_path: Path) -> None:
    with doors(tmp_path) as door:
        answer = ExportTraceServiceResponse.FromString(door.call(request(span(1), span(2, trace_id=bytes(16)))))
        assert answer.partial_success.rejected_spans == 1
        assert [one.name for one in door.spans()] == ["span 1"]
        assert door.store.refusals("default")[0].place == "traces over gRPC, resource 0, scope 0, span 1"


@pytest.mark.slow
def test_a_large_message_is_taken_up_to_the_limit_and_refused_beyond_for_good(door: Doors) -> None:
    padding = {"x": "y" * 7 * 2**20}
    assert door.call(request(span(1, attributes=padding), span(2, attributes=padding))) == b""
    code, status = refused(door, request(*(span(number, attributes=padding) for number in (1, 2, 3))))
    assert (code, status) == (grpc.StatusCode.RESOURCE_EXHAUSTED, None)
    bomb = b"\0" * 256 * 2**20
    code, status = refused(door, bomb, compression=grpc.Compression.Gzip)
    assert (code, status) == (grpc.StatusCode.RESOURCE_EXHAUSTED, None)


def test_a_store_that_cannot_write_is_unavailable_with_the_time_to_send_it_again(tmp_path: Path) -> None:
    def fail(*_: Any) -> Appended:
        raise StoreError("locked")

    with doors(tmp_path, append=fail) as door:
        code, status = refused(door, ONE)
        assert code is grpc.StatusCode.UNAVAILABLE
        assert status is not None
        again = RetryInfo()
        assert status.details[0].Unpack(again)
        assert (status.code, again.retry_delay.seconds) == (14, 1)


def test_a_commit_that_takes_too_long_is_to_be_sent_again(tmp_path: Path) -> None:
    held = threading.Event()

    def wait(*_: Any) -> Appended:
        held.wait(30)
        return Appended(1, 0)

    with doors(tmp_path, append=wait, commit_seconds=0.2) as door:
        assert refused(door, ONE)[0] is grpc.StatusCode.UNAVAILABLE
        assert door.post(ONE).status_code == 503
        held.set()


def test_metrics_are_unimplemented_where_it_is_set(tmp_path: Path) -> None:
    with doors(tmp_path, metrics=False) as door:
        assert refused(door, b"", "metrics")[0] is grpc.StatusCode.UNIMPLEMENTED


def test_a_port_that_is_taken_is_told(door: Doors) -> None:
    with pytest.raises(SettingsError, match="cannot listen on"):
        start_grpc(door.receiver, Access(), ("127.0.0.1", door.port))


def test_the_services_are_those_of_the_specification() -> None:
    from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
    from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

    files = (trace_service_pb2, logs_service_pb2, metrics_service_pb2)
    names = {service.full_name for file in files for service in file.DESCRIPTOR.services_by_name.values()}
    assert names == set(SERVICES.values())
