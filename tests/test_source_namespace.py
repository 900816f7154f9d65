"""`spanreel convert --source-namespace`: sessions of several sources that call them alike stay apart, and the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from golden_sessions import GOLDEN
from spanreel.cli import main
from spanreel_collector.sources.documents import read_line

VISIT = str(GOLDEN / "anvia.otlp.jsonl")


def convert(*arguments: object) -> int:
    return main(["convert", *map(str, arguments)])


def documents(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.iterdir())]


def test_sources_that_call_their_sessions_alike_stay_apart(tmp_path: Path) -> None:
    out = f"{tmp_path}/"
    for name in ("north", "south"):
        assert convert(VISIT, "--source-namespace", name, "--out", out) == 0
    assert convert(VISIT, "--out", out) == 0
    found = documents(tmp_path)
    assert len({one["id"] for one in found}) == 3
    assert {one["key"]["value"] for one in found} == {"visit-1"}
    assert sorted(str(one["source"].get("namespace")) for one in found) == ["None", "north", "south"]


def test_the_same_source_twice_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert convert(VISIT, "--source-namespace", "north", "--out", f"{tmp_path}/") == 0
    assert "1 session unchanged" in capsys.readouterr().err


def test_a_conversation_of_a_source_that_has_grown_grows_its_session(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = tmp_path / "first.jsonl"
    first.write_text(Path(VISIT).read_text(encoding="utf-8").splitlines()[0] + "\n", encoding="utf-8")
    out = f"{tmp_path}/sessions/"
    for file in (first, VISIT):
        assert convert(file, "--source-namespace", "north", "--out", out) == 0
    assert "1 session extended" in capsys.readouterr().err
    (grown,) = documents(tmp_path / "sessions")
    assert (grown["revision"], len([run for run in grown["runs"] if not run.get("parent")])) == (2, 2)


def test_documents_of_several_sources_converted_together_stay_apart(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.jsonl"
    elsewhere.write_text(
        Path(VISIT).read_text(encoding="utf-8").replace("a" * 32, "c" * 32).replace("b" * 31, "d" * 31)
    )
    for name, dump in (("north", VISIT), ("south", elsewhere)):
        assert convert(dump, "--source-namespace", name, "--out", f"{tmp_path}/{name}.json") == 0
    assert convert(*(tmp_path / f"{name}.json" for name in ("north", "south")), "--out", f"{tmp_path}/all/") == 0
    alone = [json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8")) for name in ("north", "south")]
    together = documents(tmp_path / "all")
    assert sorted(one["id"] for one in together) == sorted(one["id"] for one in alone)
    assert [len(one["runs"]) for one in together] == [len(one["runs"]) for one in alone]


def test_kitarus_external_ids_are_the_sources_and_lead_back(tmp_path: Path) -> None:
    lines = tmp_path / "visit.kitaru.jsonl"
    assert convert(VISIT, "--source-namespace", "north", "--format", "kitaru", "--out", lines) == 0
    assert json.loads(lines.read_text(encoding="utf-8"))["external_id"] == "north:visit-1"
    assert read_line(lines.read_bytes().strip(), "x").faults == ()
    assert convert(lines, "--out", tmp_path / "back.json") == 0
    back = json.loads((tmp_path / "back.json").read_text(encoding="utf-8"))
    assert (back["key"]["value"], back["source"]["namespace"]) == ("visit-1", "north")


def test_an_empty_namespace_is_refused() -> None:
    with pytest.raises(SystemExit):
        convert(VISIT, "--source-namespace", " ")


def test_what_is_no_time_and_what_is_a_folder_are_said_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        convert(VISIT, "--since", "yesterday")
    assert "'yesterday' is no time like 2026-11-30" in capsys.readouterr().err
    assert convert(f"{tmp_path}/") == 1
    assert f"it is a folder; name its files, as in {tmp_path}/*" in capsys.readouterr().err
