"""Which code makes sessions, as stores note it of what was read: a release, and a fingerprint of what reads spans."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Final

import spanreel
import spanreel_collector

_READING: Final = ("span.py", "trace.py", "json_text.py", "otlp", "dialects", "repair", "sessions")
"""Of the collector: what a session says depends on."""


@cache
def reading_code() -> str:
    """The release and the fingerprint, as ``0.1.0+3fa9c2d41b7e``: another one wherever this code is another."""
    digest = hashlib.sha256()
    home = Path(spanreel_collector.__file__).parent
    for name in _READING:
        place = home / name
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(f"{file.relative_to(home).as_posix()}\0".encode())
            digest.update(file.read_bytes())
    for file in sorted((Path(spanreel.__file__).parent / "protocols").rglob("*.py")):
        digest.update(file.read_bytes())
    return f"{spanreel.__version__}+{digest.hexdigest()[:12]}"
