"""A pass of a policy over a value: every text, name and number in it, to any depth, also in JSON inside of text.

Deterministic, and passing again changes nothing. What changed is told by identity: what needs nothing is given back as
it is.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from spanreel import json_text
from spanreel.concealing import GONE, Examine, conceal
from spanreel.detectors import MASK, find_all, places_in
from spanreel.digest import class_of
from spanreel.json_strings import repeats_a_key, strings_at
from spanreel.memory import note_passed
from spanreel.places import here, step, unreached
from spanreel.policy import Policy
from spanreel.rules import Decision, Form
from spanreel.spelling import may_spell, spells, without_pieces, without_spelled
from spanreel.text_pieces import names_likelihoods
from spanreel.tool_places import Places, tool_places

WORD: Final = 64
"""Characters of texts that are few, and come again and again."""
_SHORT: Final = 400
_FLAG: Final = "-"
_LONG_NUMBER: Final = 10**12
"""Whole numbers from here on may be a card's or an account's."""
_ROUNDS: Final = 8
"""How often a text is looked at again after something was replaced in it, until nothing more is found."""
_PLAIN: Final = frozenset({float, bool, type(None)})
_OPENINGS: Final = frozenset({"{", "[", '"'})
_CLEAN: Final = ""
"""What is known of text in which nothing had to be redacted."""


@dataclass(eq=False, slots=True)
class Walk:
    """One pass. ``calls`` are the tools' names by the ids of their calls, where the policy has rules for tools.

    ``failures`` counts the texts that could not be examined, since a rule raised: they are masked whole.
    """

    policy: Policy
    calls: Mapping[str, str] = field(default_factory=dict)
    failures: int = 0


def examine(value: Any, walk: Walk, places: Places = (), name: str = "") -> Any:
    """The value as it may leave; ``places`` are those inside it, ``name`` is what it stands under."""
    if is_harmless_scalar(value):
        return value
    kind = type(value)
    if kind is int:
        return _number(value, walk)
    if kind is dict:
        return _mapping(value, walk, places)
    if kind is str:
        return _string(value, walk, places, name) if places or len(value) < _SHORT else _known(value, walk)
    if kind is json_text.Listed and not places:
        return _listed(value, walk)
    if kind is json_text.Parted and not places and _is_clean_in_parts(value, walk):
        return value
    if isinstance(value, str):
        return _string(value, walk, places, name)
    if isinstance(value, Mapping):
        return _mapping(value, walk, places)
    if isinstance(value, (bytes, bytearray)):
        decoded = value.decode("utf-8", "surrogateescape")
        redacted = _string(decoded, walk, places, name)
        return (
            redacted
            if redacted is GONE
            else (value if redacted is decoded else redacted.encode("utf-8", "surrogateescape"))
        )
    if isinstance(value, Sequence):
        return _sequence(value, walk, places, name)
    return value


def is_harmless_scalar(value: Any) -> bool:
    """Whether a value is no text, and no number long enough to be somebody's."""
    kind = type(value)
    return kind in _PLAIN or (kind is int and bool(-_LONG_NUMBER < value < _LONG_NUMBER))


def examine_under(name: Any, value: Any, walk: Walk, places: Places = ()) -> Any:
    """The value as it may stand under this name."""
    if places and (decision := here(places)) is not None:
        return _concealed(decision, value, walk, name if isinstance(name, str) else "")
    if isinstance(name, str):
        if (decision := walk.policy.judge(name)) is not None:
            return _concealed(decision, value, walk, name, functools.partial(examine, walk=walk))
        return examine(value, walk, places, name)
    return examine(value, walk, places)


def _concealed(decision: Decision, value: Any, walk: Walk, name: str, spare: Examine | None = None) -> Any:
    concealed = conceal(decision, value, walk.policy, name, spare)
    if decision.form is Form.KEEP or concealed is GONE:
        return concealed
    return examine(concealed, walk)  # what it is stays, and may have names that may not


