"""What holds for the repository as a whole, and for the tests themselves."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from pytest_socket import SocketConnectBlockedError

from conftest import CASES_ABSENT, ROOT

FORBIDDEN = {
    "a path of one machine": re.compile(r"(?<![\w.])/(?:work|root|farm)/|/tmp/[a-z]"),
    "a registry's address": re.compile(
        r"index-url|https?://[^\s\"'/]*/simple\b|pythonhosted|/packages/[0-9a-f]{2}/|\"resolved\": *\"http"
    ),
    "a secret": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----\s[A-Za-z0-9+/=\s]{200}"),
}


def committed_files() -> list[Path]:
    """What git has, and what it would take with the next `git add`."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


@pytest.mark.parametrize("what", FORBIDDEN)
def test_nothing_committed_names(what: str) -> None:
    allowed = {Path(__file__).resolve(), ROOT / "Makefile"}  # both say what must not be named
    found = [
        f"{file.relative_to(ROOT)}: {match.group(0)!r}"
        for file in committed_files()
        if file not in allowed
        for match in FORBIDDEN[what].finditer(file.read_bytes().decode(errors="replace"))
    ]
    assert found == []


def test_agents_md_names_every_module_and_names_none_that_is_not_there() -> None:
    tree = (ROOT / "AGENTS.md").read_text().partition("## Layout")[2].partition("## Rules")[0]
    named = set(re.findall(r"(?<![\w/])(\w+\.py|\w{3,}/)", tree))
    for folder in (ROOT / "src" / "spanreel", ROOT / "collector" / "spanreel_collector"):
        modules = {path.name for path in folder.glob("*.py")} - {"__init__.py", "__main__.py"}
        packages = {f"{path.parent.name}/" for path in folder.glob("*/__init__.py")}
        assert modules | packages <= named
    assert {name for name in named if not list(ROOT.glob(f"[!.]*/**/{name}")) and not (ROOT / name).exists()} == set()


def test_agents_md_lists_each_module_of_the_library_after_those_that_it_imports() -> None:
    listed = (ROOT / "AGENTS.md").read_text().partition("\nsrc/spanreel/\n")[2].partition("\ncollector/\n")[0]
    place: dict[str, int] = {}
    for line, text in enumerate(listed.splitlines()):
        for name in re.findall(r"(\w+)(?:\.py|/)", re.split(r" {3,}", text.strip())[0]):
            place.setdefault(name, line)
    home = ROOT / "src" / "spanreel"
    downward = set()
    for file in home.rglob("*.py"):
        importer = file.relative_to(home).with_suffix("").parts[0]
        imported = re.findall(r"^\s*from spanreel\.(\w+)", file.read_text(), re.MULTILINE)
        downward |= {(importer, name) for name in imported if place.get(name, 0) > place.get(importer, len(place))}
    assert len(place) > 70
    assert downward == set()


def test_spans_are_opened_in_the_boundary_alone() -> None:
    opening = re.compile(r"\bstart_(?:as_current_)?span\(|\bbegin\(\s*tracer\b")
    packages = [ROOT / "src" / "spanreel", ROOT / "collector" / "spanreel_collector"]
    opened_in = {
        str(file.relative_to(package).with_suffix(""))
        for package in packages
        for file in package.rglob("*.py")
        if opening.search(file.read_text())
    }
    # `own_tracer` makes ours, `tracing` looks at what the user's tracers are given, `telemetry` is the service's.
    assert opened_in == {
        "boundary/model_calls",
        "boundary/runs",
        "boundary/tool_calls",
        "own_tracer",
        "service/telemetry",
        "tracing",
    }


# -- the lock files --------------------------------------------------------------------------------------------------


def our_requirements() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [Requirement(text) for text in project["dependencies"]]


def locked(name: str) -> dict[str, list[str]]:
    """Versions by package, in a lock file; several where they differ by platform."""
    pins: dict[str, list[str]] = {}
    for package, version in re.findall(
        r"^([\w.-]+)==([^\s;\\]+)", (ROOT / "requirements" / name).read_text(), re.MULTILINE
    ):
        pins.setdefault(package, []).append(version)
    return pins


@pytest.mark.parametrize("name", ["env-a.txt", "env-lowest.txt"])
def test_an_environment_holds_what_pyproject_asks_for(name: str) -> None:
    pins = locked(name)
    for requirement in our_requirements():
        assert all(requirement.specifier.contains(version) for version in pins[requirement.name]), requirement


def test_the_lowest_environment_is_at_our_lower_bounds() -> None:
    pins = locked("env-lowest.txt")
    for requirement in our_requirements():
        bound = next(part.version for part in requirement.specifier if part.operator == ">=")
        assert any(version in (bound, f"{bound}.0") for version in pins[requirement.name]), requirement


def test_the_newest_wrapt_and_the_oldest_are_both_tested() -> None:
    assert locked("env-a.txt")["wrapt"][0].startswith("2.")
    assert "1.17.0" in locked("env-lowest.txt")["wrapt"]


def test_every_pin_has_a_hash_and_every_wish_a_lock() -> None:
    folder = ROOT / "requirements"
    assert {file.stem for file in folder.glob("*.in")} == {file.stem for file in folder.glob("*.txt")}
    for file in folder.glob("*.txt"):
        text = file.read_text()
        assert len(re.findall(r"^[\w.-]+==", text, re.MULTILINE)) == len(
            re.findall(r"^[\w.-]+==.*\\\n    --hash", text, re.MULTILINE)
        )


# -- the tests themselves --------------------------------------------------------------------------------------------


def test_no_test_reaches_beyond_this_machine() -> None:
    with pytest.raises(SocketConnectBlockedError):
        socket.create_connection(("192.0.2.1", 80), timeout=1)


def test_loopback_is_open_to_tests() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname(), timeout=5):
        pass


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reason", "ci", "code"),
    [("too hard today", "true", 1), (f"{CASES_ABSENT}: reports", "true", 0), ("too hard today", "", 0)],
    ids=["in CI", "the cases are absent", "not in CI"],
)
def test_a_skipped_test_fails_the_run_in_ci_unless_its_reason_is_permitted(
    tmp_path: Path, reason: str, ci: str, code: int
) -> None:
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_one.py").write_text(
        f"import pytest\ndef test_runs(): pass\n@pytest.mark.skip({reason!r})\ndef test_waits(): pass\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "1", tmp_path],
        env={**os.environ, "CI": ci},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout
    assert ("CI permits no skip" in done.stdout) == bool(code)
    assert "1 passed, 1 skipped" in done.stdout
