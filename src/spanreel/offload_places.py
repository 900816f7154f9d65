"""Where large values are kept beside the spans, and what is kept there, read again. Keeping is `offloading`'s."""

from __future__ import annotations

import hashlib
import importlib
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from spanreel.errors import SettingsError

SUFFIX: Final = "_ref"
"""What the name of an attribute gets that refers to a value, as in the GenAI conventions' ``input.messages_ref``."""


def read_kept(place: str, name: str, most: int) -> bytes | None:
    """The content of this name at a place, where it is what its name says; None where it is missing or too large."""
    try:
        folder = folder_of(place)
        if folder is not None:
            path = folder / name
            content = path.read_bytes() if path.stat().st_size <= most else b""
        else:
            files, url = file_system(place), f"{place.rstrip('/')}/{name}"
            content = files.cat_file(url) if files.size(url) <= most else b""
    except (OSError, ValueError, SettingsError):
        return None
    return content if hashlib.sha256(content).hexdigest() == name.partition(".")[0] else None


def folder_of(place: str) -> Path | None:
    """The folder that a place is; None for URLs of other file systems."""
    if "://" not in place:
        return Path(place).absolute()
    parts = urlsplit(place)
    return Path(unquote(parts.path)).absolute() if parts.scheme == "file" else None


def file_system(place: str) -> Any:
    """The file system of a URL.

    Raises:
        SettingsError: fsspec is not installed, or what it needs for such URLs, or it does not know them.
    """
    try:
        fsspec = importlib.import_module("fsspec")
        files, _ = fsspec.core.url_to_fs(place)
    except ImportError as error:
        scheme = place.partition("://")[0]
        raise SettingsError(
            f"SPANREEL_OFFLOAD is a URL of {scheme!r}, which needs {error.name or 'fsspec'!r}: "
            "pip install 'spanreel[offload]', and what fsspec names for such URLs; or give a folder"
        ) from error
    except ValueError as error:
        raise SettingsError(f"SPANREEL_OFFLOAD names a place that fsspec does not know: {error}") from error
    return files
