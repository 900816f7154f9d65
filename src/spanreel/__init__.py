"""spanreel records what an AI agent did, as OpenTelemetry traces, and plays it again. Public names only."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("spanreel")
except PackageNotFoundError:  # a source tree on PYTHONPATH that was never installed
    __version__ = "0+unknown"

__all__ = ["__version__"]
