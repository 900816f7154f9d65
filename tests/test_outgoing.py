"""What leaves is redacted in every channel, bounded, and such that OTLP can carry it; whoever wrote the span."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fsspec  # type: ignore[import-untyped]  # it ships no types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link, SpanContext, Status, StatusCode, TraceFlags, TraceState

import spanreel
from recording import recording
from spanreel import conventions as names
from spanreel.binary import stand_in
from spanreel.bounds import size_of
from spanreel.encoded_sizes import encoded_size
from spanreel.errors import SettingsError
from spanreel.otlp_file import FileExporter, export_request
from spanreel.outgoing import finish
from spanreel.settings import CaptureLevel, Settings

SECRET = "sk-" + "proj-abcdef0123456789"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
URL = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"


class Sent(InMemorySpanExporter):
    """What left, and the bytes of it."""

    @property
    def span(self) -> ReadableSpan:
        (span,) = self.get_finished_spans()
        return span

    @property
    def said(self) -> dict[str, Any]:
        return dict(self.span.attributes or {})

    @property
    def data(self) -> str:
        spans = self.get_finished_spans()
        return repr(encode_spans(spans).SerializeToString()) + json.dumps(export_request(spans), ensure_ascii=False)


def sent(settings: Settings | None = None, scope: str = "another", **resource: Any) -> tuple[Any, Sent]:
    """A tracer of the user's, and what left through our exporter around his."""
    exporter = Sent()
    provider = TracerProvider(resource=Resource({"service.name": "app", **resource}), shutdown_on_exit=False)
    provider.add_span_processor(
        SimpleSpanProcessor(spanreel.RedactingExporter(exporter, settings=settings or Settings()))
    )
    tracer = provider.get_tracer(f"{scope} {SECRET}", f"1 {SECRET}", attributes={"scope.note": SECRET})
    return tracer, exporter


def full_span(tracer: Any) -> None:
    """A span with the same text in every place that one has."""
    state = TraceState([("vendor", "fine"), ("other", SECRET)])
    linked = SpanContext(1, 2, is_remote=True, trace_flags=TraceFlags(1), trace_state=state)
    span = tracer.start_span(
        f"chat for {SECRET}",
        links=[Link(linked, {"note": f"retry of {SECRET}"})],
        attributes={
            "plain": SECRET,
            "deep": json.dumps({"a": json.dumps({"b": [f"x {SECRET}"]})}),
            "list": [SECRET, "b"],
            f"key.{SECRET}": 1,
            "http.request.header.authorization": ("Bearer " + SECRET,),
            "http.url": f"https://h/v1?key={SECRET}&alt=sse",
        },
    )
    span.add_event(f"event {SECRET}", {"value": SECRET})
    try:
        raise ValueError(f"bad key {SECRET}")
    except ValueError as error:
        span.record_exception(error)
    span.set_status(Status(StatusCode.ERROR, f"401 {SECRET}"))
    span.end()


def test_no_channel_lets_a_credential_out() -> None:
    process: Any = {"process.command_args": ["app", f"--key={SECRET}"], "process.environment": f"KEY={SECRET}"}
    tracer, exporter = sent(**process)
    full_span(tracer)
    assert SECRET not in exporter.data
    assert "abcdef0123456789" not in exporter.data
    span = exporter.span
    assert span.name == "chat for [redacted]"
    assert json.loads(json.loads(exporter.said["deep"])["a"]) == {"b": ["x [redacted]"]}
    assert "alt=sse" in exporter.said["http.url"]
    assert span.links[0].context.trace_state.items() == TraceState([("vendor", "fine")]).items()
    assert (span.links[0].context.trace_id, span.links[0].context.span_id) == (1, 2)
    exception = next(event for event in span.events if event.name == "exception")
    assert "Traceback" in str((exception.attributes or {})["exception.stacktrace"])
    assert "deep" in json.loads(exporter.said[names.FIDELITY])


def test_the_trace_state_of_the_span_itself_is_looked_at() -> None:
    tracer, exporter = sent()
    state = TraceState([("vendor", "fine"), ("other", SECRET)])
    parent = SpanContext(1, 2, is_remote=True, trace_flags=TraceFlags(1), trace_state=state)
    from opentelemetry.trace import NonRecordingSpan, set_span_in_context

    tracer.start_span("s", set_span_in_context(NonRecordingSpan(parent))).end()
    assert SECRET not in exporter.data
    assert exporter.span.context is not None
    assert exporter.span.context.trace_state.get("vendor") == "fine"


