"""The services that are measured: ours on each store, and the peers; each a process on loopback with an empty store."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx

_PATIENCE = 180.0
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Running:
    """A service that runs. ``stored`` counts the spans of its store; ``disk`` are the bytes that it takes."""

    url: str
    headers: Mapping[str, str]
    process: subprocess.Popen[bytes]
    stored: Callable[[], int]
    disk: Callable[[], int]
    others: Callable[[], list[int]] = list
    """Processes that work for it and are no children of it."""

    def cpu(self) -> float:
        """Seconds of CPU that it has taken, and all that it started."""
        return sum(_cpu(pid) for pid in _tree(self.process.pid) + self.others())

    def memory(self) -> int:
        """The most bytes that it, and all that it started, had resident."""
        return sum(_peak(pid) for pid in _tree(self.process.pid))


@dataclass(frozen=True)
class System:
    """A service that can be started in a folder."""

    name: str
    start: Callable[[Path], contextlib.AbstractContextManager[Running]]
    peer: bool = field(default=False)


# -- ours --------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def spanreel(
    store: str, log: Path, disk: Callable[[], int], others: Callable[[], list[int]] = list, *, quiet: str = "1d"
) -> Iterator[Running]:
    """Ours on a store; sessions are made of traces that are quiet for so long."""
    port = free_port()
    command = [sys.executable, "-m", "spanreel", "serve", "--store", store, "--http", f"127.0.0.1:{port}"]
    command += ["--grpc", "off", "--quiet-seconds", quiet, "--log-level", "warning"]
    address = f"http://127.0.0.1:{port}"

    def stored() -> int:
        return int(httpx.get(f"{address}/api/v1/size", timeout=60, trust_env=False).json()["items"])

    with _started(command, {}, log, f"{address}/readyz") as process:
        yield Running(f"{address}/v1/traces", {}, process, stored, disk, others)


def spanreel_in(folder: Path, *, quiet: str = "1d") -> contextlib.AbstractContextManager[Running]:
    """Ours on SQLite in a folder."""
    file = folder / "spanreel.db"
    return spanreel(f"sqlite:///{file}", folder / "log", lambda: _size_of(folder, "spanreel.db*"), quiet=quiet)


# -- peers -------------------------------------------------------------------------------------------------------------


def phoenix(binaries: Path) -> Callable[[Path], contextlib.AbstractContextManager[Running]]:
    """arize-phoenix on its SQLite."""

    @contextlib.contextmanager
    def start(folder: Path) -> Iterator[Running]:
        port, grpc = free_port(), free_port()
        variables = {
            "PHOENIX_WORKING_DIR": str(folder),
            "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_PORT": str(port),
            "PHOENIX_GRPC_PORT": str(grpc),
            "PHOENIX_TELEMETRY_ENABLED": "false",
        }
        command = [str(binaries / "python"), "-m", "phoenix.server.main", "serve"]
        address = f"http://127.0.0.1:{port}"
        with _started(command, variables, folder / "log", f"{address}/healthz") as process:
            yield Running(
                f"{address}/v1/traces",
                {},
                process,
                lambda: _count(folder / "phoenix.db"),
                lambda: _size_of(folder, "phoenix.db*"),
            )

    return start


def mlflow(binaries: Path) -> Callable[[Path], contextlib.AbstractContextManager[Running]]:
    """mlflow on SQLite, with one worker."""

    @contextlib.contextmanager
    def start(folder: Path) -> Iterator[Running]:
        port = free_port()
        variables = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}
        command = [str(binaries / "python"), "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)]
        command += ["--workers", "1", "--backend-store-uri", f"sqlite:///{folder / 'mlflow.db'}"]
        address = f"http://127.0.0.1:{port}"
        with _started(command, variables, folder / "log", f"{address}/health") as process:
            yield Running(
                f"{address}/v1/traces",
                {"x-mlflow-experiment-id": "0"},
                process,
                lambda: _count(folder / "mlflow.db"),
                lambda: _size_of(folder, "mlflow.db*"),
            )

    return start


# -- processes ---------------------------------------------------------------------------------------------------------


def free_port() -> int:
    """A port of loopback that nobody listens on now."""
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return int(asked.getsockname()[1])


def postgresql_processes(folder: Path) -> list[int]:
    """The processes of a server of PostgreSQL whose socket is in a folder."""
    pid = int((folder / "data" / "postmaster.pid").read_text().split()[0])
    return _tree(pid)


@contextlib.contextmanager
def _started(
    command: list[str], variables: Mapping[str, str], log: Path, ready: str
) -> Iterator[subprocess.Popen[bytes]]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "SPANREEL_"))}
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            env={**inherited, **variables},
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd=log.parent,
        )
    try:
        _wait(ready, process, log)
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(url, timeout=5, trust_env=False).is_success:
                return
        time.sleep(0.2)
    raise SystemExit(f"{url} does not answer:\n{log.read_text()[-2000:]}")


def _count(database: Path) -> int:
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=60)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM spans").fetchone()
    return int(count)


def _size_of(folder: Path, pattern: str) -> int:
    return sum(file.stat().st_blocks * 512 for file in folder.glob(pattern))


def _tree(pid: int) -> list[int]:
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{one}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text().split()]
    return list(dict.fromkeys(found))


def _cpu(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS  # its own, in user and system mode, and that of its dead children


def _peak(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0
