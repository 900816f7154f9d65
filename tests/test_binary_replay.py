"""A recording without its images still knows them again."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest

import spanreel
from spanreel import testing
from spanreel.errors import ReplayRefused
from spanreel.replay.judging.verdict import Verdict
from spanreel.session import Session
from spanreel.session_files import write_session
from spanreel.settings import read_settings
from spanreel_collector.conversion.convert import convert_files

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
OTHER = PNG + b"\x00"


def b64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _openai(provider: testing.ScriptedProvider) -> Any:
    http = httpx2.Client(transport=provider.transport("httpx2"))
    return openai.OpenAI(api_key="k", base_url="http://model.test/v1", http_client=http)


def chat(provider: testing.ScriptedProvider, image: bytes, *, stream: bool) -> None:
    content: Any = [
        {"type": "text", "text": "what is it, jane.doe@example.org?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{b64(image)}"}},
        {"type": "input_audio", "input_audio": {"data": b64(image[::-1]), "format": "mp3"}},
    ]
    list(
        _openai(provider).chat.completions.create(
            model="m", messages=[{"role": "user", "content": content}], stream=stream
        )
    )


def responses(provider: testing.ScriptedProvider, image: bytes, *, stream: bool) -> None:
    content: Any = [
        {"type": "input_text", "text": "what is it, jane.doe@example.org?"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{b64(image)}", "detail": "auto"},
        {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{b64(image)}"},
    ]
    list(_openai(provider).responses.create(model="m", input=[{"role": "user", "content": content}], stream=stream))


def messages(provider: testing.ScriptedProvider, image: bytes, *, stream: bool) -> None:
    http = httpx2.Client(transport=provider.transport("httpx2"))
    client = anthropic.Anthropic(api_key="k", base_url="http://model.test", http_client=http)
    source: Any = {"type": "base64", "media_type": "image/png", "data": b64(image)}
    content: Any = [
        {"type": "text", "text": "what is it, jane.doe@example.org?"},
        {"type": "image", "source": source},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": b64(image)}},
    ]
    asked: Any = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": content}]}
    list(client.messages.create(**asked, stream=stream))


ASKING: dict[str, Callable[..., None]] = {"chat": chat, "responses": responses, "anthropic": messages}


@spanreel.tool()
def draw(picture: bytes) -> bytes:
    """Draw it."""
    return drawn(picture)


def drawn(picture: bytes) -> bytes:
    return hashlib.sha256(picture).digest() * 20


@spanreel.run(agent="viewer")
def view(ask: Callable[..., None], image: bytes, *, stream: bool) -> None:
    provider = testing.ScriptedProvider([testing.text("a dot")])
    ask(provider, image, stream=stream)
    draw(image)


def recorded(folder: Path, ask: Callable[..., None], *, stream: bool) -> tuple[Session, str]:
    """The session of a run on the image, and all that was written of it."""
    file = folder / "traces.jsonl"
    spanreel.instrument(settings=read_settings({"SPANREEL_FILE": str(file)}))
    try:
        view(ask, PNG, stream=stream)
        assert spanreel.flush()
    finally:
        spanreel.uninstrument()
    (session,) = convert_files([str(file)]).sessions
    return session, file.read_text() + write_session(session)


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("name", ASKING)
def test_the_same_image_is_the_same_request_and_another_is_not(name: str, stream: bool, tmp_path: Path) -> None:
    session, written = recorded(tmp_path, ASKING[name], stream=stream)
    for content in (PNG, PNG[::-1], drawn(PNG)):
        assert b64(content)[8:40] not in written
    verdicts = []
    for image in (PNG, OTHER):
        with spanreel.replay(session, check=False, serve_redacted=True) as playing:
            view(ASKING[name], image, stream=stream)
        assert playing.report is not None
        verdicts.append(playing.report.verdict)
        reasons = playing.report.reasons
    assert verdicts == [Verdict.PASS, Verdict.FAIL], reasons
    assert "diverged" in reasons[0]
    assert hashlib.sha256(OTHER).hexdigest()[:8] in str(playing.report) or "parts" in reasons[0]


def test_an_answer_that_was_binary_is_not_served_unasked(tmp_path: Path) -> None:
    session, _ = recorded(tmp_path, chat, stream=False)
    assert [reason.reason for reason in session.replay.reasons] == ["tool 'draw': result redacted"]
    with pytest.raises(ReplayRefused, match="draw"), spanreel.replay(session):
        pass
