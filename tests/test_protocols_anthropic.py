"""Anthropic messages, form by form: what each block is to us, and that it is written as it came."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import anthropic as sdk
import httpx2
import pytest

from exchange_cases import pieces_of
from spanreel.model import Answer, Error, ErrorCategory, Operation, Request, Usage
from spanreel.protocols import anthropic, openai_chat, provider_of, recognise
from spanreel.protocols.residue import same

ASK: dict[str, Any] = {"model": "claude", "max_tokens": 9, "messages": [{"role": "user", "content": "Go."}]}


def read(**more: Any) -> Request:
    """A request, read; that it is written as it came is asserted."""
    body = {**ASK, **more}
    request = anthropic.read_request(json.dumps(body).encode(), Operation.CHAT)
    assert same(json.loads(anthropic.write_request(request)), body)
    assert anthropic.read_request(anthropic.write_request(request), Operation.CHAT) == request
    return request


def read_content(*blocks: Any, role: str = "user") -> list[dict[str, Any]]:
    """Blocks of one message, as parts."""
    message = read(messages=[{"role": role, "content": list(blocks)}]).messages[0]
    parts: list[dict[str, Any]] = message["parts"]
    return parts


def message(*content: Any, **more: Any) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-served",
        "content": list(content),
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 5},
        **more,
    }


def answer_of(*content: Any, **more: Any) -> Answer:
    """A plain answer, read; that it is written as it came is asserted."""
    body = message(*content, **more)
    answer = anthropic.read_response(json.dumps(body).encode(), 200)
    assert same(json.loads(anthropic.write_response(answer)), body)
    return answer


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def deltas(index: int, block: dict[str, Any], *pieces: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of one block."""
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *({"type": "content_block_delta", "index": index, "delta": piece} for piece in pieces),
        {"type": "content_block_stop", "index": index},
    ]


START: dict[str, Any] = {
    "type": "message_start",
    "message": message(stop_reason=None, usage={"input_tokens": 3, "output_tokens": 1}),
}
END: list[dict[str, Any]] = [
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 40},
    },
    {"type": "message_stop"},
]
SEARCH = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [{"type": "web_search_result", "url": "https://x.test", "title": "X", "encrypted_content": "enc"}],
}
CITATION = {"type": "web_search_result_location", "url": "https://x.test", "cited_text": "It is.", "title": "X"}
STREAM: list[dict[str, Any]] = [
    START,
    {"type": "ping"},
    *deltas(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "Let me "},
        {"type": "thinking_delta", "thinking": "think."},
        {"type": "signature_delta", "signature": "EqQBsig=="},
    ),
    *deltas(1, {"type": "redacted_thinking", "data": "EmwKAhgB"}),
    *deltas(
        2,
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        {"type": "input_json_delta", "partial_json": ""},
        {"type": "input_json_delta", "partial_json": '{"query"'},
        {"type": "input_json_delta", "partial_json": ': "x"}'},
    ),
    *deltas(3, SEARCH),
    *deltas(
        4,
        {"type": "text", "text": "", "citations": []},
        {"type": "citations_delta", "citation": CITATION},
        {"type": "text_delta", "text": "It is"},
        {"type": "text_delta", "text": " so."},
    ),
    *deltas(
        5,
        {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {}, "caller": {"type": "direct"}},
        {"type": "input_json_delta", "partial_json": '{"a":1,'},
        {"type": "input_json_delta", "partial_json": '"b":2}'},
    ),
    *deltas(
        6,
        {"type": "tool_use", "id": "toolu_2", "name": "add", "input": {}},
        {"type": "input_json_delta", "partial_json": '{ "a" : 3 }'},
    ),
    *deltas(7, {"type": "tool_use", "id": "toolu_3", "name": "now", "input": {}}),
    *END,
]


