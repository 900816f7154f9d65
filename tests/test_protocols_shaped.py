"""What is filled into a shape is what reading would have made of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exchange_cases import FILES, exchanges
from spanreel.model import Answer
from spanreel.protocols.openai_chat.answers import _read_body
from spanreel.protocols.openai_chat.messages import FREE, read_answer, read_message
from spanreel.protocols.residue import same
from spanreel.protocols.shaped import Shaped, said

TEXTS = st.sampled_from(
    ["hi", "", "ä \U0001f600", 'a "quote"', '{"a":1}', '{"a": 1}', "[]", "\ue0000\ue001", "x" * 300]
)
VALUES = TEXTS | st.sampled_from([0, 1, 7, 1.0, -0.0, 0.0, True, False, None])
NAMES = st.sampled_from(
    [
        "id",
        "content",
        "text",
        "role",
        "type",
        "arguments",
        "refusal",
        "name",
        "reasoning",
        "function",
        "tool_calls",
        "x",
    ]
)
OBJECTS = st.recursive(
    st.dictionaries(NAMES, VALUES, max_size=3),
    lambda inner: st.dictionaries(NAMES, inner | VALUES | st.lists(inner | VALUES, max_size=2), max_size=4),
    max_leaves=6,
)
VARIED = (*FREE, "created", "thinking", "signature", "data", "encrypted_content", "output", "call_id", "item_id")


def vary(value: Any, more: str, name: str = "") -> Any:
    """The value with other texts and numbers where a client's bodies differ."""
    if isinstance(value, dict):
        return {key: vary(part, more, key) for key, part in value.items()}
    if isinstance(value, list):
        return [vary(part, more) for part in value]
    if name not in VARIED or not value or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value + len(more)
    return value if name == "arguments" or value.startswith("data:") else value + more


def test_a_shape_is_read_thrice_and_then_filled_in() -> None:
    read: list[Any] = []

    def note(value: dict[str, Any]) -> Answer:
        read.append(value)
        return Answer(value["id"], messages=({"role": "x", "parts": [value["n"], {"k": 1}]},))

    shaped = Shaped(note, said("id", "n"))
    for number in range(1, 9):
        assert repr(shaped({"id": f"{number}", "n": number})) == repr(note({"id": f"{number}", "n": number}))
    assert len(read) == 3 + 8
    assert shaped({"id": "", "n": True}) == note({"id": "", "n": True})


def test_what_does_not_keep_its_texts_as_they_are_is_read_each_time() -> None:
    shaped = Shaped(lambda value: {"said": f"<{value['id']}>"}, said("id"))
    for number in range(5):
        assert shaped({"id": f"{number}"}) == {"said": f"<{number}>"}


@given(st.lists(OBJECTS, min_size=1, max_size=3))
def test_what_is_filled_in_is_what_would_be_read(objects: list[dict[str, Any]]) -> None:
    for read in (
        lambda entry: read_message(entry, "here"),
        read_answer,
        lambda entry: _read_body({"choices": [entry]}),
    ):
        shaped: Shaped[Any] = Shaped(read, FREE)
        for _ in range(3):
            for one in objects:
                assert repr(shaped(one)) == repr(read(one))
                for more in ("!", " \u2028é"):
                    varied = vary(one, more)
                    assert repr(shaped(varied)) == repr(read(varied))


@pytest.mark.parametrize("file", FILES)
def test_bodies_that_differ_in_what_is_said_are_written_as_they_were_read(file: str) -> None:
    for exchange in exchanges(file):
        for more in ("!", "!!", ' "x"', "é", "\n"):
            request = vary(exchange.request, more)
            read = exchange.protocol.read_request(json.dumps(request).encode(), exchange.operation)
            assert same(json.loads(exchange.protocol.write_request(read)), request), exchange.id
            if exchange.streamed or exchange.status >= 400:
                continue
            response = vary(json.loads(exchange.response), more)
            answer = exchange.protocol.read_response(json.dumps(response).encode(), exchange.status)
            assert same(json.loads(exchange.protocol.write_response(answer)), response), exchange.id
