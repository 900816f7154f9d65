"""Ollama's generate and embeddings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spanreel.model import Error, ErrorCategory, Operation, Request, Usage
from spanreel.protocols.ollama import embeddings, generate
from spanreel.testing import embeddings as embed

COUNTED = {"done": True, "done_reason": "stop", "prompt_eval_count": 3, "eval_count": 2, "context": [1, 2]}


def read(body: dict[str, Any]) -> Request:
    """Read a request to generate, and check that it is written as it was."""
    request = generate.read_request(json.dumps(body).encode(), Operation.CHAT)
    assert json.loads(generate.write_request(request)) == body
    return request


def test_a_prompt_is_a_message_of_the_user_behind_what_the_system_says() -> None:
    request = read(
        {
            "model": "qwen3",
            "system": "Be brief.",
            "prompt": "What is it?",
            "images": ["iVBORw0KGgo="],
            "options": {"temperature": 0.5, "num_ctx": 1024},
            "think": True,
            "context": [1, 2],
            "raw": False,
        }
    )
    assert request.model == "qwen3"
    assert [(message["role"], [part["type"] for part in message["parts"]]) for message in request.messages] == [
        ("system", ["text"]),
        ("user", ["text", "blob"]),
    ]
    assert request.settings == {"temperature": 0.5, "reasoning_effort": True}
    assert request.stream


@pytest.mark.parametrize("body", [{"model": "m", "prompt": ""}, {"model": "m", "prompt": "x", "stream": False}])
def test_the_least_that_is_asked_is_written_as_it_was(body: dict[str, Any]) -> None:
    assert read(body).stream is not ("stream" in body)


def test_a_conversation_of_another_protocol_is_one_prompt() -> None:
    messages = (
        {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]},
        {"role": "user", "parts": [{"type": "text", "content": "One."}]},
        {"role": "user", "parts": [{"type": "text", "content": "Two."}]},
    )
    written = json.loads(generate.write_request(Request(Operation.CHAT, "m", messages)))
    assert written == {"model": "m", "system": "Be brief.", "prompt": "One.\n\nTwo.", "stream": False}


@pytest.mark.parametrize("body", [b"[]", b'{"model":"m"}', b'{"prompt":["a"]}'])
def test_what_has_no_prompt_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="ollama_generate request"):
        generate.read_request(body, Operation.CHAT)


def test_an_answer_is_a_message() -> None:
    body = {"model": "qwen3", "created_at": "now", "response": "A cat.", "thinking": "Hm.", **COUNTED}
    answer = generate.read_response(json.dumps(body).encode(), 200)
    assert answer.messages[0]["parts"] == [
        {"type": "reasoning", "content": "Hm."},
        {"type": "text", "content": "A cat."},
    ]
    assert (answer.usage, answer.finish_reasons) == (Usage(3, 2), ["stop"])
    assert json.loads(generate.write_response(answer)) == body


def test_a_failure_says_what_the_provider_said() -> None:
    answer = generate.read_response(b'{"error":"model not found"}', 404)
    assert answer.error == Error(ErrorCategory.MODEL, "404", "model not found")
    assert json.loads(generate.write_response(answer)) == {"error": "model not found"}


def test_a_stream_is_joined_and_split_as_it_came() -> None:
    lines = [
        {"model": "m", "created_at": "1", "response": "", "thinking": "Hm.", "done": False},
        {"model": "m", "created_at": "2", "response": "A ", "done": False},
        {"model": "m", "created_at": "3", "response": "cat.", "done": False},
        {"model": "m", "created_at": "4", "response": "", **COUNTED},
    ]
    body = "".join(json.dumps(line) + "\n" for line in lines).encode()
    answer = generate.join([(1.0, body[:50]), (2.0, body[50:])])
    assert answer.complete
    assert [part["content"] for part in answer.messages[0]["parts"]] == ["Hm.", "A cat."]
    again = generate.split(answer)
    assert [json.loads(piece) for _, piece in again] == lines
    assert generate.join(again) == answer


def test_a_stream_cut_off_in_a_line_keeps_it() -> None:
    body = b'{"model":"m","response":"A ","done":false}\n{"model":"m","resp'
    answer = generate.join([(1.0, body)])
    assert not answer.complete
    assert answer.messages[0]["parts"][0]["content"] == "A "
    assert b"".join(piece for _, piece in generate.split(answer)).endswith(b'{"model":"m","resp')


@pytest.mark.parametrize("given", ["a", ["a", "b"], [], [1]])
def test_inputs_of_embeddings_are_parts(given: Any) -> None:
    body = {"model": "e", "input": given, "dimensions": 8, "truncate": True}
    request = embeddings.read_request(json.dumps(body).encode(), Operation.EMBEDDINGS)
    assert json.loads(embeddings.write_request(request)) == body
    assert request.settings == {"dimensions": 8}
    assert len(request.messages[0]["parts"]) == len(given)


def test_vectors_are_kept_as_they_came() -> None:
    body = {"model": "e", "embeddings": [[0.5, 1]], "total_duration": 3, "prompt_eval_count": 1}
    answer = embeddings.read_response(json.dumps(body).encode(), 200)
    assert (answer.model, answer.usage, answer.messages) == ("e", Usage(1), ())
    assert json.loads(embeddings.write_response(answer)) == body
    assert embeddings.join(embeddings.split(answer)) == answer
    assert embeddings.read_response(b'{"error":"no"}', 400).error == Error(ErrorCategory.MODEL, "400", "no")


def test_vectors_made_for_any_protocol_are_written() -> None:
    request = embeddings.read_request(b'{"model":"e","input":["a","b"],"dimensions":2}', Operation.EMBEDDINGS)
    written = json.loads(embeddings.write_response(embed(request).answer))
    assert [len(vector) for vector in written["embeddings"]] == [2, 2]


def test_what_has_no_input_is_refused() -> None:
    with pytest.raises(ValueError, match="ollama_embeddings request: input"):
        embeddings.read_request(b'{"model":"e"}', Operation.EMBEDDINGS)
