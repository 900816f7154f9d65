"""The public names of the packages: there, lazy, and never hidden by a submodule of the same name."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import spanreel
import spanreel_collector

pytestmark = pytest.mark.slow

PACKAGES = (spanreel, spanreel_collector)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_every_public_name_is_there(package: ModuleType) -> None:
    for name in package.__all__:
        assert getattr(package, name) is not None


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_what_is_not_public_is_an_attribute_error(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'nothing'"):
        _ = package.nothing


@pytest.mark.parametrize("name", ["session", "replay"])
@pytest.mark.parametrize("order", ["before", "after"])
def test_a_public_name_stays_callable_when_the_module_of_its_name_is_imported(name: str, order: str) -> None:
    use, load = f"assert callable(spanreel.{name})", f"import spanreel.{name}"
    steps = [load, use] if order == "before" else [use, load, use]
    subprocess.run([sys.executable, "-c", "\n".join(["import spanreel", *steps])], check=True)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_importing_a_package_imports_nothing_of_ours_and_no_library(package: ModuleType) -> None:
    importing = f"import {package.__name__}"
    code = f"import sys; before = set(sys.modules); {importing}; print(sorted(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for name in ("spanreel.", "spanreel_collector.", "opentelemetry", "pydantic", "wrapt", "httpx"):
        assert f"'{name}" not in loaded
