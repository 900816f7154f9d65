"""Makes `CLERK.RECORDER.otlp.jsonl.gz`: each clerk, recorded by others, before the scripted provider.

``PYTHONPATH=src:tests python tests/golden/foreign/make.py FOLDER`` makes an environment for each recorder in FOLDER,
with uv, and all traces; with ``RECORDER CLERK`` instead, in such an environment, that one.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from golden.foreign import clerks
from spanreel import testing
from spanreel.otlp_file import export_request

HERE = Path(__file__).parent
_MACHINE = (
    "stacktrace",
    "stack_trace",
    "process.",
    "host.",
    "service.instance",
    "telemetry.",
    "code.",
    "os.",
    "service.version",
)
"""Of attributes that hold this machine's paths, or differ from run to run."""

_CLERKS = ("openai", "openai-agents", "anthropic", "langgraph", "langchain", "langchain-openai", "pydantic-ai-slim")
_OURS = ("opentelemetry-sdk", "wrapt", "pydantic", "httpx")
PACKAGES = {
    "openinference": tuple(
        f"openinference-instrumentation-{name}"
        for name in ("openai", "anthropic", "openai-agents", "langchain", "pydantic-ai")
    ),
    "openllmetry": (
        "traceloop-sdk",
        *(f"opentelemetry-instrumentation-{name}" for name in ("openai", "anthropic", "openai-agents", "langchain")),
    ),
    "genai": tuple(
        f"opentelemetry-instrumentation-genai-{name}" for name in ("openai", "anthropic", "openai-agents", "langchain")
    ),
    "pydantic_ai": (),
    "logfire": ("logfire", "langsmith[otel]"),
}


class Lines(SpanExporter):
    """Keeps each span as a line, without what is the machine's."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        document = export_request(spans)
        for resource in document["resourceSpans"]:
            _clean(resource["resource"])
            for span in (span for scope in resource["scopeSpans"] for span in scope["spans"]):
                for holder in (span, *span.get("events", ())):
                    _clean(holder)
        self.lines.append(json.dumps(document, ensure_ascii=False) + "\n")
        return SpanExportResult.SUCCESS


def _clean(holder: dict[str, Any]) -> None:
    holder["attributes"] = [
        pair for pair in holder.get("attributes", ()) if not any(word in pair["key"] for word in _MACHINE)
    ]


# -- the recorders ---------------------------------------------------------------------------------------------------

Recorder = Callable[[str, Lines], tuple[clerks.Around, clerks.Around]]
"""Starts to record a clerk; what stands around its tools and around its run, as that recorder's users write it."""


def openinference(clerk: str, lines: Lines) -> tuple[clerks.Around, clerks.Around]:
    from openinference.instrumentation import OITracer, TraceConfig

    provider = TracerProvider()
    if clerk == "pydantic_ai":
        from openinference.instrumentation.pydantic_ai import OpenInferenceSpanProcessor
        from pydantic_ai import Agent
        from pydantic_ai.models.instrumented import InstrumentationSettings

        provider.add_span_processor(OpenInferenceSpanProcessor())
        Agent.instrument_all(InstrumentationSettings(tracer_provider=provider))
    elif clerk == "openai_loop":
        from openinference.instrumentation.openai import OpenAIInstrumentor

        OpenAIInstrumentor().instrument(tracer_provider=provider)
    elif clerk == "anthropic_loop":
        from openinference.instrumentation.anthropic import AnthropicInstrumentor

        AnthropicInstrumentor().instrument(tracer_provider=provider)
    elif clerk.startswith("openai_agents"):
        from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

        OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)
    else:
        from openinference.instrumentation.langchain import LangChainInstrumentor

        LangChainInstrumentor().instrument(tracer_provider=provider)
    provider.add_span_processor(SimpleSpanProcessor(lines))
    tracer: Any = OITracer(provider.get_tracer("clerk"), TraceConfig())
    return tracer.tool, tracer.agent(name="clerk") if clerk.endswith("_loop") else _alone


def openllmetry(clerk: str, lines: Lines) -> tuple[clerks.Around, clerks.Around]:
    from traceloop.sdk import Traceloop
    from traceloop.sdk.decorators import agent, tool
    from traceloop.sdk.instruments import Instruments

    chosen = {
        "openai_loop": Instruments.OPENAI,
        "anthropic_loop": Instruments.ANTHROPIC,
        "openai_agents": Instruments.OPENAI_AGENTS,
        "langgraph": Instruments.LANGCHAIN,
        "pydantic_ai": Instruments.OPENAI,
    }[_library(clerk)]
    with contextlib.redirect_stdout(sys.stderr):  # it greets
        Traceloop.init("clerk", processor=SimpleSpanProcessor(lines), instruments={chosen}, telemetry_enabled=False)
    named: Any = tool
    around = lambda function: named(name=function.__name__)(function)  # noqa: E731 - as short as what it stands for
    return around, agent(name="clerk") if clerk.endswith("_loop") else _alone


def genai(clerk: str, lines: Lines) -> tuple[clerks.Around, clerks.Around]:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(lines))
    if clerk == "anthropic_loop":
        from opentelemetry.instrumentation.genai.anthropic import AnthropicInstrumentor as Instrumentor
    elif clerk.startswith("openai_agents"):
        from opentelemetry.instrumentation.genai.openai_agents import OpenAIAgentsInstrumentor as Instrumentor
    elif clerk.startswith("langgraph"):
        from opentelemetry.instrumentation.genai.langchain import LangChainInstrumentor as Instrumentor
    else:
        from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor as Instrumentor
    Instrumentor().instrument(tracer_provider=provider)
    if clerk.startswith("openai_agents"):  # it leaves the calls of models to the client's
        from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor

        OpenAIInstrumentor().instrument(tracer_provider=provider)
    return _by_handler(provider), _in_span(provider)


