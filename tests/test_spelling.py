"""Secrets that came in pieces: neither the record of a stream nor what stands beside the answer spells them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from exchange_cases import FILES, exchanges
from spanreel import conventions, json_text
from spanreel.exchange import ModelProtocol
from spanreel.model import Answer
from spanreel.outgoing import finish
from spanreel.protocols import anthropic, completions, gemini, ollama, openai_chat, openai_responses
from spanreel.redaction import redact_attributes
from spanreel.settings import Settings

SECRET = "sk-" + "proj-QwEgTyUiOpAsDBGhJkLz12"
MASK = "[redacted]"
Field = tuple[ModelProtocol, Callable[[list[str]], bytes]]


def sse(events: list[dict[str, Any]], *, done: bool = False) -> bytes:
    named = "".join(
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
        if "type" in event
        else f"data: {json.dumps(event)}\n\n"
        for event in events
    )
    return (named + "data: [DONE]\n\n" * done).encode()


def responses(kind: str, **fields: Callable[[str], Any]) -> Field:
    def stream(pieces: list[str]) -> bytes:
        content = [{"type": "output_text", "text": "hello", "annotations": []}]
        begun: dict[str, Any] = {"id": "resp_1", "object": "response", "output": [], "status": "in_progress"}
        item = {"id": "msg_1", "type": "message", "role": "assistant", "content": content}
        ended = {**begun, "output": [item], "status": "completed"}
        events: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
        for piece in pieces:
            events.append({"type": f"response.{kind}", **{name: make(piece) for name, make in fields.items()}})
        events.append({"type": "response.completed", "response": ended})
        return sse([{**event, "sequence_number": number} for number, event in enumerate(events)])

    return openai_responses, stream


def two_items(kind: str) -> Field:
    """A text beside another, event by event."""

    def stream(pieces: list[str]) -> bytes:
        turns = [(index, text) for piece in pieces for index, text in ((0, piece), (1, "zz, "))]
        return sse([{"type": f"response.{kind}", "output_index": index, "delta": text} for index, text in turns])

    return openai_responses, stream


def chat(make: Callable[[str], dict[str, Any]]) -> Field:
    def stream(pieces: list[str]) -> bytes:
        chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "gpt"}
        choices = [make(piece) for piece in pieces]
        choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
        return sse([{**chunk, "choices": [choice]} for choice in choices], done=True)

    return openai_chat, stream


def completed(make: Callable[[str], dict[str, Any]]) -> Field:
    def stream(pieces: list[str]) -> bytes:
        entries = [{"index": 0, "text": "word ", **make(piece), "finish_reason": None} for piece in pieces]
        entries[-1]["finish_reason"] = "stop"
        return sse([{"id": "cmpl-1", "object": "text_completion", "choices": [entry]} for entry in entries], done=True)

    return completions, stream


def generated(make: Callable[[str], dict[str, Any]]) -> Field:
    def stream(pieces: list[str]) -> bytes:
        candidates = [{"content": {"role": "model", "parts": [{"text": "word "}]}, **make(piece)} for piece in pieces]
        candidates[-1]["finishReason"] = "STOP"
        return sse([{"candidates": [candidate], "responseId": "answer"} for candidate in candidates])

    return gemini, stream


def compacted(make: Callable[[str], dict[str, Any]]) -> Field:
    def stream(pieces: list[str]) -> bytes:
        message: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
        message["usage"] = {"input_tokens": 1, "output_tokens": 1}
        block = {"type": "compaction", "content": ""}
        return sse(
            [
                {"type": "message_start", "message": message},
                {"type": "content_block_start", "index": 0, "content_block": block},
                *map(make, pieces),
                {"type": "content_block_stop", "index": 0},
                {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
                {"type": "message_stop"},
            ]
        )

    return anthropic, stream


def lines(make: Callable[[str], dict[str, Any]]) -> Field:
    def stream(pieces: list[str]) -> bytes:
        said = [
            {"model": "llama", "created_at": f"2026-11-30T19:00:{number:02}.123456Z", "done": False, **make(piece)}
            | {"message": {"role": "assistant", "content": "word "}}
            for number, piece in enumerate(pieces)
        ]
        said[-1]["done"] = True
        return "".join(json.dumps(line) + "\n" for line in said).encode()

    return ollama, stream


def likely(piece: str) -> list[dict[str, Any]]:
    token = {"token": piece, "logprob": -1.0, "bytes": list(piece.encode())}
    return [{**token, "top_logprobs": [token, {"token": "no", "logprob": -2.0}]}]


def in_lists(piece: str) -> dict[str, Any]:
    return {
        "logprobs": {
            "tokens": [piece],
            "token_logprobs": [-1.0],
            "top_logprobs": [{piece: -1.0, "no": -2.0}],
            "text_offset": [7],
        }
    }


def partial(piece: str) -> dict[str, Any]:
    arguments = [{"jsonPath": "$.a", "stringValue": piece, "willContinue": True}]
    call = {"name": "call", "partialArgs": arguments, "willContinue": True}
    return {"content": {"role": "model", "parts": [{"functionCall": call}]}}


def chosen(piece: str) -> dict[str, Any]:
    token = {"token": piece, "tokenId": 5, "logProbability": -1.0}
    return {"logprobsResult": {"chosenCandidates": [token], "topCandidates": [{"candidates": [token]}]}}


def executed(piece: str) -> dict[str, Any]:
    tool = {"index": 0, "type": "python", "arguments": piece, "output": piece}
    return {"index": 0, "delta": {"executed_tools": [tool]}, "finish_reason": None}


FIELDS: dict[str, Field] = {
    "likely tokens of events": responses("output_text.delta", delta=lambda _: "word ", logprobs=likely),
    "a shell's output": responses("shell_call_output_content.delta", delta=lambda piece: {"stdout": piece}),
    "an audio's transcript": responses("audio.transcript.delta", delta=lambda piece: piece),
    "an event that nobody knows": responses("brand_new", nested=lambda piece: {"a": [piece]}),
    "beside another text": two_items("brand_new"),
    "lists of likely tokens": completed(in_lists),
    "lists of likely tokens, and the text": completed(lambda piece: {"text": piece, **in_lists(piece)}),
    "a completion's own field": completed(lambda piece: {"new": {"a": piece}}),
    "arguments of Gemini's": generated(partial),
    "likely tokens of Gemini's": generated(chosen),
    "a candidate's own field": generated(lambda piece: {"new": {"a": piece}}),
    "a compaction": compacted(
        lambda piece: {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "compaction_delta", "content": piece},
        }
    ),
    "an event of Anthropic's that nobody knows": compacted(lambda piece: {"type": "brand_new", "new": {"a": piece}}),
    "executed tools": chat(executed),
    "likely tokens of a chat": chat(
        lambda piece: {"index": 0, "delta": {"content": "word "}, "logprobs": {"content": likely(piece)}}
    ),
    "a choice's own field": chat(lambda piece: {"index": 0, "delta": {"content": "word "}, "new": {"a": piece}}),
    "a line's own field": lines(lambda piece: {"new": piece}),
    "likely tokens of Ollama's": lines(lambda piece: {"logprobs": likely(piece)}),
}


def exported(answer: Answer) -> dict[str, Any]:
    """What leaves of an answer: its record, its messages, the rest."""
    said = {
        conventions.STREAM_CHUNKS: json_text.encode(answer.chunks),
        conventions.OUTPUT_MESSAGES: json_text.encode(answer.messages),
        "spanreel.response.fields": json_text.encode(answer.provider_fields),
    }
    left = finish(said, Settings())
    assert redact_attributes({name: left[name] for name in said}).attributes == {name: left[name] for name in said}
    return {name: json.loads(str(left[name])) for name in said}


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)


def cuts() -> list[list[str]]:
    """The secret cut in two at each place, and in pieces of each size."""
    text = f"{SECRET}."
    halves = [[text[:place], text[place:]] for place in range(1, len(SECRET))]
    return [*halves, *([text[at : at + size] for at in range(0, len(text), size)] for size in (1, 2, 3, 5))]


@pytest.mark.parametrize("name", FIELDS)
def test_no_secret_is_spelled_by_its_pieces_wherever_they_stand(name: str) -> None:
    protocol, stream = FIELDS[name]
    for pieces in cuts():
        answer = protocol.join([(5.0, stream([": ", *pieces]))])
        left = exported(answer)
        told = list(texts(list(left.values())))
        spelled = [piece for piece in pieces if piece in told and piece != "."]
        assert all(len(piece) <= 4 for piece in spelled), (pieces, spelled)  # the last one, where the answer says it
        assert len(spelled) <= 1, (pieces, spelled)
        assert not any(SECRET[at : at + 6] in text for text in told for at in range(len(SECRET) - 5)), pieces


@pytest.mark.parametrize("name", FIELDS)
def test_a_stream_whose_record_was_redacted_is_played_without_the_secret(name: str) -> None:
    protocol, stream = FIELDS[name]
    for pieces in cuts()[::7]:
        answer = protocol.join([(5.0, stream([": ", *pieces]))])
        left = exported(answer)
        redacted = replace(
            answer,
            chunks=tuple(left[conventions.STREAM_CHUNKS]),
            messages=left[conventions.OUTPUT_MESSAGES],
            provider_fields=left["spanreel.response.fields"],
        )
        played = protocol.join(protocol.split(redacted))
        assert played.complete == answer.complete
        assert [part.get("content") for message in played.messages for part in message["parts"]] == [
            part.get("content") for message in redacted.messages for part in message["parts"]
        ]


@pytest.mark.parametrize("file", FILES)
def test_records_of_streams_that_hold_no_secret_leave_as_they_are(file: str) -> None:
    for exchange in exchanges(file):
        if exchange.streamed and exchange.status == 200:
            chunks = json_text.encode(exchange.protocol.join([(5.0, exchange.response)]).chunks)
            assert finish({conventions.STREAM_CHUNKS: chunks}, Settings()) == {conventions.STREAM_CHUNKS: chunks}


def test_what_is_as_often_as_before_in_a_record_is_part_of_the_text() -> None:
    """A record says a value of an event again only where it is another."""
    number = "4444" + "3333" + "2222" + "1111"
    _, stream = FIELDS["a line's own field"]
    answer = ollama.join([(5.0, stream([": ", *(number[at : at + 1] for at in range(len(number))), "."]))])
    left = exported(answer)[conventions.STREAM_CHUNKS]
    assert MASK in list(texts(left))


def test_values_that_are_no_record_are_not_put_together() -> None:
    halves = ["ann@exam", "ple.com"]
    for value in (halves, {"a": halves}, [[0.9, halves[0]], [0.8, halves[1]]], [{"a": half} for half in halves]):
        text = json.dumps(value)
        assert redact_attributes({"a": text}).attributes == {"a": text}


def test_a_token_that_is_a_secret_is_not_told_by_its_bytes() -> None:
    (token,) = likely(SECRET)
    told = json.loads(str(redact_attributes({"a": json.dumps({"logprobs": {"content": [token]}})}).attributes["a"]))
    assert told == {"logprobs": {"content": [{"token": MASK, "logprob": -1.0}]}}


def test_a_secret_that_one_piece_holds_whole_is_redacted_there_alone() -> None:
    _, stream = FIELDS["a line's own field"]
    left = exported(ollama.join([(5.0, stream([": ", "before ", f"mail ann@{'example'}.com, ", "after"]))]))
    told = list(texts(left[conventions.STREAM_CHUNKS]))
    assert {": ", "before ", "after"} < set(told)
    assert any(text.startswith("mail [redacted:e_mail:") for text in told)


@pytest.mark.parametrize("name", ["a line's own field", "an event that nobody knows", "a choice's own field"])
def test_a_record_as_session_documents_have_it_is_redacted_as_its_text_is(name: str) -> None:
    protocol, stream = FIELDS[name]
    answer = protocol.join([(5.0, stream([": ", SECRET[:9], f"{SECRET[9:]}."]))])
    said: dict[str, Any] = {
        conventions.STREAM_CHUNKS: answer.chunks,
        conventions.OUTPUT_MESSAGES: answer.messages,
        "spanreel.response.fields": answer.provider_fields,
    }
    given = json.loads(json.dumps(said))
    left = redact_attributes(given).attributes
    assert not {SECRET[:9], f"{SECRET[9:]}."} & set(texts(left))
    assert given == json.loads(json.dumps(said))
