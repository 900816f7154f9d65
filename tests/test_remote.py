"""Traces fetched from Jaeger and Phoenix, which stand on loopback here."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from otlp_lines import BEGAN, SECOND, TRACE, span_id
from spanreel.session_files import load_sessions
from spanreel_collector.conversion.convert import Conversion, convert, convert_files
from spanreel_collector.sources import fetching
from spanreel_collector.sources.files import read_piece
from spanreel_collector.sources.remote import Wanted, fetch_pieces
from test_convert import run

MESSAGES = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}])
ANSWER = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "Ho"}]}])
SINCE, UNTIL = datetime.fromtimestamp(0, UTC), datetime(2030, 1, 1, tzinfo=UTC)


@dataclass
class Asked:
    """One request as it came."""

    path: str
    query: dict[str, str]
    headers: dict[str, str]


@dataclass
class Backend:
    """An address, and what was asked of it; ``answer`` gives status, headers and body."""

    answer: Callable[[Asked], tuple[int, dict[str, str], Any]]
    address: str = ""
    asked: list[Asked] = field(default_factory=list)


@contextlib.contextmanager
def serving(answer: Callable[[Asked], tuple[int, dict[str, str], Any]]) -> Iterator[Backend]:
    backend = Backend(answer)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {key: found[0] for key, found in parse_qs(parts.query).items()}
            asked = Asked(parts.path, query, {key.lower(): value for key, value in self.headers.items()})
            backend.asked.append(asked)
            status, headers, body = backend.answer(asked)
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"content-length": str(len(data)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    backend.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield backend
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "_FIRST_WAIT", 0.001)


def fetched(source: str, wanted: Wanted | None = None) -> Conversion:
    pieces = fetch_pieces(source, wanted or Wanted(since=SINCE, until=UNTIL))
    return convert(read_piece(piece) for piece in pieces)


# -- Jaeger ----------------------------------------------------------------------------------------------------------


def tag(key: str, value: Any, kind: str = "string") -> dict[str, Any]:
    return {"key": key, "type": kind, "value": value}


def jaeger_trace(number: int) -> dict[str, Any]:
    """A run with one model call, in the trace of this number, that began in the second of this number."""
    micros = (BEGAN + number * SECOND) // 1000
    trace = f"{number:x}"  # Jaeger leaves zeros at the front out
    model = [
        tag("span.kind", "client"),
        tag("otel.scope.name", "opentelemetry.instrumentation.genai.openai"),
        tag("otel.scope.version", "1.2"),
        tag("gen_ai.operation.name", "chat"),
        tag("gen_ai.request.model", "gpt-5"),
        tag("gen_ai.input.messages", MESSAGES),
        tag("gen_ai.output.messages", ANSWER),
        tag("gen_ai.usage.input_tokens", 10, "int64"),
        tag("gen_ai.response.finish_reasons", '["stop"]'),
        tag("otel.status_code", "ERROR"),
        tag("otel.status_description", "boom"),
        tag("error", True, "bool"),
    ]
    run_tags = [tag("gen_ai.operation.name", "invoke_agent"), tag("gen_ai.agent.name", f"agent {number}")]
    spans = [
        {"traceID": trace, "spanID": "1", "operationName": "invoke_agent", "references": [], "tags": run_tags},
        {
            "traceID": trace,
            "spanID": "02",
            "operationName": "chat gpt-5",
            "references": [
                {"refType": "FOLLOWS_FROM", "traceID": "f" * 32, "spanID": "9"},
                {"refType": "CHILD_OF", "traceID": trace, "spanID": "1"},
            ],
            "tags": model,
            "logs": [{"timestamp": micros, "fields": [tag("event", "note"), tag("k", "v")]}],
        },
    ]
    shared = {"startTime": micros, "duration": 500_000, "processID": "p1"}
    processes = {"p1": {"serviceName": "demo", "tags": [tag("telemetry.sdk.language", "python")]}}
    return {"traceID": trace, "spans": [{**span, **shared} for span in spans], "processes": processes}


def jaeger(traces: list[dict[str, Any]]) -> Callable[[Asked], tuple[int, dict[str, str], Any]]:
    """Jaeger's API: what began in a stretch of time, never more than the limit, and no pages."""

    def answer(asked: Asked) -> tuple[int, dict[str, str], Any]:
        if asked.path == "/ui/api/services":
            return 200, {}, {"data": ["demo", "jaeger-query"], "total": 2}
        assert (asked.path, asked.query["service"]) == ("/ui/api/traces", "demo")
        stretch = range(int(asked.query["start"]), int(asked.query["end"]) + 1)
        found = [trace for trace in traces if trace["spans"][0]["startTime"] in stretch]
        return 200, {}, {"data": found[: int(asked.query["limit"])], "total": 0, "errors": None}

    return answer


