"""The AI SDK's spans: its own up to version 6, the conventions from 7 on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conftest import cases
from dialect_cases import wrong_fields
from golden_sessions import converted_and_agreed
from otlp_lines import (
    Span,
    asks,
    attribute_list,
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
from spanreel.model import Fidelity, Status
from spanreel.session import ModelCall, Session
from spanreel_collector.conversion.convert import convert_files

SYSTEM, USER = {"role": "system", "content": "Serve."}, {"role": "user", "content": [{"type": "text", "text": "Soup!"}]}
ORDER = called("order", {"dish": "soup"}, "call_1")


def ai(number: int, operation: str, attributes: dict[str, Any], parent: int | None = None, **rest: Any) -> Span:
    shared = {"ai.operationId": operation, "ai.model.provider": "openai.chat", "ai.model.id": "gpt-5"}
    return span(number, operation, {**shared, **attributes}, parent, **rest)


def call_of(attributes: dict[str, Any], operation: str = "ai.generateText.doGenerate", **rest: Any) -> ModelCall:
    one = session(ai(1, operation, attributes, **rest), scope="ai")
    (call,) = only_run(one).model_calls()
    return call


def messages(one: Session, indexes: list[int]) -> list[dict[str, Any]]:
    return [{"role": one.messages[index].role, "parts": one.messages[index].parts} for index in indexes]


def asked(*prompt: dict[str, Any]) -> list[dict[str, Any]]:
    one = session(ai(1, "ai.generateText.doGenerate", {"ai.prompt.messages": json.dumps(prompt)}), scope="ai")
    return messages(one, next(only_run(one).model_calls()).input)


@pytest.mark.parametrize("name", ["vercel", "vercel_otel"])
def test_an_agent_on_the_sdk_comes_out_as_agreed(name: str) -> None:
    """`tests/golden/vercel_dump.mjs` makes the dumps: two tools at once, one failing; a stream; a model that fails."""
    found, agreed = converted_and_agreed(f"{name}.otlp.jsonl", name)
    assert found == agreed


def test_real_dumps_of_the_sdk_come_out_as_their_truth_says() -> None:
    assert wrong_fields("*vercel*") == {}


def test_a_prompt_that_was_cut_gives_what_is_whole_and_the_rest_is_read_as_usual() -> None:
    (one,) = convert_files([str(cases("reports/038-vercel-truncated.jsonl"))]).sessions
    run = only_run(one)
    first = run.turns[0].model_call
    assert first is not None
    assert messages(one, first.output) == [
        {
            "role": "assistant",
            "parts": [{"type": "text", "content": "Let me look."}, called("get_weather", {"city": "Oslo"}, "call_1")],
        }
    ]
    assert first.usage is not None
    assert (first.usage.input_tokens, first.usage.output_tokens) == (30, 6)
    assert first.fidelity["input"] is run.fidelity["input"] is Fidelity.TRUNCATED
    assert first.raw_request is not None
    assert len(first.raw_request) == 1028
    assert [message["role"] for message in messages(one, first.input)] == ["system", "user"]
    (tool,) = run.tool_calls()
    assert (tool.arguments, tool.result, tool.fidelity) == ({"city": "Oslo"}, {"tempC": 18}, {})
    assert not one.replay.eligible


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("Soup!", [{"type": "text", "content": "Soup!"}]),
        ([{"type": "text", "text": ""}], []),
        (
            [{"type": "file", "mediaType": "image/png", "data": "AQID"}],
            [{"type": "blob", "modality": "image", "mime_type": "image/png", "content": "AQID"}],
        ),
        (
            [{"type": "image", "image": "https://example.org/soup.png"}],
            [{"type": "uri", "modality": "image", "uri": "https://example.org/soup.png", "mime_type": "image/*"}],
        ),
        (
            [{"type": "file", "mediaType": "application/pdf", "data": "AA==", "filename": "menu.pdf"}],
            [
                {
                    "type": "blob",
                    "modality": "document",
                    "mime_type": "application/pdf",
                    "content": "AA==",
                    "name": "menu.pdf",
                }
            ],
        ),
        ([{"type": "custom", "value": 1}], [{"type": "custom", "value": 1}]),
        (
            [{"type": "image", "image": {"0": 1, "1": 2, "2": 3}, "mimeType": "image/png"}],
            [{"type": "blob", "modality": "image", "mime_type": "image/png", "content": "AQID"}],
        ),
    ],
)
def test_content_of_all_kinds_becomes_parts(content: Any, parts: list[dict[str, Any]]) -> None:
    (message,) = asked({"role": "user", "content": content})
    assert message == {"role": "user", "parts": parts}


@pytest.mark.parametrize(
    ("output", "part"),
    [
        ({"output": {"type": "text", "value": "served"}}, {"response": "served"}),
        ({"output": {"type": "json", "value": {"ok": True}}}, {"response": {"ok": True}}),
        ({"output": {"type": "error-text", "value": "no"}}, {"response": "no", "provider_fields": {"is_error": True}}),
        ({"result": "served"}, {"response": "served"}),
        ({"result": "no", "isError": True}, {"response": "no", "provider_fields": {"is_error": True}}),
    ],
)
def test_results_of_tools_are_told_as_each_version_writes_them(output: dict[str, Any], part: dict[str, Any]) -> None:
    result = {"type": "tool-result", "toolCallId": "call_1", "toolName": "order", **output}
    (message,) = asked({"role": "tool", "content": [result]})
    assert message["parts"] == [{"type": "tool_call_response", "id": "call_1", **part}]


@pytest.mark.parametrize(
    "written", [{"input": {"dish": "soup"}}, {"args": {"dish": "soup"}}, {"input": '{"dish": "soup"}'}]
)
def test_tool_calls_have_their_arguments_under_either_name_and_as_text_too(written: dict[str, Any]) -> None:
    call = {"type": "tool-call", "toolCallId": "call_1", "toolName": "order", **written}
    assert asked({"role": "assistant", "content": [call]}) == [asks(ORDER)]


def test_tools_that_the_provider_ran_are_its_own() -> None:
    search = {
        "type": "tool-call",
        "toolCallId": "s1",
        "toolName": "web_search",
        "input": {"q": "x"},
        "providerExecuted": True,
    }
    result = {
        "type": "tool-result",
        "toolCallId": "s1",
        "toolName": "web_search",
        "output": {"type": "json", "value": [1]},
    }
    (message,) = asked({"role": "assistant", "content": [search, result]})
    assert [part["type"] for part in message["parts"]] == ["server_tool_call", "server_tool_call_response"]
    assert message["parts"][1]["server_tool_call_response"] == [1]


def test_settings_tools_and_what_else_was_asked_are_read() -> None:
    tool = {"type": "function", "name": "order", "inputSchema": {"type": "object"}}
    one = session(
        ai(
            1,
            "ai.streamText.doStream",
            {
                "ai.prompt.messages": json.dumps([SYSTEM, USER]),
                "ai.prompt.tools": [json.dumps(tool)],
                "ai.prompt.toolChoice": '{"type": "auto"}',
                "ai.settings.temperature": 0.5,
                "ai.settings.maxOutputTokens": 100,
                "ai.settings.maxRetries": 2,
                "ai.response.text": "Here.",
                "ai.response.finishReason": "stop",
                "ai.response.msToFirstChunk": 250.0,
                "ai.usage.inputTokens": 10,
                "ai.usage.outputTokens": 4,
                "ai.usage.cachedInputTokens": 8,
                "ai.usage.reasoningTokens": 1,
            },
        ),
        scope="ai",
    )
    (call,) = only_run(one).model_calls()
    assert call.settings == {"temperature": 0.5, "max_tokens": 100, "tool_choice": "auto"}
    assert call.request_fields == {"maxRetries": 2, "provider": "openai.chat"}
    assert (call.provider, call.streamed, call.finish_reasons) == ("openai", True, ["stop"])
    assert one.tools == [{"type": "function", "name": "order", "parameters": {"type": "object"}}]
    assert call.usage is not None
    assert (call.usage.input_tokens, call.usage.cache_read_tokens, call.usage.reasoning_tokens) == (10, 8, 1)
    assert messages(one, call.input) == [said("system", "Serve."), said("user", "Soup!")]


def test_anthropics_count_has_the_cache_put_in() -> None:
    usage = {"input_tokens": 40, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 5}
    call = call_of(
        {"ai.usage.promptTokens": 40, "ai.response.providerMetadata": json.dumps({"anthropic": {"usage": usage}})}
    )
    assert call.usage is not None
    assert (call.usage.input_tokens, call.usage.cache_read_tokens, call.usage.cache_write_tokens) == (52, 7, 5)


def test_without_content_calls_are_still_calls() -> None:
    call = call_of({"ai.response.finishReason": "stop", "ai.usage.promptTokens": 3})
    assert call.fidelity == {"input": Fidelity.ABSENT, "output": Fidelity.ABSENT}
    (tool,) = only_run(session(ai(1, "ai.toolCall", {"ai.toolCall.name": "order"}), scope="ai")).tool_calls()
    assert tool.fidelity == {"arguments": Fidelity.ABSENT, "result": Fidelity.ABSENT}


def test_an_object_is_an_answer_and_embeddings_are_calls_beside_the_loop() -> None:
    one = session(
        ai(1, "ai.generateObject", {"ai.prompt": '{"prompt": "Soup!"}', "ai.response.object": '{"a": 1}'}),
        ai(2, "ai.generateObject.doGenerate", {"ai.response.object": '{"a": 1}'}, 1),
        ai(3, "ai.embed.doEmbed", {"ai.values": ['"hello"'], "ai.usage.tokens": 3}, 1),
        scope="ai",
    )
    run = only_run(one)
    assert messages(one, run.output) == [said("assistant", '{"a": 1}')]
    (side_call,) = run.side_calls
    assert messages(one, side_call.input) == [said("user", "hello")]
    assert side_call.usage is not None
    assert side_call.usage.input_tokens == 3


def test_a_failed_tool_and_a_tool_that_is_an_agent_are_told() -> None:
    failed = {"status": {"code": 2, "message": "closed"}}
    one = session(
        ai(1, "ai.generateText", {"ai.prompt": '{"system": "Serve.", "prompt": "Soup!"}'}),
        ai(2, "ai.toolCall", {"ai.toolCall.name": "order", "ai.toolCall.args": "{}"}, 1, **failed),
        ai(3, "ai.toolCall", {"ai.toolCall.name": "ask", "ai.toolCall.args": "{}", "ai.toolCall.result": '"yes"'}, 1),
        ai(4, "ai.generateText", {"ai.telemetry.functionId": "cook", "ai.prompt": '{"prompt": "?"}'}, 3),
        scope="ai",
    )
    order, ask = one.runs[0].tool_calls()
    assert (order.status, order.error and order.error.message, order.fidelity) == (Status.ERROR, "closed", {})
    assert (ask.result, ask.run) == ("yes", one.runs[1].id)
    assert (one.runs[1].agent.name, one.runs[1].path) == ("cook", "root/cook#0")


def test_conversations_and_users_are_in_the_telemetrys_metadata() -> None:
    told_by = {"ai.telemetry.metadata.sessionId": "desk-7", "ai.telemetry.metadata.userId": "u-1"}
    first, second = (ai(n, "ai.generateText", told_by, trace=f"{n}" * 32) for n in (1, 2))
    (one,) = sessions(first, second, scope="ai")
    assert (one.key.kind, one.key.value, one.user_id, len(one.runs)) == ("conversation", "desk-7", "u-1", 2)


def test_a_run_of_version_7_answers_with_its_last_words_alone() -> None:
    parts = [{"type": "text", "content": "Here."}, ORDER, told("call_1", "served")["parts"][0]]
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}]),
    }
    one = session(span(1, "invoke_agent gpt-5", attributes), scope="gen_ai")
    assert messages(one, only_run(one).output) == [said("assistant", "Here.")]


def test_values_that_are_none_cost_nothing() -> None:
    odd: dict[str, Any] = {
        "ai.prompt.messages": "[",
        "ai.prompt.tools": "{}",
        "ai.response.toolCalls": "null",
        "ai.prompt.toolChoice": 5,
    }
    conversion = converted(request(ai(1, "ai.generateText.doGenerate", odd), ai(2, "ai.unknown", {}), scope="ai"))
    assert conversion.faults == ()


def test_a_failure_that_openinference_gave_to_the_whole_trace_is_only_the_failing_spans() -> None:
    """Its processor puts the status of a span that failed on all others; the AI SDK's own exception is on one."""
    failed = {"status": {"code": 2, "message": "no such city"}}
    raised = [{"name": "exception", "attributes": attribute_list({"exception.message": "no such city"})}]
    call = {
        "ai.operationId": "ai.generateText.doGenerate",
        "ai.response.finishReason": "stop",
        "ai.response.text": "Ho",
    }
    use = {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "look", "ai.toolCall.id": "t1"}
    spans = [
        {**span(1, "ai.generateText.doGenerate", {**call, "openinference.span.kind": "LLM"}), **failed},
        {**span(2, "ai.toolCall", {**use, "openinference.span.kind": "TOOL"}), **failed, "events": raised},
    ]
    (run,) = session(*spans, scope="ai").runs
    ends = [call.status for call in run.model_calls()], [call.status for call in run.tool_calls()]
    assert ends == ([Status.OK], [Status.ERROR])


