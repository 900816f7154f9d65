"""The shared exchanges of Anthropic through the real SDK, with and without us: the same results and bytes, one span."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import anthropic
import httpx2
import pydantic
import pytest
from opentelemetry.trace import StatusCode

from exchange_cases import Exchange, exchanges, pieces_of
from recording import Recording, attribute, content, recording
from spanreel import testing
from spanreel.model import Error, ErrorCategory, Usage

FILE = "anthropic_messages"

# The SDK says of the models of the recorded exchanges that they are old.
pytestmark = pytest.mark.filterwarnings("ignore:The model .* is deprecated:DeprecationWarning")


class Served:
    """Clients whose transport gives one recorded answer and keeps the bytes that it was sent."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.sent: list[bytes] = []
        options: dict[str, Any] = {"api_key": "k", "base_url": "http://model.test", "max_retries": 0}
        http = httpx2.Client(transport=httpx2.MockTransport(self.respond))
        self.client = anthropic.Anthropic(http_client=http, **options)
        async_http = httpx2.AsyncClient(transport=httpx2.MockTransport(self.respond_async))
        self.async_client = anthropic.AsyncAnthropic(http_client=async_http, **options)

    def respond(self, request: httpx2.Request) -> httpx2.Response:
        self.sent.append(request.content)
        one = self.exchange
        kind = one.content_type if one.streamed else "application/json"
        return httpx2.Response(one.status, content=one.response, headers={"content-type": kind})

    async def respond_async(self, request: httpx2.Request) -> httpx2.Response:
        return self.respond(request)

    def endpoint(self, client: Any = None) -> Any:
        client = client or self.client
        return client.beta.messages if self.exchange.beta else client.messages

    def arguments(self, **more: Any) -> dict[str, Any]:
        body = self.exchange.request
        kept = {key: body[key] for key in ("model", "messages", "max_tokens")}
        return {**kept, "extra_body": {key: value for key, value in body.items() if key != "stream"}, **more}

    @property
    def streams(self) -> dict[str, bool]:
        return {"stream": True} if self.exchange.streamed else {}


def create(served: Served) -> Any:
    """The call as most people make it."""
    result = served.endpoint().create(**served.arguments(**served.streams))
    return [event.to_dict() for event in result] if served.exchange.streamed else result.to_dict()


def raw(served: Served) -> Any:
    result = served.endpoint().with_raw_response.create(**served.arguments(**served.streams))
    parsed = result.parse()
    events = [event.to_dict() for event in parsed] if served.exchange.streamed else parsed.to_dict()
    return dict(result.headers), events


def streaming(served: Served) -> Any:
    """With streaming responses: the bytes themselves."""
    with served.endpoint().with_streaming_response.create(**served.arguments(**served.streams)) as result:
        return list(result.iter_bytes(64))


def helper(served: Served) -> Any:
    """The stream helper: its events, and the message that they come to."""
    with served.endpoint().stream(**served.arguments()) as stream:
        events = [event.type for event in stream]
        return events, stream.get_final_message().to_dict()


def texts(served: Served) -> Any:
    """The texts of the stream helper only."""
    with served.endpoint().stream(**served.arguments()) as stream:
        return list(stream.text_stream)


class Told(pydantic.BaseModel):
    """What `parse` is told to make of the text, where it can."""

    city: str


def parse(served: Served) -> Any:
    result = served.endpoint().parse(**served.arguments(output_format=Told))
    return result.to_dict(), result.parsed_output


async def create_async(served: Served) -> Any:
    result = await served.endpoint(served.async_client).create(**served.arguments(**served.streams))
    return [event.to_dict() async for event in result] if served.exchange.streamed else result.to_dict()


async def streaming_async(served: Served) -> Any:
    endpoint = served.endpoint(served.async_client).with_streaming_response
    async with endpoint.create(**served.arguments(**served.streams)) as result:
        return [piece async for piece in result.iter_bytes(64)]


async def helper_async(served: Served) -> Any:
    async with served.endpoint(served.async_client).stream(**served.arguments()) as stream:
        events = [event.type async for event in stream]
        return events, (await stream.get_final_message()).to_dict()


async def parse_async(served: Served) -> Any:
    result = await served.endpoint(served.async_client).parse(**served.arguments(output_format=Told))
    return result.to_dict(), result.parsed_output


STREAMED_ONLY: tuple[Any, ...] = (helper, texts, helper_async)
PLAIN_ONLY: tuple[Any, ...] = (parse, parse_async)
WAYS: tuple[Callable[[Served], Any], ...] = (create, raw, streaming, helper, texts, parse)
ASYNC_WAYS: tuple[Callable[[Served], Awaitable[Any]], ...] = (
    create_async,
    streaming_async,
    helper_async,
    parse_async,
)


