"""What instrumentations of Bedrock's client write: Converse's blocks, and invoke's bodies of each maker's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otlp_lines import converted, only_run, request, session, span
from spanreel.model import Status
from spanreel.session import ModelCall, ToolCall

OI = "openinference.instrumentation.bedrock"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
CLAUDE = {
    "anthropic_version": "bedrock-2023-05-31",
    "max_tokens": 100,
    "system": "Be brief.",
    "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
    "tools": [{"name": "look", "input_schema": SCHEMA}],
}
NOVA = {
    "schemaVersion": "messages-v1",
    "system": [{"text": "Be brief."}],
    "messages": [{"role": "user", "content": [{"text": "Hi"}]}],
    "inferenceConfig": {"max_new_tokens": 100},
    "toolConfig": {"tools": [{"toolSpec": {"name": "look", "inputSchema": {"json": SCHEMA}}}]},
}
TITAN = {"inputText": "Hi", "textGenerationConfig": {"maxTokenCount": 100}}
COUNTS = {"openinference.span.kind": "LLM", "llm.token_count.prompt": 7, "llm.token_count.completion": 2}


def only_call(*spans: dict[str, Any]) -> tuple[ModelCall, list[tuple[str, Any]]]:
    """The only model call, and what it was asked and answered: roles and texts."""
    one = session(*spans, scope=OI)
    (call,) = only_run(one).model_calls()
    said = [one.messages[index] for index in (*call.input, *call.output)]
    return call, [(message.role, message.parts[0].get("content")) for message in said if message.parts]


def only_tool(one: Any) -> ToolCall:
    (call,) = only_run(one).tool_calls()
    return call


def failed_tool(content: Any) -> ToolCall:
    """A tool call whose answer stands in a user's message of these blocks."""
    use = [{"toolUse": {"toolUseId": "t1", "name": "look", "input": {"city": "Rome"}}}]
    said = [("user", [{"text": "Hi"}]), ("assistant", use), ("user", content)]
    sent = [{"role": role, "content": blocks} for role, blocks in said]
    asked = {
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "Hi",
        "llm.input_messages.1.message.role": "assistant",
        "llm.input_messages.1.message.tool_calls.0.tool_call.id": "t1",
        "llm.input_messages.1.message.tool_calls.0.tool_call.function.name": "look",
        "llm.input_messages.1.message.tool_calls.0.tool_call.function.arguments": '{"city": "Rome"}',
        "llm.input_messages.2.message.role": "tool",
        "llm.input_messages.2.message.tool_call_id": "t1",
        "llm.input_messages.2.message.content": "no such city",
    }
    first = {key: value for key, value in asked.items() if key.startswith("llm.input_messages.0.")}
    answer = {
        key.replace("llm.input_messages.1", "llm.output_messages.0"): value
        for key, value in asked.items()
        if key.startswith("llm.input_messages.1.")
    }
    spans = [
        span(1, "bedrock.converse", {**COUNTS, **first, **answer}, trace="1" * 32),
        span(2, "bedrock.converse", {**COUNTS, **asked, "input.value": json.dumps(sent)}, 5, trace="2" * 32),
    ]
    return only_tool(session(*spans, scope=OI))


@pytest.mark.parametrize(("sent", "tools"), [(CLAUDE, ["look"]), (NOVA, ["look"]), (TITAN, [])])
@pytest.mark.parametrize("key", ["input.value", "llm.invocation_parameters"])
def test_an_invoked_models_request_is_read_from_its_body_wherever_it_stands(
    sent: dict[str, Any], tools: list[str], key: str
) -> None:
    attributes = {**COUNTS, key: json.dumps(sent), "llm.invocation_parameters": json.dumps(sent)}
    one = session(span(1, "bedrock.invoke_model", {**attributes, "llm.model_name": "m"}), scope=OI)
    call, said = only_call(span(1, "bedrock.invoke_model", attributes))
    assert ("user", "Hi") in said
    assert [tool["name"] for tool in one.tools] == tools
    assert call.settings["max_tokens"] == 100


def test_a_titans_answer_is_the_text_of_its_output() -> None:
    parameters = {"llm.invocation_parameters": json.dumps(TITAN), "output.value": "Ho"}
    assert only_call(span(1, "bedrock.invoke_model", {**COUNTS, **parameters}))[1] == [
        ("user", "Hi"),
        ("assistant", "Ho"),
    ]


def test_a_stream_of_bedrocks_that_nobody_listened_to_is_a_streamed_call_all_the_same() -> None:
    attributes = {"openinference.span.kind": "LLM", "input.value": json.dumps(TITAN)}
    call, said = only_call(span(1, "bedrock.invoke_model_with_response_stream", attributes))
    assert (said, call.streamed) == ([("user", "Hi")], True)


def test_arguments_of_a_streamed_answer_that_are_text_in_its_body_are_objects() -> None:
    use = {"type": "tool_use", "id": "t1", "name": "look", "input": '{"city": "Rome"}'}
    came = {"type": "message", "id": "m-1", "role": "assistant", "content": [use], "model": "c", "usage": {}}
    attributes = {**COUNTS, "input.value": json.dumps(CLAUDE), "output.value": json.dumps(came)}
    one = session(span(1, "bedrock.invoke_model_with_response_stream", attributes), scope=OI)
    assert only_tool(one).arguments == {"city": "Rome"}


def test_a_tools_failure_that_only_converses_blocks_tell_is_one() -> None:
    result = {"toolUseId": "t1", "content": [{"text": "no such city"}]}
    found = failed_tool([{"toolResult": {**result, "status": "error"}}])
    assert (found.status, found.result) == (Status.ERROR, "no such city")
    assert failed_tool([{"toolResult": {**result, "status": "success"}}]).status is Status.OK


def test_a_thought_that_openllmetry_has_as_bedrocks_block_in_a_text_is_one() -> None:
    block = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "s"}}}
    answer = [{"type": "text", "content": json.dumps(block)}, {"type": "text", "content": "Ho"}]
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "aws.bedrock",
        "gen_ai.request.model": "small",
        "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": answer, "finish_reason": "stop"}]),
    }
    written = request(span(1, "chat small", attributes))
    scope = {"name": "opentelemetry.instrumentation.bedrock", "version": "0.62.4"}
    written["resourceSpans"][0]["scopeSpans"][0]["scope"] = scope
    (one,) = converted(written).sessions
    (call,) = only_run(one).model_calls()
    (answered,) = (one.messages[index] for index in call.output)
    assert [(part["type"], part["content"]) for part in answered.parts] == [("reasoning", "Hm."), ("text", "Ho")]
