"""OpenAI embeddings and moderations."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import openai
import pytest

from spanreel.model import Answer, Error, ErrorCategory, Operation, Request, Usage
from spanreel.protocols import openai_embeddings


def read_request(operation: Operation = Operation.EMBEDDINGS, **body: Any) -> Request:
    """Read a request, and check that it is written as it was."""
    request = openai_embeddings.read_request(json.dumps(body).encode(), operation)
    assert json.loads(openai_embeddings.write_request(request)) == body
    return request


def test_a_request_is_read_whole() -> None:
    request = read_request(model="e", input=["a", "b"], dimensions=3, encoding_format="base64", user="u")
    assert request == Request(
        operation=Operation.EMBEDDINGS,
        model="e",
        messages=({"role": "user", "parts": [{"type": "text", "content": "a"}, {"type": "text", "content": "b"}]},),
        settings={"dimensions": 3, "encoding_formats": ["base64"]},
        provider_fields={"user": "u"},
    )


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ("a", [{"type": "text", "content": "a"}]),
        ([], []),
        ([1, 2], [{"type": "other", "value": [1, 2]}]),
        ([[1, 2], [3]], [{"type": "other", "value": [1, 2]}, {"type": "other", "value": [3]}]),
        (
            [{"type": "text", "text": "a"}],
            [{"type": "text", "content": "a", "provider_fields": {"type": "text"}}],
        ),
        (
            [{"type": "image_url", "image_url": {"url": "https://a.test/b.png", "x": 1}}],
            [
                {
                    "type": "uri",
                    "modality": "image",
                    "uri": "https://a.test/b.png",
                    "provider_fields": {"image_url": {"x": 1}},
                }
            ],
        ),
        ([{"type": "image_url", "image_url": {}}], [{"type": "image_url", "image_url": {}}]),
    ],
)
def test_every_form_of_input_is_parts_and_written_as_it_stood(given: Any, parts: list[Any]) -> None:
    assert read_request(Operation.MODERATION, model="m", input=given).messages[0]["parts"] == parts


def test_a_body_without_input_is_told() -> None:
    with pytest.raises(ValueError, match="openai_embeddings request: input is of type NoneType"):
        openai_embeddings.read_request(b"{}", Operation.EMBEDDINGS)


EMBEDDINGS = {
    "object": "list",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.5, -1.0]}],
    "model": "e",
    "usage": {"prompt_tokens": 2, "total_tokens": 2},
}


def test_vectors_are_kept_as_they_came() -> None:
    answer = openai_embeddings.read_response(json.dumps(EMBEDDINGS).encode(), 200)
    assert answer == Answer(model="e", usage=Usage(2), provider_fields={"data": EMBEDDINGS["data"]})
    assert json.loads(openai_embeddings.write_response(answer)) == EMBEDDINGS
    assert openai_embeddings.join(openai_embeddings.split(answer)) == answer


def test_verdicts_are_kept_as_they_came() -> None:
    body = {"id": "modr-1", "model": "m", "results": [{"flagged": False}]}
    answer = openai_embeddings.read_response(json.dumps(body).encode(), 200)
    assert answer.response_id == "modr-1"
    assert json.loads(openai_embeddings.write_response(answer)) == body


def test_failures_are_read_and_written() -> None:
    body = b'{"error":{"message":"no","type":"invalid_request_error","param":null,"code":null}}'
    answer = openai_embeddings.read_response(body, 400)
    assert answer.error == Error(ErrorCategory.MODEL, "invalid_request_error", "no")
    assert openai_embeddings.write_response(answer) == body


def test_the_sdk_reads_what_was_written() -> None:
    body = openai_embeddings.write_response(openai_embeddings.read_response(json.dumps(EMBEDDINGS).encode(), 200))
    http = httpx2.Client(transport=httpx2.MockTransport(lambda request: httpx2.Response(200, content=body)))
    client = openai.OpenAI(api_key="none", base_url="http://provider/v1", http_client=http)
    assert client.embeddings.create(model="e", input="a", encoding_format="float").data[0].embedding == [0.5, -1.0]
