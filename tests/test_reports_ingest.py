"""Public reports of what went wrong when traces were read, each with its input among the shared cases."""

from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path

import pytest

from conftest import cases
from spanreel.model import Status
from spanreel_collector.conversion.convert import Conversion, convert_files
from spanreel_collector.sources.files import read_file
from spanreel_collector.span import Fault, RawSpan


def spans_of(path: Path) -> tuple[list[RawSpan], list[Fault]]:
    batches = list(read_file(str(path)))
    return [span for one in batches for span in one.spans], [fault for one in batches for fault in one.faults]


def converted(name: str) -> Conversion:
    return convert_files([str(cases(f"reports/{name}.jsonl"))])


def test_022_a_bad_span_costs_itself_and_an_attribute_without_a_value_is_null() -> None:
    spans, faults = spans_of(cases("reports/022-poison-span-batch.jsonl"))
    assert [span.span_id[-1] for span in spans] == ["1", "2", "5"]
    assert any(value is None for span in spans for value in span.attributes.values())
    assert [fault.reason.split(" ")[0] for fault in faults] == ["traceId", "spanId"]
    conversion = converted("022-poison-span-batch")
    assert (len(conversion.sessions), len(conversion.faults)) == (1, 2)


def test_023_what_is_omitted_takes_its_default_and_nothing_is_dropped_in_silence() -> None:
    spans, faults = spans_of(cases("reports/023-omitted-defaults.jsonl"))
    assert faults == []
    assert [span.kind for span in spans] == [0, 3, 0]
    assert spans[0].parent_id is None
    assert (spans[1].status, spans[1].status_message) == (2, "boom")
    assert spans[2].end == 0
    assert all(span.origin.scope == "" and not span.origin.resource for span in spans)
    (session,) = converted("023-omitted-defaults").sessions
    assert session.source.get("service_name") is None


def test_025_nested_values_and_json_text_give_the_same_session() -> None:
    spans, faults = spans_of(cases("reports/025-anyvalue-nesting.jsonl"))
    said = {key: value for span in spans for key, value in span.attributes.items() if key.startswith("demo.")}
    assert faults == []
    assert (said["demo.raw"], said["demo.empty_list"]) == (b"\x00\x01\xff", [])
    one, other = converted("025-anyvalue-nesting").sessions
    assert one.messages == other.messages
    assert one.messages
    for session in (one, other):
        (call,) = session.runs[0].model_calls()
        assert call.finish_reasons == ["tool_call"]


@pytest.mark.parametrize("levels", [50, 300, 2_000])
def test_025_two_thousand_levels_cost_a_span_and_no_more(levels: int, tmp_path: Path) -> None:
    document = json.loads(cases("reports/025-anyvalue-nesting.jsonl").read_bytes().splitlines()[0])
    spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    deep = '{"arrayValue":{"values":[' * levels + '{"stringValue":"x"}' + "]}}" * levels
    spans.append({**spans[0], "spanId": "b5100000000000ff", "attributes": [{"key": "deep", "value": "DEEP"}]})
    path = tmp_path / "deep.jsonl"
    path.write_text(json.dumps(document).replace('"DEEP"', deep))
    conversion = convert_files([str(path)])
    assert len(conversion.sessions) == 1
    assert len(conversion.faults) <= 1
    assert list(conversion.sessions[0].runs[0].model_calls())


def test_026_ids_are_hex_of_any_case_and_base64_is_refused_by_name() -> None:
    spans, faults = spans_of(cases("reports/026-base64-and-case-ids.jsonl"))
    assert [(span.name, span.trace_id) for span in spans] == [
        ("parent", "a510000000000000000000000000007e"),
        ("child", "a510000000000000000000000000007e"),
    ]
    assert spans[1].parent_id == spans[0].span_id
    (fault,) = faults
    assert fault.reason.startswith("traceId 'pRAAAAAAAAAAAAAAAAAAGg==' is not 32 hex digits")


def test_028_what_is_sent_again_is_counted_once_and_its_last_version_wins(tmp_path: Path) -> None:
    lines = cases("reports/028-resend.jsonl").read_bytes().splitlines()
    path = tmp_path / "resend.jsonl"
    path.write_bytes(b"\n".join([*lines, *lines]))
    for source in (cases("reports/028-resend.jsonl"), path):
        (session,) = convert_files([str(source)]).sessions
        (call,) = session.runs[0].model_calls()
        assert (session.usage.input_tokens, session.usage.output_tokens) == (12, 5)
        assert call.status is Status.ERROR


def test_029_one_file_of_all_signals_is_one_session_in_whatever_packing(tmp_path: Path) -> None:
    report = cases("reports/029-file-exporter-mix.jsonl").read_bytes()
    forms = (report, report.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + report)
    for content, packed in itertools.product(forms, (False, True)):
        path = tmp_path / "mix"
        path.write_bytes(gzip.compress(content) if packed else content)
        conversion = convert_files([str(path)])
        assert [one.key.value for one in conversion.sessions] == ["a510000000000000000000000000001d"]
        assert conversion.skipped == {"logs": 1, "metrics": 1}
        assert [fault.place for fault in conversion.faults] == [f"{path}:7"]
        spans, _ = spans_of(path)
        assert len(spans) == 3
