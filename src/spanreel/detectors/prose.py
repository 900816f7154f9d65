"""Credentials told in prose: strings that look random, or hold more than a word does, behind a word for a credential.

"the api key is 8fK2..." and "log in with password Tr0ub4dor&3" are found; "the password is required" stays, as do
digests, UUIDs, paths and names of variables.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from spanreel.detectors.finding import Detector, Found, Kind

# A value on a line of its own, below what names it; a name that ends in a colon begins something else.
_BELOW: Final = r"(?:\r?\n[ \t]{0,16}){1,2}(?=[^\s]{6,204}(?<!:)[ \t]{0,8}(?:[\r\n]|\Z))"
_SAID: Final = re.compile(
    r"(?<![A-Za-z0-9])(?i:(?P<name>(?P<first>api|access|account|admin|auth|client|encryption|master|private|secret|shared"
    r"|signing|ssh)(?P<apart>[ _-]?)keys?|(?:access|api|auth|bearer|bot|refresh|session)?[ _-]?tokens?|secrets?"
    r"|key(?=[ \t](?:is|was|es|ist)[ \t])|passwor[dt]s?|kennwort|mot de passe|passwd|pwd|passphrases?|passcodes?"
    r"|credentials?)"
    r"(?P<link>"
    # What it is for may stand between: "the password for the staging database is".
    r"(?:[ \t]{1,3}(?:for|of|to|on|in|at)(?:[ \t]{1,3}[\w.@-]{1,32}){1,4}?|[ \t]{1,3}\([^()\r\n]{1,32}\))?"
    rf"(?:(?:\*\*)?[ \t]{{0,3}}(?:[:=]|->|=>)(?:\*\*)?[ \t]{{0,3}}(?:{_BELOW})?"
    r"|[ \t]{1,3}(?:(?:is|was|has been|had been)[ \t]{1,3})?(?:set|changed|reset|updated)[ \t]{1,3}to[ \t]{1,3}"
    r"|[ \t]{1,3}(?:is|was|are|being|becomes|es|est|ist|lautet)(?:[ \t]now)?(?::?[ \t]{1,3}|:[ \t]{0,3}"
    rf"{_BELOW}))"
    r"|[ \t]{1,3}to[ \t]{1,3}|[ \t]{1,3}))"
    r"(?P<quote>[\"'`“*]{0,2})\(?(?P<value>[^\s\"'`“”<>*,;]{6,200})"
)
_TRAILING: Final = ".,;:?)]}"
_HEX: Final = re.compile(r"(?:[a-z0-9]{2,10}:)?(?:0x)?[0-9a-fA-F]+(?:-[0-9a-fA-F]+)*")
_WORDLIKE: Final = re.compile(r"[A-Za-z]?[a-z]+|[A-Z]+|[0-9]+")
_PLAIN: Final = re.compile(
    # Paths, URLs, placeholders, calls, versions, times, measures, dotted names, flags, names of variables, words.
    r"[~.]{0,2}/|[A-Za-z]:\\|\w+://|[$%{<\[(]|[A-Za-z_][\w.]*[(\[]|v?[0-9]+(?:\.[0-9]+)+|[0-9:.,TZ+-]+\Z"
    r"|[0-9]+[A-Za-z]{1,5}\Z|(?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*\Z|-{1,2}[A-Za-z]|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\Z"
    r"|[a-z]+(?:[_-][a-z0-9]+)+\Z|[A-Za-z_][\w.-]*=(?!=|\Z)|[*x.]+\Z|[A-Za-z]+(?:['/-][A-Za-z]+)*\Z"
)
_DOTTED: Final = re.compile(r"(?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*")
_NUMBERED: Final = re.compile(r"[A-Za-z]+-?[0-9]{1,4}")


def _find_said(text: str, places: Sequence[int]) -> list[Found]:
    found, done = [], 0
    for place in places:
        if place < done:
            continue
        for start in (place, *_starts_before(text, place)):
            match = _SAID.match(text, start)
            if match is not None:
                break
        else:
            continue
        if match["link"].strip("* \t") in {":", "="} and match["apart"] != " " and " " not in match["name"]:
            continue  # an assignment, which has a detector of its own
        value = match["value"].rstrip(_TRAILING)
        if match["name"].lower() == "key" and not _is_called_key(text, match.start(), value):
            continue
        if is_secret(value, match["link"].strip("* \t"), bool(match["quote"])):
            found.append(Found(match.start("value"), match.start("value") + len(value)))
            done = match.end()
    return found


_FIRST_WORD: Final = re.compile(
    r" ed tom(?![a-z])"
    r"|[ _-]?(?:ipa|ssecca|tnuocca|nimda|htua|tneilc|noitpyrcne|retsam|etavirp|terces|derahs|gningis|hss)(?![a-z])"
)


def _starts_before(text: str, place: int) -> tuple[int, ...]:
    """Where the name starts whose second word is at the place: "api key"."""
    first = _FIRST_WORD.match(text[max(0, place - 12) : place][::-1].lower())
    return (place - first.end(),) if first else ()


_OTHER_KEYS: Final = re.compile(
    r"(?i:primary|foreign|partition|sort|cache|object|idempotency|routing|row|public|shard|lookup|hash|dedupe)[ _-]\Z"
)


def _is_called_key(text: str, place: int, value: str) -> bool:
    """Whether what is said to be a key, of whatever, is one that somebody gave out."""
    before = text[max(0, place - 16) : place]
    return len(value) >= 20 and value.isalnum() and looks_random(value) and _OTHER_KEYS.search(before) is None


def is_secret(value: str, link: str, quoted: bool) -> bool:
    """Whether a value is a credential that stands behind a word for one; ``link`` is what stands between."""
    if len(value) < 6 or (_PLAIN.match(value) is not None and not _is_random_in_parts(value)):
        return False
    digest = _HEX.fullmatch(value) is not None
    if link and link != "to":
        # What it is said to be: one that mixes letters with digits or signs; a digest where it has a key's length.
        return _is_mixed(value) and (not digest or (":" not in value and 32 <= len(value.removeprefix("0x")) <= 64))
    if digest or _NUMBERED.fullmatch(value) is not None:
        return False
    return looks_random(value) or ((quoted or link == "to") and _is_mixed(value))


def _is_random_in_parts(value: str) -> bool:
    """Whether what could be a dotted name has a part that nobody would call anything."""
    return _DOTTED.fullmatch(value) is not None and any(map(looks_random, value.split(".")))


def _is_mixed(value: str) -> bool:
    return any(map(str.isalpha, value)) and any(not character.isalpha() for character in value)


def looks_random(value: str) -> bool:
    """Whether no person made this up: long, of many different characters, and not of words and numbers."""
    if len(value) < 16:
        return False
    pieces = _WORDLIKE.findall(value)
    digits = sum(piece.isdigit() for piece in pieces)
    average = len(value) / len(pieces)
    return entropy(value) >= 3.5 and ((digits >= 2 and average < 4) or (digits == 1 and average < 3))


def entropy(value: str) -> float:
    """Shannon's entropy of the characters, in bits a character."""
    counts = Counter(value)
    return -sum(count / len(value) * math.log2(count / len(value)) for count in counts.values())


SPOKEN: Final = Detector(
    "spoken credential",
    Kind.CREDENTIAL,
    ("key", "token", "secret", "pass", "pwd", "credential", "kennwort"),
    _find_said,
)
