"""OTLP over gRPC: the Export method of the services of traces, logs and metrics.

Bodies are bytes here too: what is no request is refused with INVALID_ARGUMENT by us. A message is received only when
there is a thread for it, so that what waits takes no memory, and only of who may; gRPC itself bounds the size of one,
unpacked. That its methods take a stream, of one message, lets us ask first, and bound the time that it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent import futures
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import grpc  # type: ignore[import-untyped]  # it ships no types

from spanreel.errors import SettingsError
from spanreel_collector.access import Access, Caller, Denied, Scope, Tls, admit, check_address
from spanreel_collector.otlp.answers import Code, Status, write_response, write_status
from spanreel_collector.otlp.protobuf_form import Signal
from spanreel_collector.rates import TooOften
from spanreel_collector.receiver.patience import Patience
from spanreel_collector.receiver.receiving import Arrived, Receiver, accept, count, status_of

_SERVICES: Final[dict[str, Signal]] = {
    "opentelemetry.proto.collector.trace.v1.TraceService": "traces",
    "opentelemetry.proto.collector.logs.v1.LogsService": "logs",
    "opentelemetry.proto.collector.metrics.v1.MetricsService": "metrics",
}
_DETAILS: Final = "grpc-status-details-bin"
_THREADS: Final = 16
"""Most of them wait for a commit, which takes what all of them bring."""
_LONGEST_METADATA: Final = 16 * 1024
_MOST_STREAMS: Final = 256
_HANDSHAKE_MILLISECONDS: Final = 20_000
_IDLE_MILLISECONDS: Final = 600_000
"""After which a connection that nothing comes by is told to go away; whoever sends again makes another."""
_CODES: Final = {code.value[0]: code for code in grpc.StatusCode}


@dataclass(frozen=True, slots=True)
class GrpcServer:
    """A server that runs."""

    server: Any
    port: int
    patience: Patience

    def stop(self, seconds: float) -> None:
        """Take no more, finish what came within a time, and end."""
        self.server.stop(seconds).wait()
        self.patience.close()


def start_grpc(receiver: Receiver, access: Access, address: tuple[str, int], tls: Tls | None = None) -> GrpcServer:
    """Serve at an address (port 0 is any that is free), until it is stopped.

    Raises:
        SettingsError: it cannot be listened on there, or must not be without tokens; a file of TLS cannot be read.
    """
    host, port = address
    check_address(access, host)
    options = [
        ("grpc.max_receive_message_length", receiver.intake.limits.body),
        ("grpc.max_metadata_size", _LONGEST_METADATA),
        ("grpc.max_concurrent_streams", _MOST_STREAMS),
        ("grpc.server_handshake_timeout_ms", _HANDSHAKE_MILLISECONDS),
        ("grpc.max_connection_idle_ms", _IDLE_MILLISECONDS),
        ("grpc.so_reuseport", 0),  # a second service on the port is an error, not half of the requests
    ]
    threads = futures.ThreadPoolExecutor(_THREADS, "spanreel-grpc")
    server = grpc.server(threads, options=options)
    patience = Patience(receiver.body_seconds)
    for service, signal in _SERVICES.items():
        method = grpc.stream_unary_rpc_method_handler(_export(receiver, access, patience, signal))
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Export": method}),))
    name = f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"
    try:
        bound = server.add_secure_port(name, _credentials(tls)) if tls else server.add_insecure_port(name)
    except RuntimeError as error:
        patience.close()
        advice = (
            "is another service, or a Collector, running there? choose another with --grpc HOST:PORT, or --grpc off"
        )
        raise SettingsError(f"cannot listen on {name!r} for gRPC; {advice}") from error
    server.start()
    return GrpcServer(server, bound, patience)


def _credentials(tls: Tls) -> Any:
    try:
        pair = (Path(tls.key).read_bytes(), Path(tls.certificate).read_bytes())
        authority = Path(tls.client_authority).read_bytes() if tls.client_authority else None
    except OSError as error:
        raise SettingsError(f"a file of TLS cannot be read: {error}") from error
    return grpc.ssl_server_credentials([pair], authority, require_client_auth=authority is not None)


def _admit(access: Access, metadata: Any) -> Caller:
    # No host is in the metadata; a browser cannot speak gRPC.
    headers = {key: value for key, value in metadata or () if isinstance(value, str)}
    return admit(access, headers, Scope.INGEST)


def _export(receiver: Receiver, access: Access, patience: Patience, signal: Signal) -> Callable[[Any, Any], bytes]:
    def export(messages: Iterator[bytes], context: Any) -> bytes:
        try:
            caller = _admit(access, context.invocation_metadata())
        except (Denied, TooOften) as error:
            _abort(context, status_of(error))
        if signal == "metrics" and not receiver.metrics:
            _abort(context, Status(Code.UNIMPLEMENTED, "metrics are not received"))
        with patience.awaiting(context):
            body = next(messages, None)
        if body is None:
            _abort(context, Status(Code.INVALID_ARGUMENT, "no message"))
        if signal == "metrics":
            return b""
        try:
            accepted = accept(receiver, Arrived(caller.tenant, "gRPC", signal, "protobuf", "", body))
            appended = accepted.done.result(receiver.commit_seconds) if accepted.done else None
        except Exception as error:  # noqa: BLE001 - whatever it is, it is answered, by what it is
            status = status_of(error)
            receiver.counts.add("requests", signal, status.code.name)
            _abort(context, status)
        count(receiver, signal, accepted, appended)
        return write_response(signal, accepted.taken.rejected, accepted.taken.message, "protobuf")

    return export


def _abort(context: Any, status: Status) -> NoReturn:
    context.set_trailing_metadata(((_DETAILS, write_status(status, "protobuf")),))
    context.abort(_CODES[int(status.code)], status.message[:1_000])
    raise AssertionError  # abort has raised
