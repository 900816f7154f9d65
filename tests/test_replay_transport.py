"""Replays of what HTTP clients do beside sending: they fail to connect, and run the program's own hooks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import httpx2
import openai
import pytest
import requests

import spanreel
from recording import recorded_in
from spanreel import testing
from spanreel.replay.judging.verdict import Verdict
from spanreel.session import Session
from spanreel_collector.conversion.convert import convert_files

QUESTION: list[Any] = [{"role": "user", "content": "hi"}]
BODY: Mapping[str, Any] = {"model": "gpt-5", "messages": QUESTION}
NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANREEL_LOG", "off")


def passes(folder: Path, script: testing.Script, agent: Callable[[str], Any]) -> tuple[Session, Any]:
    """Recorded against a script, replayed against nothing: with the same result."""
    decorated = spanreel.run(agent="clerk")(agent)
    with testing.ScriptedProvider(script) as provider:
        result = recorded_in(folder / "traces.jsonl", lambda: decorated(provider.base_url))
    (session,) = convert_files([str(folder / "traces.jsonl")]).sessions
    with spanreel.replay(session, check=False) as playing:
        again = decorated(NOWHERE)
    assert playing.report is not None
    assert (playing.report.verdict, again) == (Verdict.PASS, result), playing.report.reasons
    return session, result


def failing_first(failures: Iterator[Exception], url: str) -> httpx2.Client:
    """A client whose connections fail, until there are no more failures."""
    live = httpx2.HTTPTransport()

    def send(request: httpx2.Request) -> httpx2.Response:
        if (failure := next(failures, None)) is not None:
            raise failure
        return live.handle_request(request)

    return httpx2.Client(transport=httpx2.MockTransport(send), base_url=url)


@pytest.mark.parametrize(
    ("failure", "caught"),
    [(httpx2.ConnectError("refused"), openai.APIConnectionError), (httpx2.ReadTimeout("late"), openai.APITimeoutError)],
)
def test_the_agents_own_retry_meets_the_failure_that_it_met(
    tmp_path: Path, failure: Exception, caught: type[openai.APIConnectionError]
) -> None:
    def agent(url: str) -> Any:
        http = failing_first(iter([failure, failure]), url)
        client = openai.OpenAI(base_url=url, api_key="none", max_retries=0, http_client=http)
        met: list[Any] = []
        for _ in range(3):
            try:
                return met, client.chat.completions.create(model="gpt-5", messages=QUESTION).choices[0].message.content
            except caught as error:
                met.append([str(error), type(error.__cause__).__name__, error.request.url.path])
        return None

    session, (met, said) = passes(tmp_path, [testing.text("hello")], agent)
    assert (len(met), said) == (2, "hello")
    (call,) = session.runs[0].model_calls()
    assert len(call.attempts) == 3


def test_a_failure_to_connect_names_its_request(tmp_path: Path) -> None:
    def agent(url: str) -> Any:
        try:
            with failing_first(iter([httpx2.ConnectError("refused")]), url) as client:
                client.post("/chat/completions", json=BODY)
        except httpx2.RequestError as error:
            return [str(error), error.request.method, error.request.url.path]

    _, result = passes(tmp_path, [], agent)
    assert result == ["refused", "POST", "/v1/chat/completions"]


def test_a_failure_of_requests_to_connect_names_its_request(tmp_path: Path) -> None:
    class Down(requests.adapters.HTTPAdapter):
        def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
            raise requests.ConnectionError("down", request=request)

    def agent(url: str) -> Any:
        session = requests.Session()
        session.mount("http://", Down())
        try:
            session.post(f"{url}/chat/completions", json=BODY)
        except requests.ConnectionError as error:
            return [str(error), getattr(error.request, "method", None)]

    _, result = passes(tmp_path, [], agent)
    assert result == ["down", "POST"]


@pytest.mark.parametrize("library", [httpx, httpx2])
@pytest.mark.parametrize("stream", [False, True])
def test_the_programs_hooks_see_what_they_saw(tmp_path: Path, library: Any, stream: bool) -> None:
    def agent(url: str) -> Any:
        seen: list[Any] = []

        def answered(response: Any) -> None:
            response.read()
            seen.append([response.status_code, response.request.url.path])

        hooks = {"request": [lambda request: seen.append(request.method)], "response": [answered]}
        with library.Client(event_hooks=hooks) as client:
            request = client.build_request("POST", f"{url}/chat/completions", json=BODY)
            response = client.send(request, stream=stream)
            return seen, response.json()["choices"][0]["message"]["content"]

    _, result = passes(tmp_path, [testing.text("hello")], agent)
    assert result == (["POST", [200, "/v1/chat/completions"]], "hello")


def test_asynchronous_hooks_see_what_they_saw(tmp_path: Path) -> None:
    async def ask(url: str) -> Any:
        seen: list[Any] = []

        async def asked(request: httpx2.Request) -> None:
            seen.append(request.method)

        async def answered(response: httpx2.Response) -> None:
            seen.append(response.status_code)

        hooks: Any = {"request": [asked], "response": [answered]}
        async with httpx2.AsyncClient(event_hooks=hooks) as client:
            response = await client.post(f"{url}/chat/completions", json=BODY)
            return seen, response.json()["choices"][0]["message"]["content"]

    _, result = passes(tmp_path, [testing.text("hello")], lambda url: asyncio.run(ask(url)))
    assert result == (["POST", 200], "hello")


@pytest.mark.parametrize("stream", [False, True])
def test_a_hook_that_raises_for_a_status_raises_again_with_the_answer(tmp_path: Path, stream: bool) -> None:
    def agent(url: str) -> Any:
        with httpx2.Client(event_hooks={"response": [lambda response: response.raise_for_status()]}) as client:
            request = client.build_request("POST", f"{url}/chat/completions", json={**BODY, "stream": stream})
            try:
                client.send(request, stream=stream)
            except httpx2.HTTPStatusError as error:
                return [error.response.status_code, error.response.headers["content-type"]]

    session, result = passes(tmp_path, [testing.error(429, "slow down")], agent)
    assert result[0] == 429
    (call,) = session.runs[0].model_calls()
    assert call.http_status == 429


PIECE = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"Half "},"finish_reason":null}]}\n\n'


class Breaking(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """A stream whose connection breaks behind its first piece."""

    def __iter__(self) -> Iterator[bytes]:
        yield PIECE
        raise httpx2.ReadError("reset")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield PIECE
        raise httpx2.ReadError("reset")


def broken(_: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Breaking())


def test_a_stream_that_broke_breaks_again_where_it_broke(tmp_path: Path) -> None:
    def agent(url: str) -> Any:
        http = httpx2.Client(transport=httpx2.MockTransport(broken))
        got: list[Any] = []
        with openai.OpenAI(base_url=url, api_key="none", http_client=http) as client:
            for _ in range(2):
                try:
                    with client.chat.completions.create(model="gpt-5", messages=QUESTION, stream=True) as stream:
                        got.extend(chunk.choices[0].delta.content for chunk in stream)
                except (openai.APIConnectionError, httpx2.ReadError) as error:
                    got.append(type(error).__name__)
        with openai.OpenAI(base_url=url, api_key="none") as client:
            return got, client.chat.completions.create(model="gpt-5", messages=QUESTION).choices[0].message.content

    session, (got, said) = passes(tmp_path, [testing.text("Whole.")], agent)
    assert (got[0], got[2], len(got), said) == ("Half ", "Half ", 4, "Whole.")
    # What the program had a part of is none of the attempts of what it asked next.
    first, second, third = session.runs[0].model_calls()
    assert [len(call.attempts) for call in (first, second, third)] == [1, 1, 1]


def test_an_asynchronous_stream_that_broke_breaks_again(tmp_path: Path) -> None:
    async def ask(url: str) -> Any:
        got: list[Any] = []
        async with httpx2.AsyncClient(transport=httpx2.MockTransport(broken)) as client:
            asked = client.stream("POST", f"{url}/chat/completions", json={**BODY, "stream": True})
            try:
                async with asked as response:
                    got.extend([line async for line in response.aiter_lines() if line])
            except httpx2.ReadError as error:
                got.append([str(error), error.request.url.path])
        return got

    _, result = passes(tmp_path, [], lambda url: asyncio.run(ask(url)))
    assert result[-1] == ["reset", "/v1/chat/completions"]
