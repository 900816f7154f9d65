"""OTLP export requests -> raw spans and logs, from JSON or protobuf, behind one `Batch`."""

from __future__ import annotations

from spanreel_collector.otlp.json_form import DEEPEST_VALUE, read_request
from spanreel_collector.otlp.protobuf_form import Signal, read_message

__all__ = ["DEEPEST_VALUE", "Signal", "read_message", "read_request"]
