"""What the real OpenAI SDK makes of an exchange that was read and written again: the same as of the exchange itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx2
import openai
import pydantic
import pytest

from exchange_cases import OPENAI_FILES, Exchange, exchanges, pieces_of
from spanreel.model import Answer

pytestmark = pytest.mark.slow

every_file = pytest.mark.parametrize("file", OPENAI_FILES)


@every_file
def test_the_sdk_returns_the_same(file: str) -> None:
    for exchange in exchanges(file):
        again = _again(exchange)
        for name, call in _calls(exchange).items():
            expected = _outcome(call, exchange, exchange.response)
            assert _outcome(call, exchange, again) == expected, (exchange.id, name)


@every_file
def test_the_sdk_reads_a_plain_answer_as_a_stream(file: str) -> None:
    """An answer without chunks is streamed as the provider would: the SDK's helper accumulates the same answer."""
    for exchange in exchanges(file):
        if exchange.streamed or exchange.status >= 400:
            continue
        plain = exchange.protocol.read_response(exchange.response, exchange.status)
        stream = b"".join(piece for _, piece in exchange.protocol.split(plain))
        joined = exchange.protocol.join(pieces_of(stream))
        assert list(map(_bare, joined.messages)) == list(map(_bare, plain.messages)), exchange.id
        assert joined.usage == plain.usage, exchange.id
        _outcome(_stream, exchange, stream, strict=True)
        if _accepts_helper(exchange):
            kind, final = _outcome(_final, exchange, stream, strict=True)
            assert kind == "returned"
            assert _said(final) == _said(json.loads(exchange.response)), exchange.id


@every_file
def test_the_sdk_reads_what_was_recorded_by_somebody_else(file: str) -> None:
    """An answer with nothing but its canonical form is made up as far as the SDK needs it."""
    for exchange in exchanges(file):
        if exchange.status >= 400:
            continue
        answer = _read(exchange)
        bare = Answer(messages=tuple(_bare(message) for message in answer.messages), usage=answer.usage)
        body = exchange.protocol.write_response(bare)
        stream = b"".join(piece for _, piece in exchange.protocol.split(bare))
        assert _outcome(_create, exchange, body, strict=True)[0] == "returned"
        assert _outcome(_stream, exchange, stream, strict=True)[0] == "returned"
        assert exchange.protocol.read_response(body, 200).finish_reasons == answer.finish_reasons, exchange.id


def _read(exchange: Exchange) -> Answer:
    if exchange.streamed:
        return exchange.protocol.join(pieces_of(exchange.response))
    return exchange.protocol.read_response(exchange.response, exchange.status)


def _again(exchange: Exchange) -> bytes:
    answer = _read(exchange)
    if exchange.streamed:
        return b"".join(piece for _, piece in exchange.protocol.split(answer))
    return exchange.protocol.write_response(answer)


def _bare(message: dict[str, Any]) -> dict[str, Any]:
    return {
        **{key: value for key, value in message.items() if key != "provider_fields"},
        "parts": [{key: value for key, value in part.items() if key != "provider_fields"} for part in message["parts"]],
    }


def _client(exchange: Exchange, body: bytes) -> openai.OpenAI:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(exchange.status, headers={"content-type": exchange.content_type}, content=body)

    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    return openai.OpenAI(api_key="none", base_url="http://provider/v1", http_client=http, max_retries=0)


def _resource(client: Any, exchange: Exchange) -> Any:
    return client.responses if exchange.protocol.NAME == "openai_responses" else client.chat.completions


def _arguments(exchange: Exchange) -> dict[str, Any]:
    return {key: value for key, value in exchange.request.items() if key not in ("stream", "stream_options")}


def _create(client: openai.OpenAI, exchange: Exchange) -> Any:
    return _resource(client, exchange).create(extra_body=_arguments(exchange), **_required(exchange)).model_dump()


def _required(exchange: Exchange) -> dict[str, Any]:
    if exchange.protocol.NAME == "openai_responses":
        return {"model": "m", "input": "hello"}
    return {"model": "m", "messages": []}


