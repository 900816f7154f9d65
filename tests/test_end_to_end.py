"""An agent, the real Collector, the service on each store, its API, a replay: whole, and with its parts killed."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from conftest import ROOT
from otel_collector import TOKEN, Collector, collector, wait_until
from otlp_lines import GENAI, request
from postgres import Cluster, running_cluster
from served import Service, served, sessions, spans_of, whole_sessions
from spanreel import testing
from spanreel.model import Request
from test_collector import APPEND, RETRY_SOON, THEIRS, chat

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("collector")]

STORES = ("sqlite", "postgresql")


@dataclass
class Place:
    """Where a store is, and how it is made to fail for a while."""

    url: str
    breaks: Callable[[], contextlib.AbstractContextManager[Any]]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as running:
        yield running


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "sqlite":
        file = tmp_path / "spanreel.db"
        return Place(f"sqlite:///{file}", lambda: locked(file))
    running: Cluster = request.getfixturevalue("cluster")
    return Place(running.new_database(), lambda: stopped(running))


@contextlib.contextmanager
def locked(file: Path) -> Iterator[None]:
    """The database of a service, which something else writes to and does not let go of."""
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


@contextlib.contextmanager
def stopped(cluster: Cluster) -> Iterator[None]:
    cluster.stop()
    try:
        yield
    finally:
        cluster.start()


# -- the circle --------------------------------------------------------------------------------------------------------


def care(request: Request) -> testing.Scripted:
    """What the model says: look the order up, pay it back, say so."""
    answered = sum(message["role"] == "tool" for message in request.messages)
    if answered == 0:
        return testing.tool_call("find_order", {"order_id": 17})
    if answered == 1:
        return testing.tool_call("refund", {"order_id": 17, "amount": 12.5})
    return testing.text("Order 17 was late. I have paid 12.5 back to you.")


def run(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command of ours in a folder, whatever it exits with."""
    variables = {**os.environ, "OPENAI_AGENTS_DISABLE_TRACING": "1", "LEDGER": "ledger.txt", **environment}
    command = [sys.executable, "-m", "spanreel", *words]
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False, timeout=600)


def record(folder: Path, endpoint: str, protocol: str) -> None:
    """Run the refund agent of the examples as it is, its spans sent to an endpoint."""
    shutil.copy(ROOT / "examples" / "refund_agent.py", folder)
    with testing.ScriptedProvider(care) as provider:
        done = run(
            folder,
            *("run", "--", sys.executable, "refund_agent.py"),
            OPENAI_BASE_URL=provider.base_url,
            OPENAI_API_KEY="a-key-of-the-tests",
            OTEL_EXPORTER_OTLP_ENDPOINT=endpoint,
            OTEL_EXPORTER_OTLP_PROTOCOL=protocol,
        )
    assert done.returncode == 0, done.stderr
    assert "paid 12.5 back" in done.stdout


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_what_an_agent_did_comes_through_the_collector_and_replays_to_pass(
    place: Place, protocol: str, tmp_path: Path
) -> None:
    with served(tmp_path, place.url) as service, forwarding(tmp_path, service) as between:
        record(tmp_path, between.grpc_endpoint if protocol == "grpc" else between.endpoint, protocol)
        (listed,) = whole_sessions(service, 1)
        assert (listed["agents"], listed["status"], listed["eligible"]) == (["care"], "ok", True)
        assert (listed["model_calls"], listed["tool_calls"]) == (3, 2)
        (tmp_path / "session.json").write_bytes(service.ask("GET", f"/sessions/{listed['id']}/export").content)
        replay = ("replay", "session.json", "--report", "report.json", "--", sys.executable, "refund_agent.py")
        same = run(tmp_path, *replay)
        assert same.returncode == 0, same.stderr
        assert "PASS: 5 calls answered from the recording" in same.stdout + same.stderr
        assert len((tmp_path / "ledger.txt").read_text().splitlines()) == 1  # paid once, when it was recorded
        kept = service.ask("POST", f"/sessions/{listed['id']}/reports", content=(tmp_path / "report.json").read_bytes())
        assert kept.json()["verdict"] == "PASS"
        assert [one["verdict"] for one in service.get(f"/sessions/{listed['id']}/reports")] == ["PASS"]


def test_a_sample_of_whole_sessions_comes_from_beside_another_collector(tmp_path: Path) -> None:
    (tmp_path / "theirs.yaml").write_text(THEIRS)
    with served(tmp_path, f"sqlite:///{tmp_path / 'spanreel.db'}") as service:
        settings = {"SPANREEL_URL": service.endpoint, "SPANREEL_DECISION_WAIT": "1s"}
        setup: tuple[str | Path, ...] = (tmp_path / "theirs.yaml", APPEND, "otelcol-beside.yaml")
        with collector(tmp_path, *setup, settings=settings) as between:
            record(tmp_path, between.endpoint, "http/protobuf")
            (listed,) = whole_sessions(service, 1)
        assert (listed["agents"], listed["status"], listed["eligible"]) == (["care"], "ok", True)


def test_a_delivery_that_comes_again_with_something_new_adds_only_that(place: Place, tmp_path: Path) -> None:
    also = {"gen_ai.conversation.id": "c-1"}
    headers = {"authorization": f"Bearer {TOKEN}"}
    with served(tmp_path, place.url) as service:
        for numbers in ((1, 2), (2, 3), (1, 2, 3)):
            body = request(*(chat(number, "Hi", also=also) for number in numbers), scope=GENAI)
            url = f"{service.endpoint}/v1/traces"
            assert httpx.post(url, json=body, headers=headers, timeout=60, trust_env=False).status_code == 200
        (listed,) = sessions(service, 1)
        assert listed["model_calls"] == 3
        assert [int(span, 16) for _, span in spans_of(service, listed["id"])] == [1, 2, 3]
        exported = service.ask("GET", f"/sessions/{listed['id']}/export", params={"format": "otlp"}).text
        assert exported.count('"spanId"') == 3


