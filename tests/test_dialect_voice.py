"""Dialects of frameworks for agents that are spoken with: LiveKit Agents and Pipecat."""

from __future__ import annotations

import json
from typing import Any

from otlp_lines import attribute_list, only_run, session, sessions, span
from spanreel.model import Status
from spanreel.session import Session

LIVEKIT, PIPECAT = "livekit-agents", "pipecat"
METRICS = {"request_id": "c-1", "prompt_cached_tokens": 3}
CALL = {"id": "t1", "type": "function", "function": {"name": "look", "arguments": '{"city": "Rome"}'}}


def event(name: str, **attributes: Any) -> dict[str, Any]:
    return {"name": name, "timeUnixNano": "1", "attributes": attribute_list(attributes)}


def texts(one: Session, indexes: list[int]) -> list[tuple[str, Any]]:
    parts = [(one.messages[index].role, one.messages[index].parts[0]) for index in indexes]
    return [(role, part.get("content", part.get("response", part.get("name")))) for role, part in parts]


def pipecat(number: int, asked: list[dict[str, Any]], said: str | None = None) -> dict[str, Any]:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "small",
        "gen_ai.request.top_k": "NOT_GIVEN",
        "gen_ai.request.temperature": 0.2,
        "gen_ai.system_instructions": "Be brief.",
        "stream": True,
        "input": json.dumps([{"role": "system", "content": "Be brief."}, *asked]),
        "tools": json.dumps([{"type": "function", "function": {"name": "look", "parameters": {}}}]),
        "gen_ai.usage.output_tokens": 3,
    }
    return span(number, "llm", {**attributes, **({"output": said} if said else {})}, 9, seconds=1)


# -- LiveKit ---------------------------------------------------------------------------------------------------------


def test_livekits_calls_before_the_conventions_have_their_calls_of_tools_as_texts_of_json() -> None:
    model = {"gen_ai.request.model": "small", "lk.llm_metrics": json.dumps(METRICS), "gen_ai.usage.input_tokens": 7}
    asked = [event("gen_ai.user.message", content="Hi"), event("gen_ai.choice", tool_calls=[json.dumps(CALL)])]
    tool = {
        "lk.function_tool.name": "look",
        "lk.function_tool.arguments": '{"city": "Rome"}',
        "lk.function_tool.output": "25",
        "lk.function_tool.is_error": False,
    }
    one = session(
        span(1, "agent_session", {"lk.agent_label": "Clerk"}, seconds=9),
        span(2, "llm_request", model, 1, events=asked),
        span(3, "function_tool", tool, 1),
        scope=LIVEKIT,
    )
    (call,) = only_run(one).model_calls()
    (ran,) = only_run(one).tool_calls()
    assert (call.response_id, call.streamed, call.usage and call.usage.cache_read_tokens) == ("c-1", True, 3)
    assert (texts(one, call.input), texts(one, call.output)) == ([("user", "Hi")], [("assistant", "look")])
    assert (ran.name, ran.arguments, ran.result, ran.call_id) == ("look", {"city": "Rome"}, "25", "t1")


def test_each_turn_of_livekits_agent_is_a_run_of_its_own_whatever_room_it_is_in() -> None:
    room = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "agent_session"}
    turn = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "clerk"}
    words = {"lk.pii.user_input": "Hi", "lk.pii.response.text": "Ho"}
    spans = [span(number, "agent_turn", {**turn, **words}, 1, seconds=2) for number in (2, 3)]
    (one,) = sessions(span(1, "agent_session", room, seconds=9), *spans, scope=LIVEKIT)
    assert [(run.agent.name, run.parent) for run in one.runs] == [("clerk", None)] * 2
    assert [(texts(one, run.input), texts(one, run.output)) for run in one.runs] == [
        ([("user", "Hi")], [("assistant", "Ho")])
    ] * 2


def test_a_tool_of_livekits_that_failed_has_what_the_model_was_told_as_its_error() -> None:
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "lk.pii.function_tool.output": "no such city",
        "lk.function_tool.is_error": True,
        "error.type": "tool_error",
    }
    turn = span(1, "agent_turn", {"gen_ai.operation.name": "invoke_agent"}, seconds=9)
    (ran,) = only_run(session(turn, span(2, "function_tool", tool, 1), scope=LIVEKIT)).tool_calls()
    assert (ran.status, ran.error and ran.error.message) == (Status.ERROR, "no such city")


# -- Pipecat ---------------------------------------------------------------------------------------------------------


def test_what_pipecat_writes_under_names_of_its_own_is_read() -> None:
    one = session(pipecat(1, [{"role": "user", "content": "Hi"}], "Ho"), scope=PIPECAT)
    (call,) = only_run(one).model_calls()
    assert texts(one, call.input) == [("system", "Be brief."), ("user", "Hi")]
    assert texts(one, call.output) == [("assistant", "Ho")]
    assert ([tool["name"] for tool in one.tools], call.streamed) == (["look"], True)
    assert call.settings == {"temperature": 0.2}


def test_calls_of_one_answer_that_the_next_request_alone_tells_may_each_be_a_message_there() -> None:
    asked = [{"role": "user", "content": "Hi"}]
    answers = [
        message
        for name in ("t1", "t2")
        for message in (
            {"role": "assistant", "tool_calls": [{**CALL, "id": name}]},
            {"role": "tool", "tool_call_id": name, "content": f'"{name}"'},
        )
    ]
    one = session(pipecat(1, asked), pipecat(2, [*asked, *answers], "Ho"), scope=PIPECAT)
    first, _ = only_run(one).model_calls()
    assert [part["id"] for index in first.output for part in one.messages[index].parts] == ["t1", "t2"]
    assert [(call.call_id, call.result) for call in only_run(one).tool_calls()] == [("t1", "t1"), ("t2", "t2")]
