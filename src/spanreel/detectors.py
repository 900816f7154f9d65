"""Credentials in text, found by their shape or by the name before them, in time linear in the length of the text.

Fragments are looked for first, and patterns tried only there: a pattern searched for through a long text would hold the
interpreter's lock, and delay the streams of the program that is recorded.

Sources of the shapes: what the providers document of their keys, RFC 7235 and 7617 (authorization), RFC 7468 (PEM),
RFC 7519 (JWT), RFC 3986 (user information in URLs).
"""

from __future__ import annotations

import base64
import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from spanreel.credential_names import is_credential_name

MASK: Final = "[redacted]"


@dataclass(frozen=True, slots=True)
class Detector:
    """One kind of secret in text. A secret, or the name before it, starts with one of the lower-case ``fragments``.

    ``redact`` gets the text and the places of the fragments in it, in order.
    """

    name: str
    fragments: tuple[str, ...]
    redact: Callable[[str, Sequence[int]], str]


def find_places(lowered: str, fragments: Sequence[str]) -> list[int]:
    """The places in the lower-case text where one of the fragments stands, in order."""
    places = []
    for fragment in fragments:
        place = lowered.find(fragment)
        while place >= 0:
            places.append(place)
            place = lowered.find(fragment, place + 1)
    return sorted(places)


def lower(text: str) -> str:
    """The text in lower case, character by character, so that places stay."""
    lowered = text.lower()
    if len(lowered) != len(text):  # a few letters become two
        lowered = "".join(character.lower()[:1] for character in text)
    return lowered


def _mask(match: re.Match[str]) -> str:
    return MASK


def _mask_after(match: re.Match[str]) -> str:
    """The mask behind the group ``before``."""
    return match["before"] + MASK


def _masking(pattern: str, replace: Callable[[re.Match[str]], str] = _mask) -> Callable[[str, Sequence[int]], str]:
    """The function that replaces what the pattern matches at the places of the fragments."""
    return functools.partial(_replace_at, re.compile(pattern), replace)


def _replace_at(
    pattern: re.Pattern[str], replace: Callable[[re.Match[str]], str], text: str, places: Sequence[int]
) -> str:
    parts, done = [], 0
    for place in places:
        match = pattern.match(text, place) if place >= done else None
        if match is not None:
            parts += [text[done:place], replace(match)]
            done = match.end()
    return "".join([*parts, text[done:]]) if parts else text


# A key starts a word, or follows an escape of a JSON string, a repr or a URL that has not been decoded.
_START: Final = (
    r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=\\u[0-9A-Fa-f]{4})|(?<=\\x[0-9A-Fa-f]{2})|(?<=%[0-9A-Fa-f]{2}))"
)

_KEYS: Final = (
    r"sk-(?!learn\b)[A-Za-z0-9_-]{4,}",
    r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{8,}",
    r"whsec_[A-Za-z0-9+/=]{8,}",
    r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    r"gh[pousr]_[A-Za-z0-9]{16,}",
    r"github_pat_[A-Za-z0-9_]{16,}",
    r"xox[abeoprs]-[A-Za-z0-9-]{8,}",
    r"xapp-[A-Za-z0-9-]{8,}",
    r"AIza[A-Za-z0-9_-]{30,}",
    r"ya29\.[A-Za-z0-9_-]{16,}",
    r"hf_[A-Za-z0-9]{16,}",
    r"gl(?:pat|dt|rt|oas|cbt|ptt|ft|imt|agent|soat|ffct)-[A-Za-z0-9_-]{16,}",
    r"npm_[A-Za-z0-9]{30,}",
    r"pypi-[A-Za-z0-9_-]{32,}",
    r"do[opr]_v1_[a-f0-9]{32,}",
    r"gsk_[A-Za-z0-9]{20,}",
    r"xai-[A-Za-z0-9]{20,}",
    r"pplx-[A-Za-z0-9]{20,}",
    r"tvly-[A-Za-z0-9-]{16,}",
    r"nvapi-[A-Za-z0-9_-]{20,}",
    r"r8_[A-Za-z0-9]{20,}",
    r"lsv2_(?:pt|sk)_[A-Za-z0-9_]{16,}",
    r"pcsk_[A-Za-z0-9_]{20,}",
    r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    r"dapi[a-f0-9]{32}",
    r"AGE-SECRET-KEY-1[A-Z0-9]{20,}",
)

