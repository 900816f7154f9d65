"""What replay holds for equal: arguments of tools, and model requests."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Any

import pydantic
import pytest

from replaying import TOOL, asks, text, told
from spanreel.model import Operation, Request
from spanreel.replay.comparing.canonical import NOTHING, Difference, canonical, canonical_arguments, first_difference
from spanreel.replay.comparing.identity import identity


@dataclasses.dataclass
class Order:
    id: str
    amount: float


class Model(pydantic.BaseModel):
    id: str
    amount: float


def difference(recorded: Any, live: Any) -> Difference | None:
    return first_difference(canonical(recorded), canonical(live))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (2, 2.0),
        (0, -0.0),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ((1, 2), [1, 2]),
        ({3, 1, 2}, {2, 3, 1}),
        (Order("a", 10), {"id": "a", "amount": 10.0}),
        (Model(id="a", amount=10), Order("a", 10.0)),
        ({"caf\u00e9": 1}, {"cafe\u0301": 1}),
        (float("nan"), float("nan")),
        (b"bytes", bytearray(b"bytes")),
        (
            dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC),
            dt.datetime(2026, 1, 1, 13, tzinfo=dt.timezone(dt.timedelta(hours=1))),
        ),
    ],
)
def test_the_same_value_in_another_form_is_equal(one: Any, other: Any) -> None:
    assert difference(one, other) is None
    assert difference({"x": [one]}, {"x": [other]}) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (True, 1),
        (False, 0),
        ("a", "a "),
        ("A", "a"),
        ("2", 2),
        ("caf\u00e9", "cafe\u0301"),
        (["a", "b"], ["b", "a"]),
        (None, ""),
        (2.0**53, 2**53),
        (float("nan"), float("inf")),
        (b"bytes", b"other"),
        ({}, []),
    ],
)
def test_another_value_is_different(one: Any, other: Any) -> None:
    assert difference(one, other) is not None
    assert difference([one], [other]) is not None


def test_the_first_difference_is_named_with_both_values() -> None:
    recorded = {"a": [1, {"b/c": "x"}], "z": 1}
    live = {"a": [1, {"b/c": "y"}], "z": 2}
    assert difference(recorded, live) == Difference("/a/1/b~1c", "x", "y")


def test_what_one_side_lacks_is_told_from_null() -> None:
    assert difference({"a": None}, {}) == Difference("/a", None, NOTHING)
    assert difference({}, {"a": None}) == Difference("/a", NOTHING, None)
    assert difference([1], [1, 2]) == Difference("/1", NOTHING, 2)
    assert difference([1, 2], [1]) == Difference("/1", 2, NOTHING)


def test_what_a_thing_is_is_compared_before_what_it_holds() -> None:
    recorded = {"content": "x", "type": "text"}
    assert difference(recorded, {"content": "y", "type": "reasoning"}) == Difference("/type", "text", "reasoning")


# -- schemas ---------------------------------------------------------------------------------------------------------

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "limit": {"type": "integer", "default": 10.0},
        "cursor": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "note": {"type": "string"},
        "where": {"$ref": "#/$defs/Where"},
        "maybe": {"anyOf": [{"$ref": "#/$defs/Where"}, {"type": "null"}]},
        "many": {"type": "array", "items": {"$ref": "#/$defs/Where"}},
        "either": {"oneOf": [{"$ref": "#/$defs/Where"}, {"type": "object", "properties": {}}]},
        "lost": {"$ref": "#/$defs/Missing"},
        "odd": True,
        "all": {"allOf": [{"$ref": "#/$defs/Where"}]},
        "loose": {"anyOf": [True, {"type": "array", "items": {"$ref": "#/$defs/Where"}}]},
        "loop": {"$ref": "#/$defs/Loop"},
    },
    "$defs": {
        "Where": {"type": "object", "properties": {"city": {"default": "Rome"}, "in": {"$ref": "#/$defs/Where"}}}
    },
}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({}, {"limit": 10}),
        ({}, {"limit": 10.0, "cursor": None}),
        ({"where": {}}, {"where": {"city": "Rome"}, "limit": 10}),
        ({"maybe": {}}, {"maybe": {"city": "Rome"}}),
        ({"many": [{}, {"in": {}}]}, {"many": [{"city": "Rome"}, {"city": "Rome", "in": {"city": "Rome"}}]}),
        ({"all": {}, "loose": [{}]}, {"all": {"city": "Rome"}, "loose": [{"city": "Rome"}]}),
        ('{"limit": 10}', {}),
        (None, {}),
        ("", {}),
    ],
)
def test_defaults_of_the_schema_are_filled_on_both_sides(one: Any, other: Any) -> None:
    assert canonical_arguments(one, SCHEMA) == canonical_arguments(other, SCHEMA)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"note": None}, {}),
        ({"limit": 11}, {}),
        ({"limit": None}, {}),
        ({"either": {}}, {"either": {"city": "Rome"}}),
        ({"lost": {}}, {"lost": {"city": "Rome"}}),
        ({"odd": {}}, {}),
        ({"loop": {}}, {"loop": {"city": "Rome"}}),
        ({"where": "Rome"}, {}),
    ],
)
def test_what_is_no_default_stays_a_difference(one: Any, other: Any) -> None:
    assert canonical_arguments(one, SCHEMA) != canonical_arguments(other, SCHEMA)


def test_text_that_is_no_object_stays_text() -> None:
    assert canonical_arguments("[1]") == "[1]"
    assert canonical_arguments("{not json") == "{not json"


# -- model requests --------------------------------------------------------------------------------------------------


def request(*messages: dict[str, Any], **more: Any) -> Request:
    return Request(Operation.CHAT, "gpt-5", tuple(messages), **more)


def same(one: Request, other: Request) -> bool:
    return first_difference(identity(one), identity(other)) is None


def test_instructions_are_a_system_message_in_front() -> None:
    beside = request(text("user", "hi"), instructions=({"type": "text", "content": "be brief"},))
    assert same(beside, request(text("system", "be brief"), text("user", "hi")))
    assert not same(beside, request(text("system", "be long"), text("user", "hi")))


def test_several_system_texts_are_one_message_or_several() -> None:
    system = {"role": "system", "parts": [{"type": "text", "content": "a"}, {"type": "text", "content": "b"}]}
    assert same(request(system), request(text("system", "a"), text("system", "b")))


@pytest.mark.parametrize("name", ["user", "metadata", "store", "prompt_cache_key", "stream_options", "service_tier"])
def test_transport_is_no_identity(name: str) -> None:
    assert same(request(), request(provider_fields={name: "x"}))
    assert same(request(), request(settings={name: "x"}))
    assert same(request(stream=True), request())


def test_unknown_fields_are_identity() -> None:
    assert not same(request(), request(provider_fields={"verbosity": "low"}))
    assert not same(request(), request(settings={"temperature": 0.5}))
    assert same(request(settings={"temperature": None}), request())
    assert same(request(settings={"temperature": 1}), request(settings={"temperature": 1.0}))


def test_ids_of_tool_calls_are_their_places() -> None:
    def talk(first: str, second: str) -> Request:
        return request(
            text("user", "hi"),
            asks((first, "search", {"q": "a"}), (second, "search", {"q": "b"})),
            told(second, "B"),
            told(first, "A"),
        )

    assert same(talk("call_1", "call_2"), talk("x", "y"))
    swapped = request(*talk("call_1", "call_2").messages[:2], told("call_1", "B"), told("call_2", "A"))
    assert not same(talk("call_1", "call_2"), swapped)
    messages = identity(talk("call_1", "call_2"))["messages"]
    assert [part["id"] for part in messages[1]["parts"]] == ["#0.0", "#0.1"]
    assert messages[2]["parts"][0]["id"] == "#0.1"


def test_an_id_used_again_means_the_latest_call() -> None:
    talk = request(asks(("0", "a", {})), told("0", "x"), asks(("0", "b", {})), told("0", "y"))
    assert [message["parts"][0]["id"] for message in identity(talk)["messages"]] == ["#0.0", "#0.0", "#1.0", "#1.0"]


def test_answers_to_calls_that_were_cut_off_are_known_by_their_order() -> None:
    assert same(request(told("a", 1), told("b", 2)), request(told("c", 1), told("d", 2)))
    assert not same(request(told("a", 1), told("b", 2)), request(told("a", 1), told("a", 2)))


def test_generated_ids_and_the_forms_own_nulls_are_no_identity() -> None:
    part = {"type": "text", "content": "x", "provider_fields": {"id": "msg_123", "annotations": []}}
    other = {"type": "text", "content": "x", "provider_fields": {"id": "msg_456", "annotations": []}, "name": None}
    assert same(request({"role": "assistant", "parts": [part]}), request({"role": "assistant", "parts": [other]}))
    assert not same(
        request({"role": "user", "parts": [], "provider_fields": {"id": "customer-7"}}),
        request({"role": "user", "parts": []}),
    )
    assert same(request({"role": "user", "parts": [], "provider_fields": {}}), request({"role": "user", "parts": []}))


def test_how_something_stood_on_the_wire_is_no_identity() -> None:
    plain: dict[str, Any] = {"role": "assistant", "parts": []}
    marked = {**plain, "provider_fields": {"$absent": ["content"], "refusal": None}}
    assert same(request(plain), request(marked))
    assert same(request(), request(provider_fields={"$forms": {"max_tokens": 1}, "logit_bias": None}))


def test_why_an_earlier_message_ended_is_no_identity() -> None:
    assert same(request({**text("assistant", "x"), "finish_reason": "stop"}), request(text("assistant", "x")))


def test_arguments_are_compared_as_values_in_messages_too() -> None:
    assert same(request(asks(("1", "a", '{"x": 1}'))), request(asks(("1", "a", {"x": 1.0}))))


def test_tools_are_identity_in_their_order() -> None:
    other = {**TOOL, "name": "other"}
    assert not same(request(tools=(TOOL, other)), request(tools=(other, TOOL)))
    assert same(request(tools=({**TOOL, "provider_fields": {}},)), request(tools=(TOOL,)))
