"""What is redacted, and what takes its place: rules made ready to be applied. Frozen; its name stands in recordings.

Applying them is left to `redaction`, making one to `presets` and `policy_file`, keys to `keyring`.
"""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from spanreel.credential_names import is_credential_name, words_of
from spanreel.detectors import DETECTORS, MASK, PHONE, Detector, Found, Kind, Search, has_library, make_search
from spanreel.digest import class_of
from spanreel.keyring import Digests, Keyring
from spanreel.memory import Memory
from spanreel.places import ANY, DEEP, Place, pointer_steps, step, tool_steps
from spanreel.policy_labels import KEYLESS
from spanreel.rules import CREDENTIAL_NAME, Decision, Find, Form, Rule, check_rule

KNOWN_BYTES: Final = 4 * 1024 * 1024
"""How much of what was redacted before is known again."""

BY_PLAN: Final = ";phonenumbers"
"""What is put after the name of a policy that knew telephone numbers by the library of their plans."""

_SHORTEST: Final = 5
"""Shorter texts hold nothing that a detector finds."""


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """Rules, ready to be applied. ``known`` are texts that were redacted before.

    ``found`` are the decisions by detector, ``credential`` that for values under names of credentials, ``keys`` those
    for other names. ``pointers`` are places by their first step, ``tools`` by the pattern of a tool's name. ``labels``:
    each placeholder names its rule, which `explaining` reads.
    """

    name: str
    search: Search
    found: Mapping[str, Decision]
    credential: Decision | None
    keys: tuple[tuple[re.Pattern[str], Decision], ...]
    pointers: Mapping[str, tuple[Place[Decision], ...]]
    tools: tuple[tuple[str, Place[Decision]], ...]
    kept: re.Pattern[str] | None
    digests: Digests
    domain: str = ""
    shortest: int = _SHORTEST
    labels: bool = False
    known: Memory[str] = field(default_factory=lambda: Memory(KNOWN_BYTES))

    @property
    def label(self) -> str:
        """How recordings name the policy."""
        by_plan = PHONE in self.search.detectors and has_library()
        return self.name + BY_PLAN * by_plan + KEYLESS * (self.digests.unavailable is not None)

    @property
    def asks(self) -> bool:
        """Whether there is any rule."""
        return bool(self.found or self.credential or self.keys or self.pointers or self.tools)

    @property
    def thorough(self) -> bool:
        """Whether rules of the user's own have to be looked for in JSON text that detectors find nothing in."""
        return bool(self.keys or self.tools) or self.shortest < _SHORTEST

    def judge(self, name: str) -> Decision | None:
        """What becomes of a value under this name."""
        return _judge(self, name)

    def enter(self, name: str) -> tuple[Place[Decision], ...]:
        """The places inside an attribute."""
        found = self.pointers.get(name, ())
        for wild in (ANY, DEEP):
            if wild in self.pointers:
                found += self.pointers[wild]
        return step(found, name) if found else found

    def enter_tool(self, tool: str | None, side: str) -> tuple[Place[Decision], ...]:
        """The places inside what a tool was given or gave; of a tool that is not known, those of every tool."""
        return tuple(
            Place(place.steps[1:], place.what)
            for pattern, place in self.tools
            if place.steps[0] == side and (tool is None or fnmatch.fnmatchcase(tool, pattern))
        )

    def keeps(self, text: str) -> bool:
        """Whether a text may stay although a detector finds it."""
        return self.kept is not None and self.kept.fullmatch(text.lower()) is not None

    def put(self, decision: Decision, leaf: Any, field_class: str) -> str:
        """What stands in the place of a value."""
        if self.labels:
            return f"[redacted:{class_of(decision.rule)}:{decision.form}]"
        if decision.form is Form.DROP:
            return ""
        if decision.form is Form.DIGEST:
            return self.digests.place(self.domain, decision.field_class or field_class, leaf) or MASK
        return MASK


def compile_policy(
    name: str,
    rules: Sequence[Rule],
    detectors: Sequence[Detector] = DETECTORS,
    *,
    digests: Digests | None = None,
    domain: str = "",
) -> Policy:
    """The policy of exactly these rules, with these detectors to choose from, under exactly this name.

    Raises:
        SettingsError: as `make_policy`.
    """
    known = {CREDENTIAL_NAME, *Kind, *(detector.name for detector in detectors)}
    for rule in rules:
        check_rule(rule, known)
    decisions = [(rule, Decision(rule.form, rule.name, rule.field_class)) for rule in rules]

    def decide(detector: str, kind: Kind) -> Decision | None:
        found = next((one for rule, one in decisions if detector in rule.detectors or kind in rule.detectors), None)
        return None if found is None or found.form is Form.KEEP else replace(found, rule=detector)

    found = {one.name: decision for one in detectors if (decision := decide(one.name, one.kind)) is not None}
    own = [(Detector(rule.name, Kind.PERSONAL, (), _finding(rule.find)), one) for rule, one in decisions if rule.find]
    found |= {detector.name: decision for detector, decision in own}
    credential = decide(CREDENTIAL_NAME, Kind.CREDENTIAL)
    pointers: dict[str, tuple[Place[Decision], ...]] = {}
    for rule, decision in decisions:
        for one in rule.pointers:
            steps = pointer_steps(one)
            pointers[steps[0]] = (*pointers.get(steps[0], ()), Place(steps, decision))
    tools = [(*tool_steps(one), decision) for rule, decision in decisions for one in rule.tools]
    values = [fnmatch.translate(value.lower()) for rule in rules for value in rule.values]
    return Policy(
        name=name,
        search=make_search([*(one for one in detectors if one.name in found), *(detector for detector, _ in own)]),
        found=found,
        credential=None if credential is None else replace(credential, lenient=True),
        keys=tuple((_key_pattern(key), decision) for rule, decision in decisions for key in rule.keys),
        pointers=pointers,
        tools=tuple((tool, Place(steps, decision)) for tool, steps, decision in tools),
        kept=re.compile("|".join(values)) if values else None,
        digests=digests if digests is not None else Keyring(),
        domain=domain,
        shortest=1 if own else _SHORTEST,
    )


@functools.lru_cache(4096)
def _judge(policy: Policy, name: str) -> Decision | None:
    if policy.keys:
        spelled = {"_".join(words_of(name)), "_".join(words_of(name.rpartition(".")[2]))}
        for pattern, decision in policy.keys:
            if any(pattern.fullmatch(spelling) for spelling in spelled):
                return decision
    return policy.credential if is_credential_name(name) else None


def _key_pattern(key: str) -> re.Pattern[str]:
    """A name in any spelling, with wildcards: between its words, or in their place."""
    parts = re.split(r"([*?])", key)
    words = ["_".join(words_of(part)) if part not in (ANY, "?") else part for part in parts]
    joined = ""
    for part, word in zip(parts, words, strict=True):
        before = "_" if joined and part[:1] in ("_", "-", ".") and word else ""
        after = "_" if word and part[-1:] in ("_", "-", ".") else ""
        joined += f"{before}{word}{after}"
    return re.compile(fnmatch.translate(joined))


def _finding(find: Find) -> Callable[[str, Sequence[int]], list[Found]]:
    """A function of the user as a detector's; what it says of places that are not there is left out."""

    def found(text: str, _places: Sequence[int]) -> list[Found]:
        return [Found(max(0, start), min(end, len(text))) for start, end in sorted(find(text))]

    return found
