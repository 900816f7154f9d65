"""What a subcommand of ``spanreel`` is, the codes that it ends with, and how it says what is wrong.

Installed packages add subcommands by entry points of the group ``spanreel.commands``, which name a `Command`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

OK: Final = 0
FAILED: Final = 1
REFUSED: Final = 3
NOT_INTERCEPTED: Final = 4
USAGE: Final = 64
CANNOT_RUN: Final = 126
NOT_FOUND: Final = 127
INTERRUPTED: Final = 130


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand: its name and help, how its arguments are declared, and what runs it (returning the exit code)."""

    name: str
    help: str
    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def complain(message: str, code: int) -> int:
    """Say what is wrong, and return the exit code that says it too."""
    print(f"spanreel: {message}", file=sys.stderr)
    return code
