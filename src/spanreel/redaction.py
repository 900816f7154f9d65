"""What may leave the process: values without what a policy finds in them, decoded to any depth.

The same functions run on what is recorded and, in a replay, on live values before they are compared; so they are
deterministic, and redacting again changes nothing.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from spanreel import conventions, json_text
from spanreel.concealing import GONE
from spanreel.detectors import DETECTORS, MASK
from spanreel.digest import key_ids_in
from spanreel.fidelity import OWN_MARKS, own_mark
from spanreel.model import Json
from spanreel.policy import Policy
from spanreel.policy_labels import join_labels
from spanreel.presets import DEFAULT, make_policy
from spanreel.rules import Form, Rule
from spanreel.settings import Settings
from spanreel.spelling import spelling, without_told
from spanreel.tool_places import Places, attribute_places, calls_in
from spanreel.walk import WORD, Walk, examine, examine_name, examine_text, examine_under, is_harmless_scalar

if TYPE_CHECKING:  # the collector redacts too, and knows nothing of OpenTelemetry
    from opentelemetry.util.types import AttributeValue

__all__ = [
    "DEFAULT",
    "JSON_VALUES",
    "Form",
    "Policy",
    "Redacted",
    "Rule",
    "header",
    "is_clean_word",
    "is_harmless_name",
    "is_harmless_scalar",
    "is_own_id",
    "make_policy",
    "policy_of",
    "redact_attributes",
    "redact_json",
    "redact_text",
]

JSON_VALUES: Final = frozenset(
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
    """Attributes as they may leave; which of them changed or were dropped; the ids of the keys of digests in those.

    ``failures`` counts what could not be examined, and is masked whole.
    """

    attributes: dict[str, AttributeValue]
    changed: frozenset[str]
    failures: int = 0
    key_ids: frozenset[str] = frozenset()


def redact_attributes(attributes: Mapping[str, AttributeValue], policy: Policy = DEFAULT) -> Redacted:
    """Redact the attributes of a span, an event, a link or a resource, ours and anybody's. Never raises."""
    if not policy.asks:
        return Redacted(dict(attributes), frozenset())
    walk = Walk(policy)
    tools: Mapping[str, Places] = {}
    if policy.tools:
        walk.calls, tools = calls_in(attributes.values()), attribute_places(attributes, policy)
    redacted: dict[str, AttributeValue] = {}
    changed = set()
    key_ids: set[str] = set()
    told = spelled_by(attributes, policy)
    for name, value in attributes.items():
        is_record = name == conventions.STREAM_CHUNKS
        left = value if is_record or not told else _without_told(value, told)
        if left is value and name not in tools and is_examined_quickly(name, value, policy):
            redacted[name] = value
            continue
        if name in OWN_MARKS:
            try:
                said = own_mark(name, value, lambda text: examine_name(text, policy))
            except Exception:  # noqa: BLE001 -- as below
                said = None
                walk.failures += 1
            if said is not None:
                redacted[name] = said
            continue
        try:
            new_name = examine_name(name, policy)
            places = policy.enter(name)
            new = _attribute(name, left, walk, (*places, *tools[name]) if name in tools else places)
        except Exception:  # noqa: BLE001 -- whatever a rule raises: what could not be examined does not leave
            new_name, new = name, MASK
            walk.failures += 1
        if new is not value or new_name != name:
            changed.add(new_name)
            key_ids |= key_ids_in(new if isinstance(new, str) else str(new))
        if new is not GONE:
            redacted[new_name] = new
    return Redacted(redacted, frozenset(changed), walk.failures, frozenset(key_ids))


def spelled_by(attributes: Mapping[str, AttributeValue], policy: Policy) -> frozenset[str] | None:
    """Pieces of what may not leave in the record of a stream: the answer may say the last of them as it came.

    None where the record spells nothing.
    """
    record: object = attributes.get(conventions.STREAM_CHUNKS)
    record = json_text.encode(record) if isinstance(record, list) else record  # as a session document has it
    return spelling(record, lambda whole: redact_json(whole, policy)[0]) if isinstance(record, str) else None


def _without_told(value: AttributeValue, told: frozenset[str]) -> AttributeValue:
    if isinstance(value, str):
        return without_told(value, told)
    if not isinstance(value, (list, dict)):
        return value
    text = json_text.encode(value)
    left = without_told(text, told)
    clean: AttributeValue = value if left is text else json_text.decode(left)
    return clean


