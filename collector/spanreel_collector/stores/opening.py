"""Opening a store by its URL: ``sqlite:///path`` or ``postgresql://user@host/database``. No message has a password."""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from spanreel.errors import SettingsError
from spanreel_collector.stores.store import Store

_log: Final = logging.getLogger(__name__)
_FORMS: Final = "a store is sqlite:///PATH (sqlite:////PATH from the root) or postgresql://USER@HOST/DATABASE"


def open_store(url: str, *, make: bool = True) -> Store:
    """Open a store; its migrations have run when it is returned. ``make`` a file where there is none.

    Raises:
        SettingsError: the URL is wrong, or what is there is no store of this release.
        StoreError: it cannot be reached now.
    """
    scheme, separator, _ = url.partition("://")
    if scheme == "sqlite" and separator:
        return _open_sqlite(url, make=make)
    if scheme in ("postgresql", "postgres") and separator:
        return _open_postgresql(url)
    raise SettingsError(f"a store at {scheme + '://...' if separator else url!r} is unknown; {_FORMS}")


@contextmanager
def serving(url: str) -> Iterator[None]:
    """While the block runs, no other process serves this store, if it is a file. Commands may use it beside that.

    The lock is the process's and ends with it, however that ends; the file beside the store that has it stays.

    Raises:
        SettingsError: another serves it, or the URL is wrong.
    """
    if not url.startswith("sqlite://"):
        yield  # a database is made for several
        return
    # The same file by another name is the same store; and not the file itself, whose locks are SQLite's.
    path = Path(f"{os.path.realpath(_file_of(url))}-serving")
    try:
        place = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise SettingsError(f"the store {shown(url)} cannot be used: {str(path)!r}: {error.strerror}") from error
    with open(place, "r+") as file:  # noqa: PTH123 - of what is open already
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SettingsError(
                f"the store {shown(url)} is served already, by process {file.read(20).strip() or 'unknown'}; "
                "stop that one, give this one another --store, or let both use PostgreSQL"
            ) from None
        except OSError as error:  # a file system that has no locks
            _log.warning("that nobody else serves %s is not sure: %s", shown(url), error.strerror)
        file.truncate()
        print(os.getpid(), file=file, flush=True)
        yield


def _open_sqlite(url: str, *, make: bool) -> Store:
    from spanreel_collector.stores.sqlite import open_sqlite  # noqa: PLC0415 - needs zstandard, of the extra "collector"

    path = _file_of(url)
    if not make and not path.exists():
        raise SettingsError(f"there is no store {str(path)!r}")
    return open_sqlite(path)


def _file_of(url: str) -> Path:
    """Where the file of a store in SQLite is, or is to be."""
    place = url.removeprefix("sqlite://")
    if not place.startswith("/") or place == "/" or "?" in place or "#" in place:
        raise SettingsError(f"{url!r} names no file; {_FORMS}")
    if place == "/:memory:":
        raise SettingsError(f"{url!r}: a store is kept, and has a file; {_FORMS}")
    path = Path(unquote(place[1:])).expanduser()
    if path.is_dir():
        raise SettingsError(f"the store {str(path)!r} is a folder; give the name of a file in it")
    if not path.parent.is_dir():
        raise SettingsError(
            f"the store {str(path)!r} cannot be made: there is no folder {str(path.parent)!r}; make it first"
        )
    return path


def _open_postgresql(url: str) -> Store:
    try:
        from spanreel_collector.stores.postgresql import open_postgresql  # noqa: PLC0415 - may not be installed
    except ImportError as error:
        raise SettingsError("a store in PostgreSQL needs psycopg: pip install 'spanreel[collector]'") from error
    return open_postgresql(url)


def shown(url: str) -> str:
    """A store's URL without what is secret in it, for messages."""
    if url.startswith("sqlite:"):
        return url
    try:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"
    except ValueError:
        return f"{url.partition('://')[0]}://..."
