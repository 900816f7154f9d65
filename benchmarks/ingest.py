"""What it costs to keep spans: `spanreel serve` on each store, beside Phoenix and MLflow, on the same load in one run.

Requests of 512 spans come from three clients at once, and each is sent again until it is taken. A span counts when it
stands in the store. CPU is that of the service and all its processes, the database's too; ours answers after the commit
has reached the disk. What sessions cost, which we alone make of the spans, and later, is said apart. Medians.

    ingest.py [--peers FOLDER_OF_THEIR_PYTHON] [--spans N] [--peer-spans N] [--rounds N] [--reads N]
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from measured.load import SPANS_PER_REQUEST, Conversation, Kind, packed, request, requests
from measured.stores_of_traces import Running, System, mlflow, phoenix, postgresql_processes, spanreel, spanreel_in

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

CLIENTS = 3
KINDS: tuple[Kind, ...] = ("big", "small")
CPU_MICROSECONDS: dict[Kind, float] = {"big": 60.0, "small": 25.0}
BIG_BYTES = 2500.0
LIST_MILLISECONDS, READ_MILLISECONDS = 5.0, 10.0
PEERS = ("Phoenix", "MLflow")
PACKINGS = {False: "plain", True: "gzip"}
LATE = 1.5
"""A late span may cost so many times what another costs; it is what noise makes of once."""
MILLION = 1_000_000


@dataclass(frozen=True)
class Cost:
    """Of one load: spans stored a second, CPU µs a span, peak memory, bytes on disk a span, p99 of an answer in ms."""

    rate: float
    cpu: float
    memory: float
    disk: float
    p99: float


def send(url: str, headers: dict[str, str], bodies: Sequence[bytes]) -> list[float]:
    """Send all bodies from several clients, each until it is taken; how long the answers took, in seconds."""
    place, waiting, took = urlsplit(url), iter(bodies), []
    lock = threading.Lock()

    def work() -> None:
        connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=300)
        while True:
            with lock:
                body = next(waiting, None)
            if body is None:
                connection.close()
                return
            while True:
                began = time.perf_counter()
                connection.request("POST", place.path, body, headers)
                answer = connection.getresponse()
                answer.read()
                if answer.status == 200:
                    break
                assert answer.status in (429, 503), answer.status
                time.sleep(0.1)
            took.append(time.perf_counter() - began)

    clients = [threading.Thread(target=work) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    return took


def measure(running: Running, bodies: Sequence[bytes], spans: int, *, gzipped: bool) -> Cost:
    """Send, and wait until everything is stored; what starting takes is not of it."""
    settle(running)
    headers = {**running.headers, "content-type": "application/x-protobuf"}
    headers |= {"content-encoding": "gzip"} if gzipped else {}
    before, busy, empty, began = running.stored(), running.cpu(), running.disk(), time.perf_counter()
    took = send(running.url, headers, bodies)
    while running.stored() < before + spans:
        time.sleep(0.02)
    wall, cpu = time.perf_counter() - began, running.cpu() - busy
    p99 = sorted(took)[min(len(took) - 1, int(len(took) * 0.99))]
    disk = (running.disk() - empty) / spans
    return Cost(spans / wall, cpu / spans * 1e6, running.memory() / 1e6, disk, p99 * 1e3)


def settle(running: Running) -> None:
    """Return when it has nothing to do: it is ready before the process is that makes sessions."""
    before = -1.0
    while running.cpu() > before:
        before = running.cpu()
        time.sleep(0.5)


def sessions_cost(running: Running, spans: int) -> float:
    """Wait until sessions are made of everything; CPU µs a span since the service started."""
    wait_for_sessions(running)
    return running.cpu() / spans * 1e6


def wait_for_sessions(running: Running) -> None:
    """Return when nothing waits to become a session. Not asked often: of a million spans it takes a while to say."""
    url = running.url.replace("/v1/traces", "/api/v1/size")
    with httpx.Client(timeout=120, trust_env=False) as client:
        while client.get(url).json()["pending"]:
            time.sleep(0.5)


def compare(systems: Sequence[System], options: argparse.Namespace) -> dict[tuple[str, Kind, bool], Cost]:
    """Every system with every load, in turn; medians."""
    found: dict[tuple[str, Kind, bool], Cost] = {}
    for kind in KINDS:
        plain = list(requests(kind, options.spans))
        print(f"\n{kind} spans: {sum(map(len, plain)) / options.spans:,.0f} B each, {options.spans:,} of ours")
        print("                       stored/s   CPU us   MB peak   B/span disk   p99 ms")
        for gzipped in (False, True):
            bodies = [packed(body) for body in plain] if gzipped else plain
            for system in systems:
                if system.peer and gzipped and not options.peer_gzip:
                    continue
                spans = min(options.peer_spans, options.spans) if system.peer else options.spans
                mine = bodies[: spans // SPANS_PER_REQUEST]
                rounds = []
                for _ in range(options.peer_rounds if system.peer else options.rounds):
                    with scratch() as folder, system.start(folder) as running:
                        rounds.append(measure(running, mine, spans, gzipped=gzipped))
                cost = median(rounds)
                found[system.name, kind, gzipped] = cost
                print(
                    f"{system.name:14} {PACKINGS[gzipped]:5} {cost.rate:10,.0f} {cost.cpu:8,.1f}"
                    f" {cost.memory:9,.0f} {cost.disk:13,.0f} {cost.p99:8,.1f}",
                    flush=True,
                )
        with scratch() as folder:
            with spanreel_in(folder) as running:
                measure(running, plain, options.spans, gzipped=False)
            with spanreel_in(folder, quiet="0") as running:
                print(
                    f"sessions made of them, in us of CPU a span: {sessions_cost(running, options.spans):,.0f}",
                    flush=True,
                )
    return found


def median(rounds: Sequence[Cost]) -> Cost:
    """Of each number by itself."""
    columns = zip(*((one.rate, one.cpu, one.memory, one.disk, one.p99) for one in rounds), strict=True)
    return Cost(*(statistics.median(column) for column in columns))


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder for a store."""
    with tempfile.TemporaryDirectory(prefix="spanreel-ingest-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


# -- reads, and late spans -------------------------------------------------------------------------------------------


def at_a_million(count: int) -> dict[str, float]:
    """Fill a store with small spans and make its sessions; read; then a thousand new spans, and late ones."""
    with scratch() as folder:
        with spanreel_in(folder) as running:
            headers = {"content-type": "application/x-protobuf"}
            for batch in batches(requests("small", count), 64):
                send(running.url, headers, batch)
            assert running.stored() == count
        with spanreel_in(folder, quiet="0.5") as running:
            wait_for_sessions(running)
            address = running.url.removesuffix("/v1/traces")
            with httpx.Client(base_url=address, timeout=60, trust_env=False) as client:
                page = client.get("/api/v1/sessions?limit=100").json()["sessions"]
                said = {
                    "list of 100, ms": timed(lambda: client.get("/api/v1/sessions?limit=100"), 200),
                    "list of one agent, ms": timed(lambda: client.get("/api/v1/sessions?limit=100&agent=support"), 200),
                    "session read, ms": timed(iter_of(client, page), 200),
                }
            thousand = 42 * 24
            said["a thousand new spans, s of CPU"] = till_sessions(running, late(2_000_000, 0, 24), thousand)
            said["the first half of a thousand, s of CPU"] = till_sessions(
                running, late(3_000_000, 0, 12), thousand // 2
            )
            said["the late half of them, s of CPU"] = till_sessions(running, late(3_000_000, 12, 12), thousand // 2)
            said["a thousand late spans, s of CPU"] = till_sessions(running, late(2_000_000, 24, 24), thousand)
    return said


def late(first: int, start: int, count: int) -> list[bytes]:
    """One request: of 42 conversations, so many of their spans from one on."""
    chance = random.Random(first)
    talks = [Conversation(first + number, "small", chance) for number in range(42)]
    return [request([span for talk in talks for span in talk.spans(start, count)])]


def till_sessions(running: Running, bodies: Sequence[bytes], spans: int) -> float:
    """CPU seconds until sessions are made of what is sent."""
    before, busy = running.stored(), running.cpu()
    send(running.url, {"content-type": "application/x-protobuf"}, bodies)
    assert running.stored() == before + spans
    wait_for_sessions(running)
    time.sleep(0.2)
    return running.cpu() - busy


def iter_of(client: httpx.Client, page: Sequence[dict[str, str]]) -> Callable[[], object]:
    """Reads one session of a page after the other."""
    paths = iter([f"/api/v1/sessions/{page[number % len(page)]['id']}" for number in range(1000)])
    return lambda: client.get(next(paths))


def timed(read: Callable[[], object], times: int) -> float:
    """The median of so many, in milliseconds."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        read()
        took.append((time.perf_counter() - began) * 1e3)
    return statistics.median(took)


def batches(bodies: Iterator[bytes], size: int) -> Iterator[list[bytes]]:
    """So many at a time."""
    some: list[bytes] = []
    for body in bodies:
        some.append(body)
        if len(some) == size:
            yield some
            some = []
    if some:
        yield some


# -- all of it ---------------------------------------------------------------------------------------------------------


def systems_of(peers: Path | None, stack: contextlib.ExitStack) -> list[System]:
    """Ours on each store that is here, and the peers that are."""
    found = [System("spanreel", spanreel_in)]
    with contextlib.suppress(ImportError):
        import pytest

        from postgres import running_cluster

        with contextlib.suppress(pytest.skip.Exception):
            cluster = stack.enter_context(running_cluster(durable=True))

            def start(folder: Path) -> contextlib.AbstractContextManager[Running]:
                url, before = cluster.new_database(), 0

                def disk() -> int:
                    import psycopg

                    with psycopg.connect(url) as connection:
                        row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
                    return int(row[0]) - before if row else 0

                return spanreel(url, folder / "log", disk, lambda: postgresql_processes(cluster.folder))

            found.append(System("  PostgreSQL", start))
    if peers is not None:
        found += [System(name, start(peers), peer=True) for name, start in zip(PEERS, (phoenix, mlflow), strict=True)]
    return found


def main() -> int:
    """Measure and print; 1 where an aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, help="the folder of the Python that has Phoenix and MLflow")
    parser.add_argument("--spans", type=int, default=40_960)
    parser.add_argument("--peer-spans", type=int, default=2_048)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer-rounds", type=int, default=1, help="of the peers, which take minutes")
    parser.add_argument(
        "--peer-gzip", action="store_true", help="of the peers gzip too; it adds little to what they take"
    )
    parser.add_argument("--reads", type=int, default=MILLION, help="of so many spans, sessions are read; 0 for none")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        costs = compare(systems_of(options.peers, stack), options)
    for name in PEERS if options.peers else ():
        for kind in KINDS:
            ours, theirs = (costs[who, kind, False] for who in ("spanreel", name))
            cpu, slower = theirs.cpu / ours.cpu, ours.rate / theirs.rate
            print(f"{name}, {kind}: {cpu:,.0f} times our CPU, {slower:,.0f} times slower")
    said = at_a_million(options.reads) if options.reads else {}
    for what, number in said.items():
        print(f"{what:52} {number:8.2f}")
    return 0 if judge(costs, said) else 1


def judge(costs: dict[tuple[str, Kind, bool], Cost], said: dict[str, float]) -> bool:
    """Say what is as it is to be, and what is not."""
    checks = {
        f"{name.strip()}: a {kind} span costs at most {CPU_MICROSECONDS[kind]:.0f} us of CPU, {PACKINGS[gzipped]}": (
            cost.cpu <= CPU_MICROSECONDS[kind]
        )
        for (name, kind, gzipped), cost in costs.items()
        if name.strip() not in PEERS
    }
    checks[f"a big span takes at most {BIG_BYTES:,.0f} B"] = costs["spanreel", "big", False].disk <= BIG_BYTES
    if said:
        checks |= {
            "a list takes at most 5 ms": said["list of 100, ms"] <= LIST_MILLISECONDS,
            "a session is read in at most 10 ms": said["session read, ms"] <= READ_MILLISECONDS,
            "late spans cost what spans cost": said["a thousand late spans, s of CPU"]
            <= LATE * said["a thousand new spans, s of CPU"],
        }
    for check, good in checks.items():
        print(f"{'yes' if good else 'NO '}  {check}")
    return all(checks.values())


if __name__ == "__main__":
    sys.exit(main())
