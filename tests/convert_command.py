"""`spanreel convert` without the installed command, for the score of the shared cases: one process a case."""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "collector")]

from spanreel_collector.commands import CONVERT  # noqa: E402 the path is set above

parser = argparse.ArgumentParser()
CONVERT.configure(parser)
sys.exit(CONVERT.run(parser.parse_args(sys.argv[1:])))
