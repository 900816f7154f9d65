"""Which acceptance case of replay (section E of its specification) is shown for which kind of agent, as tests say."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable
from typing import Any, TypeVar

from conftest import KINDS

Test = TypeVar("Test", bound=Callable[..., Any])

CASES = {
    1: "an unchanged agent, offline",
    2: "one run in the words of three recorders",
    3: "polling",
    4: "parallel calls that arrive the other way round",
    5: "equal parallel calls with different results",
    6: "a call inserted",
    7: "a call removed",
    8: "equivalent arguments",
    9: "a tool without a policy",
    10: "tools in threads, pools and processes",
    11: "a client that is not known",
    12: "a side effect on a miss",
    13: "another model",
    14: "clock, uuid and random",
    15: "redacted arguments",
    16: "a recording that lost something",
    17: "streams",
    18: "errors",
    19: "sub-agents, MCP",
    20: "a batch",
}

SHOWN: defaultdict[int, set[str]] = defaultdict(set)
"""The kinds for which tests show a case."""


def case(number: int, *kinds: str) -> Callable[[Test], Test]:
    """The test shows this case: for every kind where it asks for the fixture ``kind``, else for those named."""

    def mark(test: Test) -> Test:
        assert number in CASES
        SHOWN[number] |= {*KINDS} if "kind" in inspect.signature(test).parameters else {*kinds}
        return test

    return mark
