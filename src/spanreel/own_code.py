"""Which code is the user's own: what lies neither in the standard library, nor among installed libraries, nor here."""

from __future__ import annotations

import sysconfig
from pathlib import Path
from types import FrameType
from typing import Final

LIBRARIES: Final = (
    sysconfig.get_paths()["stdlib"],
    sysconfig.get_paths()["purelib"],
    sysconfig.get_paths()["platlib"],
    str(Path(__file__).parent),
    "<frozen",
)


def is_own(frame: FrameType) -> bool:
    """Whether a frame runs the user's code."""
    return not frame.f_code.co_filename.startswith(LIBRARIES)
