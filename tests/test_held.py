"""Arguments that are held and read later say what a snapshot would have said at once."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pytest

from spanreel.held import Held
from spanreel.json_text import encode, encode_list, plain, read_each
from spanreel.snapshot import snapshot


class Colour(StrEnum):
    RED = "red"


class Text(str):
    __slots__ = ()


@dataclass
class Thing:
    name: str


def _itself() -> list[Any]:
    value: list[Any] = [1]
    value.append(value)
    return value


OWN_KINDS: dict[str, Any] = {
    "messages": [
        {"role": "user", "content": "hello"},
        {"role": "user", "content": [{"type": "text", "text": "there"}]},
    ],
    "scalars": [1, True, None, 1.5, "text", 2**80],
    "a tuple": ("a", ("b",)),
    "a set": {"b", "a"},
    "bytes": [b"\x00\xff", bytearray(b"x")],
    "no number": [math.nan, math.inf],
    "other keys": {1: "one", None: "none", ("a", 1): "pair"},
    "half a pair": "\ud800",
    "the same twice": [[shared := {"a": 1}, shared]],
    "what holds itself": _itself(),
}
FOREIGN: dict[str, Any] = {
    "an object": Thing("a"),
    "a text of another class": Text("a"),
    "a member of an enum": Colour.RED,
    "a function": len,
    "a class": Thing,
    "an object deep inside": [{"a": [{"b": Thing("a")}]}],
}


@pytest.mark.parametrize("name", [*OWN_KINDS, *FOREIGN])
def test_what_is_held_is_the_snapshot(name: str) -> None:
    value = {"input": {**OWN_KINDS, **FOREIGN}[name]}
    held, taken = Held(value), snapshot(value)
    assert held.can_wait == (name in OWN_KINDS)
    assert held.snapshot() == taken
    assert encode(held.snapshot().value) == encode(taken.value)


@pytest.mark.parametrize("deep", [39, 40, 5_000])
def test_what_is_deep_is_cut_like_a_snapshot(deep: int) -> None:
    value: Any = []
    for _ in range(deep):
        value = [value]
    assert Held({"input": value}).snapshot() == snapshot({"input": value})


def test_what_is_held_does_not_change() -> None:
    value = {"input": [{"role": "user", "content": ["a", {"b": [1]}]}]}
    before, held = copy.deepcopy(value), Held(value)
    value["input"][0]["content"][1]["b"].append(2)  # type: ignore[index]  # as a program may
    value["input"].append({"role": "user"})
    assert held.argument("input") == before["input"]
    assert held.snapshot().value == before


def test_no_code_of_the_program_runs_while_it_is_held() -> None:
    class Loud:
        def __reduce__(self) -> Any:
            raise AssertionError("it was pickled")

    assert not Held({"input": [Loud()]}).can_wait


def test_its_size_is_about_that_of_its_json() -> None:
    value = {"input": [{"role": "user", "content": "x" * 10_000}]}
    foreign = {"input": [{"role": "user", "content": "x" * 10_000}, Thing("a")]}
    assert 10_000 < Held(value).size < 11_000
    assert 10_000 < Held(foreign).size < 11_000


def test_an_item_that_was_read_before_is_read_once() -> None:
    seen: list[Any] = []

    def read(value: Any) -> dict[str, Any]:
        seen.append(value)
        return {"read": value}

    items = [{"number": number, "test": "an item is read once"} for number in range(12)]
    assert read_each(plain(items), read) == tuple({"read": item} for item in items)
    more = [*items, {"number": 12, "test": "an item is read once"}]
    assert read_each(plain(more), read) == tuple({"read": item} for item in more)
    assert len(seen) == 13


def test_an_item_is_read_again_by_another_reader() -> None:
    items = plain([{"a": 1}] * 3)
    assert read_each(items, lambda value: {"first": value}) == ({"first": {"a": 1}},) * 3
    assert read_each(items, lambda value: {"second": value}) == ({"second": {"a": 1}},) * 3


def test_what_is_no_plain_json_is_read_as_it_is() -> None:
    one, other = [{"a": ("x",)}], [{"a": ["x"]}]
    read = type("Read", (), {"__call__": lambda _, value: {"kind": type(value["a"]).__name__}})()
    assert read_each(one, read) == ({"kind": "tuple"},)
    assert read_each(other, read) == ({"kind": "list"},)


def test_a_plain_list_is_written_as_any_other() -> None:
    items = [{"a": number} for number in range(20)]
    assert encode_list(plain(items)) == encode_list(items) == encode(items)
