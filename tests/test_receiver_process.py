"""The receiver as a process: killed while it is sent to, measured while it is sent bombs, and sent to by real SDKs."""

from __future__ import annotations

import gzip
import itertools
import random
import signal
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import grpc  # type: ignore[import-untyped]  # it ships no types
import httpx
import pytest
import zstandard
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from otlp_doors import PROTOBUF, SERVICES, Process, body, doors, receiver_process, request, span, spans_of
from spanreel_collector.stores.opening import open_store

MIB = 1024 * 1024


# -- killed ----------------------------------------------------------------------------------------------------------


def kept(store: Path) -> Counter[bytes]:
    """How often each span id is kept, of all traces."""
    opened = open_store(f"sqlite:///{store}")
    far = time.time_ns() + 10**12
    traces = frozenset(pending.trace for pending in opened.claim(far, 0, 100_000))
    segments = [segment for _, segment in opened.segments("default", traces)]
    opened.close()
    return Counter(one.span_id for segment in segments for one in spans_of(body(segment)))


def send_until_killed(process: Process, numbers: itertools.count[int], told: list[tuple[bytes, list[bytes]]]) -> None:
    """Send requests by both doors, and note those that were answered well."""
    by_http = random.random() < 0.5
    with httpx.Client(timeout=60) as client, grpc.insecure_channel(f"127.0.0.1:{process.port}") as channel:
        export = channel.unary_unary(f"/{SERVICES['traces']}/Export")
        while True:
            spans = [span(next(numbers), random.randbytes(15) + b"\1") for _ in range(random.randint(1, 40))]
            sent = request(*spans)
            try:
                if by_http:
                    url = f"{process.url}/v1/traces"
                    client.post(url, content=sent, headers={"content-type": PROTOBUF}, timeout=60).raise_for_status()
                else:
                    export(sent, timeout=60)
            except (httpx.TransportError, grpc.RpcError):
                return
            except httpx.HTTPStatusError as error:  # of one that is about to stop
                assert error.response.status_code == 503  # noqa: PT017 - nothing else is expected
                return
            told.append((sent, [one.span_id for one in spans]))


def wait_for(told: list[tuple[bytes, list[bytes]]], number: int) -> None:
    until = time.monotonic() + 120
    while len(told) < number:
        assert time.monotonic() < until
        time.sleep(0.005)


@pytest.mark.slow
def test_each_span_that_was_acknowledged_is_there_once_after_a_kill(tmp_path: Path) -> None:
    store = tmp_path / "spans.db"
    numbers = itertools.count(1)
    told: list[tuple[bytes, list[bytes]]] = []
    for _ in range(4):
        before = len(told)
        with receiver_process(store) as process:
            senders = [
                threading.Thread(target=send_until_killed, args=(process, numbers, told), daemon=True) for _ in range(4)
            ]
            for sender in senders:
                sender.start()
            wait_for(told, before + 5)
            time.sleep(random.uniform(0.0, 0.3))
            process.process.send_signal(signal.SIGKILL)
            for sender in senders:
                sender.join(120)
        found = kept(store)
        missing = [identity for _, identities in told for identity in identities if not found[identity]]
        assert missing == []
        assert set(found.values()) == {1}
    with receiver_process(store) as process:  # what senders repeat, since they cannot know, is kept once
        for sent, _ in told:
            httpx.post(
                f"{process.url}/v1/traces", content=sent, headers={"content-type": PROTOBUF}, timeout=60
            ).raise_for_status()
    assert set(kept(store).values()) == {1}


@pytest.mark.slow
def test_a_receiver_that_is_told_to_stop_answers_what_it_took(tmp_path: Path) -> None:
    store = tmp_path / "spans.db"
    numbers = itertools.count(1)
    told: list[tuple[bytes, list[bytes]]] = []
    with receiver_process(store) as process:
        senders = [threading.Thread(target=send_until_killed, args=(process, numbers, told)) for _ in range(3)]
        for sender in senders:
            sender.start()
        wait_for(told, 10)
        process.process.terminate()
        assert process.process.wait(120) in (0, -signal.SIGTERM)
        for sender in senders:
            sender.join(120)
    assert told
    assert {identity for _, identities in told for identity in identities} <= kept(store).keys()