# -- parts killed ------------------------------------------------------------------------------------------------------


@dataclass
class Sender:
    """Sends spans one after the other, each again until it is acknowledged, as an exporter does; until told to stop."""

    to: str
    acknowledged: set[tuple[str, str]] = field(default_factory=set)
    refused: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)

    def send_all(self) -> None:
        headers = {"authorization": f"Bearer {TOKEN}"}
        with httpx.Client(timeout=60, trust_env=False, headers=headers) as client:
            for number in itertools.count(1):
                if self._stop.is_set():
                    return
                # Five spans a trace, two traces a conversation; and each a message that says something.
                trace = f"{number // 5 + 1:032x}"
                also = {"gen_ai.conversation.id": f"c-{number // 10}"}
                one = chat(number, f"This is number {number}. " * 40, trace=trace, also=also)
                self._send(client, request(one, scope=GENAI))
                self.acknowledged.add((one["traceId"], one["spanId"]))

    def _send(self, client: httpx.Client, body: dict[str, Any]) -> None:
        while True:
            try:
                status = client.post(self.to, json=body).status_code
            except httpx.TransportError:
                status = 0
            if status == 200:
                return
            assert status in (0, 429, 502, 503, 504), f"a span was refused for good: {status}"
            self.refused += 1
            time.sleep(0.05)

    def was_refused_since(self, before: int) -> bool:
        """Whether it was more often refused than this."""
        return self.refused > before

    @contextlib.contextmanager
    def sending(self) -> Iterator[None]:
        thread = threading.Thread(target=self.send_all)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()


def forwarding(folder: Path, service: Service, *more: str) -> contextlib.AbstractContextManager[Collector]:
    """Our Collector in front of a service."""
    return collector(folder, "otelcol.yaml", *RETRY_SOON, *more, settings={"SPANREEL_URL": service.endpoint})


def everything(service: Service, wanted: set[tuple[str, str]]) -> list[tuple[str, str]]:
    """All that is kept once as many spans are kept as are wanted, each as often as it is kept."""
    end = time.monotonic() + 300  # which of them are missing then, is seen by who compares
    while service.get("/size")["items"] < len(wanted) and time.monotonic() < end:
        time.sleep(0.1)
    sessions(service, 1)
    cursor, found = None, []
    while True:
        page = service.get("/sessions", limit=500, **({"cursor": cursor} if cursor else {}))
        for one in page["sessions"]:
            found += spans_of(service, one["id"])
        if (cursor := page["cursor"]) is None:
            return sorted(found)


def test_every_acknowledged_span_is_there_once_whatever_is_killed_meanwhile(place: Place, tmp_path: Path) -> None:
    with served(tmp_path, place.url) as service, forwarding(tmp_path, service) as between:
        sender = Sender(f"{between.endpoint}/v1/traces")
        with sender.sending():
            for happens in (between.stop, between.kill, service.kill, service.stop):
                time.sleep(1)
                before = sender.refused
                happens()
                time.sleep(0.5)
                if happens in (between.stop, between.kill):  # which who sends sees; of nothing behind it
                    wait_until(partial(sender.was_refused_since, before))
                    between.start()
                else:
                    service.start()
            time.sleep(1)
            with place.breaks():
                time.sleep(4)
            wait_until(lambda: len(sender.acknowledged) > 100)
        assert everything(service, sender.acknowledged) == sorted(sender.acknowledged)


def test_every_acknowledged_span_is_there_once_without_a_collector_between(place: Place, tmp_path: Path) -> None:
    with served(tmp_path, place.url) as service:
        sender = Sender(f"{service.endpoint}/v1/traces")
        with sender.sending():
            time.sleep(1)
            service.kill()
            service.start()
            time.sleep(1)
            with place.breaks():
                time.sleep(4)
            there = len(sender.acknowledged)
            wait_until(lambda: len(sender.acknowledged) > max(100, there + 10))
        assert everything(service, sender.acknowledged) == sorted(sender.acknowledged)


def test_a_replica_may_die_and_the_other_has_everything(cluster: Cluster, tmp_path: Path) -> None:
    url = cluster.new_database()
    with served(tmp_path, url, name="one") as one, served(tmp_path, url, name="two") as two:
        overlay = tmp_path / "replicas.yaml"
        resolver = {"dns": None, "static": {"hostnames": [f"127.0.0.1:{one.grpc}", f"127.0.0.1:{two.grpc}"]}}
        overlay.write_text(yaml.safe_dump({"exporters": {"load_balancing": {"resolver": resolver}}}))
        soon = "--set=exporters.load_balancing.retry_on_failure.max_interval=1s"
        with collector(tmp_path, "otelcol.yaml", "otelcol-replicas.yaml", overlay, soon) as between:
            sender = Sender(f"{between.endpoint}/v1/traces")
            with sender.sending():
                time.sleep(2)
                one.kill()
                time.sleep(2)
                one.start()
                time.sleep(2)
            assert everything(two, sender.acknowledged) == sorted(sender.acknowledged)
            two.kill()
            assert everything(one, sender.acknowledged) == sorted(sender.acknowledged)
