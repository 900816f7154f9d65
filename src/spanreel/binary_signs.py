"""By what binary content is told: how it begins, under which keys and beside which types and formats it stands."""

from __future__ import annotations

import re
from typing import Final

from spanreel.glance import pattern_of

SHORTEST: Final = 64
"""Characters of base64 that nothing around them says is media, but whose beginning does."""
BASE64_STARTS: Final = (
    *("iVBORw0KGgo", "/9j/", "R0lGODdh", "R0lGODlh", "UklGR", "JVBERi0", "UEsDB", "H4sI", "T2dnUw", "SUQz"),
    *("//u", "//v", "//P", "ZkxhQ", "GkXfo", "SUkqA", "TU0AK", "AAAA"),
)
BARE: Final = re.compile(
    rf"(?<![A-Za-z0-9+/_=-])(?:{'|'.join(start for start in BASE64_STARTS if start[0] != '/' or start == '/9j/')})"
    rf"[A-Za-z0-9+/_-]{{{SHORTEST},}}={{0,2}}"
)
"""A word that begins as the base64 of media does, in text."""
HEX_STARTS: Final = ("89504e47", "ffd8ff", "47494638", "52494646", "25504446", "504b0304")
HEX: Final = re.compile(r"(?:[0-9a-fA-F]{2})+")
BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
STANDARD: Final = str.maketrans("-_", "+/")
"""From base64 that is safe in URLs."""
DATA_URL: Final = re.compile(r"(data:[^,\s\"'<>]{0,255}?;base64,)([A-Za-z0-9+/_-]+={0,2})")
BYTES_REPR: Final = re.compile(r"b'(?:[^'\\]|\\.)*'|b\"(?:[^\"\\]|\\.)*\"")
ESCAPES: Final = 8
"""So many escapes in the ``repr`` of bytes, and it is no text."""
MEDIA_URLS: Final = ("data:image/", "data:audio/", "data:video/", "data:application/pdf", "data:application/octet")
TYPE_NAMES: Final = ("mime_type", "mimeType", "mimetype", "media_type", "mediaType", "content_type", "contentType")
TEXTUAL: Final = ("text/", "application/json", "application/xml")
"""Types whose content stands as text but under ENCODED."""
ENCODED: Final = ("data", "blob", "base64", "file_data", "fileData")
"""Keys under which even text stands in base64."""
FORMATS: Final = frozenset(
    {
        *("png", "jpeg", "jpg", "gif", "webp", "bmp", "tiff", "heic", "svg", "mp3", "wav", "flac", "opus", "ogg"),
        *("aac", "m4a", "pcm", "pcm16", "pcm_16000", "mp4", "mov", "mkv", "webm", "avi", "mpeg", "pdf", "docx", "xlsx"),
    }
)
"""What a member ``format`` says of media."""
BASE64_TYPES: Final = ("blob", "base64", "image_generation_call", "Buffer")
TEXT_TYPES: Final = ("text", "input_text", "output_text", "reasoning", "thinking", "redacted_thinking")
ALWAYS: Final = (
    *("$bytes", "$base64", "b64_json", "bytesBase64Encoded"),
    *("imageBytes", "videoBytes", "image_bytes", "audio_bytes"),
)
"""Keys that say by themselves that base64 stands under them."""
PAYLOADS: Final = frozenset(
    {
        *("$bytes", "$base64", "b64json", "bytesbase64encoded", "imagebytes", "videobytes", "audiobytes", "bytes"),
        *("data", "content", "blob", "base64", "filedata", "imagedata", "audiodata", "image", "audio", "file"),
        *("result", "body", "partialimageb64"),
    }
)
"""Keys under which binary content stands, in lower case without underscores."""
FRAGMENTS: Final = (
    *("base64", "$bytes", "blob", "b64", "ytes", "mime", "edia", "ormat", "ontentType", "ontent_type", "Buffer"),
    *("image_generation_call", 'transcript"', "expires_at", "data:", "\\x", '"0"'),
    *(start for start in BASE64_STARTS if start not in {"//u", "//v", "//P", "AAAA"}),
    *("//uQ", "//vQ", "//PQ", "AAAAI", "AAAAG", "AAAAH"),
    *("137,80,78,71", "137, 80, 78, 71", "255,216,255", "255, 216, 255", "37,80,68,70", "37, 80, 68, 70"),
    *("82,73,70,70", "82, 73, 70, 70"),
    *HEX_STARTS,
    *(start.upper() for start in HEX_STARTS),
)
"""One of these stands in every text that holds something binary."""
GLANCES: Final = tuple(map(pattern_of, FRAGMENTS))
"""Patterns one of which matches wherever there may be something binary."""
