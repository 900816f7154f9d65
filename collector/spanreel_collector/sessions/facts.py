"""What spans of any dialect say about the session they belong to, and about who recorded them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from spanreel import conventions as names
from spanreel.loss_markers import find_loss
from spanreel.model import Fidelity, Json, SessionInfo
from spanreel.policy_labels import join_labels
from spanreel_collector.dialects import spanreel as own_dialect
from spanreel_collector.dialects import values
from spanreel_collector.sessions import naming
from spanreel_collector.span import Attributes, Origin, RawLog, RawSpan

_RESPONSE_PREFIX = "resp_"
_NO_IDS = frozenset({"", "null", "none", "undefined", "nil", "nan", "n/a", "unknown", "[object object]"})
"""What languages write of an id that there is none of: it is no name that sessions could share."""
_TOLD_BY = frozenset(
    {
        *naming.SESSION_IDS,
        *naming.BARE_SESSION_IDS,
        *naming.USER_IDS,
        *naming.SESSION_NAMES,
        *naming.TAGS,
        *naming.METADATA,
        naming.MASTRA_TYPE,
    }
)
"""What tells of a session, metadata with a prefix left out."""

_ON_RESOURCES = frozenset(naming.ON_RESOURCES)
_NOTHING = SessionInfo()


def read_session(span: RawSpan) -> SessionInfo:
    """The session's id, user, name, tags and metadata, as far as the span says them."""
    attributes = _telling(span.attributes)
    if span.logs and names.USER_ID not in attributes:
        attributes = {**attributes, **_user_beside(span.logs)}
    if not attributes:
        return _NOTHING
    told = tuple(attributes.items())
    return _read_alike(told) if all(type(value) is str for _, value in told) else _read_told(attributes)


def _user_beside(logs: Iterable[RawLog]) -> Attributes:
    """The user whom a span's own events name: ADK says on them alone, whose call it is."""
    users = (log.attributes.get(names.USER_ID) for log in logs if log.event_name.startswith("gen_ai."))
    return next(({names.USER_ID: user} for user in users if user is not None), {})


@lru_cache(maxsize=1024)
def _read_alike(told: tuple[tuple[str, str], ...]) -> SessionInfo:
    """The same of texts alone, which the spans of a session repeat; shared, nobody may change it."""
    return _read_told(dict(told))


def _read_told(attributes: Attributes) -> SessionInfo:
    metadata = _whole_metadata(attributes)
    return SessionInfo(
        id=_session_id(attributes, metadata),
        user_id=_user_id(attributes, metadata),
        name=values.text(attributes, *naming.SESSION_NAMES),
        tags=tuple(tag for key in naming.TAGS if key in attributes for tag in values.texts(attributes, key)),
        metadata=metadata,
    )


def read_resource(origin: Origin) -> SessionInfo:
    """The session's id and its user, where a whole process is one session and its resource says whose."""
    if _ON_RESOURCES.isdisjoint(origin.resource):
        return _NOTHING
    told = tuple(
        (key, origin.resource[key]) for key in naming.ON_RESOURCES if isinstance(origin.resource.get(key), str)
    )
    return _read_alike(told) if told else _NOTHING


def _user_id(attributes: Attributes, metadata: Attributes) -> str | None:
    found = next(_ids(attributes, naming.USER_IDS), None)
    return next(_ids(metadata, naming.USER_IDS_IN_METADATA), None) if found is None else found


def read_ids(attributes: Attributes) -> tuple[str | None, tuple[str, ...]]:
    """The session's id, and all users that are named, of a span's attributes or a log record's."""
    told = _telling(attributes)
    return (_session_id(told, None), _all_users(told)) if told else (None, ())


def _all_users(told: Attributes) -> tuple[str, ...]:
    """Whoever is named, and not only whom the session is said to be of."""
    keys = _keys_of_users(tuple(told))
    if not keys:
        return ()
    metadata = _whole_metadata(told) if any(key not in naming.USER_IDS for key in keys) else {}
    places = [(told, key) for key in naming.USER_IDS] + [(metadata, key) for key in naming.USER_IDS_IN_METADATA]
    return tuple(user for place, key in places for user in _ids(place, (key,)))


