"""What is remembered while traces are read changes nothing of what is read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from golden_sessions import GOLDEN
from spanreel_collector import dialects
from spanreel_collector.dialects.content import conventional
from spanreel_collector.sources.files import read_file

USER = {"role": "user", "parts": [{"type": "text", "content": "Where is it?"}]}
CALL = {"role": "assistant", "parts": [{"type": "tool_call", "id": "call_1", "name": "find", "arguments": {"n": 1}}]}


def other(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, dict):
        return {**value, "more": 1}
    return not value if isinstance(value, bool) else value and value + value


@pytest.mark.parametrize("dump", sorted(GOLDEN.glob("*.otlp.jsonl")), ids=lambda path: path.name)
def test_a_dialect_is_told_by_names_and_types_and_never_by_values(dump: Path) -> None:
    for batch in read_file(str(dump)):
        for span in batch.spans:
            changed = replace(span, attributes={key: other(value) for key, value in span.attributes.items()})
            for dialect in dialects.DIALECTS:
                assert dialect.speaks(changed) == dialect.speaks(span), (dialect.NAME, span.name)


@pytest.mark.parametrize(
    "messages",
    [
        [USER, CALL],
        [USER, USER],
        [{"parts": [], "role": "user"}, USER],
        [{"role": "user", "parts": [{"type": "text", "content": '}, {"role": "user"'}]}, USER],
        [{"role": "user", "parts": [{"type": "text", "content": '[{"role":"user"},{"role":"user"}]'}]}, USER],
        [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "response": [USER, CALL]}]}, CALL],
        [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "result": [CALL, USER]}]}],
        [{"role": 7}, USER],
        [USER, "words", CALL],
        [{"role": "user", "content": "\ud83d"}, USER],
        [],
    ],
    ids=range(11),
)
@pytest.mark.parametrize("separators", [(", ", ": "), (",", ":")], ids=["spaced", "compact"])
def test_messages_read_one_by_one_are_those_read_together(messages: list[Any], separators: tuple[str, str]) -> None:
    text = json.dumps(messages, separators=separators)
    together = conventional.messages(json.loads(text.replace("\\ud83d", "\\ufffd")))
    assert conventional.messages(text) == together
    assert conventional.messages(text) == together  # and again, from memory
    assert conventional.messages(f" {text}") == together  # a way of writing that is not taken apart


def test_what_only_looks_like_several_messages_is_no_list() -> None:
    assert conventional.messages('[{"role": "user", {"role": "user"}]')[0] == ()
    assert conventional.messages('[{"role": "user"}, {"role": "user"]')[0] == ()


def test_a_message_that_was_cut_is_told_as_cut_though_it_was_read_whole_before() -> None:
    whole = json.dumps([USER, CALL])
    assert conventional.messages(whole)[1] == "whole"
    read, fidelity = conventional.messages(whole[:-20])
    assert (read[0], fidelity) == (USER, "truncated")
