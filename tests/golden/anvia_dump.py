"""Makes `anvia.otlp.jsonl`: a librarian's spans in the names of `@anvia/otel` 0.26, written by hand.

Anvia could not be installed where this was made, so that nothing of it ran: names and shapes are those of its source.
A run with a tool that fails and a child agent inside another tool, then a "safe" run, which keeps no bodies:
``PYTHONPATH=src:tests python tests/golden/anvia_dump.py > tests/golden/anvia.otlp.jsonl``
"""

from __future__ import annotations

import json
import sys
from typing import Any

from otlp_lines import Span, request, span

SCOPE = "@anvia/otel"
SAFE = f"{'b' * 31}2"
USER = {"role": "user", "content": [{"type": "text", "text": "Reserve Momo, and ask the archive for Ronja."}]}


def asks(identity: str, name: str, **arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"type": "tool_call", "id": f"item_{identity}", "callId": identity, "function": function}


def answers(identity: str, text: str) -> dict[str, Any]:
    return {
        "role": "tool",
        "content": [{"type": "tool_result", "callId": identity, "content": [{"type": "text", "text": text}]}],
    }


def generation(turn: int, asked: list[Any], output: list[Any], **usage: int) -> dict[str, Any]:
    return {
        "anvia.generation.turn": turn,
        "anvia.generation.provider": "openai",
        "anvia.generation.model": "gpt-5",
        "anvia.generation.temperature": 0.3,
        "anvia.generation.tool_count": 2,
        "anvia.generation.input": json.dumps(asked),
        "anvia.generation.output": json.dumps(output),
        "anvia.generation.message_id": f"resp_{turn}",
        **{f"anvia.usage.{name}": count for name, count in usage.items()},
    }


def used(number: int, name: str, call: dict[str, Any], parent: int, seconds: float, **also: Any) -> Span:
    arguments = json.dumps(call["function"]["arguments"])
    told: dict[str, Any] = {"anvia.tool.name": name, "anvia.tool.args": arguments, "anvia.tool.call": json.dumps(call)}
    told |= {"anvia.tool.internal_call_id": f"internal-{number}", "anvia.tool.turn": 1}
    return span(number, f"tool.{name}", {**told, **also}, parent, seconds=seconds)


RESERVE = asks("call_a", "reserve", title="Momo")
ASK = asks("call_b", "ask_archive", title="Ronja")
LENT, CELLAR = "Momo is lent out", "Ronja is in the cellar."
HISTORY = [USER, {"role": "assistant", "content": [RESERVE, ASK]}, answers("call_a", LENT), answers("call_b", CELLAR)]
SAID = [{"type": "text", "text": "Momo is lent out; Ronja is in the cellar."}]
RUN = {
    "service.name": "library",
    "anvia.agent.name": "librarian",
    "anvia.agent.instructions": "You are a librarian.",
    "anvia.run.prompt": json.dumps(USER),
    "anvia.run.history": "[]",
    "anvia.run.max_turns": 4,
    "anvia.run.output": SAID[0]["text"],
    "anvia.trace.session_id": "visit-1",
    "anvia.trace.user_id": "reader-9",
    "anvia.trace.tags": ["north"],
    "anvia.trace.metadata.desk": "north",
    # Repeats what the generations used.
    "anvia.usage.input_tokens": 300,
    "anvia.usage.output_tokens": 43,
}
CHILD = {
    "anvia.child_agent.id": "archive",
    "anvia.child_agent.name": "Archive",
    "anvia.parent_tool.name": "ask_archive",
}
ARCHIVE = json.dumps({"prompt": {"role": "user", "content": "Ronja?"}, "history": []})

ONE = [
    span(1, "agent.librarian", RUN, seconds=9),
    span(2, "model.turn.1", generation(1, [USER], [RESERVE, ASK], input_tokens=100, output_tokens=21), 1, kind=3),
    used(3, "reserve", RESERVE, 1, 1, **{"anvia.tool.error": LENT, "anvia.tool.result": LENT, "error.type": "Error"}),
    used(4, "ask_archive", ASK, 1, 3, **{"anvia.tool.result": CELLAR}),
    span(5, "Archive.run", {**CHILD, "anvia.child_agent.text": CELLAR}, 4, seconds=2),
    span(
        6,
        "Archive.model.turn.1",
        {
            **CHILD,
            "anvia.child_agent.turn": 1,
            "anvia.generation.model": "gpt-5-mini",
            "anvia.generation.input": ARCHIVE,
            "anvia.generation.output": json.dumps([{"type": "text", "text": CELLAR}]),
            "anvia.usage.input_tokens": 30,
            "anvia.usage.output_tokens": 6,
        },
        5,
        kind=3,
    ),
    span(7, "model.turn.2", generation(2, HISTORY, SAID, input_tokens=200, output_tokens=22), 1, kind=3),
]
TWO = [
    span(11, "agent.librarian", {"anvia.agent.name": "librarian", "anvia.trace.session_id": "visit-1"}, trace=SAFE),
    span(
        12,
        "model.turn.1",
        {
            "anvia.generation.turn": 1,
            "anvia.generation.model": "gpt-5",
            "anvia.usage.input_tokens": 9,
            "anvia.usage.output_tokens": 2,
        },
        11,
        trace=SAFE,
        kind=3,
    ),
]

for spans in (ONE, TWO):
    sys.stdout.write(json.dumps(request(*spans, scope=SCOPE), ensure_ascii=False) + "\n")