def is_examined_quickly(name: str, value: Any, policy: Policy) -> bool:
    """Whether nothing is to be redacted, told by what is known of the name and of short values: most of a span."""
    if name in JSON_VALUES or not is_harmless_name(name, policy):
        return False
    if type(value) is not str:
        return is_harmless_scalar(value)
    return is_clean_word(value, policy)


@functools.lru_cache(4096)
def is_harmless_name(name: str, policy: Policy) -> bool:
    """Whether an attribute's name is harmless, and no rule is for what stands under it but to keep it."""
    if name in OWN_MARKS or not name.isascii():
        return False
    if not policy.asks:
        return True
    kept = all(place.what.form is Form.KEEP and not place.steps for place in policy.enter(name))
    return kept and policy.judge(name) is None and examine_name(name, policy) == name


def is_clean_word(text: str, policy: Policy) -> bool:
    """Whether nothing is found in a text that is short, or otherwise known; nothing is said of others."""
    return is_own_id(text, policy) or (len(text) <= WORD and _is_clean(text, policy))


def is_own_id(text: str, policy: Policy) -> bool:
    """Whether a text is an id of ours or a UUID, and the policy has no detectors but ours, which find nothing there."""
    form = _FORMS.get(len(text))
    return form is not None and form.fullmatch(text) is not None and _finds_ours_alone(policy)


_SPAN_ID: Final = re.compile(r"(?=.{16}\Z)[0-9a-f]{2}[0-9]*[a-f][0-9a-f]*")
"""The id of a span, or one of ours like it: new in each call, and nothing that any of our detectors finds."""
_UUID: Final = re.compile(
    r"(?!.*\b[a-f]{2}[0-9]{2}.{10})(?!.*[0-9-]{11})[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
)
"""A UUID, as frameworks call conversations; none that begins like an account number, or has as many digits together
as a telephone number: what detectors find in such is theirs to say."""
_FORMS: Final = {16: _SPAN_ID, 36: _UUID}


@functools.lru_cache(64)
def _finds_ours_alone(policy: Policy) -> bool:
    return not policy.thorough and set(policy.search.detectors) <= set(DETECTORS)


@functools.lru_cache(8192)
def _is_clean(text: str, policy: Policy) -> bool:
    walk = Walk(policy)
    return not policy.asks or (examine(text, walk) is text and not walk.failures)


def redact_json(value: Json, policy: Policy = DEFAULT) -> tuple[Json, bool]:
    """Redact a JSON value; gives it back with whether something changed, the very same object where nothing did."""
    if not policy.asks:
        return value, False
    walk = Walk(policy, calls_in([value]) if policy.tools else {})
    redacted = examine(value, walk)
    return (None, True) if redacted is GONE else (redacted, redacted is not value)


def redact_text(text: str, policy: Policy = DEFAULT) -> str:
    """Redact what detectors find in text that is no JSON."""
    return examine_text(text, Walk(policy)) if policy.asks else text


def policy_of(settings: Settings) -> Policy:
    """The policy that the settings name.

    Raises:
        SettingsError: there is none of that name, or the file cannot be read.
    """
    if not isinstance(settings.redaction, str):
        return settings.redaction
    return DEFAULT if settings.redaction == "default" else _named(settings.redaction)


@functools.lru_cache(16)
def _named(source: str) -> Policy:
    from spanreel.policy_file import find_policy  # noqa: PLC0415 -- it takes pydantic's models, which most do without

    return find_policy(source)


def header(policy: Policy, key_ids: Iterable[str], before: object = None) -> str:
    """JSON: which policy redacted something, and the ids of its keys; with what the header ``before`` said."""
    said: dict[str, Any] = {}
    if isinstance(before, str):
        try:
            decoded = json_text.decode(before)
        except ValueError:
            decoded = None
        said = decoded if isinstance(decoded, dict) else {}
    label, known = said.get("policy"), said.get("key_ids")
    ids = {*key_ids, *(one for one in known if isinstance(one, str))} if isinstance(known, list) else {*key_ids}
    label = join_labels(label if isinstance(label, str) else None, policy.label)
    return json_text.encode({"policy": label, "key_ids": sorted(ids)})


def _attribute(name: str, value: Any, walk: Walk, places: Places) -> Any:
    if name in JSON_VALUES and isinstance(value, str) and (places or value[:1] not in {"{", "[", '"'}):
        try:
            decoded = json_text.decode(value)
        except ValueError:
            return examine_under(name, value, walk, places)
        redacted = examine_under(name, decoded, walk, places)
        return value if redacted is decoded else redacted if redacted is GONE else json_text.encode(redacted)
    return examine_under(name, value, walk, places)
