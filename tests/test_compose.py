"""docker-compose.yml and the images: what they say is what the service, the Collector and the lock files accept."""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from conftest import ROOT
from otel_collector import binary, free_ports, wait_until
from otlp_lines import request as otlp_request
from otlp_lines import span
from postgres import Cluster
from spanreel_collector.access import TOKENS
from spanreel_collector.service.settings import add_flags, read_settings

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
SECRETS = {"SPANREEL_TOKEN": "t" * 32, "SPANREEL_INGEST_TOKEN": "i" * 32, "POSTGRES_PASSWORD": "p" * 32}


def filled(text: str) -> str:
    """A value as compose fills it in, from an .env that holds the secrets."""
    return re.sub(r"\$\{(\w+):\?[^}]*\}", lambda found: SECRETS[found.group(1)], text)


def environment(service: str) -> dict[str, str]:
    return {name: filled(str(value)) for name, value in SERVICES[service]["environment"].items()}


def image(service: str) -> str:
    build = SERVICES[service]["build"]
    return Path(ROOT / build["context"] / build["dockerfile"]).read_text()


def image_environment(service: str) -> dict[str, str]:
    """What an image sets by itself."""
    said = " ".join(re.findall(r"^ENV ((?:.*\\\n)*.*)", image(service), re.MULTILINE)).replace("\\\n", " ")
    return dict(re.findall(r"(\w+)=(\S+)", said))


def test_the_service_starts_with_what_it_is_given() -> None:
    parser = argparse.ArgumentParser()
    add_flags(parser)
    command, *flags = SERVICES["spanreel"]["command"]
    assert command == "serve"
    variables = {**image_environment("spanreel"), **environment("spanreel")}
    settings = read_settings(variables, vars(parser.parse_args(flags)))
    assert settings.store == f"postgresql://spanreel:{SECRETS['POSTGRES_PASSWORD']}@postgresql/spanreel"
    assert (settings.address("http"), settings.address("grpc")) == (("0.0.0.0", 4318), ("0.0.0.0", 4317))
    assert (settings.keep, settings.log_format) == (90 * 86_400, "json")
    # Reached from outside its container, it does not start without a token.
    assert set(TOKENS) & set(variables) == {"SPANREEL_TOKEN", "SPANREEL_INGEST_TOKEN"}
    # Told to stop, it is not killed before it is done: without that Docker waits for ten seconds.
    assert int(SERVICES["spanreel"]["stop_grace_period"].removesuffix("s")) > settings.stop_seconds


def test_every_variable_that_is_set_for_the_service_is_one_that_it_reads() -> None:
    parser = argparse.ArgumentParser()
    add_flags(parser)
    told = re.sub(r"\s", "", parser.format_help())
    for name in {**image_environment("spanreel"), **environment("spanreel")}:
        if name.startswith("SPANREEL_"):
            assert name in TOKENS or f"${name})" in told, name


def test_every_variable_that_is_set_for_the_collector_is_one_that_its_configuration_reads() -> None:
    configuration = (ROOT / "collector" / "otelcol.yaml").read_text()
    for name in environment("collector"):
        assert name == "GOMEMLIMIT" or f"${{env:{name}" in configuration, name


def test_the_collector_forwards_to_the_service_with_its_token() -> None:
    given = environment("collector")
    assert given["SPANREEL_INGEST_TOKEN"] == environment("spanreel")["SPANREEL_INGEST_TOKEN"]
    assert given["SPANREEL_URL"] == "http://spanreel:4318"


def test_the_database_is_the_one_that_the_service_is_sent_to() -> None:
    given = environment("postgresql")
    assert (given["POSTGRES_USER"], given["POSTGRES_DB"]) == ("spanreel", "spanreel")
    assert given["POSTGRES_PASSWORD"] == SECRETS["POSTGRES_PASSWORD"]
    assert SERVICES["spanreel"]["depends_on"]["postgresql"]["condition"] == "service_healthy"
    assert "pg_isready" in SERVICES["postgresql"]["healthcheck"]["test"]


def test_every_port_is_bound_to_loopback_and_no_two_are_the_same() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert len({port.split(":")[1] for port in ports}) == len(ports)


