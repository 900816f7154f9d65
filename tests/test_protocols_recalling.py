"""What was read before is known again, and only that."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spanreel.model import Operation
from spanreel.protocols import openai_chat
from spanreel.protocols.recalling import Recalling


def test_an_entry_is_read_once() -> None:
    read: list[Any] = []

    def note(entry: Any) -> dict[str, Any]:
        read.append(entry)
        return {"value": entry}

    recall = Recalling(note, lambda entry, found: found["value"] == entry)
    first, again = recall({"a": 1}), recall({"a": 1})
    assert first is again
    assert first == ({"value": {"a": 1}}, True)
    assert read == [{"a": 1}]
    for other in ({"a": 1.0}, {"a": True}, {"a": "1"}, {"a": float("nan")}, {"a": None}, {"a": "\ud800"}):
        assert repr(recall(other)[0]["value"]) == repr(other)


@pytest.mark.parametrize("entry", [{"role": "user", "content": "hi"}, {"role": "x", "content": [3], "odd": None}])
def test_a_conversation_read_again_is_the_same(entry: dict[str, Any]) -> None:
    tools = [{"type": "function", "function": {"name": "f"}}, {"type": "custom", "custom": {"name": "g"}}, 3]
    body = json.dumps({"messages": [entry, {"role": "tool", "tool_call_id": "c"}], "tools": tools, "n": 2}).encode()
    first = openai_chat.read_request(body, Operation.CHAT)
    again = openai_chat.read_request(body, Operation.CHAT)
    assert again == first
    assert json.loads(openai_chat.write_request(again)) == json.loads(body)
