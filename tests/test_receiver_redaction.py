"""A policy applied to what arrives, before it is kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from conftest import cases
from otlp_doors import JSON, TRACE, body, doors, log_request, request, span
from spanreel.policy_file import find_policy
from spanreel_collector.receiver.intake import Intake

KEY = "sk-" + "proj-" + "Ab3" * 16
MAIL = "ada.lovelace" + "@" + "example.com"
POLICY = find_policy("mask")


def test_secrets_do_not_reach_the_store_by_either_form_and_the_rest_stays(tmp_path: Path) -> None:
    kept = {"gen_ai.operation.name": "chat", "count": "7"}
    sent = request(span(1, attributes={"prompt": f"my key is {KEY}", **kept}), service=f"of {MAIL}")
    with doors(tmp_path, intake=Intake(policy=POLICY)) as door:
        assert door.post(sent).status_code == 200
        assert door.call(sent) == b""
        assert door.post(log_request(f"mail {MAIL}", trace=TRACE), signal="logs").status_code == 200
        segments = door.segments()
        assert [segment.signal for segment in segments] == ["traces", "logs"]  # the second delivery is the same
        for segment in segments:
            assert KEY.encode() not in body(segment)
            assert MAIL.encode() not in body(segment)
        one = ExportTraceServiceRequest.FromString(body(segments[0])).resource_spans[0].scope_spans[0].spans[0]
        said = {pair.key: pair.value.string_value for pair in one.attributes}
        assert said["prompt"].startswith("my key is ")
        assert said.items() >= kept.items()
        assert (one.trace_id, one.start_time_unix_nano) == (TRACE, span(1).start_time_unix_nano)
        record = ExportLogsServiceRequest.FromString(body(segments[1])).resource_logs[0].scope_logs[0].log_records[0]
        assert record.body.string_value.startswith("mail ")


@pytest.mark.parametrize("name", ["017-api-key-invocation-params", "019-regex-keeps-json", "020-exception-and-corners"])
def test_the_reports_of_leaks_leave_no_secret_in_the_store(name: str, tmp_path: Path) -> None:
    with doors(tmp_path, intake=Intake(policy=POLICY)) as door:
        for line in cases(f"reports/{name}.jsonl").read_bytes().splitlines():
            assert door.post(line, JSON).content == b"{}"
        kept = b"".join(body(segment) for segment in door.segments())
        assert b"FAKEKEY" not in kept
        assert b"hunter2example" not in kept


def test_a_value_that_cannot_be_examined_is_not_kept(tmp_path: Path) -> None:
    """Protobuf takes a few more levels than are read: such a span would pass unexamined."""
    deep = span(2)
    value = deep.attributes.add(key="deep").value
    for _ in range(45):
        value = value.array_value.values.add()
    value.string_value = KEY
    with doors(tmp_path, intake=Intake(policy=POLICY)) as door:
        assert door.post(request(span(1), deep)).content == b""
        assert [one.name for one in door.spans()] == ["span 1", "span 2"]
        assert all(KEY.encode() not in body(segment) for segment in door.segments())