PROVIDER_KEY: Final = Detector(
    "provider key",
    (
        *("sk-", "sk_live_", "sk_test_", "rk_live_", "rk_test_", "pk_live_", "pk_test_", "whsec_", "akia", "asia"),
        *("abia", "acca", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "xox", "xapp-", "aiza", "ya29."),
        *("hf_", "glpat-", "gldt-", "glrt-", "gloas-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "glsoat-"),
        *("glffct-", "npm_", "pypi-", "do_v1_", "doo_v1_", "dop_v1_", "dor_v1_", "gsk_", "xai-", "pplx-", "tvly-"),
        *("nvapi-", "r8_", "lsv2_", "pcsk_", "sg.", "dapi", "age-secret-key-"),
    ),
    _masking(_START + "(?:" + "|".join(_KEYS) + ")"),
)

JWT: Final = Detector(
    "JWT",
    ("eyj",),
    # The start may not stand inside a run of its own alphabet: each run is then tried once.
    _masking(r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))eyJ[A-Za-z0-9_-]{5,}+\.[A-Za-z0-9_-]{5,}+(?:\.[A-Za-z0-9_-]*+)*+"),
)

PRIVATE_KEY: Final = Detector(
    "private key",
    ("-----begin",),
    # A block that has no end goes to the end of the text.
    _masking(
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"[\s\S]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)"
    ),
)

URL_PASSWORD: Final = Detector(
    "password in a URL",
    ("://",),
    _masking(
        r"(?P<before>://[^/\s:@\"'?#\\]{0,256}+:)[^/\s?#\"'\\]{1,512}(?=@)",
        _mask_after,
    ),
)

HEADER: Final = Detector(
    "header",
    ("authorization", "cookie"),
    # The value of these headers is several words; it ends where the line or the quotes do.
    _masking(
        r"(?P<before>(?i:authorization|(?<![A-Za-z])cookie)"
        r"[\"'\\]{0,4}+[ \t]{0,8}+[:=][ \t]{0,8}+[\"'\\]{0,4}+)(?!\[redacted\])[^\"'\\\r\n]+",
        _mask_after,
    ),
)


def _bearer(match: re.Match[str]) -> str:
    """Words of prose after "bearer" stay: a token has a digit or a sign in it, or is longer than words are."""
    value = match["value"]
    return match["before"] + MASK if len(value) >= 20 or not value.isalpha() else match[0]


BEARER: Final = Detector(
    "bearer token",
    ("bearer",),
    _masking(
        r"(?P<before>\b[Bb](?:earer|EARER)(?:\s|%20|\+){1,4})(?P<value>[A-Za-z0-9][A-Za-z0-9._~+/=-]{5,})", _bearer
    ),
)


def _basic(match: re.Match[str]) -> str:
    """Only what decodes to ``user:password`` is one; "basic understanding" stays."""
    value = match["value"]
    try:
        decoded = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except ValueError:
        return match[0]
    return match["before"] + MASK if b":" in decoded else match[0]


BASIC: Final = Detector(
    "basic authorization",
    ("basic",),
    _masking(r"(?P<before>\b[Bb](?:asic|ASIC)[ \t]{1,4})(?P<value>[A-Za-z0-9+/]{4,})={0,2}", _basic),
)

