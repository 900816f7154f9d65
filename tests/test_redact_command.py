"""`spanreel redact`: files of traces and sessions, redacted as what is recorded is, and explained."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import zstandard
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext, TraceFlags

from conftest import cases
from kinds import Scene, hand_written, record, script
from spanreel import conventions as names
from spanreel.cli import main
from spanreel.presets import DEFAULT
from spanreel.redaction import make_policy
from spanreel.rules import Form, Rule
from spanreel.session_files import load_sessions, write_session
from spanreel_collector.conversion.convert import convert_files
from spanreel_collector.redaction.sessions import redact_session
from wire_server import calls, completion

JANE = "jane.doe" + "@example.org"
KEY = "sk-" + "fake0123456789abcdef"


def redact(*words: str) -> int:
    return main(["redact", *words])


def pairs(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": name, "value": value} for name, value in attributes.items()]


def request() -> dict[str, Any]:
    """An export request with a secret in every place of it."""
    said = f"{KEY} of {JANE}"
    text = {"stringValue": said}
    span = {
        "traceId": "a" * 32,
        "spanId": "b" * 16,
        "name": f"chat {said}",
        "traceState": f"a={KEY}",
        "startTimeUnixNano": "1793700000000000000",
        "endTimeUnixNano": "1793700001000000000",
        "attributes": pairs(
            {
                "plain": {"intValue": "5"},
                "text": text,
                "list": {"arrayValue": {"values": [text, {"boolValue": True}, {"doubleValue": 1.5}]}},
                "map": {"kvlistValue": {"values": [{"key": "api_key", "value": {"stringValue": "hunter2"}}]}},
                "json": {"stringValue": json.dumps({"to": [JANE], "n": 4111111111111111})},
                "image": {"stringValue": "data:image/png;base64," + "iVBORw0KGgo" + "A" * 121},
                "bad": {"strangeValue": said},
            }
        ),
        "events": [{"timeUnixNano": "1", "name": said, "attributes": pairs({"exception.message": text})}],
        "links": [{"traceId": "c" * 32, "spanId": "d" * 16, "attributes": pairs({"note": text})}],
        "status": {"code": 2, "message": said},
    }
    log = {"timeUnixNano": "1", "body": {"kvlistValue": {"values": pairs({"said": text})}}, "severityText": said}
    scope = {"name": "somebody's", "version": "1", "attributes": pairs({"by": text})}
    resource = {"attributes": pairs({"service.name": {"stringValue": "app"}, "enduser.id": {"stringValue": JANE}})}
    return {
        "resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": [span]}]}],
        "resourceLogs": [{"resource": resource, "scopeLogs": [{"scope": scope, "logRecords": [log]}]}],
    }


@pytest.mark.parametrize("packed", [False, True])
def test_no_secret_is_left_in_any_place_of_an_export_request(packed: bool, tmp_path: Path) -> None:
    file, out = tmp_path / "traces.jsonl", tmp_path / "out.jsonl"
    line = json.dumps(request()).encode() + b"\n"
    file.write_bytes(gzip.compress(line * 2) if packed else line * 2)
    assert redact(str(file), "-o", str(out)) == 0
    written = out.read_text()
    for secret in (JANE, KEY, "hunter2", "4111111111111111", "iVBORw0KGgo"):
        assert secret not in written
    first, second = [json.loads(one) for one in written.splitlines()]
    assert first == second
    span = first["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    said = {pair["key"]: pair["value"] for pair in span["attributes"]}
    assert said["plain"] == {"intValue": "5"}
    assert said["bad"] == {"stringValue": "[redacted]"}
    assert json.loads(said[names.REDACTION]["stringValue"])["policy"] == DEFAULT.label
    marks = json.loads(said[names.FIDELITY]["stringValue"])
    assert marks == dict.fromkeys(("text", "list", "map", "json", "image", "bad"), "redacted")
    assert redact(str(out), "-o", str(tmp_path / "again.jsonl")) == 0
    assert (tmp_path / "again.jsonl").read_text() == written
    assert convert_files([str(out)]).faults == ()


def test_an_explanation_says_where_and_by_which_rule_and_no_value(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_text(json.dumps(request()) + "\n")
    assert redact("--explain", str(file)) == 0
    said = capsys.readouterr()
    for secret in (JANE, KEY, "hunter2", "4111111111111111"):
        assert secret not in said.out + said.err
    span = f"{file}:1 /resourceSpans/0/scopeSpans/0/spans/0"
    assert f"{span}/name: provider key (mask)" in said.out
    assert f"{span}/attributes/json/to/0: e-mail (digest)" in said.out
    assert f"{span}/attributes/json/n: payment card (digest)" in said.out
    assert f"{span}/attributes/map/values/api_key: credential name (mask)" in said.out
    assert f"{span}/events/0/attributes/exception.message: provider key (mask)" in said.out
    assert "by policy spanreel.default/2" in said.err
    assert file.read_text() == json.dumps(request()) + "\n"


def test_an_explanation_names_binary_content_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_text(json.dumps(request()) + "\n")
    assert redact("--explain", str(file)) == 0
    said = capsys.readouterr()
    assert f"{file}:1 /resourceSpans/0/scopeSpans/0/spans/0/attributes/image: binary content (digest)" in said.out
    assert "1 by binary content (digest)" in said.err


def exported() -> bytes:
    """A request in protobuf, with a secret in it."""
    context = SpanContext(1, 2, is_remote=False, trace_flags=TraceFlags(1))
    span = ReadableSpan("chat", context, attributes={"said": f"{KEY} of {JANE}", "count": 5}, start_time=1, end_time=2)
    return bytes(encode_spans([span]).SerializeToString())


def framed(*requests: bytes) -> bytes:
    return b"".join(len(one).to_bytes(4, "big") + one for one in requests)


ZSTD = zstandard.ZstdCompressor()


@pytest.mark.parametrize(
    ("written", "requests"),
    [
        (exported(), 1),
        (framed(exported(), exported()), 2),
        (gzip.compress(framed(exported())), 1),
        (framed(ZSTD.compress(exported()), ZSTD.compress(json.dumps(request()).encode())), 2),
        (ZSTD.compress(json.dumps(request()).encode() + b"\n"), 1),
    ],
)
def test_all_that_a_collector_writes_is_redacted_as_json_lines(written: bytes, requests: int, tmp_path: Path) -> None:
    file, out = tmp_path / "traces", tmp_path / "out.jsonl"
    file.write_bytes(written)
    assert redact(str(file), "-o", str(out)) == 0
    lines = out.read_text().splitlines()
    assert len(lines) == requests
    assert JANE not in out.read_text()
    assert KEY not in out.read_text()
    assert convert_files([str(out)]).faults == ()
    span = json.loads(lines[0])["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    marks = json.loads(next(one["value"] for one in span["attributes"] if one["key"] == names.FIDELITY)["stringValue"])
    assert "redacted" in marks.values()


@pytest.mark.parametrize(
    "written",
    [
        framed(exported())[:-3],
        framed(exported()[:-3]),
        ZSTD.compress(b'{"resourceSpans": []}\nno JSON\n'),
        ZSTD.compress(json.dumps(request()).encode())[:-9],
    ],
)
def test_a_file_of_which_some_cannot_be_read_is_not_redacted_in_part(
    written: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "traces", tmp_path / "out.jsonl"
    file.write_bytes(written)
    assert redact(str(file), "-o", str(out)) != 0
    assert not out.exists()
    assert str(file) in capsys.readouterr().err


def test_a_session_is_redacted_field_by_field_and_says_so(tmp_path: Path) -> None:
    def find(email: str) -> dict[str, str]:
        return {"name": "Jane", "email": email}

    scene = Scene(
        script(calls(("call_1", "find", {"email": JANE})), completion(f"It is {JANE}.")),
        [find],
        question=f"Who is {JANE}?",
    )
    open_policy = make_policy("nothing/1", extends=None)
    plain = record(lambda: hand_written(scene), tmp_path, redaction=open_policy)
    assert JANE in write_session(plain)
    file, out = tmp_path / "session.json", tmp_path / "redacted.json"
    file.write_text(write_session(plain))
    assert redact(str(file), "-o", str(out)) == 0
    assert JANE not in out.read_text()
    (session,) = load_sessions(out)
    assert session.redaction.policy == DEFAULT.label
    assert len(session.redaction.key_ids) == 1
    assert session.revision == plain.revision + 1
    assert not session.replay.eligible
    (run,) = session.runs
    (tool,) = run.tool_calls()
    assert {name: state.value for name, state in tool.fidelity.items()} == {
        "requested": "redacted",
        "arguments": "redacted",
        "result": "redacted",
    }
    first, last = run.model_calls()
    assert (first.fidelity["input"], first.fidelity["output"]) == ("redacted", "redacted")
    assert last.fidelity["output"] == "redacted"
    # The same by way of the recorder: what a collector redacts later has the digests that the recorder would have made.
    recorded = record(lambda: hand_written(scene), tmp_path)
    assert recorded.messages == session.messages
    again = tmp_path / "again.json"
    assert redact(str(out), "-o", str(again)) == 0
    assert again.read_text() == out.read_text()


def test_what_a_tool_made_of_its_arguments_is_redacted_like_them(tmp_path: Path) -> None:
    def book(order: dict[str, str]) -> str:
        order["seat"] = "window by the wing"
        return "booked"

    scene = Scene(
        script(calls(("call_1", "book", {"order": {"train": "ICE 5"}})), completion("Booked.")),
        [book],
        question="Book.",
    )
    seats = make_policy("seats/1", [Rule(Form.MASK, tools=("book.arguments.order.seat",))], extends=None)
    plain = record(lambda: hand_written(scene), tmp_path, redaction=make_policy("nothing/1", extends=None))
    (call,) = plain.runs[0].tool_calls()
    assert call.arguments_after == {"order": {"train": "ICE 5", "seat": "window by the wing"}}
    early = record(lambda: hand_written(scene), tmp_path, redaction=seats)
    late = redact_session(json.loads(write_session(plain)), seats)
    for session in (early, late):
        (call,) = session.runs[0].tool_calls()
        assert call.arguments_after is not None
        assert "window" not in write_session(session)
        assert call.fidelity["arguments_after"] == "redacted"


def test_a_dump_without_anything_to_hide_comes_out_as_it_went_in(tmp_path: Path) -> None:
    for file in sorted(cases("reports").glob("00*.jsonl"))[:5]:
        out = tmp_path / file.name
        assert redact(str(file), "-o", str(out), "--policy", "credentials") == 0
        before = [json.loads(line) for line in file.read_text().splitlines() if line.strip()]
        after = [json.loads(line) for line in out.read_text().splitlines()]
        if "redact" not in out.read_text():
            assert after == before


def test_what_cannot_be_read_is_refused_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "traces.jsonl", tmp_path / "out.jsonl"
    file.write_text('{"resourceSpans": []}\n{"cut')
    assert redact(str(file), "-o", str(out)) == 1
    assert "line 2 is no JSON" in capsys.readouterr().err
    assert redact(str(tmp_path / "missing"), "-o", str(out)) == 1
    assert redact() == 64
    assert redact(str(file), "--policy", "strict") == 1
    assert "give default, mask, credentials, or a file that ends in .toml" in capsys.readouterr().err
    assert not out.exists()


def test_a_new_key_stands_before_the_older_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPANREEL_REDACTION_KEY_FILE", str(tmp_path / "keys" / "redaction"))
    assert redact("--new-key") == redact("--new-key") == 0
    said = capsys.readouterr().out
    file = tmp_path / "keys" / "redaction"
    assert len(file.read_text().splitlines()) == 2
    assert file.stat().st_mode & 0o777 == 0o600
    for secret in file.read_text().splitlines():
        assert secret not in said
