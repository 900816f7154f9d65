"""A process that measures one library under one recorder: a workload a line on stdin, its costs as JSON on stdout."""

from __future__ import annotations

import contextlib
import gc
import itertools
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from measured import recorders, workloads

Costs = dict[str, float]
"""Milliseconds a call: of the caller's thread (``caller``), of all threads (``all``), and by the clock (``wall``)."""


def main(library: str, recorder: str) -> None:
    """Answer lines until there are no more."""
    workloads.prepare(library)
    exporter, flush = recorders.start(recorder, library)
    calls: dict[str, Callable[[str], Any]] = {}
    numbers = itertools.count()
    for line in sys.stdin:
        asked = json.loads(line)
        name, count = asked["workload"], asked["calls"]
        if name == workloads.LOOP:
            answer: Any = loop(recorder, flush)
        else:
            if name not in calls:
                calls[name] = workloads.LIBRARIES[library](name)
                measure(calls[name], flush, numbers, 3)
            exporter.spans = exporter.sent = 0
            answer = measure(calls[name], flush, numbers, count)
            answer |= {"spans": exporter.spans / count, "bytes": exporter.sent / count}
            answer["content"] = workloads.MARK.encode() in exporter.last
        sys.__stdout__.write(json.dumps(answer) + "\n")  # type: ignore[union-attr]  # a process of ours has one
        sys.__stdout__.flush()  # type: ignore[union-attr]  # as above


def measure(call: Callable[[str], Any], flush: recorders.Flush, numbers: Any, count: int) -> Costs:
    """So many calls, and all that is left to export."""
    questions = [workloads.question(next(numbers)) for _ in range(count)]
    flush()
    gc.collect()
    wall, caller, everything = time.perf_counter(), time.thread_time(), time.process_time()
    for question in questions:
        call(question)
    wall, caller = time.perf_counter() - wall, time.thread_time() - caller
    flush()
    everything = time.process_time() - everything
    return {"caller": caller / count * 1000, "all": everything / count * 1000, "wall": wall / count * 1000}


def loop(recorder: str, flush: recorders.Flush) -> list[Costs]:
    """The costs of each turn of a run whose history grows."""
    costs = []
    with _run(recorder):
        for call in workloads.growing():
            gc.collect()
            costs.append(measure(lambda _, call=call: call(), flush, itertools.count(), 1))  # type: ignore[misc]
    return costs


def _run(recorder: str) -> Any:
    if recorder not in (recorders.SPANREEL, recorders.UNREDACTED):
        return contextlib.nullcontext()
    import spanreel

    return spanreel.run(agent="loop")


if __name__ == "__main__":
    sys.stdout = sys.stderr  # what libraries print is no answer
    main(*sys.argv[1:])