def examine_text(text: str, walk: Walk) -> str:
    """Text that is no JSON, without what detectors find in it; masked whole where one of them raises."""
    policy = walk.policy
    if len(text) < policy.shortest:
        return text
    try:
        for _ in range(_ROUNDS):
            found = find_all(text, policy.search)
            if policy.kept is not None:
                found = [one for one in found if not policy.keeps(text[one.start : one.end])]
            if not found:
                return text
            parts, done = [], 0
            for one in found:
                decision, secret = policy.found[one.detector.name], text[one.start : one.end]
                parts += [text[done : one.start], policy.put(decision, secret, class_of(one.detector.name))]
                done = one.end
            text = "".join([*parts, text[done:]])
    except Exception:  # noqa: BLE001 -- whatever a rule raises: what could not be examined does not leave
        walk.failures += 1
    return MASK


def examine_name(name: str, policy: Policy) -> str:
    """The name of an attribute, a key."""
    return _name(name, policy) if len(name) < _SHORT else examine_text(name, Walk(policy))


@functools.lru_cache(4096)
def _name(name: str, policy: Policy) -> str:
    """`examine_text` of names, which are few, and come again and again."""
    return examine_text(name, Walk(policy))


def _listed(text: json_text.Listed, walk: Walk) -> Any:
    """A list of objects, most of which were in the list before: each by itself, and once."""
    policy = walk.policy
    by_tool = bool(walk.calls)  # what a tool gave is judged by the tool, which stands elsewhere
    new = text.items if by_tool else [item for item in text.items if policy not in item.passed]
    if not new:
        return text
    if not all(item[:1] == "{" for item in new):
        return _string(text, walk, (), "")  # other items can tell something about each other
    failures = walk.failures
    redacted = {item: _known(item, walk) for item in new}
    if walk.failures == failures and not by_tool:
        for item, found in redacted.items():
            if found is item:
                note_passed(item, policy)
    if all(found is item for item, found in redacted.items()):
        return text
    return json_text.listed(redacted.get(item, item) for item in text.items)


def _is_clean_in_parts(text: json_text.Parted, walk: Walk) -> bool:
    """Whether nothing is found in what the lists hold, nor around them; so nothing is in the whole."""
    if walk.calls:
        return False
    failures = walk.failures
    clean = _string(text.frame, walk, (), "") is text.frame and all(
        walk.policy.judge(name) is None and _listed(one, walk) is one for name, one in text.lists.items()
    )
    walk.failures = failures  # the whole fails again, where a part has
    return clean


def _known(text: str, walk: Walk) -> str:
    """`_string` of text that may well come again."""
    content = text
    if walk.calls:  # what a tool gave is judged by the tool, which stands elsewhere
        content = "\0".join([text, *(f"{one}={tool}" for one, tool in walk.calls.items() if one in text)])
    known: str | None = walk.policy.known.find(content)
    if known is not None:
        return text if known is _CLEAN else known
    failures = walk.failures
    redacted: str = _string(text, walk, (), "")
    if walk.failures == failures:
        walk.policy.known.keep(content, _CLEAN if redacted is text else redacted)
    return redacted


def _number(value: int, walk: Walk) -> Any:
    text = str(value)
    redacted = examine_text(text, walk)
    return value if redacted is text else redacted


def _string(text: str, walk: Walk, places: Places, name: str) -> Any:
    policy = walk.policy
    if len(text) < policy.shortest and not places:
        return text
    if text.lstrip()[:1] not in _OPENINGS:
        return _prose(text, walk, places, name)
    thorough = policy.thorough or bool(places) or "\\u" in text or spells(text, functools.partial(examine, walk=walk))
    around = () if thorough else places_in(text, policy.search)
    if not thorough and not around:
        return text
    try:
        decoded = json_text.decode(text)
    except ValueError:
        return _prose(text, walk, places, name)
    if not thorough and all(_is_harmless(one, walk) for one in strings_at(text, around)):
        return text
    redacted = examine(decoded, walk, places, name)
    if redacted is GONE:
        return GONE
    if redacted is not decoded:
        return json_text.encode(redacted)
    # A key that stands twice: decoding shows its last value only, and writing it again drops the others.
    return json_text.encode(decoded) if repeats_a_key(text) else text


def _prose(text: str, walk: Walk, places: Places, name: str) -> Any:
    decision = unreached(places, text) if places and text else None
    return examine_text(text, walk) if decision is None else _concealed(decision, text, walk, name)


