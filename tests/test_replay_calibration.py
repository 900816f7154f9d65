"""`spanreel replay --calibrate`: what differs by itself is proposed, and what the code has changed is not."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import openai
import pytest

import spanreel
from replaying import Book, asks, text, told
from spanreel import cli
from spanreel.replay.changing.change_files import read_changes
from spanreel.session_files import write_session

INSTRUCTIONS = ["Be brief."]


@spanreel.tool()
def search(q: str, request_id: str) -> str:
    raise AssertionError("ran live")


@spanreel.run(agent="demo")
def agent() -> None:
    client = openai.OpenAI(base_url="http://127.0.0.1:9/v1", api_key="none", max_retries=0)
    said: list[Any] = [
        {"role": "system", "content": f"{INSTRUCTIONS[0]} Trace {uuid.uuid4()}."},
        {"role": "user", "content": "hi"},
    ]
    first = client.chat.completions.create(model="gpt-5", messages=said).choices[0].message
    said.append(first.model_dump(exclude_none=True))
    said.append({"role": "tool", "tool_call_id": "c1", "content": search("x", request_id=str(uuid.uuid4()))})
    client.chat.completions.create(model="gpt-5", messages=said)


@pytest.fixture
def session(tmp_path: Path) -> Path:
    INSTRUCTIONS[0] = "Be brief."
    book = Book()
    run = book.run(entrypoint={"arguments": {}})
    said = [text("system", f"Be brief. Trace {uuid.uuid4()}."), text("user", "hi"), asks(("c1", "search", {"q": "x"}))]
    book.model(run, said[:2], said[2], finish_reasons=["tool_calls"])
    book.tool(run, "search", {"q": "x", "request_id": str(uuid.uuid4())}, "found")
    book.model(run, [*said, told("c1", "found")], text("assistant", "yes"), finish_reasons=["stop"])
    file = tmp_path / "session.json"
    file.write_text(write_session(book.session()))
    return file


def replay(file: Path, *words: str) -> int:
    return cli.main(["replay", str(file), "--entry", f"{__name__}:agent", *words])


@pytest.mark.slow
def test_what_differs_by_itself_is_proposed_and_with_it_the_replay_passes(
    session: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay(session) == 1
    capsys.readouterr()
    assert replay(session, "--calibrate") == 0
    file = tmp_path / "changes.toml"
    file.write_text(capsys.readouterr().out)
    changes = read_changes(file)
    assert all(rule.at == ("/messages/0/parts/0/content",) and rule.pattern for rule in changes.volatile)
    assert changes.tool_policy.normal_forms["search"].ignore == ("/request_id",)
    assert replay(session, "--changes", str(file)) == 0
    INSTRUCTIONS[0] = "Be long."
    assert replay(session, "--changes", str(file)) == 1


def test_what_the_code_has_changed_is_named_and_not_proposed(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = session.read_text().replace('"hi"', '"hello"')
    session.write_text(document)
    assert replay(session, "--calibrate") == 1
    said = capsys.readouterr().out
    assert "/messages/1" in said.partition("# not by itself: ")[2]
    assert "/messages/1" not in said.partition("# not by itself: ")[0]


def test_only_an_unchanged_agent_is_calibrated(session: Path) -> None:
    assert replay(session, "--calibrate", "--model", "gpt-6") == 3
    assert cli.main(["replay", str(session), "--calibrate", "--", "python", "app.py"]) == 64
