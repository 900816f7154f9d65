"""What a policy would redact: where, and by which rule, without the values. Found by applying it with labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from spanreel import json_text
from spanreel.binary import STAND_IN
from spanreel.digest import class_of
from spanreel.json_pointers import write_step
from spanreel.memory import Memory
from spanreel.model import Json
from spanreel.policy import KNOWN_BYTES, Policy
from spanreel.rules import Form

BINARY: Final = "binary content"
"""What is named as the rule for content that a stand-in takes the place of, whatever the policy says."""

_LABEL: Final = re.compile(rf"\[redacted:([a-z0-9_]+):({'|'.join(Form)})\]")


@dataclass(frozen=True, slots=True)
class Explained:
    """Something that would be redacted: its JSON pointer (which goes on inside of JSON in text), the rule, the form."""

    pointer: str
    rule: str
    form: Form


def explain(value: Json, policy: Policy, apply: Callable[[Any, Policy], Any]) -> Iterator[Explained]:
    """What ``apply(value, policy)`` would redact."""
    labelled = replace(policy, labels=True, known=Memory(KNOWN_BYTES))
    rules = [*policy.found.values(), *(decision for _, decision in policy.keys)]
    rules += [place.what for places in policy.pointers.values() for place in places]
    rules += [place.what for _, place in policy.tools]
    rules += [policy.credential] if policy.credential is not None else []
    names = {class_of(rule): rule for rule in (BINARY, *(decision.rule for decision in rules))}
    for pointer, slug, form in _differences(value, apply(value, labelled), ""):
        yield Explained(pointer, names.get(slug, slug), Form(form))


def _differences(before: Any, after: Any, pointer: str) -> Iterator[tuple[str, str, str]]:
    if isinstance(after, Mapping) and isinstance(before, Mapping):
        for (key, old), (new_key, new) in zip(before.items(), after.items(), strict=False):
            below = f"{pointer}/{write_step(str(new_key))}"
            yield from _labels(str(key), str(new_key), below)
            yield from _differences(old, new, below)
    elif isinstance(after, (list, tuple)) and isinstance(before, (list, tuple)):
        for number, (old, new) in enumerate(zip(before, after, strict=False)):
            if (step := _key_of(new)) is not None:
                yield from _labels(_key_of(old) or "", step, f"{pointer}/{write_step(step)}")
                old, new = _said(old), _said(new)  # noqa: PLW2901 -- the pair, without what OTLP puts around it
            yield from _differences(old, new, f"{pointer}/{write_step(step or str(number))}")
    elif isinstance(after, str) and after != before:
        if (inside := _decoded(before, after)) is not None:
            yield from _differences(*inside, pointer)
        else:
            said = before if isinstance(before, str) else ""
            yield from _labels(said, after, pointer)
            for _ in range(len(STAND_IN.findall(after)) - len(STAND_IN.findall(said))):
                yield pointer, class_of(BINARY), Form.DIGEST


def _labels(before: str, after: str, pointer: str) -> Iterator[tuple[str, str, str]]:
    old = _LABEL.findall(before)
    for label in _LABEL.findall(after):
        if label in old:
            old.remove(label)
        else:
            yield (pointer, *label)


def _decoded(before: Any, after: str) -> tuple[Json, Json] | None:
    """Both as JSON, where they are objects or lists in text."""
    if not isinstance(before, str) or after.lstrip()[:1] not in {"{", "["}:
        return None
    try:
        return json_text.decode(before), json_text.decode(after)
    except ValueError:
        return None


def _key_of(item: Any) -> str | None:
    """The key of a pair of OTLP, which goes by it."""
    key = item.get("key") if isinstance(item, Mapping) and isinstance(item.get("value"), Mapping) else None
    return key if isinstance(key, str) else None


def _said(pair: Any) -> Any:
    """What a pair of OTLP says, without the name of its kind."""
    value = pair.get("value") if isinstance(pair, Mapping) else None
    return next(iter(value.values()), None) if isinstance(value, Mapping) and len(value) == 1 else value
