"""The GenAI conventions in forms that few writers use: tools by name, memories that are written, wrappers of agents."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otlp_lines import agent, asks, called, chat, converted, only_run, request, said, session, span, told
from spanreel import conventions as names
from spanreel.model import Fidelity

HI, HO = said("user", "Hi"), said("assistant", "Ho")
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


def offered(tools: list[Any]) -> list[dict[str, Any]]:
    also = {names.TOOL_DEFINITIONS: json.dumps(tools)}
    return session(chat(1, [HI], HO, also=also), scope="demo").tools


def test_tools_that_are_only_named_are_names_and_known_to_lack_the_rest() -> None:
    one = session(chat(1, [HI], HO, also={names.TOOL_DEFINITIONS: json.dumps(["look", "cook"])}), scope="demo")
    assert [tool["name"] for tool in one.tools] == ["look", "cook"]
    (call,) = only_run(one).model_calls()
    assert call.fidelity["tools"] is Fidelity.TRUNCATED


def test_tools_that_are_texts_in_a_list_are_read() -> None:
    whole = {"type": "function", "name": "look", "parameters": SCHEMA}
    assert offered([json.dumps(whole)]) == [whole]


def test_parameters_without_the_schema_around_them_get_it() -> None:
    bare = {"type": "function", "name": "look", "parameters": SCHEMA["properties"]}
    assert offered([bare]) == [{**bare, "parameters": SCHEMA}]


@pytest.mark.parametrize(
    "parameters", [SCHEMA, {"properties": {"type": {"type": "string"}}}, {"type": "object"}, {"$ref": "#/$defs/City"}]
)
def test_a_schema_stays_as_it_is(parameters: dict[str, Any]) -> None:
    tool = {"type": "function", "name": "look", "parameters": parameters}
    assert offered([tool]) == [tool]


def test_what_is_written_to_a_memory_is_what_it_was_asked_with() -> None:
    records = [{"content": "Likes tea."}]
    told_of = {
        names.OPERATION: "create_memory",
        "gen_ai.memory.store.id": "facts",
        "gen_ai.memory.records": json.dumps(records),
    }
    one = session(agent(1, "clerk", seconds=9), span(2, "create_memory", told_of, 1), scope="demo")
    (call,) = only_run(one).tool_calls()
    assert (call.arguments, call.result) == ({"store_id": "facts", "records": records}, None)


def test_agents_in_one_turn_of_a_conversation_are_runs_inside_it() -> None:
    over = asks(called("transfer_to_cook", {}, "t1"))
    spans = [
        span(1, "handle_conversation_turn", {names.OPERATION: "handle_conversation_turn"}, seconds=60),
        agent(2, "clerk", 1, seconds=9),
        chat(3, [HI], over, 2),
        agent(20, "cook", 1, seconds=9),
        chat(21, [HI, over, told("t1", "the cook")], HO, 20),
    ]
    one = session(*spans, scope="demo")
    assert [(run.agent.name, run.parent is None) for run in one.runs] == [
        (None, True),
        ("clerk", False),
        ("cook", False),
    ]


def test_content_in_a_uri_is_content() -> None:
    picture = {"type": "uri", "modality": "image", "uri": "data:image/png;base64,aGk="}
    one = session(chat(1, [{"role": "user", "parts": [picture]}], HO), scope="demo")
    assert one.messages[0].parts == [{"type": "blob", "modality": "image", "mime_type": "image/png", "content": "aGk="}]


def test_openllmetrys_reranking_stands_beside_the_loop() -> None:
    told_of = {"llm.request.type": "rerank", "gen_ai.request.model": "rank", "gen_ai.prompt.0.role": "user"}
    document = request(agent(1, "clerk", seconds=9), span(2, "cohere.rerank", told_of, 1))
    document["resourceSpans"][0]["scopeSpans"][0]["scope"] = {
        "name": "opentelemetry.instrumentation.cohere",
        "version": "0.62.4",
    }
    (one,) = converted(document).sessions
    assert [call.operation for call in only_run(one).side_calls] == ["rerank"]
