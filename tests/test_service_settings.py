"""The service's settings: from where, how they are read, and what is said of one that cannot be."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from conftest import ROOT
from spanreel.errors import SettingsError
from spanreel_collector.api.moments import read_moment, write_moment
from spanreel_collector.service.settings import MIB, ServiceSettings, read_settings, variable_of

SECOND = 1_000_000_000


def test_flags_beat_the_environment_which_beats_defaults() -> None:
    environment = {
        "SPANREEL_SERVE_QUIET_SECONDS": "5",
        "SPANREEL_SERVE_KEEP": "90d",
        "SPANREEL_STORE": "sqlite:///x.db",
    }
    settings = read_settings(environment, {"quiet_seconds": "1.5", "http": None})
    assert (settings.quiet_seconds, settings.keep, settings.store) == (1.5, 90 * 86_400, "sqlite:///x.db")
    assert settings.address("http") == ("127.0.0.1", 4318)


@pytest.mark.parametrize(
    ("name", "said", "read"),
    [
        ("keep", "12h", 43_200.0),
        ("keep", "2w", 1_209_600.0),
        ("keep", "30s", 30.0),
        ("keep", "0", 0.0),
        ("keep_bytes", "20g", 20 * 1024 * MIB),
        ("keep_bytes", "1.5MiB", 3 * MIB // 2),
        ("keep_bytes", "500kb", 500 * 1024),
        ("hosts", "Tracing.Example, other", frozenset({"tracing.example", "other"})),
        ("grpc", "off", "off"),
        ("http", "[::1]:4318", "[::1]:4318"),
    ],
)
def test_values_are_read_as_people_write_them(name: str, said: str, read: Any) -> None:
    assert getattr(read_settings({}, {name: said}), name) == read


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("keep", "soon"),
        ("keep", "-1d"),
        ("keep", "90"),  # days, who meant them; seconds, as the other times are read
        ("keep_bytes", "1x"),
        ("keep_bytes", ""),
        ("http", "4318"),
        ("http", "127.0.0.1:99999"),
        ("log_format", "xml"),
        ("log_level", "loud"),
        ("body_bytes", "0"),  # which would refuse everything
        ("queue_bytes", "0k"),
        ("derive_patience", "0"),
    ],
)
def test_what_cannot_be_read_is_named_with_what_was_expected(name: str, said: str) -> None:
    if not said:
        assert read_settings({}, {name: said}) == ServiceSettings()
        return
    with pytest.raises(SettingsError, match="expected"):
        read_settings({}, {name: said})
    with pytest.raises(SettingsError, match=variable_of(name)):
        read_settings({variable_of(name): said}, {})


def test_doors_are_addresses_or_off() -> None:
    settings = read_settings({}, {"grpc": "off", "http": "[::1]:0"})
    assert (settings.address("grpc"), settings.address("http")) == (None, ("::1", 0))


def test_each_setting_is_in_the_documentation_with_its_default() -> None:
    page = (ROOT / "docs" / "service.md").read_text()
    for one in dataclasses.fields(ServiceSettings):
        flag = one.name.replace("_", "-")
        assert f"| `--{flag} " in page, flag
        assert f"`{variable_of(one.name)}` | {one.metadata['shown']} |" in page, flag


@pytest.mark.parametrize(
    ("said", "moment"),
    [
        ("1970-01-01T00:00:01Z", SECOND),
        ("1970-01-01T00:00:01.123456789Z", SECOND + 123_456_789),
        ("1970-01-01T01:00:01+01:00", SECOND),
        ("1970-01-01T01:00:01 01:00", SECOND),
        ("1970-01-01T00:00:01", SECOND),
        ("1970-01-02", 86_400 * SECOND),
    ],
)
def test_moments_are_read_with_a_zone_or_in_utc(said: str, moment: int) -> None:
    assert read_moment(said) == moment
    assert read_moment(write_moment(moment) or "") == moment


def test_moments_beyond_the_calendar_are_its_ends() -> None:
    assert write_moment(2**63 - 1) == "2262-04-11T23:47:16.854775807Z"
    assert write_moment(2**80) == "9999-12-31T23:59:59Z"
    assert write_moment(None) is None
    with pytest.raises(ValueError, match="isoformat"):
        read_moment("soon")
