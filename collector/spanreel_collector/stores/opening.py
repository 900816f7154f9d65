"""Opening a store by its URL: ``sqlite:///path`` or ``postgresql://user@host/database``. No message has a password."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from spanreel.errors import SettingsError
from spanreel_collector.stores.store import Store

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


def _open_sqlite(url: str, *, make: bool) -> Store:
    from spanreel_collector.stores.sqlite import open_sqlite  # noqa: PLC0415 - needs zstandard, of the extra "collector"

    place = url.removeprefix("sqlite://")
    if not place.startswith("/") or place == "/" or "?" in place or "#" in place:
        raise SettingsError(f"{url!r} names no file; {_FORMS}")
    path = Path(unquote(place[1:])).expanduser()
    if path.is_dir():
        raise SettingsError(f"the store {str(path)!r} is a folder; give the name of a file in it")
    if not path.parent.is_dir():
        raise SettingsError(
            f"the store {str(path)!r} cannot be made: there is no folder {str(path.parent)!r}; make it first"
        )
    if not make and not path.exists():
        raise SettingsError(f"there is no store {str(path)!r}")
    return open_sqlite(path)


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
