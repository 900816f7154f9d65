"""OTLP export requests: read as raw spans and logs behind one `Batch`, taken apart as bytes, answered.

Reading needs no protobuf library; the modules that do are imported by name, where they are needed.
"""

from __future__ import annotations

from spanreel_collector.otlp.json_form import read_request
from spanreel_collector.otlp.json_values import DEEPEST_VALUE

__all__ = ["DEEPEST_VALUE", "read_request"]
