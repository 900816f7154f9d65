"""Our configurations of the OpenTelemetry Collector: the real one accepts them and does with them what they say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from otel_collector import FOLDER, TOKEN, Collector, collector, free_port, validate, wait_until
from otlp_lines import GENAI, called, request, said, span
from receivers import FOUR_MIB, Received, grpc_receiver, http_receiver
from spanreel_collector.conversion.convert import convert_files

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("collector")]

APPEND = "--feature-gates=confmap.enableMergeAppendOption"
SETUPS: dict[str, tuple[str, ...]] = {
    "forwarding": ("otelcol.yaml",),
    "replicas": ("otelcol.yaml", "otelcol-replicas.yaml"),
    "beside": ("otelcol-beside.yaml",),
    "file": ("otelcol-file.yaml",),
}
RETRY_SOON = ("--set=exporters.otlp_http.retry_on_failure.max_interval=1s",)


def configuration(name: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((FOLDER / name).read_text())
    return document


def send(to: Collector, *spans: dict[str, Any], **rest: Any) -> httpx.Response:
    return httpx.post(f"{to.endpoint}/v1/traces", json=request(*spans, **rest), timeout=60, trust_env=False)


def chat(number: int, content: str, **rest: Any) -> dict[str, Any]:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps([said("user", content)]),
        **rest.pop("also", {}),
    }
    return span(number, "chat", attributes, **rest)


def attributes_of(one: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in one.attributes}


def arrived(received: Received) -> list[int]:
    """The numbers of the spans that came, in order, each as often as it came."""
    return sorted(int.from_bytes(one.span_id, "big") for one in received.spans)


# -- what they are -----------------------------------------------------------------------------------------------------


def test_every_configuration_of_the_folder_is_tried_here() -> None:
    assert {name for setup in SETUPS.values() for name in setup} == {path.name for path in FOLDER.glob("otelcol*.yaml")}


def test_the_manifest_builds_what_the_configurations_name_and_nothing_else() -> None:
    manifest = configuration("builder.yaml")
    named = {
        (kind, component.partition("/")[0].replace("_", ""))
        for path in FOLDER.glob("otelcol*.yaml")
        for kind in ("receivers", "processors", "exporters", "extensions")
        for component in configuration(path.name).get(kind, {})
    }
    built = {
        (kind, re.sub(r"(?:receiver|processor|exporter|extension)$", "", entry["gomod"].split()[0].rpartition("/")[2]))
        for kind in ("receivers", "processors", "exporters", "extensions")
        for entry in manifest[kind]
    }
    assert built == named


def test_all_components_are_of_the_release_that_the_manifest_says() -> None:
    manifest = configuration("builder.yaml")
    kinds = ("receivers", "processors", "exporters", "extensions")
    releases = {entry["gomod"].split()[1] for kind in kinds for entry in manifest[kind]}
    assert releases == {f"v{manifest['dist']['version']}"}


def test_what_is_masked_is_said_once() -> None:
    ours = configuration("otelcol.yaml")["processors"]["redaction"]
    assert configuration("otelcol-beside.yaml")["processors"]["redaction/spanreel"] == ours


def test_no_configuration_of_a_queue_loses_what_was_acknowledged() -> None:
    forwarding = configuration("otelcol.yaml")
    exporters = {
        "forwarding": forwarding["exporters"]["otlp_http"],
        "replicas": configuration("otelcol-replicas.yaml")["exporters"]["load_balancing"],
        "beside": configuration("otelcol-beside.yaml")["exporters"]["otlp_http/spanreel"],
    }
    for exporter in exporters.values():
        assert exporter["retry_on_failure"]["max_elapsed_time"] == "0s"
        assert exporter["sending_queue"]["storage"].startswith("file_storage")
        assert exporter["sending_queue"]["batch"]["max_size"] < FOUR_MIB
    assert all("batch" not in pipeline["processors"] for pipeline in forwarding["service"]["pipelines"].values())


@pytest.mark.parametrize("setup", SETUPS)
def test_the_collector_accepts(setup: str, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.yaml"
    theirs.write_text(THEIRS)
    first = ["--config", str(theirs), APPEND] if setup == "beside" else []
    validate(*first, *(word for name in SETUPS[setup] for word in ("--config", str(FOLDER / name))))


# -- forwarding --------------------------------------------------------------------------------------------------------


def test_what_comes_is_forwarded_with_the_token_in_batches_below_every_cap(tmp_path: Path) -> None:
    with http_receiver() as service, collector(tmp_path, *SETUPS["forwarding"], settings=at(service)) as running:
        for number in range(40):
            assert send(running, *(chat(number * 10 + one, "w" * 40_000) for one in range(1, 11))).status_code == 200
        wait_until(lambda: len(service.spans) >= 400)
    assert arrived(service) == list(range(1, 401))
    assert service.credentials == {f"Bearer {TOKEN}"}
    assert (service.refused, max(service.sizes) < FOUR_MIB) == (0, True)


def test_credentials_are_masked_and_messages_stay_json(tmp_path: Path) -> None:
    key, bearer = "sk-" + "ant-" + "Ab3_" * 8, "Bearer " + "x1Y2" * 6
    pem = "-----BEGIN " + "PRIVATE KEY-----\nMIIE" + "a" * 60 + "\n-----END " + "PRIVATE KEY-----"
    spoken = f'Use {key}, "{bearer}" or\n{pem}\nand pay with 4111111111111111.'
    messages = [said("user", spoken), {"role": "assistant", "parts": [called("pay", {"card": 4111111111111111})]}]
    also = {
        "gen_ai.input.messages": json.dumps(messages),
        "http.request.header.authorization": bearer,
        "gen_ai.usage.input_tokens": 7,
    }
    with http_receiver() as service, collector(tmp_path, *SETUPS["forwarding"], settings=at(service)) as running:
        assert send(running, chat(1, "", also=also)).status_code == 200
        wait_until(lambda: service.spans)
    for secret in (key, bearer.split()[1], "MIIE"):
        assert secret.encode() not in service.data
    seen = attributes_of(service.spans[0])
    assert json.loads(seen["gen_ai.input.messages"]) == [
        said("user", 'Use ****, "****" or\n****\nand pay with 4111111111111111.'),
        messages[1],
    ]
    assert (seen["http.request.header.authorization"], seen["gen_ai.usage.input_tokens"]) == ("****", 7)


def test_what_was_acknowledged_survives_a_killed_collector_and_an_absent_service(tmp_path: Path) -> None:
    port = free_port()
    settings = {"SPANREEL_URL": f"http://127.0.0.1:{port}"}
    with collector(tmp_path, *SETUPS["forwarding"], *RETRY_SOON, settings=settings) as running:
        for number in range(1, 51):
            assert send(running, chat(number, "early")).status_code == 200
        running.kill()
        running.start()
        for number in range(51, 101):
            assert send(running, chat(number, "late")).status_code == 200
        running.stop()
        with http_receiver(port=port) as service:
            running.start()
            wait_until(lambda: set(arrived(service)) == set(range(1, 101)))


def test_a_full_queue_refuses_so_that_the_sender_tries_again(tmp_path: Path) -> None:
    settings = {"SPANREEL_URL": f"http://127.0.0.1:{free_port()}"}
    small = (
        "--set=exporters.otlp_http.sending_queue.queue_size=200000",
        "--set=exporters.otlp_http.sending_queue.batch.min_size=1000",
        "--set=exporters.otlp_http.sending_queue.batch.max_size=50000",
    )
    with collector(tmp_path, *SETUPS["forwarding"], *small, settings=settings) as running:
        answers = [send(running, chat(number, "w" * 40_000)).status_code for number in range(1, 20)]
    assert answers[0] == 200
    assert set(answers) == {200, 503}


# -- replicas ----------------------------------------------------------------------------------------------------------


def test_a_trace_goes_to_one_replica_and_all_are_used(tmp_path: Path) -> None:
    with grpc_receiver() as first, grpc_receiver() as second:
        places = [one.endpoint.removeprefix("http://") for one in (first, second)]
        with collector(tmp_path, *SETUPS["replicas"], *these(tmp_path, places)) as running:
            for number in range(1, 201):
                assert send(running, chat(number, "hi", trace=f"{number % 20 + 1:032x}")).status_code == 200
            wait_until(lambda: len(first.spans) + len(second.spans) >= 200)
    assert sorted(arrived(first) + arrived(second)) == list(range(1, 201))
    traces = [{one.trace_id for one in replica.spans} for replica in (first, second)]
    assert [bool(one) for one in traces] == [True, True]
    assert not traces[0] & traces[1]
    assert first.credentials | second.credentials == {f"Bearer {TOKEN}"}


def test_what_a_replica_does_not_take_goes_to_it_or_another_later(tmp_path: Path) -> None:
    with grpc_receiver() as first:
        absent = free_port()
        places = [first.endpoint.removeprefix("http://"), f"127.0.0.1:{absent}"]
        overlay = these(tmp_path, places)
        with collector(tmp_path, *SETUPS["replicas"], *overlay) as running:
            for number in range(1, 41):
                assert send(running, chat(number, "hi", trace=f"{number:032x}")).status_code == 200
            wait_until(lambda: first.spans)
            assert len(set(arrived(first))) < 40
            running.stop()
            these(tmp_path, places[:1])  # the other is gone for good: what was meant for it goes to the first
            running.start()
            wait_until(lambda: set(arrived(first)) == set(range(1, 41)))


def these(folder: Path, places: list[str]) -> tuple[str, ...]:
    """Replicas at these addresses: a name cannot resolve to two ports of one machine."""
    overlay = folder / "replicas.yaml"
    resolver = {"dns": None, "static": {"hostnames": places}}
    overlay.write_text(yaml.safe_dump({"exporters": {"load_balancing": {"resolver": resolver}}}))
    return (str(overlay), "--set=exporters.load_balancing.retry_on_failure.max_interval=1s")


# -- beside another ----------------------------------------------------------------------------------------------------

THEIRS = """
extensions:
  health_check:
    endpoint: 127.0.0.1:${env:COLLECTOR_HEALTH_PORT:-13133}
