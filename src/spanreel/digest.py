"""Digests that stand in the place of personal data: equal values have equal placeholders, for who has the key.

HMAC-SHA-256 (RFC 2104) over the field's class and the value, 128 bits of it; the class keeps equal values of unrelated
fields apart. Where keys come from is left to `keyring`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any, Final

from spanreel.detectors.finding import MASK

_VERSION: Final = b"spanreel.digest/1"
_DIGEST_BYTES: Final = 16
_ID_BYTES: Final = 4
_UNKNOWN: Final = "unknown"
_PLACEHOLDER: Final = re.compile(r"\[redacted:([A-Za-z0-9_.+-]{1,64}):([0-9a-f]{8}):[0-9a-f]{32}\]")
_NO_CLASS: Final = re.compile(r"[^a-z0-9]+")
_EXACT: Final = 2**53


@dataclass(frozen=True, slots=True)
class DigestKey:
    """A secret, and the id by which recordings name it; the id tells nothing of the secret."""

    id: str
    secret: bytes = field(repr=False)


def make_key(secret: bytes) -> DigestKey:
    """The key of a secret; its id follows from it, so that another secret is another key."""
    return DigestKey(hmac.digest(secret, b"spanreel.key-id/1", hashlib.sha256)[:_ID_BYTES].hex(), secret)


def digest(key: DigestKey, domain: str, field_class: str, leaf: Any) -> str:
    """The placeholder of a value. ``domain`` separates projects, ``field_class`` what is of another kind."""
    said = b"\0".join([_VERSION, domain.encode(), field_class.encode(), _canonical(leaf)])
    return f"[redacted:{field_class}:{key.id}:{hmac.digest(key.secret, said, hashlib.sha256)[:_DIGEST_BYTES].hex()}]"


def unknown(field_class: str) -> str:
    """What stands where the key of a digest is not at hand: equal to no digest."""
    return f"[redacted:{field_class}:{_UNKNOWN}]"


def class_of(name: str) -> str:
    """A name as a field's class: lower case, its words joined by one sign."""
    return _NO_CLASS.sub("_", name.lower()).strip("_")[:64] or "value"


def is_placeholder(text: str) -> bool:
    """Whether a text is a mask or a digest, and nothing else."""
    return text == MASK or _PLACEHOLDER.fullmatch(text) is not None


def key_ids_in(text: str) -> frozenset[str]:
    """The ids of the keys whose digests stand in a text."""
    return frozenset(match[2] for match in _PLACEHOLDER.finditer(text))


def blur(text: str, known: Container[str]) -> str:
    """The text in which each digest whose key is not among the ``known`` is unknown."""
    return _PLACEHOLDER.sub(lambda match: match[0] if match[2] in known else unknown(match[1]), text)


def _canonical(leaf: Any) -> bytes:
    """The leaf as replay compares it: ``2.0`` is ``2``, but no text."""
    if isinstance(leaf, float) and leaf.is_integer() and abs(leaf) < _EXACT:
        leaf = int(leaf)
    return json.dumps(leaf).encode()
