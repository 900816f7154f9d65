"""Model calls over aiohttp: recorded however the response is read, and answered in a replay with no connection."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import spanreel
from recording import attribute, content, recording
from spanreel import testing
from spanreel_collector import convert_files

WORDS = "one two three four five six"
ASKED = {"model": "m", "messages": [{"role": "user", "content": "Count."}], "stream": True}


async def _json(response: Any) -> Any:
    return json.loads(await response.read())["choices"][0]["message"]["content"]


async def _text(response: Any) -> str:
    return str(await response.text())


async def _lines(response: Any) -> str:
    return b"".join([line async for line in response.content]).decode()


async def _any(response: Any) -> str:
    return b"".join([piece async for piece in response.content.iter_any()]).decode()


async def _chunked(response: Any) -> str:
    return b"".join([piece async for piece in response.content.iter_chunked(7)]).decode()


async def _chunks(response: Any) -> str:
    return b"".join([piece async for piece, _ in response.content.iter_chunks()]).decode()


async def _readline(response: Any) -> str:
    lines = []
    while line := await response.content.readline():
        lines.append(line)
    return b"".join(lines).decode()


async def _until(response: Any) -> str:
    parts = []
    while part := await response.content.readuntil(b"\n\n"):
        parts.append(part)
    return b"".join(parts).decode()


async def _exactly(response: Any) -> str:
    first = await response.content.readexactly(10)
    rest = [await response.content.readany()]
    while not response.content.at_eof():
        rest.append(response.content.read_nowait() or await response.content.readany())
    whole: bytes = first + b"".join(rest)
    return whole.decode()


READERS: list[Callable[[Any], Awaitable[str]]] = [
    _text,
    _lines,
    _any,
    _chunked,
    _chunks,
    _readline,
    _until,
    _exactly,
]


async def ask(root: str, read: Callable[[Any], Awaitable[Any]], **asked: Any) -> Any:
    async with aiohttp.ClientSession() as session, session.post(f"{root}/chat/completions", **asked) as response:
        return await read(response)


@pytest.mark.parametrize("read", READERS)
def test_a_stream_is_recorded_however_it_is_read_and_comes_again(
    read: Callable[[Any], Awaitable[str]], tmp_path: Path
) -> None:
    file = tmp_path / "traces.jsonl"
    with testing.ScriptedProvider([testing.text(WORDS), testing.text(WORDS)]) as provider:
        plain = asyncio.run(ask(provider.base_url, read, json=ASKED))
        spanreel.instrument(settings=spanreel.read_settings({"SPANREEL_FILE": str(file), "SPANREEL_LOG": "off"}))
        try:
            recorded = asyncio.run(ask(provider.base_url, read, json=ASKED))
            assert spanreel.flush()
        finally:
            spanreel.uninstrument()
    assert recorded.replace("chatcmpl-2", "chatcmpl-1") == plain
    (session,) = convert_files([str(file)]).sessions
    call = session.runs[0].turns[0].model_call
    assert call is not None
    assert (call.protocol, call.streamed, call.complete) == ("openai_chat", True, True)
    assert session.messages[call.output[0]].parts == [{"type": "text", "content": WORDS}]
    with spanreel.replay(session) as playing:
        assert asyncio.run(ask("http://127.0.0.1:9/v1", read, json=ASKED)) == recorded
    assert str(playing.verdict) == "PASS"


@pytest.mark.parametrize(
    "asked",
    [
        {"json": {**ASKED, "stream": False}},
        {"data": json.dumps({**ASKED, "stream": False})},
        {"data": json.dumps({**ASKED, "stream": False}).encode(), "params": {"api-version": "1"}},
        {"data": bytearray(json.dumps({**ASKED, "stream": False}).encode()), "raise_for_status": True},
    ],
)
async def test_a_body_is_read_in_whatever_form_it_is_given(asked: dict[str, Any]) -> None:
    with testing.ScriptedProvider([testing.text(WORDS)]) as provider, recording() as rec:
        assert await ask(provider.base_url, _json, **asked) == WORDS
    span = rec.one("chat")
    assert attribute(span, "server.port") == int(provider.requests[0].headers["host"].rpartition(":")[2])
    assert content(span, "gen_ai.input.messages")[0]["parts"] == [{"type": "text", "content": "Count."}]
    assert content(span, "gen_ai.output.messages")[0]["parts"] == [{"type": "text", "content": WORDS}]


async def test_a_path_is_read_with_the_base_of_the_session() -> None:
    with testing.ScriptedProvider([testing.text(WORDS)]) as provider, recording() as rec:
        async with (
            aiohttp.ClientSession(base_url=f"{provider.base_url}/chat/") as session,
            session.request("post", "completions", json={**ASKED, "stream": False}) as response,
        ):
            assert await _json(response) == WORDS
    assert rec.one("chat").name == "chat m"


async def test_a_stream_left_early_is_finished_not_failed_and_so_is_one_that_nobody_reads() -> None:
    async def first(response: Any) -> bytes:
        return bytes(await response.content.readline())

    async def nothing(_response: Any) -> bytes:
        return b""

    with testing.ScriptedProvider([testing.text(WORDS, hold=5), testing.text(WORDS)]) as provider, recording() as rec:
        assert await ask(provider.base_url, first, json=ASKED)
        assert await ask(provider.base_url, nothing, json=ASKED) == b""
    assert [(span.status.status_code.name, attribute(span, "error.type")) for span in rec.of("chat")] == [
        ("UNSET", None)
    ] * 2


async def test_a_stream_that_is_dropped_is_finished_at_garbage_collection() -> None:
    with testing.ScriptedProvider([testing.text(WORDS)]) as provider, recording() as rec:
        async with aiohttp.ClientSession() as session:
            response = await session.post(f"{provider.base_url}/chat/completions", json=ASKED)
            await response.content.readline()
            while not response.content.is_eof():
                await asyncio.sleep(0.01)
            assert rec.of("chat") == []
            del response
            gc.collect()
            assert len(rec.of("chat")) == 1


async def test_a_failure_is_an_error_with_what_the_provider_said_and_the_libraries_own_exception_passes() -> None:
    script = [testing.error(429, "slow down"), testing.error(429, "slow down")]
    with testing.ScriptedProvider(script) as provider, recording() as rec:
        assert "slow down" in await ask(provider.base_url, _text, json=ASKED)
        with pytest.raises(aiohttp.ClientResponseError, match="429"):
            await ask(provider.base_url, _text, json=ASKED, raise_for_status=True)
    assert [attribute(span, "error.type") for span in rec.of("chat")] == ["rate_limit_exceeded", "429"]


async def test_a_call_cancelled_while_it_waits_or_reads_says_so() -> None:
    started = asyncio.Event()

    async def lines(response: Any) -> str:
        started.set()
        return await _lines(response)

    script = [testing.text(WORDS, delay=5000), testing.text(WORDS, hold=500)]
    with testing.ScriptedProvider(script) as provider, recording() as rec:
        waiting = asyncio.ensure_future(ask(provider.base_url, lines, json=ASKED))
        while not provider.requests:
            await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not started.is_set()
        reading = asyncio.ensure_future(ask(provider.base_url, lines, json=ASKED))
        await started.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
    assert [attribute(span, "error.type") for span in rec.of("chat")] == ["CancelledError"] * 2


async def test_http_that_is_no_model_exchange_passes_and_leaves_nothing() -> None:
    form = aiohttp.FormData({"a": "b"})
    with testing.ScriptedProvider([]) as provider, recording() as rec:
        async with aiohttp.ClientSession() as session:
            async with session.get(provider.base_url) as response:
                assert response.status == 404
            async with session.post(f"{provider.base_url}/upload", data=form) as response:
                assert response.status == 404
    assert rec.spans == []


@pytest.mark.parametrize("place", ["session", "request", "function", "nowhere"])
def test_a_replay_raises_for_a_status_where_the_program_asks_for_it(place: str, tmp_path: Path) -> None:
    async def look(response: Any) -> None:
        await response.read()
        response.raise_for_status()

    async def refused(root: str) -> str:
        asked: Any = {"request": True, "function": look}.get(place)
        async with aiohttp.ClientSession(raise_for_status=place == "session") as session:
            try:
                response = await session.post(f"{root}/chat/completions", json=ASKED, raise_for_status=asked)
                return f"{response.status} was given: {'too long' in await response.text()}"
            except aiohttp.ClientResponseError as error:
                return f"{error.status} {error.message} was raised"

    file = tmp_path / "traces.jsonl"
    with testing.ScriptedProvider([testing.error(400, "too long")]) as provider:
        spanreel.instrument(settings=spanreel.read_settings({"SPANREEL_FILE": str(file), "SPANREEL_LOG": "off"}))
        try:
            said = asyncio.run(refused(provider.base_url))
            assert spanreel.flush()
        finally:
            spanreel.uninstrument()
    assert said == ("400 was given: True" if place == "nowhere" else "400 Bad Request was raised")
    (session,) = convert_files([str(file)]).sessions
    with spanreel.replay(session) as playing:
        assert asyncio.run(refused("http://127.0.0.1:9/v1")) == said
    assert str(playing.verdict) == "PASS"
