"""What the service says of itself: metrics as Prometheus text, traces to whom it is told, and never to itself."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest

from otel_collector import wait_until
from receivers import http_receiver
from served import READ_TOKEN, served
from spanreel_collector.service.telemetry import Telemetry, exports

OWN = [("127.0.0.1", 4318), ("127.0.0.1", 4317)]


@pytest.mark.parametrize(
    ("endpoint", "exported"),
    [
        ("", False),
        ("http://127.0.0.1:4319", True),
        ("http://collector:4318", True),
        ("https://127.0.0.1:5000/otlp", True),
    ],
)
def test_traces_of_the_service_go_where_the_environment_says(
    endpoint: str, exported: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
    assert exports(OWN) is exported
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    assert exports(OWN) is False


@pytest.mark.parametrize(
    "endpoint", ["http://localhost:4318", "http://127.0.0.1:4318/", "localhost:4317", "http://[::1]"]
)
def test_they_never_go_to_the_service_itself(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
    with pytest.raises(ValueError, match="this service itself"):
        exports(OWN)


def test_metrics_are_prometheus_text_whatever_stands_in_labels() -> None:
    telemetry = Telemetry()
    telemetry.observe("spanreel_things", 'Of "things"\nand more', lambda: [(1.5, {"of": 'a"b\\c\nd'})])
    telemetry.observe("spanreel_grown", "What grew", lambda: [(3, {})], grows=True)
    telemetry.observe("spanreel_broken", "What cannot be read", lambda: [(1 // 0, {})])
    telemetry.committed(0.003)
    text = telemetry.text()
    telemetry.close()
    assert '\nspanreel_things{of="a\\"b\\\\c\\nd"} 1.5\n' in text
    assert "\nspanreel_grown_total 3\n" in text
    assert "\n# TYPE spanreel_grown_total counter\n" in text
    assert re.search(r'^spanreel_commit_seconds_bucket\{le="0.005"\} 1$', text, re.MULTILINE)
    assert re.search(r'^spanreel_commit_seconds_bucket\{le="\+Inf"\} 1$', text, re.MULTILINE)
    assert "spanreel_broken{" not in text


@pytest.mark.slow
def test_requests_of_the_api_are_traced_without_the_names_in_their_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with http_receiver() as receiver:
        settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint, "OTEL_BSP_SCHEDULE_DELAY": "100"}
        with served(tmp_path, f"sqlite:///{tmp_path / 'spanreel.db'}", environment=settings) as service:
            headers = {"authorization": f"Bearer {READ_TOKEN}"}
            httpx.delete(f"{service.endpoint}/api/v1/users/jane", headers=headers, timeout=60).raise_for_status()
            wait_until(lambda: any("users" in span.name for span in receiver.spans))
    assert {span.name for span in receiver.spans} >= {"DELETE /api/v1/users"}
    assert b"jane" not in receiver.data