@pytest.mark.parametrize("capture", [CaptureLevel.FULL, CaptureLevel.BOUNDED])
def test_binary_content_leaves_as_digest_wherever_it_stands(capture: CaptureLevel) -> None:
    tracer, exporter = sent(Settings(capture=capture))
    span = tracer.start_span(
        "s",
        attributes={
            "input.value": json.dumps(
                {"messages": [{"content": [{"image_url": {"url": URL}}, {"text": "what is it"}]}]}
            ),
            "llm.input_messages.0.message.contents.1.message_content.image.image.url": URL,
            "picture": PNG,
            "said": f"Image(url={URL!r})",
        },
    )
    span.add_event("e", {"image": URL})
    span.set_status(Status(StatusCode.ERROR, URL))
    span.end()
    assert base64.b64encode(PNG)[:24].decode() not in exporter.data
    said = exporter.said
    expected = f"data:image/png;base64,{stand_in(PNG)}"
    assert json.loads(said["input.value"])["messages"][0]["content"] == [
        {"image_url": {"url": expected}},
        {"text": "what is it"},
    ]
    assert said["llm.input_messages.0.message.contents.1.message_content.image.image.url"] == expected
    assert said["picture"] == stand_in(PNG)
    assert json.loads(said[names.FIDELITY])["input.value"] == "redacted"


def test_with_content_off_only_names_ids_and_numbers_of_others_leave() -> None:
    tracer, exporter = sent(
        Settings(capture=CaptureLevel.METADATA),
        **{"process.command_line": "app SENTINEL", "enduser.id": "SENTINEL", "host.name": "box"},
    )
    span = tracer.start_span(
        "chat gpt-5",
        links=[Link(SpanContext(1, 2, is_remote=False), {"note": "SENTINEL"})],
        attributes={
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "gpt-5",
            "gen_ai.usage.input_tokens": 12,
            "llm.token_count.prompt": 12,
            "gen_ai.input.messages": '[{"role":"user","parts":[{"content":"SENTINEL"}]}]',
            "gen_ai.tool.definitions": '[{"type":"function","name":"f","description":"SENTINEL"}]',
            "gen_ai.prompt.0.content": "SENTINEL",
            "input.value": "SENTINEL",
            "llm.invocation_parameters": '{"user":"SENTINEL"}',
            "tool.parameters.amount": 471147114711,
            "embedding.embeddings.0.embedding.vector": [0.5, 0.25],
            "user.id": "SENTINEL",
            "enduser.id": "SENTINEL",
            "http.request.header.x-user": ("SENTINEL",),
            "http.url": "https://h/SENTINEL",
            "http.response.status_code": 400,
            "metadata": '{"a":"SENTINEL"}',
        },
    )
    span.add_event("exception", {"exception.type": "ValueError", "exception.message": "SENTINEL"})
    span.add_event("the user said SENTINEL")
    span.set_status(Status(StatusCode.ERROR, "SENTINEL"))
    span.end()
    assert "SENTINEL" not in exporter.data
    assert "471147114711" not in exporter.data
    assert {name: value for name, value in exporter.said.items() if name != names.FIDELITY} == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-5",
        "gen_ai.usage.input_tokens": 12,
        "llm.token_count.prompt": 12,
        "gen_ai.tool.definitions": '[{"type":"function","name":"f"}]',
        "http.response.status_code": 400,
    }
    assert [dict(event.attributes or {}) for event in exporter.span.events] == [{"exception.type": "ValueError"}, {}]
    assert exporter.span.status.status_code is StatusCode.ERROR
    assert exporter.span.resource.attributes["host.name"] == "box"


def test_a_span_that_cannot_be_examined_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    class Bad(ReadableSpan):
        @property
        def name(self) -> str:
            raise RuntimeError(SECRET)

    exporter = Sent()
    redacting = spanreel.RedactingExporter(exporter, settings=Settings())
    assert redacting.export([Bad(""), ReadableSpan("good", resource=Resource({}))]) is SpanExportResult.SUCCESS
    assert exporter.span.name == "good"
    assert redacting.export([Bad("")]) is SpanExportResult.SUCCESS
    assert redacting.force_flush()
    redacting.shutdown()


def test_what_the_limits_of_the_sdk_cost_is_still_said() -> None:
    from opentelemetry.sdk.trace import SpanLimits

    exporter = Sent()
    provider = TracerProvider(span_limits=SpanLimits(max_span_attributes=2), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(spanreel.RedactingExporter(exporter, settings=Settings())))
    provider.get_tracer("t").start_span("s", attributes={"a": "1", "b": "2", "c": "3"}).end()
    assert exporter.span.dropped_attributes == 1
    assert exporter.said == {"b": "2", "c": "3"}


# -- providers of the user's ------------------------------------------------------------------------------------------


