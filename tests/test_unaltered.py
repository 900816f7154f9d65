"""What is remembered of an object is forgotten with it, and with any change of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from spanreel.unaltered import Unaltered, contents_of


@dataclass
class Part:
    text: str
    details: dict[str, Any] = field(default_factory=dict)


@dataclass
class Message:
    parts: list[Part]
    note: Any = None


def _message() -> Message:
    return Message([Part("hello", {"deep": [1, {"deeper": 2}]}), Part("there")])


CHANGES: dict[str, Callable[[Message], object]] = {
    "a field": lambda message: setattr(message, "note", "new"),
    "a field more": lambda message: setattr(message, "other", "new"),
    "a field of a part": lambda message: setattr(message.parts[0], "text", "new"),
    "a part more": lambda message: message.parts.append(Part("new")),
    "a part replaced": lambda message: message.parts.__setitem__(1, Part("there!")),
    "the order": lambda message: message.parts.reverse(),
    "deep inside": lambda message: message.parts[0].details["deep"][1].update(deeper=3),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_result_is_forgotten_with_any_change_of_its_object(change: str) -> None:
    known, message = Unaltered[str](), _message()
    known.put(message, contents_of(message), "result")
    assert known.get([message]) == ["result"]
    CHANGES[change](message)
    assert known.get([message]) == [None]


def test_an_equal_object_is_another() -> None:
    known, message = Unaltered[str](), _message()
    known.put(message, contents_of(message), "result")
    assert known.get([_message()]) == [None]


def test_of_many_only_what_has_changed_is_forgotten() -> None:
    known, messages = Unaltered[int](), [_message() for _ in range(4)]
    for number, message in enumerate(messages):
        known.put(message, contents_of(message), number)
    assert known.get(messages) == [0, 1, 2, 3]
    CHANGES["deep inside"](messages[2])
    assert known.get([*messages, _message()]) == [0, 1, None, 3, None]


def test_a_result_is_forgotten_with_its_object() -> None:
    known, message = Unaltered[str](), _message()
    known.put(message, contents_of(message), "result")
    del message
    assert not known._known


@pytest.mark.parametrize("value", [object(), b"bytes", {1}, Part])
def test_what_could_change_unseen_is_not_remembered(value: Any) -> None:
    known, message = Unaltered[str](), Message([], note=value)
    assert contents_of(message) is None
    known.put(message, contents_of(message), "result")
    assert known.get([message]) == [None]


def test_what_holds_itself_is_not_remembered() -> None:
    message = Message([])
    message.note = [message]
    assert contents_of(message) is None
