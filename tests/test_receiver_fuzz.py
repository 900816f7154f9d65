"""Whatever is sent to the doors: an answer of the specification, never a fault of ours, and no memory that stays."""

from __future__ import annotations

import gzip
import json
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]  # it ships no types
import httpx
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import otlp_lines
from otlp_doors import JSON, PROTOBUF, SERVICES, Doors, body, doors, log_request, request, span
from spanreel_collector.otlp.protobuf_form import read_message

pytestmark = pytest.mark.slow

SPANS = request(
    span(1, attributes={"gen_ai.operation.name": "chat"}, parent_span_id=b"12345678"), span(2, trace_id=b"x" * 16)
)
LOGS = log_request("a", "b", trace=b"x" * 16)
LOG_LINES = Path(__file__).with_name("golden").joinpath("claude_code_logs.otlp.jsonl").read_bytes().splitlines()
DOCUMENTS = [
    otlp_lines.request(otlp_lines.chat(1, [otlp_lines.said("user", "hi")], otlp_lines.said("assistant", "ho"))),
    *(json.loads(line) for line in LOG_LINES[:3]),
]
FINE = {200, 400, 413, 415}


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    with doors(tmp_path_factory.mktemp("fuzz")) as made:
        yield made


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=60) as made:
        yield made


@pytest.fixture(scope="module")
def channel(door: Doors) -> Iterator[Any]:
    with grpc.insecure_channel(f"127.0.0.1:{door.port}") as made:
        yield made


@st.composite
def mutated(draw: st.DrawFn, seeds: tuple[bytes, ...] = (SPANS, LOGS)) -> bytes:
    """A request with some bytes changed, taken out, put in, or said twice."""
    data = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(1, 6))):
        place = draw(st.integers(0, len(data)))
        match draw(st.sampled_from(("change", "cut", "insert", "repeat", "end"))):
            case "change" if place < len(data):
                data[place] = draw(st.integers(0, 255))
            case "cut":
                del data[place : place + draw(st.integers(1, 20))]
            case "insert":
                data[place:place] = draw(st.binary(max_size=20))
            case "repeat":
                data[place:place] = data[place : place + draw(st.integers(1, 40))] * draw(st.integers(1, 4))
            case "end":
                del data[place:]
            case _:
                pass
    return bytes(data)


WHATEVER = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def mutated_json(draw: st.DrawFn) -> bytes:
    """A request in OTLP/JSON with some value in it replaced by any other, or a member more."""
    document = json.loads(json.dumps(draw(st.sampled_from(DOCUMENTS))))
    for _ in range(draw(st.integers(1, 3))):
        at: Any = document
        while isinstance(at, (dict, list)) and at:
            key = draw(st.sampled_from(list(at) if isinstance(at, dict) else list(range(len(at)))))
            if draw(st.booleans()) or not isinstance(at[key], (dict, list)):
                at[key] = draw(WHATEVER)
                break
            at = at[key]
    return json.dumps(document).encode()


ENCODED: dict[str, Callable[[bytes], bytes]] = {
    "": lambda data: data,
    "gzip": lambda data: gzip.compress(data, 1),
    "zstd": zstandard.compress,
    "deflate": zlib.compress,
}


def check_kept(door: Doors) -> None:
    """What was kept can be read: each segment is what its items say."""
    for segment in door.segments():
        batch = read_message(body(segment), "kept", segment.signal)
        assert len(batch.spans) + len(batch.logs) + len(batch.faults) >= len(segment.items) > 0


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(
    data=st.binary(max_size=200) | mutated() | mutated_json(),
    kind=st.sampled_from((PROTOBUF, JSON, "application/x-protobuf; x=y", "text/plain", "")),
    encoding=st.sampled_from(("", "gzip", "zstd", "deflate", "br", "identity", "gzip, gzip")),
    packed=st.booleans(),
    signal=st.sampled_from(("traces", "logs", "metrics")),
)
def test_any_bytes_over_http_get_an_answer(
    data: bytes, kind: str, encoding: str, packed: bool, signal: str, door: Doors, client: httpx.Client
) -> None:
    content = ENCODED[encoding](data) if packed and encoding in ENCODED else data
    headers = {"content-type": kind, "content-encoding": encoding}
    response = client.post(f"{door.url}/v1/{signal}", content=content, headers=headers)
    assert response.status_code in FINE, (response.status_code, response.content[:200])


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(data=mutated(), signal=st.sampled_from(("traces", "logs")))
def test_changed_requests_over_grpc_get_an_answer(data: bytes, signal: str, door: Doors, channel: Any) -> None:
    try:
        channel.unary_unary(f"/{SERVICES[signal]}/Export")(data, timeout=60)
    except grpc.RpcError as error:
        if error.code() is not grpc.StatusCode.INVALID_ARGUMENT:
            raise


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(document=mutated_json(), signal=st.sampled_from(("traces", "logs")))
def test_changed_documents_get_an_answer(document: bytes, signal: str, door: Doors, client: httpx.Client) -> None:
    response = client.post(f"{door.url}/v1/{signal}", content=document, headers={"content-type": JSON})
    assert response.status_code in FINE, response.content[:200]


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(
    packed=st.sampled_from(("gzip", "zstd", "deflate")).flatmap(
        lambda name: st.tuples(st.just(name), mutated((ENCODED[name](SPANS * 3),)))
    )
)
def test_changed_packings_get_an_answer(packed: tuple[str, bytes], door: Doors, client: httpx.Client) -> None:
    headers = {"content-type": PROTOBUF, "content-encoding": packed[0]}
    response = client.post(f"{door.url}/v1/traces", content=packed[1], headers=headers)
    assert response.status_code in FINE, response.content[:200]


def test_what_was_kept_of_all_that_can_be_read_and_nothing_is_held(door: Doors) -> None:
    check_kept(door)
    until = time.monotonic() + 60
    while door.receiver.committer.waiting:  # refusals, which nobody waited for
        assert time.monotonic() < until
        time.sleep(0.01)
    assert not [name for name in door.receiver.counts.read() if name[2] in ("500", "INTERNAL", "503")]
    assert door.post(SPANS).status_code == 200
