"""What the tests of derivation share: OTLP files taken in as the service does, sessions made of them, and read."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from spanreel_collector.conversion.remembering import Remembered
from spanreel_collector.receiver.intake import Intake, Request, take
from spanreel_collector.service.derivation import Derivation
from spanreel_collector.service.retelling import Job, Told, retell
from spanreel_collector.stores.opening import open_store
from spanreel_collector.stores.records import Filter, KeptSignal
from spanreel_collector.stores.store import Store

TENANT = "default"


def open_at(folder: Path) -> Store:
    return open_store(f"sqlite:///{folder / 'store.db'}")


def deriving(store: Store, published: list[tuple[str, str, int]] | None = None) -> Derivation:
    """Makes sessions as the service does, with what is remembered of those made before; nothing is too dear for it."""
    told = [] if published is None else published
    remembered = Remembered()

    def make(job: Job) -> Told:
        return retell(job, remembered)

    return Derivation(store, make, lambda *event: told.append(event), quiet_seconds=0, dear_seconds=math.inf)


def requests_of(paths: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """The export requests of files of JSON lines, one for each resource."""
    for path in paths:
        for line in path.read_text().splitlines():
            document = json.loads(line) if line.strip() else {}
            for name in ("resourceSpans", "resourceLogs"):
                for resource in document.get(name, ()):
                    yield {name: [resource]}


def send(store: Store, request: dict[str, Any], tenant: str = TENANT) -> None:
    signal: KeptSignal = "logs" if "resourceLogs" in request else "traces"
    taken = take(Intake(), Request(tenant, "test", signal, "json", json.dumps(request).encode()))
    store.append(taken.segments, taken.refusals)


def settle(derivation: Derivation) -> None:
    """Make sessions until nothing is pending."""
    deadline = time.monotonic() + 180
    while derivation.step() or derivation.store.size().pending:
        assert time.monotonic() < deadline, "traces stay pending"


def documents(store: Store, tenant: str = TENANT) -> dict[str, dict[str, Any]]:
    """All sessions of a tenant, without what differs by how they came."""
    found = {}
    cursor: str | None = None
    while True:
        page = store.find(tenant, Filter(), cursor=cursor)
        for summary in page.sessions:
            read = store.session(tenant, summary.id)
            assert read is not None
            found[summary.id] = comparable(json.loads(read[1]))
        cursor = page.cursor
        if cursor is None:
            return found


def comparable(document: dict[str, Any]) -> dict[str, Any]:
    """A document without its revision, and the names of the files that it came in."""
    source = {name: value for name, value in document["source"].items() if name != "files"}
    return {**document, "revision": 1, "source": source}