# -- requests ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("block", "part"),
    [
        ({"type": "text", "text": "hi"}, {"type": "text", "content": "hi"}),
        (
            {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}},
            {"type": "text", "content": "hi", "provider_fields": {"cache_control": {"type": "ephemeral"}}},
        ),
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}},
            {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "QUJD"},
        ),
        (
            {"type": "image", "source": {"type": "url", "url": "https://x.test/a.png"}},
            {"type": "uri", "modality": "image", "uri": "https://x.test/a.png"},
        ),
        (
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "QUJD"}},
            {"type": "blob", "modality": "document", "mime_type": "application/pdf", "content": "QUJD"},
        ),
        (
            {"type": "document", "title": "T", "source": {"type": "file", "file_id": "file_1"}},
            {"type": "file", "modality": "document", "file_id": "file_1", "provider_fields": {"title": "T"}},
        ),
        (
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Words."}},
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Words."}},
        ),
        ({"type": "container_upload", "file_id": "f"}, {"type": "container_upload", "file_id": "f"}),
        ({"type": "blob", "of": "another kind"}, {"type": "other", "value": {"type": "blob", "of": "another kind"}}),
        ("no block", {"type": "other", "value": "no block"}),
    ],
)
def test_a_block_of_the_user_is_a_part(block: Any, part: dict[str, Any]) -> None:
    assert read_content(block) == [part]


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (
            {"type": "thinking", "thinking": "Hm.", "signature": "sig"},
            {"type": "reasoning", "content": "Hm.", "provider_fields": {"signature": "sig"}},
        ),
        (
            {"type": "redacted_thinking", "data": "enc"},
            {"type": "reasoning", "content": "", "provider_fields": {"type": "redacted_thinking", "data": "enc"}},
        ),
        (
            {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 1}},
            {"type": "tool_call", "id": "toolu_1", "name": "add", "arguments": {"a": 1}},
        ),
        (
            {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "echo", "server_name": "s", "input": {"a": 1}},
            {
                "type": "server_tool_call",
                "id": "mcptoolu_1",
                "name": "echo",
                "server_tool_call": {"type": "mcp_tool_use", "input": {"a": 1}},
                "provider_fields": {"server_name": "s"},
            },
        ),
        (
            {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": False, "content": "out"},
            {
                "type": "server_tool_call_response",
                "id": "mcptoolu_1",
                "server_tool_call_response": {"type": "mcp_tool_result", "content": "out"},
                "provider_fields": {"is_error": False},
            },
        ),
        (
            {
                "type": "code_execution_tool_result",
                "tool_use_id": "s",
                "content": {"type": "code_execution_result", "stdout": "4"},
            },
            {
                "type": "server_tool_call_response",
                "id": "s",
                "server_tool_call_response": {
                    "type": "code_execution_tool_result",
                    "content": {"type": "code_execution_result", "stdout": "4"},
                },
            },
        ),
    ],
)
def test_a_block_of_the_assistant_is_a_part(block: Any, part: dict[str, Any]) -> None:
    assert read_content(block, role="assistant") == [part]
    assert list(answer_of(block).messages[0]["parts"]) == [part]


def test_results_of_tools_are_the_tools_message_and_stand_in_the_users() -> None:
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"}
    failed = {"type": "tool_result", "tool_use_id": "toolu_2", "content": [{"type": "text", "text": "no"}]}
    empty = {"type": "tool_result", "tool_use_id": "toolu_3"}
    request = read(messages=[{"role": "user", "content": [result, {**failed, "is_error": True}, empty]}])
    assert request.messages == (
        {
            "role": "tool",
            "parts": [
                {"type": "tool_call_response", "id": "toolu_1", "response": "sunny"},
                {
                    "type": "tool_call_response",
                    "id": "toolu_2",
                    "response": [{"type": "text", "text": "no"}],
                    "provider_fields": {"is_error": True},
                },
                {
                    "type": "tool_call_response",
                    "id": "toolu_3",
                    "response": None,
                    "provider_fields": {"$absent": ["content"]},
                },
            ],
        },
    )


def test_a_user_who_says_more_beside_results_of_tools_stays_the_user() -> None:
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"}
    request = read(messages=[{"role": "user", "content": [result, {"type": "text", "text": "Go on."}]}])
    assert request.messages[0]["role"] == "user"
    assert [part["type"] for part in request.messages[0]["parts"]] == ["tool_call_response", "text"]


