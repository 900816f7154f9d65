"""E-mail and IP addresses.

An IP address is taken for personal when it can be somebody's: private and documentation ranges are found, since they
tell hosts apart as well as public ones do. Loopback, unspecified, link-local and multicast addresses, netmasks and
whole networks (``10.0.0.0/8``) are nobody's and stay, as do numbers of versions (``v1.2.3.4``, ``Chrome/120.0.0.0``,
``version: 1.2.3.4``, ``package-1.2.3.4``) and of sections.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from typing import Final

from spanreel.detectors.finding import Detector, Found, Kind, Shape
from spanreel.detectors.numbers import NUMBER, runs, stands_after

# -- e-mail ------------------------------------------------------------------------------------------------------------

_AT: Final = Shape(
    re.compile(rb"@(?<=[a-z0_+?'\"-]@)(?=[a-z0?])"), r"""[A-Za-z0-9_+?'"\-[^\x00-\x7f]]@[A-Za-z0-9?[^\x00-\x7f]]"""
)
_LOCAL_REVERSED: Final = re.compile(r"[\w+-](?:[\w.+-]|'(?=\w)){0,63}")
_DOMAIN: Final = re.compile(
    r"(?:@|%40)((?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}(?:xn--[a-z0-9-]{2,59}|[^\W\d_]{2,24}))(?![\w(]|-\w|:[/~])"
)
_ESCAPED: Final = re.compile(r"(?:[nrtbf]|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2})(?=.)")
_ENCODED: Final = re.compile(r"[0-9A-Fa-f]{2}(?=.)")
_FILES: Final = frozenset(
    "png jpg jpeg gif svg webp ico bmp css scss html htm json jsonl yaml yml toml txt tsx jsx mjs lock".split()  # noqa: SIM905 -- a list of words
)
_SERVICE_ACCOUNTS: Final = frozenset({"git", "hg", "svn"})


def _find_emails(text: str, places: Sequence[int]) -> list[Found]:
    found, done = [], 0
    for place in places:
        domain = _DOMAIN.match(text, place)
        if domain is None or domain[1].rpartition(".")[2].lower() in _FILES:
            continue
        start = _local_start(text, place, done)
        if start < place and not _is_login(text, start, place):
            found.append(Found(start, domain.end()))
            done = domain.end()
    return found


def _local_start(text: str, place: int, done: int) -> int:
    local = _LOCAL_REVERSED.match(text[max(done, place - 64) : place][::-1])
    if local is None:
        return place
    start = place - local.end()
    before = text[start - 1 : start]
    if before in {"\\", "%"}:
        # The end of an escape of a string, or of a URL, that has not been decoded.
        escape = (_ESCAPED if before == "\\" else _ENCODED).match(text, start, place)
        start = escape.end() if escape else start
    while start < place and text[start] in ".-'":
        start += 1
    return start


def _is_login(text: str, start: int, place: int) -> bool:
    """Whether it is a user at a machine: in a URL (``ssh://me@host.example``), or of a version control system."""
    if text[start:place].lower() in _SERVICE_ACCOUNTS:
        return True
    before = text[max(0, start - 128) : start]
    scheme = before.rfind("://")
    return scheme >= 0 and re.fullmatch(r"[^\s/?#\"'<>@]*", before[scheme + 3 :]) is not None


EMAIL: Final = Detector("e-mail", Kind.PERSONAL, ("%40",), _find_emails, _AT)

# -- IP addresses ------------------------------------------------------------------------------------------------------

_IPV4: Final = re.compile(
    r"(?<![A-Za-z0-9_])(?<![A-Za-z0-9_][.-])(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\.){3}"
    r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(?![A-Za-z0-9_])(?![.-][A-Za-z0-9])"
)
_NETWORK: Final = re.compile(r"/([0-9]{1,3})(?![0-9.])")
_VERSION: Final = re.compile(
    r"(?:(?i:\b(?:v|ver|version|release|build|firmware|revision|upgraded?|section|chapter|clause|appendix|figure|table"
    r"|step|paragraph|oid|identifier)|[§]|[=~><!^]=|[\^~])\.?"
    r"(?:[a-z]{0,2}[\"'\\(]{0,4}\s?[:=]?\s?[\"'\\]{0,4}(?:to |from )?)"
    r"|\b[A-Z][A-Za-z]+/|(?i:\b(?:upgrad|updat|bump|patch)\w{0,4}\s\S{1,16}\s(?:from|to)\s|\bfixed in ))\Z"
)
_RELEASE: Final = re.compile(r"\s(?i:release|version)")


_NO_HOSTS: Final = ("0.", "255.", "2.5.4.", "2.5.29.")
"""Netmasks, and the object identifiers of X.500 and X.509."""


def _find_ipv4(text: str, places: Sequence[int]) -> list[Found]:
    found = []
    for start, end in runs(text, places):
        for match in _IPV4.finditer(text, start, end) if "." in text[start:end] else ():
            if _is_somebodys(match[0], text, match.end()) and not _is_version(text, *match.span()):
                found.append(Found(*match.span()))
    return found


def _is_version(text: str, start: int, end: int) -> bool:
    return stands_after(_VERSION, text, start, 32) or _RELEASE.match(text, end) is not None


def _is_somebodys(address: str, text: str, end: int) -> bool:
    """Whether the address may be one of a machine that somebody uses."""
    parsed = ipaddress.ip_address(address)
    if parsed.is_loopback or parsed.is_unspecified or parsed.is_link_local or parsed.is_multicast:
        return False
    if parsed.version == 4 and (address.endswith((".0.0", ".255.255")) or address.startswith(_NO_HOSTS)):
        return False
    network = _NETWORK.match(text, end)
    if network is None:
        return True
    try:
        ipaddress.ip_network(f"{address}/{network[1]}")
    except ValueError:
        return True
    return int(network[1]) == parsed.max_prefixlen


_GROUP: Final = Shape(re.compile(rb":(?<=[0a-f]{4}:)(?=[0a-f:])"), "[0-9A-Fa-f]{4}:[0-9A-Fa-f:]")
_IPV6: Final = re.compile(
    r"(?<![A-Za-z0-9_:.])(?:[23][0-9A-Fa-f]{3}|[Ff][CcDdEe][0-9A-Fa-f]{2}):"
    r"[0-9A-Fa-f:]{2,34}(?:\.[0-9]{1,3}){0,3}(?![A-Za-z0-9_:])(?!\.[0-9])"
)


def _find_ipv6(text: str, places: Sequence[int]) -> list[Found]:
    found, done = [], 0
    for place in places:
        match = _IPV6.match(text, place - 4) if place - 4 >= done else None
        if match is None:
            continue
        try:
            somebodys = _is_somebodys(match[0], text, match.end())
        except ValueError:
            continue
        if somebodys:
            found.append(Found(*match.span()))
            done = match.end()
    return found


IPV4: Final = Detector("IP address", Kind.PERSONAL, (), _find_ipv4, NUMBER)
IPV6: Final = Detector("IP address", Kind.PERSONAL, (), _find_ipv6, _GROUP)
