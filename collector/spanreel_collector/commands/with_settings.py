"""How commands begin that work with the service's settings: what is wrong with these, or not installed, is said."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable

from spanreel.errors import SettingsError
from spanreel.subcommand import FAILED, USAGE
from spanreel_collector.service.settings import ServiceSettings, read_settings


def run_with_settings(name: str, options: argparse.Namespace, work: Callable[[ServiceSettings], int]) -> int:
    """Do the work of a command with the settings of flags and environment; the exit code."""
    try:
        return work(read_settings(os.environ, vars(options)))
    except SettingsError as error:
        print(f"spanreel: {error}", file=sys.stderr)
        return USAGE
    except ModuleNotFoundError as error:
        print(
            f"spanreel: {name} needs more than is installed ({error}): pip install 'spanreel[collector]'",
            file=sys.stderr,
        )
        return FAILED