# -- bombs -----------------------------------------------------------------------------------------------------------


def empty_spans() -> bytes:
    """Just under the limit of bytes, and as many spans as that can be."""
    inner = b"\x12\0" * (9 * MIB)
    return _field(0x0A, _field(0x12, inner))


def empty_attributes() -> bytes:
    """One span, and as many attributes as there can be."""
    return _field(0x0A, _field(0x12, _field(0x12, span(1).SerializeToString() + b"\x4a\0" * (9 * MIB))))


def _field(tag: int, content: bytes) -> bytes:
    size, length = len(content), bytearray()
    while size >= 0x80:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes((tag, *length, size)) + content


BOMBS: dict[str, tuple[Callable[[], bytes], str, int]] = {
    "gzip": (lambda: gzip.compress(b"\0" * 256 * MIB), "gzip", 30),
    "deflate": (lambda: zlib.compress(b"\0" * 256 * MIB), "deflate", 30),
    "zstd": (lambda: zstandard.compress(b"\0" * 256 * MIB), "zstd", 30),
    "gzip of an unknown field": (
        lambda: gzip.compress(b"\xfa\x7f\x80\x80\x80\x80\x01" + b"\0" * 256 * MIB),
        "gzip",
        30,
    ),
    "gzip of many members": (lambda: gzip.compress(b"") * 20_000, "gzip", 30),
    "a plain body": (lambda: b"\0" * 100 * MIB, "identity", 30),
    # Below the limit of bytes, which take their room twice; no more than that.
    "empty spans": (lambda: gzip.compress(empty_spans()), "gzip", 100),
    "empty attributes": (lambda: gzip.compress(empty_attributes()), "gzip", 140),
}


@pytest.mark.slow
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_costs_no_more_memory_than_the_limit(bomb: str, tmp_path: Path) -> None:
    make, encoding, most = BOMBS[bomb]
    sent = make()
    with receiver_process(tmp_path / "spans.db") as process:
        headers = {"content-type": PROTOBUF}
        for _ in range(3):
            httpx.post(
                f"{process.url}/v1/traces", content=request(span(1)), headers=headers, timeout=60
            ).raise_for_status()
        before = process.memory()
        headers["content-encoding"] = encoding
        for _ in range(3):
            response = httpx.post(f"{process.url}/v1/traces", content=sent, headers=headers, timeout=60)
            assert response.status_code in (400, 413)
        assert process.memory() - before < most * MIB


# -- real SDKs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packing", ["none", "gzip", "deflate"])
@pytest.mark.parametrize("way", ["http", "grpc"])
def test_the_exporters_of_the_sdk_send_to_both_doors(way: str, packing: str, tmp_path: Path) -> None:
    with doors(tmp_path) as door:
        exporter: SpanExporter
        if way == "http":
            exporter = HttpExporter(f"{door.url}/v1/traces", compression=Compression(packing))
        else:
            packed = {"none": "NoCompression", "gzip": "Gzip", "deflate": "Deflate"}[packing]
            endpoint = f"http://127.0.0.1:{door.port}"
            exporter = GrpcExporter(endpoint, insecure=True, compression=grpc.Compression[packed])
        provider = TracerProvider(resource=Resource({"service.name": "sdk"}), shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(exporter))
        tracer = provider.get_tracer("tests")
        with (
            tracer.start_as_current_span("outer", attributes={"text": "é" * 1_000}) as outer,
            tracer.start_as_current_span("inner"),
        ):
            outer.add_event("something", {"n": 1})
        assert provider.force_flush(20_000)
        provider.shutdown()
        assert sorted(one.name for one in door.spans()) == ["inner", "outer"]
        assert door.receiver.counts.read()["items", "traces", "accepted"] == 2
