"""Who records: us and our peers, each with its content on, and an exporter that encodes OTLP and drops it."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

BARE = "without"
SPANREEL = "spanreel"
UNREDACTED = "spanreel, nothing redacted"

INSTRUMENTORS = {
    "otel-genai": {
        "openai": "opentelemetry.instrumentation.genai.openai:OpenAIInstrumentor",
        "anthropic": "opentelemetry.instrumentation.genai.anthropic:AnthropicInstrumentor",
        "langchain": "opentelemetry.instrumentation.genai.langchain:LangChainInstrumentor",
        "openai-agents": "opentelemetry.instrumentation.genai.openai_agents:OpenAIAgentsInstrumentor",
    },
    "openinference": {
        "openai": "openinference.instrumentation.openai:OpenAIInstrumentor",
        "anthropic": "openinference.instrumentation.anthropic:AnthropicInstrumentor",
        "langchain": "openinference.instrumentation.langchain:LangChainInstrumentor",
        "openai-agents": "openinference.instrumentation.openai_agents:OpenAIAgentsInstrumentor",
    },
    "openllmetry": {
        "openai": "opentelemetry.instrumentation.openai:OpenAIInstrumentor",
        "anthropic": "opentelemetry.instrumentation.anthropic:AnthropicInstrumentor",
        "langchain": "opentelemetry.instrumentation.langchain:LangchainInstrumentor",
        "openai-agents": "opentelemetry.instrumentation.openai_agents:OpenAIAgentsInstrumentor",
    },
}
LOGFIRE = {
    "openai": "instrument_openai",
    "anthropic": "instrument_anthropic",
    "openai-agents": "instrument_openai_agents",
    "pydantic-ai": "instrument_pydantic_ai",
}


def recorders_of(library: str) -> list[str]:
    """Nobody, us, and the peers that support this library."""
    peers = [name for name, supported in {**INSTRUMENTORS, "logfire": LOGFIRE}.items() if library in supported]
    return [BARE, SPANREEL, *peers]


class Encoding(SpanExporter):
    """Does the work of an export and sends nothing; counts what it would have sent."""

    def __init__(self, encode: Callable[[Sequence[ReadableSpan]], bytes]) -> None:
        self._encode = encode
        self.spans = 0
        self.sent = 0
        self.last = b""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.last = self._encode(spans)
        self.spans += len(spans)
        self.sent += len(self.last)
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        pass

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return True


def by_messages(spans: Sequence[ReadableSpan]) -> bytes:
    """As the SDK's exporters encode; ours does so by its own means, to the same bytes."""
    written: bytes = encode_spans(spans).SerializeToString()
    return written


Flush = Callable[[], object]


def start(recorder: str, library: str) -> tuple[Encoding, Flush]:
    """Record from here on; where it goes, and how to have all of it go."""
    if recorder in (SPANREEL, UNREDACTED):
        return _spanreel(redacts=recorder == SPANREEL)
    exporter = Encoding(by_messages)
    if recorder == BARE:
        return exporter, lambda: None
    # What each of the peers needs to record content on spans by the newest conventions.
    os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"
    os.environ["TRACELOOP_TRACE_CONTENT"] = "true"
    os.environ["OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT"] = "100000"  # one of them has an attribute a field of a message
    if recorder == "logfire":
        return exporter, _logfire(exporter, library)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    module, _, name = INSTRUMENTORS[recorder][library].partition(":")
    getattr(importlib.import_module(module), name)().instrument(tracer_provider=provider)
    return exporter, provider.force_flush


def _spanreel(*, redacts: bool) -> tuple[Encoding, Flush]:
    import spanreel
    from spanreel import boundary
    from spanreel.otlp_bytes import encode
    from spanreel.redaction import make_policy
    from spanreel.settings import read_settings
    from spanreel.tracing import TracerSource

    settings = read_settings({"SPANREEL_LOG": "off"})
    if not redacts:
        settings = replace(settings, redaction=make_policy("nothing/1", extends=None))
    spanreel.instrument(settings=settings)
    installed = boundary.installed()
    assert installed is not None
    exporter = Encoding(encode)
    installed.source = TracerSource(settings, exporters=[exporter])
    return exporter, spanreel.flush


def _logfire(exporter: Encoding, library: str) -> Flush:
    logfire: Any = importlib.import_module("logfire")  # not in the environment that types are checked in
    logfire.configure(
        send_to_logfire=False,
        console=False,
        inspect_arguments=False,
        additional_span_processors=[BatchSpanProcessor(exporter)],
    )
    getattr(logfire, LOGFIRE[library])()
    flush: Flush = logfire.force_flush
    return flush
