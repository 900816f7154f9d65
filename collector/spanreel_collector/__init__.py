"""The collector side of spanreel: OTLP in, session documents out. Imports spanreel; spanreel never imports it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spanreel_collector.conversion.convert import Conversion, convert, convert_files

_PUBLIC = ("Conversion", "convert", "convert_files")


def __getattr__(name: str) -> Any:
    """Import what converts when it is first asked for: who serves or shows pays for what they use."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'spanreel_collector' has no attribute {name!r}")
    return getattr(import_module("spanreel_collector.conversion.convert"), name)


__all__ = ["Conversion", "convert", "convert_files"]
