"""What is remembered is bounded."""

from __future__ import annotations

from spanreel.memory import ENTRY_BYTES, Memory


def test_what_is_kept_is_found_by_its_content() -> None:
    memory = Memory[int](4000)
    memory.keep("one", 1)
    assert memory.find("one") == 1
    assert memory.find("two") is None


def test_the_longest_unused_makes_room() -> None:
    memory = Memory[int](5 * (ENTRY_BYTES + 2))
    for number, content in enumerate("abcde"):
        memory.keep(content, number)
    assert memory.find("a") == 0
    memory.keep("f", 5)
    assert [memory.find(content) for content in "abcdef"] == [0, None, 2, 3, 4, 5]
    assert len(memory) == 5


def test_what_is_too_large_or_known_already_is_not_kept() -> None:
    memory = Memory[int](4000)
    memory.keep("x" * 1000, 1)
    assert memory.find("x" * 1000) is None
    memory.keep("a", 1)
    memory.keep("a", 2)
    assert memory.find("a") == 1
