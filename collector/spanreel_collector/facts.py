"""What spans of any dialect say about the session they belong to, and about who recorded them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from spanreel import conventions as names
from spanreel.model import SessionInfo
from spanreel_collector.dialects import values
from spanreel_collector.span import RawSpan

_RESPONSE_PREFIX = "resp_"


def read_session(span: RawSpan) -> SessionInfo:
    """The session's id, user, name, tags and metadata, as far as the span says them."""
    attributes = span.attributes
    metadata, _ = values.decode(attributes.get(names.SESSION_METADATA))
    conversation = values.text(attributes, names.CONVERSATION_ID)
    if conversation and conversation.startswith(_RESPONSE_PREFIX):
        # Microsoft's Agent Framework puts the previous response's id here, which changes with every call.
        conversation = None
    return SessionInfo(
        id=conversation,
        user_id=values.text(attributes, names.USER_ID),
        name=values.text(attributes, names.SESSION_NAME),
        tags=tuple(values.texts(attributes, names.SESSION_TAGS)),
        metadata=metadata if isinstance(metadata, dict) else {},
    )


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
