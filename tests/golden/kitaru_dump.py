"""Makes `kitaru.session.jsonl`: the librarian's visits as records of Kitaru's canonical JSONL, checked by Kitaru 0.27.

``python tests/golden/kitaru_dump.py > tests/golden/kitaru.session.jsonl``
"""

from __future__ import annotations

import json
import sys
from typing import Any

from kitaru.task.importer import ImportedNode, ImportedSession

SYSTEM = {"role": "system", "content": "You are a librarian."}
MOMO = {"role": "user", "content": "Where is Momo? Reserve it."}
WHO = {"role": "user", "content": "Who wrote Momo?"}


def asks(identity: str, name: str, **arguments: str) -> dict[str, Any]:
    call = {"id": identity, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def told(identity: str, content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": identity, "content": content}


def node(index: int, kind: str, name: str, inputs: Any, outputs: Any, **also: Any) -> dict[str, Any]:
    times = {"started_at": f"2026-11-30T10:00:{index:02}.000Z", "ended_at": f"2026-11-30T10:00:{index:02}.900Z"}
    base = {"index": index, "node_type": kind, "name": name, "status": "completed", "attributes": {}}
    return {**base, **times, "inputs": inputs, "outputs": outputs, **also}


def model(index: int, parent: int, messages: list[Any], answer: Any, **tokens: int) -> dict[str, Any]:
    facts = {"requested_model": "gpt-5", "model": "gpt-5-2026-01-01", "model_provider": "openai"}
    settings = {"model_params": {"temperature": 0.3}, "tokens": tokens, "cost": "0.0021"}
    return node(index, "llm_call", "chat", {"messages": messages}, answer, parent_index=parent, **facts, **settings)


BOOK = asks("call_a", "find_book", title="Momo")
RESERVE = asks("call_b", "reserve", title="Momo")
LENT = "failed: Momo is lent out"
FIRST = [SYSTEM, MOMO]
SECOND = [*FIRST, BOOK, told("call_a", '{"shelf": 4}')]
THIRD = [*SECOND, RESERVE, told("call_b", LENT)]
ANSWER = {"role": "assistant", "content": "Momo is on shelf 4, and lent out."}
ENDE = {"role": "assistant", "content": "Michael Ende."}
RECORDS: list[dict[str, Any]] = [
    {
        "external_id": "library:visit-1",
        "name": "A visit",
        "status": "completed",
        "framework": "openai",
        "metadata": {"desk": "north"},
        "started_at": "2026-11-30T10:00:00.000Z",
        "ended_at": "2026-11-30T10:00:06.900Z",
        "inputs": MOMO["content"],
        "outputs": ANSWER["content"],
        "nodes": [
            node(0, "span", "librarian", MOMO["content"], ANSWER["content"], ended_at="2026-11-30T10:00:06.900Z"),
            model(1, 0, FIRST, BOOK, input_tokens=100, output_tokens=21, cached_input_tokens=64, reasoning_tokens=5),
            node(2, "tool_call", "find_book", {"title": "Momo"}, {"shelf": 4}, parent_index=1, tool_name="find_book"),
            model(3, 0, SECOND, RESERVE, input_tokens=200, output_tokens=22),
            node(
                4,
                "tool_call",
                "reserve",
                {"title": "Momo"},
                None,
                parent_index=3,
                tool_name="reserve",
                status="failed",
                error="Momo is lent out",
            ),
            model(5, 0, THIRD, ANSWER, input_tokens=300, output_tokens=23),
        ],
    },
    {
        "external_id": "library:visit-2",
        "status": "failed",
        "error": "Too many readers.",
        "inputs": WHO["content"],
        "outputs": None,
        "nodes": [
            node(0, "subagent_call", "scholar", WHO["content"], ENDE["content"], subagent_id="scholar-1"),
            model(1, 0, [SYSTEM, WHO], ENDE, input_tokens=40, output_tokens=4),
            node(
                2,
                "llm_call",
                "chat",
                {"messages": [SYSTEM, WHO]},
                None,
                requested_model="gpt-5",
                status="failed",
                error="Too many readers.",
            ),
        ],
    },
]

for record in RECORDS:
    for one in record["nodes"]:
        # Where a node stands is for the reader of lines; what it says is checked here.
        said = {key: value for key, value in one.items() if key not in ("index", "parent_index")}
        ImportedNode.model_validate({"external_id": "x", **said})
    ImportedSession.model_validate({**record, "nodes": []})
    sys.stdout.write(json.dumps(record) + "\n")
