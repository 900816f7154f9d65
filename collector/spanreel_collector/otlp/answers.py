"""What a receiver answers, in protobuf or JSON: export responses, and google.rpc.Status for what went wrong.

Which answer fits is the receiver's to know.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, Literal

from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc.error_details_pb2 import BadRequest, RetryInfo
from google.rpc.status_pb2 import Status as StatusMessage
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from spanreel_collector.otlp.items import KeptSignal
from spanreel_collector.otlp.json_messages import write
from spanreel_collector.span import Fault

Form = Literal["protobuf", "json"]


class Code(IntEnum):
    """The codes of google.rpc that receivers use."""

    CANCELLED = 1
    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16


@dataclass(frozen=True, slots=True)
class Status:
    """What went wrong. ``retry`` are seconds after which the same may be sent again; None if it may not."""

    code: Code
    message: str
    retry: int | None = None
    faults: tuple[Fault, ...] = ()


_LONGEST: Final = 1_000
"""Characters of a message: what is quoted in it came from outside."""


def write_response(signal: KeptSignal | Literal["metrics"], rejected: int, message: str, form: Form) -> bytes:
    """The response to a request of which something was kept, or that was empty."""
    if not rejected and not message:
        return b"{}" if form == "json" else b""
    response: Any
    if signal == "logs":
        response = ExportLogsServiceResponse()
        response.partial_success.rejected_log_records = rejected
    else:
        response = ExportTraceServiceResponse()
        response.partial_success.rejected_spans = rejected
    response.partial_success.error_message = _sendable(message)
    if form == "json":
        return json.dumps(write(response)).encode()
    return bytes(response.SerializeToString())


def write_status(status: Status, form: Form) -> bytes:
    """A google.rpc.Status, with RetryInfo and BadRequest where they say something."""
    details: list[Any] = []
    if status.retry is not None:
        details.append(RetryInfo(retry_delay={"seconds": status.retry}))
    if status.faults:
        violations = [{"field": fault.place, "description": _sendable(fault.reason)} for fault in status.faults]
        details.append(BadRequest(field_violations=violations))
    if form == "json":
        said: dict[str, Any] = {"code": int(status.code), "message": _sendable(status.message)}
        if details:
            said["details"] = [_write_detail(detail) for detail in details]
        return json.dumps(said).encode()
    message = StatusMessage(code=int(status.code), message=_sendable(status.message))
    for detail in details:
        packed = AnyMessage()
        packed.Pack(detail)
        message.details.append(packed)
    return bytes(message.SerializeToString(deterministic=True))


def _write_detail(detail: Any) -> dict[str, Any]:
    kind = {"@type": f"type.googleapis.com/{detail.DESCRIPTOR.full_name}"}
    if isinstance(detail, RetryInfo):  # a duration is text in JSON, not an object
        return {**kind, "retryDelay": f"{detail.retry_delay.seconds}s"}
    return {**kind, **write(detail)}


def _sendable(text: str) -> str:
    """Text that protobuf takes: bounded, without half a surrogate pair."""
    return text[:_LONGEST].encode("utf-8", "replace").decode("utf-8")
