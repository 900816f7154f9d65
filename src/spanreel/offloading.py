"""Large values kept beside the spans, in a folder or at any fsspec URL, by the SHA-256 of what they hold.

What is kept has been redacted before. Equal values are kept once; a reference names its file, and the file its content.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import tempfile
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from opentelemetry.util.types import AttributeValue

from spanreel.bounds import size_of
from spanreel.errors import SettingsError
from spanreel.memory import Memory
from spanreel.quiet import log_once

SUFFIX: Final = "_ref"
"""What the name of an attribute gets that refers to a value, as in the GenAI conventions' ``input.messages_ref``."""
REMEMBERED: Final = 1024 * 1024

_USER_INFO: Final = re.compile(r"//[^/@]*@")


class Offload:
    """Keeps contents at one place. ``threshold`` is the size in bytes over which a value is kept there.

    Raises:
        SettingsError: the place is a URL, and fsspec (or what it needs for such URLs) is not installed.
    """

    def __init__(self, place: str, threshold: int) -> None:
        self.threshold = threshold
        self._folder = _folder(place)
        self._url = place.rstrip("/")
        # What the place's URL needs to be opened is nothing for a span to say.
        self._public = _USER_INFO.sub("//", self._url, count=1)
        self._files: Any = None if self._folder is not None else _file_system(place)
        self._kept: Memory[str] = Memory(REMEMBERED)

    def take(self, attributes: Mapping[str, AttributeValue], spared: Container[str] = ()) -> dict[str, AttributeValue]:
        """The attributes with references in the place of large values; what cannot be kept there stays inline."""
        taken: dict[str, AttributeValue] = {}
        for name, value in attributes.items():
            reference = None
            referred = name in spared or f"{name}{SUFFIX}" in attributes
            if isinstance(value, str) and size_of(value) > self.threshold and not referred:
                suffix = "json" if value[:1] in {"{", "["} else "txt"
                reference = self.keep(value.encode("utf-8", "replace"), suffix)
            taken[name if reference is None else f"{name}{SUFFIX}"] = value if reference is None else reference
        return taken

    def keep_binary(self, _digest: str, content: bytes) -> None:
        """Keep binary content; its stand-in names it."""
        self.keep(content, "bin")

    def keep(self, content: bytes, suffix: str) -> str | None:
        """Keep the content and return its URI; None where that failed."""
        name = f"{hashlib.sha256(content).hexdigest()}.{suffix}"
        if (known := self._kept.find(name)) is not None:
            return known
        try:
            reference = self._write(name, content)
        except Exception as fault:  # noqa: BLE001 -- whatever a file system raises: the value stays inline
            log_once(f"could not offload a value: {type(fault).__name__}")
            return None
        self._kept.keep(name, reference)
        return reference

    def _write(self, name: str, content: bytes) -> str:
        if self._folder is None:
            url = f"{self._url}/{name}"
            if not self._files.exists(url):
                self._files.makedirs(self._url, exist_ok=True)
                self._files.pipe_file(url, content)
            return f"{self._public}/{name}"
        path = self._folder / name
        if not path.exists():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Written beside, then renamed: who reads a reference never finds half of it. Its owner alone may read it.
            descriptor, part = tempfile.mkstemp(dir=self._folder, prefix=f".{name}.")
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            Path(part).replace(path)
        return path.as_uri()


def read_kept(place: str, name: str, most: int) -> bytes | None:
    """The content of this name at a place, where it is what its name says; None where it is missing or too large."""
    try:
        folder = _folder(place)
        if folder is not None:
            path = folder / name
            content = path.read_bytes() if path.stat().st_size <= most else b""
        else:
            files, url = _file_system(place), f"{place.rstrip('/')}/{name}"
            content = files.cat_file(url) if files.size(url) <= most else b""
    except (OSError, ValueError, SettingsError):
        return None
    return content if hashlib.sha256(content).hexdigest() == name.partition(".")[0] else None


def _folder(place: str) -> Path | None:
    """The folder that a place is; None for URLs of other file systems."""
    if "://" not in place:
        return Path(place).absolute()
    parts = urlsplit(place)
    return Path(unquote(parts.path)).absolute() if parts.scheme == "file" else None


def _file_system(place: str) -> Any:
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