def test_a_result_that_was_put_in_is_written() -> None:
    request = read(messages=[{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": 1}]}])
    parts = [{**request.messages[0]["parts"][0], "response": {"now": 2}}]
    changed = replace(request, messages=({**request.messages[0], "parts": parts},))
    written = json.loads(anthropic.write_request(changed))
    assert written["messages"][0]["content"] == [{"type": "tool_result", "tool_use_id": "t", "content": '{"now":2}'}]


@pytest.mark.parametrize(
    ("system", "instructions"),
    [
        ("Be brief.", ({"type": "text", "content": "Be brief."},)),
        ([{"type": "text", "text": "Be brief."}], ({"type": "text", "content": "Be brief."},)),
        ([], ()),
        (
            [{"type": "text", "text": "A"}, {"type": "text", "text": "B", "cache_control": {"type": "ephemeral"}}],
            (
                {"type": "text", "content": "A"},
                {"type": "text", "content": "B", "provider_fields": {"cache_control": {"type": "ephemeral"}}},
            ),
        ),
    ],
)
def test_the_system_text_is_instructions(system: Any, instructions: Any) -> None:
    assert read(system=system).instructions == instructions


def test_settings_have_our_names_and_all_else_is_kept() -> None:
    request = read(
        temperature=0.5,
        top_k=3,
        top_p=1,
        stop_sequences=["x"],
        stream=True,
        tool_choice={"type": "tool", "name": "add", "disable_parallel_tool_use": True},
        thinking={"type": "enabled", "budget_tokens": 1024},
        metadata={"user_id": "u"},
        container="container_1",
        context_management={"edits": []},
        mcp_servers=[{"type": "url", "url": "https://x.test", "name": "s"}],
        service_tier="auto",
        output_config={"effort": "low", "format": {"type": "json_schema", "schema": {}}, "task_budget": 1},
        thread={"type": "continue", "previous_message_id": "msg_0"},
    )
    assert request.stream
    assert request.settings == {
        "temperature": 0.5,
        "top_k": 3,
        "top_p": 1,
        "max_tokens": 9,
        "stop_sequences": ["x"],
        "tool_choice": {"type": "tool", "name": "add", "disable_parallel_tool_use": True},
        "service_tier": "auto",
        "reasoning_effort": "low",
        "response_format": {"type": "json_schema", "schema": {}},
        "previous_response_id": "msg_0",
    }
    assert request.provider_fields == {
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "metadata": {"user_id": "u"},
        "container": "container_1",
        "context_management": {"edits": []},
        "mcp_servers": [{"type": "url", "url": "https://x.test", "name": "s"}],
        "output_config": {"task_budget": 1},
        "thread": {"type": "continue"},
    }


def test_tools_are_functions_and_those_of_the_server_stay_as_they_came() -> None:
    schema = {"type": "object", "properties": {}}
    request = read(
        tools=[
            {"name": "add", "description": "Adds.", "input_schema": schema, "strict": True},
            {"type": "custom", "name": "sub", "input_schema": schema},
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 2},
            {"type": "function", "name": "of another provider"},
        ]
    )
    assert request.tools == (
        {
            "type": "function",
            "name": "add",
            "description": "Adds.",
            "parameters": schema,
            "provider_fields": {"strict": True},
        },
        {"type": "function", "name": "sub", "parameters": schema, "provider_fields": {"type": "custom"}},
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 2},
        {"type": "other", "value": {"type": "function", "name": "of another provider"}},
    )


@pytest.mark.parametrize("body", ["[]", "{", '{"messages": "none"}', '{"messages": [1]}', "{}"])
def test_what_is_no_request_is_refused_with_its_place(body: str) -> None:
    with pytest.raises(ValueError, match="anthropic_messages request"):
        anthropic.read_request(body.encode(), Operation.CHAT)


def test_a_conversation_of_another_protocol_can_be_written() -> None:
    asked = {"type": "tool_call", "id": "call_1", "name": "add", "arguments": '{"a": 1}'}
    searched = {"type": "server_tool_call", "id": "ws_1", "name": "web_search", "server_tool_call": {"query": "x"}}
    request = Request(
        Operation.CHAT,
        "claude",
        (
            {"role": "user", "parts": [{"type": "text", "content": "Go."}]},
            {"role": "assistant", "parts": [asked, searched, {"type": "refusal", "content": "No."}]},
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_1", "response": None}]},
        ),
    )
    assert json.loads(anthropic.write_request(request))["messages"] == [
        {"role": "user", "content": "Go."},
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "call_1", "name": "add", "input": {"a": 1}},
                {"type": "server_tool_use", "id": "ws_1", "name": "web_search", "input": {"query": "x"}},
                {"type": "text", "text": "No."},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": ""}]},
    ]


# -- answers -----------------------------------------------------------------------------------------------------------


