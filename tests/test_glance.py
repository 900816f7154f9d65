"""A glance sees whatever is worth a look, in texts of any length, and tells it in one pass."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanreel.detectors import DETECTORS, make_search, places_in
from spanreel.detectors.searching import _places
from spanreel.glance import Glance, pattern_of

SEARCH: Final = make_search(DETECTORS)
FRAGMENTS: Final = sorted({fragment for detector in DETECTORS for fragment in detector.fragments})
AROUND: Final = st.text("aA0 9-_.:/=@~$+é‑(){}\"\\kKſ1234567?'%", max_size=12)  # noqa: RUF001 -- what looks alike is


def as_written(fragment: str) -> st.SearchStrategy[str]:
    """The fragment as it may stand in text: digits are any, a question mark is any character, case is any."""

    def signs(sign: str) -> st.SearchStrategy[str]:
        if sign == "?":
            return st.sampled_from("ab1é")
        folded = fragment == fragment.lower()
        return st.sampled_from("0123456789" if sign.isdigit() and folded else sign + sign.upper() if folded else sign)

    return st.tuples(*map(signs, fragment)).map("".join)


@given(AROUND, st.sampled_from(FRAGMENTS).flatmap(as_written), AROUND)
def test_wherever_a_detector_has_to_look_a_glance_sees_something(before: str, fragment: str, after: str) -> None:
    for text in (before + fragment + after, before + fragment[:-1] + after, before + after):
        assert SEARCH.glance.sees(text) or not _places(text, SEARCH)


@pytest.mark.parametrize("text", ["a password of hers", "mail a@b.example", "4111111", "fe80:1::2", "caf\u00e9 SK-1"])
def test_what_may_be_found_is_seen(text: str) -> None:
    assert SEARCH.glance.sees(text)
    assert places_in(text, SEARCH)


@pytest.mark.parametrize(
    "text", ["", "Where is order 12?", "one, two, 345678", "caf\u00e9 \N{GREEK SMALL LETTER ALPHA}"]
)
def test_what_nothing_can_be_found_in_is_told_at_a_glance(text: str) -> None:
    assert not SEARCH.glance.sees(text)
    assert places_in(text, SEARCH) == []


@pytest.mark.parametrize("length", [127 * 1024, 128 * 1024 - 3, 128 * 1024, 300_001])
def test_long_text_is_seen_whole(length: int) -> None:
    glance = Glance([pattern_of("needle")])
    assert glance.sees("x" * length + "needle" + "x" * 70)
    assert not glance.sees("x" * length + "need" + "x" * 70)


def test_half_a_surrogate_pair_cannot_be_told() -> None:
    assert Glance([pattern_of("needle")]).sees("half \ud83d")
