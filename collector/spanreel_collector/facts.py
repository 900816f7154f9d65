"""What spans of any dialect say about the session they belong to, and about who recorded them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from spanreel import conventions as names
from spanreel.model import Json, SessionInfo
from spanreel_collector.dialects import values
from spanreel_collector.span import Attributes, RawSpan

_RESPONSE_PREFIX = "resp_"
_OPENINFERENCE_METADATA = "metadata"
_SESSION_IDS = (names.CONVERSATION_ID, "session.id", "metadata.sessionId")
_SESSION_IDS_IN_METADATA = ("session_id", "thread_id", "conversation_id", "sessionId", "threadId", "session.id")
_USER_IDS_IN_METADATA = ("user_id", "userId", "user.id")
_METADATA_PREFIXES = ("ai.telemetry.metadata.", "mastra.metadata.")
"""Of names that end in a key of the user's metadata."""
_STEPS_OWN = ("langgraph_", "ls_", "lc_", "checkpoint_ns", "__pregel")


def read_session(span: RawSpan) -> SessionInfo:
    """The session's id, user, name, tags and metadata, as far as the span says them."""
    attributes = span.attributes
    metadata = {
        **_prefixed(attributes),
        **_metadata(attributes, _OPENINFERENCE_METADATA),
        **_metadata(attributes, names.SESSION_METADATA),
    }
    found = (values.text(attributes, key) for key in _SESSION_IDS)
    named = (values.text(metadata, key) for key in _SESSION_IDS_IN_METADATA)
    # Microsoft's Agent Framework puts the previous response's id there, which changes with every call.
    ids = [one for one in (*found, *named) if one and not one.startswith(_RESPONSE_PREFIX)]
    return SessionInfo(
        id=next(iter(ids), None),
        user_id=values.text(attributes, names.USER_ID) or values.text(metadata, *_USER_IDS_IN_METADATA),
        name=values.text(attributes, names.SESSION_NAME),
        tags=tuple(tag for key in (names.SESSION_TAGS, "tag.tags") for tag in values.texts(attributes, key)),
        metadata=metadata,
    )


def _prefixed(attributes: Attributes) -> dict[str, Json]:
    """The user's metadata where each of its keys is an attribute of its own."""
    return {
        key.removeprefix(prefix): value
        for key, value in attributes.items()
        for prefix in _METADATA_PREFIXES
        if value is not None and key.startswith(prefix)
    }


def _metadata(attributes: Attributes, key: str) -> dict[str, Json]:
    """The user's metadata under a key, without what LangChain puts beside it for each of its steps."""
    found = values.members(attributes.get(key))
    return {name: value for name, value in found.items() if not name.startswith(_STEPS_OWN)}


def merge_sessions(sessions: Iterable[SessionInfo]) -> SessionInfo:
    """What several spans of one session say: the first that says it, tags and metadata of all together."""
    merged = SessionInfo()
    for session in sessions:
        merged = SessionInfo(
            id=merged.id or session.id,
            user_id=merged.user_id or session.user_id,
            name=merged.name or session.name,
            tags=(*merged.tags, *(tag for tag in session.tags if tag not in merged.tags)),
            metadata={**session.metadata, **merged.metadata},
        )
    return merged


def read_source(spans: Iterable[RawSpan], dialects: Iterable[str]) -> dict[str, Any]:
    """Who recorded the session: service, SDK, scopes, dialects, files, and what was lost on the way."""
    seen = list(spans)
    services, scopes, files = set[str](), set[str](), set[str]()
    sdk: dict[str, str] = {}
    for span in seen:
        resource = span.origin.resource
        if service := values.text(resource, "service.name"):
            services.add(service)
        for key in ("name", "language", "version"):
            if found := values.text(resource, f"telemetry.sdk.{key}"):
                sdk.setdefault(key, found)
        if span.origin.scope:
            scopes.add(" ".join(filter(None, (span.origin.scope, span.origin.scope_version))))
        # The file's name only: where it lay is nobody's business, and differs from machine to machine.
        files.add(span.place.rsplit(":", 1)[0].replace("\\", "/").rsplit("/", 1)[-1])
    source: dict[str, Any] = {"service_name": ", ".join(sorted(services))} if services else {}
    if sdk:
        source["sdk"] = sdk
    if lost := read_losses(seen):
        source["losses"] = lost
    return {**source, "scopes": sorted(scopes), "dialects": sorted(set(dialects)), "files": sorted(files)}


def read_losses(spans: Iterable[RawSpan]) -> dict[str, int]:
    """What the recorder says it had to drop, by reason, in numbers; not all of it need be of this session."""
    lost = Counter[str]()
    for span in spans:
        said, _ = values.decode(span.attributes.get(names.LOSSES))
        for reason, number in said.items() if isinstance(said, dict) else ():
            if isinstance(number, int):
                lost[reason] += number
    return dict(sorted(lost.items()))


def read_redaction(spans: Iterable[RawSpan]) -> tuple[str | None, list[str]]:
    """The policy that redacted the spans, and the ids of its keys."""
    policy: str | None = None
    keys = set[str]()
    seen = set[str]()
    for span in spans:
        value = span.attributes.get(names.REDACTION)
        if not isinstance(value, str) or value in seen:
            continue
        seen.add(value)
        header, _ = values.decode(value)
        if isinstance(header, dict):
            policy = policy or values.text(header, "policy")
            keys.update(values.texts(header, "key_ids"))
    return policy, sorted(keys)
