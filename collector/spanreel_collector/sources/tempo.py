"""Traces as Tempo and version 3 of Jaeger answer with them: OTLP in an envelope, of Tempo with ids in base64."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from spanreel.model import Json
from spanreel_collector.otlp import read_request
from spanreel_collector.span import Batch

_ENVELOPES = ("trace", "result")
_BATCHES = "batches"
"""What Tempo's first version calls ResourceSpans."""
_IDS: Mapping[str, int] = {"traceId": 16, "spanId": 8, "parentSpanId": 8}
"""Members that are ids, and how many bytes they have."""


def recognises(document: Json) -> bool:
    """Whether the document is such an answer."""
    return _inside(document) is not None


def read(document: Json, place: str) -> Batch:
    """The trace's spans."""
    inside = _inside(document) or {}
    return read_request({"resourceSpans": _in_hex(inside.get(_BATCHES) or inside.get("resourceSpans"))}, place)


def _inside(document: Json) -> dict[str, Any] | None:
    if not isinstance(document, dict):
        return None
    for name in _ENVELOPES:
        inside = document.get(name)
        if isinstance(inside, dict) and ("resourceSpans" in inside or _BATCHES in inside):
            return inside
    return document if isinstance(document.get(_BATCHES), list) else None


def _in_hex(value: Any) -> Any:
    """The same with ids in hex, as OTLP has them; other values, which may be called so too, are left alone."""
    if isinstance(value, list):
        return [_in_hex(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _id(item, _IDS[name]) if name in _IDS else item if name in ("attributes", "resource") else _in_hex(item)
        for name, item in value.items()
    }


def _id(value: Any, size: int) -> Any:
    if not isinstance(value, str) or len(value) == 2 * size:
        return value
    try:
        found = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return value
    return found.hex() if len(found) == size else value