def test_jaegers_traces_become_sessions() -> None:
    with serving(jaeger([jaeger_trace(5)])) as backend:
        conversion = fetched(f"jaeger:{backend.address}/ui/")
    (session,) = conversion.sessions
    (one,) = session.runs
    assert conversion.faults == ()
    assert session.key.value == f"{5:032x}"
    assert (one.agent.name, one.id) == ("agent 5", span_id(1))
    (call,) = one.model_calls()
    assert (call.model, call.usage and call.usage.input_tokens, call.finish_reasons) == ("gpt-5", 10, ["stop"])
    assert call.error is not None
    assert call.error.message == "boom"
    assert session.source["service_name"] == "demo"
    assert session.source["scopes"] == ["opentelemetry.instrumentation.genai.openai 1.2"]


@pytest.mark.slow
def test_where_jaeger_tells_no_more_than_its_limit_shorter_stretches_are_asked_for() -> None:
    traces = [jaeger_trace(number) for number in range(1, 701)]
    with serving(jaeger(traces)) as backend:
        conversion = fetched(f"jaeger:{backend.address}/ui")
    assert (len(conversion.sessions), conversion.faults) == (700, ())
    assert len(backend.asked) < 100


@pytest.mark.slow
def test_more_traces_than_the_limit_at_one_moment_are_said() -> None:
    traces = [{**jaeger_trace(1), "traceID": f"{number:x}"} for number in range(1, 300)]
    with serving(jaeger(traces)) as backend:
        conversion = fetched(f"jaeger:{backend.address}/ui")
    assert "within a millisecond" in conversion.faults[0].reason


def test_a_file_that_was_downloaded_from_jaeger_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"data": [jaeger_trace(5)], "total": 0}, indent=2))
    assert [one.runs[0].agent.name for one in convert_files([str(path)]).sessions] == ["agent 5"]


def test_a_span_of_jaegers_that_cannot_be_read_costs_only_itself() -> None:
    trace = jaeger_trace(5)
    trace["spans"] += [{"traceID": "5", "spanID": "not hex"}, {"spanID": "3"}, None, {"traceID": "5", "spanID": "0"}]
    with serving(jaeger([trace])) as backend:
        conversion = fetched(f"jaeger:{backend.address}/ui")
    assert (len(conversion.sessions), len(conversion.faults)) == (1, 4)


# -- Phoenix ---------------------------------------------------------------------------------------------------------


def phoenix_span(number: int) -> dict[str, Any]:
    """As Phoenix gives them: OTLP with the names of protobuf, and null for what a value is not."""

    def value(text: str) -> dict[str, Any]:
        return {"array_value": None, "int_value": None, "string_value": text}

    attributes = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "gpt-5",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": f"Hi {number}",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "Ho",
    }
    return {
        "trace_id": f"{number:032x}",
        "span_id": span_id(number),
        "parent_span_id": None,
        "name": "ChatCompletion",
        "kind": "SPAN_KIND_INTERNAL",
        "start_time_unix_nano": str(BEGAN + number),
        "end_time_unix_nano": BEGAN + number + 1,
        "attributes": [{"key": key, "value": value(text)} for key, text in attributes.items()],
        "events": [],
        "status": {"code": 1, "message": None},
    }


def phoenix(projects: dict[str, int], size: int = 10) -> Callable[[Asked], tuple[int, dict[str, str], Any]]:
    """Phoenix's API: projects of so many spans, in pages of this size."""

    def answer(asked: Asked) -> tuple[int, dict[str, str], Any]:
        first = int(asked.query.get("cursor", 0))
        if asked.path == "/v1/projects":
            items: list[Any] = [{"id": name, "name": name} for name in projects]
        else:
            (name,) = (name for name in projects if asked.path == f"/v1/projects/{name}/spans/otlpv1")
            before = list(projects).index(name) * 1000
            items = [phoenix_span(before + number) for number in range(1, projects[name] + 1)]
        more = first + size < len(items)
        return 200, {}, {"data": items[first : first + size], "next_cursor": str(first + size) if more else None}

    return answer


def test_phoenixs_projects_are_read_page_by_page() -> None:
    with serving(phoenix({"one": 25, "two": 3, "empty": 0})) as backend:
        conversion = fetched(f"phoenix:{backend.address}")
    assert (len(conversion.sessions), conversion.faults) == (28, ())
    assert conversion.sessions[0].messages[0].parts == [{"type": "text", "content": "Hi 1"}]
    assert [asked.query.get("cursor") for asked in backend.asked if "/one/" in asked.path] == [None, "10", "20"]
    assert {asked.query.get("start_time") for asked in backend.asked[1:]} == {SINCE.isoformat()}