def test_what_a_users_processor_sees_at_the_start_is_redacted_already() -> None:
    from opentelemetry.sdk.trace import SpanProcessor

    seen: list[str] = []

    class Watching(SpanProcessor):
        def on_start(self, span: Any, parent_context: Any = None) -> None:
            seen.append(span.to_json())

    with recording() as rec:
        rec.provider.add_span_processor(Watching())

        @spanreel.run(agent=f"agent {SECRET}")
        def agent() -> None:
            work()

        @spanreel.tool(name=f"tool {SECRET}")
        def work() -> None:
            pass

        with spanreel.session(
            f"id {SECRET}", user_id=f"u {SECRET}", name=SECRET, tags=[SECRET], metadata={"k": SECRET}
        ):
            agent()
        assert len(seen) >= 3
        assert SECRET not in "".join(seen)
        assert SECRET not in "".join(span.to_json() for span in rec.spans)


# -- bounds -----------------------------------------------------------------------------------------------------------


def test_bounded_capture_cuts_what_tools_were_given_and_gave() -> None:
    long, text = "x" * 6000, "y" * 6000
    attributes: dict[str, Any] = {
        names.TOOL_CALL_ARGUMENTS: json.dumps({"path": "/a", "body": long}),
        names.TOOL_CALL_RESULT: json.dumps(long),
        names.INPUT_MESSAGES: json.dumps(
            [
                {"role": "user", "parts": [{"type": "text", "content": text}]},
                {"role": "assistant", "parts": [{"type": "tool_call", "name": "f", "arguments": {"body": long}}]},
                {"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "response": long}]},
            ]
        ),
        names.OUTPUT_MESSAGES: json.dumps(
            [{"role": "assistant", "parts": [{"type": "text", "content": "z" * 2_000_000}]}]
        ),
    }
    settings = Settings(capture=CaptureLevel.BOUNDED, max_value_bytes=3 * 1024 * 1024)
    finished: dict[str, Any] = finish(attributes, settings)
    arguments = json.loads(finished[names.TOOL_CALL_ARGUMENTS])
    assert arguments["path"] == "/a"
    assert len(arguments["body"]) <= 4096
    assert arguments["body"].startswith("xxxx")
    assert len(json.loads(finished[names.TOOL_CALL_RESULT])) <= 4096
    user, assistant, tool = json.loads(finished[names.INPUT_MESSAGES])
    assert user["parts"][0]["content"] == text
    assert len(assistant["parts"][0]["arguments"]["body"]) <= 4096
    assert len(tool["parts"][0]["response"]) <= 4096
    (answer,) = json.loads(finished[names.OUTPUT_MESSAGES])
    assert 1_000_000 < len(answer["parts"][0]["content"]) <= 1_048_576
    assert json.loads(finished[names.FIDELITY]) == dict.fromkeys(attributes, "truncated")
    assert finish(attributes, Settings(max_value_bytes=3 * 1024 * 1024)) == attributes


def test_bounded_capture_knows_the_tools_of_other_instrumentations() -> None:
    settings, long = Settings(capture=CaptureLevel.BOUNDED), "x" * 6000
    tool: dict[str, Any] = {"openinference.span.kind": "TOOL", "output.value": long}
    model: dict[str, Any] = {"openinference.span.kind": "LLM", "output.value": long}
    assert len(str(finish(tool, settings)["output.value"])) <= 4096
    assert finish(model, settings)["output.value"] == long


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.text(min_size=300, max_size=3000),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
VALUES = (
    st.text()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.binary(max_size=200)
    | st.lists(st.text(), max_size=4)
    | JSON.map(json.dumps)
    | st.sampled_from([SECRET, URL, f'{{"password":"{SECRET}"}}', "\ud800", "[" * 3000, '{"a":' * 500])
)
NAMES = st.text(max_size=10) | st.sampled_from(
    [names.INPUT_MESSAGES, names.TOOL_CALL_RESULT, names.FIDELITY, "input.value"]
)


@given(
    st.dictionaries(NAMES, VALUES, max_size=6),
    st.text(max_size=50),
    st.sampled_from(CaptureLevel),
    st.integers(1024, 4096),
)
def test_whatever_a_span_holds_what_leaves_can_be_encoded_is_bounded_and_its_json_is_json(
    attributes: dict[str, Any], name: str, capture: CaptureLevel, limit: int
) -> None:
    settings = Settings(capture=capture, max_value_bytes=limit, max_span_bytes=2 * limit)
    exporter = Sent()
    span = ReadableSpan(
        name, context=SpanContext(1, 2, is_remote=False), resource=Resource({}), attributes=attributes,
        start_time=1, end_time=2,
    )  # fmt: skip
    spanreel.RedactingExporter(exporter, settings=settings).export([span])
    encoded = encode_spans(exporter.get_finished_spans()).SerializeToString()
    assert SECRET.encode() not in encoded
    assert len(encoded) <= encoded_size(exporter.span) + 1024
    for key, value in exporter.said.items():
        if key != names.FIDELITY:
            assert size_of(value) <= limit
        before = attributes.get(key)
        if isinstance(value, str) and isinstance(before, str) and _is_json(before):
            assert _is_json(value), (before, value)


def _is_json(text: str) -> bool:
    if text[:1] not in {"{", "["}:
        return False
    try:
        json.loads(text, parse_constant=lambda _: math.nan)
    except (ValueError, RecursionError):
        return False
    return True


# -- offload ----------------------------------------------------------------------------------------------------------


def messages(text: str) -> str:
    return json.dumps([{"role": "user", "parts": [{"type": "text", "content": text}]}])


def test_large_values_are_kept_beside_the_spans_redacted_and_by_their_digest(tmp_path: Path) -> None:
    tracer, exporter = sent(Settings(offload=str(tmp_path / "kept"), offload_bytes=1024))
    large = {names.INPUT_MESSAGES: messages(f"{SECRET} " + "word " * 1000), "input.value": "plain " * 1000}
    for _ in range(2):
        span = tracer.start_span("s", attributes={**large, names.OUTPUT_MESSAGES: messages("short"), "image": PNG})
        span.end()
    said = dict(exporter.get_finished_spans()[0].attributes or {})
    assert exporter.get_finished_spans()[1].attributes == said
    assert {names.INPUT_MESSAGES, "input.value"}.isdisjoint(said)
    assert said[names.OUTPUT_MESSAGES] == messages("short")
    reference = str(said[f"{names.INPUT_MESSAGES}_ref"])
    assert reference.startswith("file://")
    files = {file.name: file for file in (tmp_path / "kept").iterdir()}
    assert len(files) == 3
    content = files[reference.rpartition("/")[2]].read_bytes()
    assert json.loads(content)[0]["parts"][0]["content"].startswith("[redacted] word")
    assert SECRET.encode() not in content
    assert files[f"{hashlib.sha256(PNG).hexdigest()}.bin"].read_bytes() == PNG
    assert all(hashlib.sha256(file.read_bytes()).hexdigest() == name.partition(".")[0] for name, file in files.items())
    assert all(file.stat().st_mode & 0o077 == 0 for file in files.values())


def test_what_cannot_be_kept_stays_on_its_span(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    tracer, exporter = sent(Settings(offload=str(tmp_path / "file" / "kept"), offload_bytes=1024))
    tracer.start_span("s", attributes={"input.value": "plain " * 1000}).end()
    assert exporter.said == {"input.value": "plain " * 1000}


def test_an_offload_may_be_any_url_of_fsspec() -> None:
    tracer, exporter = sent(Settings(offload="memory://kept/here", offload_bytes=1024))
    tracer.start_span("s", attributes={"input.value": "plain " * 1000}).end()
    reference = str(exporter.said["input.value_ref"])
    assert reference.startswith("memory://kept/here/")
    with fsspec.open(reference) as file:
        assert file.read().decode() == "plain " * 1000


def test_an_offload_that_cannot_be_is_refused_by_name() -> None:
    with pytest.raises(SettingsError, match="SPANREEL_OFFLOAD"):
        spanreel.RedactingExporter(Sent(), settings=Settings(offload="nosuch://place"))


# -- our own log ------------------------------------------------------------------------------------------------------


def test_what_an_exporter_raises_is_logged_without_what_it_quotes(caplog: pytest.LogCaptureFixture) -> None:
    from spanreel.delivery import Delivery
    from spanreel.losses import Losses

    class Refusing(SpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            raise ValueError(f"401 for {SECRET}")

        def shutdown(self) -> None:
            pass

    caplog.set_level(logging.DEBUG)
    delivery = Delivery(Settings(), [Refusing()], Losses())
    delivery._send([ReadableSpan("s")])
    assert "401 for [redacted]" in caplog.text
    assert SECRET not in caplog.text


def test_settings_that_cannot_be_read_are_named_without_their_credentials(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    from spanreel.instrumenting import start_recording

    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://user:{SECRET}@host:port/")
    start_recording()
    said = caplog.text + capsys.readouterr().err
    assert "nothing is recorded" in said
    assert SECRET not in said


def test_a_file_holds_no_more_than_the_wire(tmp_path: Path) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    exporter = spanreel.RedactingExporter(FileExporter(str(tmp_path / "spans.jsonl")), settings=Settings())
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    full_span(provider.get_tracer("t"))
    written = (tmp_path / "spans.jsonl").read_text()
    assert written.count("[redacted]") > 8
    assert SECRET not in written
