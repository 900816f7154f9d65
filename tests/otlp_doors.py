"""What the tests of the receiver share: both doors on loopback before a real store, requests, and what came of them."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]  # it ships no types
import httpx
import uvicorn
import zstandard
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from otel_collector import wait_until
from otlp_lines import BEGAN, SECOND
from spanreel_collector.access import Access, Tls
from spanreel_collector.conversion.convert import Conversion, convert
from spanreel_collector.otlp.protobuf_form import read_message
from spanreel_collector.receiver.committing import Append, Committer, QueueLimits
from spanreel_collector.receiver.connections import BoundedConnections
from spanreel_collector.receiver.grpc import start_grpc
from spanreel_collector.receiver.http import receiver_app
from spanreel_collector.receiver.intake import Intake
from spanreel_collector.receiver.receiving import Receiver
from spanreel_collector.stores.opening import open_store
from spanreel_collector.stores.records import Segment
from spanreel_collector.stores.store import Store

PROTOBUF = "application/x-protobuf"
JSON = "application/json"
SERVICES = {
    "traces": "opentelemetry.proto.collector.trace.v1.TraceService",
    "logs": "opentelemetry.proto.collector.logs.v1.LogsService",
    "metrics": "opentelemetry.proto.collector.metrics.v1.MetricsService",
}
TENANT = "default"


@dataclass(frozen=True)
class Doors:
    """A receiver that runs: where it is, and the store behind it."""

    url: str
    port: int
    store: Store
    receiver: Receiver

    def post(
        self, body: bytes | dict[str, Any], kind: str | None = None, signal: str = "traces", **headers: str
    ) -> httpx.Response:
        """Send a request; a dict is OTLP/JSON. Underscores in names of headers become dashes."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        said = {name.replace("_", "-"): value for name, value in headers.items()}
        kind = kind or (PROTOBUF if isinstance(body, bytes) else JSON)
        with httpx.Client(timeout=60) as client:
            return client.post(f"{self.url}/v1/{signal}", content=content, headers={"content-type": kind, **said})

    def call(self, body: bytes, signal: str = "traces", **options: Any) -> bytes:
        """Send a request over gRPC."""
        with grpc.insecure_channel(f"127.0.0.1:{self.port}") as channel:
            answer: bytes = channel.unary_unary(f"/{SERVICES[signal]}/Export")(body, timeout=60, **options)
            return answer

    def serves(self, body: bytes) -> bool:
        """Whether this is taken; sent again, as senders do, where the machine was too slow for a door in a hurry."""

        def taken() -> bool:
            try:
                return self.post(body).status_code == 200
            except httpx.TransportError:
                return False

        return bool(wait_until(taken))

    def traces(self) -> frozenset[bytes]:
        """The traces of which something came."""
        far = time.time_ns() + 10**12
        return frozenset(pending.trace for pending in self.store.claim(far, 0, 100_000))

    def segments(self, tenant: str = TENANT, traces: frozenset[bytes] | None = None) -> list[Segment]:
        """What is kept, in the order of arrival."""
        found = self.store.segments(tenant, self.traces() if traces is None else traces)
        return [segment for _, segment in sorted(found, key=lambda each: each[0])]

    def spans(self) -> list[Span]:
        """The spans that are kept, decoded."""
        return [span for segment in self.segments() if segment.signal == "traces" for span in spans_of(body(segment))]

    def sessions(self) -> Conversion:
        """What sessions are made of what is kept."""
        return convert(
            read_message(body(segment), f"segment {number}", segment.signal)
            for number, segment in enumerate(self.segments(), 1)
        )


def body(segment: Segment) -> bytes:
    return zstandard.ZstdDecompressor().decompress(segment.body)


def spans_of(data: bytes) -> list[Span]:
    request = ExportTraceServiceRequest.FromString(data)
    return [span for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans]


@contextlib.contextmanager
def doors(
    folder: Path,
    *,
    access: Access | None = None,
    append: Append | None = None,
    queue: QueueLimits | None = None,
    intake: Intake | None = None,
    tls: Tls | None = None,
    connections: type[BoundedConnections] = BoundedConnections,
    **settings: Any,
) -> Iterator[Doors]:
    """Both doors, before a SQLite store in this folder; ``append`` in the place of the store's."""
    access = access or Access()
    store = open_store(f"sqlite:///{folder / 'spans.db'}")
    committer = Committer(append or store.append, queue).start()
    receiver = Receiver(committer, intake or Intake(), **settings)
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        receiver_app(receiver, access),
        http=connections,
        log_level="critical",
        lifespan="off",
        ssl_certfile=tls.certificate if tls else None,
        ssl_keyfile=tls.key if tls else None,
        ssl_ca_certs=tls.client_authority if tls else None,
        ssl_cert_reqs=ssl.CERT_REQUIRED if tls and tls.client_authority else ssl.CERT_NONE,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    calls = start_grpc(receiver, access, ("127.0.0.1", 0), tls)
    try:
        yield Doors(f"http{'s' if tls else ''}://127.0.0.1:{listening.getsockname()[1]}", calls.port, store, receiver)
    finally:
        calls.stop(5)
        server.should_exit = True
        thread.join()
        committer.close()
        store.close()


@dataclass(frozen=True)
class Process:
    """A receiver in a process by itself."""

    process: subprocess.Popen[str]
    url: str
    port: int

    def memory(self, line: str = "VmHWM") -> int:
        """Bytes of memory it takes, or took at the most."""
        said = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return next(int(each.split()[1]) * 1024 for each in said.splitlines() if each.startswith(line))


@contextlib.contextmanager
def receiver_process(store: Path) -> Iterator[Process]:
    script = Path(__file__).with_name("receiver_process.py")
    command = [sys.executable, str(script), f"sqlite:///{store}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            http, calls = process.stdout.readline().split()
            yield Process(process, f"http://127.0.0.1:{http}", int(calls))
        finally:
            process.terminate()
            process.wait(120)


# -- requests --------------------------------------------------------------------------------------------------------

TRACE = bytes.fromhex("a5100000000000000000000000000001")


def span(number: int, trace: bytes = TRACE, attributes: Mapping[str, str] | None = None, **rest: Any) -> Span:
    said = {"trace_id": trace, "span_id": number.to_bytes(8, "big"), "name": f"span {number}"}
    times = {"start_time_unix_nano": BEGAN, "end_time_unix_nano": BEGAN + SECOND}
    made = Span(**{**said, **times, **rest})
    for key, value in (attributes or {}).items():
        made.attributes.add(key=key).value.string_value = value
    return made


def request(*spans: Span, service: str = "demo") -> bytes:
    asked = ExportTraceServiceRequest()
    resource = asked.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = service
    scope = resource.scope_spans.add()
    scope.scope.name = "tests"
    scope.spans.extend(spans)
    return bytes(asked.SerializeToString())


def log_request(*bodies: str, trace: bytes = b"", service: str = "demo") -> bytes:
    asked = ExportLogsServiceRequest()
    resource = asked.resource_logs.add()
    resource.resource.attributes.add(key="service.name").value.string_value = service
    records = resource.scope_logs.add().log_records
    for number, text in enumerate(bodies, 1):
        record = records.add(time_unix_nano=number, trace_id=trace)
        record.body.string_value = text
    return bytes(asked.SerializeToString())


def status_of(response: httpx.Response) -> tuple[int, str]:
    """The google.rpc.Status that a response carries, in the form that it says it has."""
    if response.headers["content-type"] == JSON:
        said = response.json()
        return said["code"], said["message"]
    assert response.headers["content-type"] == PROTOBUF
    status = Status.FromString(response.content)
    return status.code, status.message
