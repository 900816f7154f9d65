"""Misspelt names in the environment."""

from __future__ import annotations

import pytest

from spanreel.errors import SettingsError
from spanreel.slips import find_slips
from spanreel_collector.service.settings import read_settings


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("SPANREEL_CAPTUR", "SPANREEL_CAPTURE"),
        ("SPANREEL_FILES", "SPANREEL_FILE"),
        ("SPANREEL_REDACTON_KEY", "SPANREEL_REDACTION_KEY"),
        ("SPANREEL_MAX_VALUES_BYTES", "SPANREEL_MAX_VALUE_BYTES"),
    ],
)
def test_a_misspelt_variable_is_named_with_the_one_that_was_meant(name: str, meant: str) -> None:
    assert find_slips({name: "off"}) == [f"nothing reads {name}; did you mean {meant}?"]


@pytest.mark.parametrize(
    ("slip", "meant"), [("KEPT", "KEEP"), ("POLICI", "POLICY"), ("TOKEN", "TOKENS"), ("QUIET_SECOND", "QUIET_SECONDS")]
)
def test_the_service_does_not_start_with_a_misspelt_variable(slip: str, meant: str) -> None:
    with pytest.raises(SettingsError, match=f"SPANREEL_SERVE_{slip}; did you mean SPANREEL_SERVE_{meant}?"):
        read_settings({f"SPANREEL_SERVE_{slip}": "x"}, {})
    assert find_slips({f"SPANREEL_SERVE_{slip}": "x"}) == []


def test_what_kubernetes_sets_for_a_service_of_that_name_is_no_slip() -> None:
    others = ("PORT", "SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTP", "PORT_4317_TCP", "PORT_4318_TCP_PROTO")
    read_settings({f"SPANREEL_SERVE_{name}": "x" for name in others}, {})


def test_variables_of_ours_and_those_that_look_like_none_of_ours_are_passed_over() -> None:
    ours = ("CAPTURE", "FILE", "REDACTION_KEY_FILE", "SERVE_HTTP", "STORE", "TOKEN", "REPLAY_GUARD")
    others = ("PORT", "SERVICE_HOST", "SERVICE_PORT", "PORT_4318_TCP", "PORT_4318_TCP_ADDR", "VERSION")
    assert find_slips({f"SPANREEL_{name}": "x" for name in ours + others} | {"CAPTURE": "off", "PATH": "/bin"}) == []
