"""`spanreel serve` by its doors: recorded into over OTLP, read by the API, replayed, erased, restarted."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from grpc import ssl_channel_credentials  # type: ignore[import-untyped]  # it ships no types
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from certificates import make_tls
from conftest import ROOT
from otel_collector import TOKEN, free_ports, wait_until
from otlp_lines import GENAI, Span, request, said, span
from postgres import Cluster, running_cluster
from served import READ_TOKEN, Service, served, sessions, spans_of
from spanreel import load_sessions, testing
from spanreel.session_files import read_session, write_session
from spanreel_collector.stores.opening import open_store
from test_circle import AGENT, SCRIPT

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("serve")]

STORES = ("sqlite", "postgresql")
QUICK = ("--quiet-seconds", "0.2")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as running:
        yield running


@pytest.fixture(params=STORES)
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Service]:
    url = f"sqlite:///{tmp_path / 'spanreel.db'}"
    if request.param == "postgresql":
        running: Cluster = request.getfixturevalue("cluster")
        url = running.new_database()
    with served(tmp_path, url, *QUICK) as one:
        yield one


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Service]:
    """A service on SQLite, for what no store makes different."""
    with served(tmp_path, f"sqlite:///{tmp_path / 'spanreel.db'}", *QUICK) as one:
        yield one


def chat(number: int, question: str, answer: str, *, trace: str = "a" * 32, **attributes: Any) -> Span:
    said_before = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-5",
        "gen_ai.input.messages": json.dumps([said("user", question)]),
        "gen_ai.output.messages": json.dumps([said("assistant", answer)]),
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5,
    }
    return span(number, "chat gpt-5", {**said_before, **attributes}, trace=trace)


def send(service: Service, *spans: Span) -> None:
    sent = httpx.post(
        f"{service.endpoint}/v1/traces",
        json=request(*spans, scope=GENAI),
        headers={"authorization": f"Bearer {TOKEN}"},
        timeout=600,
        trust_env=False,
    )
    assert sent.status_code == 200, sent.text


def settled(service: Service) -> None:
    wait_until(lambda: service.get("/size")["pending"] == 0, what="traces stay pending")


# -- recorded, replayed ----------------------------------------------------------------------------------------------


def spanreel(folder: Path, *words: str | Path, base_url: str, **environment: str) -> subprocess.CompletedProcess[str]:
    settings = {"OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "none", "LEDGER": str(folder / "ledger.txt")}
    return subprocess.run(
        [sys.executable, "-m", "spanreel", *words],
        env={**os.environ, **settings, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_a_recorded_agent_is_replayed_from_the_service_and_its_report_is_kept_there(
    service: Service, tmp_path: Path
) -> None:
    agent = tmp_path / "agent.py"
    agent.write_text(AGENT)
    with testing.ScriptedProvider(SCRIPT) as provider:
        command = ("run", "--", sys.executable, agent, "Where is my money?")
        exporting = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": service.endpoint,
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{TOKEN}",
        }
        done = spanreel(tmp_path, *command, base_url=provider.base_url, **exporting)
    assert done.stdout == "Done: 12.5 is on its way.\n", done.stderr
    (summary,) = sessions(service, 1)
    assert (summary["agents"], summary["tools"], summary["eligible"]) == (["care"], ["refund"], True)
    assert summary["opening"] == "Where is my money?"
    url = f"{service.endpoint}/api/v1/sessions/{summary['id']}"
    words = ("replay", url, "--post-report", "--", sys.executable, agent, "Something else?")
    done = spanreel(tmp_path, *words, base_url="http://127.0.0.1:9/v1", SPANREEL_TOKEN=READ_TOKEN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASS" in done.stdout
    assert (tmp_path / "ledger.txt").read_text() == "17 12.5\n"
    (report,) = service.get(f"/sessions/{summary['id']}/reports")
    assert (report["verdict"], report["report"]["session"]) == ("PASS", summary["id"])
    forecast = service.get(f"/sessions/{summary['id']}/forecast")
    assert {call["outcome"] for call in forecast["calls"]} == {"answered"}
    done = spanreel(tmp_path, *words, base_url="http://127.0.0.1:9/v1", SPANREEL_TOKEN="")
    assert done.returncode == 3
    assert "set SPANREEL_TOKEN" in done.stderr


# -- sessions --------------------------------------------------------------------------------------------------------


def test_late_spans_change_their_session_and_raise_its_revision(service: Service) -> None:
    send(service, chat(1, "one?", "yes", **{"gen_ai.conversation.id": "talk"}))
    (first,) = sessions(service, 1)
    send(service, chat(2, "two?", "no", trace="b" * 32, **{"gen_ai.conversation.id": "talk"}))
    settled(service)
    (second,) = sessions(service, 1)
    assert (second["id"], second["revision"], second["model_calls"]) == (first["id"], 2, 2)
    assert [one["revision"] for one in service.get(f"/sessions/{first['id']}/revisions")] == [2, 1]
    old = read_session(service.ask("GET", f"/sessions/{first['id']}", params={"revision": 1}).content)
    new = read_session(service.ask("GET", f"/sessions/{first['id']}").content)
    assert (old.revision, len(old.runs), new.revision, len(new.runs)) == (1, 1, 2, 2)
    send(service, chat(2, "two?", "no", trace="b" * 32, **{"gen_ai.conversation.id": "talk"}))
    time.sleep(1)
    settled(service)
    assert service.get(f"/sessions/{first['id']}/summary")["revision"] == 2
    assert len(spans_of(service, first["id"])) == 2


def test_lists_are_filtered_ordered_and_paged(service: Service) -> None:
    for number in range(5):
        attributes = {"gen_ai.conversation.id": f"talk-{number}", "user.id": f"u-{number % 2}"}
        send(service, chat(number + 1, f"about {number} apples?", "yes", trace=f"{number + 1:032x}", **attributes))
    sessions(service, 5)

    def keys(**query: Any) -> list[str]:
        return [one["key"] for one in service.get("/sessions", **query)["sessions"]]

    assert keys() == [f"talk-{number}" for number in (4, 3, 2, 1, 0)]
    assert keys(user="u-1") == ["talk-3", "talk-1"]
    assert keys(text="3 apples") == ["talk-3"]
    assert keys(key="talk-2") == ["talk-2"]
    assert keys(model="gpt-5", least_tokens=16) == []
    started = service.get("/sessions", key="talk-2")["sessions"][0]["started"]
    assert keys(since=started) == ["talk-4", "talk-3", "talk-2"]
    assert keys(until=started) == ["talk-1", "talk-0"]
    first = service.get("/sessions", limit=3)
    rest = service.get("/sessions", limit=3, cursor=first["cursor"])
    assert [one["key"] for one in (*first["sessions"], *rest["sessions"])] == keys()
    assert rest["cursor"] is None
    assert service.get("/facets")["model"] == [["gpt-5", 5]]


def test_what_is_exported_says_the_same_again(small: Service, tmp_path: Path) -> None:
    send(small, chat(1, "one?", "yes", **{"gen_ai.conversation.id": "talk"}), chat(2, "two?", "no"))
    (summary,) = sessions(small, 1)
    path = f"/sessions/{summary['id']}"
    document = small.ask("GET", path).content
    assert small.ask("GET", f"{path}/export").content.strip() == document
    for form, name in (("otlp", "traces.jsonl"), ("kitaru", "kitaru.jsonl"), ("json", "session.json")):
        answer = small.ask("GET", f"{path}/export", params={"format": form})
        assert re.fullmatch(r'attachment; filename="[\w.-]+"', answer.headers["content-disposition"])
        (tmp_path / name).write_bytes(answer.content)
    (tmp_path / "spans.json").write_bytes(small.ask("GET", f"{path}/spans").content)
    known = spoken(document)
    for name in ("traces.jsonl", "kitaru.jsonl", "spans.json"):
        done = spanreel(tmp_path, "convert", tmp_path / name, "--out", tmp_path / "again.json", base_url="")
        assert done.returncode == 0, done.stderr
        assert spoken((tmp_path / "again.json").read_bytes()) == known, name
    (session,) = load_sessions(tmp_path / "session.json")
    assert write_session(session).encode() == document


def spoken(document: bytes) -> list[tuple[str, list[str]]]:
    session = read_session(document)
    return [
        (run.trace_id, [str(session.messages[index].parts) for call in run.model_calls() for index in call.output])
        for run in session.runs
    ]


def test_an_erased_session_is_nowhere_and_a_late_delivery_does_not_bring_it_back(service: Service) -> None:
    told = {"gen_ai.conversation.id": "talk", "user.id": "jane"}
    send(service, chat(1, "the secret of jane", "yes", **told))
    send(service, chat(2, "somebody else", "yes", trace="b" * 32, **{"gen_ai.conversation.id": "other"}))
    listed = sessions(service, 2)
    mine = next(one["id"] for one in listed if one["key"] == "talk")
    receipt = service.ask("DELETE", "/users/jane").json()
    assert (receipt["sessions"], receipt["items"]) == (1, 1)
    assert [one["key"] for one in service.get("/sessions")["sessions"]] == ["other"]
    assert service.get("/sessions", text="secret")["sessions"] == []
    for path in ("", "/spans", "/summary", "/revisions", "/reports", "/forecast", "/export"):
        url = f"{service.endpoint}/api/v1/sessions/{mine}{path}"
        answer = httpx.get(url, headers={"authorization": f"Bearer {READ_TOKEN}"}, timeout=60)
        assert answer.status_code == 404, path
        assert answer.headers["content-type"] == "application/problem+json"
    send(service, chat(1, "the secret of jane", "yes", **told))
    time.sleep(1)
    settled(service)
    assert [one["key"] for one in service.get("/sessions")["sessions"]] == ["other"]


def test_two_sessions_are_compared_as_a_replay_would(small: Service) -> None:
    send(small, chat(1, "one?", "yes", **{"gen_ai.conversation.id": "first"}))
    send(small, chat(2, "one?", "no", trace="b" * 32, **{"gen_ai.conversation.id": "second"}))
    listed = {one["key"]: one["id"] for one in sessions(small, 2)}
    told = small.get(f"/sessions/{listed['first']}/compare", **{"with": listed["second"]})
    assert not told["same"]
    answer = told["differences"][0]
    assert (answer["subject"], answer["reason"]) == ("model call", "answer")
    assert (answer["difference"]["recorded"], answer["difference"]["live"]) == ("yes", "no")
    same = small.get(f"/sessions/{listed['first']}/compare", **{"with": listed["first"]})
    assert (same["same"], same["differences"], [run["outcome"] for run in same["runs"]]) == (True, [], ["same"])


def test_who_listens_is_told_of_sessions_when_they_are_made(tmp_path: Path) -> None:
    with served(tmp_path, f"sqlite:///{tmp_path / 'spanreel.db'}", *QUICK, "--stop-seconds", "600") as patient:
        listen(patient)


def listen(small: Service) -> None:
    told: list[str] = []
    headers = {"authorization": f"Bearer {READ_TOKEN}"}
    with httpx.stream("GET", f"{small.endpoint}/api/v1/events", headers=headers, timeout=60) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.iter_lines()
        assert next(lines).startswith(":")
        send(small, chat(1, "one?", "yes", **{"gen_ai.conversation.id": "talk"}))
        for line in lines:
            told.append(line)
            if line.startswith("data:"):
                break
        assert "event: session" in told
        event = json.loads(told[-1].removeprefix("data: "))
        assert event == {"id": sessions(small, 1)[0]["id"], "revision": 1}
        small.stop()  # which who listens must not keep from ending


def test_what_cannot_be_read_is_noted_with_its_place_and_reason(small: Service) -> None:
    bad = chat(2, "two?", "no")
    bad["spanId"] = "12"
    sent = httpx.post(
        f"{small.endpoint}/v1/traces",
        json=request(chat(1, "one?", "yes"), bad, scope=GENAI),
        headers={"authorization": f"Bearer {TOKEN}"},
        timeout=60,
    )
    assert sent.status_code == 200
    assert sent.json()["partialSuccess"]["rejectedSpans"] == "1"
    (refusal,) = small.get("/refusals")
    assert "spanId" in refusal["reason"]
    assert len(sessions(small, 1)) == 1


# -- the process -----------------------------------------------------------------------------------------------------


def test_what_was_answered_is_there_after_the_service_was_told_to_stop_and_started_again(service: Service) -> None:
    answered: set[str] = set()
    failed = threading.Event()

    def post(worker: int) -> None:
        with httpx.Client(headers={"authorization": f"Bearer {TOKEN}"}, timeout=60, trust_env=False) as client:
            for number in range(10_000):
                trace = f"{worker + 1:016x}{number + 1:016x}"
                body = request(chat(1, f"{worker}/{number}", "yes", trace=trace), scope=GENAI)
                try:
                    if client.post(f"{service.endpoint}/v1/traces", json=body).status_code == 200:
                        answered.add(trace)
                except httpx.TransportError:
                    failed.set()
                    return

    workers = [threading.Thread(target=post, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    wait_until(lambda: len(answered) > 40)
    service.stop()
    for worker in workers:
        worker.join()
    assert failed.is_set()
    # What was being made into sessions when it ended is given back, and waits for no claim's end.
    store = open_store(service.store)
    assert len(store.claim(time.time_ns(), 0, 1_000_000)) == store.size().pending
    store.close()
    service.start()
    settled(service)
    listed = service.get("/size")
    assert listed["sessions"] == listed["items"] >= len(answered)
    kept: set[str] = set()
    cursor = None
    while True:
        page = service.get("/sessions", limit=500, **({"cursor": cursor} if cursor else {}))
        kept |= {one["key"] for one in page["sessions"]}
        cursor = page["cursor"]
        if cursor is None:
            break
    assert answered <= kept


def refused(*flags: str, **environment: str) -> tuple[int, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "SPANREEL_"))}
    done = subprocess.run(
        [sys.executable, "-m", "spanreel", "serve", *flags],
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    return done.returncode, done.stderr


def test_it_does_not_start_where_others_would_reach_it_without_a_token(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'spanreel.db'}"
    for flag in ("--http", "--grpc"):
        other = "--grpc" if flag == "--http" else "--http"
        code, said_of_it = refused("--store", store, flag, "0.0.0.0:0", other, "127.0.0.1:0")
        assert code == 64
        assert "no tokens" in said_of_it


def test_it_says_what_is_wrong_and_what_to_do_where_it_cannot_start(tmp_path: Path, small: Service) -> None:
    store = f"sqlite:///{tmp_path / 'other.db'}"
    free = f"127.0.0.1:{free_ports(1)[0]}"
    tls, *_ = make_tls(tmp_path)
    text = tmp_path / "text.pem"
    text.write_text("no certificate", encoding="utf-8")
    cases = (
        (("--store", store, "--http", f"127.0.0.1:{small.http}", "--grpc", free), "choose another with --http"),
        (("--store", store, "--http", free, "--grpc", f"127.0.0.1:{small.grpc}"), "cannot listen"),
        (("--store", "mysql://x"), "sqlite:///PATH"),
        (("--store", f"sqlite:///{tmp_path / 'none' / 'x.db'}"), "no folder"),
        (("--store", store, "--http", free, "--tls-key", "key.pem"), "needs both"),
        (
            ("--store", store, "--http", free, "--tls-key", "none", "--tls-certificate", "none"),
            "cannot be read: No such",
        ),
        (("--store", store, "--tls-certificate", str(text), "--tls-key", tls.key), "has not certificates, as PEM"),
        (("--store", store, "--tls-certificate", tls.certificate, "--tls-key", str(text)), "--tls-key: "),
        (
            ("--store", store, "--tls-certificate", tls.certificate, "--tls-key", "none.key"),
            "--tls-key: 'none.key' cannot",
        ),
        (("--store", "sqlite:///:memory:"), "has a file"),
        (("--quiet-seconds", "soon"), "--quiet-seconds='soon'"),
        (("--http", "4318"), "HOST:PORT"),
        (("--tokens", str(tmp_path / "none.toml")), "cannot be read"),
    )
    for flags, words in cases:
        code, said_of_it = refused(*flags)
        assert (code, words in said_of_it, "Traceback" in said_of_it) == (64, True, False), said_of_it
    code, said_of_it = refused(SPANREEL_SERVE_QUIET_SECONDS="x")
    assert code == 64
    assert "SPANREEL_SERVE_QUIET_SECONDS='x'" in said_of_it
    code, said_of_it = refused(SPANREEL_SERVE_POLICI="default")
    assert (code, "did you mean SPANREEL_SERVE_POLICY?" in said_of_it) == (64, True)


def test_with_tls_every_door_is_open_to_callers_with_a_certificate_and_a_token_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # to requests they say more than the exporter does
        monkeypatch.delenv(name, raising=False)
    tls, authority, (certificate, key) = make_tls(tmp_path)
    assert tls.client_authority
    http, grpc = free_ports(2)
    flags = ["--tls-certificate", tls.certificate, "--tls-key", tls.key, "--tls-client-authority", tls.client_authority]
    doors = ["--http", f"127.0.0.1:{http}", "--grpc", f"127.0.0.1:{grpc}", "--store", f"sqlite:///{tmp_path / 'a.db'}"]
    tokens = {"SPANREEL_INGEST_TOKEN": TOKEN, "SPANREEL_TOKEN": READ_TOKEN}
    log = tmp_path / "tls.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "spanreel", "serve", *doors, *flags, *QUICK],
            env={**os.environ, **tokens},
            stdout=output,
            stderr=output,
        )
    try:
        wait_until(lambda: f"https://127.0.0.1:{http}" in log.read_text(), what="the service does not start")
        sending = {"authorization": f"Bearer {TOKEN}"}
        by_http = HttpExporter(
            f"https://localhost:{http}/v1/traces",
            certificate_file=str(authority),
            client_key_file=str(key),
            client_certificate_file=str(certificate),
            headers=sending,
            timeout=60,
        )
        files = (authority, key, certificate)
        by_grpc = GrpcExporter(
            f"https://localhost:{grpc}",
            headers=sending,
            credentials=ssl_channel_credentials(*(file.read_bytes() for file in files)),
            timeout=60,
        )
        for exporter in (by_http, by_grpc):
            provider = TracerProvider()
            provider.add_span_processor(SimpleSpanProcessor(exporter))
            provider.get_tracer("tls").start_span("said").end()
            provider.shutdown()
        context = ssl.create_default_context(cafile=str(authority))
        paths = ("/", "/healthz", "/api/v1/sessions", "/v1/traces")
        with httpx.Client(base_url=f"https://localhost:{http}", verify=context, timeout=60, trust_env=False) as nobody:
            for path in paths:
                with pytest.raises(httpx.TransportError):
                    nobody.get(path)
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://localhost:{http}/healthz", timeout=60, trust_env=False)
        context.load_cert_chain(certificate, key)
        with httpx.Client(base_url=f"https://localhost:{http}", verify=context, timeout=60, trust_env=False) as caller:
            assert [caller.get(path).status_code for path in paths] == [200, 200, 401, 401]
            size = caller.get("/api/v1/size", headers={"authorization": f"Bearer {READ_TOKEN}"}).json()
            assert size["items"] == 2
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()


def test_a_file_is_served_by_one_and_again_when_that_was_killed(small: Service, tmp_path: Path) -> None:
    file = Path(small.store.removeprefix("sqlite:///"))
    link = tmp_path / "another name.db"
    link.symlink_to(file)
    for path in (file, link):
        code, said_of_it = refused("--store", f"sqlite:///{path}", "--http", "127.0.0.1:0", "--grpc", "off")
        assert small.process is not None
        assert (code, f"served already, by process {small.process.pid}" in said_of_it) == (64, True), said_of_it
    copied = subprocess.run(
        [sys.executable, "-m", "spanreel", "backup", str(tmp_path / "copy"), "--store", small.store], check=False
    )
    assert copied.returncode == 0  # commands may use it meanwhile
    small.kill()
    small.start()


def test_its_help_names_each_setting_with_its_default_and_its_variable() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "spanreel", "serve", "--help"], capture_output=True, text=True, check=True, timeout=600
    )
    for words in ("--quiet-seconds", "SPANREEL_SERVE_QUIET_SECONDS", "127.0.0.1:4318", "SPANREEL_STORE", "--tokens"):
        assert words in done.stdout


def test_it_is_alive_ready_and_counts(small: Service) -> None:
    assert httpx.get(f"{small.endpoint}/healthz", timeout=60).json() == {"status": "alive"}
    assert httpx.get(f"{small.endpoint}/readyz", timeout=60).json() == {"status": "ready"}
    send(small, chat(1, "one?", "yes"), chat(2, "two?", "yes"))
    send(small, chat(1, "one?", "yes"))
    sessions(small, 1)
    text = httpx.get(f"{small.endpoint}/metrics", headers={"authorization": f"Bearer {READ_TOKEN}"}, timeout=60).text
    for line in text.splitlines():
        assert re.fullmatch(r"# (HELP|TYPE) \w+ .+|\w+(\{.*\})? [-+\w.]+", line), line
    numbers = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert numbers['spanreel_items_total{outcome="accepted",signal="traces"}'] == "3"
    assert numbers['spanreel_items_total{outcome="known",signal="traces"}'] == "1"
    assert numbers['spanreel_requests_total{answer="OK",signal="traces"}'] == "2"
    assert float(numbers["spanreel_commit_seconds_count"]) >= 2
    assert numbers['spanreel_store_items{of="sessions"}'] == "1"
    assert float(numbers['spanreel_store_bytes{of="live"}']) > 0
    assert "spanreel_derivation_lag_seconds" in numbers
    assert "spanreel_queue_bytes" in numbers


def test_its_logs_are_json_and_hold_no_content_and_no_token(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'spanreel.db'}"
    with served(tmp_path, store, *QUICK, "--log-format", "json", "--log-level", "debug") as one:
        send(one, chat(1, "the marmalade question", "yes"))
        sessions(one, 1)
        one.stop()
        lines = one.log.read_text().splitlines()
    assert any(line.startswith("{") for line in lines)
    for line in lines:
        assert not line.startswith("{") or {"time", "level", "logger", "message"} <= json.loads(line).keys()
        for secret in ("marmalade", TOKEN, READ_TOKEN):
            assert secret not in line


def test_each_tenant_has_what_is_its_own(tmp_path: Path) -> None:
    names = {"red": "r" * 20, "blue": "b" * 20}
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(
        "".join(
            f'[[token]]\nname = "{name}"\ntenant = "{name}"\nscopes = ["ingest", "read", "erase"]\n'
            f'sha256 = "{hashlib.sha256(token.encode()).hexdigest()}"\n'
            for name, token in names.items()
        )
    )
    store = f"sqlite:///{tmp_path / 'spanreel.db'}"
    with served(tmp_path, store, *QUICK, "--tokens", str(tokens)) as one:
        made = {}
        for name, token in names.items():
            body = request(chat(1, f"of {name}", "yes", **{"gen_ai.conversation.id": "same"}), scope=GENAI)
            with httpx.Client(
                base_url=one.endpoint, headers={"authorization": f"Bearer {token}"}, timeout=60
            ) as client:
                assert client.post("/v1/traces", json=body).status_code == 200
                made[name] = wait_until(lambda: client.get("/api/v1/sessions").json()["sessions"])
        assert [[one["opening"] for one in made[name]] for name in names] == [["of red"], ["of blue"]]
        (mine,) = made["red"]
        with httpx.Client(
            base_url=one.endpoint, headers={"authorization": f"Bearer {names['red']}"}, timeout=60
        ) as client:
            assert client.delete(f"/api/v1/sessions/{mine['id']}").status_code == 200
            assert client.get(f"/api/v1/sessions/{mine['id']}").status_code == 404
        with httpx.Client(
            base_url=one.endpoint, headers={"authorization": f"Bearer {names['blue']}"}, timeout=60
        ) as client:
            assert client.get(f"/api/v1/sessions/{mine['id']}/summary").json()["opening"] == "of blue"


def test_the_page_and_the_description_come_from_here_alone(small: Service) -> None:
    page = httpx.get(f"{small.endpoint}/", timeout=60)
    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert page.headers["x-content-type-options"] == "nosniff"
    described = small.ask("GET", "/../openapi.json").text
    assert "http" not in re.sub(r"http(_[a-z]+|ValidationError)?\b(?!:)", "", described, flags=re.IGNORECASE)
    assert (ROOT / "collector" / "spanreel_collector" / "api" / "page" / "index.html").read_text() == page.text


def test_a_user_is_erased_with_what_came_just_now(service: Service) -> None:
    send(service, chat(1, "one?", "yes", **{"user.id": "ann"}))
    receipt = service.ask("DELETE", "/users/ann").json()
    assert (receipt["sessions"], receipt["items"], receipt["pending"]) == (1, 1, 0)
    settled(service)
    assert service.get("/sessions")["sessions"] == []


def test_a_request_whose_head_does_not_end_is_refused(small: Service) -> None:
    with socket.create_connection(("127.0.0.1", small.http), 30) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: ")
        with contextlib.suppress(ConnectionError):  # it is closed while this still comes
            for _ in range(64):
                connection.sendall(b"a" * 65536)
        with contextlib.suppress(ConnectionError):
            assert connection.recv(100).startswith(b"HTTP/1.1 400 ")
    assert (
        httpx.get(f"{small.endpoint}/healthz", headers={"x": "a" * 60_000}, timeout=60, trust_env=False).status_code
        == 200
    )
