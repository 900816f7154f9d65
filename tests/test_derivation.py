"""Sessions out of stored segments: the same as `spanreel convert` makes, in whatever order and pieces spans come."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, cases
from deriving import comparable, deriving, documents, open_at, requests_of, send, settle
from spanreel.session import write_session
from spanreel_collector.convert import convert_files

GOLDEN = sorted(path for path in (ROOT / "tests" / "golden").glob("*.otlp.jsonl"))


def converted(paths: list[Path]) -> dict[str, dict[str, Any]]:
    sessions = convert_files(map(str, paths)).sessions
    return {session.id: comparable(json.loads(write_session(session))) for session in sessions}


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name.removesuffix(".otlp.jsonl"))
def test_sessions_are_those_that_convert_makes(path: Path, tmp_path: Path) -> None:
    store = open_at(tmp_path)
    for request in requests_of([path]):
        send(store, request)
    settle(deriving(store))
    assert documents(store) == converted([path])


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name.removesuffix(".otlp.jsonl"))
def test_sessions_that_grow_span_by_span_end_as_those_made_at_once(path: Path, tmp_path: Path) -> None:
    store = open_at(tmp_path)
    derivation = deriving(store)
    for request in requests_of([path]):
        send(store, request)
        settle(derivation)
    assert documents(store) == converted([path])


def test_sessions_of_the_shared_dumps_are_those_that_convert_makes(tmp_path: Path) -> None:
    different = []
    for case in sorted(cases("dialects").iterdir()):
        if case.name == "genai-openai-upload-refs":  # refers to files beside it, which a service does not have
            continue
        paths = [case / name for name in ("traces.jsonl", "logs.jsonl") if (case / name).exists()]
        folder = tmp_path / case.name
        folder.mkdir()
        store = open_at(folder)
        for request in requests_of(paths):
            send(store, request)
        settle(deriving(store))
        if documents(store) != converted(paths):
            different.append(case.name)
        store.close()
    assert different == []
