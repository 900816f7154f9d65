"""Streams whose events repeat one another: taken at once, they come to what they come to one by one."""

from __future__ import annotations

import json
import os
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from effort import growth
from exchange_cases import events_of
from spanreel.exchange import ModelProtocol, Piece
from spanreel.protocols import anthropic, openai_chat, openai_responses
from spanreel.protocols.residue import same

often = settings(
    max_examples=int(os.environ.get("SPANREEL_EXAMPLES", "60")), deadline=None, suppress_health_check=list(HealthCheck)
)
streamed = pytest.mark.parametrize(
    "protocol", [openai_chat, openai_responses, anthropic], ids=lambda protocol: protocol.NAME
)

pieces_of_text = st.sampled_from(["", "Hel", 'a "word"', "\\", "\n", "\u20ac", "\U0001f600", '","x":"', "}\n\ndata: "])
SURROGATE = re.compile("[\ud800-\udfff]")
lone = st.sampled_from(["\ud83d", "\ude00"])


def chat_events(texts: Sequence[str], padded: bool) -> list[Any]:
    """What OpenAI streams for a text in these pieces, and a call whose arguments come in the same."""

    def chunk(delta: dict[str, Any], number: int, finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        padding = {"obfuscation": "x" * (number % 5)} if padded else {}
        return {"id": "c", "object": "chat.completion.chunk", "created": 1, "choices": [choice], **padding}

    call = {"index": 0, "id": "t", "type": "function", "function": {"name": "f", "arguments": ""}}
    return [
        chunk({"role": "assistant", "content": "", "refusal": None}, 0),
        *(chunk({"content": text}, number) for number, text in enumerate(texts)),
        chunk({"tool_calls": [call]}, 0),
        *(
            chunk({"tool_calls": [{"index": 0, "function": {"arguments": text}}]}, number)
            for number, text in enumerate(texts)
        ),
        chunk({}, 0, "tool_calls"),
    ]


def response_events(texts: Sequence[str], padded: bool) -> list[Any]:
    """What OpenAI streams for a response with this text."""
    place = {"item_id": "m", "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "text": "".join(texts), "annotations": []}
    item = {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    response = {"id": "r", "object": "response", "status": "completed", "output": [item]}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        *({"type": "response.output_text.delta", **place, "delta": text, "logprobs": []} for text in texts),
        {"type": "response.output_text.done", **place, "text": "".join(texts), "logprobs": []},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response},
    ]
    return [
        {**event, "sequence_number": number, **({"obfuscation": "y" * (number % 7)} if padded else {})}
        for number, event in enumerate(events)
    ]


def message_events(texts: Sequence[str], _: bool) -> list[Any]:
    """What Anthropic streams for a message with this text, and with a tool's input in the same pieces."""
    message: dict[str, Any] = {"id": "m", "type": "message", "role": "assistant", "model": "claude", "content": []}
    message |= {"stop_reason": None, "stop_sequence": None}
    return [
        {"type": "message_start", "message": {**message, "usage": {"input_tokens": 1, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": t}} for t in texts),
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "t", "name": "f"}},
        *(
            {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": text}}
            for text in texts
        ),
        {"type": "content_block_stop", "index": 1},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 9},
        },
        {"type": "message_stop"},
    ]


EVENTS = {
    openai_chat.NAME: chat_events,
    openai_responses.NAME: response_events,
    anthropic.NAME: message_events,
}


def written(event: Any, line_end: str, space: str, ascii_only: bool, indent: str = "") -> bytes:
    """An event as a server writes it; an ``indent`` inside the JSON changes its bytes and not its meaning."""
    data = indent + json.dumps(event, ensure_ascii=ascii_only)
    name = [f"event:{space}{event['type']}"] if "type" in event else []
    lines = line_end.join([*name, f"data:{space}{data}", "", ""])
    return lines.encode("utf-8", "surrogatepass")


def cut(stream: bytes, places: Sequence[int]) -> list[Piece]:
    """The stream in pieces, each a little later than the one before."""
    bounds = sorted({0, len(stream), *(place % len(stream) for place in places)})
    return [(number * 1.5, stream[start:stop]) for number, (start, stop) in enumerate(pairwise(bounds))]


@pytest.mark.slow
@streamed
@often
@given(data=st.data())
def test_events_taken_at_once_come_to_what_they_come_to_one_by_one(
    protocol: ModelProtocol, data: st.DataObject
) -> None:
    texts = data.draw(st.lists(pieces_of_text | st.text(max_size=5) | lone, min_size=1, max_size=40))
    events = EVENTS[protocol.NAME](texts, data.draw(st.booleans()))
    form = (
        data.draw(st.sampled_from(["\n", "\r\n", "\r"])),
        data.draw(st.sampled_from([" ", ""])),
        data.draw(st.booleans()),
    )
    blocks = [written(event, *form) for event in events]
    places = data.draw(st.lists(st.integers(0, 10**6), max_size=30))
    pieces = cut(b"".join(blocks), places) if places else [(float(n), block) for n, block in enumerate(blocks)]
    arrived = list(accumulate(len(piece) for _, piece in pieces))
    times = [pieces[bisect_left(arrived, end)][0] for end in accumulate(map(len, blocks))]
    # Each differs from the one before it by white space, so that none can be taken as its repetition; what is no JSON
    # to us, with half a surrogate pair, is recorded as it stands, white space and all.
    halves = [SURROGATE.search(json.dumps(event, ensure_ascii=False)) is not None for event in events]
    indents = ["" if half else " " * (number % 2) for number, half in enumerate(halves)]
    apart = [written(event, *form, indent) for event, indent in zip(events, indents, strict=True)]

    answer = protocol.join(pieces)
    assert answer == protocol.join(list(zip(times, apart, strict=True)))
    again = protocol.split(answer)
    assert [time for time, _ in again] == times
    assert protocol.join(again) == answer
    if not any(halves):
        assert same(events_of(b"".join(piece for _, piece in again)), events)


def test_a_long_stream_has_a_short_record() -> None:
    texts = [f"word{number} " for number in range(200)]
    for protocol, most in ((openai_chat, 9), (openai_responses, 7), (anthropic, 11)):
        blocks = [written(event, "\n", " ", False) for event in EVENTS[protocol.NAME](texts, True)]
        answer = protocol.join([(number * 0.25, block) for number, block in enumerate(blocks)])
        assert len(answer.chunks) <= most
        assert "word" not in json.dumps(answer.chunks)
    assert answer.chunks[3] == [
        0.75,
        {
            "$repeats": {
                "after": [250] * 198,
                "values": [[["delta", "text"], [6] * 9 + [7] * 90 + [8] * 100]],
            }
        },
    ]


@pytest.mark.parametrize(
    "repeats",
    [
        None,
        {},
        {"after": 3, "values": []},
        {"after": [1, "x"], "values": []},
        {"after": [1], "values": [[["no", "such"], {"all": 1}]]},
        {"after": [1], "values": [[["delta", "text"], [1]]]},
        {"after": [1], "values": [[["delta", "text"], {"from": 1, "by": 0}]]},
        {"after": [1], "values": [[["delta", "text"], {"from": 1}]]},
        {"after": [1], "values": [[["choices", 0, "delta", "content"], 7]]},
    ],
)
@pytest.mark.parametrize("at", [0, 3])
@streamed
def test_repeats_that_repeat_nothing_are_not_used(protocol: ModelProtocol, at: int, repeats: Any) -> None:
    blocks = [written(event, "\n", " ", False) for event in EVENTS[protocol.NAME](["a", "b", "c", "d", "e"], False)]
    answer = protocol.join([(0.0, b"".join(blocks))])
    odd = replace(answer, chunks=(*answer.chunks[:at], [0.0, {"$repeats": repeats}], *answer.chunks[at + 1 :]))
    again = protocol.join(protocol.split(odd))
    assert replace(again, chunks=()) == replace(answer, chunks=())


def test_a_record_with_a_chunk_an_event_as_it_was_written_before_is_still_read() -> None:
    events = message_events(list("abcdef"), False)
    answer = anthropic.join([(float(n), written(event, "\n", " ", False)) for n, event in enumerate(events)])
    long: list[Any] = []
    for chunk in answer.chunks:
        if "$repeats" in chunk[1]:
            long += [[chunk[0] + number, "content_block_delta", {}] for number in range(5)]
        else:
            long.append(chunk)
    assert len(long) == len(events)
    assert anthropic.split(replace(answer, chunks=tuple(long))) == anthropic.split(answer)


@streamed
def test_numbers_that_do_not_count_up_are_kept(protocol: ModelProtocol) -> None:
    events = EVENTS[protocol.NAME](list("abcdefgh"), True)
    for position, event in enumerate(events):
        event["sequence_number"] = 7 + position if position % 5 else 3
    answer = protocol.join([(0.0, written(event, "\n", " ", False)) for event in events])
    assert same(events_of(b"".join(piece for _, piece in protocol.split(answer))), events)
    for position, event in enumerate(events):
        event["sequence_number"] = 100 + position
    answer = protocol.join([(0.0, written(event, "\n", " ", False)) for event in events])
    assert same(events_of(b"".join(piece for _, piece in protocol.split(answer))), events)


@pytest.mark.slow
def test_what_only_seems_to_be_repeated_is_read_event_by_event() -> None:
    """The work stays in proportion to the stream, whatever stands in it."""

    def chunk(index: int, text: str, **more: Any) -> dict[str, Any]:
        return {"id": "c", "choices": [{"index": index, "delta": {"content": text}, "finish_reason": None}], **more}

    streams = {
        "two choices at once": [chunk(number % 2, "ab") for number in range(1200)],
        "half a surrogate pair in each": [chunk(0, "\ud83d") for _ in range(1200)],
        "something else every other time": [chunk(0, "ab", n=number % 2) for number in range(1200)],
        "padding every other time": [chunk(0, "ab", **({"obfuscation": "x"} if n % 2 else {})) for n in range(1200)],
    }
    for name, events in streams.items():
        body = b"".join(written(event, "\n", " ", True) for event in events)
        whole = body.decode("utf-8")
        grown = growth(lambda text: openai_chat.join([(0.0, text.encode())]), whole[: len(whole) // 8], whole)
        assert grown < 24, (name, grown)  # were it the square, it would be 64 times as much
