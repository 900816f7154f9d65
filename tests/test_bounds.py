"""What is too large is cut, and cut JSON stays JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.util.types import AttributeValue

from spanreel import conventions as names
from spanreel.bounds import bound, cut_text, cut_value, size_of
from spanreel.outgoing import finish
from spanreel.settings import Settings


def test_what_fits_is_left_as_it_is() -> None:
    attributes: dict[str, AttributeValue] = {"a": "x" * 100, "b": 1, "c": ("y",), "d": True}
    bounded = bound(attributes, 100, 1000)
    assert (bounded.attributes, bounded.truncated, bounded.dropped) == (attributes, (), ())


def test_text_keeps_its_beginning_and_says_how_much_is_missing() -> None:
    assert cut_text("abc" * 100, 50) == "abcabcabcabcabcabcabcabcab…[truncated 274 bytes]"
    assert size_of(cut_text("ü" * 1000, 300)) <= 300
    assert cut_text("short", 5) == "short"


def test_messages_lose_their_longest_strings_and_keep_names_and_ids() -> None:
    messages = [
        {"role": "user", "parts": [{"type": "text", "content": "a" * 50_000}, {"type": "text", "content": "brief"}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_1", "response": "ü" * 50_000}]},
    ]
    cut = cut_value(json.dumps(messages), 10_000)
    assert isinstance(cut, str)
    assert size_of(cut) <= 10_000
    read = json.loads(cut)
    assert (read[0]["role"], read[0]["parts"][1]["content"], read[1]["parts"][0]["id"]) == ("user", "brief", "call_1")
    for text in (read[0]["parts"][0]["content"], read[1]["parts"][0]["response"]):
        assert 3000 < size_of(text) < 5000
        assert "…[truncated " in text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.text(min_size=200, max_size=2000),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=9), inner, max_size=5),
    max_leaves=20,
)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.lists(JSON, max_size=4), st.integers(10, 3000))
def test_cut_json_is_json_within_the_limit(value: Any, limit: int) -> None:
    cut = cut_value(json.dumps(value), limit)
    if cut is not None:
        assert isinstance(cut, str)
        json.loads(cut)
        assert size_of(cut) <= limit


@pytest.mark.parametrize(
    ("value", "cut"),
    [
        (json.dumps(list(range(10_000))), None),
        ("{not json" * 100, "{not json{not json{no…[truncated 879 bytes]"),
        (b"x" * 100, b"x" * 45),
        (["y" * 50, "z" * 50], ["…[truncated 50 bytes]", "…[truncated 50 bytes]"]),
        ([1] * 100, None),
        ([], None),
        ({"k": "v" * 100}, None),
    ],
)
def test_other_values_are_cut_where_that_makes_sense(value: Any, cut: Any) -> None:
    assert cut_value(value, 45) == cut


def test_an_empty_room_keeps_nothing() -> None:
    assert cut_value(["y" * 50], 0) is None


def test_sizes_are_those_of_utf_8() -> None:
    values: list[Any] = ["abc", "ü", "\ud800", b"ab", 1, {"k": "vv"}, ["a", "b"]]
    assert [size_of(value) for value in values] == [3, 2, 3, 2, 8, 7, 6]


def test_a_span_as_a_whole_loses_its_newest_content_first() -> None:
    attributes = {
        names.OUTPUT_MESSAGES: json.dumps([{"content": "o" * 5000}]),
        names.INPUT_MESSAGES: json.dumps([{"content": "i" * 5000}]),
        names.STREAM_CHUNKS: json.dumps([[number, 5] for number in range(1000)]),
        "custom.early": "e" * 3000,
        "custom.late": "l" * 3000,
        names.REQUEST_MODEL: "gpt-5",
    }
    bounded = bound(attributes, 10_000, 8000)
    assert (bounded.dropped, bounded.truncated) == (
        ("custom.late", "custom.early", names.STREAM_CHUNKS),
        (names.OUTPUT_MESSAGES,),
    )
    assert bounded.attributes[names.INPUT_MESSAGES] == attributes[names.INPUT_MESSAGES]
    assert bounded.attributes[names.REQUEST_MODEL] == "gpt-5"
    assert sum(size_of(value) for value in bounded.attributes.values()) <= 8000


def test_a_value_that_was_cut_and_then_dropped_is_dropped() -> None:
    attributes = {names.INPUT_MESSAGES: json.dumps(["i" * 3000]), names.OUTPUT_MESSAGES: json.dumps(["o" * 9000])}
    bounded = bound(attributes, 4000, 3100)
    assert (bounded.dropped, bounded.truncated) == ((names.OUTPUT_MESSAGES,), ())


def test_what_leaves_says_what_was_cut_and_what_was_dropped() -> None:
    attributes = {
        names.INPUT_MESSAGES: json.dumps(["i" * 3000]),
        names.OUTPUT_MESSAGES: json.dumps(list(range(2000))),
        names.TOOL_CALL_RESULT: '{"password": "hunter2"}',
    }
    finished = finish(attributes, Settings(max_value_bytes=2000))
    assert json.loads(str(finished[names.FIDELITY])) == {
        names.TOOL_CALL_RESULT: "redacted",
        names.INPUT_MESSAGES: "truncated",
        names.OUTPUT_MESSAGES: "absent",
    }
