"""The session document: its schema, its versions, its runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT
from spanreel.errors import SessionError
from spanreel.session import SCHEMA, Key, ModelCall, Parent, Run, Session, ToolCall, Turn
from spanreel.session_files import UPGRADES, load_sessions, read_session, write_session


def document(**rest: Any) -> Session:
    runs = [
        Run(
            id="a",
            trace_id="t",
            turns=[Turn(index=0, model_call=ModelCall(id="m"), tool_calls=[ToolCall(id="x", name="f")])],
        ),
        Run(id="b", trace_id="t", path="root/r#0", parent=Parent(run="a"), side_calls=[ModelCall(id="e")]),
        Run(id="c", trace_id="u", loose_tool_calls=[ToolCall(id="y", name="f")]),
    ]
    return Session(id="s-1", key=Key(kind="trace", value="t"), runs=runs, **rest)


def test_the_published_schema_is_that_of_the_models() -> None:
    """`SPANREEL_GOLDEN=write pytest tests/test_session.py` writes it anew."""
    published = ROOT / "docs" / "session.schema.json"
    if os.environ.get("SPANREEL_GOLDEN") == "write":
        published.write_text(json.dumps(Session.model_json_schema(), indent=2) + "\n")
    assert json.loads(published.read_text()) == Session.model_json_schema()


def test_a_document_is_read_as_it_was_written_and_absent_fields_are_left_out() -> None:
    text = write_session(document())
    assert read_session(text) == document()
    assert read_session(text.encode()) == read_session(json.loads(text))
    assert '"schema":"spanreel.session/1"' in text
    assert "null" not in text


def test_null_inside_values_is_kept() -> None:
    one = document(metadata={"a": None})
    assert read_session(write_session(one)).metadata == {"a": None}


def test_fields_of_newer_writers_survive() -> None:
    later = {**json.loads(write_session(document())), "later": 1}
    assert json.loads(write_session(read_session(later)))["later"] == 1


def test_an_older_document_is_upgraded_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def from_first(old: dict[str, Any]) -> dict[str, Any]:
        return {**old, "schema": "old/2", "id": old["name_of_session"]}

    def from_second(old: dict[str, Any]) -> dict[str, Any]:
        return {**old, "schema": SCHEMA, "key": {"kind": "trace", "value": old["trace"]}}

    monkeypatch.setitem(UPGRADES, "old/1", from_first)
    monkeypatch.setitem(UPGRADES, "old/2", from_second)
    one = read_session({"schema": "old/1", "name_of_session": "s-9", "trace": "t"})
    assert (one.id, one.key.value) == ("s-9", "t")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("{", "not a session document: EOF"),
        ("[]", "JSON of type list"),
        ("{}", "not a session document: an object with"),
        ('{"schema": "spanreel.session/99"}', "Is it newer than this?"),
        ('{"schema": "spanreel.session/1", "id": 5}', "at /id"),
    ],
)
def test_what_is_no_document_is_refused_with_the_place(data: str, message: str) -> None:
    with pytest.raises(SessionError, match=message.replace("?", r"\?")):
        read_session(data)


def test_sessions_are_loaded_from_a_document_a_list_or_lines(tmp_path: Path) -> None:
    text = write_session(document())
    for content in (text, f"[{text}, {text}]", f"{text}\n\n{text}\n", write_session(document(), indent=2)):
        path = tmp_path / "sessions"
        path.write_text(content)
        assert all(one == document() for one in load_sessions(path))


@pytest.mark.parametrize(
    ("content", "message"), [(None, "cannot read"), ("  \n", "is empty"), ("[1]", "document 1: not a session")]
)
def test_a_file_without_sessions_is_refused_by_name(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "sessions"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SessionError, match=message):
        load_sessions(path)


def test_runs_are_found_by_id_number_and_path() -> None:
    one = document()
    assert [run.id for run in one.roots()] == ["a", "c"]
    assert [one.run(selector).id for selector in ("b", "0", "1", "root/r#0", "root")] == ["b", "a", "c", "b", "a"]
    with pytest.raises(SessionError, match="has no run '7'; its root runs: 0=a, 1=c"):
        one.run("7")


def test_a_run_gives_its_own_calls_in_order() -> None:
    first, second, third = document().runs
    assert [call.id for call in first.model_calls()] == ["m"]
    assert [call.id for call in second.model_calls()] == ["e"]
    assert [call.id for run in (first, third) for call in run.tool_calls()] == ["x", "y"]
