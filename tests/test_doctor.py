"""What `spanreel doctor` says about an environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from spanreel.doctor import examine_library, peers

pytestmark = pytest.mark.slow


def doctor(**environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "spanreel", "doctor"]
    variables = {**os.environ, **environment}
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=600)


def test_doctor_says_what_is_wrapped_where_it_goes_and_what_is_out_of_reach() -> None:
    said = doctor(OTEL_TRACES_EXPORTER="otlp", OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9").stdout
    assert "http://127.0.0.1:9" in said
    assert re.search(r"wrapped: openai-agents \S+: (\d+) of \1 points", said)
    assert re.search(r"out of reach: websockets \S+: realtime model APIs over it are not recorded", said)


def test_doctor_names_the_setting_that_cannot_be_read() -> None:
    done = doctor(SPANREEL_CAPTURE="some")
    assert done.returncode == 1
    assert done.stderr.startswith("spanreel: SPANREEL_CAPTURE is 'some'")


def test_a_library_that_comes_under_another_name_is_there() -> None:
    (line,) = examine_library("pydantic-ai", ["pydantic_ai.agent:Agent.iter"])
    assert line.startswith("  wrapped: pydantic-ai ")


def test_a_library_that_is_absent_is_said_to_be_absent() -> None:
    assert list(examine_library("no-such-library", ["no_such:Thing.do"])) == ["  absent: no-such-library"]


def test_what_is_not_where_it_was_is_named() -> None:
    lines = list(examine_library("httpx", ["no_such_module:Thing.do"]))
    assert lines[0].endswith(": 0 of 1 points")
    assert lines[1] == (
        "    no_such_module cannot be imported: No module named 'no_such_module'; what passes there is not recorded"
    )


def test_another_instrumentation_of_agents_is_named_and_one_of_databases_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("openinference-instrumentation-openai", "opentelemetry-instrumentation-redis"):
        metadata = tmp_path / f"{name.replace('-', '_')}-1.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert peers() == {"openinference-instrumentation-openai"}
