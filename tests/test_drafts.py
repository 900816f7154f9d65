"""Which calls belong to which run, where no agent stands around them."""

from __future__ import annotations

from typing import Any

from otlp_lines import GENAI, agent, asks, called, chat, said, session, span, span_id, told, tool
from spanreel import conventions as names


def test_a_run_inside_a_tool_call_hangs_there_though_no_agent_is_around_the_call() -> None:
    one = session(
        chat(1, [said("user", "Hi")], None),
        tool(2, "ask", {}, "yes", seconds=9),
        agent(3, "cook", 2, seconds=5),
        chat(4, [said("user", "?")], said("assistant", "yes"), 3),
        scope=GENAI,
    )
    outer, cook = one.runs
    (ask,) = outer.tool_calls()
    assert (outer.implicit, ask.run, cook.parent and cook.parent.tool_call) == (True, cook.id, ask.id)
    assert one.roots() == [outer]


HI, HO = said("user", "Hi"), said("assistant", "Ho")
LOOK = asks(called("look", {"city": "Rome"}, "t1"))


def handler(number: int) -> dict[str, Any]:
    return span(number, "handle_request", {}, seconds=8)


def test_an_id_of_an_answer_is_none_of_a_conversation() -> None:
    names_of = {names.CONVERSATION_ID: "chatcmpl-1"}
    one = session(
        agent(1, "clerk", seconds=9),
        chat(2, [HI], LOOK, 1, also={names.RESPONSE_ID: "chatcmpl-1"}),
        chat(3, [HI, LOOK, told("t1", "25")], HO, 1, also={names.RESPONSE_ID: "chatcmpl-2", **names_of}),
        scope=GENAI,
    )
    assert one.key.kind == "trace"


def test_new_words_of_the_users_after_an_answer_are_the_next_request_of_a_trace() -> None:
    asked = [HI, HO, said("user", "And in Rome?")]
    one = session(
        handler(1),
        chat(2, [HI], HO, 1),
        chat(3, asked, LOOK, 1),
        tool(4, "look", {"city": "Rome"}, "25", 1),
        chat(5, [*asked, LOOK, told("t1", "25")], said("assistant", "Warm."), 1),
        scope=GENAI,
    )
    assert [len(run.turns) for run in one.runs] == [1, 2]
    assert [call.name for call in one.runs[1].tool_calls()] == ["look"]
    assert [one.messages[index].parts for run in one.runs for index in run.output] == [
        HO["parts"],
        said("assistant", "Warm.")["parts"],
    ]


def test_a_trace_with_two_roots_is_of_two_requests() -> None:
    one = session(handler(1), chat(2, [HI], HO, 1), handler(11), chat(12, [HI], HO, 11), scope=GENAI)
    assert [run.id for run in one.runs] == [span_id(1), span_id(11)]


def test_calls_that_do_not_go_on_from_each_other_are_one_request_where_one_span_holds_them() -> None:
    one = session(
        handler(1), chat(2, [said("user", "Sum up.")], HO, 1), chat(3, [said("user", "Translate.")], HO, 1), scope=GENAI
    )
    assert [len(run.turns) for run in one.runs] == [2]


def test_an_answer_of_which_a_tool_is_part_is_no_end_of_a_request() -> None:
    asked = [HI, LOOK, told("t1", "25"), said("user", "Be quick.")]
    one = session(handler(1), chat(2, [HI], LOOK, 1), chat(3, asked, HO, 1), scope=GENAI)
    assert [len(run.turns) for run in one.runs] == [2]
