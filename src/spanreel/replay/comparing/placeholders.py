"""Live values with the placeholders that the recording's policy gave, so that both can be compared."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from spanreel import conventions as names
from spanreel.detectors import PHONE, has_library
from spanreel.digest import blur
from spanreel.errors import ReplayRefused, SettingsError
from spanreel.keyring import Keyring, NoKey, OneKey
from spanreel.memory import Memory
from spanreel.model import Json, Request
from spanreel.policy import BY_PLAN, KNOWN_BYTES, Policy
from spanreel.policy_file import find_policy
from spanreel.policy_labels import KEYLESS
from spanreel.presets import preset
from spanreel.redaction import redact_attributes
from spanreel.session import Session
from spanreel.settings import REDACTION

Redact = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""What a span would say, as the policy would have let it leave; values stand as they are, not as JSON text."""


@dataclass(frozen=True, slots=True)
class Placeholders:
    """How live values become comparable: a way for each key of the recording, the newest first.

    There is none where nothing was redacted.
    ``missing`` are the ids of keys that are not here. Then what has a digest is unknown in the last of the ways, and
    ``known`` are the keys whose digests can be compared.
    """

    ways: tuple[Redact, ...] = ()
    known: frozenset[str] = frozenset()
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def blurred(self, value: Any) -> Any:
        """A value in which digests of keys that are not here are unknown, on the recorded and on the live side."""
        return blur_json(value, self.known)


def placeholders_of(session: Session, policy: Policy | None = None) -> Placeholders:
    """What gives live values the recording's placeholders; ``policy`` is the one that the environment names.

    Raises:
        ReplayRefused: the recording was redacted by a policy that is not here.
    """
    label = session.redaction.policy
    if label is None:
        return Placeholders()
    named = label.removesuffix(KEYLESS)
    found = _policy_of(session, named.removesuffix(BY_PLAN), policy)
    ring = found.digests
    keys = [ring.find(key_id) for key_id in session.redaction.key_ids] if isinstance(ring, Keyring) else []
    here = [key for key in keys if key is not None]
    known = frozenset(key.id for key in here)
    missing = tuple(key_id for key_id in session.redaction.key_ids if key_id not in known)
    ways = [_way(found, OneKey(key)) for key in reversed(here)]
    keyless = label.endswith(KEYLESS)
    if keyless:
        ways.append(_way(found, NoKey()))
    if missing or not ways:
        ways.append(_way(found, OneKey(None)))
    other_plans = PHONE in found.search.detectors and named.endswith(BY_PLAN) != has_library()
    notes = (_KEYLESS,) * keyless + (_OTHER_PLANS,) * other_plans
    notes += tuple(
        f"the key {key_id!r} of the recording's digests is not here, so that a value that has one is equal to nothing: "
        "give it in SPANREEL_REDACTION_KEY or SPANREEL_REDACTION_KEY_FILE, where older keys may stand too"
        for key_id in missing
    )
    return Placeholders(tuple(ways), known, missing, notes)


def redact_request(redact: Redact, request: Request) -> Request:
    """A model request with placeholders."""
    said = redact(
        {
            names.OPERATION: request.operation.value,
            names.SYSTEM_INSTRUCTIONS: list(request.instructions),
            names.INPUT_MESSAGES: list(request.messages),
            names.TOOL_DEFINITIONS: list(request.tools),
            names.REQUEST_SETTINGS: dict(request.settings),
            names.REQUEST_PROVIDER_FIELDS: dict(request.provider_fields),
        }
    )
    return replace(
        request,
        instructions=tuple(said.get(names.SYSTEM_INSTRUCTIONS) or ()),
        messages=tuple(said.get(names.INPUT_MESSAGES) or ()),
        tools=tuple(said.get(names.TOOL_DEFINITIONS) or ()),
        settings=said.get(names.REQUEST_SETTINGS) or {},
        provider_fields=said.get(names.REQUEST_PROVIDER_FIELDS) or {},
    )


def redact_tool_arguments(redact: Redact, tool: str, arguments: Json) -> Json:
    """A tool's arguments with placeholders."""
    said = redact({names.OPERATION: names.EXECUTE_TOOL, names.TOOL_NAME: tool, names.TOOL_CALL_ARGUMENTS: arguments})
    found: Json = said.get(names.TOOL_CALL_ARGUMENTS)
    return found


def redact_value(redact: Redact, name: str, value: Json) -> Json:
    """The value of one attribute with placeholders."""
    found: Json = redact({name: value}).get(name)
    return found


def blur_json(value: Any, known: frozenset[str]) -> Any:
    """A JSON value in which each digest whose key is not among the known is unknown."""
    if isinstance(value, str):
        return blur(value, known)
    if isinstance(value, dict):
        return {blur(key, known): blur_json(item, known) for key, item in value.items()}
    return [blur_json(item, known) for item in value] if isinstance(value, list) else value


_OTHER_PLANS = (
    "telephone numbers were found with the library phonenumbers where this was recorded and are found without it here, "
    "or the other way round, so that a few may be told as different: pip install spanreel[phone], or uninstall it"
)
_KEYLESS = (
    "personal data was masked, since no key could be kept where this was recorded: values that differ only in what was "
    "masked cannot be told apart. SPANREEL_REDACTION_KEY_FILE names a place for a key"
)


def _way(policy: Policy, digests: NoKey | OneKey) -> Redact:
    used = replace(policy, digests=digests, known=Memory(KNOWN_BYTES))

    def redact(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
        return redact_attributes(attributes, used).attributes

    return redact


def _policy_of(session: Session, name: str, policy: Policy | None) -> Policy:
    ours = preset(name)
    if policy is None and ours is None:
        policy = _configured()
    if policy is not None and policy.name == name:
        return policy
    if ours is not None:
        # Its keys are the recording's, whatever else is configured here.
        return ours if policy is None else replace(ours, digests=policy.digests)
    here = f"; here is {policy.name!r}" if policy is not None else ""
    raise ReplayRefused(
        f"session {session.id!r} was redacted by policy {name!r}, which is not here{here}: live values cannot be "
        f"compared with it. Name its file in {REDACTION}, unchanged, or record again"
    )


def _configured() -> Policy | None:
    try:
        return find_policy(os.environ.get(REDACTION, "").strip() or "default")
    except SettingsError as error:
        raise ReplayRefused(str(error)) from error
