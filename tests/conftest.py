"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def cases(name: str) -> Path:
    """The folder (or file) of this name among the shared cases; skips the test where they are absent."""
    folder = Path(os.environ.get("SPANREEL_CASES", ROOT.parent / "shared" / "cases"))
    if not (folder / name).exists():
        pytest.skip(f"shared cases not here: {name} is looked for in ../shared/cases or $SPANREEL_CASES")
    return folder / name
