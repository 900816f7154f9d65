"""Who may do what: the one place that all doors ask, before they read anything that was sent.

Tokens are known by their digests alone. Where there are none, everybody on this machine may do everything, which is
allowed on loopback addresses only, and to no page of another site that a browser shows.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import re
import ssl
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from spanreel.errors import SettingsError
from spanreel_collector.rates import Rates

TOKENS: Final = {
    "SPANREEL_TOKEN": ("ingest", "read", "erase", "operate"),
    "SPANREEL_INGEST_TOKEN": ("ingest",),
    "SPANREEL_READ_TOKEN": ("read", "operate"),
}
"""Variables that hold a token itself, and what it may do; of the tenant "default"."""
DEFAULT_TENANT: Final = "default"
_SHORTEST: Final = 16
_DIGEST: Final = 'expected the digest of a token, 64 hexadecimal digits: printf %s "$TOKEN" | sha256sum'
_EXAMPLE: Final = 'a token is written as [[token]] with name = "...", sha256 = "..." and scopes = ["ingest"]'


class Scope(StrEnum):
    """What a token may do. ``operate`` is to read what is said of the service as a whole, all tenants included."""

    INGEST = "ingest"
    READ = "read"
    ERASE = "erase"
    OPERATE = "operate"


@dataclass(frozen=True, slots=True)
class Token:
    """A token that is known: the SHA-256 of its text, whose it is, what it may do, and its name in logs."""

    name: str
    digest: bytes
    tenant: str
    scopes: frozenset[Scope]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks."""

    tenant: str
    scopes: frozenset[Scope]
    name: str


@dataclass(frozen=True, slots=True)
class Access:
    """Who may, and how often. ``hosts`` are names that this service is reached by, besides those of this machine."""

    tokens: tuple[Token, ...] = ()
    hosts: frozenset[str] = frozenset()
    rates: Rates | None = None


class Denied(Exception):
    """The caller may not do this. ``status`` is 401, where a token would help, or 403."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


ANYBODY: Final = Caller(DEFAULT_TENANT, frozenset(Scope), "anybody on this machine")


def admit(access: Access, headers: Mapping[str, str], scope: Scope | None) -> Caller:
    """Who asks, by the headers (or gRPC metadata; names in lower case) of a request that needs a scope, or none.

    Raises:
        Denied: they may not.
        TooOften: they may, but not now.
    """
    caller = _known(access, headers, scope)
    if access.rates is not None and scope is not None:
        access.rates.take(caller.name, caller.tenant)
    return caller


def _known(access: Access, headers: Mapping[str, str], scope: Scope | None) -> Caller:
    if not access.tokens:
        _check_origin(access, headers)
        return ANYBODY
    if scope is None:
        return Caller("", frozenset(), "anybody")
    kind, _, text = headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not text.strip():
        raise Denied(401, "no bearer token in the authorization header")
    digest = hashlib.sha256(text.strip().encode("utf-8", "surrogateescape")).digest()
    # Each is compared, so that the time it takes says nothing about which one was like it.
    found = [token for token in access.tokens if hmac.compare_digest(token.digest, digest)]
    if not found:
        raise Denied(401, "the bearer token is not known")
    token = found[0]
    if scope not in token.scopes:
        raise Denied(403, f"the token {token.name!r} may not {scope}")
    return Caller(token.tenant, token.scopes, token.name)


def _check_origin(access: Access, headers: Mapping[str, str]) -> None:
    """Refuse what a browser sends for a page of another site, be it by a name of theirs that leads here.

    Raises:
        Denied: it does.
    """
    host = headers.get("host")
    if host is not None and not (is_loopback(_name(host)) or _name(host) in access.hosts):
        raise Denied(403, f"the host {host[:100]!r} is none of this service; without tokens it is reached as localhost")
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2].lower() != (host or "").lower():
        raise Denied(403, "a page of another site asks")
    if headers.get("sec-fetch-site") in ("cross-site", "same-site") and headers.get("sec-fetch-mode") != "navigate":
        raise Denied(403, "a page of another site asks")


def _name(host: str) -> str:
    """The name in a host header, without the port."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower().rstrip(".")
    except ValueError:
        return ""


