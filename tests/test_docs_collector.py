"""collector/README.md is true: its files are there, its flags and variables exist, its configuration is accepted."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from conftest import ROOT
from otel_collector import FOLDER, validate
from spanreel.cli import build_parser
from spanreel_collector.access import TOKENS

PAGE = (FOLDER / "README.md").read_text()
CONSOLES = "\n".join(re.findall(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))


def test_every_file_that_is_named_or_linked_is_there() -> None:
    for name in re.findall(r"`([\w-]+\.(?:yaml|Dockerfile))`", PAGE):
        assert (FOLDER / name).exists() or (ROOT / name).exists() or name in ("open.yaml", "yours.yaml"), name
    for target in re.findall(r"\]\((?!http)([^)#]+)", PAGE):
        assert (FOLDER / target).exists(), target
    assert {path.name for path in FOLDER.glob("otelcol*.yaml")} <= set(re.findall(r"otelcol[\w-]*\.yaml", PAGE))


def test_every_command_of_ours_is_accepted_with_its_flags() -> None:
    shown = re.findall(r"^\$ (?:[A-Z_]+=\S+ )*spanreel (\w+)(.*)$", CONSOLES, re.MULTILINE)
    assert {command for command, _ in shown} == {"run", "serve", "convert"}
    for command, rest in shown:
        parser = build_parser([command])
        told = parser._subparsers._group_actions[0].choices[command].format_help()  # type: ignore[union-attr,index]
        for option in re.findall(r"(--\w[\w-]*)", rest.partition(" -- ")[0]):
            assert option in told, option


def test_every_variable_of_the_collector_is_read_by_a_configuration() -> None:
    read = set(re.findall(r"\$\{env:(\w+)", "".join(path.read_text() for path in FOLDER.glob("otelcol*.yaml"))))
    named = set(re.findall(r"(?:SPANREEL|COLLECTOR)_[A-Z_]+", PAGE))
    assert named - set(TOKENS) <= read
    assert read <= named


def test_what_the_secrets_are_made_by_fills_what_compose_asks_for(tmp_path: Path) -> None:
    (command,) = re.findall(r"^\$ (for name in .*)$", CONSOLES, re.MULTILINE)
    subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True)
    made = dict(line.split("=") for line in (tmp_path / ".env").read_text().splitlines())
    assert set(made) == set(re.findall(r"\$\{(\w+):\?", (ROOT / "docker-compose.yml").read_text()))
    assert all(len(secret) == 48 for secret in made.values())


@pytest.mark.slow
@pytest.mark.xdist_group("collector")
def test_what_opens_the_collector_to_others_is_accepted(tmp_path: Path) -> None:
    (shown,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "open.yaml").write_text(shown)
    validate("--config", FOLDER / "otelcol.yaml", "--config", tmp_path / "open.yaml", AGENTS_TOKEN="x" * 16)
