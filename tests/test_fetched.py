"""How much of an answer is read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spanreel.fetched import TooLarge, read_body


def test_a_body_is_read_whole_up_to_its_bound() -> None:
    assert read_body([b"ab", b"", b"cd"], 4) == b"abcd"


def test_of_a_body_without_an_end_no_more_is_read_than_the_bound() -> None:
    asked = []

    def endless() -> Iterator[bytes]:
        while True:
            asked.append(1)
            yield b"x" * 10

    with pytest.raises(TooLarge, match="more than 25 bytes"):
        read_body(endless(), 25)
    assert len(asked) == 3
