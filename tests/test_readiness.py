"""`/readyz`: what it says of a store, to anybody who asks."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from deriving import open_at
from otel_collector import TOKEN, wait_until
from otlp_lines import GENAI, request, span
from served import Service, served
from spanreel_collector.api.readiness import Readiness
from spanreel_collector.stores.store import StoreError

pytestmark = pytest.mark.xdist_group("serve")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with served(tmp_path, f"sqlite:///{tmp_path / 'spanreel.db'}") as one:
        yield one


def ask(service: Service, path: str = "/readyz") -> httpx.Response:
    return httpx.get(f"{service.endpoint}{path}", timeout=60, trust_env=False)


def not_ready(service: Service) -> dict[str, Any]:
    """What it says once it does."""

    def told() -> Any:
        answer = ask(service)
        return answer.json() if answer.status_code == 503 else None

    said: dict[str, Any] = wait_until(told)
    return said


def statuses(service: Service) -> tuple[int, int]:
    body = request(span(1, "chat gpt-5", {}), scope=GENAI)
    headers = {"authorization": f"Bearer {TOKEN}"}
    sent = httpx.post(f"{service.endpoint}/v1/traces", json=body, headers=headers, timeout=60, trust_env=False)
    return sent.status_code, ask(service, "/healthz").status_code


@pytest.mark.slow
def test_a_service_whose_file_is_taken_away_lives_and_says_that_it_is_not_ready(
    service: Service, tmp_path: Path
) -> None:
    assert statuses(service) == (200, 200)
    (tmp_path / "spanreel.db").rename(tmp_path / "elsewhere.db")
    said = not_ready(service)
    assert "its file was removed, or replaced" in said["detail"]
    assert str(tmp_path) not in str(said)
    assert statuses(service) == (503, 200)
    (tmp_path / "elsewhere.db").rename(tmp_path / "spanreel.db")
    assert statuses(service) == (200, 200)
    wait_until(lambda: ask(service).status_code == 200)
    log = service.log.read_text()
    assert f"not ready: the store '{tmp_path}/spanreel.db': its file was removed" in log
    assert "ready again" in log


@pytest.mark.slow
def test_a_service_whose_tables_are_gone_lives_and_says_that_it_is_not_ready(service: Service, tmp_path: Path) -> None:
    file = sqlite3.connect(tmp_path / "spanreel.db")
    file.execute("DROP TABLE segment")
    file.close()
    said = not_ready(service)
    assert said["detail"].endswith("no such table: segment")
    assert statuses(service) == (503, 200)


class Store:
    """How a probe goes is the test's to say; how often there was one, to be seen."""

    def __init__(self) -> None:
        self.probes = 0
        self.error: Exception | None = None
        self.open = threading.Event()

    def ready(self) -> None:
        self.probes += 1
        self.open.wait(60)
        if self.error is not None:
            raise self.error


async def test_many_who_ask_share_one_probe() -> None:
    store = Store()
    readiness = Readiness(store.ready, patience=60)
    asking = [asyncio.ensure_future(readiness.trouble()) for _ in range(50)]
    await asyncio.sleep(0)
    store.open.set()
    assert await asyncio.gather(*asking) == [None] * 50
    assert store.probes == 1


async def test_who_asks_does_not_wait_for_a_store_that_is_silent() -> None:
    store = Store()
    readiness = Readiness(store.ready, patience=0)
    for _ in range(50):
        assert await readiness.trouble() == "the store has not answered yet"
    async with asyncio.timeout(60):
        while not store.probes:  # which a thread makes
            await asyncio.sleep(0.01)
        assert store.probes == 1
        store.open.set()
        while await readiness.trouble() is not None:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (StoreError("the store of ann at 10.0.0.7: it is full", "it is full"), "it is full"),
        (StoreError("the store of ann at 10.0.0.7: it is full"), "it failed"),
        (ValueError("ann"), "ValueError"),
    ],
)
async def test_why_is_told_without_names_and_whatever_it_is(error: Exception, told: str) -> None:
    store = Store()
    store.open.set()
    store.error = error
    assert await Readiness(store.ready, patience=60).trouble() == f"the store cannot be used now: {told}"


async def test_a_closed_store_is_not_ready(tmp_path: Path) -> None:
    store = open_at(tmp_path)
    readiness = Readiness(store.ready, patience=60)
    store.close()
    said = await readiness.trouble()
    assert said is not None
    assert str(tmp_path) not in said
