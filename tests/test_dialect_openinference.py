"""OpenInference: spans as its instrumentations of Python and JavaScript, and people by hand, write them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import cases
from dialect_cases import wrong_fields
from otlp_lines import (
    Span,
    agent,
    asks,
    called,
    chat,
    converted,
    only_run,
    request,
    said,
    session,
    sessions,
    span,
    told,
)
from spanreel import conventions as names
from spanreel.model import Fidelity, Status, ToolKind
from spanreel.session import ModelCall, Session, ToolCall
from spanreel.session_files import write_session
from spanreel_collector.conversion.convert import convert_files

GOLDEN = Path(__file__).parent / "golden"
OPENAI = "openinference.instrumentation.openai"
ANTHROPIC = "openinference.instrumentation.anthropic"
LANGCHAIN = "openinference.instrumentation.langchain"
BY_HAND = "demo"
KIND = "openinference.span.kind"
ORDER = called("order", {"dish": "soup"}, "call_1")
DEFINITION = {"name": "order", "description": "Order a dish.", "parameters": {"type": "object"}}


def oi(number: int, kind: str, attributes: dict[str, Any], parent: int | None = None, **rest: Any) -> Span:
    return span(number, rest.pop("name", kind.lower()), {KIND: kind, **attributes}, parent, **rest)


def indexed(prefix: str, *messages: dict[str, Any]) -> dict[str, Any]:
    """Messages of texts and tool calls as indexed attributes."""
    found: dict[str, Any] = {}
    for number, message in enumerate(messages):
        place = f"{prefix}.{number}.message"
        found[f"{place}.role"] = message["role"]
        for index, part in enumerate(part for part in message["parts"] if part["type"] == "tool_call"):
            call = f"{place}.tool_calls.{index}.tool_call"
            found[f"{call}.id"] = part["id"]
            found[f"{call}.function.name"] = part["name"]
            found[f"{call}.function.arguments"] = json.dumps(part["arguments"])
        for part in message["parts"]:
            if part["type"] == "text":
                found[f"{place}.content"] = part["content"]
            elif part["type"] == "tool_call_response":
                found |= {f"{place}.content": part["response"], f"{place}.tool_call_id": part["id"]}
    return found


def llm(number: int, messages: Any, answer: Any, parent: int | None = None, **rest: Any) -> Span:
    """A model call with indexed messages."""
    also = rest.pop("also", {})
    attributes = {"llm.model_name": "gpt-5", **indexed("llm.input_messages", *messages)}
    if answer is not None:
        attributes |= {"llm.token_count.prompt": 10, **indexed("llm.output_messages", answer)}
    return oi(number, "LLM", {**attributes, **also}, parent, **rest)


def tool(number: int, arguments: Any, result: Any, parent: int | None = None, **rest: Any) -> Span:
    also = rest.pop("also", {})
    values = {"input.value": arguments, "output.value": result}
    attributes = {key: value if isinstance(value, str) else json.dumps(value) for key, value in values.items()}
    return oi(number, "TOOL", {"tool.name": "order", **attributes, **also}, parent, **rest)


def only_model_call(*spans: Span, scope: str = BY_HAND) -> ModelCall:
    (call,) = only_run(session(*spans, scope=scope)).model_calls()
    return call


def asked(one: Session, call: ModelCall) -> list[Any]:
    """The messages that a call was asked with, without what is kept beside them."""
    table = [message.model_dump(exclude_none=True, exclude_defaults=True) for message in one.messages]
    return [table[number] for number in call.input]


def read_parts(contents: dict[str, Any]) -> list[Any]:
    """What is read of an answer with these members of a message."""
    attributes = {f"llm.output_messages.0.message.{key}": value for key, value in contents.items()}
    one = session(oi(1, "LLM", {"llm.output_messages.0.message.role": "assistant", **attributes}), scope=BY_HAND)
    return [dict(part) for part in json.loads(write_session(one))["messages"][-1]["parts"]]


def only_tool_call(*spans: Span, scope: str = BY_HAND) -> ToolCall:
    (call,) = only_run(session(*spans, scope=scope)).tool_calls()
    return call


# -- whole sessions --------------------------------------------------------------------------------------------------


def test_an_agent_with_tools_on_the_openai_sdk_comes_out_as_agreed() -> None:
    """`tests/golden/openinference_dump.py` makes the dump; `SPANREEL_GOLDEN=write` writes the session anew."""
    (one,) = convert_files([str(GOLDEN / "openinference.otlp.jsonl")]).sessions
    document = GOLDEN / "openinference.session.json"
    if os.environ.get("SPANREEL_GOLDEN") == "write":
        document.write_text(json.dumps(json.loads(write_session(one)), indent=2) + "\n", encoding="utf-8")
    assert json.loads(write_session(one)) == json.loads(document.read_text(encoding="utf-8"))
    assert one.replay is not None
    assert one.replay.eligible


# What these dumps do not hold, or hold in cut reprs.
LOST = {
    "oi-openai-chat-attrcount-limit": "temperature",
}


def test_real_dumps_of_openinference_come_out_as_their_truth_says() -> None:
    assert wrong_fields("oi-*") == LOST


NAMES = st.sampled_from(
    [
        *("llm.input_messages", "llm.output_messages.0.message", "llm.tools.0.tool.json_schema", "input.value"),
        *("llm.output_messages.0.message.content", "llm.output_messages.0.message.tool_calls.0.tool_call", "metadata"),
        *("llm.output_messages.0.message.contents.0.message_content.image", "output.value", "llm.token_count.prompt"),
        *("llm.invocation_parameters", "tool.parameters", "embedding.embeddings.0.embedding", "session.id", "tag.tags"),
        *("llm.output_messages.0.message.contents", "retrieval.documents.0.document.metadata", "llm.finish_reason"),
    ]
)
ENDS = st.sampled_from(
    ["", ".0", ".0.message", ".1.message.role", ".type", ".image.url", ".id", ".function.name", ".x"]
)
BODIES = [
    *('{"messages": [1, {"role": 2}, {"role": "tool", "content": [[]]}]}', '[{"type": "tool", "data": 3}]', "[1, ["),
    *(
        '{"replies": ["ChatMessage(_role=1)", "ChatMessage(_content=[f()]"]}',
        "ToolCall(a=<x>)",
        '{"lc": 1, "kwargs": 2}',
    ),
    *('{"generations": [[3]]}', '{"contents": [{"parts": [1, {"function_call": {}}]}]}', '{"output": {"content": []}}'),
    *('{"raw": "ChatCompletion(choices=3)", "role": "assistant"}', "{'a': (1,)}", '{"kwargs": {}}', "__REDACTED__", ""),
]
VALUES = st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(BODIES) | st.lists(st.text())


@given(
    kind=st.sampled_from(["LLM", "TOOL", "AGENT", "CHAIN", "RETRIEVER", "EMBEDDING", "RERANKER", "llm", "?"]),
    attributes=st.dictionaries(st.tuples(NAMES, ENDS).map("".join), VALUES),
    scope=st.sampled_from([OPENAI, ANTHROPIC, LANGCHAIN, BY_HAND]),
)
def test_whatever_stands_in_the_attributes_is_read_without_a_fault(
    kind: str, attributes: dict[str, Any], scope: str
) -> None:
    spans = (oi(1, "AGENT", {}), oi(2, kind, attributes, 1), oi(3, kind, attributes))
    assert converted(request(*spans, scope=scope)).faults == ()


# -- messages --------------------------------------------------------------------------------------------------------


def test_indexed_messages_are_the_conversation_and_tools_join_their_requests() -> None:
    begun = [said("system", "Be brief."), said("user", "Soup, please.")]
    one = session(
        oi(1, "AGENT", {"agent.name": "waiter"}, seconds=9),
        llm(2, begun, asks(ORDER), 1),
        tool(3, {"dish": "soup"}, "ordered", 1),
        llm(4, [*begun, asks(ORDER), told("call_1", "ordered")], said("assistant", "It comes."), 1),
        scope=BY_HAND,
    )
    run = only_run(one)
    first, second = run.model_calls()
    assert (run.agent.name, [len(turn.tool_calls) for turn in run.turns]) == ("waiter", [1, 0])
    assert run.turns[0].tool_calls[0].call_id == "call_1"
    assert [message["role"] for message in asked(one, second)] == ["system", "user", "assistant", "tool"]
    assert (first.model, first.fidelity) == ("gpt-5", {})


def test_attributes_without_a_value_are_not_there_and_holes_are_closed() -> None:
    holes = {
        "llm.input_messages.3.message.role": "user",
        "llm.input_messages.3.message.content": "Soup?",
        "llm.input_messages.3.message.tool_calls.0.tool_call.id": None,
        "llm.input_messages.3.message.tool_calls.0.tool_call.function.name": None,
        "llm.input_messages.10.message.role": "user",
        "llm.input_messages.10.message.contents.0.message_content.type": "text",
        "llm.input_messages.10.message.contents.0.message_content.text": "Now!",
        "llm.input_messages.10.message.contents.0.message_content.image": None,
    }
    one = session(llm(1, [], said("assistant", "Yes."), also=holes), scope=BY_HAND)
    (call,) = only_run(one).model_calls()
    assert asked(one, call) == [said("user", "Soup?"), said("user", "Now!")]


def test_dropped_attributes_leave_what_came_last_and_say_so() -> None:
    left = {
        "llm.input_messages.1.message.content": "Soup?",
        "llm.input_messages.2.message.tool_calls.0.tool_call.id": "call_1",
        "llm.input_messages.2.message.tool_calls.0.tool_call.function.name": "order",
    }
    one = session(llm(1, [], said("assistant", "Yes."), also=left, droppedAttributesCount=9), scope=BY_HAND)
    (call,) = only_run(one).model_calls()
    truncated = dict.fromkeys(("input", "tools", "settings"), Fidelity.TRUNCATED)
    assert ([message["role"] for message in asked(one, call)], call.fidelity) == (["user", "assistant"], truncated)


def test_contents_are_parts_and_a_tool_use_that_is_said_twice_is_one() -> None:
    block = "contents.{}.message_content."
    function = {"tool_call.id": "t1", "tool_call.function.name": "order", "tool_call.function.arguments": "{}"}
    assert read_parts(
        {
            block.format(0) + "type": "reasoning",
            block.format(0) + "text": "Hm.",
            block.format(0) + "signature": "c2ln",
            block.format(1) + "type": "text",
            block.format(1) + "text": "I order.",
            block.format(2) + "type": "image",
            block.format(2) + "image.image.url": "data:image/png;base64,aGk=",
            block.format(3) + "type": "tool_use",
            **{f"contents.3.{key}": value for key, value in function.items()},
            **{f"tool_calls.0.{key}": value for key, value in function.items()},
        }
    ) == [
        {"type": "reasoning", "content": "Hm.", "provider_fields": {"signature": "c2ln"}},
        {"type": "text", "content": "I order."},
        {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "aGk="},
        {"type": "tool_call", "id": "t1", "name": "order", "arguments": {}},
    ]


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        ({"content": "Twice.", "contents.0.message_content.text": "Twice."}, [{"type": "text", "content": "Twice."}]),
        ({"content.0": "One.", "content.1": "Two."}, said("", "One.")["parts"] + said("", "Two.")["parts"]),
        ({"content": ["A list."]}, said("", "A list.")["parts"]),
        ({"function_call_name": "order", "function_call_arguments_json": "{}"}, [called("order", {})]),
        (
            {
                "tool_calls.0.tool_call.function.name": "order",
                "tool_calls.0.tool_call.function.arguments": r'"{\"a\": 1}"',
            },
            [called("order", {"a": 1})],
        ),
        (
            {"contents.0.message_content.audio.url": "https://a.test/x.mp3"},
            [{"type": "uri", "modality": "audio", "uri": "https://a.test/x.mp3"}],
        ),
        ({"contents.0.message_content.audio.transcript": "Hm."}, [{"type": "text", "content": "Hm."}]),
        (
            {"contents.0.message_content.type": "odd", "contents.0.message_content.data": "x"},
            [{"type": "odd", "data": "x"}],
        ),
    ],
)
def test_older_and_odder_forms_of_content_are_read(contents: dict[str, Any], expected: list[Any]) -> None:
    def whole(part: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in part.items() if value is not None}

    assert [whole(part) for part in read_parts(contents)] == [whole(part) for part in expected]


def test_roles_are_those_of_the_conventions_and_the_writers_own_are_kept() -> None:
    one = session(
        llm(1, [said("developer", "Be brief."), said("tool-call", "I call.")], said("model", "Yes.")), scope="x"
    )
    roles = [(message.role, message.provider_fields.get("role")) for message in one.messages]
    assert roles == [("system", "developer"), ("assistant", "tool-call"), ("assistant", "model")]


def test_completions_have_prompts_and_choices() -> None:
    attributes = {"llm.prompts.0.prompt.text": "Once", "llm.choices.0.completion.text": " upon"}
    one = session(oi(1, "LLM", attributes), scope=BY_HAND)
    assert [(message.role, message.parts[0]["content"]) for message in one.messages] == [
        ("user", "Once"),
        ("assistant", " upon"),
    ]
    (call,) = only_run(one).model_calls()
    assert call.fidelity == {}


# -- whole requests and answers --------------------------------------------------------------------------------------


def test_a_request_kept_as_it_was_sent_is_read_by_its_protocol_images_and_all() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    body = {"model": "gpt-5", "temperature": 0, "tools": [{"type": "function", "function": DEFINITION}], "stream": True}
    body |= {"messages": [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]}]}
    spoken = llm(1, [said("user", "What is it?")], said("assistant", "A cat."), also={"input.value": json.dumps(body)})
    one = session(spoken, scope=OPENAI)
    (call,) = only_run(one).model_calls()
    assert [part["type"] for part in asked(one, call)[0]["parts"]] == ["text", "blob"]
    assert (call.settings, call.streamed, one.tools[0]["name"]) == ({"temperature": 0}, True, "order")


def test_an_answer_kept_as_it_came_tells_its_id_and_why_it_ended() -> None:
    body: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude"}
    body |= {
        "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "Yes."}],
        "usage": {"input_tokens": 1, "output_tokens": 2},
    }
    spoken = llm(1, [said("user", "Soup?")], said("assistant", "Yes."), also={"output.value": json.dumps(body)})
    call = only_model_call(spoken, scope=ANTHROPIC)
    assert (call.response_id, call.response_model, call.finish_reasons) == ("msg_1", "claude", ["stop"])
    assert call.usage is not None
    assert (call.usage.input_tokens, call.usage.output_tokens) == (10, 2)


def test_what_langchain_says_beside_a_message_is_who_answered_and_why() -> None:
    info = {"finish_reason": "stop", "model_name": "gpt-5-late"}
    body = {"generations": [[{"text": "Yes.", "generation_info": info}]]}
    spoken = llm(1, [said("user", "Soup?")], said("assistant", "Yes."), also={"output.value": json.dumps(body)})
    call = only_model_call(spoken, scope=LANGCHAIN)
    assert (call.response_model, call.finish_reasons) == ("gpt-5-late", ["stop"])


def test_objects_that_were_kept_as_reprs_are_read_as_data() -> None:
    reply = (
        "ChatMessage(_role=<ChatRole.ASSISTANT: 'assistant'>, _content=[ToolCall(tool_name='order', "
        "arguments={'dish': 'soup', 'count': -1}, id='call_1', extra=None)], _name=None, "
        "_meta={'model': 'gpt-5-late', 'finish_reason': 'tool_calls', 'usage': {'prompt_tokens': 7}})"
    )
    one = session(
        llm(1, [said("user", "Soup?")], None, also={"output.value": json.dumps({"replies": [reply]})}), scope="x"
    )
    (call,) = only_run(one).model_calls()
    assert (call.response_model, call.finish_reasons) == ("gpt-5-late", ["tool_calls"])
    assert one.messages[-1].parts == [called("order", {"dish": "soup", "count": -1}, "call_1")]
    assert call.usage is not None
    assert call.usage.input_tokens == 7


@pytest.mark.parametrize(
    ("parameters", "settings"),
    [
        ({"max_completion_tokens": 5, "stop": "x", "seed": None}, {"max_tokens": 5, "stop_sequences": ["x"]}),
        ({"maxOutputTokens": 5, "topP": 1, "maxRetries": 2}, {"max_tokens": 5, "top_p": 1}),
        ({"config": {"temperature": 0.5}}, {"temperature": 0.5}),
        (
            {"object": "response", "reasoning": {"effort": "low"}, "text": {"format": {"type": "text"}}, "output": []},
            {"reasoning_effort": "low"},
        ),
        ({"text": {"format": {"type": "json_schema"}}}, {"response_format": {"type": "json_schema"}}),
    ],
)
def test_invocation_parameters_are_settings_under_one_name(parameters: Any, settings: Any) -> None:
    also = {"llm.invocation_parameters": json.dumps(parameters)}
    assert only_model_call(llm(1, [said("user", "Hi")], said("assistant", "Ho"), also=also)).settings == settings


@pytest.mark.parametrize(
    "attributes",
    [
        {"json_schema": json.dumps({"type": "function", "function": DEFINITION})},
        {
            "json_schema": json.dumps(
                {"name": "order", "description": "Order a dish.", "input_schema": {"type": "object"}}
            )
        },
        {"name": "order", "description": "Order a dish.", "json_schema": json.dumps({"type": "object"})},
        {"json_schema": json.dumps({**DEFINITION, "type": "function"})},
    ],
)
def test_tools_of_every_shape_are_the_same_tool(attributes: dict[str, Any]) -> None:
    also = {f"llm.tools.0.tool.{key}": value for key, value in attributes.items()}
    one = session(llm(1, [said("user", "Hi")], said("assistant", "Ho"), also=also), scope=BY_HAND)
    (definition,) = one.tools
    assert definition == {"type": "function", **DEFINITION}


# -- numbers, failures, what is missing ------------------------------------------------------------------------------


def test_usage_is_counted_on_model_calls_only_with_its_details() -> None:
    counts = {"prompt": 60, "completion": 12, "prompt_details.cache_read": 8, "completion_details.reasoning": 4}
    usage = {f"llm.token_count.{name}": count for name, count in counts.items()}
    one = session(
        oi(1, "AGENT", {**usage, "agent.name": "waiter"}, seconds=9),
        llm(2, [said("user", "Hi")], said("assistant", "Ho"), 1, also=usage),
        scope=BY_HAND,
    )
    assert one.usage.model_dump(exclude_none=True) == {
        "input_tokens": 60,
        "output_tokens": 12,
        "cache_read_tokens": 8,
        "reasoning_tokens": 4,
    }


def test_tokens_that_were_cached_and_left_out_of_the_input_are_counted_in() -> None:
    usage = {"llm.token_count.prompt": 3, "llm.token_count.prompt_details.cache_write": 40}
    call = only_model_call(llm(1, [said("user", "Hi")], said("assistant", "Ho"), also=usage))
    assert call.usage is not None
    assert (call.usage.input_tokens, call.usage.cache_write_tokens) == (43, 40)


def test_a_span_of_the_models_kind_that_asked_no_model_is_no_call() -> None:
    prepared = {"llm.model_name": "gpt-5", "llm.invocation_parameters": "{}", "output.value": "prepared"}
    assert sessions(oi(1, "LLM", prepared), scope=BY_HAND) == []


def test_a_call_that_failed_says_how() -> None:
    exception = {"exception.type": "openai.RateLimitError", "exception.message": "slow down"}
    event = {"name": "exception", "timeUnixNano": "1", "attributes": span(0, "", exception)["attributes"]}
    status = {"code": 2, "message": "RateLimitError: slow down"}
    call = only_model_call(llm(1, [said("user", "Hi")], None, status=status, events=[event]))
    assert (call.status, call.error and (call.error.type, call.error.message)) == (
        Status.ERROR,
        ("openai.RateLimitError", "slow down"),
    )


def test_redacted_content_is_marked_and_absent_content_too() -> None:
    hidden = {"input.value": "__REDACTED__", "output.value": "__REDACTED__", "llm.token_count.prompt": 3}
    assert only_model_call(oi(1, "LLM", hidden)).fidelity == dict.fromkeys(("input", "output"), Fidelity.REDACTED)
    part = llm(1, [said("user", "__REDACTED__")], said("assistant", "Ho"))
    assert only_model_call(part).fidelity == {"input": Fidelity.REDACTED}
    assert only_model_call(oi(1, "LLM", {"llm.token_count.prompt": 3})).fidelity == dict.fromkeys(
        ("input", "output"), Fidelity.ABSENT
    )
    redacted = only_tool_call(tool(1, "__REDACTED__", "__REDACTED__"))
    assert redacted.fidelity == dict.fromkeys(("arguments", "result"), Fidelity.REDACTED)


def test_values_that_were_cut_are_known_by_the_json_that_was_cut_at_the_same_length() -> None:
    also = {"input.value": '{"messages": [1, 2,', "metadata": '{"a": "b"}'}
    call = only_model_call(llm(1, [said("user", "x" * 19)], said("assistant", "whole"), also=also))
    assert call.fidelity == {"input": Fidelity.TRUNCATED}


# -- tools -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        ({"kwargs": {"dish": "soup"}}, {"dish": "soup"}),
        ({"args": [], "sanitize_inputs_outputs": True, "kwargs": {"dish": "soup"}}, {"dish": "soup"}),
        ({"args": ["soup"], "kwargs": {}}, {"args": ["soup"], "kwargs": {}}),
        ("{'dish': 'soup', 'hot': True}", {"dish": "soup", "hot": True}),
        (r'"{\"dish\": \"soup\"}"', {"dish": "soup"}),
        ("{not python", "{not python"),
        ({"input": '{"dish": "soup"}'}, {"dish": "soup"}),
        ({"input": "soup"}, {"input": "soup"}),
        ("soup", "soup"),
    ],
)
def test_arguments_come_out_of_what_they_are_wrapped_in(written: Any, arguments: Any) -> None:
    assert only_tool_call(tool(1, written, "ok")).arguments == arguments


def test_a_bare_argument_gets_the_name_that_the_model_gave_it() -> None:
    one = session(llm(1, [said("user", "Soup!")], asks(ORDER)), tool(2, "soup", "ok"), scope=LANGCHAIN)
    (call,) = only_run(one).tool_calls()
    assert (call.arguments, call.call_id) == ({"dish": "soup"}, "call_1")


@pytest.mark.parametrize(
    ("parameters", "arguments", "fidelity"),
    [
        ({"dish": "soup"}, {"dish": "soup"}, {}),
        ({"type": "object", "properties": {"dish": {}}}, None, {"arguments": Fidelity.ABSENT}),
        ({"dish": {"type": "string"}}, None, {"arguments": Fidelity.ABSENT}),
    ],
)
def test_parameters_are_the_arguments_where_they_are_no_schema(parameters: Any, arguments: Any, fidelity: Any) -> None:
    written = {"tool.name": "order", "tool.parameters": json.dumps(parameters), "output.value": "ok"}
    call = only_tool_call(oi(1, "TOOL", written))
    assert (call.arguments, call.fidelity) == (arguments, fidelity)


@pytest.mark.parametrize(
    ("written", "result", "call_id"),
    [
        ({"type": "tool", "data": {"content": "ok", "tool_call_id": "c"}}, "ok", "c"),
        ({"lc": 1, "type": "constructor", "kwargs": {"content": ["ok"], "tool_call_id": "c"}}, ["ok"], "c"),
        ({"output": {"content": "ok", "tool_call_id": "c"}}, "ok", "c"),
        ({"type": "tool", "content": "ok", "tool_call_id": "c"}, "ok", "c"),
        ({"blocks": [], "tool_name": "order", "raw_output": {"n": 1}, "is_error": False}, {"n": 1}, None),
        ({"id": "adk-1", "name": "order", "response": {"n": 1}}, {"n": 1}, "adk-1"),
        ('"ok"', "ok", None),
        ([{"type": "text", "text": "ok"}], [{"type": "text", "text": "ok"}], None),
        ({"output": 1}, {"output": 1}, None),
    ],
)
def test_results_come_out_of_what_they_are_wrapped_in(written: Any, result: Any, call_id: str | None) -> None:
    call = only_tool_call(tool(1, {}, written))
    assert (call.result, call.call_id, call.status) == (result, call_id, Status.OK)


def test_a_failure_that_only_the_tools_message_tells_is_one() -> None:
    written = {"type": "tool", "data": {"content": "no soup", "tool_call_id": "c", "status": "error"}}
    call = only_tool_call(tool(1, {}, written))
    assert (call.status, call.result, call.error and call.error.message) == (Status.ERROR, "no soup", "no soup")


def test_a_handoff_names_who_takes_over_and_joins_the_request_for_it() -> None:
    handoff = called("transfer_to_head_cook", {}, "call_1")
    one = session(
        llm(1, [said("user", "Soup!")], asks(handoff)),
        oi(2, "TOOL", {}, name="handoff to Head Cook"),
        scope="openinference.instrumentation.openai_agents",
    )
    (call,) = only_run(one).tool_calls()
    assert (call.kind, call.target, call.call_id) == (ToolKind.HANDOFF, "Head Cook", "call_1")


def test_retrievers_are_tools_that_answer_with_documents() -> None:
    documents = {
        "retrieval.documents.0.document.content": "Soup of the day",
        "retrieval.documents.0.document.metadata": '{"page": 1}',
        "retrieval.documents.0.document.score": 0.5,
    }
    call = only_tool_call(oi(1, "RETRIEVER", {"input.value": "soup", **documents}, name="menu"))
    assert (call.name, call.kind, call.arguments) == ("menu", ToolKind.RETRIEVER, "soup")
    assert call.result == [{"content": "Soup of the day", "metadata": {"page": 1}, "score": 0.5}]


def test_embeddings_and_rerankers_are_calls_beside_the_loop_and_guardrails_none() -> None:
    embedding = {"embedding.model_name": "embed", "embedding.embeddings.0.embedding.text": "soup"}
    reranker = {"reranker.query": "soup", "reranker.model_name": "rank", "reranker.top_k": 1}
    reranker |= {f"reranker.{side}_documents.0.document.id": "d" for side in ("input", "output")}
    one = session(
        oi(1, "AGENT", {"agent.name": "waiter"}, seconds=9),
        oi(2, "EMBEDDING", embedding, 1),
        oi(3, "RERANKER", reranker, 1),
        *(
            oi(4 + number, kind, {"input.value": "x"}, 1)
            for number, kind in enumerate(("GUARDRAIL", "EVALUATOR", "PROMPT"))
        ),
        scope=BY_HAND,
    )
    run = only_run(one)
    assert [(call.operation, call.model) for call in run.side_calls] == [("embeddings", "embed"), ("rerank", "rank")]
    assert run.side_calls[1].request_fields == {"documents": [{"id": "d"}], "top_n": 1}
    assert run.side_calls[1].provider_fields == {"documents": [{"id": "d"}]}
    assert [*run.model_calls(), *run.tool_calls()] == run.side_calls


# -- runs ------------------------------------------------------------------------------------------------------------

HI, HO = said("user", "Hi"), said("assistant", "Ho")


def test_the_outermost_chain_is_the_run_and_those_inside_only_group() -> None:
    one = session(
        oi(1, "CHAIN", {"input.value": json.dumps({"messages": [HI | {"content": "Hi"}]})}, seconds=9),
        oi(2, "CHAIN", {"metadata": '{"lc_agent_name": "waiter", "langgraph_step": 1}'}, 1, seconds=5),
        llm(3, [HI], HO, 2),
        scope=LANGCHAIN,
    )
    run = only_run(one)
    assert (run.id, run.agent.name, run.implicit, len(run.turns)) == ("0000000000000001", "waiter", False, 1)
    assert one.metadata == {}


def test_a_chain_under_a_span_of_the_application_is_a_run_where_it_holds_a_call() -> None:
    one = session(
        span(1, "GET /", {}, seconds=9),
        oi(2, "CHAIN", {"output.value": "a prompt"}, 1),
        oi(3, "CHAIN", {}, 1),
        llm(4, [HI], HO, 3),
        scope=BY_HAND,
    )
    assert only_run(one).id == "0000000000000003"


def test_a_chain_that_a_tool_starts_is_a_run_inside_that_tool() -> None:
    one = session(
        oi(1, "AGENT", {"agent.name": "waiter"}, seconds=9),
        tool(2, {}, "ok", 1, seconds=5),
        oi(3, "CHAIN", {}, 2),
        llm(4, [HI], HO, 3),
        scope=BY_HAND,
    )
    outer, inner = one.runs
    (call,) = outer.tool_calls()
    assert inner.parent is not None
    assert (inner.parent.run, inner.parent.tool_call) == (outer.id, call.id)


def test_a_node_of_a_graph_is_no_agent_though_its_name_says_so() -> None:
    node = {"metadata": '{"langgraph_node": "agent"}'}
    one = session(
        oi(1, "CHAIN", {}, seconds=9), oi(2, "AGENT", node, 1, name="agent"), llm(3, [HI], HO, 2), scope=LANGCHAIN
    )
    assert only_run(one).id == "0000000000000001"


@pytest.mark.parametrize(
    ("scope", "name", "expected"),
    [
        (BY_HAND, "waiter", "waiter"),
        ("openinference.instrumentation.smolagents", "waiter.run", "waiter"),
        ("openinference.instrumentation.openai_agents", "Workflow", None),
    ],
)
def test_an_agent_is_named_by_its_span_where_the_span_is_named_for_it(
    scope: str, name: str, expected: str | None
) -> None:
    assert only_run(session(oi(1, "AGENT", {}, name=name), llm(2, [HI], HO, 1), scope=scope)).agent.name == expected


@pytest.mark.parametrize(
    "value",
    [
        "Soup?",
        json.dumps({"task": "Soup?", "stream": False}),
        json.dumps({"messages": [{"type": "human", "data": {"content": "Soup?"}}]}),
        json.dumps(
            {"messages": [[{"lc": 1, "id": ["HumanMessage"], "kwargs": {"content": "Soup?", "type": "human"}}]]}
        ),
        json.dumps({"messages": [{"lc": 1, "id": ["langchain_core", "HumanMessage"], "kwargs": {"content": "Soup?"}}]}),
        json.dumps({"new_message": {"role": "user", "parts": [{"text": "Soup?"}]}}),
        json.dumps([{"role": "user", "content": [{"type": "input_text", "text": "Soup?"}]}]),
    ],
)
def test_what_a_run_was_asked_is_found_in_its_value(value: str) -> None:
    one = session(oi(1, "AGENT", {"input.value": value, "output.value": "Yes.", "agent.name": "waiter"}), scope="x")
    spoken = [(one.messages[number].role, one.messages[number].parts[0]["content"]) for number in only_run(one).input]
    assert spoken == [("user", "Soup?")]


def test_a_value_that_holds_no_messages_is_kept_as_it_is() -> None:
    values = {"input.value": '{"guests": 4}', "output.value": '{"table": 7}'}
    run = only_run(session(oi(1, "AGENT", values), scope="x"))
    assert run.entrypoint is not None
    assert (run.entrypoint.arguments, run.result, run.input) == ({"guests": 4}, {"table": 7}, [])
    assert only_run(session(oi(1, "AGENT", {"input.value": "Start(ev=<X object>)"}), scope="x")).input == []


def test_sessions_users_and_metadata_are_read_and_the_framework_s_own_is_left_out() -> None:
    also = {"session.id": "s", "user.id": "u", "tag.tags": ["t"], "metadata": '{"branch": "n", "ls_provider": "x"}'}
    one = session(llm(1, [HI], HO, also=also), scope=BY_HAND)
    assert (one.key.value, one.user_id, one.tags, one.metadata) == ("s", "u", ["t"], {"branch": "n"})
    threaded = session(llm(1, [HI], HO, also={"metadata": '{"thread_id": "t-1"}'}), scope=LANGCHAIN)
    assert threaded.key.value == "t-1"


# -- one span, two vocabularies; several rounds, one span ------------------------------------------------------------


def test_of_two_vocabularies_on_one_span_each_list_of_messages_is_taken_from_one() -> None:
    native = chat(1, [HI], HO, also={names.SYSTEM_INSTRUCTIONS: json.dumps(said("", "Be brief.")["parts"])})
    written = {KIND: "LLM", "llm.token_count.prompt": 7, **indexed("llm.input_messages", HI)}
    written |= indexed("llm.output_messages", HO)
    native["attributes"] += span(1, "", written)["attributes"]
    one = session(native, scope="pydantic-ai")
    (call,) = only_run(one).model_calls()
    assert [(message.role, message.parts[0]["content"]) for message in one.messages] == [
        ("system", "Be brief."),
        ("user", "Hi"),
        ("assistant", "Ho"),
    ]
    assert call.usage is not None
    assert call.usage.input_tokens == 7


def test_a_span_written_by_a_library_and_a_processor_says_each_thing_once() -> None:
    (one,) = convert_files([str(cases("reports/034-dual-emitted.jsonl"))]).sessions
    run = only_run(one)
    assert [(one.messages[number].role, one.messages[number].parts[0]["content"]) for number in run.input] == [
        ("system", "You turn requests into filters."),
        ("user", "only root spans"),
    ]
    assert [one.messages[number].parts[0]["content"] for number in run.output] == ["parent_id is None"]


def test_the_fuller_list_is_taken_whole_where_the_native_one_is_not_there() -> None:
    native = chat(1, None, None)
    written = {KIND: "LLM", **indexed("llm.input_messages", said("system", "Be brief."), HI)}
    native["attributes"] += span(1, "", {**written, **indexed("llm.output_messages", HO)})["attributes"]
    one = session(native, scope="pydantic-ai")
    (call,) = only_run(one).model_calls()
    assert ([message.role for message in one.messages], call.fidelity) == (["system", "user", "assistant"], {})


def test_rounds_that_a_library_went_through_inside_one_span_are_calls_of_their_own() -> None:
    history = [
        {"parts": [{"text": "Soup?"}]},
        {"parts": [{"function_call": {"args": {"dish": "soup"}, "name": "order"}}], "role": "model"},
        {"parts": [{"function_response": {"name": "order", "response": {"result": "ordered"}}}], "role": "user"},
    ]
    body = {"model_version": "gemini", "response_id": "r", "automatic_function_calling_history": history}
    also = {"output.value": json.dumps(body)}
    one = session(llm(1, [said("user", "Soup?")], said("model", "It comes."), also=also), scope="x")
    first, second = only_run(one).model_calls()
    (call,) = only_run(one).tool_calls()
    assert (call.arguments, call.result, call.executed) == ({"dish": "soup"}, "ordered", False)
    assert (first.response_id, first.usage, second.response_id) == (None, None, "r")
    assert [message["role"] for message in asked(one, second)] == ["user", "assistant", "tool"]


def test_a_call_that_wrote_over_the_span_of_the_one_before_is_told_from_it() -> None:
    order = called("order", {"dish": "soup"})
    history = [said("user", "Soup?"), asks(order), told("", "ordered")]
    answer = {"role": "model", "parts": [{"type": "text", "content": "It comes."}, order]}
    one = session(llm(1, history, answer, seconds=5), tool(2, {"dish": "soup"}, "ordered", 1), scope="x")
    first, second = only_run(one).model_calls()
    (call,) = only_run(one).tool_calls()
    assert call.requested_by is not None
    assert (call.requested_by.model_call, len(first.input), len(second.input)) == (first.id, 1, 3)


def test_a_run_whose_output_tells_of_its_rounds_has_a_call_for_each() -> None:
    rounds = indexed("llm.output_messages", asks(ORDER), told("call_1", "ordered"), said("assistant", "It comes."))
    one = session(
        oi(1, "AGENT", {"agent.name": "waiter", "input.value": "Soup?", **rounds}, seconds=9),
        tool(2, {"dish": "soup"}, "ordered", 1, also={"tool.id": "call_1"}),
        scope=BY_HAND,
    )
    run = only_run(one)
    assert [[call.name for call in turn.tool_calls] for turn in run.turns] == [["order"], []]
    assert {call.fidelity["output"] for call in run.model_calls()} == {Fidelity.RECONSTRUCTED}


def test_haystacks_invoker_is_the_tool_call_that_it_made() -> None:
    origin = "ToolCall(tool_name='order', arguments={'dish': 'soup'}, id='call_1')"
    request_text = f"ChatMessage(_role='assistant', _content=[{origin}], _meta={{}})"
    answer = f"ChatMessage(_role='tool', _content=[ToolCallResult(result='ordered', origin={origin}, error=False)])"
    values = {"messages": "input.value", "tool_messages": "output.value"}
    texts = {"messages": request_text, "tool_messages": answer}
    attributes = {key: json.dumps({name: [texts[name]]}) for name, key in values.items()}
    call = only_tool_call(oi(1, "CHAIN", attributes, name="ToolInvoker.run"))
    assert (call.name, call.arguments, call.result, call.call_id) == ("order", {"dish": "soup"}, "ordered", "call_1")


# -- repairs that any dialect may need -------------------------------------------------------------------------------


def test_a_call_that_goes_on_from_a_response_gets_back_what_came_before() -> None:
    definitions = {names.TOOL_DEFINITIONS: json.dumps([DEFINITION])}
    one = session(
        agent(1, "waiter", also=definitions, seconds=9),
        chat(2, [said("user", "Soup?")], asks(ORDER), 1, also={names.RESPONSE_ID: "resp_1"}),
        chat(3, [told("call_1", "ordered")], HO, 1, also={names.CONVERSATION_ID: "resp_1"}),
        scope="agent_framework",
    )
    first, second = only_run(one).model_calls()
    assert [message["role"] for message in asked(one, second)] == ["user", "assistant", "tool"]
    assert (first.fidelity["tools"], second.fidelity["input"]) == (Fidelity.RECONSTRUCTED, Fidelity.RECONSTRUCTED)
    assert one.tools[first.tools[0]]["name"] == "order"


def test_what_a_tools_server_says_alone_is_no_session() -> None:
    served = {names.OPERATION: "execute_tool", names.TOOL_NAME: "order", "mcp.method.name": "tools/call"}
    assert sessions(span(1, "tools/call order", served) | {"kind": 2}, scope="mcp-python-sdk") == []


# -- llama-index: which model answered stands beside the call --------------------------------------------------------


def taken(number: int, text: str, asked: str, model: str) -> Span:
    """The step that takes an answer of this text and these tool calls, from a model that it names."""
    blocks = f"TextBlock(block_type='text', text={text!r}){asked}"
    response = f"ChatMessage(role=<MessageRole.ASSISTANT: 'assistant'>, additional_kwargs={{}}, blocks=[{blocks}])"
    event = f"AgentOutput(response={response}, raw={{'id': 'c', 'model': {model!r}}}, tool_calls=[])"
    attributes = {"openinference.span.kind": "CHAIN", "input.value": json.dumps({"ctx": "<Context>", "ev": event})}
    return span(number, "BaseWorkflowAgent.parse_agent_output", attributes, 1)


def answered(number: int, text: str, identity: str | None = None) -> Span:
    """A model call, in the run itself, that answered with this text, and asked for a tool by this id."""
    attributes = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "gpt-5",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": f"Question {number}",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": text,
    }
    if identity is not None:
        call = "llm.output_messages.0.message.tool_calls.0.tool_call"
        attributes |= {f"{call}.id": identity, f"{call}.function.name": "look", f"{call}.function.arguments": "{}"}
    return span(number, "OpenAI.achat", attributes, 1)


def answering_models(*spans: Span) -> list[str | None]:
    run = span(1, "FunctionAgent.run", {"openinference.span.kind": "CHAIN"}, seconds=60)
    document = session(run, *spans, scope="openinference.instrumentation.llama_index")
    return [call.response_model for call in only_run(document).model_calls()]


def block(identity: str) -> str:
    return f", ToolCallBlock(block_type='tool_call', tool_call_id={identity!r}, tool_name='look', tool_kwargs='{{}}')"


def test_llama_index_names_the_model_that_answered_beside_the_call_by_tool_call_and_text() -> None:
    found = answering_models(
        answered(2, "Wait.", "call_1"),
        taken(3, "Wait.", block("call_1"), "gpt-5-early"),
        answered(4, "Wait.", "call_2"),
        taken(5, "Wait.", block("call_2"), "gpt-5-late"),
        answered(6, "Done.", None),
        taken(7, "Done.", "", "gpt-5-last"),
    )
    assert found == ["gpt-5-early", "gpt-5-late", "gpt-5-last"]


def test_answers_of_llama_index_in_the_same_words_are_given_a_model_only_where_it_is_one() -> None:
    same = answering_models(
        answered(2, "Yes."), taken(3, "Yes.", "", "m"), answered(4, "Yes."), taken(5, "Yes.", "", "m")
    )
    other = answering_models(
        answered(2, "Yes."), taken(3, "Yes.", "", "m"), answered(4, "Yes."), taken(5, "Yes.", "", "n")
    )
    fewer = answering_models(answered(2, "Yes."), answered(4, "Yes."), taken(5, "Yes.", "", "m"))
    assert (same, other, fewer) == (["m", "m"], ["gpt-5", "gpt-5"], ["gpt-5", "gpt-5"])


@pytest.mark.parametrize("event", ["AgentOutput(response=1)", "AgentOutput(response=Chat...", "[]", "<Event>", "{}"])
def test_a_step_of_llama_index_that_cannot_be_read_tells_nothing(event: str) -> None:
    attributes = {"openinference.span.kind": "CHAIN", "input.value": json.dumps({"ev": event})}
    step = span(3, "BaseWorkflowAgent.parse_agent_output", attributes, 1)
    assert answering_models(answered(2, "Yes."), step) == ["gpt-5"]


def test_an_agent_that_langgraph_of_javascript_names_on_its_answers_alone_is_the_graphs() -> None:
    """Its instrumentation calls the graph a chain; the graph's steps, which give the same answers, are no agents."""

    def ran(name: str, *speakers: str | None, **metadata: str) -> str | None:
        answers = [
            {"id": ["langchain_core", "messages", "AIMessage"], "lc": 1, "type": "constructor", "kwargs": kwargs}
            for kwargs in ({"content": "Here.", **({"name": speaker} if speaker else {})} for speaker in speakers)
        ]
        told = {"output.value": json.dumps({"messages": answers}), "metadata": json.dumps(metadata)}
        chain = span(1, name, {"openinference.span.kind": "CHAIN", "input.value": "Soup!", **told})
        call = oi(2, "LLM", {"llm.model_name": "gpt-5", "output.value": "Here.", "llm.token_count.prompt": 1}, 1)
        one = session(chain, call, scope="@arizeai/openinference-instrumentation-langchain")
        return only_run(one).agent.name

    graph = {"ls_integration": "langgraph"}
    assert ran("LangGraph", "waiter", **graph) == "waiter"
    assert ran("waiter", "waiter", **graph, langgraph_node="tools") == "waiter"
    assert ran("RunnableSequence", "waiter", **graph, langgraph_node="agent") is None
    assert ran("LangGraph", "waiter", "cook", **graph) is None
    assert ran("LangGraph", None, **graph) is None
    assert ran("chain", "waiter") is None
