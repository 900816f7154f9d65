"""What a request and a recording of others are compared by: what both can say, and which differences that forgives."""

from __future__ import annotations

from typing import Any

import pytest

from spanreel.replay.comparing.canonical import first_difference
from spanreel.replay.comparing.leniencies import leniencies, outcome_leniencies
from spanreel.replay.comparing.sharing import shared_fields, shared_messages, shared_outcome


def text(role: str, content: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": content}], **more}


def called(id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_call", "id": id, "name": name, "arguments": arguments}


def told(id: str, response: Any, **more: Any) -> dict[str, Any]:
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": id, "response": response, **more}]}


def asking(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "parts": list(parts)}


def request(**changed: Any) -> dict[str, Any]:
    return {
        "model": "gpt-5",
        "messages": [text("user", "hi")],
        "tools": [{"type": "function", "name": "f", "description": "F.", "parameters": {"type": "object"}}],
        "settings": {"temperature": 0.3},
        "provider_fields": {"x": 1},
        "operation": "chat",
        **changed,
    }


def difference(recorded: dict[str, Any], asked: dict[str, Any]) -> tuple[str | None, list[str]]:
    """Where both first differ in what they share, and what was left out."""
    uncompared: list[str] = []
    one, other = shared_fields(recorded, asked, uncompared)
    found = next((at for name in one if (at := first_difference(one[name], other[name], f"/{name}"))), None)
    return found.pointer if found is not None else None, uncompared


def same(recorded: list[dict[str, Any]], asked: list[dict[str, Any]]) -> bool:
    one, other = shared_messages(recorded, asked)
    return one == other


@pytest.mark.parametrize(
    ("recorded", "live"),
    [
        (
            [text("user", "a"), text("user", "b")],
            [{**text("user", "a"), "parts": [*text("user", "a")["parts"], *text("user", "b")["parts"]]}],
        ),
        (
            [asking(called("#0.0", "f"), *text("", "x")["parts"])],
            [asking(*text("", "x")["parts"], called("#0.0", "f"))],
        ),
        ([text("user", "a", name="ann")], [text("user", "a")]),
        ([asking({"type": "tool_call", "id": "#0.0", "name": "f"})], [asking(called("#0.0", "f"))]),
        ([told("#0.0", {"a": 1})], [told("#0.0", '{"a": 1}')]),
        ([told("#0.0", "x", name="f")], [told("#0.0", "x")]),
        (
            [asking(called("#0.0", "f")), asking(called("#1.0", "g")), told("#0.0", 1), told("#1.0", 2)],
            [asking(called("#0.0", "f"), called("#0.1", "g")), told("#0.0", 1), told("#0.1", 2)],
        ),
    ],
    ids=["split", "part_order", "one_sided_name", "no_arguments", "read_json", "name_of_a_result", "numbers"],
)
def test_conventions_of_recorders_make_no_difference(recorded: list[Any], live: list[Any]) -> None:
    assert same(recorded, live)
    assert same(live, recorded)


@pytest.mark.parametrize(
    ("recorded", "live"),
    [
        ([text("user", "a")], [text("user", "b")]),
        ([text("user", "a"), text("assistant", "b")], [text("user", "a")]),
        ([text("user", "a")], [text("system", "a")]),
        ([text("user", "a", name="ann")], [text("user", "a", name="bob")]),
        ([asking(called("#0.0", "f"))], [asking(called("#0.0", "g"))]),
        ([asking(called("#0.0", "f", x=1))], [asking(called("#0.0", "f", x=2))]),
        ([asking(called("#0.0", "f"), called("#0.1", "f"))], [asking(called("#0.0", "f"))]),
        ([told("#0.0", {"a": 1})], [told("#0.0", {"a": 2})]),
        ([told("#0.0", "1")], [told("#0.0", 1)]),
        ([told("#0.0", "x", name="f")], [told("#0.0", "x", name="g")]),
        (
            [asking(called("#0.0", "f"), called("#0.1", "f")), told("#0.0", 1), told("#0.1", 2)],
            [asking(called("#0.0", "f"), called("#0.1", "f")), told("#0.1", 1), told("#0.0", 2)],
        ),
    ],
    ids=["text", "shorter", "role", "names", "tool", "arguments", "calls", "result", "kind", "tool_name", "exchanged"],
)
def test_what_was_said_does(recorded: list[Any], live: list[Any]) -> None:
    assert not same(recorded, live)
    assert not same(live, recorded)


def test_the_providers_own_fields_and_settings_that_are_not_recorded_are_left_out_and_told() -> None:
    pointer, uncompared = difference(
        request(), request(settings={"temperature": 0.3, "seed": 1}, provider_fields={"y": 2})
    )
    assert pointer is None
    assert uncompared == ["provider_fields", "settings/seed"]


def test_a_setting_that_is_recorded_and_not_asked_for_differs_unless_it_is_a_default() -> None:
    assert difference(request(), request(settings={}))[0] == "/settings/temperature"
    assert difference(request(settings={"top_p": 1}), request(settings={}))[0] is None
    assert difference(request(), request(settings={"temperature": 0.4}))[0] == "/settings/temperature"


def test_a_field_that_is_not_recorded_at_all_is_left_out_and_told() -> None:
    pointer, uncompared = difference(request(model=None, tools=[]), request())
    assert pointer is None
    assert uncompared == ["provider_fields", "model", "tools"]
    assert difference(request(), request(model="gpt-4"))[0] == "/model"


def test_tools_are_compared_by_what_both_sides_have_of_them() -> None:
    named: list[Any] = [{"type": "function", "name": "f"}]
    pointer, uncompared = difference(request(tools=named), request())
    assert pointer is None
    assert uncompared == ["provider_fields", "tools/description", "tools/parameters"]
    assert difference(request(tools=[{"type": "function", "name": "g"}]), request())[0] == "/tools/0/name"
    assert difference(request(tools=[*named, {"type": "function", "name": "g"}]), request())[0] == "/tools/1"


def test_of_an_outcome_some_keep_all_that_was_said_and_others_the_last_of_it() -> None:
    whole: Any = [text("user", "a"), text("assistant", "b")]
    one, other = shared_outcome(whole, whole[1:])
    assert one == other
    one, other = shared_outcome(whole, [text("assistant", "c")])
    assert one != other


CALL = called("#0.0", "f", a=1)
BARE = {key: value for key, value in CALL.items() if key != "arguments"}


@pytest.mark.parametrize(
    ("recorded", "live", "said"),
    [
        ({}, {}, ()),
        ({"messages": [text("user", "a")]}, {"messages": [text("user", "a", name="Ann")]}, ("who is named",)),
        (
            {"messages": [asking(CALL), asking({"type": "text", "content": "x"})]},
            {"messages": [asking({"type": "text", "content": "x"}, CALL)]},
            ("where messages of one speaker end", "whether a text or its tool calls come first"),
        ),
        ({"messages": [asking(BARE)]}, {"messages": [asking({**BARE, "arguments": {}})]}, ("empty arguments",)),
        (
            {"messages": [asking(CALL), told("#0.0", {"a": 1})]},
            {"messages": [asking(CALL), told("#0.0", '{"a": 1}')]},
            ("a result in JSON",),
        ),
        (
            {"settings": {"temperature": 1, "tool_choice": "auto"}},
            {"settings": {}},
            ("settings that are the provider's defaults",),
        ),
    ],
)
def test_what_was_forgiven_is_told_and_nothing_else(
    recorded: dict[str, Any], live: dict[str, Any], said: tuple[str, ...]
) -> None:
    one, other = shared_fields(request(**recorded), request(**live), [])
    assert first_difference(one, other) is None
    found = leniencies(request(**recorded), request(**live))
    assert len(found) == len(said)
    assert all(name.startswith(start) for name, start in zip(found, said, strict=True))


def test_an_outcome_of_which_one_side_has_the_last_message_only_is_told() -> None:
    whole = [text("user", "a"), text("assistant", "b")]
    assert outcome_leniencies(whole, whole[1:]) == ("all that a run said and its last message",)
    assert outcome_leniencies(whole, whole) == ()
