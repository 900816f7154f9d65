"""Credentials beside their names, where no sign says which is whose: in pairs, in cells of tables, in calls.

``("password", "...")``, ``| API key | ... |``, ``HTTPBasicAuth("me", "...")``, ``IDENTIFIED BY '...'``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from spanreel.credential_names import is_credential_name
from spanreel.detectors.assignments import ASSIGNMENT, whole_name
from spanreel.detectors.finding import Detector, Found, Kind
from spanreel.detectors.harmless import is_placeholder
from spanreel.detectors.matching import matching
from spanreel.detectors.prose import is_secret

_BESIDE: Final = re.compile(
    r"(?P<name>[A-Za-z][A-Za-z0-9_-]{0,40}+)(?:"
    r"\\{0,3}+[\"'],[ \t]{0,4}[bfru]{0,2}(?P<quote>\\{0,3}[\"'])(?P<paired>[^\s\"'\\]{6,200})(?P=quote)[ \t]{0,4}\)"
    r"|[`*]{0,2}[ \t]{0,16}\|[ \t]{0,16}[`*]{0,2}(?P<cell>[^\s|`*]{6,200})[`*]{0,2}[ \t]{0,16}(?=\||\r?\n|\Z))"
)
_OPENED: Final = re.compile(r"\([ \t]{0,4}[bfru]{0,2}\\{0,3}[\"']\Z")
_WORD_BEFORE: Final = re.compile(r"[A-Za-z]{1,16} \Z")


def _find_beside(text: str, places: Sequence[int]) -> list[Found]:
    found, done = [], 0
    for place in places:
        match = _BESIDE.match(text, place) if place >= done else None
        if match is None:
            continue
        group = "cell" if match["paired"] is None else "paired"
        name = whole_name(text, match)
        start = match.end("name") - len(name)
        if group == "paired" and _OPENED.search(text, max(0, start - 12), start) is None:
            continue
        if group == "cell" and (word := _WORD_BEFORE.search(text, max(0, start - 17), start)) is not None:
            name = word[0] + name
        if is_credential_name(name) and not is_placeholder(match[group]) and is_secret(match[group], ":", False):
            found.append(Found(*match.span(group)))
            done = match.end()
    return found


BESIDE: Final = Detector("credential beside its name", Kind.CREDENTIAL, ASSIGNMENT.fragments, _find_beside)


def _is_no_placeholder(match: re.Match[str]) -> bool:
    return any(map(str.isalnum, match["value"])) and not is_placeholder(match["value"])


IN_CALL: Final = Detector(
    "password in a call",
    Kind.CREDENTIAL,
    ("auth=(", "basicauth(", "digestauth(", "identified by", "securestring"),
    matching(
        r"(?:(?:auth=|(?i:basic|digest)_?(?i:auth))\(\s{0,8}[\"'][^\"'\\\r\n]{1,64}[\"']\s{0,4},\s{0,8}"
        r"|(?i:identified[ ]by)[ ](?:(?i:password)[ ])?|(?i:securestring)[ ](?:(?i:-string)[ ])?)"
        r"(?P<quote>[\"'])(?P<value>[^\"'\r\n]{1,200})(?P=quote)",
        _is_no_placeholder,
    ),
)
