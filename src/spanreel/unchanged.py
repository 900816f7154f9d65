"""Which attributes leave as they are, told at a glance: most of a span's. The others go the long way of `outgoing`."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any, Final

from opentelemetry.util.types import AttributeValue

from spanreel import binary
from spanreel.bounds import size_of
from spanreel.glance import Glance
from spanreel.json_text import Listed, Parted
from spanreel.memory import note_passed
from spanreel.offloading import Offload
from spanreel.redaction import JSON_VALUES, Policy, is_clean_word, is_harmless_name, is_harmless_scalar
from spanreel.settings import Capture, Settings

_SHORT: Final = 64
"""Characters of texts that are few, and come again and again."""
_ESCAPES: Final = r"\\[u/]"
"""What may hide, in JSON text, what is looked for."""


def unchanged(
    attributes: Mapping[str, AttributeValue], settings: Settings, policy: Policy, offload: Offload | None
) -> tuple[dict[str, AttributeValue], int]:
    """The attributes that leave as they are, and their bytes: nothing is to be redacted in them, nothing is binary.

    None of them is too large by itself; all together may be.
    """
    if bool(policy.tools) or offload is not None or settings.capture is Capture.BOUNDED:
        return {}, 0  # what becomes of an attribute depends on the others, or on more than what it says
    if settings.max_value_bytes < _SHORT:
        return {}, 0
    glance = _glance_of(policy)
    known: dict[str, AttributeValue] = {}
    size = 0
    value: Any
    for name, value in attributes.items():
        if not is_harmless_name(name, policy):
            continue
        kind = type(value)
        if kind is str or kind is Listed or kind is Parted:
            length = size_of(value)
            if length < _SHORT:
                clean = _is_clean_word(value, policy, name in JSON_VALUES)
            else:
                clean = length <= settings.max_value_bytes and _is_clean(value, kind, policy, glance)
            if clean:
                known[name] = value
                size += length
        elif kind is list or kind is tuple:
            word = value[0] if len(value) == 1 else None  # why a model stopped, say
            if type(word) is str and len(word) < _SHORT and _is_clean_word(word, policy, thorough=False):
                known[name] = [word]
                size += len(word)
        elif math.isfinite(value) if kind is float else kind in _PLAIN and is_harmless_scalar(value):
            known[name] = value
            size += 8
    return known, size


_PLAIN: Final = frozenset({int, bool})


def _is_clean(value: Any, kind: type, policy: Policy, glance: Glance | None) -> bool:
    """Whether nothing is found in a long text, which is glanced at part by part where it remembers them."""
    if glance is None:
        return False
    if kind is Listed:
        return _is_clean_list(value, policy, glance)
    if kind is Parted:
        return not glance.sees(value.frame) and all(_is_clean_list(one, policy, glance) for one in value.lists.values())
    return not glance.sees(value) or not glance.sees(_without_counts(value))


_COUNTS: Final = tuple(
    f'"{name}_tokens{rest}":'
    for name in ("prompt", "completion", "total", "input", "output", "cached", "reasoning", "audio", "max")
    for rest in ("", "_details")
) + tuple(
    f'"{name}_tokens":'
    for name in (
        *("cache_creation_input", "cache_read_input", "accepted_prediction", "rejected_prediction", "max_completion"),
        *("max_output", "image", "text", "thoughts"),
    )
)
"""Names of counts as JSON has them, in nearly every answer: "token" is in them, and no credential is called so."""


def _without_counts(text: str) -> str:
    """The text without names of counts, for another glance; what stands under them is still to be seen."""
    if "_tokens" not in text:
        return text
    for name in _COUNTS:
        if name in text:
            text = text.replace(name, '"":')
    return text


def _is_clean_list(text: Listed, policy: Policy, glance: Glance) -> bool:
    clean = True
    for item in text.items:
        passed = item.passed
        if glance in passed or (policy in passed and binary.without_binary_text in passed):
            continue
        if item[:1] != "{" or glance.sees(item):  # other items than objects can tell something about each other
            clean = False
        else:
            note_passed(item, glance)
    return clean


@functools.lru_cache(64)
def _glance_of(policy: Policy) -> Glance | None:
    """Sees all that a policy redacts, and all that is binary; None where the policy has to look at every text."""
    if policy.asks and (policy.thorough or not policy.search.glances):
        return None
    return Glance((*policy.search.glances, *binary.GLANCES, _ESCAPES))


@functools.lru_cache(8192)
def _is_clean_word(text: str, policy: Policy, thorough: bool) -> bool:
    """Whether a short text leaves as it is; ``thorough``: also where it is JSON of any kind."""
    glance = _glance_of(policy)
    if glance is not None and text.isascii() and not glance.sees(text):
        return True
    if thorough or not text.isascii():
        return False
    return is_clean_word(text, policy) and binary.without_binary_text(text) is text
