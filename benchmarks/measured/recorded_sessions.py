"""Session documents of the agent of `replayed`, as a recording of it has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write_sessions(folder: Path, count: int, turns: int) -> list[tuple[str, str | None]]:
    """The documents of so many sessions, each with a question of its own."""
    files: list[tuple[str, str | None]] = []
    for number in range(count):
        file = folder / f"{number:05}.json"
        file.write_text(json.dumps(document(number, turns)))
        files.append((str(file), None))
    return files


def document(number: int, count: int) -> dict[str, Any]:
    """A session of so many turns."""
    messages: list[dict[str, Any]] = [{"role": "user", "parts": [{"type": "text", "content": f"question {number}"}]}]
    turns: list[dict[str, Any]] = []
    run = {
        "id": "run",
        "trace_id": "t",
        "path": "root",
        "agent": {"name": "looker"},
        "entrypoint": {"arguments": {"question": f"question {number}"}},
        "result": "done",
        "turns": turns,
    }
    turns.append({"index": 0, "tool_calls": [_tool(-1, None)]})
    for turn in range(count):
        said = list(range(len(messages)))
        last = turn == count - 1
        asked = {"type": "tool_call", "id": f"c{turn}", "name": "look", "arguments": {"number": turn}}
        messages.append({"role": "assistant", "parts": [{"type": "text", "content": "done"} if last else asked]})
        call = {
            "id": f"m{turn}",
            "protocol": "openai_chat",
            "model": "gpt-5",
            "input": said,
            "output": [len(messages) - 1],
            "tools": [0],
            "finish_reasons": ["stop" if last else "tool_calls"],
            "started_at": f"2026-03-01T10:{turn:02}:10Z",
            "ended_at": f"2026-03-01T10:{turn:02}:20Z",
        }
        turns.append({"index": turn + 1, "model_call": call, "tool_calls": [] if last else [_tool(turn, f"m{turn}")]})
        part = {"type": "tool_call_response", "id": f"c{turn}", "response": f"seen {turn}"}
        messages.append({"role": "tool", "parts": [part]})
    return {
        "schema": "spanreel.session/1",
        "id": f"session-{number:05}",
        "key": {"kind": "trace", "value": "t"},
        "messages": messages,
        "tools": [{"type": "function", "name": "look", "parameters": {"type": "object"}}],
        "runs": [run],
    }


def _tool(number: int, asked_by: str | None) -> dict[str, Any]:
    """A recorded call of the tool."""
    second = "00" if number < 0 else "30"
    minute = max(number, 0)
    return {
        "id": f"t{number}",
        "call_id": f"c{number}" if asked_by else None,
        "name": "look",
        "arguments": {"number": number},
        "result": f"seen {number}",
        "requested_by": {"model_call": asked_by, "position": 0} if asked_by else None,
        "started_at": f"2026-03-01T10:{minute:02}:{second}Z",
        "ended_at": f"2026-03-01T10:{minute:02}:{int(second) + 5:02}Z",
    }
