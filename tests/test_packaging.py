"""The wheel, as a user gets it: built, installed into an empty environment, and run from there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from conftest import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("packaging")]


def run(*command: str | Path, cwd: Path | None = None, **environment: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COVERAGE", "COV_"))}
    done = subprocess.run(
        command, cwd=cwd, env={**kept, **environment}, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built without isolation, by the hatchling of the lock file."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of commands of an empty environment with the wheel and openai in it, without the network.

    Versions are those of environment "a", whose installation has left them in the cache.
    """
    uv = shutil.which("uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    assert uv is not None
    folder = tmp_path_factory.mktemp("empty") / "environment"
    run(uv, "venv", "--python", sys.executable, folder)
    binaries = folder / "bin"
    lock = ROOT / "requirements" / "env-a.txt"
    run(uv, "pip", "install", "--offline", "--python", binaries / "python", "--constraints", lock, wheel, "openai")
    return binaries


def test_the_wheel_holds_both_packages_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names} == {
        "spanreel",
        "spanreel_collector",
        f"spanreel-{wheel.name.split('-')[1]}.dist-info",
    }
    assert "spanreel/py.typed" in names
    assert "spanreel/bootstrap/sitecustomize.py" in names
    assert [name for name in names if name.endswith("licenses/LICENSE")] != []
    modules = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*.py")}
    assert modules <= set(names)


def test_the_installed_command_knows_its_version_and_every_command(wheel: Path, installed: Path) -> None:
    assert run(installed / "spanreel", "--version") == f"spanreel {wheel.name.split('-')[1]}\n"
    listed = run(installed / "spanreel", "--help")
    for command in ("run", "replay", "doctor", "convert", "show"):
        assert f"    {command} " in listed


def test_the_first_example_of_the_readme_runs_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    example = re.search(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert example is not None
    script = tmp_path / "example.py"
    script.write_text(example.group(1))
    assert run(installed / "python", script, cwd=tmp_path).splitlines()[-1] == "PASS"
