"""What recording costs beside the peers: CPU and wall time added to one call of each library, content recorded by all.

Each recorder has a process of its own; they take turns, so that a slow moment of the machine falls on all. ``caller``
is the CPU time of the caller's thread, ``all`` that of all threads, with reading, redaction (ours alone) and OTLP
encoding.

    overhead.py [--rounds N] [--only LIBRARY,...] [--calls-only] [--redaction]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from measured import recorders, workloads
from measured.recorders import BARE, SPANREEL, UNREDACTED

WORKER = Path(__file__).parent / "measured" / "worker.py"
CALLS = {workloads.SMALL: 60, workloads.LARGE: 30, workloads.STREAM: 15}
TARGETS = {workloads.SMALL: 3, workloads.LARGE: 3, workloads.STREAM: 6}
"""By what factor our CPU is to be below that of the cheapest peer."""
REDACTION_SHARE = 0.3
"""The most that the default policy may add to what recording costs."""
IMPORTS = {
    "opentelemetry": "import opentelemetry.sdk.trace",
    "spanreel.auto": "import opentelemetry.sdk.trace; import spanreel.auto",
}


class Worker:
    """The process of one recorder."""

    def __init__(self, library: str, recorder: str) -> None:
        command = [sys.executable, str(WORKER), library, recorder]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, workload: str, calls: int) -> Any:
        """What one round of a workload cost."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"workload": workload, "calls": calls}) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


@contextlib.contextmanager
def workers_of(library: str, names: Sequence[str] = ()) -> Iterator[dict[str, Worker]]:
    """A worker for each of these recorders, or for each that supports the library."""
    workers = {name: Worker(library, name) for name in names or recorders.recorders_of(library)}
    try:
        yield workers
    finally:
        for worker in workers.values():
            worker.close()


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default=",".join(workloads.LIBRARIES))
    parser.add_argument("--calls-only", action="store_true", help="neither the loop nor the imports")
    parser.add_argument("--redaction", action="store_true", help="only what the default policy adds to our own cost")
    given = parser.parse_args()
    if given.redaction:
        show_redaction(given.rounds)
        return
    chosen = given.only.split(",")
    print(f"ms a call, medians of {given.rounds} rounds; what each recorder adds to a call without any")
    print(f"{'':36}{'caller':>9}{'all':>9}{'wall':>9}{'spans':>7}{'bytes':>8}  peer's / ours")
    for library in chosen:
        with workers_of(library) as workers:
            for workload, calls in CALLS.items():
                show(library, workload, measured(workers, workload, calls, given.rounds))
    if "openai" in chosen and not given.calls_only:
        show_loop(given.rounds)
        show_imports(given.rounds)


def measured(workers: dict[str, Worker], workload: str, calls: int, rounds: int) -> dict[str, dict[str, float]]:
    """The median costs of each recorder."""
    said: dict[str, list[dict[str, float]]] = {name: [] for name in workers}
    for _ in range(rounds):
        for name, worker in workers.items():
            said[name].append(worker.ask(workload, calls))
    return {
        name: {key: statistics.median(one[key] for one in costs) for key in costs[0]} for name, costs in said.items()
    }


def show(library: str, workload: str, costs: dict[str, dict[str, float]]) -> None:
    """One table."""
    print(f"\n{library}, {workload}")
    bare = costs.pop(BARE)
    row(BARE, bare)
    added = {name: {key: cost[key] - bare.get(key, 0) for key in cost} for name, cost in costs.items()}
    ours = added[SPANREEL]["all"]
    for name, cost in added.items():
        remark = "" if costs[name]["content"] else "  NO CONTENT"
        row(name, cost, remark if name == SPANREEL else f"{cost['all'] / ours:8.1f}{remark}")
    peers = [cost["all"] for name, cost in added.items() if name != SPANREEL and costs[name]["content"]]
    if peers:
        share = added[SPANREEL]["caller"] / ours
        good = min(peers) / ours >= TARGETS[workload]
        print(
            f"  the cheapest peer that records content takes {min(peers) / ours:.1f} times ours (to be "
            f"{TARGETS[workload]}: {'reached' if good else 'MISSED'}); of ours, on the caller's thread {share:.0%}"
        )


