"""What leaves as it is, told at a glance, is what the long way would have left as it is."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanreel import json_text
from spanreel.binary import without_binary_text
from spanreel.credential_names import is_credential_name
from spanreel.redaction import DEFAULT, is_own_id, make_policy, redact_attributes
from spanreel.rules import Form, Rule
from spanreel.settings import Settings
from spanreel.unchanged import _COUNTS, unchanged

PIECES = st.sampled_from(
    [
        *(
            "Where is order 12? ",
            "word " * 20,
            '"usage":{"prompt_tokens":900}',
            "é",
            "\\u0070assword",
            "4111 1111 1111 1111",
        ),
        *(
            "pass" + "word=hunter2",
            "a@b.example",
            '{"data":"iVBORw0KGgo"}',
            "token",
            '"',
            "{",
            "}",
            "[",
            ":",
            "203.0.113.7",
        ),
    ]
)
TEXTS = st.lists(PIECES, max_size=6).map("".join)
VALUES = TEXTS | TEXTS.map(lambda text: json_text.encode({"a": text})) | st.integers() | st.floats() | st.booleans()
NAMES = st.sampled_from(["gen_ai.input.messages", "app.note", "spanreel.run.result", "api_" + "key", "server.address"])


def clean(attributes: dict[str, Any]) -> dict[str, Any]:
    return unchanged(attributes, Settings(), DEFAULT, None).attributes


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_nothing_that_is_left_as_it_is_would_have_been_changed(attributes: dict[str, Any]) -> None:
    known = clean(attributes)
    assert not redact_attributes(known).changed
    assert all(without_binary_text(value) is value for value in known.values() if isinstance(value, str))


UUIDS = st.text("0123456789" * 3 + "abcdef", min_size=32, max_size=32).map(lambda digits: str(UUID(digits)))
"""With more digits than there would be by chance, among which a telephone number may seem to be."""


@given(UUIDS | st.uuids().map(str))
def test_a_uuid_that_is_told_by_its_form_is_left_by_all_detectors(uuid: str) -> None:
    if is_own_id(uuid, DEFAULT):
        assert not redact_attributes({"gen_ai.conversation.id": uuid}).changed


@pytest.mark.parametrize("uuid", ["00636747-8629-5060-0848-85444194b645", "ba509cf4-2055-2e01-412b-66983ce24f29"])
def test_a_uuid_with_what_may_be_a_number_in_it_is_looked_at(uuid: str) -> None:
    assert not is_own_id(uuid, DEFAULT)


def test_most_uuids_are_told_by_their_form() -> None:
    assert sum(is_own_id(str(uuid4()), DEFAULT) for _ in range(500)) > 250


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_lists_of_messages_are_told_message_by_message_and_again(texts: list[str]) -> None:
    messages = json_text.encode_list([{"role": "user", "content": text} for text in texts])
    once = clean({"gen_ai.input.messages": messages})
    assert clean({"gen_ai.input.messages": messages}) == once
    assert not redact_attributes(once).changed


@pytest.mark.parametrize(
    "value",
    ["x" * 100, 'answer {"usage":{"prompt_tokens":900,"total_tokens_details":{}}}' * 3, 12, 0.5, True, ["stop"]],
)
def test_most_of_a_span_is_told_at_a_glance(value: Any) -> None:
    assert clean({"app.note": value}) == {"app.note": value}


@pytest.mark.parametrize("name", [f"{one}_tokens{rest}" for one in sorted(_COUNTS) for rest in ("", "_details")])
def test_names_of_counts_name_no_credential(name: str) -> None:
    assert not is_credential_name(name)
    assert DEFAULT.judge(name) is None


@pytest.mark.parametrize("value", ["pass" + "word=hunter2hunter", 10**15, float("nan"), "half \ud83d", ["a", "b"]])
def test_the_rest_takes_the_long_way(value: Any) -> None:
    assert clean({"app.note": value}) == {}


def test_a_policy_that_has_to_look_at_every_text_leaves_none_unlooked_at() -> None:
    policy = make_policy("own/1", [Rule(Form.MASK, "own", find=lambda text: [(0, 1)] if "zebra" in text else [])])
    said = {"app.note": "a zebra " * 20, "app.word": "zebra", "app.other": "lion"}
    known = unchanged(said, Settings(), policy, None).attributes
    assert "app.note" not in known
    assert "app.word" not in known
