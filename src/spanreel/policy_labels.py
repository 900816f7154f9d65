"""How recordings name the policies that redacted them. Policies themselves, with their detectors, are `policy`'s."""

from __future__ import annotations

from typing import Final

KEYLESS: Final = ";keyless"
"""What is put after the name of a policy that masked what it would have digested, for want of a key."""


def join_labels(one: str | None, other: str | None) -> str | None:
    """How a recording names the policies of its parts; where there are two, neither alone makes its placeholders."""
    if one is None or other is None or one == other:
        return one or other
    labels = [*one.split(", "), *other.split(", ")]
    keyless = {label.removesuffix(KEYLESS) for label in labels if label.endswith(KEYLESS)}
    names = sorted({label.removesuffix(KEYLESS) for label in labels})
    return ", ".join(name + KEYLESS * (name in keyless) for name in names)
