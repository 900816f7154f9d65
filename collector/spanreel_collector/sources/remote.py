"""Traces that other backends hold, fetched page by page: Jaeger (``jaeger:URL``) and Phoenix (``phoenix:URL``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from spanreel_collector.sources.fetching import Client, FetchError, token_headers
from spanreel_collector.sources.files import UnreadRequest

JAEGER_TOKEN, PHOENIX_TOKEN = "JAEGER_TOKEN", "PHOENIX_API_KEY"
_USER = re.compile("//[^/@]*@")
_WEEK = timedelta(days=7)
_TRACES = 200
"""Traces of Jaeger's that are asked for at a time; its API has no pages."""
_SHORTEST = 1_000
"""Microseconds of the shortest stretch of time that is asked for by itself."""
_SPANS = 500
"""Spans of Phoenix's that are asked for at a time: larger pages hold its other users up."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to fetch: of which services (Jaeger) or projects (Phoenix), started when. None: all; the last week."""

    of: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))

    def stretch(self) -> tuple[datetime, datetime]:
        """From when until when."""
        until = self.until or self.now()
        return self.since or until - _WEEK, until


def fetch_pieces(source: str, wanted: Wanted, passed: Callable[[int], None] | None = None) -> Iterator[UnreadRequest]:
    """What a backend holds, in pieces still to be read; what cannot be had is a piece with the problem."""
    backend, _, address = source.partition(":")
    pages = _jaeger_pages if backend == "jaeger" else _phoenix_pages
    headers = token_headers(JAEGER_TOKEN if backend == "jaeger" else PHOENIX_TOKEN)
    name = f"{backend}:{_USER.sub('//', address)}"
    number = 0
    try:
        with Client(address, headers) as client:
            for number, page in enumerate(pages(client, wanted), 1):
                if passed is not None:
                    passed(len(page))
                yield UnreadRequest(f"{name}:{number}", page)
    except FetchError as error:
        yield UnreadRequest(f"{name}:{number + 1}", b"", problem=str(error))


# -- Jaeger ----------------------------------------------------------------------------------------------------------


def _jaeger_pages(client: Client, wanted: Wanted) -> Iterator[bytes]:
    since, until = (int(when.timestamp() * 1_000_000) for when in wanted.stretch())
    for service in wanted.of or _listed(client.get("/api/services", {})[0]):
        yield from _jaeger_stretch(client, service, since, until)


def _jaeger_stretch(client: Client, service: str, since: int, until: int) -> Iterator[bytes]:
    """The traces of a stretch of time; where there may be more than it tells, those of its halves."""
    asked = {"service": service, "start": since, "end": until, "limit": _TRACES, "raw": "true"}
    found, body = client.get("/api/traces", asked)
    traces = found.get("data") if isinstance(found, dict) else None
    if not isinstance(traces, list):
        raise FetchError(f"Jaeger's answer for service {service!r} holds no traces: {body[:200]!r}")
    if len(traces) < _TRACES:
        if traces:
            yield body
        return
    if until - since <= _SHORTEST:
        raise FetchError(f"service {service!r} began {_TRACES} traces and more within a millisecond, at {since} us")
    middle = (since + until) // 2
    yield from _jaeger_stretch(client, service, since, middle)
    yield from _jaeger_stretch(client, service, middle + 1, until)


def _listed(found: Any) -> list[str]:
    services = found.get("data") if isinstance(found, dict) else None
    # Jaeger traces its own queries.
    return sorted(one for one in services or [] if isinstance(one, str) and not one.startswith("jaeger"))


# -- Phoenix ---------------------------------------------------------------------------------------------------------


def _phoenix_pages(client: Client, wanted: Wanted) -> Iterator[bytes]:
    since, until = (when.isoformat() for when in wanted.stretch())
    for project in wanted.of or list(_projects(client)):
        path = f"/v1/projects/{quote(project, safe='')}/spans/otlpv1"
        asked = {"limit": _SPANS, "start_time": since, "end_time": until}
        yield from (body for _, body in _paged(client, path, asked))


def _projects(client: Client) -> Iterator[str]:
    for found, _ in _paged(client, "/v1/projects", {"limit": 100}):
        yield from (one["name"] for one in found["data"] if isinstance(one, dict) and isinstance(one.get("name"), str))


def _paged(client: Client, path: str, asked: dict[str, Any]) -> Iterator[tuple[dict[str, Any], bytes]]:
    """All pages, each after the cursor that the one before it gave."""
    cursor: str | None = None
    seen = set[str]()
    while True:
        found, body = client.get(path, {**asked, **({"cursor": cursor} if cursor else {})})
        if not isinstance(found, dict) or not isinstance(found.get("data"), list):
            raise FetchError(f"Phoenix's answer to {path} holds no data: {body[:200]!r}")
        yield found, body
        cursor = found.get("next_cursor")
        if not isinstance(cursor, str) or not cursor:
            return
        if cursor in seen:
            raise FetchError(f"Phoenix gives the page {cursor!r} of {path} again and again")
        seen.add(cursor)
