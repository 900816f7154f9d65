"""Binary content leaves as digest, type and size, wherever it stands; what only looks like it stays."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanreel import json_text
from spanreel.binary import STAND_IN, stand_in, without_binary, without_binary_text
from spanreel.media_types import media_type

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4
JPEG = b"\xff\xd8\xff\xe0" + bytes(range(255, 0, -1)) * 4
PDF = b"%PDF-1.7\n" + bytes(range(200))
RAW = hashlib.sha512(b"noise").digest() * 5


def b64(content: bytes) -> str:
    return base64.b64encode(content).decode()


SHAPES: dict[str, Any] = {
    "chat image": {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{b64(PNG)}"}},
    "chat audio": {"type": "input_audio", "input_audio": {"data": b64(RAW), "format": "mp3"}},
    "chat audio answer": {"audio": {"id": "audio_1", "data": b64(RAW), "expires_at": 1, "transcript": "hi"}},
    "chat file": {
        "type": "file",
        "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{b64(PDF)}"},
    },
    "responses image": {"type": "input_image", "image_url": f"data:image/jpeg;base64,{b64(JPEG)}"},
    "responses generated": {"type": "image_generation_call", "result": b64(RAW)},
    "images api": {"data": [{"b64_json": b64(RAW)}]},
    "anthropic": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": b64(PNG)}},
    "gemini": {"inlineData": {"mimeType": "audio/wav", "data": b64(RAW)}},
    "gemini sdk": {"inline_data": {"mime_type": "audio/wav", "data": base64.urlsafe_b64encode(RAW).decode()}},
    "vertex": {"bytesBase64Encoded": b64(RAW)},
    "bedrock": {"image": {"format": "png", "source": {"bytes": b64(PNG)}}},
    "genai convention": {"type": "blob", "modality": "image", "mime_type": "image/png", "content": b64(PNG)},
    "genai blob of text": {
        "type": "blob",
        "modality": "document",
        "mime_type": "text/plain",
        "content": b64(b"Jane Doe"),
    },
    "mcp resource": {"uri": "file:///x", "mimeType": "application/pdf", "blob": b64(RAW)},
    "ai sdk": {"type": "file", "mediaType": "application/pdf", "data": b64(RAW)},
    "ai sdk image": {"type": "image", "image": b64(JPEG)},
    "python bytes": {"$bytes": b64(RAW)},
    "a body that is no text": {"$base64": b64(RAW)},
    "node buffer": {"type": "Buffer", "data": list(RAW)},
    "javascript array": {str(number): byte for number, byte in enumerate(RAW)},
    "list of bytes": {"picture": list(PNG)},
    "bare": {"picture": b64(PNG)},
    "unpadded": {"picture": b64(PDF).rstrip("=")},
    "wrapped": {"type": "blob", "content": "\n".join(b64(RAW)[at : at + 76] for at in range(0, len(b64(RAW)), 76))},
    "hexadecimal": {"picture": PNG.hex()},
    "bytes": {"picture": PNG},
    "tuple": ({"picture": PNG},),
    "svg": {"url": "data:image/svg+xml,%3Csvg%3EJane%3C/svg%3E"},
    "in markdown": {"text": f"see ![it](data:image/png;base64,{b64(PNG)}) there"},
    "in a repr": {"text": f"Image(data='{b64(PNG)}', raw={PNG!r})"},
    "in json in json": {"input": json.dumps({"inner": json.dumps({"url": f"data:image/png;base64,{b64(PNG)}"})})},
}


def flat(value: Any) -> str:
    return repr(value)


@pytest.mark.parametrize("shape", SHAPES)
def test_no_content_is_left_in_any_shape(shape: str) -> None:
    value = SHAPES[shape]
    replaced = without_binary(value)
    assert STAND_IN.search(flat(replaced))
    for content in (PNG, JPEG, PDF, RAW):
        forms = (b64(content)[12:60], content[8:24].hex(), repr(content)[24:44], ", ".join(map(str, content[8:40])))
        assert [form for form in forms if form in flat(replaced)] == []
    assert "Jane" not in flat(replaced)
    assert without_binary(replaced) is replaced


IN_JSON = [shape for shape in SHAPES if shape not in {"bytes", "tuple"}]


@pytest.mark.parametrize("shape", IN_JSON)
def test_json_text_is_searched_as_the_value_is(shape: str) -> None:
    value = SHAPES[shape]
    assert json.loads(without_binary_text(json.dumps(value))) == without_binary(value)
    listed = without_binary_text(json_text.encode_list([{"type": "text", "content": "hello"}, value]))
    assert isinstance(listed, json_text.Listed)
    assert json.loads(listed) == [{"type": "text", "content": "hello"}, without_binary(value)]


@pytest.mark.parametrize("content", [PNG, RAW, PDF, b"\x00"])
def test_equal_content_has_equal_stand_ins_in_every_shape(content: bytes) -> None:
    expected = stand_in(content)
    assert (
        expected == f"[binary {media_type(content)} {len(content)} bytes sha256:{hashlib.sha256(content).hexdigest()}]"
    )
    assert without_binary({"type": "blob", "content": b64(content)}) == {"type": "blob", "content": expected}
    assert without_binary({"$bytes": b64(content)}) == {"$bytes": expected}
    assert without_binary(f"data:image/png;base64,{b64(content)}") == f"data:image/png;base64,{expected}"
    assert without_binary(content) == expected
    assert without_binary({"type": "Buffer", "data": list(content)}) == {"type": "Buffer", "data": expected}


@pytest.mark.parametrize(
    "value",
    [
        "",
        "an image in base64, of a blob, with bytes",
        {"format": "json", "data": "abcd"},
        {"format": "markdown", "body": "hello123"},
        {"mimeType": "text/plain", "content": "abcd"},
        {"mime_type": "application/json", "content": "eyJh"},
        {"type": "text", "text": "data", "format": "png", "data": "abcd"},
        {"type": "reasoning", "encrypted_content": b64(RAW)},
        {"type": "thinking", "thinking": "so", "signature": b64(RAW)},
        {"type": "redacted_thinking", "data": b64(RAW)},
        {"thoughtSignature": b64(RAW)},
        {"embedding": b64(RAW), "index": 0, "object": "embedding"},
        {"embedding": [0.5] * 100},
        {"scores": [90, 80, 70] * 30},
        {"token": "Hi", "logprob": -0.1, "bytes": [72, 105]},
        {"bytes": "1024"},
        {"sha256": hashlib.sha256(RAW).hexdigest()},
        {"url": "https://uploads/" + "a" * 100, "image": "https://h/a.png"},
        {"url": "data:text/plain,hello"},
        {"0": "a", "1": "b"},
        {"result": "c3VjY2Vzcw==", "format": "date"},
        {"text": "print(b'abc', b'\\x00')"},
        [1, 2, 3],
        json.dumps({"type": "blob", "content": stand_in(PNG)}),
        "data:image/png;base64," + stand_in(PNG),
    ],
)
def test_what_only_looks_like_it_stays(value: Any) -> None:
    assert without_binary(value) is value
    if not isinstance(value, str):
        text = json.dumps(value)
        assert without_binary_text(text) is text


def test_a_stand_in_that_comes_back_as_content_stands_for_itself() -> None:
    fed_back = stand_in(PNG).encode()
    assert without_binary(fed_back) == stand_in(PNG)
    assert without_binary({"$bytes": b64(fed_back)}) == {"$bytes": stand_in(PNG)}


def test_content_can_be_kept_by_its_digest() -> None:
    kept: dict[str, bytes] = {}
    without_binary_text(json.dumps([SHAPES["anthropic"], SHAPES["chat audio"]]), kept.__setitem__)
    assert kept == {hashlib.sha256(content).hexdigest(): content for content in (PNG, RAW)}


@given(st.binary(min_size=1, max_size=400), st.sampled_from(["image/png", "audio/wav", "application/pdf"]))
def test_whatever_the_bytes_are_a_declared_payload_is_replaced(content: bytes, kind: str) -> None:
    for value in (
        {"type": "image", "source": {"type": "base64", "media_type": kind, "data": b64(content)}},
        {"inlineData": {"mimeType": kind, "data": b64(content)}},
    ):
        assert stand_in(content) in flat(without_binary(value))
    assert stand_in(content) in without_binary_text(f"text data:{kind};base64,{b64(content)} text")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text() | st.binary(),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.sampled_from(["data", "type", "mimeType", "x", "bytes"]), inner)
        ),
        max_leaves=20,
    )
)
def test_replacing_again_changes_nothing(value: Any) -> None:
    once = without_binary(value)
    assert without_binary(once) == once


def test_the_search_is_linear_in_the_text() -> None:
    for piece in ("data:image/png;base64,", "iVBORw0KGgo", "b'\\x00", "a" * 50 + " ", "AAAAIGZ0", "base64,data:"):
        short, long = piece * 2000, piece * 20_000
        times = []
        for text in (short, long):
            start = time.thread_time()
            without_binary(text)
            times.append(time.thread_time() - start)
        assert times[1] < max(times[0] * 60, 0.5), piece


@given(st.text(alphabet='aZ9 /,"é\\', max_size=20), st.sampled_from(IN_JSON), st.text(max_size=20))
def test_binary_content_is_seen_whatever_stands_around_it(before: str, shape: str, after: str) -> None:
    text = json.dumps({"before": before, "value": SHAPES[shape], "after": after}, ensure_ascii=False)
    found = json.loads(without_binary_text(text))
    assert found["value"] == json.loads(without_binary_text(json.dumps({"value": SHAPES[shape]})))["value"]
    assert STAND_IN.search(json.dumps(found["value"]))
