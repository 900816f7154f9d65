"""The score of shared cases: what a dump's conversion says otherwise than the dump's known truth."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

from conftest import cases
from spanreel.session_files import write_session
from spanreel_collector.conversion.convert import convert_files


def wrong_fields(pattern: str) -> dict[str, str]:
    """The cases of this pattern that are not wholly right, each with the fields that are wrong."""
    score = _score()
    found: dict[str, str] = {}
    for case in sorted(cases("dialects").glob(pattern)):
        wrong = _judge(score, case)
        if wrong:
            found[case.name] = ", ".join(wrong)
    return found


def _judge(score: ModuleType, case: Path) -> list[str]:
    truth = json.loads((case / "truth.json").read_text())
    files = [str(case / name) for name in ("traces.jsonl", "logs.jsonl") if (case / name).exists()]
    documents = [json.loads(write_session(one)) for one in convert_files(files).sessions]
    got = score.said([score.expand(document) for document in documents])
    return [field for field in score.FIELDS if field not in truth["cannot"] and not score.judge(field, truth, got)]


def _score() -> ModuleType:
    spec = importlib.util.spec_from_file_location("score", cases("score.py"))
    assert spec is not None
    assert spec.loader is not None
    score = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(score)
    return score