@lru_cache(maxsize=4096)
def _keys_of_users(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Which of the attributes that tell of a session may name a user."""
    whole = (*naming.USER_IDS, *naming.MASTRA, naming.OPENINFERENCE_METADATA, names.SESSION_METADATA)
    return tuple(key for key in keys if key in whole or _name_in_metadata(key) in naming.USER_IDS_IN_METADATA)


def _telling(attributes: Attributes) -> Attributes:
    """Those attributes that may tell of the session, which are few."""
    return {key: attributes[key] for key in _telling_names(tuple(attributes))}


@lru_cache(maxsize=4096)
def _telling_names(keys: tuple[str, ...]) -> tuple[str, ...]:
    bare = naming.MASTRA if naming.MASTRA_TYPE in keys else ()
    return tuple(key for key in keys if key in _TOLD_BY or key in bare or _name_in_metadata(key) is not None)


def _session_id(attributes: Attributes, metadata: Attributes | None) -> str | None:
    """The session's id; from its metadata, where nothing else says it."""
    found = next(_ids(attributes, naming.SESSION_IDS), None)
    if found is None:
        found = next(
            _ids(_whole_metadata(attributes) if metadata is None else metadata, naming.SESSION_IDS_IN_METADATA), None
        )
    if found is None:
        bare = {key: attributes[key] for key in naming.BARE_SESSION_IDS if isinstance(attributes.get(key), str)}
        found = next(_ids(bare, naming.BARE_SESSION_IDS), None)
    return found


def _ids(attributes: Attributes, names_of_ids: Iterable[str]) -> Iterator[str]:
    """The ids under these names; numbers are ids as well."""
    for key in names_of_ids:
        found = attributes.get(key)
        if isinstance(found, int) and not isinstance(found, bool):
            yield str(found)
        elif isinstance(found, str) and _is_told(identity := _unquoted(found)):
            yield identity


def _unquoted(identity: str) -> str:
    """An id that came as JSON: MLflow writes every attribute so, texts with their quotation marks."""
    if len(identity) > 1 and identity[0] == identity[-1] == '"':
        found, _ = values.decode(identity)
        return found if isinstance(found, str) else identity
    return identity


def _is_told(identity: str) -> bool:
    """Whether it is an id still: what another redacted is the same for all whom he took it from, and so is none at all.

    Microsoft's Agent Framework puts the previous response's id there, which changes with every call.
    """
    if identity.startswith(_RESPONSE_PREFIX) or find_loss(identity) is Fidelity.REDACTED:
        return False
    return identity.strip().lower() not in _NO_IDS and bool(identity.strip("0-"))


def _whole_metadata(attributes: Attributes) -> dict[str, Json]:
    bare = [key for key in naming.MASTRA if attributes.get(key) is not None] if naming.MASTRA_TYPE in attributes else []
    return {
        **{key: attributes[key] for key in bare},
        **_prefixed(attributes),
        **_metadata(attributes, naming.OPENINFERENCE_METADATA),
        **_metadata(attributes, names.SESSION_METADATA),
    }


def _prefixed(attributes: Attributes) -> dict[str, Json]:
    """The user's metadata where each of its keys is an attribute of its own; some write the values as JSON."""
    return {
        name: values.decode(value)[0]
        for key, value in attributes.items()
        if (name := _name_in_metadata(key)) is not None and value is not None
    }


@lru_cache(maxsize=4096)
def _name_in_metadata(key: str) -> str | None:
    """The key of the user's metadata that an attribute's name ends in; None where it is another attribute."""
    prefix = next((prefix for prefix in naming.METADATA_PREFIXES if key.startswith(prefix)), None)
    name = None if prefix is None else key.removeprefix(prefix)
    return None if name is None or name.startswith(naming.STEPS_OWN) else name


def _metadata(attributes: Attributes, key: str) -> dict[str, Json]:
    """The user's metadata under a key, without what LangChain puts beside it for each of its steps."""
    found = values.members(attributes[key]) if key in attributes else {}
    return {name: value for name, value in found.items() if not name.startswith(naming.STEPS_OWN)}


def merge_sessions(sessions: Iterable[SessionInfo]) -> SessionInfo:
    """What several spans of one session say: the first that says it, tags and metadata of all together."""
    merged = SessionInfo()
    for session in sessions:
        if session is _NOTHING or session == merged:
            continue
        merged = SessionInfo(
            id=merged.id or session.id,
            user_id=merged.user_id or session.user_id,
            name=merged.name or session.name,
            tags=(*merged.tags, *(tag for tag in session.tags if tag not in merged.tags)),
            metadata={**session.metadata, **merged.metadata},
        )
    return merged


@dataclass(eq=False, slots=True)
class Origins:
    """Who recorded a session, gathered span by span: service, SDK, scopes, dialects, files, redaction, and losses."""

    origin: Literal["recorded", "imported", "replay"] = "imported"
    baseline: str | None = None
    policy: str | None = None
    key_ids: set[str] = field(default_factory=set)
    _services: set[str] = field(default_factory=set)
    _scopes: set[str] = field(default_factory=set)
    _files: set[str] = field(default_factory=set)
    _dialects: set[str] = field(default_factory=set)
    _sdk: dict[str, str] = field(default_factory=dict)
    _losses: Counter[str] = field(default_factory=Counter)
    _headers: set[str] = field(default_factory=set)
    _seen: dict[int, Origin] = field(default_factory=dict)

    def add(self, span: RawSpan, dialect: str | None) -> None:
        """Take in what one span says."""
        attributes = span.attributes
        # The file's name only: where it lay is nobody's business, and differs from machine to machine.
        self._files.add(span.place.rsplit(":", 1)[0].replace("\\", "/").rsplit("/", 1)[-1])
        if dialect is not None:
            self._dialects.add(dialect)
        self._add_origin(span.origin)
        if self.origin != "replay":
            if attributes.get(names.ORIGIN) == "replay":
                self.origin, self.baseline = "replay", values.text(attributes, names.BASELINE)
            elif dialect == own_dialect.NAME and attributes.get(names.ORIGIN) != "imported":
                self.origin = "recorded"
        if names.LOSSES in attributes:
            said, _ = values.decode(attributes[names.LOSSES])
            for reason, number in said.items() if isinstance(said, dict) else ():
                if isinstance(number, int):
                    self._losses[reason] += number
        if span.dropped_attributes:
            self._losses["dropped attributes"] += span.dropped_attributes
        if isinstance(header := attributes.get(names.REDACTION), str) and header not in self._headers:
            self._headers.add(header)
            self._add_redaction(header)

    def _add_origin(self, origin: Origin) -> None:
        # Spans share their origin: each is looked at once, and kept so that its id stays its own.
        if id(origin) in self._seen:
            return
        self._seen[id(origin)] = origin
        if service := values.text(origin.resource, "service.name"):
            self._services.add(service)
        for key in ("name", "language", "version"):
            if found := values.text(origin.resource, f"telemetry.sdk.{key}"):
                self._sdk.setdefault(key, found)
        if origin.scope:
            self._scopes.add(" ".join(filter(None, (origin.scope, origin.scope_version))))

    def _add_redaction(self, header: str) -> None:
        """Take in the policy that redacted the spans, and the ids of its keys."""
        said, _ = values.decode(header)
        if isinstance(said, dict):
            self.policy = join_labels(self.policy, values.text(said, "policy"))
            self.key_ids.update(values.texts(said, "key_ids"))

    def source(self) -> dict[str, Any]:
        """What the document says of its source. Losses are the recorders', not all of them need be of this session."""
        source: dict[str, Any] = {"service_name": ", ".join(sorted(self._services))} if self._services else {}
        if self._sdk:
            source["sdk"] = self._sdk
        if self._losses:
            source["losses"] = dict(sorted(self._losses.items()))
        seen = {"scopes": self._scopes, "dialects": self._dialects, "files": self._files}
        return {**source, **{name: sorted(found) for name, found in seen.items()}}
