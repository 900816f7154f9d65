"""What the export thread does for one call, alone: the least of some rounds, which other processes disturb less.

export_thread.py LIBRARY... prints milliseconds a call for each workload of each library.
"""

from __future__ import annotations

import gc
import itertools
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from measured import recorders, workloads

from spanreel.delivery import Delivery, Waiting

CALLS, ROUNDS = 30, 15


def main(library: str, workload: str) -> None:
    """Print the milliseconds of one workload."""
    kept: list[Waiting] = []
    threads: list[Delivery] = []
    deliver = Delivery.deliver

    def keep(delivery: Delivery, batch: Sequence[Waiting]) -> None:
        threads.append(delivery)
        kept.extend(batch)

    Delivery.deliver = keep  # type: ignore[assignment, method-assign]  # what waits is delivered below, in this thread
    workloads.prepare(library)
    _, flush = recorders.start(recorders.SPANREEL, library)
    call = workloads.LIBRARIES[library](workload)
    numbers = itertools.count()
    least = float("inf")
    for _ in range(ROUNDS):
        kept.clear()
        for _ in range(CALLS):
            call(workloads.question(next(numbers)))
        flush()
        gc.collect()
        started = time.thread_time()
        deliver(threads[0], kept)
        least = min(least, time.thread_time() - started)
    print(f"{library:16}{workload:24}{least / CALLS * 1000:8.3f}")


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[2] in workloads.WORKLOADS:
        main(*sys.argv[1:])
    else:
        for name, workload in itertools.product(sys.argv[1:], workloads.WORKLOADS):
            subprocess.run([sys.executable, __file__, name, workload], check=True)
