"""How fast sessions are replayed, beside agent-rewind, agenttape and vcrpy on the same agent; how true ``--pace`` is.

Each way runs in a process of its own, in turns with the same agent bare: on a transport that answers from memory, with
a tool that does nothing. What is printed beside the numbers: what went live in a replay, whether every round came to
the same, and what a way cannot do.

    replay.py [--sessions N] [--peer-sessions N] [--rounds N] [--jobs N]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

MEASURED = Path(__file__).parent / "measured"
WAYS = ("spanreel", "agent-rewind", "agenttape", "vcrpy")


def ask(script: str, *words: Any) -> dict[str, Any]:
    """What a measuring process prints."""
    ended = subprocess.run(
        [sys.executable, str(MEASURED / script), *map(str, words)], capture_output=True, text=True, check=False
    )
    try:
        found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        found = {"cannot": f"its process ended with {ended.returncode}: {ended.stderr[-300:]}"}
    return found


def row(name: str, jobs: int, sessions: int, said: dict[str, Any]) -> str:
    """A line of the table."""
    if "cannot" in said:
        return f"{name:<13} {said['cannot']}"
    live = ", ".join(f"{count} {kind} calls" for kind, count in said["live"].items() if count) or "nothing"
    same = "yes" if said["same"] else "NO"
    passed = f", {said['passed']} PASS" if "passed" in said else ""
    return (
        f"{name:<13} {jobs:>4} {sessions:>8} {said['bare']:>9.1f} {said['replayed']:>11.1f} {said['spread']:>6.0%}"
        f" {said['added']:>9.2f}  {same:<4} {live}{passed}"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--peer-sessions", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    print(f"Sessions of 20 calls; medians of {given.rounds} rounds; bare and replayed in runs a second")
    print(
        f"{'':<13} {'jobs':>4} {'sessions':>8} {'bare':>9} {'replayed':>11} {'spread':>6} {'ms a call':>9}  same live"
    )
    print(
        row(
            "spanreel",
            given.jobs,
            given.sessions,
            ask("replayed.py", "spanreel", given.sessions, given.rounds, given.jobs),
        )
    )
    for name in WAYS:
        print(row(name, 1, given.peer_sessions, ask("replayed.py", name, given.peer_sessions, given.rounds, 1)))
    print("ms a call: what replaying adds to an answered call; less than nothing where the SDK's own work is left out,")
    print("so that what it would have sent is not compared either. live: what ran for real in a replay.")
    paced = ask("paced.py", given.rounds)
    if "cannot" in paced:
        print(f"pace          {paced['cannot']}")
        return
    print(
        f"pace          {paced['gaps']} gaps of a stream, {paced['within']:.0%} within 10 % of the recorded one; "
        f"off by {paced['median']:.1%} in the median, the whole stream by {paced['whole']:.1%} at most"
    )


if __name__ == "__main__":
    main()
