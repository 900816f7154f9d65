"""The API's description: what is answered is what it says, errors too; HEAD is GET without its body."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest

from conftest import ROOT
from deriving import deriving, open_at, requests_of, send, settle
from spanreel_collector.access import Access
from spanreel_collector.api import Serving, create_app
from spanreel_collector.api.doors import behind_doors
from spanreel_collector.api.events import Events
from spanreel_collector.stores.records import Filter
from spanreel_collector.stores.store import Store

DESCRIBED = create_app(None).openapi()
READ = [path for path, methods in DESCRIBED["paths"].items() if "get" in methods]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    one = open_at(tmp_path)
    for request in requests_of([ROOT / "tests" / "golden" / "spanreel.otlp.jsonl"]):
        send(one, request)
    settle(deriving(one))
    yield one
    one.close()


@pytest.fixture
async def asking(store: Store) -> AsyncIterator[httpx.AsyncClient]:
    events = Events()
    app = behind_doors(
        create_app(Serving(store, events, lambda: None, lambda: "spanreel_spans 1\n")), Access(), lambda *_: None
    )
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as one:
        yield one


def as_described(path: str, method: str, answer: httpx.Response) -> None:
    """What was answered is one of the answers that the description has for this."""
    answers = DESCRIBED["paths"][path][method]["responses"]
    said = answers.get(str(answer.status_code)) or answers["default"]
    kind = answer.headers["content-type"].partition(";")[0]
    assert kind in said["content"], (path, answer.status_code, kind)
    if kind.endswith("json"):
        schema = {**said["content"][kind]["schema"], "components": DESCRIBED["components"]}
        jsonschema.Draft202012Validator(schema).validate(answer.json())


def address(path: str, session: str) -> str:
    return re.sub(r"{\w+}", session, path) + ("?with=" + session if path.endswith("/compare") else "")


@pytest.mark.parametrize("path", [path for path in READ if path != "/api/v1/events"])
async def test_answers_are_as_they_are_described(path: str, asking: httpx.AsyncClient, store: Store) -> None:
    session = store.find("default", Filter()).sessions[0].id
    answer = await asking.get(address(path, session))
    assert answer.status_code == 200
    as_described(path, "get", answer)
    if "{session}" in path:
        answer = await asking.get(address(path, "none"))
        assert answer.status_code == 404
        as_described(path, "get", answer)


async def test_every_form_of_an_export_and_what_is_told_of_an_erasure_are_described(
    asking: httpx.AsyncClient, store: Store
) -> None:
    session = store.find("default", Filter()).sessions[0].id
    for form in ("json", "kitaru", "otlp"):
        answer = await asking.get(f"/api/v1/sessions/{session}/export", params={"format": form})
        as_described("/api/v1/sessions/{session}/export", "get", answer)
    path = "/api/v1/sessions/{session}/reports"
    report: dict[str, Any] = {"schema": "spanreel.replay/1", "session": session, "verdict": "PASS"}
    bodies: tuple[object, ...] = (report, {"session": session}, [])
    for body in bodies:
        as_described(path, "post", await asking.post(address(path, session), json=body))
    for path in ("/api/v1/sessions/{session}", "/api/v1/users/{user}"):
        as_described(path, "delete", await asking.delete(address(path, session)))


@pytest.mark.parametrize("path", READ)
async def test_head_is_get_without_its_body(path: str, asking: httpx.AsyncClient, store: Store) -> None:
    session = store.find("default", Filter()).sessions[0].id
    answer = await asking.head(address(path, session))
    assert (answer.status_code, answer.content) == (200, b"")
    if path != "/api/v1/events":  # which has no end
        assert answer.headers["content-type"] == (await asking.get(address(path, session))).headers["content-type"]
    if "{session}" in path:
        assert (await asking.head(address(path, "none"))).status_code == 404


async def test_another_method_is_told_which_there_are_and_what_is_nowhere_is_not_found(
    asking: httpx.AsyncClient,
) -> None:
    for method, path, allowed in (
        ("PUT", "/api/v1/sessions/s-1", "DELETE, GET, HEAD"),
        ("DELETE", "/api/v1/sessions/s-1/summary", "GET, HEAD"),
        ("PATCH", "/api/v1/sessions/s-1/reports", "GET, HEAD, POST"),
        ("GET", "/api/v1/users/somebody", "DELETE"),
        ("OPTIONS", "/api/v1/sessions", "GET, HEAD"),
    ):
        answer = await asking.request(method, path)
        assert (answer.status_code, answer.headers["allow"]) == (405, allowed), path
        assert allowed in answer.json()["advice"]
    for method in ("GET", "HEAD", "POST", "DELETE", "OPTIONS"):
        assert (await asking.request(method, "/api/v1/nothing")).status_code == 404
