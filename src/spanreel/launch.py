"""The environment in which a command's Python processes import `spanreel.auto` before their own code.

Starting the command is left to the callers, `spanreel run` and `spanreel replay`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

BOOTSTRAP: Final = Path(__file__).parent / "bootstrap"
"""A folder for PYTHONPATH; its `sitecustomize` imports `spanreel.auto`, after the user's own `sitecustomize`."""


def recorded_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """A copy of the environment in which Python processes, children of children included, are instrumented."""
    ours = str(BOOTSTRAP)
    others = [entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry and entry != ours]
    return {**environment, "PYTHONPATH": os.pathsep.join([ours, *others])}
