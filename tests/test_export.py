"""The way from a span's end to a backend, by real exporters on loopback."""

from __future__ import annotations

import json
import logging
import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from opentelemetry import context as otel
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, Span, SpanContext, Status, StatusCode, TraceFlags, Tracer, set_span_in_context
from opentelemetry.util.types import AttributeValue

from receivers import FOUR_MIB, Received, grpc_receiver, http_receiver
from spanreel import conventions as names
from spanreel import export, wire
from spanreel.export import Pipeline, describe
from spanreel.model import Operation, Request
from spanreel.otlp_file import FileExporter, export_request
from spanreel.own_tracer import OwnTracer
from spanreel.records import ModelRecord, ToolRecord
from spanreel.redaction import DEFAULT, header
from spanreel.settings import CaptureLevel, Flush, Settings, read_settings
from spanreel.spans import OwnSpan
from spanreel.testing.provider import Reply
from spanreel.testing.server import LoopbackServer

DEFAULTS = Settings()
SECRET = "sk-proj-SENTINEL0123456789"


@dataclass
class Kept:
    """What a call kept, as a boundary would hand it over."""

    said: Mapping[str, AttributeValue]
    size: int = 1000

    def attributes(self) -> Mapping[str, AttributeValue]:
        return self.said


class Broken:
    """What cannot be read."""

    size = 10

    def attributes(self) -> Mapping[str, AttributeValue]:
        raise RuntimeError(f"bad bytes {SECRET}")


class Collected(SpanExporter):
    """An exporter into a list; waits for its gate, and fails as often as it is told."""

    def __init__(self, failures: int = 0) -> None:
        self.spans: list[ReadableSpan] = []
        self.batches: list[int] = []
        self.gate = threading.Event()
        self.gate.set()
        self.failures = failures
        self.suppressed: list[object] = []
        self.is_shut_down = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.gate.wait(120)
        self.suppressed.append(otel.get_value("suppress_instrumentation") or _is_suppressed())
        if self.failures:
            self.failures -= 1
            return SpanExportResult.FAILURE
        self.spans += spans
        self.batches.append(len(spans))
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        self.is_shut_down = True
        self.gate.set()


def _is_suppressed() -> object:
    return otel.get_value(otel._SUPPRESS_INSTRUMENTATION_KEY)


Make = Callable[..., tuple[Tracer, Pipeline]]


@pytest.fixture
def make() -> Iterator[Make]:
    pipelines = []

    def make_pipeline(
        settings: Settings = DEFAULTS, exporters: Sequence[SpanExporter] | None = None, **provided: Any
    ) -> tuple[Tracer, Pipeline]:
        pipeline = Pipeline(settings, exporters)
        pipelines.append(pipeline)
        provider = TracerProvider(shutdown_on_exit=False, **provided)
        return OwnTracer(provider, InstrumentationScope("test"), pipeline), pipeline

    yield make_pipeline
    for pipeline in pipelines:
        pipeline.shutdown(1)


def tool_span(tracer: Tracer, pipeline: Pipeline, capture: Any = None, name: str = "execute_tool weather") -> None:
    span = tracer.start_span(name, attributes={names.OPERATION: names.EXECUTE_TOOL})
    hold(span, capture)
    span.end()


def hold(span: Span, capture: Any) -> None:
    if isinstance(span, OwnSpan):  # not one that records nothing
        span.capture = capture


def model_capture(text: str) -> Kept:
    message = {"role": "user", "parts": [{"type": "text", "content": text}]}
    return Kept(wire.write(ModelRecord(Request(Operation.CHAT, "m", (message,)))), len(text))


def test_a_capture_is_read_redacted_and_exported_with_its_span(make: Make) -> None:
    collected = Collected()
    tracer, pipeline = make(exporters=[collected])
    record = ToolRecord("weather", {"city": "Köln", "api_key": "hunter2"}, "fine")
    tool_span(tracer, pipeline, Kept(wire.write(record)))
    assert pipeline.flush(60)
    (span,) = collected.spans
    assert dict(span.attributes or {}) == {
        names.OPERATION: "execute_tool",
        names.TOOL_NAME: "weather",
        names.TOOL_TYPE: "function",
        names.TOOL_KIND: "function",
        names.TOOL_CALL_ARGUMENTS: '{"city":"Köln","api_key":"[redacted]"}',
        names.TOOL_CALL_RESULT: '"fine"',
        names.RUN_STATUS: "ok",
        names.FIDELITY: '{"gen_ai.tool.call.arguments":"redacted"}',
        names.REDACTION: header(DEFAULT, []),
    }
    assert pipeline.losses.total() == {}


