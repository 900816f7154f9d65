"""Large values kept beside the spans, in a folder or at any fsspec URL, by the SHA-256 of what they hold.

What is kept has been redacted before. Equal values are kept once; a reference names its file, and the file its content.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Container, Mapping
from pathlib import Path
from typing import Any, Final

from opentelemetry import context as otel
from opentelemetry.util.types import AttributeValue

from spanreel.bounds import size_of
from spanreel.contexts import SUPPRESS, SUPPRESS_HTTP
from spanreel.memory import Memory
from spanreel.offload_places import SUFFIX, file_system, folder_of
from spanreel.patience import wait_within
from spanreel.quiet import log_once

REMEMBERED: Final = 1024 * 1024
WAITING_BYTES: Final = 32 * 1024 * 1024
"""The most that waits to be written."""
EXIT_SECONDS: Final = 5.0

_USER_INFO: Final = re.compile(r"//[^/@]*@")


class Offload:
    """Keeps contents at one place. ``threshold`` is the size in bytes over which a value is kept there.

    ``later``: in a thread of its own, for who must not wait; what has no room there stays inline.

    Raises:
        SettingsError: the place is a URL, and fsspec (or what it needs for such URLs) is not installed.
    """

    def __init__(self, place: str, threshold: int, *, later: bool = False) -> None:
        self.threshold = threshold
        self._folder = folder_of(place)
        self._url = place.rstrip("/")
        # What the place's URL needs to be opened is nothing for a span to say.
        self._public = _USER_INFO.sub("//", self._url, count=1)
        self._files: Any = None if self._folder is not None else file_system(place)
        self._kept: Memory[str] = Memory(REMEMBERED)
        self._writer = _Writer(self._write) if later else None

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
        reference = (self._folder / name).as_uri() if self._folder is not None else f"{self._public}/{name}"
        if not (self._writer.put(name, content) if self._writer is not None else _done(self._write, name, content)):
            return None
        self._kept.keep(name, reference)
        return reference

    def flush(self, timeout: float = EXIT_SECONDS) -> bool:
        """Wait until all is written; whether that was so within so many seconds."""
        return self._writer is None or self._writer.flush(timeout)

    def _write(self, name: str, content: bytes) -> None:
        if self._folder is None:
            url = f"{self._url}/{name}"
            if not self._files.exists(url):
                self._files.makedirs(self._url, exist_ok=True)
                self._files.pipe_file(url, content)
            return
        path = self._folder / name
        if not path.exists():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Written beside, then renamed: who reads a reference never finds half of it. Its owner alone may read it.
            descriptor, part = tempfile.mkstemp(dir=self._folder, prefix=f".{name}.")
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            Path(part).replace(path)


Write = Callable[[str, bytes], None]


def _done(write: Write, name: str, content: bytes) -> bool:
    try:
        write(name, content)
    except Exception as fault:  # noqa: BLE001 -- whatever a file system raises: the value stays inline
        log_once(f"could not offload a value: {type(fault).__name__}")
        return False
    return True


class _Writer:
    """Writes in a thread of its own, which starts with the first content, and is given a while at exit."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._changed = threading.Condition()
        self._waiting: deque[tuple[str, bytes]] = deque()
        self._bytes = 0
        self._process = 0
        atexit.register(self.flush)

    def put(self, name: str, content: bytes) -> bool:
        """Take content to be written; whether there was room."""
        with self._changed:
            if self._process != os.getpid():  # the thread of a process that was forked is not here
                self._waiting.clear()
                self._bytes, self._process = 0, os.getpid()
                threading.Thread(target=self._work, name="spanreel-offload", daemon=True).start()
            if self._bytes + len(content) > WAITING_BYTES:
                return False
            self._waiting.append((name, content))
            self._bytes += len(content)
            self._changed.notify_all()
        return True

    def flush(self, timeout: float = EXIT_SECONDS) -> bool:
        """Wait until all is written."""
        with self._changed:
            return self._process != os.getpid() or wait_within(timeout, self._changed.wait, lambda: not self._waiting)

    def _work(self) -> None:
        otel.attach(otel.set_value(SUPPRESS, True, otel.set_value(SUPPRESS_HTTP, True)))  # as in `export`
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                name, content = self._waiting[0]
            _done(self._write, name, content)
            with self._changed:
                self._waiting.popleft()
                self._bytes -= len(content)
                self._changed.notify_all()
