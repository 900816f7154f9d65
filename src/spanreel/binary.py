"""Binary content (images, audio, files) by digest, media type and size, wherever it stands in values and in text.

Equal content has equal stand-ins, in whatever shape it was sent, so that what was recorded without it can be found
again. Where the content itself may be kept is left to the caller.
"""

from __future__ import annotations

import base64
import binascii
import functools
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from spanreel import json_text
from spanreel.binary_signs import (
    ALWAYS,
    BARE,
    BASE64,
    BASE64_STARTS,
    BASE64_TYPES,
    BYTES_REPR,
    DATA_URL,
    ENCODED,
    ESCAPES,
    FORMATS,
    GLANCES,
    HEX,
    HEX_STARTS,
    MEDIA_URLS,
    PAYLOADS,
    SHORTEST,
    STANDARD,
    TEXT_TYPES,
    TEXTUAL,
    TYPE_NAMES,
)
from spanreel.glance import Glance
from spanreel.media_types import UNKNOWN, media_type
from spanreel.memory import Memory, note_passed

Keep = Callable[[str, bytes], None]
"""Takes content that a stand-in stands for, by its digest."""

STAND_IN: Final = re.compile(r"\[binary [\w.+-]+/[\w.+-]+ \d+ bytes sha256:[0-9a-f]{64}\]")

LEAST_BYTES: Final = 64
"""Numbers in a list that is taken for bytes."""
KNOWN_BYTES: Final = 8 * 1024 * 1024
"""How much of what was looked at before is known again."""


def stand_in(content: bytes) -> str:
    """What stands for the content: its media type by its first bytes, its size, and its SHA-256.

    A stand-in that came back as content, from an answer that was replayed, stands for itself.
    """
    if content.startswith(b"[binary ") and STAND_IN.fullmatch(text := content.decode("latin-1")):
        return text
    kind = media_type(content)
    return f"[binary {kind} {len(content)} bytes sha256:{hashlib.sha256(content).hexdigest()}]"


def without_binary(value: Any, keep: Keep | None = None) -> Any:
    """A JSON value (or one with bytes in it) with stand-ins; the very same object where it holds nothing binary."""
    return _walk(value, keep)


def without_binary_text(text: str, keep: Keep | None = None) -> str:
    """Text, JSON text or other, with stand-ins; the very same object where it holds nothing binary."""
    if isinstance(text, json_text.Listed):
        return _listed(text, keep)
    if isinstance(text, json_text.Parted) and _is_plain_in_parts(text):
        return text
    return _known(text, keep)


def decodable(value: Any) -> Any:
    """A recorded value in which what stands for binary content can be decoded as that content was: to itself.

    It stands as text where base64 was, which libraries refuse to read.
    """
    if isinstance(value, dict):
        made = {key: decodable(item) for key, item in value.items()}
        data = made.get("data")
        if "media_type" in made and isinstance(data, str) and STAND_IN.fullmatch(data):
            made["data"] = base64.b64encode(data.encode()).decode()
        return made
    return [decodable(item) for item in value] if isinstance(value, list) else value


def _is_plain_in_parts(text: json_text.Parted) -> bool:
    return _known(text.frame, None) is text.frame and all(_listed(one, None) is one for one in text.lists.values())


def _listed(text: json_text.Listed, keep: Keep | None) -> str:
    replaced = {}
    for item in text.items:
        if without_binary_text in item.passed:
            continue
        new = _known(item, keep)
        if new is item:
            note_passed(item, without_binary_text)
        else:
            replaced[item] = new
    return json_text.listed(replaced.get(item, item) for item in text.items) if replaced else text


def _known(text: str, keep: Keep | None) -> str:
    """The text with stand-ins, found out once; whoever keeps contents has to meet them each time."""
    if len(text) < _WORTH_KNOWING:
        return text if _is_plain(text) else _string(text, keep)
    found = _looked_at.find(text)
    if found is None or (found is not _CLEAN and keep is not None):
        found = _string(text, keep) if _may_hold(text) else text
        _looked_at.keep(text, _CLEAN if found is text else found)
    return text if found is _CLEAN else found


_looked_at: Memory[str] = Memory(KNOWN_BYTES)
_CLEAN: Final = ""
_WORTH_KNOWING: Final = 64
"""Characters from which on looking up is cheaper than looking."""


@functools.lru_cache(4096)
def _is_plain(text: str) -> bool:
    """Of short texts, which are names and numbers, and come again and again."""
    return not _may_hold(text)


def _may_hold(text: str) -> bool:
    return _glance.sees(text)


