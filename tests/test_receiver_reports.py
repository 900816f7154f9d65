"""Public reports of what went wrong when traces were received, each with its input among the shared cases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import cases
from otlp_doors import JSON, Doors, doors
from spanreel.model import Status


def lines(name: str) -> list[bytes]:
    return [line for line in cases(f"reports/{name}.jsonl").read_bytes().splitlines() if line.strip()]


def post(door: Doors, name: str) -> None:
    for line in lines(name):
        assert door.post(line, JSON).content == b"{}"


def test_022_a_bad_span_costs_itself_and_the_sender_is_told(tmp_path: Path) -> None:
    with doors(tmp_path) as door:
        (line,) = lines("022-poison-span-batch")
        response = door.post(line, JSON)
        assert response.status_code == 200
        told = response.json()["partialSuccess"]
        assert told["rejectedSpans"] == "2"
        assert "traceId is missing" in told["errorMessage"]
        assert "spanId 'abcd' is not 16 hex digits" in told["errorMessage"]
        assert [span.span_id[-1] for span in door.spans()] == [1, 2, 5]
        (session,) = door.sessions().sessions
        assert len(door.store.refusals("default")) == 2
        assert session.key.value == "a5100000000000000000000000000016"


def test_023_what_is_omitted_takes_its_default_and_nothing_is_dropped_in_silence(tmp_path: Path) -> None:
    with doors(tmp_path) as door:
        post(door, "023-omitted-defaults")
        spans = door.spans()
        assert [span.kind for span in spans] == [0, 3, 0]
        assert (spans[0].parent_span_id, spans[2].end_time_unix_nano) == (b"", 0)
        assert (spans[1].status.code, spans[1].status.message) == (2, "boom")
        conversion = door.sessions()
        assert conversion.faults == ()
        (session,) = conversion.sessions
        assert session.source.get("service_name") is None


def test_025_nested_values_and_json_text_give_the_same_session(tmp_path: Path) -> None:
    with doors(tmp_path) as door:
        post(door, "025-anyvalue-nesting")
        one, other = door.sessions().sessions
        assert one.messages == other.messages
        assert one.messages
        said = {
            pair.key: pair.value for span in door.spans() for pair in span.attributes if pair.key.startswith("demo.")
        }
        assert said["demo.raw"].bytes_value == b"\x00\x01\xff"
        assert said["demo.empty_list"].WhichOneof("value") == "array_value"
        for session in (one, other):
            (call,) = session.runs[0].model_calls()
            assert call.finish_reasons == ["tool_call"]


@pytest.mark.parametrize("levels", [50, 300, 2_000])
def test_025_two_thousand_levels_are_refused_and_cost_a_span_at_most(levels: int, tmp_path: Path) -> None:
    document = json.loads(lines("025-anyvalue-nesting")[0])
    spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    deep = '{"arrayValue":{"values":[' * levels + '{"stringValue":"x"}' + "]}}" * levels
    spans.append({**spans[0], "spanId": "b5100000000000ff", "attributes": [{"key": "deep", "value": "DEEP"}]})
    with doors(tmp_path) as door:
        response = door.post(json.dumps(document).replace('"DEEP"', deep).encode(), JSON)
        assert response.json()["partialSuccess"]["rejectedSpans"] == "1"
        assert len(door.sessions().sessions) == 1


def test_026_ids_are_hex_of_any_case_and_base64_is_refused_by_name(tmp_path: Path) -> None:
    with doors(tmp_path) as door:
        wrong, right = lines("026-base64-and-case-ids")
        told = door.post(wrong, JSON).json()["partialSuccess"]
        assert told["rejectedSpans"] == "1"
        assert "traceId 'pRAAAAAAAAAAAAAAAAAAGg==' is not 32 hex digits" in told["errorMessage"]
        assert door.post(right, JSON).content == b"{}"
        parent, child = door.spans()
        assert (parent.trace_id, parent.span_id) == (child.trace_id, child.parent_span_id)
        assert parent.trace_id.hex() == "a510000000000000000000000000007e"


def test_028_what_is_sent_again_is_counted_once_and_its_last_version_wins(tmp_path: Path) -> None:
    with doors(tmp_path) as door:
        for _ in range(2):
            post(door, "028-resend")
    with doors(tmp_path) as door:  # after a restart
        (session,) = door.sessions().sessions
        (call,) = session.runs[0].model_calls()
        assert (session.usage.input_tokens, session.usage.output_tokens) == (12, 5)
        assert call.status is Status.ERROR


def test_029_each_signal_goes_through_its_door_and_a_bare_resource_is_accepted(tmp_path: Path) -> None:
    with doors(tmp_path) as door:
        answers = []
        for line in lines("029-file-exporter-mix"):
            signal = "logs" if b"resourceLogs" in line else "metrics" if b"resourceMetrics" in line else "traces"
            answers.append(door.post(line, JSON, signal=signal).status_code)
        assert answers == [200, 200, 200, 200, 200, 400]  # the last is cut off
        assert len(door.spans()) == 3
        (session,) = door.sessions().sessions
        assert session.key.value == "a510000000000000000000000000001d"
