"""The keys of digests: from the environment, from a file, or made on first use in the user's state folder.

One secret a line; the first makes new digests, the others are known again. What is done with them is left to `digest`.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from spanreel.digest import DigestKey, digest, make_key, unknown
from spanreel.errors import SettingsError
from spanreel.quiet import log_once

KEY: Final = "SPANREEL_REDACTION_KEY"
KEY_FILE: Final = "SPANREEL_REDACTION_KEY_FILE"
SHORTEST: Final = 16
_OWNER: Final = stat.S_IRUSR | stat.S_IWUSR


class Digests(Protocol):
    """What makes digests."""

    @property
    def unavailable(self) -> str | None:
        """Why there is no key, once one was needed."""

    def check(self) -> None:
        """Look at a key that is configured.

        Raises:
            SettingsError: it cannot be read, or is too short to be one.
        """

    def place(self, domain: str, field_class: str, leaf: object) -> str | None:
        """The digest of a value; None where there is no key."""


class Keyring:
    """Keys, looked for when they are first needed.

    ``variable`` and ``file`` say where, in that order; without both it is those of the environment, and else, where
    ``makes``, a key of one's own that is kept in the user's state folder. `unavailable` says why there is no key, once
    one was needed. Thread-safe.
    """

    def __init__(
        self,
        variable: str | None = None,
        file: str | None = None,
        *,
        environ: Mapping[str, str] = os.environ,
        makes: bool = True,
    ) -> None:
        self._named = variable is not None or file is not None
        self._variable = variable if self._named else KEY
        self._file = file
        self._environ = environ
        self._makes = makes
        self._lock = threading.Lock()
        self._keys: tuple[DigestKey, ...] | None = None
        self.unavailable: str | None = None

    @property
    def where(self) -> str:
        """Where the keys are looked for, in words."""
        return f"the variable {self._variable}" if self._said() else f"the file {self._path()}"

    def check(self) -> None:
        """Look at a key that is configured; one that would be made is not.

        Raises:
            SettingsError: it cannot be read, or is too short to be one.
        """
        if self._said() or self._configured() or self._named:
            self._read()

    def current(self) -> DigestKey | None:
        """The key of new digests; made where there is none. None where none can be kept."""
        return next(iter(self._load(make=self._makes)), None)

    def find(self, key_id: str) -> DigestKey | None:
        """A key by its id; none is made."""
        return next((key for key in self._load(make=False) if key.id == key_id), None)

    def place(self, domain: str, field_class: str, leaf: object) -> str | None:
        """The digest of a value with the current key; None where there is none."""
        key = self.current()
        return None if key is None else digest(key, domain, field_class, leaf)

    def _load(self, *, make: bool) -> tuple[DigestKey, ...]:
        if self._keys:
            return self._keys
        with self._lock:
            if self.unavailable is not None and make:
                return ()
            try:
                found = self._read()
                if not found and make:
                    found = (make_key(_keep_new(self._path())),)
            except (OSError, RuntimeError, SettingsError) as error:
                found = ()
                if make:
                    self.unavailable = str(error)
                    log_once(f"no key for digests can be kept, so personal data is masked: {error}")
            if found:
                self._keys = found
            return found

    def _said(self) -> str:
        """What the variable holds."""
        return self._environ.get(self._variable, "").strip() if self._variable is not None else ""

    def _configured(self) -> str | None:
        """The file that is configured."""
        return self._file if self._named else self._environ.get(KEY_FILE, "").strip() or None

    def _path(self) -> Path:
        configured = self._configured()
        return Path(configured).expanduser() if configured else state_file(self._environ)

    def _read(self) -> tuple[DigestKey, ...]:
        if text := self._said():
            return _keys_of(text.replace(",", "\n"), str(self._variable))
        if self._named and self._file is None:
            raise SettingsError(f"the variable {self._variable}, which is to hold the policy's key, is not set")
        path = self._path()
        try:
            text = path.read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            if self._configured():
                raise SettingsError(f"there is no key file {str(path)!r}; make one: {_ADVICE}") from None
            return ()
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"the key file {str(path)!r} cannot be read: {error}") from error
        if os.name == "posix" and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            log_once(f"the key file {str(path)!r} can be read by others than its owner: chmod 600")
        return _keys_of(text, str(path))


@dataclass(frozen=True, slots=True)
class OneKey:
    """The one key of a recording, or None where it is not at hand: then every digest is unknown."""

    key: DigestKey | None
    unavailable: str | None = None

    def check(self) -> None:
        """Nothing is configured."""

    def place(self, domain: str, field_class: str, leaf: object) -> str:
        """The digest with this key."""
        return unknown(field_class) if self.key is None else digest(self.key, domain, field_class, leaf)


@dataclass(frozen=True, slots=True)
class NoKey:
    """Where no key is kept: what would be digested is masked."""

    unavailable: str | None = "no key is wanted"

    def check(self) -> None:
        """Nothing is configured."""

    def place(self, domain: str, field_class: str, leaf: object) -> None:
        """No digest."""


def state_file(environ: Mapping[str, str]) -> Path:
    """Where a key of one's own is kept: the user's state folder, as the XDG specification and Windows name it."""
    if sys.platform == "win32" and environ.get("LOCALAPPDATA"):
        folder = Path(environ["LOCALAPPDATA"])
    elif os.path.isabs(environ.get("XDG_STATE_HOME", "")):  # noqa: PTH117 -- the specification ignores others
        folder = Path(environ["XDG_STATE_HOME"])
    else:
        folder = Path.home() / ".local" / "state"
    return folder / "spanreel" / "redaction.key"


def rotate(path: Path) -> DigestKey:
    """Put a new key before those of the file, which stay for what they have made; the new one.

    Raises:
        OSError: the file cannot be written.
    """
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    secret = _new_secret()
    beside = _write_beside(path, f"{secret}\n{before}")
    beside.replace(path)
    return make_key(secret.encode())


_ADVICE: Final = "python -c 'import secrets; print(secrets.token_hex(32))'"


def _keys_of(text: str, place: str) -> tuple[DigestKey, ...]:
    keys = []
    for number, line in enumerate(text.splitlines(), 1):
        secret = line.strip()
        if not secret or secret.startswith("#"):
            continue
        if len(secret.encode()) < SHORTEST:
            raise SettingsError(
                f"{place}, line {number}: a key of {len(secret)} characters can be guessed; "
                f"{SHORTEST} or more are needed: {_ADVICE}"
            )
        keys.append(make_key(secret.encode()))
    return tuple(keys)


def _new_secret() -> str:
    return secrets.token_hex(32)


def _keep_new(path: Path) -> bytes:
    """A new secret in a file that was not there; another process may have been faster, and then it is that one's."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = _write_beside(path, f"{_new_secret()}\n")
    try:
        os.link(beside, path)
    except FileExistsError:
        pass
    except OSError:  # a file system without links
        beside.replace(path)
    with contextlib.suppress(OSError):
        beside.unlink()
    kept = path.read_text(encoding="utf-8").split("\n", 1)[0].strip()
    if len(kept) < SHORTEST:
        raise SettingsError(f"the key file {str(path)!r} holds no key; delete it, or put one there: {_ADVICE}")
    return kept.encode()


def _write_beside(path: Path, text: str) -> Path:
    """Write a file beside another one, for its owner only."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER), "w", encoding="utf-8") as file:
        file.write(text)
    return beside
