"""Public bug reports of neighbouring tools about what leaves: 016, 017, 019, 020, on spans that others have written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode

import spanreel
from conftest import cases
from spanreel.binary import STAND_IN
from spanreel.otlp_file import FileExporter
from spanreel.settings import CaptureLevel, Settings

FAKE_KEY = "sk-" + "fake-000000000000000000000000000000000000"


def exported(name: str, folder: Path, settings: Settings | None = None) -> tuple[dict[str, Any], dict[str, Any], str]:
    """The one span of a report as it leaves, with its attributes by name, and everything that left, as text."""
    (line,) = cases(f"reports/{name}").read_text().splitlines()
    spans = list(_spans(json.loads(line)))
    file = folder / "traces.jsonl"
    kept = _Kept(str(file))
    spanreel.RedactingExporter(kept, settings=settings or Settings()).export(spans)
    (resource,) = json.loads(file.read_text())["resourceSpans"]
    (span,) = resource["scopeSpans"][0]["spans"]
    left = file.read_text() + repr(encode_spans(kept.spans).SerializeToString())
    return {**span, "resource": _attributes(resource["resource"])}, _attributes(span), left


class _Kept(FileExporter):
    """The file, and the spans themselves."""

    def export(self, spans: Any) -> Any:
        self.spans = spans
        return super().export(spans)


def _spans(request: dict[str, Any]) -> Any:
    for resource in request["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                yield ReadableSpan(
                    span["name"],
                    context=_context(span),
                    resource=Resource(_attributes(resource["resource"])),
                    attributes=_attributes(span),
                    events=[
                        Event(event["name"], _attributes(event), int(event["timeUnixNano"]))
                        for event in span.get("events", [])
                    ],
                    links=[Link(_context(link), _attributes(link)) for link in span.get("links", [])],
                    kind=SpanKind(span["kind"] - 1),
                    status=Status(
                        StatusCode(span.get("status", {}).get("code", 0)), span.get("status", {}).get("message")
                    ),
                    start_time=int(span["startTimeUnixNano"]),
                    end_time=int(span["endTimeUnixNano"]),
                    instrumentation_scope=InstrumentationScope(scope["scope"]["name"], scope["scope"].get("version")),
                )


def _context(item: dict[str, Any]) -> SpanContext:
    return SpanContext(int(item["traceId"], 16), int(item["spanId"], 16), is_remote=False)


def _attributes(item: dict[str, Any]) -> dict[str, Any]:
    return {one["key"]: _value(one["value"]) for one in item.get("attributes", [])}


def _value(value: dict[str, Any]) -> Any:
    ((kind, inner),) = value.items()
    return [_value(one) for one in inner["values"]] if kind == "arrayValue" else inner


def test_016_an_image_is_nowhere_and_the_text_beside_it_stays(tmp_path: Path) -> None:
    _, said, left = exported("016-image-in-input-value.jsonl", tmp_path)
    assert "iVBORw0KGgo" not in left
    (message,) = json.loads(said["input.value"])["messages"]
    text, image = message["content"]
    assert text == {"type": "text", "text": "what is it"}
    assert STAND_IN.search(image["image_url"]["url"])
    flat = "llm.input_messages.0.message.contents.1.message_content.image.image.url"
    assert said[flat] == image["image_url"]["url"]
    assert json.loads(said["spanreel.fidelity"])[flat] == "redacted"


def test_016_with_content_off_neither_image_nor_text_leaves(tmp_path: Path) -> None:
    _, said, left = exported("016-image-in-input-value.jsonl", tmp_path, Settings(capture=CaptureLevel.METADATA))
    assert "iVBORw0KGgo" not in left
    assert "what is it" not in left
    assert "a dot" not in left
    assert said["llm.model_name"] == "fake-gpt-1"


def test_017_keys_in_parameters_and_urls_go_and_what_is_beside_them_stays(tmp_path: Path) -> None:
    _, said, left = exported("017-api-key-invocation-params.jsonl", tmp_path)
    assert FAKE_KEY not in left
    parameters = json.loads(said["llm.invocation_parameters"])
    assert parameters["temperature"] == 0.3
    assert parameters["max_tokens"] == 4096
    assert parameters["api_base"] == "https://res.example.invalid/openai"
    assert parameters["extra_headers"]["X-Trace"] == "keep"
    assert "alt=sse" in said["http.url"]


def test_019_json_stays_json_inside_of_json_too(tmp_path: Path) -> None:
    _, said, left = exported("019-regex-keeps-json.jsonl", tmp_path)
    assert "hunter2example" not in left
    assert "FAKEKEY0002" not in left
    command = json.loads(said["gen_ai.tool.call.arguments"])["cmd"]
    assert command.startswith("export DATABASE_PASSWORD=")
    result = json.loads(said["gen_ai.tool.call.result"])
    assert result["ok"] is True
    inner = json.loads(result["stdout"])
    assert inner["rows"] == 3
    assert list(inner["env"]) == ["API_KEY"]


def test_020_names_events_links_resource_and_status_are_no_way_out(tmp_path: Path) -> None:
    span, _, left = exported("020-exception-and-corners.jsonl", tmp_path)
    assert FAKE_KEY not in left
    assert "jane.doe" not in left
    (event,) = span["events"]
    told = _attributes(event)
    assert told["exception.type"] == "AuthenticationError"
    assert told["exception.stacktrace"].startswith("Traceback (most recent call last):")
    assert span["status"]["code"] == 2
    assert span["resource"]["service.name"] == "demo-agent"
    assert span["resource"]["process.command_args"][:2] == ["python", "app.py"]
    assert len(span["links"]) == 1


@pytest.mark.parametrize("name", ["016-image-in-input-value", "019-regex-keeps-json", "020-exception-and-corners"])
def test_with_content_off_a_report_says_no_more_than_names(name: str, tmp_path: Path) -> None:
    _, said, left = exported(f"{name}.jsonl", tmp_path, Settings(capture=CaptureLevel.METADATA))
    for content in ("Incorrect API key", "retry of", "DATABASE_PASSWORD", "stdout", "what is it", "Traceback"):
        assert content not in left
    assert said.keys() & {"gen_ai.operation.name", "openinference.span.kind"}
