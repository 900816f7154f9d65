"""Who asked: the stack of a call that went past every point, and the place in it that people know."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

from spanreel.own_code import is_own


def frames_of_call() -> Iterator[FrameType]:
    """The frames of the call, innermost first."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the documented way to walk a stack cheaply
    while frame is not None:
        yield frame
        frame = frame.f_back


def place_of(frames: Sequence[FrameType]) -> str:
    """The first frame outside libraries: where the user's code asked for it."""
    own = [frame for frame in frames if is_own(frame)]
    frame = own[0] if own else frames[-1]
    file = frame.f_code.co_filename
    inside = os.path.relpath(file) if file.startswith(str(Path.cwd()) + os.sep) else Path(file).name
    return f"{inside}:{frame.f_lineno} ({frame.f_code.co_name})"
