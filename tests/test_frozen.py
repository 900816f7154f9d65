"""Data that is frozen for the type checker: what it can do as the standard library's can."""

from __future__ import annotations

import pickle
from dataclasses import replace

from spanreel.model import Agent, Fidelity, Status, Usage
from spanreel.records import ToolRecord


def test_records_of_equal_fields_are_equal_and_hash_alike() -> None:
    assert Usage(1, 2) == Usage(1, 2) != Usage(1, 3)
    assert hash(Agent("a")) == hash(Agent("a"))
    assert len({Agent("a"), Agent("a"), Agent("b")}) == 2


def test_a_changed_record_leaves_the_first_as_it_was() -> None:
    record = ToolRecord("find", status=Status.OK)
    assert replace(record, status=Status.ERROR).status is Status.ERROR
    assert record.status is Status.OK


def test_records_and_words_go_from_process_to_process() -> None:
    record = ToolRecord("find", fidelity={"result": Fidelity.ABSENT})
    again = pickle.loads(pickle.dumps(record))
    assert again == record
    assert again.fidelity["result"] is Fidelity.ABSENT


def test_a_word_has_its_text_as_its_value() -> None:
    assert [word.value for word in Status] == [str(word) for word in Status]
    assert Status("error") is Status.ERROR
