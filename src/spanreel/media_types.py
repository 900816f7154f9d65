"""What kind of file content is, told by its first bytes; of what is no media, it tells nothing."""

from __future__ import annotations

from typing import Final

UNKNOWN: Final = "application/octet-stream"


def media_type(content: bytes) -> str:
    """The media type that the first bytes tell."""
    for start, kind in _MAGIC:
        if content.startswith(start):
            return _RIFF.get(content[8:12], kind) if start == b"RIFF" else kind
    return "video/mp4" if content[4:8] == b"ftyp" else UNKNOWN


_MAGIC: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"RIFF", "application/riff"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"\x1aE\xdf\xa3", "video/webm"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
)
_RIFF: Final = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
