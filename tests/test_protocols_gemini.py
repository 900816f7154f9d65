"""Gemini: names in both spellings, tools of Google's own, and the ends of streams."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from exchange_cases import events_of
from spanreel.model import Answer, Operation
from spanreel.protocols import gemini
from spanreel.protocols.residue import same

ASKED: dict[str, Any] = {
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "contents": [
        {
            "role": "user",
            "parts": [
                {"text": "What is it?"},
                {"inlineData": {"mimeType": "image/png", "data": "QUJD"}},
                {"fileData": {"mimeType": "video/mp4", "fileUri": "gs://b/v.mp4"}},
            ],
        },
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"some_name": 1}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"result": {"topP": 2}}}}]},
    ],
    "tools": [{"functionDeclarations": [{"name": "f", "description": "does"}]}],
    "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
    "generationConfig": {
        "topP": 0.5,
        "maxOutputTokens": 9,
        "stopSequences": ["x"],
        "thinkingConfig": {"thinkingLevel": "LOW"},
    },
}
NAMES = {
    "systemInstruction": "system_instruction",
    "inlineData": "inline_data",
    "mimeType": "mime_type",
    "fileData": "file_data",
    "fileUri": "file_uri",
    "functionCall": "function_call",
    "functionResponse": "function_response",
    "functionDeclarations": "function_declarations",
    "toolConfig": "tool_config",
    "functionCallingConfig": "function_calling_config",
    "generationConfig": "generation_config",
    "maxOutputTokens": "max_output_tokens",
    "stopSequences": "stop_sequences",
    "thinkingConfig": "thinking_config",
    "thinkingLevel": "thinking_level",
}


def with_underscores(value: Any) -> Any:
    """The value under Google's other names for the same."""
    if isinstance(value, list):
        return [with_underscores(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    return {NAMES.get(name, name): with_underscores(inner) for name, inner in value.items()}


def said(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Parts without what was kept of how they were written."""
    return [{name: value for name, value in part.items() if name != "provider_fields"} for part in parts]


def test_names_with_underscores_mean_the_same_and_are_written_again() -> None:
    asked = with_underscores(ASKED)
    body = json.dumps(asked).encode()
    request, plain = (gemini.read_request(one, Operation.CHAT) for one in (body, json.dumps(ASKED).encode()))
    assert [message["role"] for message in request.messages] == ["user", "assistant", "tool"]
    for message, expected in zip(request.messages, plain.messages, strict=True):
        assert said(message["parts"]) == said(expected["parts"])
    assert (request.instructions, request.settings, request.tools) == (plain.instructions, plain.settings, plain.tools)
    written = gemini.write_request(request)
    assert same(json.loads(written), asked)
    assert gemini.read_request(written, Operation.CHAT) == request
    request = deepcopy(request)
    request.messages[0]["parts"][1]["content"] = "REVG"
    assert b"QUJD" not in gemini.write_request(request)


@pytest.mark.parametrize(
    "asked",
    [
        {"contents": [{"parts": [{"inline_data": 1, "inlineData": {"data": "QQ=="}}]}]},
        {"contents": [], "generationConfig": {"topP": 1, "top_p": 2}, "generation_config": {"top_k": 1}},
        {"contents": [], "tools": {"function_declarations": 1}, "system_instruction": "text"},
    ],
)
def test_names_in_both_spellings_are_kept(asked: dict[str, Any]) -> None:
    request = gemini.read_request(json.dumps(asked).encode(), Operation.CHAT)
    assert same(json.loads(gemini.write_request(request)), asked)


def join(*contents: list[dict[str, Any]]) -> Answer:
    """A stream with these parts, joined; that it is split as it came is asserted."""
    chunks: list[dict[str, Any]] = [
        {"candidates": [{"content": {"role": "model", "parts": parts}}]} for parts in contents
    ]
    chunks[-1]["candidates"][0]["finishReason"] = "STOP"
    body = b"".join(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks)
    answer = gemini.join([(1.0, body)])
    again = gemini.split(answer)
    assert same(events_of(b"".join(piece for _, piece in again)), chunks)
    assert gemini.join(again) == answer
    return answer


def test_an_empty_text_at_the_end_of_a_stream_is_no_part() -> None:
    answer = join([{"functionCall": {"name": "f", "args": {}}}], [{"text": ""}])
    assert said(answer.messages[0]["parts"]) == [{"type": "tool_call", "name": "f", "arguments": {}}]
    answer = join([{"text": "one"}], [{"text": "", "thoughtSignature": "S"}])
    assert answer.messages[0]["parts"] == [
        {"type": "text", "content": "one", "provider_fields": {"thoughtSignature": "S"}}
    ]


def test_what_tools_of_googles_are_asked_and_give_is_the_providers() -> None:
    asked = {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {"q": 1}, "id": "t"}}
    gave = {"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "response": {"r": 1}, "id": "t"}}
    code = {"executableCode": {"language": "PYTHON", "code": "1"}}
    came = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}
    answer = join([asked], [gave, {"text": "x"}], [code], [came])
    assert [(part["type"], part.get("name"), part.get("id")) for part in answer.messages[0]["parts"]] == [
        ("server_tool_call", "GOOGLE_SEARCH_WEB", "t"),
        ("server_tool_call_response", None, "t"),
        ("text", None, None),
        ("server_tool_call", "code_execution", None),
        ("server_tool_call_response", None, None),
    ]
    odd = {"toolCall": {"type": "of its own", "id": "t"}}
    assert join([odd]).messages[0]["parts"] == [{"type": "other", "value": odd}]


@pytest.mark.parametrize("rest", [{}, {"candidates": []}, {"usageMetadata": {"promptTokenCount": 4}}])
def test_a_prompt_that_was_blocked_ended_by_a_content_filter(rest: dict[str, Any]) -> None:
    body = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "modelVersion": "g", **rest}
    answer = gemini.read_response(json.dumps(body).encode(), 200)
    assert answer.finish_reasons == ["content_filter"]
    written = gemini.write_response(answer)
    assert same(json.loads(written), body)
    assert gemini.read_response(written, 200) == answer

    streamed = gemini.join([(0.0, b"data: " + json.dumps(body).encode() + b"\r\n\r\n")])
    assert (streamed.finish_reasons, streamed.complete) == (["content_filter"], True)
    again = gemini.split(streamed)
    assert same(events_of(b"".join(piece for _, piece in again)), [body])
    assert gemini.join(again) == streamed


def test_feedback_on_a_prompt_that_was_answered_ends_nothing() -> None:
    body = {"promptFeedback": {"safetyRatings": []}, "candidates": [{"content": {"parts": [{"text": "x"}]}}]}
    assert gemini.read_response(json.dumps(body).encode(), 200).finish_reasons == []
