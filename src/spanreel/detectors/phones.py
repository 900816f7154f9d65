"""Telephone numbers: international ones, North American ones by their form, others behind a word such as "phone".

With the library ``phonenumbers`` (``pip install spanreel[phone]``) international numbers are checked against the
numbering plan of their country, and national ones of some countries are known by theirs. Without it, the country code
and the number of digits (ITU-T E.164) are checked.
"""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Sequence
from typing import Any, Final

from spanreel.detectors.finding import Detector, Found, Kind
from spanreel.detectors.numbers import NUMBER, runs, stands_after

_COUNTRY_CODES: Final = frozenset(
    """
    1 7 20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 55 56 57 58 60 61 62 63 64 65 66 81 82 84 86
    90 91 92 93 94 95 98 211 212 213 216 218 220 221 222 223 224 225 226 227 228 229 230 231 232 233 234 235 236 237 238
    239 240 241 242 243 244 245 246 248 249 250 251 252 253 254 255 256 257 258 260 261 262 263 264 265 266 267 268 269
    290 291 297 298 299 350 351 352 353 354 355 356 357 358 359 370 371 372 373 374 375 376 377 378 380 381 382 383 385
    386 387 389 420 421 423 500 501 502 503 504 505 506 507 508 509 590 591 592 593 594 595 596 597 598 599 670 672 673
    674 675 676 677 678 679 680 681 682 683 685 686 687 688 689 690 691 692 800 808 850 852 853 855 856 870 878 880 881
    882 883 886 888 960 961 962 963 964 965 966 967 968 970 971 972 973 974 975 976 977 979 992 993 994 995 996 998
    """.split()  # noqa: SIM905 -- a list of words reads best as words
)
_REGIONS: Final = ("GB", "FR", "IE", "NL", "BE", "CH", "AU", "JP")
"""Whose national numbers are known by their plan: those that start with a 0 and are strict enough to tell."""

_AFTER: Final = " .()/-"
_FEWEST: Final = 7
_LONGEST: Final = 15
_REACH: Final = 32
_STEMS: Final = ("phone", "tel", "tél", "mobil", "whats", "fax", "sms", "cell", "handy")
_BETWEEN: Final = "[ .()/\u00a0\u2009\u2010\u2011\u2013\u202f-]{0,3}"
_END: Final = r"(?![A-Za-z0-9_])(?![.,:-][0-9])"
_INTERNATIONAL: Final = re.compile(rf"[0-9](?:{_BETWEEN}[0-9]){{6,14}}{_END}")
_NATIONAL: Final = re.compile(rf"(?<![A-Za-z0-9_.,+#$€£-])(?<![0-9] )\(?[0-9](?:{_BETWEEN}[0-9]){{6,14}}{_END}")
_AMERICAN: Final = re.compile(
    r"(?<![A-Za-z0-9_.,#$€£-])(?:1[ .-])?"
    r"(?:\([2-9][0-9]{2}\)[ .-]?[0-9]{3}[ .-]|[2-9][0-9]{2}-[0-9]{3}-|[2-9][0-9]{2}\.[2-9][0-9]{2}\.)[0-9]{4}" + _END
)
_FRENCH: Final = re.compile(
    r"(?<![A-Za-z0-9_.,+-])(?<![0-9] )0[1-9](?P<apart>[ .\u00a0\u202f-])(?:[0-9]{2}(?P=apart)){3}[0-9]{2}" + _END
)
_LONG_DISTANCE: Final = re.compile(rf"(?<![A-Za-z0-9_.,+-])(?<![0-9] )00[1-9](?:{_BETWEEN}[0-9]){{8,13}}{_END}")
_OTHER_GROUP: Final = re.compile(r"[ .-]0")
"""What no number goes on with behind the code of a country."""
_WORDS: Final = re.compile(
    r"(?i)(?:phone|(?<![a-z])tel(?:ephone|efono|éfono|efon)?|telefon|mobile?|whats ?app"
    r"|(?<![a-z])(?:fax|sms|cell|handy|tél))"
    r"(?:[ _-]?(?:no|nr|num|number|num[eé]ro))?s?\.?[\"'\\]{0,4}\s{0,2}[:=#]?\s{0,2}"
    r"(?:(?:is|at|on|to|was|number)\s)?[\"'\\(+]{0,4}\Z"
)
_WEAK_WORDS: Final = re.compile(
    r"(?i)\b(?:call(?:ed|ing)?|dial(?:l?ed)?|text(?:ed)?|ring|reach(?:ed)?)"
    r"(?:\s(?:me|us|him|her|them|back|my|his|number|cell|now|today|desk|office|the|at|on|is|:)){0,4}:?\s\(?\Z"
)
_DATE: Final = re.compile(
    r"\(?(?:(?:19|20)[0-9]{2}[-./ ](?:0?[1-9]|1[0-2])[-./ ](?:[0-2]?[0-9]|3[01])(?![0-9])"
    r"|(?:[0-2]?[0-9]|3[01])[-./](?:[0-2]?[0-9]|3[01])[-./](?:19|20)[0-9]{2}(?![0-9]))"
)