def test_a_failure_that_openinference_gave_to_all_of_a_trace_of_version_7_is_only_the_failing_tools() -> None:
    """Steps, which it takes for model calls, and the run around them are not failed by it either."""
    failed = {"status": {"code": 2, "message": "no such city"}}
    raised = [{"name": "exception", "attributes": attribute_list({"exception.message": "no such city"})}]
    ended = {"gen_ai.response.finish_reasons": ["stop"], "openinference.span.kind": "LLM"}
    run = {**ended, "gen_ai.operation.name": "invoke_agent", "openinference.span.kind": "AGENT"}
    step = {"gen_ai.operation.name": "agent_step", "openinference.span.kind": "LLM"}
    use = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", "openinference.span.kind": "TOOL"}
    spans = [
        {**span(1, "invoke_agent gpt-5", run), **failed},
        {**span(2, "step 1", step, 1), **failed},
        {**chat(3, [said("user", "Soup?")], said("assistant", "No."), 2, also=ended), **failed},
        {**span(4, "execute_tool look", use, 2), **failed, "events": raised},
    ]
    one = only_run(session(*spans, scope="gen_ai"))
    ends = [call.status for call in one.model_calls()], [call.status for call in one.tool_calls()]
    assert (one.status, ends) == (Status.OK, ([Status.OK], [Status.ERROR]))