def test_input_tokens_are_with_what_the_cache_read_and_wrote() -> None:
    usage = {
        "input_tokens": 3,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 20,
        "cache_creation": {"ephemeral_5m_input_tokens": 20},
        "output_tokens": 7,
        "output_tokens_details": {"thinking_tokens": 4},
        "service_tier": "standard",
    }
    assert answer_of(usage=usage).usage == Usage(123, 7, 100, 20, 4)
    assert answer_of(usage={"output_tokens": 7}).usage == Usage(None, 7)


# jeremychone/rust-genai#258, envoyproxy/ai-gateway#2290, mcp-use/mcp-use#2127: which event counts what differs.
@pytest.mark.parametrize(
    ("begun", "ended", "counted"),
    [
        (
            {"input_tokens": 0, "output_tokens": 0},
            {"input_tokens": 45, "cache_creation_input_tokens": 5},
            (50, 0, None, 5),
        ),
        (
            {"input_tokens": 50, "output_tokens": 1, "cache_read_input_tokens": 7},
            {"input_tokens": 0, "output_tokens": 9, "cache_read_input_tokens": 0},
            (57, 9, 7, None),
        ),
        ({"input_tokens": 50, "output_tokens": 1}, {"input_tokens": None, "output_tokens": 9}, (50, 9, None, None)),
        (None, {"input_tokens": 50, "output_tokens": 9}, (50, 9, None, None)),
    ],
)
def test_what_either_event_counted_is_counted(begun: Any, ended: Any, counted: tuple[int | None, ...]) -> None:
    message: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
    if begun is not None:
        message["usage"] = begun
    delta = {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": ended}
    answer = joined({"type": "message_start", "message": message}, delta, {"type": "message_stop"})
    assert answer.usage == Usage(*counted)


def test_usage_without_its_provider_is_written_as_anthropics() -> None:
    written = json.loads(anthropic.write_response(Answer("msg_1", "m", usage=Usage(123, 7, 100, 20, 4))))
    assert written["usage"] == {
        "input_tokens": 3,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 20,
        "output_tokens": 7,
        "output_tokens_details": {"thinking_tokens": 4},
    }


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool_call"),
        ("refusal", "content_filter"),
        ("pause_turn", "pause_turn"),
        ("compaction", "compaction"),
    ],
)
def test_stop_reasons(raw: str, reason: str) -> None:
    answer = answer_of({"type": "text", "text": "a"}, stop_reason=raw)
    assert answer.finish_reasons == [reason]
    bare = replace(answer, provider_fields={})
    assert anthropic.read_response(anthropic.write_response(bare), 200).finish_reasons == [reason]


def test_a_refusal_keeps_its_details() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "no"}
    answer = answer_of(stop_reason="refusal", stop_details=details)
    assert answer.provider_fields["stop_details"] == details
    changed = replace(answer, messages=({**answer.messages[0], "finish_reason": "stop"},))
    assert json.loads(anthropic.write_response(changed))["stop_reason"] == "end_turn"


def test_a_reason_that_was_put_in_is_written() -> None:
    answer = answer_of({"type": "text", "text": "a"}, stop_reason="stop_sequence", stop_sequence="a")
    cut = replace(answer, messages=({**answer.messages[0], "finish_reason": "length"},))
    assert json.loads(anthropic.write_response(cut))["stop_reason"] == "max_tokens"


def test_a_call_without_arguments_has_an_empty_input() -> None:
    call = {"type": "tool_call", "id": "t", "name": "now", "arguments": None}
    answer = Answer(messages=({"role": "assistant", "parts": [call]},))
    body = json.loads(anthropic.write_response(answer))
    assert body["content"] == [{"type": "tool_use", "id": "t", "name": "now", "input": {}}]
    assert body["stop_reason"] == "tool_use"


def test_arguments_that_were_put_in_are_written() -> None:
    answer = answer_of({"type": "tool_use", "id": "t", "name": "add", "input": "text"}, stop_reason="tool_use")
    part = {**answer.messages[0]["parts"][0], "arguments": {"a": 2}}
    changed = replace(answer, messages=({**answer.messages[0], "parts": [part]},))
    assert json.loads(anthropic.write_response(changed))["content"][0]["input"] == {"a": 2}


