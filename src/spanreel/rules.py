"""Rules of redaction as data: what they look for, and the form of what they find."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from spanreel.errors import SettingsError

CREDENTIAL_NAME: Final = "credential name"
"""The detector, as rules call it, of values under names of credentials; of the kind ``credential``."""

Find = Callable[[str], Iterable[tuple[int, int]]]
"""A function of the user: the ``(start, end)`` of all that a text may not keep."""


class Form(StrEnum):
    """What becomes of what a rule finds."""

    MASK = "mask"
    DROP = "drop"
    DIGEST = "digest"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class Rule:
    """Where something stands that may not leave as it is, and its form; of several rules the first decides.

    ``keys`` are names under which values stand, in any spelling (``customer_name`` is ``customerName`` too), with
    ``*`` and ``?``. ``detectors`` are names, or a kind: ``credential``, ``personal``. ``pointers`` are JSON pointers
    from an attribute on (``/gen_ai.input.messages/*/parts``); ``*`` is one step, ``**`` any number. ``tools`` are
    ``TOOL.arguments.PATH`` and ``TOOL.result.PATH``, with ``*``. ``values`` (to `KEEP` only) are texts, with ``*``,
    that detectors may leave. ``find`` is a function. ``field_class`` keeps digests of unlike things apart; by default
    it is the detector's or the key's name.
    """

    form: Form
    name: str = ""
    keys: tuple[str, ...] = ()
    detectors: tuple[str, ...] = ()
    pointers: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    find: Find | None = None
    field_class: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a value, by which rule. ``lenient``: what cannot hold a credential (true, counts) stays."""

    form: Form
    rule: str
    field_class: str | None = None
    lenient: bool = False


def check_rule(rule: Rule, detectors: Collection[str]) -> None:
    """Look whether a rule can be.

    Raises:
        SettingsError: it cannot; says why, and what to do.
    """
    for name in rule.detectors:
        if name not in detectors:
            raise SettingsError(f"{rule.name}: there is no detector {name!r}; there are {sorted(detectors)}")
    if rule.values and rule.form is not Form.KEEP:
        raise SettingsError(f"{rule.name}: values can be kept only; for what else is to go, there is find")
    if not (rule.keys or rule.detectors or rule.pointers or rule.tools or rule.values or rule.find):
        raise SettingsError(f"{rule.name} finds nothing: give keys, detectors, pointers, tools, values or find")
