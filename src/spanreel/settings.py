"""The environment, read once: what is captured, how far it is bounded, where it goes. Decides nothing itself.

Sources of the ``OTEL_*`` names: the OpenTelemetry SDK environment variable and OTLP exporter specifications.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import urlsplit

from spanreel.errors import SettingsError

if TYPE_CHECKING:  # policies are loaded when one is needed, which is not at the start of every program
    from spanreel.policy import Policy

CAPTURE: Final = "SPANREEL_CAPTURE"
FLUSH: Final = "SPANREEL_FLUSH"
LOG: Final = "SPANREEL_LOG"
NATIVE: Final = "SPANREEL_NATIVE"
FILE: Final = "SPANREEL_FILE"
PATHS: Final = "SPANREEL_PATHS"
MAX_VALUE_BYTES: Final = "SPANREEL_MAX_VALUE_BYTES"
MAX_SPAN_BYTES: Final = "SPANREEL_MAX_SPAN_BYTES"
QUEUE_BYTES: Final = "SPANREEL_QUEUE_BYTES"
MAX_TOOL_CHARACTERS: Final = "SPANREEL_MAX_TOOL_CHARACTERS"
MAX_PAYLOAD_CHARACTERS: Final = "SPANREEL_MAX_PAYLOAD_CHARACTERS"
OFFLOAD: Final = "SPANREEL_OFFLOAD"
"""A folder or an fsspec URL, where large values and binary content are kept beside the spans."""
OFFLOAD_BYTES: Final = "SPANREEL_OFFLOAD_BYTES"
REDACTION: Final = "SPANREEL_REDACTION"
"""What is redacted: the name of a policy of ours, or a TOML file."""
FREEZE: Final = "SPANREEL_FREEZE"
"""Whether what the agent's own code draws from the clock, uuid4 and random is kept for replays: ``1``."""
REPLAY: Final = "SPANREEL_REPLAY"
"""The session document that this process replays; set by ``spanreel replay`` for its child."""
REPLAY_REPORT: Final = "SPANREEL_REPLAY_REPORT"
"""Where the child writes what happens, one JSON line an event."""
REPLAY_ALLOW: Final = "SPANREEL_REPLAY_ALLOW"
"""The ``host:port`` addresses that the child may reach, with commas between."""
REPLAY_GUARD: Final = "SPANREEL_REPLAY_GUARD"
"""``deny:<pid>`` in the children of a replayed process, which must run nothing live; set by that process for them."""
REPLAY_SERVE_REDACTED: Final = "SPANREEL_REPLAY_SERVE_REDACTED"
"""Whether the child is answered with what is redacted in the recording."""
REPLAY_CHANGES: Final = "SPANREEL_REPLAY_CHANGES"
"""A file with what the child's replay changes."""
RUN_INPUT: Final = "SPANREEL_RUN_INPUT"
"""JSON: what the replayed run was asked: the user's text, or messages."""

OTEL_CONTENT: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
OTEL_DISABLED: Final = "OTEL_SDK_DISABLED"
OTEL_EXPORTER: Final = "OTEL_TRACES_EXPORTER"
OTEL_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
OTEL_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
OTEL_VALUE_LIMITS: Final = ("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT")

MIB: Final = 1024 * 1024
DEFAULT_HTTP: Final = "http://localhost:4318"
DEFAULT_GRPC: Final = "http://localhost:4317"


class CaptureLevel(StrEnum):
    """How much is recorded."""

    FULL = "full"
    BOUNDED = "bounded"
    """Content, with what tools were given and gave cut short."""
    METADATA = "metadata"
    OFF = "off"


class Flush(StrEnum):
    """At the end of what the export thread is woken."""

    CALL = "call"
    TURN = "turn"
    RUN = "run"


class Log(StrEnum):
    """What spanreel says on the log."""

    OFF = "off"
    WARNING = "warning"
    INFO = "info"
    DEBUG = "debug"


class Native(StrEnum):
    """What becomes of the spans that libraries make of the same calls by themselves."""

    SILENCE = "silence"
    KEEP = "keep"


