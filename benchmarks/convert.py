"""What conversion costs: spans a second of CPU time on one core, end to end, and the most memory it takes.

From JSON lines of spans of about 5 KB to session documents, by `spanreel convert`, in a process of its own, the start
of the interpreter included. It is an installed program that is measured: bytecode is kept, as it is by default, and
was made by a run before. As the input grows, the time a span is to stay the same, and the memory; documents grow with
what was said.

    convert.py [--spans N,...] [--jobs N] [--million]
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from measured.spans import write_spans

SIZES = (10_000, 100_000)
MILLION = 1_000_000
TARGET = 5_000
"""Spans a second on one core, end to end, start of the interpreter included."""
MEMORY_GROWTH = 1.5
"""By what factor memory may grow while the input grows tenfold or more: caches have bounds, and fill up to them."""


@dataclass(frozen=True)
class Measured:
    """One conversion: bytes read and written, CPU and wall time in seconds, the most memory of a process in bytes."""

    spans: int
    read: int
    written: int
    cpu: float
    wall: float
    memory: int

    @property
    def rate(self) -> float:
        """Spans a second of CPU time."""
        return self.spans / self.cpu


def measure(folder: Path, spans: int, jobs: int) -> Measured:
    """Write so many spans, convert them, and remove both."""
    source, target = folder / f"{spans}.jsonl", folder / f"{spans}.sessions.jsonl"
    write_spans(source, spans)
    command = [sys.executable, "-m", "spanreel", "convert", str(source), "--format", "jsonl", "--out", str(target)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([*command[:4], "--help"], check=True, stdout=subprocess.DEVNULL, env=environment)
    began = os.times()
    # The peak of children is that of the largest yet: sizes are measured in ascending order.
    subprocess.run([*command, "--jobs", str(jobs)], check=True, stderr=subprocess.DEVNULL, env=environment)
    ended = os.times()
    cpu = ended.children_user + ended.children_system - began.children_user - began.children_system
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    found = Measured(spans, source.stat().st_size, target.stat().st_size, cpu, ended.elapsed - began.elapsed, memory)
    source.unlink()
    target.unlink()
    return found


def main() -> int:
    """Measure and print; 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spans", type=lambda text: tuple(map(int, text.split(","))), default=SIZES)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--million", action="store_true", help="a million too, which takes 12 GB of disk for a while")
    options = parser.parse_args()
    print("    spans   read MB  written MB   cpu s   wall s   spans/s cpu   us/span   peak MB")
    results = []
    with tempfile.TemporaryDirectory(prefix="spanreel-benchmark-") as folder:
        for spans in sorted((*options.spans, *((MILLION,) if options.million else ()))):
            one = measure(Path(folder), spans, options.jobs)
            results.append(one)
            print(
                f"{one.spans:9,}  {one.read / 1e6:8,.0f}  {one.written / 1e6:10,.0f}  {one.cpu:6.1f}  {one.wall:7.1f}"
                f"  {one.rate:12,.0f}  {1e6 / one.rate:8.0f}  {one.memory / 1e6:8.0f}",
                flush=True,
            )
    return 0 if judge(results) else 1


def judge(results: list[Measured]) -> bool:
    """Say what is as it is to be, and what is not."""
    largest = results[-1]
    checks = {f"{TARGET:,} spans/s and more": largest.rate >= TARGET}
    if len(results) > 1:
        smallest = results[0]
        share = [one.written / one.spans for one in (smallest, largest)]
        checks |= {
            "linear time: the largest costs no more a span than the smallest": largest.rate >= smallest.rate * 0.9,
            "memory does not grow with the input": largest.memory <= smallest.memory * MEMORY_GROWTH,
            "documents grow as what was said": share[1] <= share[0] * 1.1,
        }
    for check, good in checks.items():
        print(f"{'yes' if good else 'NO '}  {check}")
    return all(checks.values())


if __name__ == "__main__":
    sys.exit(main())
