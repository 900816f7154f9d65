"""Bedrock's Converse, and the encoding of its streams."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from spanreel.model import Answer, Error, ErrorCategory, Operation, Request, Usage
from spanreel.protocols import bedrock, recognise
from spanreel.protocols.frames import read_frames, write_frame

USED = {"toolUseId": "t1", "name": "add", "input": {"a": 1}}
HEADERS = ((":event-type", "x"), (":content-type", "application/json"), (":message-type", "event"))


def read(**body: Any) -> Request:
    """Read a request, and check that it is written as it was."""
    request = bedrock.read_request(json.dumps(body).encode(), Operation.CHAT)
    assert json.loads(bedrock.write_request(request)) == body
    return request


def event(kind: str, sort: str = "event", /, **payload: Any) -> bytes:
    """One frame of a stream."""
    headers = ((f":{sort}-type", kind), (":content-type", "application/json"), (":message-type", sort))
    return write_frame(headers, json.dumps(payload, separators=(",", ":")).encode())


def block(index: int, *deltas: Any, **start: Any) -> list[bytes]:
    """The frames of one block."""
    begun = [event("contentBlockStart", start=start, contentBlockIndex=index)] if start else []
    pieces = [event("contentBlockDelta", delta=delta, contentBlockIndex=index, p="ab") for delta in deltas]
    return [*begun, *pieces, event("contentBlockStop", contentBlockIndex=index)]


def join(*frames: bytes) -> Answer:
    """A stream, joined; that it is split as it came is asserted."""
    answer = bedrock.join([(float(number), frame) for number, frame in enumerate(frames)])
    again = bedrock.split(answer)
    assert [piece for _, piece in again] == list(frames)
    assert bedrock.join(again) == answer
    return answer


def test_a_request_is_read_whole() -> None:
    request = read(
        system=[{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
        messages=[
            {"role": "user", "content": [{"text": "Add."}, {"image": {"format": "png", "source": {"bytes": "AA=="}}}]},
            {"role": "assistant", "content": [{"toolUse": USED}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "t1", "content": [{"json": {"sum": 1}}]}}]},
        ],
        inferenceConfig={"temperature": 0.5, "maxTokens": 9, "topP": 1, "stopSequences": ["."]},
        toolConfig={
            "tools": [
                {"toolSpec": {"name": "add", "description": "Adds.", "inputSchema": {"json": {"type": "object"}}}},
                {"cachePoint": {"type": "default"}},
            ],
            "toolChoice": {"auto": {}},
        },
        additionalModelRequestFields={"top_k": 3},
    )
    assert [(message["role"], [part["type"] for part in message["parts"]]) for message in request.messages] == [
        ("user", ["text", "blob"]),
        ("assistant", ["tool_call"]),
        ("tool", ["tool_call_response"]),
    ]
    assert request.messages[0]["parts"][1]["mime_type"] == "image/png"
    assert request.tools[0] == {
        "type": "function",
        "name": "add",
        "description": "Adds.",
        "parameters": {"type": "object"},
    }
    assert request.settings == {
        "temperature": 0.5,
        "max_tokens": 9,
        "top_p": 1,
        "stop_sequences": ["."],
        "tool_choice": {"auto": {}},
    }
    assert request.instructions[0] == {"type": "text", "content": "Be brief."}


def test_a_conversation_of_another_protocol_is_written() -> None:
    messages = (
        {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "t", "name": "add", "arguments": '{"a":1}'}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "t", "response": {"sum": 1}}]},
    )
    written = json.loads(bedrock.write_request(Request(Operation.CHAT, "m", messages)))
    assert written == {
        "messages": [
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "add", "input": {"a": 1}}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "t", "content": [{"text": '{"sum":1}'}]}}]},
        ],
        "system": [{"text": "Be brief."}],
    }


@pytest.mark.parametrize("body", [b"[]", b"{}", b'{"messages":[1]}', b'{"messages":[{"content":"x"}]}'])
def test_what_is_no_request_is_refused_with_its_place(body: bytes) -> None:
    with pytest.raises(ValueError, match="bedrock_converse request"):
        bedrock.read_request(body, Operation.CHAT)


def test_an_answer_is_read_whole_and_its_input_is_with_what_the_cache_read_and_wrote() -> None:
    usage = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 1115}
    body = {
        "output": {"message": {"role": "assistant", "content": [{"text": "Well."}, {"toolUse": USED}]}},
        "stopReason": "tool_use",
        "usage": {**usage, "cacheReadInputTokens": 1000, "cacheWriteInputTokens": 100},
        "metrics": {"latencyMs": 3},
    }
    answer = bedrock.read_response(json.dumps(body).encode(), 200)
    assert answer.finish_reasons == ["tool_call"]
    assert answer.usage == Usage(1110, 5, cache_read_tokens=1000, cache_write_tokens=100)
    assert [part["type"] for part in answer.messages[0]["parts"]] == ["text", "tool_call"]
    assert json.loads(bedrock.write_response(answer)) == body
    reason = replace(answer, messages=({**answer.messages[0], "finish_reason": "length"},))
    assert json.loads(bedrock.write_response(reason))["stopReason"] == "max_tokens"


def test_a_failure_says_what_the_provider_said() -> None:
    answer = bedrock.read_response(b'{"message":"no such model"}', 400)
    assert answer.error == Error(ErrorCategory.MODEL, "400", "no such model")
    assert json.loads(bedrock.write_response(answer)) == {"message": "no such model"}


def test_a_stream_with_everything_in_it() -> None:
    answer = join(
        event("messageStart", role="assistant", p="x"),
        *block(0, {"reasoningContent": {"text": "Hm, "}}, {"reasoningContent": {"text": "so."}}),
        *block(1, {"text": "It "}, {"text": "is."}),
        *block(
            2,
            {"toolUse": {"input": '{"city"'}},
            {"toolUse": {"input": ': "Paris"}'}},
            toolUse={"toolUseId": "t", "name": "f"},
        ),
        *block(3, toolUse={"toolUseId": "u", "name": "now"}),
        event("messageStop", stopReason="tool_use"),
        event("metadata", usage={"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}, metrics={"latencyMs": 1}),
    )
    assert (answer.complete, answer.finish_reasons, answer.usage) == (True, ["tool_call"], Usage(3, 4))
    assert [(part["type"], part.get("content", part.get("arguments"))) for part in answer.messages[0]["parts"]] == [
        ("reasoning", "Hm, so."),
        ("text", "It is."),
        ("tool_call", {"city": "Paris"}),
        ("tool_call", {}),
    ]
    chunks = json.dumps(answer.chunks)
    assert not [said for said in ("Hm", "It ", "Paris", "is.") if said in chunks]
    made_up = bedrock.join(bedrock.split(replace(answer, chunks=())))
    assert [part.get("arguments") for part in made_up.messages[0]["parts"]] == [None, None, {"city": "Paris"}, {}]


def test_blocks_of_citations_of_the_providers_tools_and_of_images_come_to_what_they_are_at_once() -> None:
    answer = join(
        event("messageStart", role="assistant"),
        *block(
            0, {"citation": {"title": "first"}}, {"text": "It is "}, {"text": "said."}, {"citation": {"title": "t"}}
        ),
        *block(1, {"text": "Plain."}),
        *block(
            2, {"toolUse": {"input": '{"a": 1}'}}, toolUse={"toolUseId": "c", "name": "run", "type": "server_tool_use"}
        ),
        *block(
            3,
            {"toolResult": [{"json": {"out": "of it"}}]},
            {"toolResult": [{"text": "more"}, {"text": "still"}]},
            toolResult={"toolUseId": "c", "type": "run_result", "status": "success"},
        ),
        *block(4, {"image": {"source": {"bytes": "QUJD"}}}, image={"format": "png"}),
        *block(5, {"reasoningContent": {"redactedContent": "REDA"}}),
        event("messageStop", stopReason="malformed_tool_use"),
    )
    plain = json.loads(bedrock.write_response(answer))
    assert plain["output"]["message"]["content"] == [
        {"citationsContent": {"content": [{"text": "It is said."}], "citations": [{"title": "first"}, {"title": "t"}]}},
        {"text": "Plain."},
        {"toolUse": {"toolUseId": "c", "name": "run", "type": "server_tool_use", "input": {"a": 1}}},
        {
            "toolResult": {
                "toolUseId": "c",
                "type": "run_result",
                "status": "success",
                "content": [{"json": {"out": "of it"}}, {"text": "more"}, {"text": "still"}],
            }
        },
        {"image": {"format": "png", "source": {"bytes": "QUJD"}}},
        {"reasoningContent": {"redactedContent": "REDA"}},
    ]
    assert bedrock.read_response(json.dumps(plain).encode(), 200).messages == answer.messages
    assert [(part["type"], part.get("content")) for part in answer.messages[0]["parts"]] == [
        ("text", "It is said."),
        ("text", "Plain."),
        ("server_tool_call", None),
        ("server_tool_call_response", None),
        ("blob", "QUJD"),
        ("reasoning", ""),
    ]
    assert answer.finish_reasons == ["error"]
    assert not [said for said in ("said", "of it", "more", "QUJD") if said in json.dumps(answer.chunks)]
    answer = deepcopy(answer)
    answer.messages[0]["parts"][0]["content"] = "other"
    assert b"said." not in bedrock.write_response(answer)


def test_what_was_redacted_since_is_redacted_in_the_stream_too() -> None:
    answer = join(event("messageStart", role="assistant"), *block(0, {"text": "a secret "}, {"text": "word"}))
    hidden = replace(answer, messages=({"role": "assistant", "parts": [{"type": "text", "content": "[gone]"}]},))
    assert b"secret" not in b"".join(piece for _, piece in bedrock.split(hidden))
    assert b"[gone]" in b"".join(piece for _, piece in bedrock.split(hidden))


def test_a_failure_in_the_middle_of_a_stream_is_the_answers_error() -> None:
    answer = join(
        event("messageStart", role="assistant"),
        *block(0, {"text": "It "}),
        event("throttlingException", "exception", message="slow down"),
    )
    assert answer.error == Error(ErrorCategory.MODEL, "throttlingException", "slow down")
    assert answer.messages[0]["parts"][0]["content"] == "It "


def test_a_stream_cut_off_anywhere_is_split_as_it_came() -> None:
    body = b"".join(
        [
            event("messageStart", role="assistant"),
            *block(0, {"toolUse": {"input": '{"a"'}}, toolUse={"toolUseId": "t", "name": "f"}),
        ]
    )
    for length in range(1, len(body)):
        answer = bedrock.join([(1.0, body[:length])])
        assert not answer.complete
        assert b"".join(piece for _, piece in bedrock.split(answer)) == body[:length]


def test_frames_that_say_what_is_no_text_or_do_not_check_are_kept_as_they_came() -> None:
    sound = write_frame(HEADERS, b"{}")
    broken = sound[:-1] + bytes([sound[-1] ^ 1])
    counted = write_frame((), b"")
    assert [frame.headers for frame in read_frames([(0.0, sound + broken)])] == [HEADERS, None]
    assert [frame.headers for frame in read_frames([(0.0, sound + b"no frame at all")])] == [HEADERS, None]
    assert read_frames([(0.0, counted)])[0].headers == ()
    answer = bedrock.join([(0.0, event("messageStart", role="assistant")), (1.0, write_frame(HEADERS, b"[1]"))])
    assert [piece for _, piece in bedrock.split(answer)][1] == write_frame(HEADERS, b"[1]")
    with pytest.raises(ValueError, match="holds no frame"):
        bedrock.join([])


@pytest.mark.parametrize("path", ["/model/m/converse", "/model/us.m-v1%3A0/converse-stream"])
def test_converse_is_recognised_behind_a_model_only(path: str) -> None:
    assert recognise("POST", path) == (bedrock, Operation.CHAT)
    assert recognise("POST", path.replace("/model/", "/api/")) is None
