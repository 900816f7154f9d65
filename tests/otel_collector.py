"""The real OpenTelemetry Collector, as `make collector` builds it, with the configurations of this repository."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from conftest import ROOT

FOLDER = ROOT / "collector"
BINARY = Path(os.environ.get("SPANREEL_COLLECTOR", ROOT / ".collector" / "otelcol-spanreel"))
TOKEN = "the-token-of-the-tests"


def binary() -> Path:
    """The Collector; skips the test where it was not built, which no run in CI permits."""
    if not BINARY.exists():
        pytest.skip("the OpenTelemetry Collector is not built: make collector, or $SPANREEL_COLLECTOR")
    return BINARY


_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 8
_FIRST_PORT, _PORTS = 20_000 + 1_500 * _WORKER, 1_500
_ports = itertools.cycle(_FIRST_PORT + (os.getpid() + number) % _PORTS for number in range(_PORTS))


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listens on now, no two alike.

    They are below those that the system gives to whoever asks for any, and each worker has a range of its own, so that
    nobody takes one before it is used.
    """
    found: list[int] = []
    while len(found) < count:
        port = next(_ports)
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", port))
            found.append(port)
    return found


def free_port() -> int:
    """A port of loopback that nobody listens on now."""
    return free_ports(1)[0]


def wait_until(holds: Callable[[], Any], seconds: float = 180, what: str = "") -> Any:
    """What a condition says once it says something; fails the test where it takes too long."""
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end, what or "it did not come to hold in time"
        time.sleep(0.05)
    return found


def validate(*arguments: str | Path, **environment: str) -> None:
    """Have the Collector check configurations; fails the test with what it says against them."""
    variables = {"SPANREEL_INGEST_TOKEN": TOKEN, **environment}
    done = subprocess.run(
        [binary(), "validate", *arguments], env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@dataclass
class Collector:
    """A Collector that can be stopped, killed and started again at the same addresses."""

    arguments: list[str]
    variables: dict[str, str]
    log: Path
    http: int
    grpc: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        """Where it takes OTLP over HTTP."""
        return f"http://127.0.0.1:{self.http}"

    @property
    def grpc_endpoint(self) -> str:
        """Where it takes OTLP over gRPC."""
        return f"http://127.0.0.1:{self.grpc}"

    def start(self) -> None:
        """Start it, and wait until it receives."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [binary(), *self.arguments], env=self.variables, stdout=log, stderr=log, cwd=self.log.parent
            )
        wait_until(self._receives, what=f"the Collector does not start: {self.log}")

    def stop(self) -> None:
        """End it as an operator does, and wait until it is gone."""
        assert self.process is not None
        self.process.terminate()
        self.process.wait(60)

    def kill(self) -> None:
        """End it as the machine does when memory runs out."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(60)

    def _receives(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log.read_text()
        try:
            return httpx.post(f"{self.endpoint}/v1/traces", json={}, timeout=60, trust_env=False).status_code == 200
        except httpx.TransportError:
            return False


@contextlib.contextmanager
def collector(
    folder: Path, *configurations: str | Path, settings: Mapping[str, str] | None = None
) -> Iterator[Collector]:
    """A Collector with these configurations, one laid over the other; ``settings`` are variables of theirs.

    Arguments that begin with ``--`` are passed as they stand.
    """
    http, grpc, health = free_ports(3)
    variables = {
        "SPANREEL_INGEST_TOKEN": TOKEN,
        "COLLECTOR_QUEUE": str(folder / "queue"),
        "COLLECTOR_HTTP_PORT": str(http),
        "COLLECTOR_GRPC_PORT": str(grpc),
        "COLLECTOR_HEALTH_PORT": str(health),
        **(settings or {}),
    }
    # Its own metrics would all be served at one port.
    arguments = ["--set=service.telemetry.metrics.level=none"]
    for one in configurations:
        arguments += [str(one)] if str(one).startswith("--") else ["--config", str(FOLDER / one)]
    running = Collector(arguments, variables, folder / "collector.log", http, grpc)
    running.start()
    try:
        yield running
    finally:
        running.kill()
