"""Credentials that are told by the name before them: ``password=...``, ``"api_key": "..."``, ``--token ...``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from spanreel.credential_names import is_credential_name
from spanreel.detectors.finding import PLACEHOLDER, Detector, Found, Kind
from spanreel.detectors.harmless import is_code, is_code_before, is_placeholder, is_prose, is_type

_NAME: Final = re.compile(
    r"(?P<name>(?i:key|secret|pass|pwd|token|bearer|jwt|credential|kennwort|authorization|cookie|signature|conn"
    r"|kubeconfig|contrase[nñ]a|verifier)[A-Za-z0-9_-]{0,40}+)"
    # Also between brackets (`environ["API_KEY"] = ...`), or as the name beside a value.
    r"(?:\\{0,3}+[\"'`]|\*\*|&quot;|&#3[49];|%2[27])?+"
    r"(?:(?=[],\r\n ])(?:\]|,?[ \t]{0,8}+(?:[\r\n][ \t]{0,16}+)?(?:\\{0,3}+[\"'])?"
    r"(?i:value)(?:\\{0,3}+[\"'])?(?=[ \t]{0,8}[:=])))?+"
    r"(?P<separator>[ \t]{0,8}+(?::=|=>|[:=])(?:\*\*)?+[ \t]{0,8}+|>|%3[Dd]|%3[Aa](?:%20|\+)?+|[ \t]{1,4}+)"
)
_VALUE: Final = re.compile(
    r"(?:<!\[CDATA\[|!![a-z]{2,9}[ \t]{1,4})?+"
    r"(?!(?:[bfruBFRU]{0,2}\\{0,3}[\"'`]{1,3}|&quot;|&#3[49];|%2[27]|[<({\[])?\[redacted[]:])"
    # Quoted: to the closing quote, or to the end of a line that lacks it.
    r"(?:[bfruBFRU]{0,2}(?P<quote>\\{0,3}(?:\"{3}|'{3}|[\"'`])|&quot;|&#3[49];|%2[27])(?P<quoted>(?:\\[^\r\n]|[^\\\r\n])*?)(?:(?P=quote)|(?=[\r\n])|\Z)"
    r"|[<({\[]?(?P<bare>(?:[^\s\"'&<>\\,;)}\]({\[]"
    # What follows in a form is a name; a password may have an ampersand in it.
    r"|&(?=[^\s\"'&<>\\]{1,40};)(?![\w.%-]{1,40}=|[a-z]{2,6};)"
    r"|\\(?![\"'nrt\\])"
    # A separator belongs to the value unless the value visibly ends there.
    r"|(?<=[^<({\[])[({\[]|[,;)}\]](?![\s,;)}\]\"'\\]|\Z|:(?:\s|\Z)|[\w .-]{1,40}[=:]))++))"
)
_BLOCK: Final = re.compile(r"(?:!![a-z]{2,9} )?[|>][+-]?[1-9]?[+-]?[ \t]{0,8}(?:#[^\r\n]*)?\r?\n")
_INDENT: Final = re.compile(r"[ \t]*(?:-[ ]+)*")
_LINE: Final = re.compile(r"([ \t]*)([^\r\n]*)(?:\r?\n|\Z)")
_OF_A_MODEL: Final = re.compile(
    r"(?:\\{0,3}[\"'])?[ \t]{0,4},[ \t]{0,4}\\{0,3}[\"'](?:bytes|logprob|prob|score|token_id|top_logprobs)\b"
)
_NEXT_FIELD: Final = re.compile(r"%26|%3[Bb]|%0[DdAa]")
_SHORTEST_NUMBER: Final = 4
_USER: Final = re.compile(r"://[A-Za-z0-9_-]*\Z")
_PASSWORD: Final = re.compile(r"[^/\s?#\"'\\]{1,512}@")
_LOGIN: Final = re.compile(r"(?:\bmachine\s{1,4}\S{1,64}|\bdefault)\s{1,8}login\s{1,4}\S{1,64}\s{1,8}\Z")
_QUOTES: Final = frozenset("\"'")
_NAME_BEFORE_REVERSED: Final = re.compile(r"[A-Za-z0-9_.-]*")


def _find_assignments(text: str, places: Sequence[int]) -> list[Found]:
    found, position = [], 0
    for place in places:
        match = _NAME.match(text, place) if place >= position else None
        if match is None:
            continue
        # Without a value to mask, on from the end of the name: the value may itself be a name. Values are looked at
        # behind names of credentials only, or text such as "key=key=key=..." would be read over and over.
        position = match.end()
        name, separator = match.groups()
        # What is nearly always so, told at once: a mere key of something, and a word in a sentence.
        if name == "key" and text[place - 1 : place] in _QUOTES:
            continue
        if (
            separator.isspace()
            and "--" not in (before := text[max(0, place - 64) : place + 2])
            and "login" not in before
        ):
            continue
        if separator == ":" and _is_user_in_url(text, match):
            continue  # its password is found as such
        if not _names_a_credential(text, match):
            continue
        if (block := _BLOCK.match(text, position)) is not None:
            if (block_found := _find_block(text, place, block.end())) is not None:
                found.append(block_found)
                position = block_found.end
            continue
        value = _VALUE.match(text, position)
        if value is None:
            continue
        group = "quoted" if value["bare"] is None else "bare"
        if _is_harmless(text, match, value, group):
            continue
        start, position = value.span(group)
        if match["separator"][0] == "%":  # a form inside of a form, where the next field begins likewise
            position = start + len(_NEXT_FIELD.split(value[group], 1)[0])
        found.append(Found(start, position))
    return found


def _find_block(text: str, name: int, start: int) -> Found | None:
    """The lines of a YAML scalar that starts behind its name: those further in than the name."""
    line = text.rfind("\n", 0, name) + 1
    depth = len((_INDENT.match(text, line) or [""])[0])
    first, end = -1, start
    while start < len(text) and (match := _LINE.match(text, start)) is not None:
        if match[2]:
            if len(match[1]) <= depth:
                break
            first = match.start(2) if first < 0 else first
            end = match.end(2)
        start = match.end()
    return Found(first, end) if first >= 0 and PLACEHOLDER.match(text, first) is None else None


def _is_user_in_url(text: str, match: re.Match[str]) -> bool:
    """Whether what stands there is the user in a URL (``https://x-access-token:...@host``)."""
    start = max(0, match.start() - 24)
    if "//" not in text[start : match.start()] or _USER.search(text, start, match.start()) is None:
        return False
    return _PASSWORD.match(text, match.end()) is not None


def _names_a_credential(text: str, match: re.Match[str]) -> bool:
    name = whole_name(text, match)
    if text[match.end("name") - len(name) - 2 : match.end("name") - len(name)] == "${":
        return False  # ${API_KEY:-none}
    if not is_credential_name(name):
        return False
    return not match["separator"].isspace() or name.startswith("--") or _is_in_netrc(text, match.start())


def whole_name(text: str, match: re.Match[str]) -> str:
    """The name that a match may start inside of: what stands before it decides too."""
    start = match.start("name")
    before = _NAME_BEFORE_REVERSED.match(text[max(0, start - 64) : start][::-1])
    return (before[0][::-1] if before else "") + match["name"]


def _is_in_netrc(text: str, place: int) -> bool:
    """Whether it stands behind a login, as in a ``.netrc``."""
    return _LOGIN.search(text, max(0, place - 160), place) is not None


def _is_harmless(text: str, name: re.Match[str], found: re.Match[str], group: str) -> bool:
    """Whether the value is a type, a placeholder, a count of the tokens of language models or, bare, code or prose."""
    value = found[group]
    if not any(map(str.isalnum, value)) or is_type(value) or is_placeholder(value):
        return True
    if value.isdecimal() and (name["name"].lower().endswith("token") or len(value) < _SHORTEST_NUMBER):
        return True
    if group == "quoted":
        start = name.start("name")
        return name["name"] == "token" and text[start - 1] in _QUOTES and bool(_OF_A_MODEL.match(text, found.end()))
    if name["name"].lower() == "pwd" and value[0] in "/~":
        return True  # where a shell works
    start, end = found.span("bare")
    if text[start - 1 : start] in {"{", "<"} and text[end : end + 1] in {"}", ">"} and name["separator"] != ">":
        return True  # {token}, <your-token>
    if name["separator"] == ">" and text[start - 1 : start] == "<":
        return True  # a tag that follows
    apart = name["separator"][-1:].isspace()
    if apart and (is_prose(value, text, end) or is_code_before(value, text, end)):
        return True
    return is_code(value, name["name"])


ASSIGNMENT: Final = Detector(
    "named credential",
    Kind.CREDENTIAL,
    (
        *(
            "key",
            "secret",
            "pass",
            "pwd",
            "token",
            "bearer",
            "jwt",
            "credential",
            "authorization",
            "cookie",
            "kennwort",
        ),
        *("signature", "conn", "kubeconfig", "contrase", "verifier"),
    ),
    _find_assignments,
)
