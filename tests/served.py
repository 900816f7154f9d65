"""`spanreel serve` as a process that can be stopped, killed and started again at the same addresses."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from otel_collector import TOKEN, free_ports, wait_until

READ_TOKEN = "the-reader-token-of-the-tests"


@dataclass
class Service:
    """One replica of the service."""

    store: str
    log: Path
    http: int
    grpc: int
    flags: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        """Where it takes OTLP over HTTP, and serves the API and the page."""
        return f"http://127.0.0.1:{self.http}"

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        # What it exports of itself is no part of these tests.
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "SPANREEL_"))}
        variables = {**inherited, "SPANREEL_INGEST_TOKEN": TOKEN, "SPANREEL_TOKEN": READ_TOKEN, **self.environment}
        doors = ["--http", f"127.0.0.1:{self.http}", "--grpc", f"127.0.0.1:{self.grpc}"]
        command = [sys.executable, "-m", "spanreel", "serve", "--store", self.store, *doors, *self.flags]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, env=variables, stdout=log, stderr=log)
        wait_until(self._is_ready, what=f"the service does not start: {self.log}")

    def stop(self) -> None:
        """End it as an operator does, and wait until it is gone."""
        assert self.process is not None
        self.process.terminate()
        assert self.process.wait(60) == 0, self.log.read_text()

    def kill(self) -> None:
        """End it as the machine does when memory runs out."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(60)

    def get(self, path: str, **query: Any) -> Any:
        """What the API says."""
        return self.ask("GET", path, params=query).json()

    def ask(self, method: str, path: str, **rest: Any) -> httpx.Response:
        """An answer of the API that is no failure."""
        headers = {"authorization": f"Bearer {READ_TOKEN}"}
        url = f"{self.endpoint}/api/v1{path}"
        answer = httpx.request(method, url, headers=headers, timeout=60, trust_env=False, **rest)
        assert answer.is_success, answer.text
        return answer

    def _is_ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log.read_text()
        try:
            return httpx.get(f"{self.endpoint}/readyz", timeout=60, trust_env=False).status_code == 200
        except httpx.TransportError:
            return False


@contextlib.contextmanager
def served(
    folder: Path, store: str, *flags: str, name: str = "service", environment: Mapping[str, str] | None = None
) -> Iterator[Service]:
    """A service on a store, which asks for tokens: TOKEN to send, READ_TOKEN for the rest."""
    http, grpc = free_ports(2)
    service = Service(store, folder / f"{name}.log", http, grpc, flags, environment or {})
    service.start()
    try:
        yield service
    finally:
        service.kill()


def sessions(service: Service, count: int) -> list[dict[str, Any]]:
    """The sessions, once there are so many of them and nothing waits to become one."""

    def found() -> Any:
        listed = service.get("/sessions", limit=500)["sessions"]
        return listed if len(listed) >= count and service.get("/size")["pending"] == 0 else None

    listed: list[dict[str, Any]] = wait_until(found, 180, f"no {count} sessions were made: {service.log}")
    return listed


def whole_sessions(service: Service, count: int) -> list[dict[str, Any]]:
    """`sessions`, once each has ended: behind a Collector, a sender's last spans may come after the sender's end."""

    def found() -> Any:
        listed = sessions(service, count)
        return None if any(one["status"] == "unfinished" for one in listed) else listed

    listed: list[dict[str, Any]] = wait_until(found, what=f"not all sessions end: {service.log}")
    return listed


def spans_of(service: Service, session: str) -> list[tuple[str, str]]:
    """Trace and span id of everything that is kept of a session, each as often as it is kept."""
    document = service.get(f"/sessions/{session}/spans")
    return [
        (span["traceId"], span["spanId"])
        for resource in document["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
