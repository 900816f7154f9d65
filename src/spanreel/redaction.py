"""What may leave the process: values without what a policy finds in them, decoded to any depth.

The same functions run on what is recorded and, in a replay, on live values before they are compared; so they are
deterministic, and redacting again changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from spanreel import conventions, json_text
from spanreel.concealing import GONE
from spanreel.detectors import MASK
from spanreel.model import Json
from spanreel.policy import Policy
from spanreel.presets import DEFAULT
from spanreel.tool_places import attribute_places, calls_in
from spanreel.walk import Places, Walk, examine, examine_name, examine_text, examine_under

if TYPE_CHECKING:  # the collector redacts too, and knows nothing of OpenTelemetry
    from opentelemetry.util.types import AttributeValue

__all__ = ["DEFAULT", "Policy", "Redacted", "header", "redact_attributes", "redact_json", "redact_text"]

_OWN_MARKS: Final = frozenset(
    {conventions.FIDELITY, conventions.REDACTION, conventions.REDACTION_FAILURES, conventions.LOSSES}
)
"""Attributes that say something about others, by name; they hold no content."""

_JSON_VALUES: Final = frozenset(
    {
        conventions.TOOL_CALL_ARGUMENTS,
        conventions.TOOL_CALL_RESULT,
        conventions.RUN_ARGUMENTS,
        conventions.RUN_RESULT,
    }
)
"""Attributes that hold any value as JSON text: a text in quotes, a number."""


@dataclass(frozen=True, slots=True)
class Redacted:
    """Attributes as they may leave, and which of them changed or were dropped.

    ``failures`` counts what could not be examined, and is masked whole.
    """

    attributes: dict[str, AttributeValue]
    changed: frozenset[str]
    failures: int = 0


def redact_attributes(attributes: Mapping[str, AttributeValue], policy: Policy = DEFAULT) -> Redacted:
    """Redact the attributes of a span, an event, a link or a resource, ours and anybody's. Never raises."""
    walk = Walk(policy)
    tools: Mapping[str, Places] = {}
    if policy.tools:
        walk.calls, tools = calls_in(attributes.values()), attribute_places(attributes, policy)
    redacted: dict[str, AttributeValue] = {}
    changed = set()
    for name, value in attributes.items():
        if name in _OWN_MARKS:
            redacted[name] = value
            continue
        try:
            new_name = examine_name(name, policy)
            places = policy.enter(name)
            new = _attribute(name, value, walk, (*places, *tools[name]) if name in tools else places)
        except Exception:  # noqa: BLE001 -- whatever a rule raises: what could not be examined does not leave
            new_name, new = name, MASK
            walk.failures += 1
        if new is not value or new_name != name:
            changed.add(new_name)
        if new is not GONE:
            redacted[new_name] = new
    return Redacted(redacted, frozenset(changed), walk.failures)


def redact_json(value: Json, policy: Policy = DEFAULT) -> tuple[Json, bool]:
    """Redact a JSON value; gives it back with whether something changed, the very same object where nothing did."""
    walk = Walk(policy, calls_in([value]) if policy.tools else {})
    redacted = examine(value, walk)
    return (None, True) if redacted is GONE else (redacted, redacted is not value)


def redact_text(text: str, policy: Policy = DEFAULT) -> str:
    """Redact what detectors find in text that is no JSON."""
    return examine_text(text, Walk(policy))


def header(policy: Policy) -> str:
    """JSON: which policy redacted something, and the ids of its keys."""
    return json_text.encode({"policy": policy.label, "key_ids": list(policy.key_ids)})


def _attribute(name: str, value: Any, walk: Walk, places: Places) -> Any:
    if places and name in _JSON_VALUES and isinstance(value, str):
        try:
            decoded = json_text.decode(value)
        except ValueError:
            return examine_under(name, value, walk, places)
        redacted = examine_under(name, decoded, walk, places)
        return value if redacted is decoded else redacted if redacted is GONE else json_text.encode(redacted)
    return examine_under(name, value, walk, places)
