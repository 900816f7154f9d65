"""Messages, instructions and counts of other forms that stand under the conventions' names, as public reports show."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otlp_lines import BEGAN, GENAI, attribute_list, chat, only_run, said, session, span
from spanreel import conventions as names
from spanreel.model import Fidelity

ASKED = [said("user", "Weather?")]
ANSWERED = said("assistant", "Sunny.")
WORDS = [{"type": "text", "content": "Weather?"}]
CALL = {"type": "tool_call", "id": "c1", "name": "look", "arguments": {"city": "Rome"}}
TOLD = {"type": "tool_call_response", "id": "c1", "response": "25 degrees"}


def asked(messages: Any, answer: Any = ANSWERED, **also: Any) -> list[tuple[str, list[Any]]]:
    """What the only call of a span was asked, by role and parts."""
    attributes = {names.OPERATION: "chat", names.REQUEST_MODEL: "gpt-5", names.INPUT_MESSAGES: messages, **also}
    one = session(span(1, "chat gpt-5", {**attributes, names.OUTPUT_MESSAGES: json.dumps([answer])}), scope=GENAI)
    (call,) = only_run(one).model_calls()
    return [(one.messages[index].role, one.messages[index].parts) for index in call.input]


@pytest.mark.parametrize(
    "written",
    [
        "Weather?",
        json.dumps("Weather?"),
        json.dumps(["Weather?"]),
        json.dumps([{"content": "Weather?"}]),
        json.dumps([{"role": "user", "text": "Weather?"}]),
        json.dumps([{"role": "user", "content": {"type": "text", "text": "Weather?"}}]),
        json.dumps([{"role": "user", "parts": [{"type": "text", "text": "Weather?"}]}]),
        json.dumps([{"role": "user", "parts": [{"text": "Weather?"}]}]),
        json.dumps({"messages": [{"role": "user", "content": "Weather?"}]}),
        json.dumps([{"type": "human", "content": "Weather?"}]),
        [json.dumps({"role": "user", "content": "Weather?"})],
        [{"role": "user", "parts": [{"type": "text", "content": "Weather?"}]}],
    ],
)
def test_a_question_is_read_however_it_is_written(written: Any) -> None:
    assert asked(written) == [("user", WORDS)]


@pytest.mark.parametrize("lost", ["[REDACTED]", "<redacted>"])
def test_what_stands_for_lost_messages_is_no_question(lost: str) -> None:
    assert asked(lost) == []


@pytest.mark.parametrize(
    "rounds",
    [
        [
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {"city": "Rome"}}],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "25 degrees"}]},
        ],
        [
            {
                "role": "assistant",
                "content": [{"toolUse": {"toolUseId": "c1", "name": "look", "input": {"city": "Rome"}}}],
            },
            {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "25 degrees"}]}}]},
        ],
        [
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"city": "Rome"}'},
            {"type": "function_call_output", "call_id": "c1", "output": "25 degrees"},
        ],
        [
            {
                "role": "assistant",
                "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "look", "input": {"city": "Rome"}}],
            },
            {
                "role": "tool",
                "content": [
                    {"type": "tool-result", "toolCallId": "c1", "output": {"type": "text", "value": "25 degrees"}}
                ],
            },
        ],
        [
            {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "look", "args": {"city": "Rome"}}}]},
            {"role": "user", "parts": [{"functionResponse": {"id": "c1", "response": {"result": "25 degrees"}}}]},
        ],
    ],
    ids=["anthropic", "bedrock", "responses", "ai-sdk", "gemini"],
)
def test_a_providers_own_rounds_are_calls_and_answers_of_tools(rounds: list[dict[str, Any]]) -> None:
    """langfuse/langfuse#15426, BerriAI/litellm#6677, traceloop/openllmetry#4449: each writes its provider's blocks."""
    found = asked(json.dumps([{"role": "user", "content": "Weather?"}, *rounds]))
    assert found == [("user", WORDS), ("assistant", [CALL]), ("tool", [TOLD])]


def test_the_legacy_function_call_and_its_answer_are_a_tools() -> None:
    rounds = [
        {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": '{"city": "Rome"}'}},
        {"role": "function", "name": "look", "content": "25 degrees"},
    ]
    assert asked(json.dumps(rounds)) == [("assistant", [{**CALL, "id": None}]), ("tool", [{**TOLD, "id": None}])]


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
            {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "iVBORw0KGgo="},
        ),
        (
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
            {"type": "uri", "modality": "image", "uri": "https://example.org/a.png"},
        ),
        (
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
            {"type": "blob", "modality": "audio", "mime_type": "audio/wav", "content": "AAAA"},
        ),
        (
            {"type": "file", "file": {"file_id": "file-1"}},
            {"type": "file", "modality": "document", "file_id": "file-1"},
        ),
        (
            {"type": "file", "mediaType": "application/pdf", "data": "JVBERi0="},
            {"type": "blob", "modality": "document", "mime_type": "application/pdf", "content": "JVBERi0="},
        ),
    ],
)
def test_media_of_any_provider_are_blobs_links_and_files(block: dict[str, Any], part: dict[str, Any]) -> None:
    assert asked(json.dumps([{"role": "user", "content": [block]}])) == [("user", [part])]