class OtlpProtocol(StrEnum):
    """How OTLP travels."""

    GRPC = "grpc"
    HTTP = "http/protobuf"


_OTEL_CONTENT_VALUES: Final = {
    "no_content": CaptureLevel.METADATA,
    "false": CaptureLevel.METADATA,
    "event_only": CaptureLevel.METADATA,  # events are not ours, so nothing of the content is asked of spans
    "span_only": CaptureLevel.FULL,
    "span_and_event": CaptureLevel.FULL,
    "true": CaptureLevel.FULL,
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment asks for. Sizes are in bytes of UTF-8; ``paths`` are URL path suffixes to protocol names.

    ``redaction`` is a policy, or names one (`spanreel.redaction.policy_of` finds it).
    ``endpoint`` is where OTLP goes, None where only a file, the console or nothing is asked for. ``exporters`` are the
    names of ``OTEL_TRACES_EXPORTER``.
    """

    capture: CaptureLevel = CaptureLevel.FULL
    flush: Flush = Flush.CALL
    log: Log = Log.INFO
    native: Native = Native.SILENCE
    file: str | None = None
    paths: Mapping[str, str] = field(default_factory=dict)
    max_value_bytes: int = MIB
    max_span_bytes: int = 3 * MIB
    queue_bytes: int = 64 * MIB
    max_tool_characters: int = 4096
    max_payload_characters: int = MIB
    offload: str | None = None
    offload_bytes: int = 64 * 1024
    freeze: bool = False
    redaction: str | Policy = "default"
    disabled: bool = False
    exporters: tuple[str, ...] = ("otlp",)
    protocol: OtlpProtocol = OtlpProtocol.HTTP
    endpoint: str | None = DEFAULT_HTTP

    @property
    def content(self) -> bool:
        """Whether content is recorded."""
        return self.capture in (CaptureLevel.FULL, CaptureLevel.BOUNDED)


def read_settings(environ: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings.

    Raises:
        SettingsError: a value that is not allowed; names the variable, the value and what is allowed.
    """
    file = _text(environ, FILE)
    endpoint = next((environ[name].strip() for name in OTEL_ENDPOINTS if environ.get(name, "").strip()), None)
    exporters = _exporters(environ, alone=file is not None and endpoint is None)
    protocol = _protocol(environ, endpoint)
    default = DEFAULT_GRPC if protocol is OtlpProtocol.GRPC else DEFAULT_HTTP
    return Settings(
        capture=_capture(environ),
        flush=_choice(environ, FLUSH, Flush, Flush.CALL),
        log=_choice(environ, LOG, Log, Log.INFO),
        native=_choice(environ, NATIVE, Native, Native.SILENCE),
        file=file,
        paths=_paths(environ),
        max_value_bytes=min(_size(environ, MAX_VALUE_BYTES, MIB), _otel_value_limit(environ)),
        max_span_bytes=_size(environ, MAX_SPAN_BYTES, 3 * MIB),
        queue_bytes=_size(environ, QUEUE_BYTES, 64 * MIB),
        max_tool_characters=_size(environ, MAX_TOOL_CHARACTERS, 4096, "characters"),
        max_payload_characters=_size(environ, MAX_PAYLOAD_CHARACTERS, MIB, "characters"),
        offload=_text(environ, OFFLOAD),
        offload_bytes=_size(environ, OFFLOAD_BYTES, 64 * 1024),
        freeze=_switch(environ, FREEZE),
        redaction=_text(environ, REDACTION) or "default",
        disabled=environ.get(OTEL_DISABLED, "").strip().lower() == "true",
        exporters=exporters,
        protocol=protocol,
        endpoint=(endpoint or default) if "otlp" in exporters else None,
    )


def _text(environ: Mapping[str, str], name: str) -> str | None:
    return environ.get(name, "").strip() or None


Choice = TypeVar("Choice", bound=StrEnum)


def _choice(environ: Mapping[str, str], name: str, choices: type[Choice], default: Choice) -> Choice:
    value = _text(environ, name)
    if value is None:
        return default
    try:
        return choices(value.lower())
    except ValueError:
        raise _wrong(name, value, ", ".join(choices)) from None


def read_native(value: str) -> Native:
    """What a value of ``SPANREEL_NATIVE`` means.

    Raises:
        SettingsError: another value than those that are allowed.
    """
    return _choice({NATIVE: value}, NATIVE, Native, Native.SILENCE)


def _capture(environ: Mapping[str, str]) -> CaptureLevel:
    otel = _text(environ, OTEL_CONTENT)
    if _text(environ, CAPTURE) is not None or otel is None:
        return _choice(environ, CAPTURE, CaptureLevel, CaptureLevel.FULL)
    if otel.lower() not in _OTEL_CONTENT_VALUES:
        raise _wrong(OTEL_CONTENT, otel, ", ".join(_OTEL_CONTENT_VALUES))
    return _OTEL_CONTENT_VALUES[otel.lower()]


def _size(environ: Mapping[str, str], name: str, default: int, unit: str = "bytes") -> int:
    value = _text(environ, name)
    if value is None:
        return default
    if not (value.isascii() and value.isdecimal() and int(value) >= 1024):
        raise _wrong(name, value, f"a number of {unit}, 1024 or more")
    return int(value)


def _switch(environ: Mapping[str, str], name: str) -> bool:
    value = _text(environ, name) or "0"
    if value.lower() not in _SWITCH:
        raise _wrong(name, value, "1, or 0")
    return _SWITCH[value.lower()]


_SWITCH: Final = {
    "1": True, "true": True, "yes": True, "on": True,
    "0": False, "false": False, "no": False, "off": False,
}  # fmt: skip


def _otel_value_limit(environ: Mapping[str, str]) -> int:
    # The specification counts characters and sets no limit by default; what cannot be read is the SDK's to complain of.
    value = next((environ[name].strip() for name in OTEL_VALUE_LIMITS if environ.get(name, "").strip()), "")
    return int(value) if value.isascii() and value.isdecimal() else 1 << 62


def _paths(environ: Mapping[str, str]) -> dict[str, str]:
    paths = {}
    for entry in (_text(environ, PATHS) or "").split(","):
        if not entry.strip():
            continue
        suffix, equals, protocol = (part.strip() for part in entry.rpartition("="))
        if not (equals and suffix and protocol):
            raise _wrong(PATHS, environ[PATHS], "'suffix=protocol,...', such as '/v2/chat=openai_chat'")
        paths[suffix] = protocol
    return paths


def _exporters(environ: Mapping[str, str], *, alone: bool) -> tuple[str, ...]:
    """The exporters beside the file; a file alone means no other, unless one is asked for."""
    names = [name.strip().lower() for name in environ.get(OTEL_EXPORTER, "").split(",") if name.strip()]
    if not names:
        return () if alone else ("otlp",)
    return tuple(dict.fromkeys(name for name in names if name != "none"))


def _protocol(environ: Mapping[str, str], endpoint: str | None) -> OtlpProtocol:
    name = next((name for name in OTEL_PROTOCOLS if _text(environ, name)), None)
    if name is not None:
        if environ[name].strip().lower() == "http/json":
            return OtlpProtocol.HTTP  # the SDK has no JSON exporter; every receiver of it takes protobuf too
        return _choice(environ, name, OtlpProtocol, OtlpProtocol.HTTP)
    return OtlpProtocol.GRPC if endpoint and _port(endpoint) == 4317 else OtlpProtocol.HTTP


def _port(endpoint: str) -> int | None:
    try:
        return urlsplit(endpoint if "://" in endpoint else f"//{endpoint}").port
    except ValueError:
        raise _wrong("the OTLP endpoint", endpoint, "a URL such as http://localhost:4318") from None


def _wrong(name: str, value: str, allowed: str) -> SettingsError:
    return SettingsError(f"{name} is {value!r}; allowed: {allowed}")