def _raw(client: openai.OpenAI, exchange: Exchange) -> Any:
    raw = _resource(client, exchange).with_raw_response.create(extra_body=_arguments(exchange), **_required(exchange))
    return raw.status_code, json.loads(raw.text), raw.parse().model_dump()


def _streaming_response(client: openai.OpenAI, exchange: Exchange) -> Any:
    method = _resource(client, exchange).with_streaming_response.create
    with method(extra_body=_arguments(exchange), **_required(exchange)) as response:
        return json.loads("".join(response.iter_text()))


def _parse(client: openai.OpenAI, exchange: Exchange) -> Any:
    return _resource(client, exchange).parse(extra_body=_arguments(exchange), **_required(exchange)).model_dump()


def _stream(client: openai.OpenAI, exchange: Exchange) -> Any:
    method = _resource(client, exchange).create
    events = method(stream=True, extra_body=_arguments(exchange), **_required(exchange))
    return [event.model_dump() for event in events]


def _raw_stream(client: openai.OpenAI, exchange: Exchange) -> Any:
    method = _resource(client, exchange).with_raw_response.create
    raw = method(stream=True, extra_body=_arguments(exchange), **_required(exchange))
    return [event.model_dump() for event in raw.parse()]


def _streaming_stream(client: openai.OpenAI, exchange: Exchange) -> Any:
    method = _resource(client, exchange).with_streaming_response.create
    with method(stream=True, extra_body=_arguments(exchange), **_required(exchange)) as response:
        return [event.model_dump() for event in response.parse()]


def _helper(client: openai.OpenAI, exchange: Exchange) -> Any:
    with _resource(client, exchange).stream(extra_body=_arguments(exchange), **_required(exchange)) as stream:
        return [_dump(event) for event in stream]


def _final(client: openai.OpenAI, exchange: Exchange) -> Any:
    with _resource(client, exchange).stream(extra_body=_arguments(exchange), **_required(exchange)) as stream:
        if exchange.protocol.NAME == "openai_responses":
            return stream.get_final_response().model_dump()
        return stream.get_final_completion().model_dump()


def _dump(event: Any) -> Any:
    return event.model_dump() if isinstance(event, pydantic.BaseModel) else repr(event)


def _calls(exchange: Exchange) -> dict[str, Callable[[openai.OpenAI, Exchange], Any]]:
    if exchange.streamed:
        return {
            "stream": _stream,
            "raw": _raw_stream,
            "streaming": _streaming_stream,
            "helper": _helper,
            "final": _final,
        }
    return {"create": _create, "raw": _raw, "streaming": _streaming_response, "parse": _parse}


def _outcome(
    call: Callable[[openai.OpenAI, Exchange], Any], exchange: Exchange, body: bytes, *, strict: bool = False
) -> tuple[str, Any]:
    """What a call of the SDK returns or raises."""
    with _client(exchange, body) as client:
        try:
            return "returned", call(client, exchange)
        except Exception as error:
            if strict:
                raise AssertionError(exchange.id) from error
            return "raised", (type(error).__name__, str(error))


def _accepts_helper(exchange: Exchange) -> bool:
    """Whether the SDK's helper takes such a stream at all: it needs a finished answer of the current API."""
    body = json.loads(exchange.response)
    if exchange.protocol.NAME == "openai_responses":
        return True
    return all(
        choice.get("finish_reason") in ("stop", "tool_calls") and "function_call" not in choice["message"]
        for choice in body["choices"]
    )


def _said(value: Any) -> Any:
    """A response without nulls, without what the SDK adds, and without what it does not take from a stream."""
    if isinstance(value, dict):
        skipped = ("parsed", "parsed_arguments", "content_filter_results", "prompt_filter_results", "seed", "index")
        said = {key: _said(part) for key, part in value.items() if key not in skipped}
        return {key: part for key, part in said.items() if part not in (None, [], {})}
    return list(map(_said, value)) if isinstance(value, list) else value