def test_reading_happens_in_the_export_thread_where_instrumentation_is_suppressed(make: Make) -> None:
    collected = Collected()
    tracer, pipeline = make(exporters=[collected])
    threads = []

    class Watched(Kept):
        def attributes(self) -> Mapping[str, AttributeValue]:
            threads.append(threading.current_thread().name)
            return {}

    tool_span(tracer, pipeline, Watched({}))
    assert pipeline.flush(60)
    assert (threads, collected.suppressed) == (["spanreel-export"], [True])


def test_no_secret_leaves_by_any_channel_of_a_span(make: Make, tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    collected = Collected()
    tracer, pipeline = make(
        exporters=[collected, FileExporter(str(file))],
        resource=Resource({"process.command_args": ["app", "--token", "hunter2sentinel"], "note": SECRET}),
    )
    other = SpanContext(1, 2, is_remote=True, trace_flags=TraceFlags(1))
    span = tracer.start_span(
        f"call {SECRET}",
        links=[Link(other, {"password": "hunter2sentinel", "why": SECRET})],
        attributes={
            "http.request.header.authorization": ("Bearer hunter2sentinel",),
            "db.url": "postgres://u:hunter2sentinel@host/db",
            "list": (SECRET, "fine"),
            "nested": json.dumps({"inner": json.dumps({"client_secret": "hunter2sentinel"})}),
            f"named.{SECRET}": 1,
        },
    )
    span.add_event(f"event {SECRET}", {"body": f"password={'hunter2sentinel'}"})
    try:
        raise ValueError(f"refused {SECRET} api_key='hunter2sentinel'")
    except ValueError as error:
        span.record_exception(error)
    span.set_status(Status(StatusCode.ERROR, f"refused {SECRET}"))
    hold(span, Kept(wire.write(ToolRecord("t", {"token": "hunter2sentinel"}, f"Bearer {SECRET}"))))
    span.end()
    assert pipeline.flush(60)
    (left,) = collected.spans
    for text in (left.to_json(), file.read_text()):
        assert "hunter2sentinel" not in text
        assert "SENTINEL" not in text
        assert text.count("[redacted]") > 10
    assert left.links[0].context == other


@pytest.fixture(params=["grpc", "http"])
def receiver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Received]:
    with grpc_receiver() if request.param == "grpc" else http_receiver() as received:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", received.endpoint)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc" if request.param == "grpc" else "http/protobuf")
        yield received


@pytest.mark.slow
def test_large_spans_arrive_in_requests_that_a_default_collector_takes(make: Make, receiver: Received) -> None:
    tracer, pipeline = make(read_settings())
    for number in range(60):
        span = tracer.start_span(f"chat {number}")
        hold(span, model_capture("ä" * 250_000))
        span.end()
    assert pipeline.flush(60)
    assert (len(receiver.spans), receiver.refused, pipeline.losses.total()) == (60, 0, {})
    assert len({span.span_id for span in receiver.spans}) == 60
    assert max(receiver.sizes) < FOUR_MIB
    assert len(receiver.sizes) < 30


def test_a_span_larger_than_a_request_is_cut_to_fit(make: Make, receiver: Received) -> None:
    tracer, pipeline = make(read_settings({**os.environ, "SPANREEL_MAX_VALUE_BYTES": str(50 * 1024 * 1024)}))
    span = tracer.start_span("chat")
    for _ in range(100):
        span.add_event("chunk", {"body": "e" * 100_000})
    hold(span, model_capture("x" * 10_000_000))
    span.end()
    assert pipeline.flush(60)
    assert (len(receiver.spans), pipeline.losses.total()) == (1, {})
    attributes = {attribute.key: attribute.value.string_value for attribute in receiver.spans[0].attributes}
    assert json.loads(attributes[names.INPUT_MESSAGES])[0]["parts"][0]["content"].startswith("xxx")
    assert json.loads(attributes[names.FIDELITY]) == {names.INPUT_MESSAGES: "truncated"}


