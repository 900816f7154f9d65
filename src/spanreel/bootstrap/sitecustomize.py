"""Python imports this at its start when `spanreel run` or `spanreel replay` has put its folder on PYTHONPATH.

It lets the `sitecustomize` that would have been imported without us run first, then imports `spanreel.auto`.
"""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path


def run_hidden_sitecustomize() -> None:
    """Run the sitecustomize that stands behind ours on the path; what it raises is shown as Python would show it."""
    folder = Path(__file__).resolve().parent
    others = [entry for entry in sys.path if Path(entry).resolve() != folder]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    try:
        spec.loader.exec_module(module)
    except Exception:  # noqa: BLE001 - what Python does with any error of a sitecustomize
        sys.excepthook(*sys.exc_info())


def start() -> None:
    """Import `spanreel.auto`; where that fails a recording goes without, and a replay ends before anything runs."""
    try:
        import spanreel.auto  # noqa: F401, PLC0415 - only after the user's own sitecustomize
    except Exception as error:  # noqa: BLE001 - the user's program runs, whatever is wrong with us
        replaying = "SPANREEL_REPLAY" in os.environ
        consequence = "nothing runs, since it would run live" if replaying else "nothing is recorded"
        sys.stderr.write(f"spanreel: {consequence}: {error!r} in {sys.executable}\n")
        sys.stderr.flush()
        if replaying:
            os._exit(4)  # an exception, SystemExit included, does not end an interpreter that is still starting


run_hidden_sitecustomize()
start()
