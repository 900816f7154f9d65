"""Lists whose items are known again are written as any list is."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from spanreel import json_text
from spanreel.memory import known, note_passed

VALUES = st.sampled_from(
    [1, 12, 1.5, None, True, "1", '"],[', "é\u2028", "half \ud83d", [], [1], {}, {"role": "x"}, ["]"]]
)
LISTS = st.lists(VALUES, max_size=14)


@given(st.lists(st.tuples(st.integers(0, 14), LISTS), max_size=5))
def test_a_list_that_begins_like_another_is_written_as_by_itself(changes: list[tuple[int, list[Any]]]) -> None:
    values: list[Any] = list(range(9))
    for kept, more in changes:
        values = [*values[:kept], *more]
        written = json_text.encode_list(values)
        assert json_text.decode(written) == json_text.decode(json_text.encode(values))
        assert list(written.items) == [json_text.encode(value) for value in values]


def test_what_is_known_of_an_item_is_known_in_the_list_that_follows() -> None:
    history = [{"role": "user", "content": f"question {number}"} for number in range(20)]
    before = json_text.encode_list(history)
    for one in before.items:
        note_passed(one, "examiner")
    for following in ([*history, {"role": "user", "content": "new"}], [*history[:10], {"role": "x"}, *history[11:]]):
        written = json_text.encode_list(following)
        assert [one for one in written.items if not one.passed] == [
            json_text.encode(value) for value in following if value not in history
        ]


def test_lists_of_objects_that_were_read_before_are_written_alike() -> None:
    history = [{"content": f"question {number}"} for number in range(9)]
    assert json_text.encode_list([known(dict(value)) for value in history]) == json_text.encode(history)
