"""Calls of tools that recorders name by the Responses API's items, while the tools' answers name the calls."""

from __future__ import annotations

from typing import Any

from otlp_lines import GENAI, agent, asks, called, chat, said, session, told, tool
from spanreel.session import Session

HI, HO = said("user", "Weather in Rome and in Oslo?"), said("assistant", "Sun, rain.")
ROME, OSLO = ("look", {"city": "Rome"}), ("look", {"city": "Oslo"})


def ids(one: Session) -> dict[str, list[Any]]:
    """What calls are named by: in answers and histories, in tools' answers, and on the calls themselves."""
    parts = [part for message in one.messages for part in message.parts]
    return {
        "asked": [part["id"] for part in parts if part["type"] == "tool_call"],
        "answered": [part["id"] for part in parts if part["type"] == "tool_call_response"],
        "called": [call.call_id for run in one.runs for call in run.tool_calls()],
    }


def test_items_in_a_history_have_the_ids_by_which_their_answers_name_the_calls() -> None:
    """As OpenLLMetry records the OpenAI Agents SDK."""
    history = [
        HI,
        asks(called(*ROME, "fc_1")),
        asks(called(*OSLO, "fc_2")),
        told("call_1", "sun"),
        told("call_2", "rain"),
    ]
    one = session(
        agent(1, "clerk", seconds=9),
        chat(2, [HI], asks(called(*ROME, "call_1"), called(*OSLO, "call_2")), 1),
        chat(3, history, HO, 1),
        scope=GENAI,
    )
    assert ids(one) == {
        "asked": ["call_1", "call_2", "call_1", "call_2"],
        "answered": ["call_1", "call_2"],
        "called": ["call_1", "call_2"],
    }


def test_items_in_answers_are_known_by_the_next_requests_of_other_traces_too() -> None:
    """As OpenLLMetry records the Responses API by itself: each call a trace."""
    one = session(
        chat(1, [HI], asks(called(*ROME, "fc_1"))),
        chat(2, [HI, asks(called(*ROME, "fc_1")), told("call_1", "sun")], HO, trace="b" * 32),
        scope=GENAI,
    )
    assert ids(one) == {"asked": ["call_1"], "answered": ["call_1"], "called": ["call_1"]}


def test_an_item_is_known_by_the_span_of_its_tool_and_by_what_alone_is_answered_next() -> None:
    first = chat(2, [HI], asks(called(*ROME, "fc_1")), 1)
    look = tool(3, *ROME, "sun", 1, also={"gen_ai.tool.call.id": "call_1"})
    by_span = session(agent(1, "clerk", seconds=9), first, look, scope=GENAI)
    assert ids(by_span) == {"asked": ["call_1"], "answered": [], "called": ["call_1"]}
    alone = chat(3, [told("call_1", "sun")], HO, 1)
    assert ids(session(agent(1, "clerk", seconds=9), first, alone, scope=GENAI))["asked"] == ["call_1"]


def test_an_item_that_may_be_of_several_calls_keeps_its_id() -> None:
    def one(*answers: dict[str, Any]) -> Session:
        history = [HI, asks(called(*ROME, "fc_1")), *answers]
        return session(agent(1, "clerk", seconds=9), chat(2, history, HO, 1), scope=GENAI)

    assert ids(one(told("call_1", "sun"), told("call_2", "rain")))["asked"] == ["fc_1"]
    assert ids(one(told("fc_1", "sun")))["asked"] == ["fc_1"]
    twice = [HI, *(one for number in (1, 2) for one in (asks(called(*ROME, "fc_1")), told(f"call_{number}", "sun")))]
    assert ids(session(agent(1, "clerk"), chat(2, twice, HO, 1), scope=GENAI))["asked"] == ["fc_1"]
