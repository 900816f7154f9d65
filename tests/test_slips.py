"""Misspelt names in the environment."""

from __future__ import annotations

import pytest

from spanreel.slips import find_slips


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


def test_variables_of_ours_and_those_that_look_like_none_of_ours_are_passed_over() -> None:
    ours = ("CAPTURE", "FILE", "REDACTION_KEY_FILE", "SERVE_HTTP", "STORE", "TOKEN", "REPLAY_GUARD")
    others = ("PORT", "SERVICE_HOST", "SERVICE_PORT", "PORT_4318_TCP", "PORT_4318_TCP_ADDR", "VERSION")
    assert find_slips({f"SPANREEL_{name}": "x" for name in ours + others} | {"CAPTURE": "off", "PATH": "/bin"}) == []
