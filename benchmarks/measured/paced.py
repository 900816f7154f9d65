"""How true the gaps of a paced stream are: one is recorded from a server on loopback, and replayed with ``pace``.

Prints one line of JSON: the relative errors of the gaps between chunks, as the client hears them.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import openai
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import spanreel
from spanreel import testing
from spanreel.otlp_file import FileExporter
from spanreel_collector.conversion.convert import convert_files

HOLD = 25.0
"""Milliseconds that the server waits between chunks."""


def listen(base_url: str) -> list[float]:
    """Ask for a stream; when its chunks came."""
    at: list[float] = []
    with openai.OpenAI(base_url=base_url, api_key="none") as client:
        asked: Any = {"model": "gpt-5", "messages": [{"role": "user", "content": "Count."}], "stream": True}
        for _ in client.chat.completions.create(**asked):
            at.append(time.perf_counter())
    return at


def gaps(at: list[float]) -> list[float]:
    """The seconds between them."""
    return [after - before for before, after in pairwise(at)]


def main() -> None:
    """Record once, replay so many rounds."""
    rounds = int(sys.argv[1])
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    spanreel.instrument(tracer_provider=provider)
    said = testing.answer(" ".join(f"number {number}" for number in range(40)), hold=HOLD)
    with testing.ScriptedProvider([said, said]) as model:
        listen(model.base_url)  # what the client loads for its first stream would be taken for a part of a gap
        exporter.clear()
        recorded = gaps(listen(model.base_url))
        spanreel.uninstrument()
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "traces.jsonl"
            FileExporter(str(file)).export(exporter.get_finished_spans())
            (session,) = convert_files([str(file)]).sessions
        errors: list[float] = []
        whole: list[float] = []
        for _ in range(rounds):
            with spanreel.replay(session, changes={"pace": True}):
                played = gaps(listen(model.base_url))
            errors += [abs(now - then) / then for then, now in zip(recorded, played, strict=True) if then > 0.005]
            whole.append(abs(sum(played) - sum(recorded)) / sum(recorded))
    print(
        json.dumps(
            {
                "gaps": len(errors),
                "median": statistics.median(errors),
                "within": sum(error <= 0.1 for error in errors) / len(errors),
                "whole": max(whole),
            }
        )
    )


if __name__ == "__main__":
    main()
