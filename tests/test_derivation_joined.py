"""Sessions of a service whose traces only their content joins, in whatever order they come."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from deriving import TENANT, deriving, open_at, send, settle
from otlp_lines import GENAI, Span, agent, attribute_list, chat, request, said
from spanreel import conventions as names
from spanreel_collector.stores.records import Filter

pytestmark = pytest.mark.slow

HI = [said("user", "Weather?")]
HO = said("assistant", "Sunny.")
MORE = [*HI, HO, said("user", "And there?")]
OTHER = "opentelemetry.instrumentation.openai"


def answered(one: Span, identity: str) -> Span:
    return {**one, "attributes": [*one["attributes"], *attribute_list({names.RESPONSE_ID: identity})]}


def run(number: int, told: list[Any]) -> dict[str, Any]:
    where: dict[str, Any] = {"trace": f"{number:032x}"}
    spans = [
        agent(number * 10, "clerk", seconds=5, **where),
        answered(chat(number * 10 + 1, told, HO, number * 10, **where), f"r{number}"),
    ]
    return request(*spans, scope=GENAI)


def client(number: int, told: list[Any]) -> dict[str, Any]:
    """What a client's recorder says of the same call, in a trace of its own."""
    start = number * 10 + 1.1
    one = chat(number * 10 + 2, told, HO, trace=f"{number + 100:032x}", start=start, seconds=0.2)
    return request(answered(one, f"r{number}"), scope=OTHER)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_whatever_comes_first_calls_seen_twice_are_one_and_runs_one_conversation(
    order: tuple[int, ...], tmp_path: Path
) -> None:
    store = open_at(tmp_path)
    derivation = deriving(store)
    arriving = [run(1, HI), run(2, MORE), client(1, HI)]
    for number in order:
        send(store, arriving[number])
        settle(derivation)
    (summary,) = store.find(TENANT, Filter()).sessions
    assert (summary.runs, summary.model_calls, summary.key) == (2, 2, f"{1:032x}")
