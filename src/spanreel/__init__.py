"""spanreel records what an AI agent did, as OpenTelemetry traces, and plays it again. Public names only."""

import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spanreel.api import run, session, tool
    from spanreel.instrumenting import flush, instrument, uninstrument
    from spanreel.redacting import RedactingExporter
    from spanreel.replay import replay
    from spanreel.session import Session
    from spanreel.session_files import load_sessions
    from spanreel.settings import read_settings

try:
    __version__ = version("spanreel")
except PackageNotFoundError:  # a source tree on PYTHONPATH that was never installed
    __version__ = "0+unknown"

_HOMES = {
    "RedactingExporter": "spanreel.redacting",
    "run": "spanreel.api",
    "session": "spanreel.api",
    "tool": "spanreel.api",
    "replay": "spanreel.replay",
    "Session": "spanreel.session",
    "load_sessions": "spanreel.session_files",
    "read_settings": "spanreel.settings",
    "flush": "spanreel.instrumenting",
    "instrument": "spanreel.instrumenting",
    "uninstrument": "spanreel.instrumenting",
}


def __getattr__(name: str) -> Any:
    """Import a public name's module when it is first asked for, so that each use pays for what it uses."""
    if name not in _HOMES:
        raise AttributeError(f"module 'spanreel' has no attribute {name!r}")
    found = getattr(import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


class _Package(ModuleType):
    """Keeps public names when a submodule of the same name (`session`, `replay`) is imported, before or after."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


__all__ = [
    "RedactingExporter",
    "Session",
    "__version__",
    "flush",
    "instrument",
    "load_sessions",
    "read_settings",
    "replay",
    "run",
    "session",
    "tool",
    "uninstrument",
]
