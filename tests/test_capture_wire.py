"""Model calls taken at the wire: the matrix of `RUN-1`, through the real OpenAI SDK."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import httpx2
import openai
import pytest
from opentelemetry import trace
from opentelemetry.trace import StatusCode

from recording import Recording, attribute, content, recording
from wire_server import ASK, Model, completion


def said(span: Any) -> str:
    messages = content(span, "gen_ai.output.messages")
    return "".join(part["content"] for part in messages[0]["parts"] if part["type"] == "text")


def check_whole(rec: Recording) -> None:
    span = rec.one("chat")
    assert span.status.status_code is StatusCode.UNSET
    assert span.name == "chat gpt-asked"
    assert said(span) == "Hello."
    assert attribute(span, "gen_ai.request.model") == "gpt-asked"
    assert attribute(span, "gen_ai.response.model") == "gpt-served"
    assert attribute(span, "gen_ai.response.id") == "chatcmpl-1"
    assert attribute(span, "gen_ai.usage.input_tokens") == 9
    assert attribute(span, "gen_ai.usage.output_tokens") == 2
    assert attribute(span, "gen_ai.usage.cache_read.input_tokens") == 4
    assert attribute(span, "gen_ai.usage.reasoning.output_tokens") == 1
    assert tuple(attribute(span, "gen_ai.response.finish_reasons")) == ("stop",)
    assert content(span, "gen_ai.input.messages")[0]["parts"][0]["content"] == "Say hello."


def test_a_plain_call_is_one_whole_span() -> None:
    with recording() as rec:
        answer = Model().client().chat.completions.create(**ASK)
        assert answer.choices[0].message.content == "Hello."
        check_whole(rec)


async def test_a_plain_async_call_is_one_whole_span() -> None:
    with recording() as rec:
        answer = await Model().async_client().chat.completions.create(**ASK)
        assert answer.choices[0].message.content == "Hello."
        check_whole(rec)


def test_a_drained_stream_is_one_whole_span_and_stays_the_sdk_s_stream() -> None:
    with recording() as rec:
        stream = Model().client().chat.completions.create(**ASK, stream=True)
        assert isinstance(stream, openai.Stream)
        assert rec.spans == []
        assert "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices) == "Hello."
        check_whole(rec)
        assert attribute(rec.one("chat"), "gen_ai.request.stream") is True


async def test_a_drained_async_stream_is_one_whole_span() -> None:
    with recording() as rec:
        stream = await Model().async_client().chat.completions.create(**ASK, stream=True)
        assert isinstance(stream, openai.AsyncStream)
        texts = [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]
        assert "".join(texts) == "Hello."
        check_whole(rec)


def check_cut(rec: Recording, text: str) -> None:
    span = rec.one("chat")
    assert span.status.status_code is StatusCode.UNSET
    assert attribute(span, "error.type") is None
    assert said(span) == text if text else content(span, "gen_ai.output.messages") in (None, [])
    assert attribute(span, "spanreel.stream.complete") is False


def test_a_stream_left_by_break_in_with_is_finished_not_failed() -> None:
    with recording() as rec:
        with Model().client().chat.completions.create(**ASK, stream=True) as stream:
            for _chunk in stream:
                break
        check_cut(rec, "Hel")


@pytest.mark.slow
def test_a_stream_that_is_dropped_is_finished_at_garbage_collection() -> None:
    with recording() as rec:
        stream = Model().client().chat.completions.create(**ASK, stream=True)
        for _chunk in stream:
            break
        del stream, _chunk
        gc.collect()
        check_cut(rec, "Hel")


UNREAD = """
import atexit, os, sys, openai, spanreel
from spanreel import testing
spanreel.instrument(settings=spanreel.read_settings({"SPANREEL_FILE": sys.argv[1]}))
with testing.ScriptedProvider([testing.text("one two")]) as provider:
    client = openai.OpenAI(api_key="none", base_url=provider.base_url)
    stream = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "q"}], stream=True)
    next(iter(stream))
    if hasattr(os, "fork"):
        child = os.fork()
        if child == 0:
            atexit._run_exitfuncs()  # the provider's thread is not here, so that its block cannot be left
            os._exit(0)
        os.waitpid(child, 0)
