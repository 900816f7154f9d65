"""OTLP export requests: read as raw spans and logs behind one `Batch`, taken apart as bytes, answered."""

from __future__ import annotations

from spanreel_collector.otlp.json_form import DEEPEST_VALUE, read_request
from spanreel_collector.otlp.json_writing import write_json
from spanreel_collector.otlp.protobuf_form import Signal, read_message

__all__ = ["DEEPEST_VALUE", "Signal", "read_message", "read_request", "write_json"]