def test_what_the_sdk_says_itself_is_not_replaced_by_what_openinference_made_of_it() -> None:
    """Its processor writes reasoning as JSON text, and a run's tools' answers among the run's last words."""
    thought = {"type": "reasoning", "content": "Soup."}
    indexed = {
        "openinference.span.kind": "LLM",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": json.dumps(thought),
        "llm.output_messages.0.message.contents.0.message_content.type": "reasoning",
        "llm.output_messages.0.message.contents.0.message_content.text": json.dumps(thought),
        "llm.output_messages.0.message.tool_calls.0.tool_call.id": "call_1",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "order",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": json.dumps({"dish": "soup"}),
    }
    answer = {"role": "assistant", "parts": [thought, ORDER]}
    one = session(chat(1, [said("user", "Soup!")], answer, also=indexed), scope="gen_ai")
    (call,) = only_run(one).model_calls()
    assert messages(one, call.output) == [answer]


def test_what_was_broken_off_midway_never_finished() -> None:
    """Aborting a stream ends its spans with nothing told of an answer; up to version 6 the run's span alone is left."""
    run = {"ai.prompt": '{"prompt": "Soup!"}'}
    one = only_run(session(ai(1, "ai.streamText", run), scope="ai"))
    conventions = {"gen_ai.operation.name": "invoke_agent"}
    asked_for = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps([said("user", "Soup!")])}
    spans = [span(1, "invoke_agent gpt-5", conventions), span(2, "chat gpt-5", asked_for, 1)]
    other = only_run(session(*spans, scope="gen_ai"))
    (call,) = other.model_calls()
    assert (one.status, other.status, call.status) == (Status.UNFINISHED,) * 3
    assert one.ended_at is None


def test_instructions_that_version_7_tells_on_the_run_alone_are_those_of_its_calls() -> None:
    instructed = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "Serve."}]),
    }
    spans = [
        span(1, "invoke_agent gpt-5", instructed),
        span(2, "step 1", {"gen_ai.operation.name": "agent_step"}, 1),
        chat(3, [said("user", "Soup!")], said("assistant", "Here."), 2),
    ]
    one = session(*spans, scope="gen_ai")
    (call,) = only_run(one).model_calls()
    assert [message["role"] for message in messages(one, call.input)] == ["system", "user"]
    assert call.fidelity["instructions"] is Fidelity.RECONSTRUCTED
