"""Personal numbers with checks: payment cards, bank accounts (IBAN), US social security numbers.

Sources: ISO/IEC 7812 (issuer ranges, Luhn), ISO 13616 (IBAN, lengths by country), SSA and IRS (which numbers are given
out). What fits no check stays: order numbers, timestamps, telephone numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from spanreel.detectors.finding import Detector, Found, Kind, Shape

_APART: Final = " .()/\\-\u00a0\u2009\u2010\u2011\u2013\u202f"

NUMBER: Final = Shape(re.compile(rb"0(?<!00)[0 .()/?-]{6,}"), r"[0-9][0-9 .()/?\-[^\x00-\x7f]]{6}")
"""Where digits stand in text in which every digit is a 0: seven characters or more, with what may stand between."""

_RUN: Final = re.compile(rf"[0-9][0-9{_APART}]*")

_BEFORE: Final = 48
_TIGHT: Final = r"(?<![A-Za-z0-9_])(?<![A-Za-z0-9]-)(?<![0-9][.,])"
_LOOSE: Final = r"(?![A-Za-z0-9_])(?!-[A-Za-z0-9])(?![.,][0-9])"


def runs(text: str, places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Where the digits at these places start, and where what matters to them ends: two characters on."""
    done = 0
    for place in places:
        run = _RUN.match(text, place) if place >= done else None
        if run is not None:
            done = run.end()
            yield place, done + 2


def stands_after(words: re.Pattern[str], text: str, place: int, reach: int = _BEFORE) -> bool:
    """Whether one of these words stands shortly before the place."""
    return words.search(text, max(0, place - reach), place) is not None


# -- payment cards ---------------------------------------------------------------------------------------------------

_CARD: Final = re.compile(
    _TIGHT + r"(?=[2-6])(?:[0-9]{4}(?P<apart>[ \u00a0\u202f-])(?:[0-9]{4}(?P=apart)){2}[0-9]{4}(?:(?P=apart)[0-9]{3})?"
    r"|[0-9]{4}(?P<amex>[ \u00a0\u202f-])[0-9]{6}(?P=amex)[0-9]{4,5}"
    r"|[0-9]{12,19})" + _LOOSE
)
_CARD_WORDS: Final = re.compile(
    r"(?i)\b(?:card|visa|master ?card|amex|american express|discover|diners|jcb|maestro|union ?pay|pan|cc|debit|credit"
    r"|kreditkarte|carte|tarjeta)"
)
_ISSUERS: Final[tuple[tuple[str, str, set[int], set[int]], ...]] = (
    # First digits, from and to; lengths that stand for themselves; lengths that need a word of cards before them.
    ("4", "4", {16}, {13, 19}),
    ("51", "55", {16}, set()),
    ("2221", "2720", {16}, set()),
    ("34", "34", {15}, set()),
    ("37", "37", {15}, set()),
    ("6011", "6011", {16}, {19}),
    ("644", "659", {16}, {19}),
    ("3528", "3589", {16}, {19}),
    ("300", "305", {14}, {16, 19}),
    ("36", "36", {14}, {16, 19}),
    ("38", "39", {14}, {16, 19}),
    ("62", "62", {16}, {17, 18, 19}),
    ("2200", "2204", {16}, {19}),
    ("60", "60", {16}, set()),
    ("50", "50", set(), {12, 13, 16, 19}),
    ("56", "58", set(), {12, 13, 16, 19}),
    ("63", "63", set(), {12, 13, 16, 19}),
    ("67", "67", set(), {12, 13, 16, 19}),
)


def _find_cards(text: str, places: Sequence[int]) -> list[Found]:
    found = []
    for start, end in runs(text, places):
        for match in _CARD.finditer(text, start, end):
            digits = "".join(filter(str.isdigit, match[0]))
            grouped = len(digits) != len(match[0])
            if passes_luhn(digits) and _is_issued(digits, grouped, text, match.start()):
                found.append(Found(*match.span()))
    return found


def _is_issued(digits: str, grouped: bool, text: str, place: int) -> bool:
    for first, last, alone, after_word in _ISSUERS:
        if first <= digits[: len(first)] <= last:
            if len(digits) in alone or (grouped and len(digits) in after_word):
                return True
            if len(digits) in after_word and stands_after(_CARD_WORDS, text, place):
                return True
    return False