def test_one_value_that_otlp_cannot_carry_does_not_cost_the_batch(make: Make, receiver: Received) -> None:
    tracer, pipeline = make(read_settings())
    span = tracer.start_span("odd \ud800", attributes={"lone": "\udfff", "huge": 2**80, "nan": float("nan")})
    hold(span, Kept({"bytes": b"\xff", "deep": {"\ud800": [2**80, None]}}))
    span.end()
    tool_span(tracer, pipeline)
    assert pipeline.flush(60)
    assert [span.name for span in receiver.spans] == ["odd ?", "execute_tool weather"]


def test_a_dead_endpoint_bounds_memory_and_the_losses_add_up(
    make: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    settings = read_settings({**os.environ, "SPANREEL_QUEUE_BYTES": str(1024 * 1024)})
    tracer, pipeline = make(settings)
    most = 0
    for _ in range(3000):
        tool_span(tracer, pipeline, model_capture("x" * 10_000))
        most = max(most, pipeline._bytes)
    assert most <= 1024 * 1024
    pipeline.shutdown(60)
    losses = pipeline.losses.total()
    assert losses["export_failed"] + losses["queue_full"] + losses.get("at_exit", 0) == 3000
    assert losses["queue_full_content"] > 0
    ours = [record for record in caplog.records if record.name == "spanreel"]
    assert 1 <= len(ours) <= 2
    assert not [record for record in caplog.records if record.name.startswith("opentelemetry.exporter")]


def test_while_an_exporter_blocks_the_queue_bound_holds_and_nobody_waits(make: Make) -> None:
    collected = Collected()
    collected.gate.clear()
    tracer, pipeline = make(Settings(queue_bytes=200_000), [collected])
    started = time.perf_counter()
    for _ in range(500):
        tool_span(tracer, pipeline, Kept({"x": "y"}, 10_000))
    assert time.perf_counter() - started < 25
    assert not pipeline.flush(0.05)
    collected.gate.set()
    assert pipeline.flush(60)
    losses = pipeline.losses.total()
    assert len(collected.spans) + losses["queue_full"] == 500
    without = [span for span in collected.spans if names.FIDELITY in (span.attributes or {})]
    assert len(without) == losses["queue_full_content"] > 0
    assert json.loads(str((without[0].attributes or {})[names.FIDELITY])) == {
        names.TOOL_CALL_ARGUMENTS: "absent",
        names.TOOL_CALL_RESULT: "absent",
    }


def test_the_next_span_that_leaves_says_what_was_lost(make: Make) -> None:
    collected = Collected(failures=2)
    tracer, pipeline = make(exporters=[collected])
    for _ in range(4):
        tool_span(tracer, pipeline)
        assert pipeline.flush(60)
    said = [(span.attributes or {}).get(names.LOSSES) for span in collected.spans]
    assert said == ['{"export_failed":2}', None]


def test_what_was_lost_is_said_again_where_the_request_that_said_it_failed(make: Make) -> None:
    collected = Collected(failures=1)
    tracer, pipeline = make(Settings(flush=Flush.RUN), [collected])
    root = set_span_in_context(tracer.start_span("root"))
    for _ in range(3):  # two requests: the first fails, the second arrives
        span = tracer.start_span("chat", root)
        hold(span, model_capture("x" * 1_500_000))
        span.add_event("stack", {"trace": "t" * 60_000})
        span.end()
    assert pipeline.flush(60)
    tool_span(tracer, pipeline)
    assert pipeline.flush(60)
    lost = 4 - len(collected.spans)
    assert lost > 0
    assert (collected.spans[-1].attributes or {})[names.LOSSES] == json.dumps({"export_failed": lost}).replace(" ", "")
    assert pipeline.losses.total() == {"export_failed": lost}


def test_a_capture_that_cannot_be_read_costs_its_content_and_not_its_span(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    collected = Collected()
    tracer, pipeline = make(exporters=[collected])
    tool_span(tracer, pipeline, Broken())
    assert pipeline.flush(60)
    assert pipeline.losses.total() == {"capture_failed": 1}
    assert names.FIDELITY in (collected.spans[0].attributes or {})
    assert SECRET not in caplog.text


def test_an_exporter_that_raises_is_a_loss_and_the_next_batch_goes_on(make: Make) -> None:
    class Raising(Collected):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            if not self.batches:
                self.batches.append(0)
                raise OSError("disk full")
            return super().export(spans)

    collected = Raising()
    tracer, pipeline = make(exporters=[collected])
    tool_span(tracer, pipeline)
    assert pipeline.flush(60)
    tool_span(tracer, pipeline)
    assert pipeline.flush(60)
    assert (len(collected.spans), pipeline.losses.total()) == (1, {"export_failed": 1})


def test_an_exporter_that_is_not_installed_is_said_and_counted(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    tracer, pipeline = make(read_settings({"OTEL_TRACES_EXPORTER": "pigeon"}))
    tool_span(tracer, pipeline)
    assert pipeline.flush(60)
    assert pipeline.losses.total() == {"export_failed": 1}
    assert "OTEL_TRACES_EXPORTER names 'pigeon'" in caplog.text


def test_unsampled_spans_and_their_captures_are_dropped(make: Make) -> None:
    collected = Collected()
    tracer, pipeline = make(exporters=[collected], sampler=ALWAYS_OFF)
    tool_span(tracer, pipeline, Broken())
    assert pipeline.flush(60)
    assert (collected.spans, pipeline.losses.total()) == ([], {})


def test_where_nothing_is_exported_nothing_is_kept(make: Make) -> None:
    tracer, pipeline = make(read_settings({"OTEL_TRACES_EXPORTER": "none"}))
    tool_span(tracer, pipeline, Broken())
    assert (len(pipeline._queue), pipeline.flush(0)) == (0, True)


def test_the_beginning_of_a_run_that_has_ended_before_it_was_exported_is_not_exported(make: Make) -> None:
    collected = Collected()
    tracer, pipeline = make(exporters=[collected])
    for is_slow in (False, True):
        run = tracer.start_span("run", attributes={names.OPERATION: names.INVOKE_AGENT})
        began = tracer.start_span("begun", set_span_in_context(run), attributes={names.OPERATION: names.RUN_STARTED})
        began.end()
        if is_slow:
            assert pipeline.flush(60)
        run.end()
        assert pipeline.flush(60)
    assert [span.name for span in collected.spans] == ["run", "begun", "run"]
    assert pipeline.losses.total() == {}


def test_the_span_that_says_that_a_run_has_begun_is_made_only_where_it_leaves_before_the_run(make: Make) -> None:
    collected = Collected()
    tracer, pipeline = make(exporters=[collected])
    assert isinstance(tracer, OwnTracer)
    made = 0

    def begun() -> OwnSpan:
        nonlocal made
        made += 1
        span = tracer.start_span("begun", set_span_in_context(run), attributes={names.OPERATION: names.RUN_STARTED})
        assert isinstance(span, OwnSpan)
        span.end_time = span.start_time
        span.capture = model_capture("hello")
        return span

    for is_slow in (False, True):
        run = tracer.start_span("run", attributes={names.OPERATION: names.INVOKE_AGENT})
        assert isinstance(run, OwnSpan)
        tracer.announce(run, begun, 100)
        if is_slow:
            assert pipeline.flush(60)
        run.end()
        assert pipeline.flush(60)
    assert [span.name for span in collected.spans] == ["run", "begun", "run"]
    assert "hello" in str(collected.spans[1].attributes)
    assert (made, pipeline.losses.total(), pipeline._bytes) == (1, {}, 0)


def test_the_beginning_of_a_run_that_finds_no_room_is_a_loss(make: Make) -> None:
    collected = Collected()
    tracer, pipeline = make(exporters=[collected])
    assert isinstance(tracer, OwnTracer)
    run = tracer.start_span("run", attributes={names.OPERATION: names.INVOKE_AGENT})
    assert isinstance(run, OwnSpan)

    def begun() -> OwnSpan:
        span = tracer.start_span("begun", set_span_in_context(run))
        assert isinstance(span, OwnSpan)
        span.end_time = span.start_time
        return span

    pipeline.shutdown(5)
    tracer.announce(run, begun, 100)
    assert sum(pipeline.losses.total().values()) == 1


@pytest.mark.parametrize(
    ("flush", "ended", "at_once"),
    [
        (Flush.CALL, names.EXECUTE_TOOL, True),
        (Flush.TURN, names.EXECUTE_TOOL, False),
        (Flush.TURN, names.AGENT_STEP, True),
        (Flush.RUN, names.AGENT_STEP, False),
        (Flush.RUN, names.RUN_STARTED, True),
        (Flush.RUN, names.INVOKE_AGENT, True),
    ],
)
def test_the_thread_is_woken_at_the_end_of_what_the_user_asked_for(
    make: Make, flush: Flush, ended: str, at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "DELAYS", dict.fromkeys(export.DELAYS, 600.0))
    collected = Collected()
    tracer, pipeline = make(Settings(flush=flush), [collected])
    root = tracer.start_span("root", attributes={names.OPERATION: names.INVOKE_AGENT})
    if ended == names.INVOKE_AGENT:
        root.end()
    else:
        tracer.start_span("child", set_span_in_context(root), attributes={names.OPERATION: ended}).end()
    deadline = time.monotonic() + (60 if at_once else 2 * export.LINGER)
    while not collected.spans and time.monotonic() < deadline:
        time.sleep(0.01)
    assert bool(collected.spans) is at_once
    pipeline.wake()
    assert pipeline.flush(60)


def test_what_waits_leaves_after_a_delay_though_nothing_wakes_the_thread(make: Make) -> None:
    collected = Collected()
    tracer, _ = make(Settings(flush=Flush.TURN), [collected])
    root = tracer.start_span("root")
    tracer.start_span("child", set_span_in_context(root)).end()
    deadline = time.monotonic() + 60
    while not collected.spans and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(collected.spans) == 1


def test_shutdown_exports_what_waits_and_takes_no_more(make: Make) -> None:
    collected = Collected()
    tracer, pipeline = make(Settings(flush=Flush.RUN), [collected])
    root = tracer.start_span("root")
    tracer.start_span("child", set_span_in_context(root)).end()
    pipeline.shutdown()
    root.end()
    pipeline.shutdown()
    assert (len(collected.spans), collected.is_shut_down) == (1, True)
    assert pipeline.losses.total() == {"after_shutdown": 1}


def test_shutdown_gives_up_in_time_and_counts_what_is_left(make: Make) -> None:
    collected = Collected()
    collected.gate.clear()
    tracer, pipeline = make(exporters=[collected])
    tool_span(tracer, pipeline)
    while pipeline._queue:
        time.sleep(0.01)
    for _ in range(5):
        tool_span(tracer, pipeline)
    started = time.perf_counter()
    pipeline.shutdown(0.2)
    assert time.perf_counter() - started < 25
    assert len(collected.spans) + pipeline.losses.total()["at_exit"] == 6


def run_script(script: str, **environ: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "SPANREEL_"))}
    return subprocess.run(
        # From Python 3.12 on a fork beside threads warns, which is the script's intention here.
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(script)],
        env={**inherited, **environ},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


SCRIPT = """
    import os, sys
    from spanreel.settings import read_settings
    from spanreel.tracing import TracerSource
    source = TracerSource(read_settings())
    tracer, hold = source.tracer_for()
    def span(name):
        tracer.start_span(name).end()
"""


def read_names(file: Path) -> list[str]:
    return sorted(
        span["name"]
        for line in file.read_text().splitlines()
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    )


@pytest.mark.slow
def test_after_a_fork_nothing_is_exported_twice_and_nothing_is_lost(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    ran = run_script(
        SCRIPT
        + """
    open_span = tracer.start_span("open at the fork")
    for number in range(20):
        span(f"before {number}")
    child = os.fork()
    open_span.end()
    span("child" if child == 0 else "parent")
    if child:
        os.waitpid(child, 0)
    sys.exit(0)
    """,
        SPANREEL_FILE=str(file),
        SPANREEL_FLUSH="run",
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert read_names(file) == sorted([*(f"before {n}" for n in range(20)), "child", "open at the fork", "parent"])


@pytest.mark.slow
def test_at_exit_what_waits_is_exported_by_grpc_and_http(receiver: Received) -> None:
    ran = run_script(
        SCRIPT + "\n    span('last')",
        OTEL_EXPORTER_OTLP_ENDPOINT=receiver.endpoint,
        OTEL_EXPORTER_OTLP_PROTOCOL=os.environ["OTEL_EXPORTER_OTLP_PROTOCOL"],
    )
    assert (ran.returncode, ran.stderr, [span.name for span in receiver.spans]) == (0, "", ["last"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("signal.raise_signal(signal.SIGTERM)", -signal.SIGTERM),
        ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
        ("os._exit(3)", 3),
        ("os.execlp('true', 'true')", 0),
    ],
)
def test_a_process_that_ends_itself_without_the_interpreters_exit_has_exported(
    end: str, code: int, tmp_path: Path
) -> None:
    file = tmp_path / "traces.jsonl"
    ran = run_script(f"{SCRIPT}\n    import signal\n    span('last')\n    {end}", SPANREEL_FILE=str(file))
    assert (ran.returncode, ran.stderr, read_names(file)) == (code, "", ["last"])


@pytest.mark.slow
def test_a_signal_that_the_program_handles_or_sends_to_another_is_waited_for_by_nobody(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    ran = run_script(
        SCRIPT
        + """
    import signal, subprocess
    from opentelemetry.trace import set_span_in_context
    other = subprocess.Popen(["sleep", "60"])
    signal.signal(signal.SIGTERM, lambda number, frame: print("handled"))
    tracer.start_span("waits", set_span_in_context(tracer.start_span("never ended"))).end()
    os.kill(os.getpid(), signal.SIGTERM)
    signal.raise_signal(signal.SIGTERM)
    os.kill(other.pid, signal.SIGTERM)
    print(os.path.exists(os.environ["SPANREEL_FILE"]), other.wait())
    try:
        os.kill(1)
    except TypeError as fault:
        print(fault)
    """,
        SPANREEL_FILE=str(file),
        SPANREEL_FLUSH="run",
    )
    *lines, last = ran.stdout.splitlines()
    assert (lines, ran.stderr) == (["handled", "handled", "False -15"], "")
    assert "kill" in last
    assert read_names(file) == ["waits"]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_pool_that_ends_its_workers_by_a_signal_has_what_their_tasks_recorded(tmp_path: Path, method: str) -> None:
    file, script = tmp_path / "traces.jsonl", tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import multiprocessing, sys
            import spanreel.auto

            @spanreel.run(agent="of a pool")
            def task(number):
                return number + 1

            if __name__ == "__main__":
                with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
                    print(pool.map(task, range(4)))
            """
        )
    )
    environ = {**os.environ, "SPANREEL_FILE": str(file), "SPANREEL_FLUSH": "run"}
    ran = subprocess.run(
        [sys.executable, str(script), method], env=environ, check=True, timeout=600, capture_output=True, text=True
    )
    assert ran.stdout == "[1, 2, 3, 4]\n"
    assert read_names(file) == ["invoke_agent of a pool"] * 4


@pytest.mark.slow
def test_a_thread_that_goes_on_after_the_main_thread_is_recorded(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    ran = run_script(
        """
    import threading
    import spanreel

    @spanreel.run(agent="late")
    def work():
        return "done"

    def later():
        threading.main_thread().join()
        print(work())

    spanreel.instrument()
    threading.Thread(target=later).start()
    """,
        SPANREEL_FILE=str(file),
    )
    assert (ran.returncode, ran.stderr, ran.stdout) == (0, "", "done\n")
    assert read_names(file) == ["invoke_agent late"]


@pytest.mark.slow
def test_a_dead_endpoint_delays_the_exit_by_a_bounded_time_and_says_so_once() -> None:
    started = time.perf_counter()
    ran = run_script(SCRIPT + "\n    span('last')", OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
    assert time.perf_counter() - started < 50
    assert ran.returncode == 0
    (line,) = ran.stderr.splitlines()
    assert line.startswith("spanreel: spans lost on the way to http://127.0.0.1:9 (OTLP over HTTP): export_failed 1; ")
    assert "Connection refused" in line
    assert line.endswith("`spanreel serve` or a Collector would; SPANREEL_FILE=traces.jsonl needs neither")
    assert "retrying" not in line


@pytest.mark.slow
def test_an_endpoint_that_asks_for_a_token_is_told_with_how_to_send_one() -> None:
    def answer(method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        return Reply(401, {}, (b"no token",))

    with closing(LoopbackServer(answer)) as server:
        ran = run_script(SCRIPT + "\n    span('last')", OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{server.port}")
    assert ran.stderr.splitlines()[-1].endswith("OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20TOKEN")


@pytest.mark.slow
def test_an_endpoint_over_http_that_is_no_url_is_named_with_what_it_should_be() -> None:
    ran = run_script(SCRIPT + "\n    span('last')", OTEL_EXPORTER_OTLP_ENDPOINT="localhost:9")
    assert ran.stderr.splitlines()[0] == (
        "spanreel: could not make an exporter, so nothing is exported: the OTLP endpoint is 'localhost:9'; "
        "over HTTP it is a URL, such as http://localhost:4318"
    )


@pytest.mark.slow
def test_exporters_are_not_imported_before_they_are_needed() -> None:
    ran = run_script(SCRIPT + "\n    print([name for name in ('grpc', 'requests') if name in sys.modules])")
    assert ran.stdout == "[]\n"


def test_a_file_holds_bytes_as_base64() -> None:
    written = export_request([ReadableSpan("span", attributes={"bytes": b"\x00"})])
    attributes = written["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"]
    assert attributes == [{"key": "bytes", "value": {"bytesValue": "AA=="}}]


def test_a_file_holds_otlp_json_as_the_collector_writes_it(make: Make, tmp_path: Path) -> None:
    file = tmp_path / "new folder" / "traces-{pid}.jsonl"
    tracer, pipeline = make(read_settings({"SPANREEL_FILE": str(file)}), resource=Resource({"service.name": "app"}))
    parent = SpanContext(0xABC, 0xDEF, is_remote=True, trace_flags=TraceFlags(1))
    from opentelemetry.trace import NonRecordingSpan

    span = tracer.start_span(
        "chat",
        set_span_in_context(NonRecordingSpan(parent)),
        attributes={"s": "ü", "b": True, "i": 2**60, "d": 0.5, "l": ("a", "b")},
        links=[Link(parent, {"k": 1})],
        start_time=1_700_000_000_000_000_001,
    )
    span.add_event("event", {"k": "v"}, timestamp=1_700_000_000_000_000_002)
    span.set_status(Status(StatusCode.ERROR, "no"))
    hold(span, Kept({"map": {"k": [1, None]}}))
    span.end(1_700_000_000_000_000_003)
    assert pipeline.flush(60)
    written = tmp_path / "new folder" / f"traces-{os.getpid()}.jsonl"
    (line,) = written.read_text().splitlines()
    context = span.get_span_context()
    assert json.loads(line) == {
        "resourceSpans": [
            {
                "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "app"}}]},
                "scopeSpans": [
                    {
                        "scope": {"name": "test"},
                        "spans": [
                            {
                                "traceId": f"{0xABC:032x}",
                                "spanId": f"{context.span_id:016x}",
                                "parentSpanId": f"{0xDEF:016x}",
                                "flags": int(context.trace_flags) | 0x300,
                                "name": "chat",
                                "kind": 1,
                                "startTimeUnixNano": "1700000000000000001",
                                "endTimeUnixNano": "1700000000000000003",
                                "attributes": [
                                    {"key": "s", "value": {"stringValue": "ü"}},
                                    {"key": "b", "value": {"boolValue": True}},
                                    {"key": "i", "value": {"intValue": str(2**60)}},
                                    {"key": "d", "value": {"doubleValue": 0.5}},
                                    {
                                        "key": "l",
                                        "value": {
                                            "arrayValue": {"values": [{"stringValue": "a"}, {"stringValue": "b"}]}
                                        },
                                    },
                                    {
                                        "key": "map",
                                        "value": {
                                            "kvlistValue": {
                                                "values": [
                                                    {
                                                        "key": "k",
                                                        "value": {"arrayValue": {"values": [{"intValue": "1"}, {}]}},
                                                    }
                                                ]
                                            }
                                        },
                                    },
                                ],
                                "events": [
                                    {
                                        "timeUnixNano": "1700000000000000002",
                                        "name": "event",
                                        "attributes": [{"key": "k", "value": {"stringValue": "v"}}],
                                    }
                                ],
                                "links": [
                                    {
                                        "traceId": f"{0xABC:032x}",
                                        "spanId": f"{0xDEF:016x}",
                                        "attributes": [{"key": "k", "value": {"intValue": "1"}}],
                                        "flags": 0x301,
                                    }
                                ],
                                "status": {"code": 2, "message": "no"},
                            }
                        ],
                    }
                ],
            }
        ]
    }
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    # Protobuf's own reader takes it, once the ids are in the base64 that generic JSON mapping would have.
    spans = [span for resource in json.loads(line)["resourceSpans"] for span in resource["scopeSpans"][0]["spans"]]
    for one in spans:
        one.update(traceId="", spanId="", parentSpanId="", links=[])
    json_format.ParseDict({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}, ExportTraceServiceRequest())


@pytest.mark.slow
def test_several_processes_append_whole_lines_to_one_file(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    script = SCRIPT + "\n    for n in range(300): span('x' * 900); source.flush()"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(script)], env={**os.environ, "SPANREEL_FILE": str(file)}
        )
        for _ in range(3)
    ]
    assert [process.wait(600) for process in processes] == [0, 0, 0]
    assert len(read_names(file)) == 900


def test_a_file_that_cannot_be_written_is_a_counted_loss(make: Make, tmp_path: Path) -> None:
    tracer, pipeline = make(read_settings({"SPANREEL_FILE": str(tmp_path)}))
    tool_span(tracer, pipeline)
    assert pipeline.flush(60)
    assert pipeline.losses.total() == {"export_failed": 1}


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (Settings(), "records runs, model calls and tool calls to http://localhost:4318 (OTLP over HTTP), content on"),
        (
            read_settings({"SPANREEL_FILE": "t.jsonl", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://u:pw@c:4317"}),
            (
                "records runs, model calls and tool calls to the file t.jsonl and http://u:[redacted]@c:4317 "
                "(OTLP over gRPC), content on"
            ),
        ),
        (
            Settings(capture=CaptureLevel.METADATA, exporters=("console",)),
            "records runs, model calls and tool calls to console, content off",
        ),
        (Settings(exporters=()), "records runs, model calls and tool calls to nowhere, content on"),
        (Settings(capture=CaptureLevel.OFF), "records nothing: switched off"),
        (Settings(disabled=True), "records nothing: switched off"),
    ],
)
def test_the_line_at_start_says_what_records_and_where_to(settings: Settings, line: str) -> None:
    name, version, rest = describe(settings).split(" ", 2)
    assert (name, rest) == ("spanreel", line)
    assert version


def test_the_log_is_silent_where_it_is_switched_off(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    tracer, pipeline = make(read_settings({"SPANREEL_LOG": "off"}), [Collected(failures=1)])
    tool_span(tracer, pipeline)
    with caplog.at_level(logging.DEBUG):
        pipeline.shutdown()
    assert (pipeline.losses.total(), caplog.text) == ({"export_failed": 1}, "")


@pytest.mark.slow
def test_the_console_exporter_is_the_sdks() -> None:
    ran = run_script(SCRIPT + "\n    span('shown')", OTEL_TRACES_EXPORTER="console")
    assert '"name": "shown"' in ran.stdout


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_child_of_multiprocessing_exports_before_it_ends(tmp_path: Path, method: str) -> None:
    file = tmp_path / "traces.jsonl"
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(SCRIPT)
        + textwrap.dedent(
            """
            import multiprocessing
            from opentelemetry.trace import set_span_in_context

            def work():
                root = tracer.start_span("never ended")
                for number in range(100):
                    tracer.start_span("child", set_span_in_context(root)).end()

            if __name__ == "__main__":
                span("parent")
                process = multiprocessing.get_context(sys.argv[1]).Process(target=work)
                process.start()
                process.join()
            """
        )
    )
    environ = {**os.environ, "SPANREEL_FILE": str(file), "SPANREEL_FLUSH": "run"}
    subprocess.run([sys.executable, str(script), method], env=environ, check=True, timeout=600)
    assert read_names(file) == ["child"] * 100 + ["parent"]


def test_a_span_that_cannot_be_finished_costs_only_itself(make: Make) -> None:
    collected = Collected()
    tracer, pipeline = make(Settings(flush=Flush.RUN), [collected])
    root = set_span_in_context(tracer.start_span("root"))
    for capture in (Kept({}), Kept({1: "no name"}), Kept({})):  # type: ignore[dict-item]  # that is the fault
        span = tracer.start_span("child", root)
        hold(span, capture)
        span.end()
    assert pipeline.flush(60)
    assert (len(collected.spans), pipeline.losses.total()) == (2, {"export_failed": 1})
