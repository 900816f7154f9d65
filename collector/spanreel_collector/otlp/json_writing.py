"""Export requests from protobuf to OTLP/JSON, as it came."""

from __future__ import annotations

from typing import Any

from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from spanreel_collector.otlp.items import KeptSignal
from spanreel_collector.otlp.json_messages import write


def write_json(data: bytes, signal: KeptSignal) -> dict[str, Any]:
    """A request as a JSON object; all of it can be decoded, since `parts` has looked at it."""
    # The data messages have the fields of the requests.
    return write((LogsData if signal == "logs" else TracesData).FromString(data))
