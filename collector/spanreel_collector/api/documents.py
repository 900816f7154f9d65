"""The JSON of the API's answers, as pydantic models; session documents are `spanreel.session`'s."""

from __future__ import annotations

import dataclasses
import json
import operator
from typing import Any

from pydantic import BaseModel, Field
from pydantic_core import PydanticSerializationError, from_json, to_json

from spanreel.model import Json
from spanreel_collector.access import Scope
from spanreel_collector.api.moments import write_moment
from spanreel_collector.stores import records
from spanreel_collector.stores.rows import read_json, read_summary


class SessionSummary(BaseModel):
    """A session as lists show it. Moments are RFC 3339; ``at`` is when this revision was made."""

    id: str
    revision: int
    at: str
    kind: str
    key: str
    origin: str
    status: str
    name: str | None = None
    user: str | None = None
    users: list[str] = []
    started: str | None = None
    ended: str | None = None
    agents: list[str] = []
    versions: list[str] = []
    models: list[str] = []
    tools: list[str] = []
    tags: list[str] = []
    runs: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    eligible: bool = False
    baseline: str | None = None
    opening: str = ""
    failure: str | None = None


def tell_summary(summary: records.Summary) -> dict[str, Any]:
    """What a SessionSummary says, as it is without being validated, which takes twice as long as all else of a list."""
    return _with_moments(dict(zip(_SAID, _values(summary), strict=True)))


def tell_kept(kept: bytes) -> dict[str, Any]:
    """The same of a summary as a store keeps it."""
    said = read_json(kept)
    # In the order of this release, and nothing of another.
    return _with_moments(said) if tuple(said) == _SAID else tell_summary(read_summary(kept))


def _with_moments(said: dict[str, Any]) -> dict[str, Any]:
    for name in ("at", "started", "ended"):
        said[name] = write_moment(said[name])
    return said


_SAID = tuple(field.name for field in dataclasses.fields(records.Summary))
_values = operator.attrgetter(*_SAID)


def write_json(value: Any) -> bytes:
    """An answer as JSON that everybody reads: what somebody's span holds may be half a surrogate pair, or infinite."""
    try:
        return to_json(value, inf_nan_mode="null")
    except PydanticSerializationError:
        whole = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        return to_json(from_json(whole), inf_nan_mode="null")


class SessionPage(BaseModel):
    """Some sessions in order, and the cursor that the next page is asked for with; null at the end."""

    sessions: list[SessionSummary]
    cursor: str | None


class Revision(BaseModel):
    """A revision that can be read, when it was made, and by which release."""

    revision: int
    at: str
    reader: str


class ForecastCall(BaseModel):
    """What an offline replay does with one call: its id, JSON pointer, outcome, and why it is in doubt."""

    call: str
    name: str
    place: str
    outcome: str
    reason: str | None = None


class ForecastRun(BaseModel):
    """Whether one root run can be replayed exactly, and what stands in the way."""

    run: str
    path: str
    eligible: bool
    reasons: list[dict[str, str | None]]


class Forecast(BaseModel):
    """What a replay would do."""

    session: str
    revision: int
    eligible: bool
    runs: list[ForecastRun]
    calls: list[ForecastCall]


class Difference(BaseModel):
    """What differs, as in a replay's report: ``recorded`` is the first session's side, ``live`` the other's.

    ``places`` are JSON pointers in the two documents; a side that has nothing there is absent.
    """

    subject: str
    path: str
    number: int = 0
    name: str | None = None
    reason: str
    difference: dict[str, Json] | None = None
    places: list[str | None] = Field(default_factory=list)
    text: str


class ComparedRun(BaseModel):
    """Two runs that correspond, by their ids; null where there is none. ``outcome`` is same, differs or missing."""

    path: str
    runs: list[str | None]
    outcome: str


class Comparison(BaseModel):
    """What differs between two sessions, the first being the baseline."""

    sessions: list[str]
    same: bool
    runs: list[ComparedRun]
    differences: list[Difference]
    cut: bool = False
    """Whether there are more differences than are told."""


class ReportIn(BaseModel):
    """A replay's report (`spanreel.replay/1`); more fields than these are kept."""

    model_config = {"extra": "allow"}

    schema_: str = Field(alias="schema")
    session: str
    verdict: str


class Report(BaseModel):
    """A replay's report, with the id and moment that it was kept under."""

    id: str
    session: str
    at: str
    verdict: str
    report: dict[str, Json]


class Receipt(BaseModel):
    """What was erased, in numbers, replays among the sessions; ``remains`` says what this does not reach.

    ``pending`` traces came before and are no session yet, so that it is not known whose they are: erase again.
    """

    sessions: int
    revisions: int
    traces: int
    items: int
    reports: int
    pending: int = 0
    remains: str = "backups made before, files exported before, and what a Collector still holds in its queue"

    @classmethod
    def of(cls, receipt: records.Receipt, pending: int = 0) -> Receipt:
        """A store's receipt."""
        return cls(**dataclasses.asdict(receipt), pending=pending)


class Me(BaseModel):
    """Who asks: the name of the token, its tenant, and what it may do; all, where the service has no tokens."""

    name: str
    tenant: str
    scopes: list[Scope]


class Refusal(BaseModel):
    """What was not kept, or not understood, of what was sent."""

    at: str
    place: str
    reason: str


class Size(BaseModel):
    """How much the store holds, of all tenants; ``live`` is bytes in use, ``disk`` bytes taken."""

    items: int
    traces: int
    sessions: int
    pending: int
    live: int
    disk: int
    tables: dict[str, int]