def test_every_volume_that_is_used_is_declared_and_none_is_left_over() -> None:
    used = {volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", ())}
    assert used == set(COMPOSE["volumes"])


@pytest.mark.parametrize("service", ["collector", "spanreel"])
def test_an_image_of_ours_has_no_root_and_says_whether_it_is_healthy(service: str) -> None:
    last = image(service).rpartition("\nFROM ")[2]
    (user,) = re.findall(r"^USER (\d+)$", last, re.MULTILINE)
    assert int(user) > 1000
    assert re.search(r"^HEALTHCHECK ", last, re.MULTILINE)
    assert SERVICES[service]["read_only"] is True
    assert SERVICES[service]["cap_drop"] == ["ALL"]


@pytest.mark.parametrize("service", ["collector", "spanreel"])
def test_what_an_image_copies_is_there_and_is_sent_to_the_builder(service: str) -> None:
    sent = [line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"]
    for words in re.findall(r"^COPY (?!--from)(.*)$", image(service), re.MULTILINE):
        for source in words.split()[:-1]:
            assert list(ROOT.glob(source)), source
            assert any(Path(source).parts[0] == name for name in sent), source


def test_the_image_of_the_service_holds_what_the_tests_run_with() -> None:
    def pins(name: str) -> set[str]:
        return set(re.findall(r"^[\w.\[\]-]+==[^\s;\\]+", (ROOT / "requirements" / name).read_text(), re.MULTILINE))

    assert pins("service.txt") <= pins("env-a.txt")
    assert "requirements/service.txt" in image("spanreel")
    assert "--require-hashes" in image("spanreel")


# -- the same commands, run ------------------------------------------------------------------------------------------


def image_list(service: str, instruction: str) -> list[str]:
    """What the last of an image's instructions of this kind says, which is a list: of HEALTHCHECK, its command."""
    last = image(service).rpartition("\nFROM ")[2].replace("\\\n", " ")
    words: list[str] = json.loads(re.findall(rf"^{instruction} [^\[\n]*(\[.*\])$", last, re.MULTILINE)[-1])
    return words


def healthy(service: str, ports: Mapping[int, int], **variables: str) -> bool:
    """Whether its own check says so, with these ports in the place of its own."""
    words = image_list(service, "HEALTHCHECK")
    if words[0] == "python":
        words[0] = sys.executable
    command = [re.sub("|".join(map(str, ports)), lambda port: str(ports[int(port[0])]), word) for word in words]
    surroundings = {"PATH": os.environ["PATH"], **variables}
    return subprocess.run(command, env=surroundings, capture_output=True, timeout=120, check=False).returncode == 0


@contextmanager
def container(
    command: Sequence[str | Path], variables: Mapping[str, str], folder: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that knows of its surroundings only what a container tells it, and is told to stop at the end."""
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [*command], env={"PATH": os.environ["PATH"], **variables}, cwd=folder, stdout=log, stderr=log
        )
    try:
        yield process
        process.terminate()
        assert process.wait(60) == 0, (folder / "log").read_text()
    finally:
        process.kill()


@pytest.mark.slow
def test_what_the_containers_run_takes_spans_by_way_of_each_other_and_says_that_it_is_healthy(
    cluster: Cluster, tmp_path: Path
) -> None:
    http, grpc, page, door, health = free_ports(5)
    store = environment("spanreel")["SPANREEL_STORE"]
    assert re.fullmatch(r"postgresql://spanreel:p+@postgresql/spanreel", store)
    given = {**image_environment("spanreel"), **environment("spanreel"), "SPANREEL_STORE": cluster.new_database()}
    # Their addresses, at ports that are free here; theirs are their own there.
    given |= {"SPANREEL_SERVE_HTTP": f"127.0.0.1:{page}", "SPANREEL_SERVE_GRPC": f"127.0.0.1:{door}"}
    del given["PATH"]
    assert image_list("spanreel", "ENTRYPOINT") == ["spanreel"]
    service = [sys.executable, "-m", *image_list("spanreel", "ENTRYPOINT"), *SERVICES["spanreel"]["command"]]
    forwarding = {**environment("collector"), "SPANREEL_URL": f"http://127.0.0.1:{page}", "COLLECTOR_HOST": "127.0.0.1"}
    forwarding |= {"COLLECTOR_HTTP_PORT": str(http), "COLLECTOR_GRPC_PORT": str(grpc)}
    forwarding |= {"COLLECTOR_HEALTH_PORT": str(health), "COLLECTOR_QUEUE": str(tmp_path / "queue")}
    configuration = [word.replace("/etc/otelcol", str(ROOT / "collector")) for word in image_list("collector", "CMD")]
    collector: list[str | Path] = [binary(), *configuration, "--set=service.telemetry.metrics.level=none"]
    ports = {4318: page, 13133: health}
    assert not healthy("spanreel", ports)
    assert not healthy("collector", ports)
    (tmp_path / "service").mkdir()
    with container(service, given, tmp_path / "service"), container(collector, forwarding, tmp_path):
        wait_until(lambda: healthy("spanreel", ports), what="the service's check says that it is ill")
        wait_until(lambda: healthy("collector", ports), what="the Collector's check says that it is ill")
        sent = httpx.post(
            f"http://127.0.0.1:{http}/v1/traces", json=otlp_request(span(1, "said", {})), timeout=60, trust_env=False
        )
        assert sent.status_code == 200
        # It forwards with a token that lets in and nothing else.
        size = f"http://127.0.0.1:{page}/api/v1/size"
        headers = {name: {"authorization": f"Bearer {given[name]}"} for name in SECRETS if name in given}
        assert httpx.get(size, headers=headers["SPANREEL_INGEST_TOKEN"], timeout=60, trust_env=False).status_code == 403

        def kept() -> bool:
            return bool(
                httpx.get(size, headers=headers["SPANREEL_TOKEN"], timeout=60, trust_env=False).json()["items"] == 1
            )

        wait_until(kept, what="what the Collector was sent does not come to the service")
    lines = (tmp_path / "service" / "log").read_text().splitlines()
    assert any("serving" in line for line in lines)
    assert all(json.loads(line)["message"] for line in lines if line.startswith("{"))


@pytest.mark.slow
def test_an_image_that_speaks_tls_is_healthy_once_it_listens() -> None:
    tls = {"SPANREEL_SERVE_TLS_CERTIFICATE": "/tls/server.pem"}
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ports = {4318: listening.getsockname()[1]}
        assert healthy("spanreel", ports, **tls)
    assert not healthy("spanreel", ports, **tls)


@pytest.mark.slow
def test_the_image_alone_keeps_what_it_is_sent_in_its_volume(tmp_path: Path) -> None:
    http, grpc = free_ports(2)
    given = image_environment("spanreel")
    assert given["SPANREEL_STORE"] == "sqlite:////data/spanreel.db"
    assert re.search(r"^VOLUME /data$", image("spanreel"), re.MULTILINE)
    del given["PATH"]
    given["SPANREEL_STORE"] = f"sqlite:///{tmp_path}/data/spanreel.db"
    (tmp_path / "data").mkdir()
    command = [sys.executable, "-m", *image_list("spanreel", "ENTRYPOINT"), *image_list("spanreel", "CMD")]
    # It is reached from outside, so that without a token it does not start.
    refused = subprocess.run(command, env=given, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert refused.returncode == 64
    assert "token" in refused.stderr
    given |= {"SPANREEL_TOKEN": SECRETS["SPANREEL_TOKEN"], "SPANREEL_INGEST_TOKEN": SECRETS["SPANREEL_INGEST_TOKEN"]}
    given |= {"SPANREEL_SERVE_HTTP": f"127.0.0.1:{http}", "SPANREEL_SERVE_GRPC": f"127.0.0.1:{grpc}"}
    with container(command, given, tmp_path):
        wait_until(lambda: healthy("spanreel", {4318: http}), what="its check says that it is ill")
        headers = {"authorization": f"Bearer {given['SPANREEL_INGEST_TOKEN']}"}
        url = f"http://127.0.0.1:{http}/v1/traces"
        sent = httpx.post(url, json=otlp_request(span(1, "said", {})), headers=headers, timeout=60, trust_env=False)
        assert sent.status_code == 200
    assert (tmp_path / "data" / "spanreel.db").stat().st_size > 0