def row(name: str, cost: dict[str, float], remark: str = "") -> None:
    """One line."""
    print(
        f"  {name:34}{cost['caller']:9.3f}{cost['all']:9.3f}{cost['wall']:9.3f}"
        f"{cost['spans']:7.1f}{cost['bytes']:8.0f}{remark}"
    )


def show_loop(rounds: int) -> None:
    """CPU added to a call, by the turn of a run whose history grows."""
    spans = [(0, 10), (10, 20), (20, 30), (30, 40), (40, 50)]
    print(f"\nopenai, one run of {workloads.TURNS} turns: ms of CPU added to a call (caller / all), by turn")
    print(f"  {'':20}" + "".join(f"{f'{first + 1}-{last}':>18}" for first, last in spans))
    with workers_of("openai") as workers:
        said = looped(workers, rounds)
    medians = {
        name: [
            [statistics.median(turn[key] for run in runs for turn in run[first:last]) for key in ("caller", "all")]
            for first, last in spans
        ]
        for name, runs in said.items()
    }
    for name, cells in medians.items():
        bare = [[0.0, 0.0]] * len(spans) if name == BARE else medians[BARE]
        shown = [f"{c - b[0]:.3f} / {a - b[1]:.3f}" for (c, a), b in zip(cells, bare, strict=True)]
        print(f"  {name:20}" + "".join(f"{cell:>18}" for cell in shown))


def looped(workers: dict[str, Worker], rounds: int) -> dict[str, list[list[dict[str, float]]]]:
    """The costs of each turn of the growing run, by recorder and round."""
    said: dict[str, list[list[dict[str, float]]]] = {name: [] for name in workers}
    for _ in range(rounds):
        for name, worker in workers.items():
            said[name].append(worker.ask(workloads.LOOP, 1))
    return said


def show_redaction(rounds: int) -> None:
    """The CPU of all threads that the default policy adds to what recording without it adds to a call."""
    print(f"ms of CPU that recording adds to a call, openai, medians of {rounds} rounds: without redaction, with it")
    with workers_of("openai", (BARE, UNREDACTED, SPANREEL)) as workers:
        for workload in (workloads.LARGE, workloads.STREAM):
            costs = measured(workers, workload, CALLS[workload], rounds)
            show_share(workload, [costs[name]["all"] for name in (BARE, UNREDACTED, SPANREEL)])
        said = looped(workers, rounds)
    turns = [
        statistics.median(statistics.mean(turn["all"] for turn in run) for run in said[name])
        for name in (BARE, UNREDACTED, SPANREEL)
    ]
    show_share(f"loop of {workloads.TURNS} turns", turns)


def show_share(workload: str, costs: Sequence[float]) -> None:
    """What redaction adds, as a share."""
    bare, without, redacted = costs
    share = (redacted - without) / (without - bare)
    good = "reached" if share <= REDACTION_SHARE else "MISSED"
    print(
        f"  {workload:24}{without - bare:9.3f}{redacted - bare:9.3f}  {share:+.0%} "
        f"(to be at most {REDACTION_SHARE:+.0%}: {good})"
    )


def show_imports(rounds: int) -> None:
    """What `import spanreel.auto` adds to an interpreter that has opentelemetry imported."""
    environment = {**os.environ, "OTEL_TRACES_EXPORTER": "none", "SPANREEL_LOG": "off"}
    said: dict[str, list[float]] = {name: [] for name in IMPORTS}
    for _ in range(rounds):
        for name, code in IMPORTS.items():
            timed = f"import time; start = time.process_time(); {code}; print(time.process_time() - start)"
            done = subprocess.run([sys.executable, "-c", timed], env=environment, capture_output=True, check=True)
            said[name].append(float(done.stdout))
    medians = [statistics.median(said[name]) for name in IMPORTS]
    print(f"\nimport spanreel.auto adds {medians[1] - medians[0]:.3f} s of CPU to opentelemetry's {medians[0]:.3f} s")


if __name__ == "__main__":
    main()
