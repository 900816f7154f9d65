"""docker-compose.yml and the images: what they say is what the service, the Collector and the lock files accept."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest import ROOT
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
