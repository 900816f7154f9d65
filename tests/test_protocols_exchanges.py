"""The shared exchanges: each is read without loss, written again, and read the same."""

from __future__ import annotations

import json

import pytest

from exchange_cases import FILES, events_of, exchanges, pieces_of
from spanreel.protocols import is_exchange, peek_model
from spanreel.protocols.paths import model_in
from spanreel.protocols.residue import same

every_file = pytest.mark.parametrize("file", FILES)

# Exchanges whose JSON is written differently from how it was read, and why: none.


@every_file
def test_a_request_is_written_as_it_was_read(file: str) -> None:
    for exchange in exchanges(file):
        body = json.dumps(exchange.request).encode()
        request = exchange.protocol.read_request(body, exchange.operation)
        written = exchange.protocol.write_request(request)
        assert same(json.loads(written), exchange.request), exchange.id
        assert exchange.protocol.read_request(written, exchange.operation) == request, exchange.id


@every_file
def test_the_model_is_found_without_parsing(file: str) -> None:
    for exchange in exchanges(file):
        body = json.dumps(exchange.request).encode()
        model = peek_model(body) or model_in(exchange.path)
        assert model == exchange.request.get("model", model), exchange.id
        assert model, exchange.id
        assert is_exchange(exchange.operation, body, exchange.protocol), exchange.id


@every_file
def test_a_plain_answer_is_written_as_it_was_read(file: str) -> None:
    for exchange in exchanges(file):
        if exchange.streamed:
            continue
        answer = exchange.protocol.read_response(exchange.response, exchange.status)
        written = exchange.protocol.write_response(answer)
        assert same(json.loads(written), json.loads(exchange.response)), exchange.id
        assert exchange.protocol.read_response(written, exchange.status) == answer, exchange.id
        assert (answer.error is not None) == (exchange.status >= 400), exchange.id


@pytest.mark.slow
@every_file
@pytest.mark.parametrize("size", [1, 97, 1_000_000])
def test_a_stream_is_split_as_it_was_joined(file: str, size: int) -> None:
    for exchange in exchanges(file):
        if not exchange.streamed:
            continue
        answer = exchange.protocol.join(pieces_of(exchange.response, size))
        pieces = exchange.protocol.split(answer)
        assert exchange.protocol.join(pieces) == answer, exchange.id
        assert same(events_of(b"".join(piece for _, piece in pieces)), events_of(exchange.response)), exchange.id
        assert answer.complete, exchange.id


@every_file
def test_chunks_record_no_text(file: str) -> None:
    """What is redacted in the messages would else stand in the chunks, cut where no detector finds it."""
    for exchange in exchanges(file):
        if not exchange.streamed:
            continue
        answer = exchange.protocol.join(pieces_of(exchange.response))
        texts = [part["content"] for message in answer.messages for part in message["parts"] if part["type"] == "text"]
        recorded = json.dumps(answer.chunks)
        assert not [text for text in texts if len(text) > 20 and text[:12] in recorded], exchange.id


@every_file
def test_a_stream_cut_off_anywhere_is_split_as_it_was_joined(file: str) -> None:
    for exchange in exchanges(file):
        if not exchange.streamed:
            continue
        for length in range(1, len(exchange.response), max(1, len(exchange.response) // 9)):
            answer = exchange.protocol.join(pieces_of(exchange.response[:length]))
            assert not answer.complete or answer.finish_reasons, exchange.id
            assert exchange.protocol.join(exchange.protocol.split(answer)) == answer, exchange.id


@every_file
def test_a_joined_stream_and_its_plain_form_say_the_same(file: str) -> None:
    for exchange in exchanges(file):
        if not exchange.streamed:
            continue
        answer = exchange.protocol.join(pieces_of(exchange.response))
        plain = exchange.protocol.read_response(exchange.protocol.write_response(answer), 200)
        assert plain.messages == answer.messages, exchange.id
        assert len(answer.messages) == len(plain.messages) > 0, exchange.id
        texts = [part for message in answer.messages for part in message["parts"] if part["type"] == "text"]
        assert all(isinstance(part["content"], str) and part["content"] for part in texts), exchange.id
        assert all(part["type"] not in ("other", "thinking") for part in answer.messages[0]["parts"]), exchange.id
        assert plain.usage == answer.usage, exchange.id
        assert plain.finish_reasons == answer.finish_reasons, exchange.id
