"""Large values are kept beside the spans, and conversion reads them again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

import spanreel
from recording import recording
from spanreel import offloading, testing
from spanreel.settings import Settings
from spanreel_collector.conversion.convert import convert_files

QUESTION = "word " * 1000


def record(folder: Path, **settings: Any) -> Path:
    """The spans of a run with a long question, in a file."""
    file = folder / "traces.jsonl"
    spanreel.instrument(settings=Settings(file=str(file), exporters=(), endpoint=None, offload_bytes=2048, **settings))
    try:
        provider = testing.ScriptedProvider([testing.text("It rains.")])
        client = openai.OpenAI(
            api_key="k",
            base_url="http://model.test/v1",
            http_client=httpx2.Client(transport=provider.transport("httpx2")),
        )

        @spanreel.run(agent="weather")
        def ask(question: str) -> Any:
            asked: Any = [{"role": "user", "content": question}]
            return client.chat.completions.create(model="m", messages=asked).choices[0].message.content

        ask(QUESTION)
        assert spanreel.flush()
    finally:
        spanreel.uninstrument()
    return file


def question_of(file: Path) -> Any:
    conversion = convert_files([str(file)])
    assert not conversion.faults
    (session,) = conversion.sessions
    (run,) = session.runs
    (call,) = run.model_calls()
    assert run.entrypoint is not None
    arguments = run.entrypoint.arguments or {}
    return [session.messages[number].parts[0]["content"] for number in call.input], arguments.get("question")


def test_what_was_offloaded_is_in_the_session_again(tmp_path: Path) -> None:
    file = record(tmp_path, offload=str(tmp_path / "kept"))
    text = file.read_text()
    assert QUESTION[:500] not in text
    assert "gen_ai.input.messages_ref" in text
    assert question_of(file) == ([QUESTION], QUESTION)


def test_the_folder_may_travel_with_the_traces_or_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    file = record(tmp_path / "here", offload=str(tmp_path / "kept"))
    assert question_of(file) == ([], None)
    monkeypatch.setenv("SPANREEL_OFFLOAD", str(tmp_path / "kept"))
    assert question_of(file) == ([QUESTION], QUESTION)
    monkeypatch.delenv("SPANREEL_OFFLOAD")
    shutil.copytree(tmp_path / "kept", tmp_path / "here" / "kept")
    shutil.rmtree(tmp_path / "kept")
    assert question_of(file) == ([QUESTION], QUESTION)


def test_what_is_not_what_its_name_says_is_not_read(tmp_path: Path) -> None:
    file = record(tmp_path, offload=str(tmp_path / "kept"))
    for kept in (tmp_path / "kept").iterdir():
        kept.write_text(json.dumps([{"role": "user", "parts": [{"type": "text", "content": "forged"}]}]))
    assert question_of(file) == ([], None)


def test_a_folder_of_a_file_system_that_others_make_is_read_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = record(tmp_path, offload="memory://offload/here")
    monkeypatch.setenv("SPANREEL_OFFLOAD", "memory://offload/here")
    assert question_of(file) == ([QUESTION], QUESTION)


def test_on_a_provider_of_the_users_it_is_written_by_a_thread_of_our_own(tmp_path: Path) -> None:
    with recording(settings=Settings(offload=str(tmp_path / "kept"), offload_bytes=2048)) as rec:

        @spanreel.run(agent="weather")
        def ask(question: str) -> str:
            return question.upper()

        ask(QUESTION)
        assert spanreel.flush()
        said = dict(rec.one("invoke_agent").attributes or {})
    assert "spanreel.run.arguments" not in said
    name = str(said["spanreel.run.arguments_ref"]).rpartition("/")[2]
    assert json.loads((tmp_path / "kept" / name).read_text()) == {"question": QUESTION}


def test_what_has_no_room_in_the_thread_stays_on_its_span(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offloading, "WAITING_BYTES", 100)
    offload = offloading.Offload(str(tmp_path), 10, later=True)
    assert offload.take({"a": "x" * 200}) == {"a": "x" * 200}
    assert set(offload.take({"a": "x" * 50})) == {"a_ref"}
    assert offload.flush()
