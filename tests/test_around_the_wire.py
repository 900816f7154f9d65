"""Model calls taken at the wire, with whatever a program puts around its client and whatever passes it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import openai
import pytest
from opentelemetry.propagate import inject

import spanreel
from recording import Recording, recording
from wire_server import ASK, Model


class Traced(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    """A transport that spans of another instrumentation stand around, as those of HTTP clients do."""

    def __init__(self, rec: Recording, model: Model) -> None:
        self.rec, self.model, self.sent = rec, model, {"traceparent": ""}

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        with self.rec.tracer.start_as_current_span("POST"):
            inject(self.sent)
            return self.model.respond(request)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return self.handle_request(request)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_spans_of_the_http_client_stand_inside_the_model_call(asynchronous: bool, stream: bool) -> None:
    async def ask(transport: Traced) -> None:
        http = httpx2.AsyncClient(transport=transport)
        client = openai.AsyncOpenAI(api_key="none", base_url="http://model.test/v1", http_client=http)
        answer: Any = await client.chat.completions.create(**ASK, stream=stream)
        if stream:
            assert [chunk async for chunk in answer]

    with recording() as rec:
        transport = Traced(rec, Model())
        if asynchronous:
            asyncio.run(ask(transport))
        else:
            http = httpx2.Client(transport=transport)
            client = openai.OpenAI(api_key="none", base_url="http://model.test/v1", http_client=http)
            answer: Any = client.chat.completions.create(**ASK, stream=stream)
            assert not stream or list(answer)
        assert rec.tree() == ["chat gpt-asked", "  POST"]
        context = rec.named("POST").context
        assert context is not None
        assert transport.sent["traceparent"].split("-")[1:3] == [
            format(context.trace_id, "032x"),
            format(context.span_id, "016x"),
        ]


class OwnClient(httpx2.Client):
    """A client of the user's, which adds to what it sends and to what comes."""

    def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        response = super().send(request, **options)
        response.headers["x-own"] = "1"
        return response


class OwnSdk(openai.OpenAI):
    """An SDK's client of the user's."""


class Token(httpx2.Auth):
    """Signs in at each request."""

    def auth_flow(self, request: httpx2.Request) -> Iterator[httpx2.Request]:  # type: ignore[override]  # as a generator
        request.headers["authorization"] = "Bearer none"
        yield request


def _subclassed(model: Model) -> openai.OpenAI:
    http = OwnClient(transport=httpx2.MockTransport(model.respond))
    return OwnSdk(api_key="none", base_url="http://model.test/v1", http_client=http)


def _replaced(model: Model) -> openai.OpenAI:
    http = httpx2.Client(transport=httpx2.MockTransport(model.respond))
    send = http.send

    def own(request: httpx2.Request, **options: Any) -> httpx2.Response:
        return send(request, **options)

    http.send = own  # type: ignore[method-assign]  # as a user's own tracing does
    return openai.OpenAI(api_key="none", base_url="http://model.test/v1", http_client=http)


def _hooked(model: Model) -> openai.OpenAI:
    hooks: Any = {"request": [lambda _: None], "response": [lambda response: response.request]}
    mounts = {"http://model.test": httpx2.MockTransport(model.respond)}
    http = httpx2.Client(mounts=mounts, event_hooks=hooks, auth=Token())
    return openai.OpenAI(api_key="none", base_url="http://model.test/v1", http_client=http)


def _redirected(model: Model) -> openai.OpenAI:
    def respond(request: httpx2.Request) -> httpx2.Response:
        if request.url.path.startswith("/old"):
            return httpx2.Response(307, headers={"location": "http://model.test/v1/chat/completions"})
        return model.respond(request)

    http = httpx2.Client(transport=httpx2.MockTransport(respond), follow_redirects=True)
    return openai.OpenAI(api_key="none", base_url="http://model.test/old", http_client=http)


@pytest.mark.parametrize("make", [_subclassed, _replaced, _hooked, _redirected])
def test_clients_of_every_make_are_recorded_once_by_every_way_in(make: Callable[[Model], openai.OpenAI]) -> None:
    with recording() as rec:
        client = make(Model())
        assert client.chat.completions.create(**ASK).choices[0].message.content == "Hello."
        assert list(client.with_options(timeout=3, max_retries=1).chat.completions.create(**ASK, stream=True))
        raw = client.copy(api_key="other").chat.completions.with_raw_response.create(**ASK)
        assert (raw.headers.get("x-own") == "1") is (make is _subclassed)
        with client.with_streaming_response.chat.completions.create(**ASK) as response:
            assert b"Hello." in response.read()
        assert rec.tree() == ["chat gpt-asked"] * 4


REQUESTS = (
    b'{"messages": [',
    b'{"messages": {"a": 1}, "model": 7}',
    b'{"messages": [1, null, {"role": 4}], "tools": 5, "temperature": "hot", "n": {}}',
    b'{"messages": "\xff\xfe"}',
    b'{"messages": [{"role": "user", "content": "\\ud800"}]}',
    b'{"messages": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    b'{"messages": [], "model": NaN, "seed": 1' + b"0" * 400 + b"}",
)
ANSWERS = (
    b"",
    b"{",
    b"null",
    b"\xff\x00",
    b'{"choices": 5}',
    b'{"choices": [{"message": null}], "usage": []}',
    b'{"choices": [{"message": {"tool_calls": [{"function": null}]}}], "usage": {"prompt_tokens": "x"}}',
    b"data: {\n\ndata: 7\n\ndata: [DONE]\n\n",
)


@pytest.mark.parametrize("number", range(len(REQUESTS)))
def test_what_cannot_be_read_passes_as_it_is_and_is_a_span_all_the_same(number: int) -> None:
    seen: list[bytes] = []

    def respond(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.content)
        kind = "text/event-stream" if answer.startswith(b"data:") else "application/json"
        return httpx2.Response(200, content=answer, headers={"content-type": kind})

    with recording() as rec, httpx2.Client(transport=httpx2.MockTransport(respond)) as client:
        for answer in ANSWERS:
            got = client.post("http://model.test/v1/chat/completions", content=REQUESTS[number])
            assert (got.content, seen.pop()) == (answer, REQUESTS[number])
        assert len(rec.of("chat")) == len(ANSWERS)


def test_instrumenting_again_and_again_leaves_no_thread_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    monkeypatch.setenv("SPANREEL_FILE", "/dev/null")
    monkeypatch.setenv("SPANREEL_LOG", "off")
    before = set(threading.enumerate())  # some of which may be ending, from tests before
    for _ in range(5):
        spanreel.instrument()
        for _ in range(3):
            Model().client().chat.completions.create(**ASK)
        assert len(set(threading.enumerate()) - before) <= 1
        spanreel.uninstrument()
    assert set(threading.enumerate()) <= before
