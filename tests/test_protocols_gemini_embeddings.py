"""Gemini's embeddings, one or a batch."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spanreel.model import Error, ErrorCategory, Operation, Usage
from spanreel.protocols.gemini import embeddings
from spanreel.testing import embeddings as embed

TEXT = {"parts": [{"text": "a"}]}
ENTRY = {"model": "models/e", "content": {**TEXT, "role": "user"}, "taskType": "RETRIEVAL_QUERY"}


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        ({"content": TEXT}, ["text"]),
        ({**ENTRY, "outputDimensionality": 8}, ["text"]),
        ({"requests": [ENTRY, {"content": TEXT}], "x": 1}, ["text", "text"]),
        ({"requests": [{**ENTRY, "outputDimensionality": 8}, {"content": TEXT}]}, ["text", "text"]),
        ({"requests": []}, []),
        ({"content": {"parts": [{"inlineData": {"mimeType": "image/png", "data": "AA=="}}]}}, ["other"]),
        ({"requests": [{"content": {"parts": [{"text": "a"}, {"text": "b"}]}}]}, ["other"]),
    ],
)
def test_contents_are_parts_and_written_as_they_stood(body: dict[str, Any], parts: list[str]) -> None:
    request = embeddings.read_request(json.dumps(body).encode(), Operation.EMBEDDINGS)
    assert [part["type"] for part in request.messages[0]["parts"]] == parts
    assert json.loads(embeddings.write_request(request)) == body


def test_how_many_dimensions_are_asked_for_is_a_setting() -> None:
    body = {"requests": [{"content": TEXT, "outputDimensionality": 8}] * 2}
    request = embeddings.read_request(json.dumps(body).encode(), Operation.EMBEDDINGS)
    assert request.settings == {"dimensions": 8}
    assert request.messages[0]["parts"] == [{"type": "text", "content": "a"}] * 2


@pytest.mark.parametrize("body", [b"[]", b"{}", b'{"content":"a"}', b'{"requests":[1]}'])
def test_what_has_no_content_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="gemini_embeddings request"):
        embeddings.read_request(body, Operation.EMBEDDINGS)


@pytest.mark.parametrize(
    "body",
    [
        {"embedding": {"values": [0.5, 1]}},
        {"embeddings": [{"values": [0.5, 1]}, {"values": [1]}], "usageMetadata": {"promptTokenCount": 3, "x": 1}},
        {"embeddings": []},
        {},
    ],
)
def test_vectors_are_kept_as_they_came(body: dict[str, Any]) -> None:
    answer = embeddings.read_response(json.dumps(body).encode(), 200)
    assert answer.usage == (Usage(3) if "usageMetadata" in body else None)
    assert json.loads(embeddings.write_response(answer)) == body
    assert embeddings.join(embeddings.split(answer)) == answer


def test_a_failure_says_what_the_provider_said() -> None:
    body = {"error": {"code": 400, "message": "no", "status": "INVALID_ARGUMENT"}}
    answer = embeddings.read_response(json.dumps(body).encode(), 400)
    assert answer.error == Error(ErrorCategory.MODEL, "INVALID_ARGUMENT", "no")
    assert json.loads(embeddings.write_response(answer)) == body


def test_vectors_made_for_any_protocol_are_written() -> None:
    request = embeddings.read_request(json.dumps({"requests": [{"content": TEXT}]}).encode(), Operation.EMBEDDINGS)
    written = json.loads(embeddings.write_response(embed(request).answer))
    assert len(written["embeddings"][0]["values"]) == 256
