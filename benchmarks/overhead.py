"""What recording costs: CPU time of one model call of openai with 41 messages and 8 tools, without us and with us.

Apart: what the caller's thread takes, and what all threads take, with reading, redaction and export to a file. The
provider is in process, on the caller's thread, in both measurements.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import openai

import spanreel
from spanreel import testing

ROUNDS = 9
CALLS = 60

MESSAGES: list[Any] = [{"role": "system", "content": "You care for customers of a book shop. " * 20}]
for number in range(20):
    MESSAGES.append({"role": "user", "content": f"Where is my order {number}? " * 10})
    MESSAGES.append({"role": "assistant", "content": f"Order {number} is late, and I am sorry for it. " * 10})
SCHEMA = {"type": "object", "properties": {name: {"type": "string"} for name in ("order", "reason", "note")}}
TOOLS: list[Any] = [
    {"type": "function", "function": {"name": f"tool_{number}", "description": "Does it.", "parameters": SCHEMA}}
    for number in range(8)
]


def main() -> None:
    """Print a table."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(SPANREEL_FILE=str(Path(folder) / "traces.jsonl"), SPANREEL_LOG="off")
        provider = testing.ScriptedProvider(lambda _: testing.text("word " * 200))
        client = openai.OpenAI(api_key="none", base_url="http://model.test/v1", http_client=client_of(provider))
        print(f"ms of CPU a call, medians of {ROUNDS} rounds")
        print(f"{'':22}{'without':>10}{'added to the caller':>22}{'added in all':>14}")
        for name, call in (("plain", plain), ("streamed", streamed)):
            without, recorded = measure(partial(call, client))
            added = [with_us - alone for with_us, alone in zip(recorded, without, strict=True)]
            print(f"{name:22}{without[1]:10.2f}{added[0]:22.2f}{added[1]:14.2f}")


def client_of(provider: testing.ScriptedProvider) -> Any:
    """An HTTP client of the kind that this release of openai is built on, wired to the provider."""
    library = openai.DefaultHttpxClient.__mro__[2].__module__.partition(".")[0]
    return openai.DefaultHttpxClient(transport=provider.transport(library))


def plain(client: openai.OpenAI) -> None:
    """One call, answered whole."""
    client.chat.completions.create(model="gpt-5", messages=MESSAGES, tools=TOOLS)


def streamed(client: openai.OpenAI) -> None:
    """One call, answered word by word."""
    for _ in client.chat.completions.create(model="gpt-5", messages=MESSAGES, tools=TOOLS, stream=True):
        pass


Times = tuple[float, float]
"""Milliseconds of CPU a call: of the caller's thread, and of all."""


def measure(call: Callable[[], None]) -> tuple[Times, Times]:
    """Without us, and recorded; in turns, so that a slow moment of the machine falls on both."""
    without, recorded = [], []
    for _ in range(ROUNDS):
        without.append(milliseconds(call))
        spanreel.instrument()
        recorded.append(milliseconds(call))
        spanreel.uninstrument()
    return median(without), median(recorded)


def median(rounds: list[Times]) -> Times:
    """The median of each of the two."""
    caller, everything = zip(*rounds, strict=True)
    return statistics.median(caller), statistics.median(everything)


def milliseconds(call: Callable[[], None]) -> Times:
    """One call in the mean, what is left to export included."""
    call()
    spanreel.flush()
    caller, everything = time.thread_time(), time.process_time()
    for _ in range(CALLS):
        call()
    caller = time.thread_time() - caller
    spanreel.flush()
    return caller / CALLS * 1000, (time.process_time() - everything) / CALLS * 1000


if __name__ == "__main__":
    main()
