"""The environment as settings."""

from __future__ import annotations

import pytest

from spanreel.errors import SettingsError
from spanreel.settings import CaptureLevel, Flush, Log, OtlpProtocol, Settings, read_settings


def test_an_empty_environment_gives_the_defaults() -> None:
    assert read_settings({}) == Settings()


@pytest.mark.parametrize(
    ("environ", "capture"),
    [
        ({"SPANREEL_CAPTURE": "metadata"}, CaptureLevel.METADATA),
        ({"SPANREEL_CAPTURE": "OFF"}, CaptureLevel.OFF),
        ({"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "NO_CONTENT"}, CaptureLevel.METADATA),
        ({"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "false"}, CaptureLevel.METADATA),
        ({"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "EVENT_ONLY"}, CaptureLevel.METADATA),
        ({"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY"}, CaptureLevel.FULL),
        ({"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_AND_EVENT"}, CaptureLevel.FULL),
        ({"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true"}, CaptureLevel.FULL),
        ({"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": ""}, CaptureLevel.FULL),
        (
            {"SPANREEL_CAPTURE": "full", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "false"},
            CaptureLevel.FULL,
        ),
    ],
)
def test_ours_beats_the_common_content_switch(environ: dict[str, str], capture: CaptureLevel) -> None:
    assert read_settings(environ).capture is capture


@pytest.mark.parametrize(
    ("environ", "protocol", "endpoint"),
    [
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317"}, OtlpProtocol.GRPC, "http://c:4317"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "c:4317"}, OtlpProtocol.GRPC, "c:4317"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, OtlpProtocol.HTTP, "http://c:4318"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c/v1/traces"}, OtlpProtocol.HTTP, "http://c/v1/traces"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, OtlpProtocol.GRPC, "http://localhost:4317"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, OtlpProtocol.HTTP, "http://localhost:4318"),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"},
            OtlpProtocol.HTTP,
            "http://c:4317",
        ),
    ],
)
def test_the_otlp_protocol_follows_the_port_where_none_is_set(
    environ: dict[str, str], protocol: OtlpProtocol, endpoint: str
) -> None:
    settings = read_settings(environ)
    assert (settings.protocol, settings.endpoint, settings.exporters) == (protocol, endpoint, ("otlp",))


def test_a_file_alone_means_the_file_only() -> None:
    settings = read_settings({"SPANREEL_FILE": "traces.jsonl"})
    assert (settings.file, settings.exporters, settings.endpoint) == ("traces.jsonl", (), None)


def test_a_file_and_an_endpoint_mean_both() -> None:
    settings = read_settings({"SPANREEL_FILE": "traces.jsonl", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"})
    assert (settings.file, settings.exporters) == ("traces.jsonl", ("otlp",))


@pytest.mark.parametrize(
    ("value", "exporters"), [("none", ()), ("console", ("console",)), ("OTLP, console,otlp", ("otlp", "console"))]
)
def test_the_exporters_are_those_named(value: str, exporters: tuple[str, ...]) -> None:
    assert read_settings({"OTEL_TRACES_EXPORTER": value}).exporters == exporters


def test_everything_else_is_read() -> None:
    settings = read_settings(
        {
            "SPANREEL_FLUSH": "run",
            "SPANREEL_LOG": "off",
            "SPANREEL_PATHS": "/v2/chat=openai_chat, /ask?v=2=openai_responses,",
            "SPANREEL_MAX_VALUE_BYTES": "2048",
            "SPANREEL_MAX_SPAN_BYTES": "4096",
            "SPANREEL_QUEUE_BYTES": "8192",
            "OTEL_SDK_DISABLED": "TRUE",
        }
    )
    assert settings == Settings(
        flush=Flush.RUN,
        log=Log.OFF,
        paths={"/v2/chat": "openai_chat", "/ask?v=2": "openai_responses"},
        max_value_bytes=2048,
        max_span_bytes=4096,
        queue_bytes=8192,
        disabled=True,
    )


@pytest.mark.parametrize(
    ("environ", "limit"),
    [
        ({"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "5000"}, 5000),
        ({"OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT": "6000", "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "5000"}, 6000),
        ({"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "none"}, 1024 * 1024),
    ],
)
def test_the_common_length_limit_holds_where_it_is_less(environ: dict[str, str], limit: int) -> None:
    assert read_settings(environ).max_value_bytes == limit


@pytest.mark.parametrize(
    ("environ", "text"),
    [
        ({"SPANREEL_CAPTURE": "all"}, "SPANREEL_CAPTURE is 'all'; allowed: full, bounded, metadata, off"),
        ({"SPANREEL_FLUSH": "never"}, "SPANREEL_FLUSH is 'never'; allowed: call, turn, run"),
        ({"SPANREEL_LOG": "loud"}, "SPANREEL_LOG is 'loud'; allowed: off, warning, info, debug"),
        ({"SPANREEL_QUEUE_BYTES": "64M"}, "SPANREEL_QUEUE_BYTES is '64M'; allowed: a number of bytes, 1024 or more"),
        ({"SPANREEL_QUEUE_BYTES": "1"}, "SPANREEL_QUEUE_BYTES is '1'; allowed: a number of bytes, 1024 or more"),
        (
            {"SPANREEL_PATHS": "/v2/chat"},
            "SPANREEL_PATHS is '/v2/chat'; allowed: 'suffix=protocol,...', such as '/v2/chat=openai_chat'",
        ),
        (
            {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "maybe"},
            (
                "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT is 'maybe'; "
                "allowed: no_content, false, event_only, span_only, span_and_event, true"
            ),
        ),
        ({"SPANREEL_FREEZE": "oui"}, "SPANREEL_FREEZE is 'oui'; allowed: 1, or 0"),
        (
            {"OTEL_EXPORTER_OTLP_PROTOCOL": "carrier-pigeon"},
            "OTEL_EXPORTER_OTLP_PROTOCOL is 'carrier-pigeon'; allowed: grpc, http/protobuf",
        ),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:http"},
            "the OTLP endpoint is 'http://c:http'; allowed: a URL such as http://localhost:4318",
        ),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(environ: dict[str, str], text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read_settings(environ)
    assert str(caught.value) == text