"""


@pytest.mark.slow
def test_a_stream_that_nobody_read_to_its_end_is_finished_at_the_programs_end_and_once(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    subprocess.run([sys.executable, "-W", "ignore", "-c", UNREAD, str(file)], check=True, timeout=600)
    assert file.read_text().count('"name":"chat m"') == 1


def test_a_stream_closed_early_is_finished_not_failed() -> None:
    with recording() as rec:
        stream = Model().client().chat.completions.create(**ASK, stream=True)
        next(iter(stream))
        stream.close()
        check_cut(rec, "Hel")


async def test_an_async_stream_closed_early_is_finished_not_failed() -> None:
    with recording() as rec:
        stream = await Model().async_client().chat.completions.create(**ASK, stream=True)
        async for _chunk in stream:
            break
        await stream.close()
        check_cut(rec, "Hel")


@pytest.mark.slow
def test_a_stream_never_read_is_finished_when_it_is_dropped() -> None:
    with recording() as rec:
        stream = Model().client().chat.completions.create(**ASK, stream=True)
        del stream
        gc.collect()
        check_cut(rec, "")


def test_an_error_of_the_user_in_the_loop_is_not_the_model_s() -> None:
    with recording() as rec:
        with (
            pytest.raises(KeyError),
            Model().client().chat.completions.create(**ASK, stream=True) as stream,
        ):
            for _chunk in stream:
                raise KeyError("the user's own")
        check_cut(rec, "Hel")


async def test_a_task_cancelled_in_the_middle_of_a_stream_is_cancelled() -> None:
    with recording() as rec:
        model = Model()
        model.hold = asyncio.Event()
        outer = rec.tracer.start_span("outer")
        seen: list[Any] = []

        async def read() -> None:
            with trace.use_span(outer):
                stream = await model.async_client().chat.completions.create(**ASK, stream=True)
                try:
                    async for chunk in stream:
                        seen.append(chunk)
                finally:
                    assert trace.get_current_span() is outer

        task = asyncio.create_task(read())
        while not seen:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        span = rec.one("chat")
        assert span.status.status_code is StatusCode.ERROR
        assert attribute(span, "error.type") == "CancelledError"
        assert said(span) == "Hel"


async def test_a_call_cancelled_while_it_waits_ends_its_span_and_restores_the_context() -> None:
    with recording() as rec:
        waiting = asyncio.Event()

        async def respond(_request: httpx2.Request) -> httpx2.Response:
            waiting.set()
            await asyncio.sleep(30)
            raise AssertionError

        http = httpx2.AsyncClient(transport=httpx2.MockTransport(respond))
        client = openai.AsyncOpenAI(api_key="k", base_url="http://model.test/v1", http_client=http)
        task = asyncio.create_task(client.chat.completions.create(**ASK))
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        span = rec.one("chat")
        assert attribute(span, "error.type") == "CancelledError"
        assert not trace.get_current_span().get_span_context().is_valid


async def test_a_stream_read_in_another_task_belongs_to_the_one_that_asked() -> None:
    with recording() as rec:
        with rec.tracer.start_as_current_span("asked here") as asked:
            stream = await Model().async_client().chat.completions.create(**ASK, stream=True)

        async def read() -> None:
            with rec.tracer.start_as_current_span("read there"):
                async for _chunk in stream:
                    pass

        await asyncio.create_task(read())
        span = rec.one("chat")
        assert span.parent is not None
        assert span.parent.span_id == asked.get_span_context().span_id


@pytest.mark.parametrize("streamed", [False, True])
def test_raw_responses_are_what_they_are_without_us(streamed: bool) -> None:
    with recording() as rec:
        raw = Model().client().chat.completions.with_raw_response.create(**ASK, stream=streamed)
        assert streamed or raw.headers["x-ratelimit-remaining-requests"] == "41"
        parsed: Any = raw.parse()
        if streamed:
            assert "".join(chunk.choices[0].delta.content or "" for chunk in parsed if chunk.choices) == "Hello."
        check_whole(rec)


@pytest.mark.parametrize("streamed", [False, True])
def test_streaming_responses_are_what_they_are_without_us(streamed: bool) -> None:
    with recording() as rec:
        with Model().client().chat.completions.with_streaming_response.create(**ASK, stream=streamed) as raw:
            if streamed:
                lines = list(raw.iter_lines())
                assert lines[-2:] == ["data: [DONE]", ""]
            else:
                parsed: Any = raw.parse()
                assert parsed.choices[0].message.content == "Hello."
        check_whole(rec)


def test_the_stream_helper_and_parse_cross_at_the_same_place() -> None:
    with recording() as rec:
        with Model().client().chat.completions.stream(**ASK) as stream:
            assert stream.get_final_completion().choices[0].message.content == "Hello."
        check_whole(rec)
    with recording() as rec:
        assert Model().client().chat.completions.parse(**ASK).choices[0].message.content == "Hello."
        check_whole(rec)


def test_a_call_made_in_an_executor_is_a_child_of_its_caller() -> None:
    with recording() as rec, ThreadPoolExecutor(1) as pool:
        create: Any = Model().client().chat.completions.create
        for name in ("first", "second"):
            with rec.tracer.start_as_current_span(name):
                pool.submit(create, **ASK).result()
        pool.submit(create, **ASK).result()
        parents = [span.parent.span_id if span.parent else None for span in rec.of("chat")]
        named = [rec.named(name).context for name in ("first", "second")]
        assert parents == [*(context.span_id for context in named if context), None]


def test_a_prompt_given_as_a_generator_still_reaches_the_model() -> None:
    model = Model()
    with recording() as rec:
        messages: Any = ({"role": "user", "content": text} for text in ("one", "two"))
        model.client().chat.completions.create(model="gpt-asked", messages=messages)
        assert [m["content"] for m in json.loads(model.asked[0])["messages"]] == ["one", "two"]
        assert len(content(rec.one("chat"), "gen_ai.input.messages")) == 2


def test_what_is_not_given_leaves_no_attribute_and_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    with recording() as rec:
        answer = completion()
        del answer["id"], answer["model"]
        form = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}
        client = Model(lambda _body: answer).client()
        client.chat.completions.create(**ASK, temperature=openai.NOT_GIVEN, top_p=openai.omit, response_format=form)  # type: ignore[call-overload]
        span = rec.one("chat")
        assert not [text for text in map(str, (span.attributes or {}).values()) if "NotGiven" in text or "Omit" in text]
        settings = content(span, "spanreel.request.settings")
        assert settings["response_format"] == form
        assert attribute(span, "gen_ai.response.id") is None
        assert [record for record in caplog.records if record.name.startswith("opentelemetry")] == []


def test_a_request_without_a_model_is_named_by_its_operation() -> None:
    with recording() as rec:
        body = json.dumps({"messages": ASK["messages"]}).encode()
        client = httpx2.Client(transport=httpx2.MockTransport(Model().respond))
        client.post("http://x.test/v1/chat/completions", content=body)
        assert rec.one("chat").name == "chat"


def test_a_request_whose_path_names_the_model_is_named_by_it() -> None:
    with recording() as rec:
        body = json.dumps({"messages": ASK["messages"]}).encode()
        client = httpx2.Client(transport=httpx2.MockTransport(Model().respond))
        client.post("http://x.test/openai/deployments/my-gpt/chat/completions", content=body)
        span = rec.one("chat")
        assert (span.name, attribute(span, "gen_ai.request.model")) == ("chat my-gpt", "my-gpt")


def test_an_error_answer_is_an_error_with_its_type_and_the_sdk_s_exception_passes_unchanged() -> None:
    refusal = {"error": {"message": "No such model.", "type": "invalid_request_error", "code": "model_not_found"}}
    with recording() as rec:
        client = Model(lambda _body: httpx2.Response(404, json=refusal)).client(max_retries=0)
        with pytest.raises(openai.NotFoundError, match="No such model"):
            client.chat.completions.create(**ASK)
        span = rec.one("chat")
        assert span.status.status_code is StatusCode.ERROR
        assert attribute(span, "error.type") == "invalid_request_error"
        assert attribute(span, "spanreel.response.status") == 404


def test_an_exception_of_the_transport_passes_unchanged() -> None:
    failure = httpx2.ConnectError("no route")
    with recording() as rec:
        client = httpx2.Client(transport=httpx2.MockTransport(Model(lambda _body: failure).respond))
        with pytest.raises(httpx2.ConnectError) as caught:
            client.post("http://x.test/v1/chat/completions", json=ASK)
        assert caught.value is failure
        assert attribute(rec.one("chat"), "error.type") == "httpx2.ConnectError"


def failing_twice() -> Model:
    statuses = iter((429, 500))

    def answer(_body: dict[str, Any]) -> Any:
        status = next(statuses, 200)
        if status == 200:
            return completion()
        return httpx2.Response(status, json={"error": {"message": "busy"}}, headers={"retry-after-ms": "1"})

    return Model(answer)


def test_three_attempts_share_their_call_and_their_trace() -> None:
    with recording() as rec:
        failing_twice().client(max_retries=2).chat.completions.create(**ASK)
        spans = rec.of("chat")
        assert [attribute(span, "spanreel.attempt") for span in spans] == [None, 1, 2] or [
            attribute(span, "spanreel.attempt") for span in spans
        ] == [0, 1, 2]
        assert len({attribute(span, "spanreel.call.id") for span in spans}) == 1
        assert len({span.context.trace_id for span in spans if span.context}) == 1
        assert [span.status.status_code for span in spans] == [StatusCode.ERROR, StatusCode.ERROR, StatusCode.UNSET]


@pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])
def test_http_that_is_no_model_exchange_passes_and_leaves_nothing(library: Any) -> None:
    seen: list[bytes] = []

    def respond(request: Any) -> Any:
        seen.append(request.read())
        return library.Response(200, content=b"\x00\xff" * 1000, headers={"content-type": "application/octet-stream"})

    with recording() as rec:
        client = library.Client(transport=library.MockTransport(respond))
        assert client.get("http://x.test/file").content == b"\x00\xff" * 1000
        client.post("http://x.test/upload", files={"file": b"abc" * 1000})
        client.post("http://x.test/v1/chat/completions", content=(piece for piece in (b"a", b"b")))
        client.post("http://x.test/v1/responses", json={"unrelated": 1})
        with client.stream("GET", "http://x.test/file") as response:
            assert b"".join(response.iter_bytes()) == b"\x00\xff" * 1000
        assert seen[2] == b"ab"
        assert rec.spans == []


@pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])
@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_compressed_answers_are_read_and_passed_on_as_they_are(library: Any, encoding: str) -> None:
    import gzip
    import zlib

    compress = gzip.compress if encoding == "gzip" else zlib.compress
    body = compress(json.dumps(completion()).encode())
    headers = {"content-encoding": encoding, "content-type": "application/json"}

    def respond(_request: Any) -> Any:
        return library.Response(200, stream=library.ByteStream(body), headers=headers)

    with recording() as rec:
        client = library.Client(transport=library.MockTransport(respond))
        with client.stream("POST", "http://x.test/v1/chat/completions", json=ASK) as response:
            assert b"".join(response.iter_raw()) == body
        assert said(rec.one("chat")) == "Hello."


def test_the_stream_is_never_delayed() -> None:
    arrived: list[str] = []

    class Watched(httpx2.SyncByteStream):
        def __iter__(self) -> Any:
            for piece in (b"data: 1\n\n", b"data: 2\n\n"):
                arrived.append("sent")
                yield piece

    def respond(_request: Any) -> Any:
        return httpx2.Response(200, stream=Watched(), headers={"content-type": "text/event-stream"})

    with recording():
        client = httpx2.Client(transport=httpx2.MockTransport(respond))
        with client.stream("POST", "http://x.test/v1/chat/completions", json=ASK) as response:
            for _piece in response.iter_raw():
                arrived.append("read")
    assert arrived == ["sent", "read", "sent", "read"]


def test_wraps_are_taken_away_again() -> None:
    before = httpx2.Client.send, httpx2.AsyncClient.send
    with recording() as rec:
        assert httpx2.Client.send is not before[0]
    assert (httpx2.Client.send, httpx2.AsyncClient.send) == before
    Model().client().chat.completions.create(**ASK)
    assert rec.spans == []


def test_with_content_off_no_content_leaves_by_any_channel() -> None:
    from spanreel.settings import read_settings

    with recording(settings=read_settings({"SPANREEL_CAPTURE": "metadata"})) as rec:
        secret = {"error": {"message": "SENTINEL-ERROR", "type": "bad"}}
        model = Model(
            lambda body: httpx2.Response(400, json=secret) if "FAIL" in str(body) else completion("SENTINEL-OUT")
        )
        client = model.client(max_retries=0)
        client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "SENTINEL-IN"}], user="SENTINEL-USER"
        )
        with pytest.raises(openai.BadRequestError):
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": "FAIL SENTINEL"}])
        dump = " ".join(span.to_json() for span in rec.spans)
        assert "SENTINEL" not in dump
        assert len(rec.of("chat")) == 2


def test_capture_off_records_nothing() -> None:
    from spanreel.settings import read_settings

    with recording(settings=read_settings({"SPANREEL_CAPTURE": "off"})) as rec:
        Model().client().chat.completions.create(**ASK)
        assert rec.spans == []
