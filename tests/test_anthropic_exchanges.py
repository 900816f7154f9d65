"""The shared exchanges of Anthropic messages: each is read without loss, written again, and read the same."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from exchange_cases import Exchange, events_of, exchanges, pieces_of
from spanreel.protocols import is_exchange, peek_model
from spanreel.protocols.residue import same

FILE = "anthropic_messages"


def all_of_them(*, streamed: bool | None = None) -> list[Exchange]:
    return [one for one in exchanges(FILE) if streamed is None or one.streamed == streamed]


def test_all_of_them_are_here() -> None:
    assert len(all_of_them()) == 77
    assert {one.protocol.NAME for one in all_of_them()} == {FILE}


def test_a_request_is_written_as_it_was_read() -> None:
    for one in all_of_them():
        body = json.dumps(one.request).encode()
        request = one.protocol.read_request(body, one.operation)
        written = one.protocol.write_request(request)
        assert same(json.loads(written), one.request), one.id
        assert one.protocol.read_request(written, one.operation) == request, one.id
        assert peek_model(body) == one.request["model"], one.id
        assert is_exchange(one.operation, body), one.id


def test_a_plain_answer_is_written_as_it_was_read() -> None:
    for one in all_of_them(streamed=False):
        answer = one.protocol.read_response(one.response, one.status)
        written = one.protocol.write_response(answer)
        assert same(json.loads(written), json.loads(one.response)), one.id
        assert one.protocol.read_response(written, one.status) == answer, one.id
        assert (answer.error is not None) == (one.status >= 400), one.id


@pytest.mark.parametrize("size", [1, 97, 1_000_000])
def test_a_stream_is_split_as_it_was_joined(size: int) -> None:
    for one in all_of_them(streamed=True):
        answer = one.protocol.join(pieces_of(one.response, size))
        pieces = one.protocol.split(answer)
        assert one.protocol.join(pieces) == answer, one.id
        assert same(events_of(b"".join(piece for _, piece in pieces)), events_of(one.response)), one.id
        assert answer.complete, one.id


def test_chunks_record_no_text() -> None:
    for one in all_of_them(streamed=True):
        answer = one.protocol.join(pieces_of(one.response))
        texts = [part.get("content") or "" for message in answer.messages for part in message["parts"]]
        recorded = json.dumps(answer.chunks)
        assert not [text for text in texts if len(text) > 20 and text[:12] in recorded], one.id
        assert len(recorded) < len(one.response) / 2, one.id


def test_a_stream_cut_off_anywhere_is_split_as_it_was_joined() -> None:
    for one in all_of_them(streamed=True):
        for length in range(1, len(one.response) - 2, max(1, len(one.response) // 9)):
            answer = one.protocol.join(pieces_of(one.response[:length]))
            assert not answer.complete, one.id
            assert one.protocol.join(one.protocol.split(answer)) == answer, one.id


def test_a_joined_stream_and_its_plain_form_say_the_same() -> None:
    for one in all_of_them(streamed=True):
        answer = one.protocol.join(pieces_of(one.response))
        plain = one.protocol.read_response(one.protocol.write_response(answer), 200)
        assert plain.messages == answer.messages, one.id
        assert [message["role"] for message in answer.messages] == ["assistant"], one.id
        assert all(part["type"] in ("text", "tool_call") for part in answer.messages[0]["parts"]), one.id
        assert plain.usage == answer.usage, one.id
        assert answer.usage is not None, one.id
        assert plain.finish_reasons == answer.finish_reasons, one.id


def test_without_its_chunks_a_stream_comes_to_the_same_answer() -> None:
    for one in all_of_them():
        answer = one.protocol.join(pieces_of(one.response)) if one.streamed else None
        if answer is None and one.status < 400:
            answer = one.protocol.read_response(one.response, one.status)
        if answer is None:
            continue
        again = one.protocol.join(one.protocol.split(replace(answer, chunks=())))
        assert again.messages == answer.messages, one.id
        assert again.usage == answer.usage, one.id
        assert again.complete, one.id
