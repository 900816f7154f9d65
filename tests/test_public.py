"""The public names of the package: there, lazy, and never hidden by a submodule of the same name."""

from __future__ import annotations

import subprocess
import sys

import pytest

import spanreel


def test_every_public_name_is_there() -> None:
    for name in spanreel.__all__:
        assert getattr(spanreel, name) is not None


def test_what_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'spanreel' has no attribute 'nothing'"):
        _ = spanreel.nothing


@pytest.mark.parametrize("name", ["session", "replay"])
@pytest.mark.parametrize("order", ["before", "after"])
def test_a_public_name_stays_callable_when_the_module_of_its_name_is_imported(name: str, order: str) -> None:
    use, load = f"assert callable(spanreel.{name})", f"import spanreel.{name}"
    steps = [load, use] if order == "before" else [use, load, use]
    subprocess.run([sys.executable, "-c", "\n".join(["import spanreel", *steps])], check=True)


def test_importing_the_package_imports_nothing_of_ours_and_no_library() -> None:
    code = "import sys; before = set(sys.modules); import spanreel; print(sorted(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for name in ("spanreel.", "opentelemetry", "pydantic", "wrapt", "httpx"):
        assert f"'{name}" not in loaded