def _is_harmless(text: str, walk: Walk) -> bool:
    """Whether a string of a JSON text in which something stands is neither a secret nor the name of one."""
    return _is_harmless_word(text, walk.policy) if len(text) < WORD else _leaves(text, walk)


def _leaves(text: str, walk: Walk) -> bool:
    return walk.policy.judge(text) is None and _string(text, walk, (), "") is text


@functools.lru_cache(4096)
def _is_harmless_word(text: str, policy: Policy) -> bool:
    """Of keys, which are few and come again and again."""
    return _leaves(text, Walk(policy))


def _mapping(value: Mapping[Any, Any], walk: Walk, places: Places) -> Any:
    policy = walk.policy
    tools = tool_places(value, policy, walk.calls) if policy.tools else {}
    redacted: dict[Any, Any] = {}
    changed = False
    for key, item in value.items():
        new_key = examine_name(key, policy) if isinstance(key, str) else key
        inside = step(places, str(key)) if places else ()
        if key in tools:
            inside = (*inside, *tools[key])
        # The likelihoods of a model's tokens have the token itself under this name.
        likely = key == "token" and any(map(names_likelihoods, value))
        told = without_spelled(key, item, functools.partial(examine, walk=walk)) if may_spell(key) else item
        new = examine(told, walk, inside) if likely else examine_under(key, told, walk, inside)
        changed = changed or new is not item or new_key != key
        if new is not GONE:
            redacted[new_key if new_key not in redacted else _another(new_key, redacted)] = new
    return redacted if _conceal_named(value, redacted, walk) or changed else value


def _another(key: str, beside: Mapping[Any, Any]) -> str:
    """The key with a number: two that are redacted to one stay two."""
    numbered = (f"{key} ({number})" for number in itertools.count(2))
    return next(name for name in numbered if name not in beside)


def _conceal_named(value: Mapping[Any, Any], redacted: dict[Any, Any], walk: Walk) -> bool:
    """Conceal what another member names: headers and variables as objects, credentials beside their kind."""
    changed = False
    name = next((value[key] for key in ("name", "key", "header") if isinstance(value.get(key), str)), None)
    if name is not None and isinstance(value.get("value"), str) and "value" in redacted:
        changed = _replace(redacted, "value", examine_under(name, redacted["value"], walk))
    kind = str(value.get("type", ""))
    decision = walk.policy.judge(kind) if kind != "token" else None
    if decision is not None:  # {"type": "api_key", "key": "..."}
        for place in ("key", "value"):
            if isinstance(redacted.get(place), str):
                changed |= _replace(redacted, place, _concealed(decision, redacted[place], walk, kind))
    return changed


def _replace(redacted: dict[Any, Any], key: str, new: Any) -> bool:
    if new is redacted[key]:
        return False
    if new is GONE:
        del redacted[key]
    else:
        redacted[key] = new
    return True


def _sequence(value: Sequence[Any], walk: Walk, places: Places, name: str) -> Any:
    told = without_pieces(value, functools.partial(examine, walk=walk)) if type(value) is list else value
    if places:
        redacted = [_item(item, walk, step(places, str(number)), name) for number, item in enumerate(told)]
    else:
        redacted = [examine(item, walk) for item in told]
    for place in range(1, len(redacted)):  # a command line: --api-key VALUE
        flag = value[place - 1]
        if isinstance(flag, str) and flag.startswith(_FLAG) and isinstance(redacted[place], str) and "=" not in flag:
            redacted[place] = examine_under(flag, redacted[place], walk)
    for place, pair in enumerate(redacted):  # headers as pairs
        if isinstance(pair, (list, tuple)) and len(pair) == 2 and all(isinstance(item, str) for item in pair):
            concealed = examine_under(pair[0], pair[1], walk)
            redacted[place] = pair if concealed is pair[1] else [pair[0], *(() if concealed is GONE else (concealed,))]
    if all(new is old for new, old in zip(redacted, value, strict=True)):
        return value
    left = [item for item in redacted if item is not GONE]
    return tuple(left) if isinstance(value, tuple) else left


def _item(item: Any, walk: Walk, places: Places, name: str) -> Any:
    return examine_under(name, item, walk, places) if here(places) is not None else examine(item, walk, places, name)