_OTHER: Final = re.compile(
    r"[0-9]+(?:\.[0-9]+)?|(?:19|20)[0-9]{2}-[0-9]{2}-[0-9]{2}(?:[ -][0-9]{1,2})?|[0-9]{1,3}(?:\.[0-9]{1,3}){3}"
    r"|[0-9]{5}-[0-9]{4}"
)
"""Whole numbers and fractions, dates, IP addresses, postal codes."""


def _find_phones(text: str, places: Sequence[int]) -> list[Found]:
    found, done = [], 0
    for start, end in runs(text, places):
        if _is_plain(text, start, end - 2):
            continue
        place = max(start, done)
        while place < end:
            match = _phone_at(text, place, end)
            if match is not None:
                found.append(match)
                place = done = match.end
            else:
                place = _next_number(text, place, end)
    return found


def _is_plain(text: str, start: int, end: int) -> bool:
    """Whether there are too few digits, or what is no number to call unless a plus or a word says so."""
    number = text[start:end].rstrip(_AFTER)
    if sum(map(str.isdigit, number)) < _FEWEST:
        return True
    if _OTHER.fullmatch(number) is None:
        return False
    before = text[start - 1 : start]
    if before.isalnum() or len(number) > _LONGEST:
        return True
    return before not in {"+", "("} and not _is_called(text, start)


def _is_called(text: str, place: int) -> bool:
    """Whether a word before says that this is a number to call."""
    before = text[max(0, place - _REACH) : place].lower()
    return any(stem in before for stem in _STEMS) and _WORDS.search(before) is not None


_NUMBER_START: Final = re.compile(r"(?<![0-9])\(?[0-9]")


def _next_number(text: str, place: int, end: int) -> int:
    following = _NUMBER_START.search(text, place + 1, end)
    return following.start() if following else end


def _phone_at(text: str, place: int, end: int) -> Found | None:
    """The telephone number that starts here, or with the signs before."""
    opened = place - (text[place - 1 : place] == "(")
    before = text[opened - 1 : opened] if opened else ""
    if before == "+" or (opened < place and text[place - 2 : place - 1] == "+"):
        return _international_at(text, place, end, opened - 1)
    for pattern in (_AMERICAN, _FRENCH):
        match = pattern.match(text, opened, end) or pattern.match(text, place, end)
        if match is not None:
            return Found(*match.span())
    match = _LONG_DISTANCE.match(text, place, end)
    if (
        match is not None
        and _OTHER_GROUP.search(match[0]) is None
        and not match[0].isdigit()
        and _is_international(_digits(match[0])[2:])
    ):
        return Found(*match.span())
    match = _NATIONAL.match(text, opened, end)
    if match is None or _DATE.match(match[0]) is not None:
        return None
    if _is_called(text, opened) or (
        not match[0].isdigit() and (stands_after(_WEAK_WORDS, text, opened, 40) or _is_national(match[0]))
    ):
        return Found(opened if match[0].startswith("(") else match.start(), match.end())
    return None


def _international_at(text: str, place: int, end: int, sign: int) -> Found | None:
    """Behind a plus, which may not continue a word or a sum."""
    if text[sign - 1 : sign].isalnum() if sign else False:
        return None
    match = _INTERNATIONAL.match(text, place, end)
    if match is None or not _is_international(_digits(match[0])):
        return None
    return Found(sign, match.end())


def _digits(text: str) -> str:
    return "".join(filter(str.isdigit, text))


def _is_international(digits: str) -> bool:
    """Whether these may be the digits of a number with its country code."""
    if not any(digits[:length] in _COUNTRY_CODES for length in (1, 2, 3)):
        return False
    library = _library()
    if library is None:
        return 8 <= len(digits) <= 15
    try:
        return bool(library.is_possible_number(library.parse(f"+{digits}")))
    except library.NumberParseException:
        return False


_TRUNK: Final = re.compile(r"\(?0[1-9]")


def _is_national(text: str) -> bool:
    """Whether it is a number in the plan of one of the countries that we know by it."""
    library = _library()
    if library is None or _TRUNK.match(text) is None or not 9 <= len(_digits(text)) <= 11:
        return False
    try:
        return any(library.is_valid_number(library.parse(text, region)) for region in _REGIONS)
    except library.NumberParseException:
        return False


@functools.cache
def has_library() -> bool:
    """Whether the library of numbering plans is installed: more is found with it, and less by mistake."""
    return importlib.util.find_spec("phonenumbers") is not None


@functools.cache
def _library() -> Any:
    """The library of numbering plans; None where it is not installed."""
    try:
        import phonenumbers  # noqa: PLC0415 -- an extra, and slow to import
    except ImportError:
        return None
    return phonenumbers


PHONE: Final = Detector("phone", Kind.PERSONAL, (), _find_phones, NUMBER)
