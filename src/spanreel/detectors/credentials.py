"""Credentials in text that are told by their shape, or by the word that a protocol puts before them.

Sources of the shapes: RFC 7235 and 7617 (authorization), RFC 7468 (PEM), RFC 7519 (JWT), RFC 3986 (user information in
URLs).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Final

from spanreel.detectors.finding import Detector, Found, Kind
from spanreel.detectors.harmless import is_code, is_placeholder, is_plain_word, is_type, is_word
from spanreel.detectors.matching import matching
from spanreel.detectors.prose import looks_random

JWT: Final = Detector(
    "JWT",
    Kind.CREDENTIAL,
    ("eyJ",),
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


def _is_no_placeholder(match: re.Match[str]) -> bool:
    return not is_placeholder(match["value"].rstrip("]"))


URL_PASSWORD: Final = Detector(
    "password in a URL",
    Kind.CREDENTIAL,
    ("://",),
    matching(
        r"://[^/\s:@\"'?#\\]{0,256}+:(?P<value>[^/\s?#\"'\\]{1,512})(?=@)",
        _is_no_placeholder,
    ),
)

_COOKIE: Final = re.compile(r"[A-Za-z0-9!#$%&*+.^_|~-]{1,128}=[^\s=]")
_SCHEME: Final = re.compile(r"(?i:bearer|basic|token|digest|apikey|key)[ \t]+")


def _is_header_value(match: re.Match[str]) -> bool:
    """Not a sentence about the header, nor what a program puts there from a variable."""
    value = match["value"]
    bare = value[scheme.end() :] if (scheme := _SCHEME.match(value)) else value.strip()
    if not any(map(str.isalnum, bare)) or is_placeholder(bare) or is_type(bare.rstrip(",;)}]")):
        return False
    words = bare.split()
    if match["name"].lower() == "cookie":
        return _COOKIE.match(value) is not None or (
            len(words) == 1 and looks_random(words[0]) and not is_code(words[0], "cookie")
        )
    if any(looks_random(word) for word in words):
        return True
    sentence = len(words) >= 3 and all(map(is_plain_word, words))
    variable = match["sign"] == "=" and not match["quote"] and words[0].isidentifier() and words[0].islower()
    return not (sentence or variable or is_word(words[0].rstrip(",.;")) or is_code(words[0], "authorization"))


# On a command line, the next option is another argument.
_OF_VALUE: Final = r"(?:[^\"'\\\r\n ]| (?!--?[A-Za-z]))"
_NAMED: Final = re.compile(
    r"(?i:(?P<name>authorization|(?<![A-Za-z])cookie))"
    r"[\"'\\\]]{0,4}+[ \t]{0,8}+(?P<sign>[:=])[ \t]{0,8}+(?:[fbru]{1,2}(?=[\"']))?"
    r"(?P<quote>[\"'`\\\[]{0,4}+)(?!redacted[]:]|=)"
    rf"(?P<value>{_OF_VALUE}{{1,512}}+)"
)
# Parameters may be quoted (Digest, OAuth, Hawk), in JSON with escapes.
_QUOTED: Final = r"\"(?:[^\"\\\r\n]|\\[^\r\n])*+\"|\\\"(?:[^\"\\\r\n]|\\\\\\\"|\\(?!\"))*+\\\""
_REST: Final = re.compile(rf"(?:{_OF_VALUE}|(?<==)(?:{_QUOTED}))*+")


def _find_headers(text: str, places: Sequence[int]) -> list[Found]:
    """Values of several words, up to the end of the line or quotes; how they start tells whether they are some."""
    found, done = [], 0
    for place in places:
        match = _NAMED.match(text, place) if place >= done else None
        if match is not None and _is_header_value(match):
            rest = _REST.match(text, match.end())
            done = rest.end() if rest else match.end()
            found.append(Found(match.start("value"), done))
    return found


HEADER: Final = Detector("header", Kind.CREDENTIAL, ("authorization", "cookie"), _find_headers)


_WORDS_JOINED: Final = re.compile(r"[A-Za-z]?[a-z]+(?:[._/+=-][A-Za-z]?[a-z]+)+")


def _is_token(match: re.Match[str]) -> bool:
    """Words of prose after "bearer" stay: a token has a digit in it, or is longer than words are."""
    value = match["value"].rstrip(".")
    return any(map(str.isdigit, value)) or (len(value) >= 20 and _WORDS_JOINED.fullmatch(value) is None)


BEARER: Final = Detector(
    "bearer token",
    Kind.CREDENTIAL,
    ("bearer",),
    matching(r"\b[Bb](?:earer|EARER)(?:\s|%20|\+){1,4}(?P<value>[A-Za-z0-9][A-Za-z0-9._~+/=-]{5,})", _is_token),
)


def _is_user_and_password(match: re.Match[str]) -> bool:
    """Only what decodes to ``user:password`` is one; "basic understanding" stays."""
    value = match["value"].rstrip("=")
    try:
        decoded = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except ValueError:
        return False
    return b":" in decoded


BASIC: Final = Detector(
    "basic authorization",
    Kind.CREDENTIAL,
    ("basic",),
    matching(r"\b[Bb](?:asic|ASIC)[ \t]{1,4}(?P<value>[A-Za-z0-9+/]{4,}={0,2})", _is_user_and_password),
)

SIGNED_URL: Final = Detector(
    "signed URL",
    Kind.CREDENTIAL,
    ("sig=", "key="),
    # In a query these short names are a signature (Azure) and a key (Google); elsewhere they may be anything.
    matching(r"(?<=[?&])(?i:sig|key)=(?!\[redacted[]:])(?P<value>[^&#\s\"'<>\\]{16,}+)"),
)


def _is_cookie(match: re.Match[str]) -> bool:
    return any(map(str.isdigit, match["value"]))


SESSION_COOKIE: Final = Detector(
    "session cookie",
    Kind.CREDENTIAL,
    # By the names that web frameworks give it, where it stands without its header.
    ("phpsessid=", "jsessionid=", "sessionid=", "connect.sid=", "asp.net_sessionid=", "laravel_session=", "csrftoken="),
    matching(r"(?<![A-Za-z0-9_-])(?i:[a-z_.]+)=(?P<value>[A-Za-z0-9%._+/:-]{16,}={0,2})", _is_cookie),
)


def _is_password_argument(match: re.Match[str]) -> bool:
    """Behind a command that takes one: ``docker run -u 1000:1000`` stays, as does ``ssh -p 2222``."""
    line = match.string[max(0, match.start() - 160) : match.start()].rpartition("\n")[2]
    command = _TAKES_USER if match["user"] else _TAKES_IT_APART[match["flag"]] if match["apart"] else _TAKES_PASSWORD
    value = match["value"]
    return command.search(line) is not None and not is_placeholder(value) and any(map(str.isalnum, value))


_TAKES_USER: Final = re.compile(r"\b(?:curl|wget|https?|xh)(?:\.exe)?\b")
_TAKES_PASSWORD: Final = re.compile(r"\b(?:mysql|mysqldump|mysqladmin|mariadb|sshpass)\b")
_TAKES_IT_APART: Final = {
    "p": re.compile(
        r"\bsshpass\Z|\b(?:docker|podman|buildah|nerdctl|skopeo|helm registry|oc|az|cf|argocd) login\b"
        r"|\bmongo(?:sh|dump|restore|import|export)?\b"
    ),
    "P": re.compile(r"\b(?:sqlcmd|bcp|zip|unzip)\b"),
    "a": re.compile(r"\bredis-cli\b"),
    "w": re.compile(r"\bldap(?:search|add|modify|delete|passwd|whoami)\b"),
}
"""By the letter of the argument."""

ARGUMENT: Final = Detector(
    "password argument",
    Kind.CREDENTIAL,
    ("-u ", "-user ", "-user=", " -p", " -a ", " -w "),
    matching(
        r"(?:(?:-u |-user[ =])(?P<user>[\"']?[^\s:\"']{1,64}):| -(?:(?P<flag>[pPaw])(?P<apart> )|p)[\"']?)"
        r"(?P<value>[^\s\"'-][^\s\"']{2,128})",
        _is_password_argument,
    ),
)