_NAME: Final = re.compile(
    r"(?P<name>(?i:key|secret|pass|pwd|token|bearer|jwt|credential|authorization|cookie|signature|conn"
    r"|kubeconfig)[A-Za-z0-9_-]{0,40}+)"
    r"(?:\\{0,3}+[\"'])?+(?P<separator>[ \t]{0,8}+(?::=|=>|[:=])[ \t]{0,8}+|>|[ \t]{1,4}+)"
)
_VALUE: Final = re.compile(
    r"(?!(?:\\{0,3}[\"']|[<({\[])?\[redacted\])"
    # Quoted: to the closing quote, or to the end of a line that lacks it.
    r"(?:(?P<quote>\\{0,3}[\"'])(?P<quoted>(?:\\[^\r\n]|[^\\\r\n])*?)(?:(?P=quote)|(?=[\r\n])|\Z)"
    r"|[<({\[]?(?P<bare>(?:[^\s\"'&<>\\,;)}\]({\[]"
    r"|\\(?![\"'nrt\\])"
    # A separator belongs to the value unless the value visibly ends there.
    r"|(?<=[^<({\[])[({\[]|[,;)}\]](?![\s,;)}\]\"'\\]|\Z|[\w .-]{1,40}[=:]))++))"
)
_NAME_BEFORE_REVERSED: Final = re.compile(r"[A-Za-z0-9_.-]*")
_HARMLESS_VALUES: Final = frozenset(
    {
        "",
        "none",
        "null",
        "nil",
        "true",
        "false",
        "undefined",
        "str",
        "string",
        "bytes",
        "int",
        "bool",
        "optional",
        "any",
    }
)


def _redact_assignments(text: str, places: Sequence[int]) -> str:
    parts, done, position = [], 0, 0
    for place in places:
        match = _NAME.match(text, place) if place >= position else None
        if match is None:
            continue
        # Without a value to mask, on from the end of the name: the value may itself be a name. Values are looked at
        # behind names of credentials only, or text such as "key=key=key=..." would be read over and over.
        position = match.end()
        value = _VALUE.match(text, position) if _names_a_credential(text, match) else None
        if value is None:
            continue
        group = "quoted" if value["bare"] is None else "bare"
        if _is_harmless(value[group], match["name"]):
            continue
        parts += [text[done : value.start(group)], MASK]
        done = position = value.end(group)
    return "".join([*parts, text[done:]]) if parts else text


def _names_a_credential(text: str, match: re.Match[str]) -> bool:
    """The match may start inside of a name: what stands before it decides too."""
    start = match.start()
    before = _NAME_BEFORE_REVERSED.match(text[max(0, start - 64) : start][::-1])
    name = (before[0][::-1] if before else "") + match["name"]
    return is_credential_name(name) and (not match["separator"].isspace() or name.startswith("--"))


def _is_harmless(value: str, name: str) -> bool:
    """Whether the value is a word of a programming language, or a count of the tokens of language models."""
    return value.lower() in _HARMLESS_VALUES or (value.isdecimal() and name.lower().endswith("token"))


ASSIGNMENT: Final = Detector(
    "named credential",
    (
        *("key", "secret", "pass", "pwd", "token", "bearer", "jwt", "credential", "authorization", "cookie"),
        *("signature", "conn", "kubeconfig"),
    ),
    _redact_assignments,
)

SIGNED_URL: Final = Detector(
    "signed URL",
    ("sig=", "key="),
    # In a query these short names are a signature (Azure) and a key (Google); elsewhere they may be anything.
    _masking(r"(?<=[?&])(?P<before>(?i:sig|key)=)(?!\[redacted\])[^&#\s\"'<>\\]{16,}+", _mask_after),
)

DETECTORS: Final = (
    # The order has a meaning: whole shapes before names, headers of several words before single values.
    PRIVATE_KEY,
    URL_PASSWORD,
    HEADER,
    BEARER,
    BASIC,
    JWT,
    PROVIDER_KEY,
    SIGNED_URL,
    ASSIGNMENT,
)
