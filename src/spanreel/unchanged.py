"""Which attributes leave as they are, told at a glance: most of a span's. The others go the long way of `outgoing`."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from opentelemetry.util.types import AttributeValue

from spanreel import binary, binary_signs, conventions
from spanreel.bounds import size_of
from spanreel.glance import Glance
from spanreel.json_text import Listed, Parted
from spanreel.memory import note_passed
from spanreel.offloading import Offload
from spanreel.otlp_bytes import SHORT, Pieces, write_attribute
from spanreel.redaction import (
    JSON_VALUES,
    Policy,
    is_clean_word,
    is_harmless_name,
    is_harmless_scalar,
    is_own_id,
    redact_json,
    spelled_by,
)
from spanreel.settings import CaptureLevel, Settings
from spanreel.spelling import GLANCE, spells

_MOST_PAIRS: Final = 8192
"""How many short attributes are known again, of each kind; then they are learned anew."""
_ESCAPES: Final = r"\\[u/]"
"""What may hide, in JSON text, what is looked for."""


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Attributes that leave as they are, and the same as pieces of a request, in which they take ``size`` bytes."""

    attributes: dict[str, AttributeValue]
    written: Pieces
    size: int


def unchanged(
    attributes: Mapping[str, AttributeValue], settings: Settings, policy: Policy, offload: Offload | None
) -> Unchanged:
    """The attributes that leave as they are: nothing is to be redacted in them, nothing is binary.

    None of them is too large by itself; all together may be.
    """
    known: dict[str, AttributeValue] = {}
    written: Pieces = []
    # What becomes of an attribute may depend on the others, or on more than what it says.
    if (
        policy.tools
        or offload is not None
        or settings.capture is CaptureLevel.BOUNDED
        or settings.max_value_bytes < SHORT
    ):
        return Unchanged(known, written, 0)
    if policy.asks and spelled_by(attributes, policy) is not None:
        return Unchanged(known, written, 0)
    words, numbers, truths, lists = _pairs_of(policy)
    value: Any
    for name, value in attributes.items():
        kind = type(value)
        if kind is str and len(value) < SHORT:
            pair = words[name, value]
        elif kind is int:
            pair = numbers[name, value]
        elif kind is bool:
            pair = truths[name, value]
        elif kind is list or kind is tuple:
            pair = lists[name, value[0]] if len(value) == 1 and type(value[0]) is str else b""  # why a model stopped
        else:
            spelled = (
                name != conventions.STREAM_CHUNKS and kind is str and _spells(value, policy)
            )  # which was asked above
            if (
                not spelled
                and is_harmless_name(name, policy)
                and _leaves(value, kind, policy, settings.max_value_bytes)
            ):
                known[name] = value
                written += write_attribute(name, value)
            continue
        if pair:
            known[name] = value
            written.append(pair)
    return Unchanged(known, written, sum(map(len, written)))


class _Pairs(dict[tuple[str, Any], bytes]):
    """Short attributes by name and value, as they are written; empty where one does not leave as it is."""

    def __init__(self, policy: Policy, *, listed: bool = False) -> None:
        super().__init__()
        self._policy = policy
        self._listed = listed

    def __missing__(self, pair: tuple[str, Any]) -> bytes:
        """The attribute, examined and written."""
        name, value = pair
        written = b""
        if is_harmless_name(name, self._policy) and self._leaves(name, value):
            written = b"".join(write_attribute(name, [value] if self._listed else value))
        if len(self) >= _MOST_PAIRS:
            self.clear()
        self[pair] = written
        return written

    def _leaves(self, name: str, value: Any) -> bool:
        if type(value) is not str:
            return is_harmless_scalar(value)
        thorough = name in JSON_VALUES and not self._listed
        return len(value) < SHORT and _is_clean_word(value, self._policy, thorough=thorough)


@functools.lru_cache(64)
def _pairs_of(policy: Policy) -> tuple[_Pairs, _Pairs, _Pairs, _Pairs]:
    """Of texts, of whole numbers, of truth values (which equal numbers), and of lists of one text."""
    return _Pairs(policy), _Pairs(policy), _Pairs(policy), _Pairs(policy, listed=True)


def _leaves(value: Any, kind: type, policy: Policy, limit: int) -> bool:
    """Whether a long text, or a number that is not whole, leaves as it is."""
    if kind is float:
        return math.isfinite(value)
    if kind is str or kind is Listed or kind is Parted:
        length = size_of(value)
        if length < SHORT:
            return _is_clean_word(str(value), policy, thorough=True)
        return length <= limit and _is_clean(value, kind, policy, _glance_of(policy))
    return False


def _is_clean(value: Any, kind: type, policy: Policy, glance: Glance | None) -> bool:
    """Whether nothing is found in a long text, which is glanced at part by part where it remembers them."""
    if glance is None:
        return False
    if kind is Listed:
        return _is_clean_list(value, policy, glance)
    if kind is Parted:
        return not glance.sees(value.frame) and all(_is_clean_list(one, policy, glance) for one in value.lists.values())
    return not glance.sees(_without_counts(value) if _TOKENS in value else value)


_TOKENS: Final = "_tokens"
_COUNTS: Final = frozenset(
    {
        *("prompt", "completion", "total", "input", "output", "cached", "reasoning", "audio", "max"),
        *("cache_creation_input", "cache_read_input", "accepted_prediction", "rejected_prediction", "max_completion"),
        *("max_output", "image", "text", "thoughts"),
    }
)
"""What is counted in nearly every answer: "token" is in the names of these counts, and no credential is called so."""


def _without_counts(text: str) -> str:
    """The JSON text without names of counts; what stands under them is still to be seen."""
    first, *others = text.split(_TOKENS)
    pieces = [first]
    for other in others:
        before, quote, counted = pieces[-1].rpartition('"')
        end = '_details":' if other.startswith("_details") else '":'
        if quote and counted in _COUNTS and other.startswith(end):
            pieces[-1] = before
            pieces.append('"":' + other.removeprefix(end))
        else:
            pieces.append(_TOKENS + other)
    return "".join(pieces)


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
    return Glance((*policy.search.glances, *binary_signs.GLANCES, _ESCAPES, GLANCE))


def _spells(text: str, policy: Policy) -> bool:
    return text[:2] == "[[" and policy.asks and spells(text, lambda whole: redact_json(whole, policy)[0])


def _is_clean_word(text: str, policy: Policy, *, thorough: bool) -> bool:
    """Whether a short text leaves as it is; ``thorough``: also where it is JSON of any kind."""
    if is_own_id(text, policy):
        return True
    glance = _glance_of(policy)
    if glance is not None and text.isascii() and not glance.sees(text) and not _spells(text, policy):
        return True
    if thorough or not text.isascii():
        return False
    return is_clean_word(text, policy) and binary.without_binary_text(text) is text