def test_a_failure_says_what_the_provider_said() -> None:
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "req_1"}
    answer = anthropic.read_response(json.dumps(body).encode(), 529)
    assert answer.error == Error(ErrorCategory.MODEL, "overloaded_error", "Overloaded")
    assert json.loads(anthropic.write_response(answer)) == body
    scripted = Answer(status=429, error=Error(ErrorCategory.MODEL, "rate_limit_exceeded", "slow"))
    written = json.loads(anthropic.write_response(scripted))
    assert written == {"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}
    assert anthropic.split(scripted)[0][1] == anthropic.write_response(scripted)


def test_an_answer_that_is_html_is_kept() -> None:
    answer = anthropic.read_response(b"<html>bad gateway</html>", 502)
    assert answer.error == Error(ErrorCategory.MODEL, "502", "<html>bad gateway</html>")
    assert anthropic.write_response(answer) == b"<html>bad gateway</html>"


# -- streams -----------------------------------------------------------------------------------------------------------


def joined(*events: dict[str, Any]) -> Answer:
    """A stream, joined; that it is split as it came is asserted."""
    body = sse(*events)
    answer = anthropic.join(pieces_of(body))
    again = anthropic.split(answer)
    assert b"".join(piece for _, piece in again).replace(b" ", b"") == body.replace(b" ", b"")
    assert anthropic.join(again) == answer
    return answer


def test_a_stream_with_everything_in_it() -> None:
    answer = joined(*STREAM)
    assert answer.complete
    assert answer.finish_reasons == ["tool_call"]
    assert answer.usage == Usage(3, 40)
    assert answer.messages[0]["parts"] == [
        {"type": "reasoning", "content": "Let me think.", "provider_fields": {"signature": "EqQBsig=="}},
        {"type": "reasoning", "content": "", "provider_fields": {"type": "redacted_thinking", "data": "EmwKAhgB"}},
        {
            "type": "server_tool_call",
            "id": "srvtoolu_1",
            "name": "web_search",
            "server_tool_call": {"type": "server_tool_use", "input": {"query": "x"}},
        },
        {
            "type": "server_tool_call_response",
            "id": "srvtoolu_1",
            "server_tool_call_response": {"type": "web_search_tool_result", "content": SEARCH["content"]},
        },
        {"type": "text", "content": "It is so.", "provider_fields": {"citations": [CITATION]}},
        {
            "type": "tool_call",
            "id": "toolu_1",
            "name": "add",
            "arguments": {"a": 1, "b": 2},
            "provider_fields": {"caller": {"type": "direct"}},
        },
        {"type": "tool_call", "id": "toolu_2", "name": "add", "arguments": {"a": 3}},
        {"type": "tool_call", "id": "toolu_3", "name": "now", "arguments": {}},
    ]


def test_chunks_hold_nothing_of_what_was_said() -> None:
    chunks = json.dumps(joined(*STREAM[:-12]).chunks)
    for said in ("Let me", "EqQB", "EmwK", "query", "x.test", "It is", "encrypted"):
        assert said not in chunks


def test_what_was_redacted_since_is_redacted_in_the_stream_too() -> None:
    answer = joined(*STREAM)
    parts = [dict(part) for part in answer.messages[0]["parts"]]
    parts[4]["content"] = "[redacted]"
    parts[5]["arguments"] = {"a": 7, "b": 2}
    changed = replace(answer, messages=({**answer.messages[0], "parts": parts},))
    again = anthropic.join(anthropic.split(changed))
    assert again.messages == changed.messages
    assert [chunk[:2] for chunk in again.chunks] == [chunk[:2] for chunk in answer.chunks]


def test_an_error_in_the_middle_of_a_stream_is_its_end() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "req_1"}
    answer = joined(START, *deltas(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Hel"})[:2], error)
    assert answer.error == Error(ErrorCategory.MODEL, "overloaded_error", "Overloaded")
    assert answer.status == 200
    assert answer.complete
    assert answer.messages[0]["parts"] == [{"type": "text", "content": "Hel"}]
    synthesised = b"".join(piece for _, piece in anthropic.split(replace(answer, chunks=())))
    assert synthesised.endswith(
        b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
    )
    assert joined(error).error == answer.error


def test_a_stream_cut_off_in_a_tools_input_keeps_its_text() -> None:
    begun = deltas(0, {"type": "tool_use", "id": "t", "name": "add", "input": {}}, {"type": "input_json_delta"})[:1]
    piece = {"type": "input_json_delta", "partial_json": '{"a": 1, "b'}
    answer = joined(START, *begun, {"type": "content_block_delta", "index": 0, "delta": piece})
    assert not answer.complete
    assert answer.messages[0]["parts"][0]["arguments"] == '{"a": 1, "b'
    bare = replace(answer, chunks=())
    assert anthropic.join(anthropic.split(bare)).messages[0]["parts"] == answer.messages[0]["parts"]


def test_what_comes_with_the_end_of_a_message_is_part_of_it() -> None:
    end = {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None, "container": {"id": "c", "expires_at": "t"}},
        "usage": {"output_tokens": 9, "server_tool_use": {"web_search_requests": 1}},
        "context_management": {"applied_edits": []},
    }
    answer = joined(START, end, {"type": "message_stop"})
    assert answer.provider_fields["container"] == {"id": "c", "expires_at": "t"}
    assert answer.provider_fields["context_management"] == {"applied_edits": []}
    assert answer.provider_fields["usage"] == {"server_tool_use": {"web_search_requests": 1}}
    synthesised = anthropic.join(anthropic.split(replace(answer, chunks=())))
    assert replace(synthesised, chunks=()) == replace(answer, chunks=())


def test_a_compaction_comes_in_one_delta() -> None:
    delta = {"type": "compaction_delta", "content": "The summary.", "encrypted_content": "enc"}
    block = {"type": "compaction", "content": None, "encrypted_content": None}
    answer = joined(START, *deltas(0, block, delta), *END)
    assert answer.messages[0]["parts"] == [
        {"type": "compaction", "content": "The summary.", "encrypted_content": "enc"}
    ]
    assert "summary" not in json.dumps(answer.chunks)
    synthesised = anthropic.join(anthropic.split(replace(answer, chunks=())))
    assert synthesised.messages == answer.messages


def test_events_and_deltas_of_no_known_kind_are_kept() -> None:
    answer = joined(
        START,
        {"type": "something_new", "index": 0, "of": "note"},
        *deltas(0, {"type": "hologram", "frames": 3}, {"type": "frame_delta", "frame": "f1"}),
        {"type": "content_block_delta", "index": 9, "delta": {"type": "text_delta", "text": "lost"}},
        *END,
    )
    assert answer.messages[0]["parts"] == [{"type": "hologram", "frames": 3}]


def test_events_of_an_odd_form_are_kept() -> None:
    delta = {"type": "content_block_delta", "index": 0}
    answer = joined(
        {"type": "message_start", "message": "none"},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking"}},
        {**delta, "delta": {"type": "signature_delta", "signature": "one"}},
        {**delta, "delta": {"type": "signature_delta", "signature": "two"}},
        {**delta, "delta": {"type": "citations_delta", "citation": 1}},
        {**delta, "delta": {"type": "citations_delta", "citation": {"cited": "x"}}},
        {**delta, "delta": {"type": "compaction_delta", "content": "c"}},
        {**delta, "delta": {"type": "text_delta", "text": 5}},
        {**delta, "delta": "none"},
        {"type": "content_block_start", "index": 1, "content_block": "no block"},
        {"type": "message_delta", "delta": None, "usage": 3},
        {"type": "error", "error": "the text of it"},
        {"type": "error"},
    )
    assert answer.error is not None
    assert answer.error.message == "the text of it"
    parts = answer.messages[0]["parts"]
    assert parts[0] == {"type": "thinking", "signature": "two", "citations": [1, {"cited": "x"}], "content": "c"}
    assert parts[1] == {"type": "other", "value": {"type": "other", "value": "no block"}}


def test_a_stream_whose_answer_has_lost_its_parts_is_made_up() -> None:
    answer = joined(*STREAM)
    for parts in ([], [{"type": "other", "value": "no block"}], [{"type": "text", "content": "Short."}]):
        changed = replace(answer, messages=({**answer.messages[0], "parts": parts},))
        assert anthropic.join(anthropic.split(changed)).response_id == "msg_1"


def test_an_answer_of_no_known_form_is_kept() -> None:
    body = {"id": 1, "content": "text", "usage": None, "error": {"type": "x", "message": "y"}}
    answer = anthropic.read_response(json.dumps(body).encode(), 200)
    assert answer.messages == ()
    assert answer.error == Error(ErrorCategory.MODEL, "x", "y")
    assert json.loads(anthropic.write_response(answer)) == body
    odd = [
        {"type": 5},
        {"type": "image", "source": "none"},
        {"type": "image", "source": {"type": "new"}},
        {"type": "server_tool_use", "id": "s", "name": "n"},
    ]
    assert [part["type"] for part in answer_of(*odd).messages[0]["parts"]] == [
        "other",
        "image",
        "image",
        "server_tool_call",
    ]


def test_lines_that_are_no_event_of_ours_are_kept() -> None:
    body = b": a comment\n\nevent: message_start\ndata: not json\n\ndata: [DONE]\n\n" + sse(START, *END)
    answer = anthropic.join(pieces_of(body))
    assert answer.complete
    assert b"".join(piece for _, piece in anthropic.split(answer)).startswith(
        b": a comment\n\nevent: message_start\ndata: not json\n\ndata: [DONE]\n\n"
    )
    with pytest.raises(ValueError, match="holds no event"):
        anthropic.join([(0.0, b"\n\n")])


def test_chunks_that_are_none_of_ours_are_left_aside() -> None:
    answer = replace(joined(*STREAM), chunks=([0.0, 1, 2],))
    assert anthropic.join(anthropic.split(answer)).messages == answer.messages


def test_the_sdk_reads_a_stream_with_everything_in_it_as_it_came_and_as_it_is_written() -> None:
    answer = joined(*STREAM)
    split = b"".join(piece for _, piece in anthropic.split(answer))
    without_chunks = b"".join(piece for _, piece in anthropic.split(replace(answer, chunks=())))
    native = sdk_message(sse(*STREAM))
    assert sdk_message(split) == native
    assert sdk_message(without_chunks) == native


def sdk_message(body: bytes) -> dict[str, Any]:
    headers = {"content-type": "text/event-stream"}
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, content=body, headers=headers))
    client = sdk.Anthropic(api_key="k", base_url="http://model.test", http_client=httpx2.Client(transport=transport))
    with client.messages.stream(model="claude", max_tokens=9, messages=[{"role": "user", "content": "Go."}]) as stream:
        return stream.get_final_message().to_dict()


