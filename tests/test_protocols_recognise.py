"""Which HTTP requests are model requests, of which protocol, provider and model."""

from __future__ import annotations

import json

import pytest

from spanreel.model import Answer, Operation, Request, Usage
from spanreel.protocols import (
    PROTOCOLS,
    anthropic,
    as_asked,
    cohere,
    gemini,
    is_exchange,
    ollama,
    openai_chat,
    openai_embeddings,
    openai_responses,
    peek_model,
    protocol_named,
    provider_of,
    recognise,
)
from spanreel.protocols.paths import model_in, read_request, with_model


@pytest.mark.parametrize(
    ("path", "protocol", "operation"),
    [
        ("/v1/chat/completions", openai_chat, Operation.CHAT),
        ("/openai/deployments/my-deployment/chat/completions", openai_chat, Operation.CHAT),
        ("/openai/v1/chat/completions", openai_chat, Operation.CHAT),
        ("/api/v1/chat/completions", openai_chat, Operation.CHAT),
        ("/v1/responses", openai_responses, Operation.CHAT),
        ("/openai/responses", openai_responses, Operation.CHAT),
        ("/v1/embeddings", openai_embeddings, Operation.EMBEDDINGS),
        ("/v1/moderations", openai_embeddings, Operation.MODERATION),
        ("/v1beta/models/gemini-2.5-flash:generateContent", gemini, Operation.CHAT),
        ("/v1/projects/p/locations/l/publishers/google/models/m:streamGenerateContent", gemini, Operation.CHAT),
        ("/api/chat", ollama, Operation.CHAT),
        ("/v2/chat", cohere, Operation.CHAT),
    ],
)
def test_a_model_request_is_known_by_the_end_of_its_path(path: str, protocol: object, operation: Operation) -> None:
    assert recognise("POST", path) == (protocol, operation)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/responses"),
        ("GET", "/v1/chat/completions"),
        ("POST", "/v1/responses/resp_1"),
        ("POST", "/v1/responses/resp_1/cancel"),
        ("POST", "/v1/models"),
        ("POST", "/"),
        ("POST", ""),
    ],
)
def test_other_requests_are_not_known(method: str, path: str) -> None:
    assert recognise(method, path) is None


def test_a_gateway_may_have_paths_of_its_own() -> None:
    extra = {"/llm/ask": "openai_chat", "/llm/embed": "openai_embeddings"}
    assert recognise("POST", "/llm/ask", extra) == (openai_chat, Operation.CHAT)
    assert recognise("POST", "/llm/embed", extra) == (openai_embeddings, Operation.EMBEDDINGS)
    assert recognise("POST", "/v1/responses", extra) == (openai_responses, Operation.CHAT)
    assert recognise("GET", "/llm/ask", extra) is None


def test_a_protocol_is_found_by_its_name() -> None:
    assert [protocol_named(protocol.NAME) for protocol in PROTOCOLS] == list(PROTOCOLS)
    with pytest.raises(ValueError, match=r"no protocol named 'openai_chatt'; known: .*openai_chat, "):
        protocol_named("openai_chatt")


@pytest.mark.parametrize(
    ("host", "provider"),
    [
        ("api.openai.com", "openai"),
        ("eu.api.openai.com", "openai"),
        ("my-resource.openai.azure.com", "azure.ai.openai"),
        ("MY-RESOURCE.OpenAI.Azure.com:443", "azure.ai.openai"),
        ("api.groq.com", "groq"),
        ("api.mistral.ai", "mistral_ai"),
        ("api.deepseek.com", "deepseek"),
        ("api.x.ai", "x_ai"),
        ("api.perplexity.ai", "perplexity"),
        ("us-central1-aiplatform.googleapis.com", "gcp.vertex_ai"),
        ("openrouter.ai", "openrouter"),
        ("127.0.0.1:8080", "openai"),
        ("api.openai.com.evil.test", "openai"),
        ("notapi.groq.com", "openai"),
    ],
)
def test_the_provider_is_known_by_the_host_else_by_the_protocol(host: str, provider: str) -> None:
    assert provider_of(host, openai_chat) == provider