@pytest.mark.parametrize(
    ("answer", "parts"),
    [
        ({"role": "assistant", "content": None, "refusal": "No."}, [{"type": "refusal", "content": "No."}]),
        (
            {"role": "assistant", "content": "Sunny.", "reasoning_content": "Hm."},
            [{"type": "reasoning", "content": "Hm."}, {"type": "text", "content": "Sunny."}],
        ),
    ],
)
def test_what_stands_beside_an_answers_content_is_told(answer: dict[str, Any], parts: list[Any]) -> None:
    one = session(chat(1, ASKED, answer), scope=GENAI)
    (call,) = only_run(one).model_calls()
    assert [one.messages[index].parts for index in call.output] == [parts]


def test_a_text_that_stands_for_the_answer_is_the_assistants() -> None:
    one = session(chat(1, ASKED, "Sunny."), scope=GENAI)
    (call,) = only_run(one).model_calls()
    (message,) = (one.messages[index] for index in call.output)
    assert (message.role, message.parts) == ("assistant", [{"type": "text", "content": "Sunny."}])


@pytest.mark.parametrize(
    "written",
    [
        "Be brief.",
        json.dumps(["Be brief."]),
        json.dumps([{"type": "text", "text": "Be brief."}]),
        json.dumps([{"type": "text", "content": "Be brief."}]),
        json.dumps([{"role": "system", "parts": [{"type": "text", "content": "Be brief."}]}]),
        json.dumps([{"role": "system", "content": "Be brief."}]),
        ["Be brief."],
    ],
)
def test_instructions_are_read_as_parts_as_texts_and_as_messages(written: Any) -> None:
    """langfuse/langfuse#15336: LiteLLM writes whole messages, others a text, and they came out as [object Object]."""
    found = asked(json.dumps(ASKED), **{names.SYSTEM_INSTRUCTIONS: written})
    assert found == [("system", [{"type": "text", "content": "Be brief."}]), ("user", WORDS)]


@pytest.mark.parametrize(
    "name",
    [
        "cache_read.input_tokens",
        "cache_read_input_tokens",
        "cache_read_tokens",
        "cached_input_tokens",
        "input_cached_tokens",
        "cached_tokens",
        "details.cache_read_tokens",
        "details.cache_read_input_tokens",
    ],
)
def test_cached_tokens_are_known_by_each_librarys_name(name: str) -> None:
    """langfuse/langfuse#14902 and #15411, mastra-ai/mastra#15962."""
    also = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 5, f"gen_ai.usage.{name}": 40}
    one = session(chat(1, ASKED, ANSWERED, also=also), scope=GENAI)
    assert one.usage.model_dump(exclude_none=True) == {"input_tokens": 100, "output_tokens": 5, "cache_read_tokens": 40}


def test_an_events_message_may_be_json() -> None:
    told = {"index": 0, "finish_reason": "stop", "message": json.dumps({"role": "assistant", "content": "Sunny."})}
    events = [
        {"timeUnixNano": str(BEGAN), "name": "gen_ai.user.message", "attributes": attribute_list({"content": "Hi"})},
        {"timeUnixNano": str(BEGAN), "name": "gen_ai.choice", "attributes": attribute_list(told)},
    ]
    one = session(chat(1, None, None, events=events), scope=GENAI)
    (call,) = only_run(one).model_calls()
    assert [one.messages[index].parts for index in call.output] == [[{"type": "text", "content": "Sunny."}]]


def test_an_item_of_the_responses_api_of_any_kind_is_a_call_or_its_answer() -> None:
    items = [
        {"type": "custom_tool_call", "call_id": "c1", "name": "look", "input": "Rome"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "25 degrees"},
    ]
    roles = [(role, [part["type"] for part in parts]) for role, parts in asked(json.dumps(items))]
    assert roles == [("assistant", ["tool_call"]), ("tool", ["tool_call_response"])]


def test_a_tools_answer_may_be_an_object_and_a_role_may_be_shouted() -> None:
    told = [{"role": "TOOL", "tool_call_id": "c1", "content": {"degrees": 25}}]
    assert asked(json.dumps(told)) == [("tool", [{**TOLD, "response": {"degrees": 25}}])]


@pytest.mark.parametrize(
    ("key", "written", "field"),
    [
        (names.INPUT_MESSAGES, json.dumps([{"role": "user", "content": "Weather?" * 9}])[:60], "input"),
        (names.INPUT_MESSAGES, "Weather?...[truncated]", "input"),
        (names.SYSTEM_INSTRUCTIONS, json.dumps([{"type": "text", "content": "Be brief." * 9}])[:60], "instructions"),
    ],
)
def test_what_a_limit_of_length_cut_is_marked_as_cut(key: str, written: str, field: str) -> None:
    """langfuse/langfuse#6517, triggerdotdev/trigger.dev#3620."""
    attributes = {names.OPERATION: "chat", names.REQUEST_MODEL: "gpt-5", names.INPUT_MESSAGES: json.dumps(ASKED)}
    one = session(span(1, "chat gpt-5", {**attributes, key: written}), scope=GENAI)
    (call,) = only_run(one).model_calls()
    assert call.fidelity[field] is Fidelity.TRUNCATED
    assert not one.replay.eligible