def _by_handler(provider: TracerProvider) -> clerks.Around:
    """Tools as its telemetry handler records them, which is what there is for loops written by hand."""
    from opentelemetry.util.genai.handler import TelemetryHandler

    handler = TelemetryHandler(tracer_provider=provider)

    def around(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:
            with handler.tool(function.__name__, tool_type="function") as invocation:
                invocation.arguments = arguments
                invocation.tool_result = result = function(**arguments)
                return result

        return call

    return around


def pydantic_ai(clerk: str, lines: Lines) -> tuple[clerks.Around, clerks.Around]:
    from pydantic_ai import Agent
    from pydantic_ai.models.instrumented import InstrumentationSettings

    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(lines))
    Agent.instrument_all(InstrumentationSettings(tracer_provider=provider))
    return _alone, _alone


def logfire(clerk: str, lines: Lines) -> tuple[clerks.Around, clerks.Around]:
    import logfire as library

    if clerk.startswith("langgraph"):  # before LangChain is imported, as Logfire's documentation has it
        os.environ.update(LANGSMITH_OTEL_ENABLED="true", LANGSMITH_OTEL_ONLY="true", LANGSMITH_TRACING="true")
        os.environ["LANGSMITH_ENDPOINT"] = "http://127.0.0.1:9"  # nothing is sent to LangSmith
    processors = [SimpleSpanProcessor(lines)]
    library.configure(send_to_logfire=False, console=False, additional_span_processors=processors)
    if clerk == "openai_loop":
        library.instrument_openai()
    elif clerk == "anthropic_loop":
        library.instrument_anthropic()
    elif clerk.startswith("openai_agents"):
        library.instrument_openai_agents()
    elif clerk == "pydantic_ai":
        library.instrument_pydantic_ai()
    return library.instrument(record_return=True), library.instrument("clerk", extract_args=False)


def _library(clerk: str) -> str:
    return next(name for name in ("openai_agents", "langgraph", clerk) if clerk.startswith(name))


def _alone(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def _in_span(provider: TracerProvider) -> Callable[..., Any]:
    def around(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            with provider.get_tracer("clerk").start_as_current_span("clerk"):
                return function(*given)

        return call

    return around


RECORDERS: dict[str, Recorder] = {
    recorder.__name__: recorder for recorder in (openinference, openllmetry, genai, pydantic_ai, logfire)
}


def pairings() -> list[tuple[str, str]]:
    """Each clerk and each recorder that knows it."""
    return [
        (clerk, recorder)
        for clerk in clerks.CLERKS
        for recorder in RECORDERS
        if recorder != "pydantic_ai" or clerk == "pydantic_ai"
    ]


def record(recorder: str, clerk: str) -> None:
    """One trace, in an environment that has the recorder."""
    os.environ.update(
        OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="SPAN_ONLY",
        OTEL_SEMCONV_STABILITY_OPT_IN="gen_ai_latest_experimental",
        OPENAI_API_KEY="none",
        OTEL_RESOURCE_ATTRIBUTES="service.name=clerk",
    )
    if clerk.startswith("openai_agents"):
        import agents

        agents.set_trace_processors([])  # its own would send the traces to OpenAI
    lines = Lines()
    around, run = RECORDERS[recorder](clerk, lines)
    with testing.ScriptedProvider(clerks.script(clerk)) as provider:
        url = provider.base_url
        answered = clerks.CLERKS[clerk](url, around, run)
        if recorder == "logfire" and clerk.startswith("langgraph"):
            from langchain_core.tracers.langchain import wait_for_all_tracers

            wait_for_all_tracers()
    assert (answered, clerks.RAN) == (clerks.ANSWER, clerks.runs(clerk)), (answered, clerks.RAN)
    assert lines.lines, "nothing was recorded"
    file = HERE / f"{clerk}.{recorder}.otlp.jsonl.gz"
    text = "".join(lines.lines).replace(url.removesuffix("/v1"), "http://provider.test")
    for path in (sys.prefix, sys.base_prefix, str(HERE.parents[2])):
        text = text.replace(path, "here")
    file.write_bytes(gzip.compress(text.encode(), mtime=0))


def make(folder: Path) -> None:
    """All traces, each recorder in an environment of its own."""
    for recorder, packages in PACKAGES.items():
        python = folder / recorder / "bin" / "python"
        if not python.exists():
            subprocess.run(["uv", "venv", "-q", str(folder / recorder)], check=True)
            install = ["uv", "pip", "install", "-q", "--python", str(python), *_CLERKS, *_OURS, *packages]
            subprocess.run(install, check=True)
        for clerk, by in pairings():
            if by == recorder:
                done = subprocess.run([str(python), __file__, recorder, clerk], check=False)
                sys.stderr.write(f"{clerk} by {recorder}: {'made' if done.returncode == 0 else 'failed'}\n")


if __name__ == "__main__":
    record(*sys.argv[1:]) if len(sys.argv) > 2 else make(Path(sys.argv[1]))
