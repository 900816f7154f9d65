"""Steps of JSON pointers (RFC 6901): a name as it stands in a pointer, and back."""

from __future__ import annotations


def write_step(name: str) -> str:
    """The name as a step of a pointer, without the slash before it."""
    return name.replace("~", "~0").replace("/", "~1")


def read_step(step: str) -> str:
    """The name that a step stands for."""
    return step.replace("~1", "/").replace("~0", "~")
