"""`import spanreel.auto`: record from here on, as the environment says; in the child of `spanreel replay`, replay."""

from __future__ import annotations

import logging
import os
import sys

from spanreel.exporters import describe
from spanreel.quiet import LOG
from spanreel.settings import REPLAY, Capture, Log, read_settings
from spanreel.wrapping import instrument, is_instrumented


def start() -> None:
    """Instrument this process once, and say so in one line."""
    if is_instrumented():
        return
    settings = read_settings()
    instrument(settings=settings)
    if os.environ.get(REPLAY):
        from spanreel.replay import activate_from_environment  # noqa: PLC0415 - recording must not pay for it

        activate_from_environment()
    elif settings.log is not Log.OFF and settings.capture is not Capture.OFF:
        _say(describe(settings))


def _say(line: str) -> None:
    """Through the log where the program has set one up for such lines, else to stderr."""
    if LOG.isEnabledFor(logging.INFO) and LOG.hasHandlers():
        LOG.info("%s", line)
    else:
        sys.stderr.write(f"{line}\n")


start()
