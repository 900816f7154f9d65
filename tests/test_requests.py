"""Model calls over requests: recorded however the response is read, and answered in a replay with no connection."""

from __future__ import annotations

import copy
import gc
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

import spanreel
from recording import attribute, content, recorded_in, recording
from spanreel import testing
from spanreel_collector import convert_files

WORDS = "one two three four five six"
ASKED = {"model": "m", "messages": [{"role": "user", "content": "Count."}], "stream": True}
PLAIN = {**ASKED, "stream": False}


def _into(response: Any) -> bytes:
    parts, buffer = [], bytearray(50)
    while size := response.raw.readinto(buffer):
        parts.append(bytes(buffer[:size]))
    return b"".join(parts)


def _amounts(response: Any) -> bytes:
    parts = []
    while part := response.raw.read(50, decode_content=True):
        parts.append(part)
    return b"".join(parts)


def _small(response: Any) -> bytes:
    pieces = list(response.iter_content(7))
    assert max(map(len, pieces)) == 7
    return b"".join(pieces)


READERS: list[Callable[[Any], bytes]] = [
    lambda response: bytes(response.content),
    lambda response: str(response.text).encode(),
    lambda response: b"".join(response.iter_content(None)),
    b"".join,
    lambda response: b"\n".join(response.iter_lines()),
    lambda response: bytes(response.raw.read(decode_content=True)),
    lambda response: b"".join(response.raw.stream(16, decode_content=True)),
    _small,
    _amounts,
    _into,
]


def ask(root: str, read: Callable[[Any], Any], **given: Any) -> Any:
    with (
        requests.Session() as session,
        session.post(
            f"{root}/chat/completions", **{**({} if "data" in given else {"json": ASKED}), "stream": True, **given}
        ) as response,
    ):
        return read(response)


DECODING = [number for number, read in enumerate(READERS) if read is not _into]


@pytest.mark.parametrize(
    ("number", "gzip"), [(number, False) for number in range(len(READERS))] + [(number, True) for number in DECODING]
)
def test_a_stream_is_recorded_however_it_is_read_and_comes_again(number: int, gzip: bool, tmp_path: Path) -> None:
    read, file = READERS[number], tmp_path / "traces.jsonl"
    with testing.ScriptedProvider([testing.text(WORDS), testing.text(WORDS)], gzip=gzip) as provider:
        plain = ask(provider.base_url, read)
        recorded = recorded_in(file, lambda: ask(provider.base_url, read))
    assert recorded.replace(b"chatcmpl-2", b"chatcmpl-1") == plain
    (session,) = convert_files([str(file)]).sessions
    call = session.runs[0].turns[0].model_call
    assert call is not None
    assert (call.protocol, call.streamed, call.complete) == ("openai_chat", True, True)
    assert session.messages[call.output[0]].parts == [{"type": "text", "content": WORDS}]
    with spanreel.replay(session) as playing:
        assert ask("http://127.0.0.1:9/v1", read) == recorded
    assert str(playing.verdict) == "PASS"


@pytest.mark.parametrize("form", ["json", "text", "bytes"])
def test_a_plain_call_is_recorded_in_whatever_form_its_body_is_given(form: str) -> None:
    text = json.dumps(PLAIN)
    forms: dict[str, Any] = {"json": {"json": PLAIN}, "text": {"data": text}, "bytes": {"data": text.encode()}}
    with testing.ScriptedProvider([testing.text(WORDS)]) as provider, recording() as rec:
        response = ask(provider.base_url, lambda response: response, **forms[form], stream=False)
        assert response.json()["choices"][0]["message"]["content"] == WORDS
        assert pickle.loads(pickle.dumps(response)).content == copy.deepcopy(response).content == response.content
    assert content(rec.one("chat"), "gen_ai.output.messages")[0]["parts"] == [{"type": "text", "content": WORDS}]


def test_a_stream_left_early_or_dropped_is_finished_not_failed() -> None:
    with testing.ScriptedProvider([testing.text(WORDS)] * 3) as provider, recording() as rec:
        ask(provider.base_url, lambda response: next(response.iter_lines()))
        ask(provider.base_url, lambda _response: None)
        response = requests.post(f"{provider.base_url}/chat/completions", json=ASKED, stream=True, timeout=60)
        assert next(response.iter_content(5))
        assert len(rec.of("chat")) == 2
        del response
        gc.collect()
        assert [attribute(span, "error.type") for span in rec.of("chat")] == [None] * 3


@pytest.mark.parametrize("place", ["hook", "after", "nowhere"])
def test_a_failure_is_an_error_and_raised_again_where_the_program_asks_for_it(place: str, tmp_path: Path) -> None:
    def judge(response: Any, **_: Any) -> None:
        response.raise_for_status()

    def refused(root: str) -> str:
        def read(response: Any) -> str:
            if place == "after":
                response.raise_for_status()
            return f"{response.status_code} was given: {'too long' in response.text}"

        try:
            return str(ask(root, read, json=PLAIN, hooks={"response": judge} if place == "hook" else None))
        except requests.HTTPError as error:
            return f"{error.response.status_code} {error.response.reason} was raised"

    file = tmp_path / "traces.jsonl"
    with testing.ScriptedProvider([testing.error(400, "too long")]) as provider:
        said = recorded_in(file, lambda: refused(provider.base_url))
    assert said == ("400 was given: True" if place == "nowhere" else "400 Bad Request was raised")
    (session,) = convert_files([str(file)]).sessions
    (call,) = session.runs[0].model_calls()
    assert call.status == "error"
    with spanreel.replay(session) as playing:
        assert refused("http://127.0.0.1:9/v1") == said
    assert str(playing.verdict) == "PASS"


def test_http_that_is_no_model_exchange_passes_and_leaves_nothing() -> None:
    with testing.ScriptedProvider([]) as provider, recording() as rec:
        assert requests.get(provider.base_url, timeout=60).status_code == 404
        assert requests.post(f"{provider.base_url}/upload", files={"a": b"b"}, timeout=60).status_code == 404
    assert rec.spans == []