def passes_luhn(digits: str) -> bool:
    """Whether the last of the digits is the check digit of the others."""
    doubled = (2 * int(digit) for digit in digits[-2::-2])
    return (sum(map(int, digits[-1::-2])) + sum(value - 9 if value > 9 else value for value in doubled)) % 10 == 0


CARD: Final = Detector("payment card", Kind.PERSONAL, (), _find_cards, NUMBER)

# -- bank accounts -----------------------------------------------------------------------------------------------------

_IBAN_LENGTHS: Final = {
    name[:2]: int(name[2:])
    for name in """
    AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ES24
    FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32
    LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24
    RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30
    """.split()  # noqa: SIM905 -- a list of words reads best as words
}
_IBAN_NUMERIC: Final = frozenset(
    """
    AE AT BA BE BI CR CZ DE DK EE EG ES FI FO GL HR HU IL IS LT LY ME MN MR NO PL PT RS SD SE SI SK SO ST TL TN VA XK
    """.split()  # noqa: SIM905 -- as above
)
"""Where account numbers have no letters after the country's."""
_IBAN_START: Final = re.compile(r"(?<![A-Za-z0-9])(?:[A-Z]{2}|[a-z]{2})[0-9]{2}(?=[ \u00a0\u202f-]?[A-Za-z0-9]{4})")
_IBAN_BODY: Final = re.compile(r"(?:[ \u00a0\u202f-]?[A-Za-z0-9]){11,31}")
_IBAN_REACH: Final = 16
"""How far before its first long number an IBAN starts: ``RO49 AAAA 1B31 0075...``"""


def _find_ibans(text: str, places: Sequence[int]) -> list[Found]:
    found, done = [], 0
    for place in places:
        for start in _IBAN_START.finditer(text, max(done, place - _IBAN_REACH), place + 8):
            end = _iban_end(text, start)
            if end:
                found.append(Found(start.start(), end))
                done = end
                break
    return found


def _iban_end(text: str, start: re.Match[str]) -> int:
    """Where the account number ends that starts here; 0 where there is none."""
    length = _IBAN_LENGTHS.get(start[0][:2].upper())
    body = _IBAN_BODY.match(text, start.end()) if length else None
    if length is None or body is None:
        return 0
    left, end = length - 4, body.start()
    while left and end < body.end():
        left -= text[end].isalnum()
        end += 1
    if left or text[end : end + 1].isalnum():
        return 0
    compact = "".join(filter(str.isalnum, text[start.start() : end])).upper()
    if compact[:2] in _IBAN_NUMERIC and not compact[4:].isdigit():
        return 0
    number = "".join(str(int(character, 36)) for character in compact[4:] + compact[:4])
    return end if int(number) % 97 == 1 else 0


IBAN: Final = Detector("IBAN", Kind.PERSONAL, (), _find_ibans, NUMBER)

# -- social security numbers -------------------------------------------------------------------------------------------

_SSN: Final = re.compile(
    _TIGHT + r"(?:(?!000|666)[0-8][0-9]{2}(?P<apart>[- ]?)(?!00)[0-9]{2}(?P=apart)(?!0000)[0-9]{4}"
    # A taxpayer's number (ITIN).
    r"|9[0-9]{2}(?P<other>[- ]?)(?:5[0-9]|6[0-5]|7[0-9]|8[0-8]|9[0-24-9])(?P=other)[0-9]{4})" + _LOOSE
)
_SSN_WORDS: Final = re.compile(r"(?i)\b(?:ssn|social[ _-]?sec(?:urity)?|itin|tin|taxpayer|tax[ _-]?id)(?![a-z])")


def _find_ssns(text: str, places: Sequence[int]) -> list[Found]:
    return [
        Found(*match.span())
        for start, end in runs(text, places)
        for match in _SSN.finditer(text, start, end)
        if "-" in match[0] or stands_after(_SSN_WORDS, text, match.start())
    ]


SSN: Final = Detector("US SSN", Kind.PERSONAL, (), _find_ssns, NUMBER)