# -- who speaks it -----------------------------------------------------------------------------------------------------

VERTEX = "/v1/projects/p/locations/l/publishers/anthropic/models/claude-sonnet-4"


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/v1/messages", "/proxy/anthropic/v1/messages"])
def test_messages_are_recognised(path: str) -> None:
    assert recognise("POST", path) == (anthropic, Operation.CHAT)


@pytest.mark.parametrize("verb", ["rawPredict", "streamRawPredict"])
def test_claude_on_vertex_is_recognised_and_its_neighbours_are_not(verb: str) -> None:
    assert recognise("POST", f"{VERTEX}:{verb}") == (anthropic, Operation.CHAT)
    assert recognise("POST", f"{VERTEX}:{verb}".replace("anthropic", "mistralai")) is None
    assert recognise("POST", f"{VERTEX}:predict") is None


@pytest.mark.parametrize("path", ["/v1/messages/count_tokens", "/v1/messages/batches", "/v1/threads/t/messages"])
def test_what_is_no_message_is_not(path: str) -> None:
    assert recognise("POST", path) is None


@pytest.mark.parametrize(
    ("host", "provider"),
    [
        ("api.anthropic.com", "anthropic"),
        ("127.0.0.1:8000", "anthropic"),
        ("us-east5-aiplatform.googleapis.com", "gcp.vertex_ai"),
        ("openrouter.ai", "openrouter"),
    ],
)
def test_the_host_says_whose_claude_it_is(host: str, provider: str) -> None:
    assert provider_of(host, anthropic) == provider


def test_an_answer_of_openai_can_be_given_to_a_client_of_anthropic() -> None:
    body = {
        "id": "c",
        "model": "gpt",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hello there."}}],
        "usage": {"prompt_tokens": 4, "completion_tokens": 2},
    }
    read = openai_chat.read_response(json.dumps(body).encode(), 200)
    bare = Answer(read.response_id, read.model, read.messages, read.usage)
    message = sdk_message(b"".join(piece for _, piece in anthropic.split(bare)))
    assert message["content"] == [{"type": "text", "text": "Hello there."}]
    assert message["usage"]["output_tokens"] == 2
