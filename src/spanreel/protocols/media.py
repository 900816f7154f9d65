"""Content that is no text: data URLs and plain URLs to ``blob`` and ``uri`` parts, and back."""

from __future__ import annotations

import re
from typing import Any, Final

from spanreel.model import Json

OTHER: Final = "other"
"""The type of a part that stands for what could not be kept as it came: ``{"type": "other", "value": ...}``."""
CANONICAL: Final = frozenset(
    {
        *("text", "reasoning", "refusal", "tool_call", "tool_call_response", "server_tool_call"),
        *("server_tool_call_response", "blob", "uri", "file", OTHER),
    }
)
"""The types of parts that have a meaning of our own; a provider's part of another type is kept as it came."""

_DATA_URL = re.compile(r"data:([^;,]*);base64,(.*)", re.DOTALL)
_AUDIO_TYPES = {"mp3": "audio/mpeg"}
_AUDIO_FORMATS = {mime_type: name for name, mime_type in _AUDIO_TYPES.items()}


def read_url(url: str, modality: str) -> dict[str, Any]:
    """A ``blob`` part for a data URL, else a ``uri`` part."""
    match = _DATA_URL.fullmatch(url)
    if match is None:
        return {"type": "uri", "modality": modality, "uri": url}
    return {"type": "blob", "modality": modality, "mime_type": match.group(1), "content": match.group(2)}


def write_url(part: dict[str, Json]) -> str:
    """The URL of a ``blob`` or ``uri`` part."""
    if part.get("type") == "uri":
        return str(part.get("uri", ""))
    return f"data:{part.get('mime_type') or ''};base64,{part.get('content', '')}"


def read_audio(data: str, name: str) -> dict[str, Any]:
    """A ``blob`` part for base64 audio in a named format."""
    return {"type": "blob", "modality": "audio", "mime_type": _AUDIO_TYPES.get(name, f"audio/{name}"), "content": data}


def write_audio(part: dict[str, Json]) -> dict[str, Json]:
    """``{"data", "format"}`` of a ``blob`` part of audio."""
    mime_type = str(part.get("mime_type") or "")
    return {
        "data": part.get("content"),
        "format": _AUDIO_FORMATS.get(mime_type, mime_type.removeprefix("audio/")),
    }


def read_own(value: Json) -> dict[str, Any]:
    """A provider's own part, as it came; wrapped where it has no type, or one that means something else to us."""
    if isinstance(value, dict) and isinstance(value.get("type"), str) and value["type"] not in CANONICAL:
        return value
    return {"type": OTHER, "value": value}


def write_own(part: dict[str, Json]) -> Json:
    """What `read_own` read."""
    return part.get("value") if part.get("type") == OTHER else part