@pytest.mark.parametrize(
    ("body", "model"),
    [
        (b'{"model":"gpt-4o","messages":[]}', "gpt-4o"),
        (b'{ "messages" : [], "model" : "gpt-4o" }', "gpt-4o"),
        (b'{"tools":[{"type":"image_generation","model":"inner"}],"model":"outer"}', "outer"),
        (b'{"model":"outer","tools":[{"type":"image_generation","model":"inner"}]}', "outer"),
        (b'{"metadata":{"model":"inner"},"input":"x"}', None),
        (b'{"messages":[{"role":"user","content":"say \\"model\\": \\"no\\" {[ "}],"model":"yes"}', "yes"),
        (b'{"say \\"model":"no","model":"yes"}', "yes"),
        (b'{"model":{"type":"string"}}', None),
        (b'{"model":null}', None),
        (b'{"model":"m\\u00fcller"}', "m\u00fcller"),
        (b'{"model":"\\ud800"}', None),
        (b'{"model":"cut off', None),
        (b"", None),
        (b"\xff\x00", None),
        (b"{" + b'"a":{"model":"x"},' * 100 + b'"model":"too deep in"}', None),
    ],
)
def test_the_model_is_peeked_at_the_top_level(body: bytes, model: str | None) -> None:
    assert peek_model(body) == model


def test_a_body_of_megabytes_is_peeked_without_parsing() -> None:
    image = "data:image/png;base64," + "A" * 3_000_000
    message = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": image}}]}
    assert peek_model(json.dumps({"messages": [message], "model": "m", "tools": []}).encode()) == "m"
    assert peek_model(json.dumps({"model": "m", "messages": [message]}).encode()) == "m"


@pytest.mark.parametrize(
    ("operation", "body", "expected"),
    [
        (Operation.CHAT, b'{"model":"m","messages":[]}', True),
        (Operation.CHAT, b' \n{"model":"m","input":"hello"}', True),
        (Operation.CHAT, b'{"form":"survey","answers":[1,2]}', False),
        (Operation.CHAT, b"name=value", False),
        (Operation.CHAT, b'["messages"]', False),
        (Operation.EMBEDDINGS, b'{"input":"x"}', True),
        (Operation.MODERATION, b'{"text":"x"}', False),
        (Operation.RERANK, b'{"input":"x"}', False),
    ],
)
def test_a_body_of_another_kind_is_told_at_a_glance(operation: Operation, body: bytes, expected: bool) -> None:
    assert is_exchange(operation, body) is expected


def test_the_chat_of_a_web_application_which_names_no_model_is_no_model_call() -> None:
    body = b'{"messages":[{"role":"user","content":"hi"}]}'
    named = b'{"model":"qwen3",' + body[1:]
    assert [is_exchange(Operation.CHAT, body, protocol) for protocol in (openai_chat, ollama, cohere)] == [
        *(True, False, False)
    ]
    assert is_exchange(Operation.CHAT, named, ollama)


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("/v1beta/models/gemini-2.5-flash:generateContent", "gemini-2.5-flash"),
        ("/v1beta/tunedModels/mine:streamGenerateContent", "mine"),
        ("/v1/projects/p/locations/l/publishers/anthropic/models/claude-x@2026:rawPredict", "claude-x@2026"),
        ("/openai/deployments/my-gpt/chat/completions", "my-gpt"),
        ("/model/us.amazon.nova-lite-v1%3A0/converse", "us.amazon.nova-lite-v1:0"),
        ("/v1/models/m", None),
        ("/v1/chat/completions", None),
    ],
)
def test_a_path_may_name_the_model(path: str, model: str | None) -> None:
    assert model_in(path) == model
    changed = with_model(f"https://model.test{path}?alt=sse", "other:1")
    assert model_in(changed.partition("?")[0].removeprefix("https://model.test")) == (model and "other:1")


def test_what_a_path_says_is_read_and_not_written_into_the_body() -> None:
    body = {"messages": [], "max_tokens": 3}
    path = "/v1/projects/p/locations/l/publishers/anthropic/models/claude-x:streamRawPredict"
    request = read_request(anthropic, Operation.CHAT, path, json.dumps(body).encode())
    assert (request.model, request.stream) == ("claude-x", True)
    assert json.loads(anthropic.write_request(request)) == body


def test_the_usage_of_a_chat_stream_is_for_those_who_asked() -> None:
    answer = Answer(usage=Usage(1, 2))
    plain = Request(Operation.CHAT, "m")
    stream = Request(Operation.CHAT, "m", stream=True)
    asked = Request(Operation.CHAT, "m", stream=True, provider_fields={"stream_options": {"include_usage": True}})
    assert as_asked(openai_chat, plain, answer) == answer
    assert as_asked(openai_chat, stream, answer) == Answer()
    assert as_asked(openai_chat, asked, answer) == answer
    assert as_asked(openai_responses, stream, answer) == answer