def fits(way: Any, exchange: Exchange) -> bool:
    """Whether an exchange can be had this way: helpers need a stream, parsing needs a plain answer."""
    if way in STREAMED_ONLY:
        return exchange.streamed
    return not (way in PLAIN_ONLY and exchange.streamed)


def failed(error: Exception) -> Any:
    return type(error), str(error), getattr(error, "body", None)


def outcome(way: Callable[[Served], Any], exchange: Exchange) -> Any:
    """What the SDK gave back or raised, and what it sent."""
    served = Served(exchange)
    try:
        result = way(served)
    except (anthropic.APIError, pydantic.ValidationError) as error:
        result = failed(error)
    return result, served.sent


async def outcome_async(way: Callable[[Served], Awaitable[Any]], exchange: Exchange) -> Any:
    served = Served(exchange)
    try:
        result = await way(served)
    except (anthropic.APIError, pydantic.ValidationError) as error:
        result = failed(error)
    return result, served.sent


def check_span(rec: Recording, exchange: Exchange) -> None:
    """One span an attempt, with everything that the exchange says."""
    span = rec.one("chat")
    assert attribute(span, "gen_ai.provider.name") == "anthropic"
    assert attribute(span, "gen_ai.request.model") == exchange.request["model"]
    assert attribute(span, "gen_ai.request.max_tokens") == exchange.request["max_tokens"]
    assert attribute(span, "spanreel.request.raw") is None
    assert attribute(span, "spanreel.response.raw") is None
    assert content(span, "gen_ai.input.messages")
    assert bool(content(span, "gen_ai.system_instructions")) == bool(exchange.request.get("system"))
    if exchange.status >= 400:
        assert span.status.status_code is StatusCode.ERROR
        assert attribute(span, "error.type") == json.loads(exchange.response)["error"]["type"]
        return
    protocol = exchange.protocol
    streamed = exchange.streamed
    answer = protocol.join(pieces_of(exchange.response)) if streamed else protocol.read_response(exchange.response, 200)
    assert attribute(span, "gen_ai.response.model") == answer.model
    assert attribute(span, "gen_ai.response.id") == answer.response_id
    assert list(attribute(span, "gen_ai.response.finish_reasons") or ()) == answer.finish_reasons
    assert content(span, "gen_ai.output.messages") == list(answer.messages)
    assert answer.usage is not None
    assert attribute(span, "gen_ai.usage.input_tokens") == answer.usage.input_tokens
    assert attribute(span, "gen_ai.usage.output_tokens") == answer.usage.output_tokens


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_the_sdk_gives_what_it_gives_without_us(way: Callable[[Served], Any]) -> None:
    wrong = []
    for exchange in exchanges(FILE):
        if not fits(way, exchange):
            continue
        expected = outcome(way, exchange)
        with recording() as rec:
            got = outcome(way, exchange)
        try:
            assert got == expected
            assert len(got[1]) == 1
            check_span(rec, exchange)
        except AssertionError as error:
            wrong.append(f"{exchange.id}: {str(error).splitlines()[0]}")
    assert wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("way", ASYNC_WAYS, ids=lambda way: way.__name__)
async def test_the_async_sdk_gives_what_it_gives_without_us(way: Callable[[Served], Awaitable[Any]]) -> None:
    wrong = []
    for exchange in exchanges(FILE):
        if not fits(way, exchange):
            continue
        expected = await outcome_async(way, exchange)
        with recording() as rec:
            got = await outcome_async(way, exchange)
        try:
            assert got == expected
            check_span(rec, exchange)
        except AssertionError as error:
            wrong.append(f"{exchange.id}: {str(error).splitlines()[0]}")
    assert wrong == []


@pytest.mark.slow
def test_what_is_written_again_is_the_same_to_the_sdk() -> None:
    """The real SDK's reading of an answer that was read and written by us, plain and streamed, as it came."""
    for exchange in exchanges(FILE):
        protocol = exchange.protocol
        if exchange.streamed:
            pieces = protocol.split(protocol.join(pieces_of(exchange.response)))
            again = b"".join(piece for _, piece in pieces)
        else:
            again = protocol.write_response(protocol.read_response(exchange.response, exchange.status))
        assert outcome(create, exchange.answering(again))[0] == outcome(create, exchange)[0], exchange.id