def test_only_the_projects_that_are_named_are_read() -> None:
    with serving(phoenix({"one": 2, "two": 3})) as backend:
        conversion = fetched(f"phoenix:{backend.address}", Wanted(("two",), SINCE, UNTIL))
    assert len(conversion.sessions) == 3
    assert [asked.path for asked in backend.asked] == ["/v1/projects/two/spans/otlpv1"]


def test_pages_that_go_round_in_a_circle_end() -> None:
    with serving(lambda asked: (200, {}, {"data": [phoenix_span(1)], "next_cursor": "again"})) as backend:
        conversion = fetched(f"phoenix:{backend.address}", Wanted(("p",), SINCE, UNTIL))
    assert len(conversion.sessions) == 1
    assert "again and again" in conversion.faults[0].reason


# -- both ------------------------------------------------------------------------------------------------------------


def test_a_host_that_cannot_just_now_is_asked_again() -> None:
    ready = phoenix({"one": 2})
    troubles = iter([(503, {}, b"busy"), (429, {"retry-after": "0"}, b""), (502, {}, b"")])

    def answer(asked: Asked) -> tuple[int, dict[str, str], Any]:
        return next(troubles, None) or ready(asked)

    with serving(answer) as backend:
        conversion = fetched(f"phoenix:{backend.address}")
    assert (len(conversion.sessions), conversion.faults) == (2, ())


def test_a_host_that_never_can_is_given_up_and_said() -> None:
    with serving(lambda asked: (503, {}, b"busy")) as backend:
        conversion = fetched(f"phoenix:{backend.address}")
    assert len(backend.asked) == fetching.ATTEMPTS
    (fault,) = conversion.faults
    assert "could not be read in 6 attempts; the last: status 503: 'busy'" in fault.reason


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((401, {}, b"who?"), "status 401: 'who?'; the variables for credentials are named in spanreel convert --help"),
        ((404, {}, b""), "status 404: ''"),
        ((200, {}, b"<html>"), "did not answer in JSON"),
        ((200, {}, []), "holds no data"),
        (
            (302, {"location": "http://localhost:1/elsewhere"}, b""),
            "leads to another host, which is not followed: 'local",
        ),
        ((302, {"location": "/v1/projects"}, b""), "leads on and on"),
    ],
)
def test_what_cannot_be_had_is_said_and_asked_for_once(answer: tuple[int, dict[str, str], Any], reason: str) -> None:
    with serving(lambda asked: answer) as backend:
        conversion = fetched(f"phoenix:{backend.address}")
    assert reason in conversion.faults[0].reason
    assert len(backend.asked) <= 3


def test_an_answer_without_an_end_is_not_read_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "LARGEST", 1000)
    with serving(lambda asked: (200, {}, b" " * 5000)) as backend:
        conversion = fetched(f"phoenix:{backend.address}")
    assert "more than 1000 bytes" in conversion.faults[0].reason


def test_a_way_to_the_same_host_is_followed() -> None:
    ready = phoenix({"one": 2})

    def answer(asked: Asked) -> tuple[int, dict[str, str], Any]:
        if asked.path == "/v1/projects" and "moved" not in asked.query:
            return 307, {"location": "/v1/projects?moved=1"}, b""
        return ready(asked)

    with serving(answer) as backend:
        assert len(fetched(f"phoenix:{backend.address}").sessions) == 2


def test_tokens_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHOENIX_API_KEY", "for phoenix")
    monkeypatch.setenv("JAEGER_TOKEN", "for jaeger")
    with serving(phoenix({"one": 1})) as backend:
        fetched(f"phoenix:{backend.address}")
        assert {asked.headers["authorization"] for asked in backend.asked} == {"Bearer for phoenix"}
    with serving(jaeger([])) as backend:
        fetched(f"jaeger:{backend.address}/ui")
        assert {asked.headers["authorization"] for asked in backend.asked} == {"Bearer for jaeger"}


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("ftp://host", "is not an address"),
        ("host:16686", "is not an address"),
        ("http://me:" + "word@127.0.0.1:1", "holds credentials"),
        ("http://127.0.0.1:1/?a=b", "ends with the path"),
    ],
)
def test_an_address_that_is_none_is_refused(address: str, reason: str) -> None:
    (fault,) = fetched(f"jaeger:{address}").faults
    assert reason in fault.reason
    assert "word" not in fault.place + fault.reason


def test_the_command_fetches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.jsonl"
    with serving(phoenix({"one": 3, "two": 1})) as backend:
        words = ["--of", "one", "--since", "2020-01-01", "--until", "2030-01-01T00:00:00+00:00"]
        assert run(f"phoenix:{backend.address}", *words, "--format", "jsonl", "--out", out) == 0
    assert capsys.readouterr().err == "spanreel: 3 sessions, 3 runs created\n"
    assert [one.key.value for one in load_sessions(out)] == [f"{number:032x}" for number in (1, 2, 3)]
    assert TRACE not in out.read_text()