receivers:
  otlp:
    protocols:
      http:
        endpoint: 127.0.0.1:${env:COLLECTOR_HTTP_PORT:-4318}
exporters:
  file:
    path: ${env:COLLECTOR_FILE:-theirs.jsonl}
    flush_interval: 100ms
service:
  extensions: [health_check]
  pipelines:
    traces:
      receivers: [otlp]
      exporters: [file]
"""


def test_beside_another_whole_conversations_are_kept_and_theirs_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "theirs.yaml").write_text(THEIRS)
    with http_receiver() as service:
        settings = {**at(service), "SPANREEL_KEEP": "^[0-7]", "SPANREEL_DECISION_WAIT": "1s"}
        setup: tuple[str | Path, ...] = (tmp_path / "theirs.yaml", APPEND, *SETUPS["beside"])
        with collector(tmp_path, *setup, settings=settings) as running:
            for number in range(1, 81):  # forty conversations of two traces; the second span of each trace names none
                named = {"gen_ai.conversation.id": f"c-{number // 2}"}
                spans = [chat(number * 2, "hi", also=named), chat(number * 2 + 1, "ho", parent=number * 2)]
                assert send(running, *({**one, "traceId": f"{number:032x}"} for one in spans)).status_code == 200
            for number in (500, 501):  # no agent's, and an agent's that failed
                plain = span(number, "GET /", {} if number == 500 else {"gen_ai.operation.name": "chat"})
                assert send(running, {**plain, "traceId": f"{number:032x}", "status": {"code": 2}}).status_code == 200
            wait_until(lambda: 501 in arrived(service))
            wait_until(lambda: len((tmp_path / "theirs.jsonl").read_text().splitlines()) == 82)
            running.stop()
        wait_until(lambda: service.spans)
    kept = set(arrived(service)) - {501}
    conversations: dict[int, set[int]] = {}
    for number in range(2, 162):
        conversations.setdefault(number // 4, set()).add(number)
    whole = [numbers for numbers in conversations.values() if numbers <= kept]
    assert set().union(*whole) == kept
    assert 5 < len(whole) < 36
    assert 500 not in kept


# -- to a file ---------------------------------------------------------------------------------------------------------


def test_the_file_is_read_by_convert(tmp_path: Path) -> None:
    written = tmp_path / "traces.jsonl"
    with collector(tmp_path, *SETUPS["file"], settings={"COLLECTOR_FILE": str(written)}) as running:
        assert send(running, chat(1, "Hi"), scope=GENAI).status_code == 200
        # A Collector listens to signals a moment later than to requests: told to end in between, it flushes nothing.
        wait_until(lambda: written.exists() and written.read_text().endswith("\n"))
        running.stop()
    (session,) = convert_files([str(written)]).sessions
    assert session.runs[0].status == "ok"


def at(service: Received) -> dict[str, str]:
    return {"SPANREEL_URL": service.endpoint}
