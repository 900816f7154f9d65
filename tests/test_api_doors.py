"""The doors of the API: each route refuses who may not, before anything is read, and answers carry their headers."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from conftest import ROOT
from deriving import deriving, open_at, requests_of, send, settle
from spanreel_collector.access import Access, Scope, Token
from spanreel_collector.api import Serving, create_app, reports
from spanreel_collector.api.doors import HEADERS, behind_doors
from spanreel_collector.api.events import Events
from spanreel_collector.rates import Rates
from spanreel_collector.stores.records import Derived, Filter, Made, Summary
from spanreel_collector.stores.store import Store

SCOPES = {"reader": {Scope.READ}, "eraser": {Scope.ERASE}, "sender": {Scope.INGEST}, "operator": {Scope.OPERATE}}
TEXTS = {name: name[0] * 20 for name in SCOPES}
ACCESS = Access(
    tuple(
        Token(name, hashlib.sha256(text.encode()).digest(), "default", frozenset(SCOPES[name]))
        for name, text in TEXTS.items()
    )
)
OPEN = ("/healthz", "/readyz")
WHOLE = ("/metrics", "/api/v1/size")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    one = open_at(tmp_path)
    yield one
    one.close()


def client(store: Store, access: Access = ACCESS) -> httpx.AsyncClient:
    serving = Serving(store, Events(), lambda: None, lambda: "")
    app = behind_doors(create_app(serving), access, lambda status, seconds: None)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://localhost")


def routes() -> list[tuple[str, str]]:
    """Each method and path that the application describes, and its description."""
    paths = create_app(None).openapi()["paths"]
    found = [(method.upper(), re.sub(r"{[^}]*}", "x", path)) for path, said in paths.items() for method in said]
    assert len(found) > 18
    return [*found, ("GET", "/api/openapi.json")]


def test_a_summary_is_described_with_all_that_it_says() -> None:
    described = create_app(None).openapi()["components"]["schemas"]["SessionSummary"]["properties"]
    assert list(described) == [field.name for field in fields(Summary)]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path"), routes())
async def test_each_route_refuses_who_has_no_token_or_one_for_something_else(
    method: str, path: str, store: Store
) -> None:
    async with client(store) as asking:

        async def status(token: str | None) -> int:
            headers = {"authorization": f"Bearer {token}"} if token is not None else {}
            answer = await asking.request(method, path, headers=headers)
            assert all(answer.headers[name] == value for name, value in HEADERS.items())
            if answer.is_error:
                assert answer.headers["content-type"] == "application/problem+json"
                assert answer.json()["detail"]
            return answer.status_code

        if path in OPEN:
            assert await status(None) == 200
            return
        assert await status(None) == 401
        assert await status("x" * 20) == 401
        # What counts all tenants together is not for those who may read what is their own.
        may = "operator" if path in WHOLE else "eraser" if method == "DELETE" else "reader"
        assert [await status(TEXTS[name]) for name in TEXTS if name != may] == [403, 403, 403]
        if path != "/api/v1/events":  # which does not end
            assert await status(TEXTS[may]) not in (401, 403)


@pytest.mark.parametrize("path", ["/api", "/api/", "/api/v2/sessions", "/api/v1/none", "/metrics", "//api/v1/sessions"])
async def test_what_is_not_known_says_nothing_without_a_token(path: str, store: Store) -> None:
    async with client(store) as asking:
        answer = await asking.get(path)
        assert answer.status_code in (401, 404)
        assert (await asking.post(path)).status_code == 401


async def test_without_tokens_no_page_of_another_site_is_answered(store: Store) -> None:
    async with client(store, Access()) as asking:
        assert (await asking.get("/api/v1/sessions")).status_code == 200
        for headers in (
            {"host": "evil.example"},
            {"origin": "https://evil.example"},
            {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"},
        ):
            answer = await asking.get("/api/v1/sessions", headers=headers)
            assert answer.status_code == 403


async def test_a_body_is_not_read_before_it_is_known_who_sends_it(store: Store) -> None:
    read = []

    async def body() -> Any:
        read.append(True)
        yield b"{}"

    async with client(store) as asking:
        answer = await asking.post("/api/v1/sessions/x/reports", content=body())
    assert answer.status_code == 401
    assert read == []


async def test_the_page_is_open_and_asks_for_the_token_itself(store: Store) -> None:
    async with client(store) as asking:
        for path in ("/", "/main.js", "/base.css"):
            answer = await asking.get(path)
            assert answer.status_code == 200
            assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        for path in ("/../application.py", "/%2e%2e/application.py", "/..%2fdoors.py", "/none.js"):
            assert (await asking.get(path)).status_code == 404


async def test_errors_say_what_is_wrong_where_and_what_to_do(store: Store) -> None:
    async with client(store, Access()) as asking:
        for path, status, place in (
            ("/api/v1/sessions?limit=0", 422, "query.limit"),
            ("/api/v1/sessions?colour=red", 422, "query.colour"),
            ("/api/v1/sessions?since=soon", 400, "query.since"),
            ("/api/v1/sessions?cursor=%00x", 400, "query.cursor"),
            ("/api/v1/sessions?order=name", 422, "query.order"),
            ("/api/v1/sessions/none", 404, None),
            ("/api/v1/sessions/none/compare?with=other", 404, None),
            ("/api/v1/sessions/none/compare", 422, "query.with"),
        ):
            answer = await asking.get(path)
            said = answer.json()
            assert (answer.status_code, said["status"], said.get("place")) == (status, status, place), said
            assert said["advice"]
            assert said["instance"] == path.partition("?")[0]


async def test_reports_are_taken_of_the_session_that_they_are_of(store: Store) -> None:
    for request in requests_of([ROOT / "tests" / "golden" / "spanreel.otlp.jsonl"]):
        send(store, request)
    settle(deriving(store))
    (session,) = store.find("default", Filter()).sessions
    report = {"schema": "spanreel.replay/1", "session": session.id, "verdict": "FAIL", "reasons": ["<b>"], "more": 1}
    path = f"/api/v1/sessions/{session.id}/reports"
    async with client(store, Access()) as asking:
        posted = await asking.post(path, json=report)
        assert posted.status_code == 201, posted.text
        assert (await asking.post(path, json=report)).json()["id"] == posted.json()["id"]
        (kept,) = (await asking.get(path)).json()
        assert (kept["verdict"], kept["report"]) == ("FAIL", report)
        assert (await asking.post(path, json={**report, "session": "other"})).status_code == 422
        assert (await asking.post(path, json={"schema": "x"})).status_code == 422
        assert (await asking.post(path, content=b"{")).status_code == 400
        assert (
            await asking.post("/api/v1/sessions/none/reports", json={**report, "session": "none"})
        ).status_code == 404


async def test_lists_tell_whatever_summaries_hold_and_of_any_release(store: Store, tmp_path: Path) -> None:
    plain = Summary("plain", 1, 5, "trace", "k", "recorded", "ok", started=1_500_000_000, ended=-(2**70))
    odd = replace(plain, id="odd", key="a\0b\ud800c", agents=("\ud800",), cost=float("inf"), started=2**70)
    for one in (plain, odd, replace(plain, id="older"), replace(plain, id="newer")):
        trace = one.id.encode().ljust(16)
        store.save(Derived("default", {trace: 0}, {}, (Made(one, b"{}", "", frozenset({trace})),), frozenset(), "1"))
    with closing(sqlite3.connect(tmp_path / "store.db")) as file, file:
        for name in ("older", "newer"):
            ((kept,),) = file.execute("SELECT summary FROM session WHERE id = ?", (name,)).fetchall()
            said = {**json.loads(kept), "future": 1}
            if name == "older":
                del said["users"], said["future"]
            file.execute("UPDATE session SET summary = ? WHERE id = ?", (json.dumps(said).encode(), name))
    async with client(store) as reader:
        asked = {"Authorization": f"Bearer {TEXTS['reader']}"}
        listed = (await reader.get("/api/v1/sessions", headers=asked)).json()["sessions"]
        assert {one["id"] for one in listed} == {"plain", "odd", "older", "newer"}
        for one in listed:
            alone = (await reader.get(f"/api/v1/sessions/{one['id']}/summary", headers=asked)).json()
            assert one == alone
            assert (one["ended"], one["users"]) == ("0001-01-01T00:00:00Z", [])
        starts = {one["id"]: one["started"] for one in listed}
        assert (starts["plain"], starts["odd"]) == ("1970-01-01T00:00:01.5Z", "9999-12-31T23:59:59Z")


async def test_whoever_listens_and_goes_leaves_nothing_behind() -> None:
    events = Events()
    events.open()
    before = asyncio.all_tasks()
    listening = events.listen("default")
    assert await anext(listening) == b": listening\n\n"
    waiting = asyncio.ensure_future(anext(listening))
    events.publish("default", "s-1", 1)
    assert await waiting == b'event: session\ndata: {"id": "s-1", "revision": 1}\n\n'
    waiting = asyncio.ensure_future(anext(listening))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    async with asyncio.timeout(60):
        while asyncio.all_tasks() != before:
            await asyncio.sleep(0.01)


async def test_who_asks_is_told_what_they_may(store: Store) -> None:
    async with client(store) as asking:
        answer = await asking.get("/api/v1/me", headers={"authorization": f"Bearer {TEXTS['reader']}"})
        assert answer.json() == {"name": "reader", "tenant": "default", "scopes": ["read"]}
    async with client(store, Access()) as asking:
        answer = await asking.get("/api/v1/me")
        assert answer.json()["scopes"] == ["erase", "ingest", "operate", "read"]


async def test_who_asks_too_often_is_told_when_to_come_again(store: Store) -> None:
    async with client(store, replace(ACCESS, rates=Rates(0.4, lambda: 100.0))) as asking:
        headers = {"authorization": f"Bearer {TEXTS['reader']}"}
        answers = [await asking.get("/api/v1/facets", headers=headers) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert (answers[2].headers["retry-after"], answers[2].json()["status"]) == ("3", 429)
        other = await asking.get("/metrics", headers={"authorization": f"Bearer {TEXTS['operator']}"})
        assert other.status_code == 200
        for _ in range(5):
            assert (await asking.get("/healthz")).status_code == 200


async def test_a_report_that_does_not_arrive_in_time_is_not_awaited(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "SECONDS", 0.2)

    async def slowly() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(5)

    async with client(store) as asking:
        headers = {"authorization": f"Bearer {TEXTS['reader']}"}
        answer = await asking.post("/api/v1/sessions/x/reports", headers=headers, content=slowly())
        assert answer.status_code == 408
