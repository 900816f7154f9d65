"""The rules of the hot path that no other file tests: unsampled means untouched, and faults of ours are told apart."""

from __future__ import annotations

import threading
import time
from typing import Any

import httpx2
import openai
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

import spanreel
from recording import attribute, content, recording
from spanreel.capture import ExchangeCapture
from wire_server import ASK, Model, completion


class Untouchable:
    """An argument that must not be looked at."""

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":
            return object.__getattribute__(self, name)
        raise AssertionError(f"{name} was looked at")

    def __repr__(self) -> str:
        raise AssertionError("its repr was asked for")


@spanreel.tool()
def take(value: Any) -> int:
    return 1


@spanreel.run(agent="a")
def work(value: Any) -> int:
    Model().client().chat.completions.create(**ASK)
    return take(value)


def test_what_the_sampler_drops_is_untouched(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(*_: Any, **__: Any) -> Any:
        raise AssertionError("a capture was made")

    monkeypatch.setattr(ExchangeCapture, "__init__", made)
    spanreel.instrument(tracer_provider=TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False))
    try:
        assert work(Untouchable()) == 1
        for chunk in Model().client().chat.completions.create(**ASK, stream=True):
            assert chunk.id == "chatcmpl-1"
    finally:
        spanreel.uninstrument()


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str | None]]:
    """What the user's hook is told, while every result of a tool cannot be kept."""
    told: list[tuple[str, str | None]] = []
    monkeypatch.delenv("SPANREEL_STRICT", raising=False)

    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("SECRET-CONTENT")

    from spanreel import keeping

    monkeypatch.setattr(keeping, "snapshot", broken)
    return told


def wait_for(told: list[Any], count: int) -> None:
    deadline = time.monotonic() + 60
    while len(told) < count and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(0.02)


def test_a_fault_is_told_once_a_run_with_its_session_and_without_content(
    faults: list[tuple[str, str | None]], caplog: pytest.LogCaptureFixture
) -> None:
    with recording(on_recording_error=lambda stage, session: faults.append((stage, session))):
        with spanreel.session("conversation-9"):
            assert work("x") == 1
            assert work("y") == 1
        wait_for(faults, 2)
    assert len(faults) == 2
    assert {session for _, session in faults} == {"conversation-9"}
    assert "SECRET" not in str(faults) + caplog.text


@pytest.mark.parametrize("way", ["fails", "hangs"])
def test_a_hook_that_fails_or_hangs_changes_nothing(way: str, faults: list[Any]) -> None:
    release = threading.Event()

    def hook(_stage: str, _session: str | None) -> None:
        faults.append(way)
        if way == "fails":
            raise RuntimeError("the hook's own")
        release.wait(60)

    with recording(on_recording_error=hook) as rec:
        started = time.monotonic()
        for _ in range(5):
            assert work("x") == 1
        assert time.monotonic() - started < 50
        assert len(rec.of("execute_tool")) == 5
    release.set()


def test_another_instrumentation_on_the_same_call_is_noticed_and_named() -> None:
    with recording() as rec:
        theirs = rec.provider.get_tracer("opentelemetry.instrumentation.genai.openai")
        with theirs.start_as_current_span("chat gpt", attributes={"gen_ai.operation.name": "chat"}):
            Model().client().chat.completions.create(**ASK)
        ours = rec.named("chat gpt-asked")
        assert attribute(ours, "spanreel.second_view") == "opentelemetry.instrumentation.genai.openai"


def test_headers_and_keys_of_a_request_are_never_recorded() -> None:
    with recording() as rec:
        client = Model().client()
        client.chat.completions.create(
            **ASK, extra_headers={"Authorization": "Bearer SECRET-1", "X-Api-Key": "SECRET-2"}, user="user-3"
        )
        dump = " ".join(span.to_json() for span in rec.spans)
        assert "SECRET" not in dump
        assert "sk-client" not in dump


def test_long_prompts_and_images_are_bounded_and_marked() -> None:
    with recording() as rec:
        picture = "data:image/png;base64," + "A" * 700_000
        parts = [{"type": "text", "text": "x" * 3_000_000}, {"type": "image_url", "image_url": {"url": picture}}]
        messages: Any = [{"role": "user", "content": parts}]
        Model().client().chat.completions.create(model="m", messages=messages)
        span = rec.one("chat")
        assert max(len(str(value)) for value in (span.attributes or {}).values()) <= 1024 * 1024
        assert content(span, "spanreel.fidelity")["gen_ai.input.messages"] == "truncated"
        assert content(span, "gen_ai.input.messages")[0]["role"] == "user"


async def test_cancelled_embeddings_tools_and_runs_end_their_spans() -> None:
    import asyncio

    started = asyncio.Event()

    async def wait_for_ever(*_: Any) -> Any:
        started.set()
        await asyncio.sleep(30)

    @spanreel.tool()
    async def slow() -> None:
        await wait_for_ever()

    @spanreel.run()
    async def run() -> None:
        await slow()

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(wait_for_ever))
    client = openai.AsyncOpenAI(api_key="k", base_url="http://model.test/v1", http_client=http)
    with recording() as rec:
        for coroutine in (client.embeddings.create(model="e", input="x"), run()):
            started.clear()
            task = asyncio.ensure_future(coroutine)
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        for operation in ("embeddings", "execute_tool", "invoke_agent"):
            assert attribute(rec.one(operation), "error.type") == "CancelledError"


def test_an_embedding_is_no_turn() -> None:
    def answer(body: dict[str, Any]) -> Any:
        if "input" in body:
            data = [{"object": "embedding", "index": 0, "embedding": [0.5, 0.25]}]
            return {"object": "list", "model": "e", "data": data, "usage": {"prompt_tokens": 2, "total_tokens": 2}}
        return completion()

    @spanreel.run(agent="a")
    def retrieve() -> None:
        client = Model(answer).client()
        client.embeddings.create(model="e", input="x")
        client.chat.completions.create(**ASK)

    with recording() as rec:
        retrieve()
        assert rec.tree() == ["invoke_agent a", "  embeddings e", "  agent_step 0", "    chat gpt-asked"]
        assert attribute(rec.one("embeddings"), "gen_ai.usage.input_tokens") == 2
