"""What a command of the collector's is, and the codes that it ends with. `spanreel.cli` finds them by entry point."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

OK, FAILED, USAGE = 0, 1, 64


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand: its name and help, how its arguments are declared, and what runs it (returning the exit code)."""

    name: str
    help: str
    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
