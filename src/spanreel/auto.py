"""`import spanreel.auto`: record from here on, as the environment says; in the child of `spanreel replay`, replay."""

from __future__ import annotations

import os

from spanreel.instrumenting import instrument, is_instrumented, start_recording
from spanreel.playing import denied
from spanreel.settings import REPLAY


def start() -> None:
    """Instrument this process once, and say so in one line."""
    if is_instrumented():
        return
    if os.environ.get(REPLAY) or denied():
        from spanreel.replay import activate_from_environment  # noqa: PLC0415 - recording must not pay for it

        instrument()
        activate_from_environment()
    else:
        start_recording()


start()
