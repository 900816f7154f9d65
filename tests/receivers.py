"""Real OTLP receivers on loopback: gRPC and HTTP, each refusing messages over 4 MiB as a default Collector does."""

from __future__ import annotations

import contextlib
import gzip
import threading
from collections.abc import Iterator
from concurrent import futures
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc  # type: ignore[import-untyped]  # it ships no types
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)
from zstandard import ZstdDecompressor

FOUR_MIB = 4 * 1024 * 1024


@dataclass
class Received:
    """What has arrived: the encoded size of each request, the bytes of all, and the spans."""

    endpoint: str
    sizes: list[int] = field(default_factory=list)
    spans: list[Any] = field(default_factory=list)
    refused: int = 0
    credentials: set[str] = field(default_factory=set)
    data: bytearray = field(default_factory=bytearray)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, request: Any) -> None:
        with self._lock:
            self.sizes.append(request.ByteSize())
            self.data += request.SerializeToString()
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    self.spans += scope.spans


@contextlib.contextmanager
def grpc_receiver() -> Iterator[Received]:
    received = Received("")

    class Servicer(TraceServiceServicer):
        def Export(self, request: Any, context: Any) -> Any:  # noqa: N802 -- the service's name for it
            received.credentials |= {value for name, value in context.invocation_metadata() if name == "authorization"}
            received.take(request)
            return ExportTraceServiceResponse()

    server = grpc.server(futures.ThreadPoolExecutor(2), options=[("grpc.max_receive_message_length", FOUR_MIB)])
    add_TraceServiceServicer_to_server(Servicer(), server)  # type: ignore[no-untyped-call]  # generated
    received.endpoint = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield received
    finally:
        server.stop(0).wait()


@contextlib.contextmanager
def http_receiver(status: int = 200, port: int = 0) -> Iterator[Received]:
    received = Received("")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            if self.headers.get("content-encoding") == "zstd":
                body = ZstdDecompressor().decompressobj().decompress(body)
            received.credentials.add(self.headers.get("authorization", ""))
            if len(body) > FOUR_MIB or status != 200:
                received.refused += 1
                self.send_response(413 if status == 200 else status)
            else:
                request = ExportTraceServiceRequest()
                request.ParseFromString(body)
                received.take(request)
                self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    received.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield received
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