def check_address(access: Access, host: str) -> None:
    """Return if the service may listen on an address.

    Raises:
        SettingsError: others than this machine would reach it, and it has no tokens.
    """
    if access.tokens or is_loopback(host):
        return
    raise SettingsError(
        f"no tokens, and {host!r} is reached from other machines: name a file of tokens, set {next(iter(TOKENS))}, "
        "or listen on 127.0.0.1"
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


# -- tokens ----------------------------------------------------------------------------------------------------------


class _Token(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=100)
    sha256: str = Field(pattern="^[0-9a-fA-F]{64}$")
    tenant: str = Field(default=DEFAULT_TENANT, pattern=r"^[A-Za-z0-9_.-]{1,64}$")
    scopes: Annotated[tuple[Scope, ...], Field(min_length=1)]


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    token: Annotated[tuple[_Token, ...], Field(min_length=1)]


def read_access(
    file: str, environment: Mapping[str, str], hosts: frozenset[str] = frozenset(), rate: float = 0.0
) -> Access:
    """The tokens of a file, if one is named, and of the environment; ``rate`` is how often a second, 0 for no bound.

    Raises:
        SettingsError: the file cannot be read, or says what it cannot; a token is too short. Never quotes a token.
    """
    tokens = list(read_tokens(file)) if file else []
    for name, scopes in TOKENS.items():
        text = environment.get(name, "").strip()
        if not text:
            continue
        if len(text) < _SHORTEST:
            raise SettingsError(f"{name} has fewer than {_SHORTEST} characters; make one with: openssl rand -hex 32")
        digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
        tokens.append(Token(name, digest, DEFAULT_TENANT, frozenset(map(Scope, scopes))))
    _check_apart(tokens)
    return Access(tuple(tokens), hosts, Rates(rate) if rate else None)


def read_tokens(path: str | os.PathLike[str]) -> tuple[Token, ...]:
    """The tokens of a TOML file: ``[[token]]`` with ``name``, ``sha256`` (hex), ``scopes``, and ``tenant``.

    Raises:
        SettingsError: the file cannot be read, or says what it cannot.
    """
    file = Path(path)
    try:
        said = _File.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise SettingsError(f"the token file {str(file)!r} cannot be read: {error.strerror or error}") from error
    except ValidationError as error:
        raise SettingsError(f"the token file {str(file)!r}: {_wrong(error)}; {_EXAMPLE}") from None
    except ValueError as error:
        # Its place alone: what stands there may be a token.
        place = re.search(r" \(at .*\)$", str(error))
        raise SettingsError(f"the token file {str(file)!r} is not TOML{place[0] if place else ''}") from None
    return tuple(
        Token(token.name, bytes.fromhex(token.sha256), token.tenant, frozenset(token.scopes)) for token in said.token
    )


def _wrong(error: ValidationError) -> str:
    """What is wrong, without what was given: it may be a token that was written where its digest belongs."""
    found = {each["loc"]: each for each in error.errors()}
    # That a list has too few good items is said by the bad ones.
    causes = [loc for loc in found if not any(other[: len(loc)] == loc and other != loc for other in found)]
    return "; ".join(
        f"{'.'.join(map(str, loc))}: {_DIGEST if loc[-1] == 'sha256' and len(loc) > 1 else found[loc]['msg']}"
        for loc in causes[:5]
    )


def _check_apart(tokens: Sequence[Token]) -> None:
    """Return if no token is two, of which one would be taken for the other.

    Raises:
        SettingsError: one is.
    """
    known: dict[bytes, Token] = {}
    for token in tokens:
        first = known.setdefault(token.digest, token)
        if (first.scopes, first.tenant) != (token.scopes, token.tenant):
            raise SettingsError(
                f"{first.name!r} and {token.name!r} are the same token, and may not do the same; make another with: "
                "openssl rand -hex 32"
            )


# -- TLS -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tls:
    """Files in PEM: what the service shows, its key, and who signs the certificates that callers must show, if any."""

    certificate: str
    key: str
    client_authority: str | None = None


def check_tls(certificate: str, key: str, client_authority: str) -> None:
    """Return if these files, of which each may be none, let the service speak TLS.

    Raises:
        SettingsError: one does not; says which.
    """
    if bool(certificate) != bool(key):
        raise SettingsError("TLS needs both --tls-certificate and --tls-key")
    if client_authority and not certificate:
        raise SettingsError("--tls-client-authority needs --tls-certificate and --tls-key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if client_authority:
        with _tls_file("--tls-client-authority", client_authority, "certificates"):
            context.load_verify_locations(client_authority)
    if certificate:
        with _tls_file("--tls-certificate", certificate, "certificates"):
            # OpenSSL tells of a chain and its key in one breath; that the chain can be read is asked by itself.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(certificate)
        with _tls_file("--tls-key", key, "the key of the certificate"):
            context.load_cert_chain(certificate, key, password=_no_password)


@contextmanager
def _tls_file(flag: str, file: str, holds: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:  # ssl.SSLError is one
        why = f"has not {holds}, as PEM" if isinstance(error, ssl.SSLError) else f"cannot be read: {error.strerror}"
        raise SettingsError(f"{flag}: {file!r} {why}") from error


def _no_password() -> str:
    raise SettingsError("--tls-key: the key is locked with a password; give one that is not")
