"""Credentials that are told by the name before them: ``password=...``, ``"api_key": "..."``, ``--token ...``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from spanreel.credential_names import is_credential_name
from spanreel.detectors.finding import Detector, Found, Kind

_NAME: Final = re.compile(
    r"(?P<name>(?i:key|secret|pass|pwd|token|bearer|jwt|credential|authorization|cookie|signature|conn"
    r"|kubeconfig)[A-Za-z0-9_-]{0,40}+)"
    r"(?:\\{0,3}+[\"'])?+(?P<separator>[ \t]{0,8}+(?::=|=>|[:=])[ \t]{0,8}+|>|[ \t]{1,4}+)"
)
_VALUE: Final = re.compile(
    r"(?!(?:\\{0,3}[\"']|[<({\[])?\[redacted[]:])"
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


def _find_assignments(text: str, places: Sequence[int]) -> list[Found]:
    found, position = [], 0
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
        found.append(Found(*value.span(group)))
        position = value.end(group)
    return found


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
    Kind.CREDENTIAL,
    (
        *("key", "secret", "pass", "pwd", "token", "bearer", "jwt", "credential", "authorization", "cookie"),
        *("signature", "conn", "kubeconfig"),
    ),
    _find_assignments,
)