def _walk(value: Any, keep: Keep | None) -> Any:
    if isinstance(value, str):
        return _string(value, keep) if _may_hold(value) else value
    if isinstance(value, Mapping):
        return _mapping(value, keep)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _replace(bytes(value), keep)
    if isinstance(value, Sequence):
        if (content := _listed_bytes(value)) is not None and media_type(content) != UNKNOWN:
            return _replace(content, keep)
        items = [_walk(item, keep) for item in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return tuple(items) if isinstance(value, tuple) else items
    return value


def _mapping(value: Mapping[Any, Any], keep: Keep | None) -> Any:
    if (content := _numbered_bytes(value)) is not None:
        return _replace(content, keep)
    replaced = {}
    changed = False
    for key, item in value.items():
        content = _payload(key, item, value)
        new = _replace(content, keep) if content is not None else _walk(item, keep)
        replaced[key] = new
        changed = changed or new is not item
    return replaced if changed else value


def _payload(key: Any, item: Any, siblings: Mapping[Any, Any]) -> bytes | None:
    """The content where key and siblings say that this is binary: base64 text, or a list of bytes."""
    if not isinstance(key, str) or key.replace("_", "").lower() not in PAYLOADS:
        return None
    if isinstance(item, str):
        sure = key in ALWAYS or siblings.get("type") in BASE64_TYPES
        if not sure and not (_says_media(key, siblings) or (key == "bytes" and len(item) >= SHORTEST)):
            return None
        return _decode(item)
    if isinstance(item, Sequence) and (siblings.get("type") == "Buffer" or _says_media(key, siblings)):
        return _listed_bytes(item, 1)
    return None


def _says_media(key: str, siblings: Mapping[Any, Any]) -> bool:
    """Whether a media type or a format of media stands beside the key. Text of a text type is taken for text."""
    if siblings.get("type") in TEXT_TYPES:
        return False
    kind = next((siblings[name] for name in TYPE_NAMES if isinstance(siblings.get(name), str)), "").lower()
    if "/" in kind and not kind.startswith("[binary "):
        return key in ENCODED or not kind.startswith(TEXTUAL)
    spoken = key == "data" and ("transcript" in siblings or "expires_at" in siblings)  # OpenAI's audio in answers
    return spoken or str(siblings.get("format")).lower() in FORMATS


def _string(text: str, keep: Keep | None) -> str:
    if text.lstrip()[:1] in {"{", "[", '"'}:
        try:
            decoded = json_text.decode(text)
        except ValueError:
            pass
        else:
            replaced = _walk(decoded, keep)
            return text if replaced is decoded else json_text.encode(replaced)
    if text.startswith("data:"):
        return _data_url(text, keep)
    if len(text) >= SHORTEST and text.startswith(BASE64_STARTS):
        content = _decode(text)
        if content is not None and media_type(content) != UNKNOWN:
            return _replace(content, keep)
    if len(text) >= SHORTEST and text[:8].lower().startswith(HEX_STARTS) and HEX.fullmatch(text):
        return _replace(bytes.fromhex(text), keep)
    replaced = text
    if "base64," in text:
        replaced = DATA_URL.sub(lambda found: found[1] + _replace(_decoded(found[2]), keep), replaced)
    replaced = BARE.sub(lambda found: _bare(found[0], keep), replaced)
    if "\\x" in text:
        replaced = BYTES_REPR.sub(lambda found: _repr(found[0], keep), replaced)
    return text if replaced == text else replaced


def _data_url(text: str, keep: Keep | None) -> str:
    """A URL that is all of its text, whose payload may be wrapped, percent-encoded or plain."""
    head, comma, payload = text.partition(",")
    if not comma or STAND_IN.match(payload):
        return text
    if head.endswith(";base64"):
        content = _decode(unquote_to_bytes(payload).decode("latin-1") if "%" in payload else payload)
        if content is not None:
            return f"{head},{_replace(content, keep)}"
        # Words after it, or a payload that was cut.
        return DATA_URL.sub(lambda found: found[1] + _replace(_decoded(found[2]), keep), text)
    if head.startswith(MEDIA_URLS):
        return f"{head},{_replace(unquote_to_bytes(payload), keep)}"
    return text


def _bare(text: str, keep: Keep | None) -> str:
    """A word that begins as the base64 of media does."""
    content = _decode(text)
    return text if content is None or media_type(content) == UNKNOWN else _replace(content, keep)


def _repr(text: str, keep: Keep | None) -> str:
    """A ``repr`` of bytes that are no text."""
    if text.count("\\x") < ESCAPES:
        return text
    return _replace(text[2:-1].encode("latin-1", "replace").decode("unicode_escape").encode("latin-1", "replace"), keep)


def _decode(text: str) -> bytes | None:
    """What base64 text stands for, URL-safe, wrapped or unpadded too; None where it is none."""
    plain = "".join(text.split()) if len(text) != len(text.strip()) or "\n" in text or " " in text else text
    if not plain or not BASE64.fullmatch(plain):
        return None
    try:
        return base64.b64decode(plain.rstrip("=").translate(STANDARD) + "=" * (-len(plain.rstrip("=")) % 4))
    except (binascii.Error, ValueError):
        return None


def _decoded(text: str) -> bytes:
    """As `_decode`; of what was cut where no byte ends, the text itself."""
    content = _decode(text)
    return text.encode() if content is None else content


def _listed_bytes(value: Sequence[Any], least: int = LEAST_BYTES) -> bytes | None:
    if len(value) < least or not all(type(item) is int and 0 <= item <= 255 for item in value):
        return None
    return bytes(value)


def _numbered_bytes(value: Mapping[Any, Any]) -> bytes | None:
    """What JavaScript writes for an array of bytes: ``{"0": 137, "1": 80, ...}``."""
    if len(value) < LEAST_BYTES or "0" not in value:
        return None
    try:
        items = [value[str(number)] for number in range(len(value))]
    except KeyError:
        return None
    return _listed_bytes(items)


def _replace(content: bytes, keep: Keep | None) -> str:
    found = stand_in(content)
    if keep is not None:
        keep(found[-65:-1], content)
    return found


_glance: Final = Glance(GLANCES)