@pytest.mark.slow
def test_an_answer_without_chunks_and_fields_is_accepted_by_the_sdk() -> None:
    """What a replay of another provider's recording, or a script, gives: content, reasons and usage are the same."""
    for exchange in exchanges(FILE):
        if exchange.status >= 400:
            continue
        protocol, streamed = exchange.protocol, exchange.streamed
        response = exchange.response
        answer = protocol.join(pieces_of(response)) if streamed else protocol.read_response(response, 200)
        bare = type(answer)(answer.response_id, answer.model, answer.messages, answer.usage)
        plain = outcome(create, exchange.answering(protocol.write_response(bare)))[0]
        stream = b"".join(piece for _, piece in protocol.split(bare))
        joined = outcome(helper, exchange.answering(stream))[0][1]
        native = outcome(helper if streamed else create, exchange)[0]
        native = native[1] if streamed else native
        assert plain["content"] == [without_nulls(block) for block in native["content"]], exchange.id
        assert [without_nulls(block) for block in joined["content"]] == plain["content"], exchange.id
        assert joined["usage"]["output_tokens"] == native["usage"]["output_tokens"], exchange.id
        reasons = {native["stop_reason"], *(("end_turn",) if native["stop_reason"] in (None, "stop_sequence") else ())}
        assert {plain["stop_reason"], joined["stop_reason"]} <= reasons, exchange.id


def without_nulls(block: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in block.items() if value is not None and key != "parsed_output"}


ASK: dict[str, Any] = {"model": "claude", "max_tokens": 9, "messages": [{"role": "user", "content": "Go."}]}


def scripted(*script: Any, **options: Any) -> anthropic.Anthropic:
    http = httpx2.Client(transport=testing.ScriptedProvider(script).transport("httpx2"))
    return anthropic.Anthropic(api_key="k", base_url="http://model.test", http_client=http, **options)


def test_each_attempt_is_a_span_and_all_are_one_call() -> None:
    with recording() as rec:
        busy = testing.error(529, "Overloaded", "overloaded_error", retry_after_ms="1")
        scripted(busy, busy, testing.text("Hi.")).messages.create(**ASK)
    spans = rec.of("chat")
    assert [attribute(span, "error.type") for span in spans] == ["overloaded_error", "overloaded_error", None]
    assert len({attribute(span, "spanreel.call.id") for span in spans}) == 1


def test_an_error_in_the_middle_of_a_stream_is_the_spans_and_reaches_the_user() -> None:
    whole = testing.text("one two three").answer
    failed = replace(whole, error=Error(ErrorCategory.MODEL, "overloaded_error", "Overloaded"), usage=Usage(1, 1))
    failed = replace(failed, provider_fields={"error": {"type": "overloaded_error", "message": "Overloaded"}})
    with recording() as rec, pytest.raises(anthropic.APIStatusError, match="Overloaded"):
        list(scripted(failed, max_retries=0).messages.create(**ASK, stream=True))
    span = rec.one("chat")
    assert attribute(span, "error.type") == "overloaded_error"
    assert span.status.status_code is StatusCode.ERROR
    assert content(span, "gen_ai.output.messages")[0]["parts"] == [{"type": "text", "content": "one two three"}]


def test_a_stream_closed_early_is_finished_not_failed() -> None:
    with recording() as rec:
        with scripted(testing.text("one two three")).messages.stream(**ASK) as stream:
            assert next(iter(stream.text_stream)) == "one"
        assert len(rec.of("chat")) == 1
    span = rec.one("chat")
    assert attribute(span, "error.type") is None
    assert attribute(span, "spanreel.stream.complete") is False


def test_counting_tokens_is_no_model_call() -> None:
    def respond(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, json={"input_tokens": 3})

    with recording() as rec:
        http = httpx2.Client(transport=httpx2.MockTransport(respond))
        client = anthropic.Anthropic(api_key="k", base_url="http://model.test", http_client=http)
        counted = client.messages.count_tokens(model="claude", messages=ASK["messages"])
    assert counted.input_tokens == 3
    assert rec.spans == []


def test_the_scripted_provider_is_a_base_url_for_the_sdk() -> None:
    with testing.ScriptedProvider([testing.text("Hi."), testing.tool_call("add", {"a": 1})]) as provider:
        client = anthropic.Anthropic(api_key="k", base_url=provider.base_url)
        assert client.messages.create(**ASK).id == "msg_1"
        with client.messages.stream(**ASK) as stream:
            (call,) = stream.get_final_message().content
    assert (call.type, call.to_dict()["id"], call.to_dict()["input"]) == ("tool_use", "toolu_1", {"a": 1})
    assert provider.requests[0].path.endswith("/v1/messages")
