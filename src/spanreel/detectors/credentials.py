"""Credentials in text that are told by their shape, or by the word that a protocol puts before them.

Sources of the shapes: RFC 7235 and 7617 (authorization), RFC 7468 (PEM), RFC 7519 (JWT), RFC 3986 (user information in
URLs).
"""

from __future__ import annotations

import base64
import re
from typing import Final

from spanreel.detectors.finding import Detector, Kind
from spanreel.detectors.matching import matching

JWT: Final = Detector(
    "JWT",
    Kind.CREDENTIAL,
    ("eyj",),
    # The start may not stand inside a run of its own alphabet: each run is then tried once.
    matching(r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))eyJ[A-Za-z0-9_-]{5,}+\.[A-Za-z0-9_-]{5,}+(?:\.[A-Za-z0-9_-]*+)*+"),
)

PRIVATE_KEY: Final = Detector(
    "private key",
    Kind.CREDENTIAL,
    ("-----begin",),
    # A block that has no end goes to the end of the text.
    matching(
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"[\s\S]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)"
    ),
)

URL_PASSWORD: Final = Detector(
    "password in a URL",
    Kind.CREDENTIAL,
    ("://",),
    matching(
        r"://[^/\s:@\"'?#\\]{0,256}+:(?P<value>[^/\s?#\"'\\]{1,512})(?=@)",
    ),
)

HEADER: Final = Detector(
    "header",
    Kind.CREDENTIAL,
    ("authorization", "cookie"),
    # The value of these headers is several words; it ends where the line or the quotes do.
    matching(
        r"(?i:authorization|(?<![A-Za-z])cookie)"
        r"[\"'\\]{0,4}+[ \t]{0,8}+[:=][ \t]{0,8}+[\"'\\]{0,4}+(?!\[redacted[]:])(?P<value>[^\"'\\\r\n]+)",
    ),
)


def _is_token(match: re.Match[str]) -> bool:
    """Words of prose after "bearer" stay: a token has a digit or a sign in it, or is longer than words are."""
    value = match["value"]
    return len(value) >= 20 or not value.isalpha()


BEARER: Final = Detector(
    "bearer token",
    Kind.CREDENTIAL,
    ("bearer",),
    matching(r"\b[Bb](?:earer|EARER)(?:\s|%20|\+){1,4}(?P<value>[A-Za-z0-9][A-Za-z0-9._~+/=-]{5,})", _is_token),
)


def _is_user_and_password(match: re.Match[str]) -> bool:
    """Only what decodes to ``user:password`` is one; "basic understanding" stays."""
    value = match["value"]
    try:
        decoded = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except ValueError:
        return False
    return b":" in decoded


BASIC: Final = Detector(
    "basic authorization",
    Kind.CREDENTIAL,
    ("basic",),
    matching(r"\b[Bb](?:asic|ASIC)[ \t]{1,4}(?P<value>[A-Za-z0-9+/]{4,})={0,2}", _is_user_and_password),
)

SIGNED_URL: Final = Detector(
    "signed URL",
    Kind.CREDENTIAL,
    ("sig=", "key="),
    # In a query these short names are a signature (Azure) and a key (Google); elsewhere they may be anything.
    matching(r"(?<=[?&])(?i:sig|key)=(?!\[redacted[]:])(?P<value>[^&#\s\"'<>\\]{16,}+)"),
)
