"""The shared exchanges, through the real SDK with and without us: the same results, the same bytes, one whole span."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import httpx2
import openai
import pytest
from opentelemetry.trace import StatusCode

from conftest import cases
from recording import Recording, attribute, content, recording

pytestmark = pytest.mark.slow

FILES = ("openai_chat", "openai_responses", "azure_chat", "groq_chat", "mistral_chat")


def exchanges(name: str) -> list[dict[str, Any]]:
    """The exchanges of one file."""
    return [json.loads(line) for line in cases(f"exchanges/{name}.jsonl").read_text().splitlines()]


def body_of(response: dict[str, Any]) -> bytes:
    """The bytes of a recorded response."""
    if "body_base64" in response:
        return base64.b64decode(response["body_base64"])
    body = response["body"]
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


class Served:
    """A client whose transport gives one recorded answer and keeps the bytes that it was sent."""

    def __init__(self, exchange: dict[str, Any]) -> None:
        self.exchange = exchange
        self.sent: list[bytes] = []
        http = httpx2.Client(transport=httpx2.MockTransport(self.respond))
        base = "http://model.test" + exchange["request"]["path"].split("?")[0]
        for end in ("/chat/completions", "/responses"):
            base = base.removesuffix(end)
        self.client = openai.OpenAI(api_key="k", base_url=base, http_client=http, max_retries=0)

    def respond(self, request: httpx2.Request) -> httpx2.Response:
        self.sent.append(request.content)
        response = self.exchange["response"]
        kind = response["content_type"] or ("text/event-stream" if self.streams else "application/json")
        return httpx2.Response(response["status"], content=body_of(response), headers={"content-type": kind})

    @property
    def streams(self) -> bool:
        return bool(self.exchange["request"]["body"].get("stream"))

    @property
    def endpoint(self) -> Any:
        is_chat = "/chat/completions" in self.exchange["request"]["path"]
        return self.client.chat.completions if is_chat else self.client.responses

    def arguments(self) -> dict[str, Any]:
        body = self.exchange["request"]["body"]
        required = {"messages": body.get("messages", [])} if self.endpoint is self.client.chat.completions else {}
        return {"model": body.get("model", "m"), **required, "stream": self.streams, "extra_body": body}


def plain(served: Served) -> Any:
    """The call as most people make it."""
    result = served.endpoint.create(**served.arguments())
    return [chunk.to_dict() for chunk in result] if served.streams else result.to_dict()


def raw(served: Served) -> Any:
    """With raw responses."""
    result = served.endpoint.with_raw_response.create(**served.arguments())
    parsed = result.parse()
    return [chunk.to_dict() for chunk in parsed] if served.streams else (dict(result.headers), parsed.to_dict())


def streaming(served: Served) -> Any:
    """With streaming responses: the bytes themselves."""
    with served.endpoint.with_streaming_response.create(**served.arguments()) as result:
        return list(result.iter_bytes(64))


def outcome(way: Callable[[Served], Any], exchange: dict[str, Any]) -> Any:
    """What the SDK gave back or raised, and what it sent."""
    served = Served(exchange)
    try:
        result = way(served)
    except openai.APIError as error:
        result = (type(error), str(error), getattr(error, "body", None))
    return result, served.sent


def check_span(rec: Recording, exchange: dict[str, Any]) -> None:
    span = rec.one("chat")
    body, response = exchange["request"]["body"], exchange["response"]
    assert attribute(span, "gen_ai.request.model") == body.get("model")
    assert attribute(span, "spanreel.request.raw") is None
    assert attribute(span, "spanreel.response.raw") is None
    assert content(span, "gen_ai.input.messages") or body.get("prompt") or not body.get("input", body.get("messages"))
    if response["status"] >= 400:
        assert span.status.status_code is StatusCode.ERROR
        return
    text = body_of(response).decode("utf-8", "replace")
    if '"usage": {' in text or '"usage":{' in text:
        assert attribute(span, "gen_ai.usage.input_tokens") is not None
    assert attribute(span, "gen_ai.response.model")
    assert content(span, "gen_ai.output.messages")
    assert attribute(span, "gen_ai.response.finish_reasons")


@pytest.mark.parametrize("way", [plain, raw, streaming], ids=lambda way: way.__name__)
@pytest.mark.parametrize("name", FILES)
def test_the_sdk_gives_what_it_gives_without_us_and_each_attempt_is_one_whole_span(name: str, way: Any) -> None:
    wrong = []
    for exchange in exchanges(name):
        expected = outcome(way, exchange)
        with recording() as rec:
            got = outcome(way, exchange)
        try:
            assert got == expected
            check_span(rec, exchange)
        except AssertionError as error:
            wrong.append(f"{exchange['id']}: {str(error).splitlines()[0]}")
    assert wrong == []
