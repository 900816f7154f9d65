"""A sentinel in every place where content can stand: which of them leave, over real OTLP, to a file, and to the log.

With content off none does. With the default policy only those do that nothing protects.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

import spanreel
from contract.scenario import Ability, Scenario
from contract.scenarios import installed
from contract.trial import Trial
from receivers import Received, grpc_receiver, http_receiver
from spanreel import testing
from spanreel.settings import read_settings

RECEIVERS: dict[str, Callable[[], Any]] = {"grpc": grpc_receiver, "http/protobuf": http_receiver}
FRAMEWORKS = [scenario for _, scenario in installed()]
WAYS = (Ability.PLAIN, Ability.ASYNC, Ability.STREAM, Ability.ASYNC_STREAM)

PLAIN = (
    *("question", "instructions", "argument", "result", "output", "exception", "errorbody", "user", "name", "metadata"),
    *("tag", "toolsaid", "errorcode"),
)
"""Places that nothing protects in the default policy."""
SECRET = (
    *("questionkey", "argumentkey", "resultkey", "exceptionkey", "errorkey", "header", "metadatakey", "instructionkey"),
)
"""Places of credentials."""
HIDDEN = ("responseheader", "requestheader", "sdkheader")
"""Places that are never recorded."""


def sentinel(place: str) -> str:
    """Text that stands nowhere else."""
    return f"zebra{place}quartz"


def key(place: str) -> str:
    """A credential with a sentinel in it."""
    return "sk-" + f"proj-{sentinel(place)}0123456789"


@contextlib.contextmanager
def recorded(
    protocol: str, capture: str, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Iterator[Callable[[], str]]:
    """Record to a receiver and a file at once; what is yielded gives all that left, as text."""
    caplog.set_level(logging.DEBUG)
    file = folder / "traces.jsonl"
    with RECEIVERS[protocol]() as received:
        environ = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": received.endpoint,
            "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
            "OTEL_EXPORTER_OTLP_INSECURE": "true",
            "OTEL_TRACES_EXPORTER": "otlp",
            "SPANREEL_FILE": str(file),
            "SPANREEL_CAPTURE": capture,
        }
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        spanreel.instrument(settings=read_settings(environ))
        try:
            with spanreel.session(
                sentinel("conversation"),
                user_id=sentinel("user"),
                name=sentinel("name"),
                tags=[sentinel("tag")],
                metadata={"note": sentinel("metadata"), "api_key": key("metadatakey")},
            ):
                yield lambda: _left(received, file, caplog)
        finally:
            spanreel.uninstrument()


def _left(received: Received, file: Path, caplog: pytest.LogCaptureFixture) -> str:
    assert spanreel.flush(10)
    assert received.spans
    assert not received.refused
    log = [record.getMessage() for record in caplog.records if record.name.startswith("spanreel")]
    return received.data.decode("latin-1") + file.read_text() + "\n".join(log)


def places_in(left: str) -> set[str]:
    """The places whose sentinels have left."""
    return {place for place in (*PLAIN, *SECRET, *HIDDEN, "conversation") if sentinel(place) in left}


# -- frameworks -------------------------------------------------------------------------------------------------------


def look(city: str, api_key: str) -> str:
    """Look up a city (zebratoolsaidquartz)."""
    return f'{{"note": "{sentinel("result")}", "password": "{sentinel("resultkey")}"}}'


def fail(city: str, api_key: str) -> str:
    """Fail (zebratoolsaidquartz)."""
    raise ValueError(f"{sentinel('exception')} with {key('exceptionkey')}")


def script(tool: str) -> list[testing.Scripted]:
    arguments: Any = {"city": sentinel("argument"), "api_key": sentinel("argumentkey")}
    return [
        testing.tool_call(tool, arguments, headers={"x-note": sentinel("responseheader")}),
        testing.text(sentinel("output"), headers={"x-note": sentinel("responseheader")}),
    ]


def failing() -> list[testing.Scripted]:
    said = f"{sentinel('errorbody')} Incorrect API key provided: {key('errorkey')}"
    return [testing.error(400, said, sentinel("errorcode"), x_note=sentinel("responseheader"))]


def go(scenario: Scenario, way: Ability, folder: Path) -> None:
    """An agent that answers, one whose tool fails, and one whose provider does."""
    for tool, steps in ((look, script("look")), (fail, script("fail")), (look, failing())):
        trial = Trial(
            scenario,
            way,
            steps,
            [tool],
            folder,
            question=f"{sentinel('question')} {key('questionkey')}",
            instructions=f"{sentinel('instructions')} password={sentinel('instructionkey')}",
        )
        trial.go()
        assert trial.provider.requests


def cases() -> list[Any]:
    """Each framework in each way: plain at once, the others only where there is time."""
    return [
        pytest.param(scenario, way, id=f"{scenario.name}-{way}".replace(" ", "_"), marks=_marks(way))
        for scenario in FRAMEWORKS
        for way in WAYS
        if way not in scenario.absent
    ]


def _marks(way: Ability) -> Any:
    return () if way in (Ability.PLAIN, Ability.ASYNC_STREAM) else pytest.mark.slow


@pytest.mark.slow
@pytest.mark.parametrize(("scenario", "way"), cases())
def test_with_content_off_no_sentinel_leaves(
    scenario: Scenario,
    way: Ability,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    protocol = list(RECEIVERS)[FRAMEWORKS.index(scenario) % 2]
    with recorded(protocol, "metadata", tmp_path, monkeypatch, caplog) as left:
        go(scenario, way, tmp_path)
        assert places_in(left()) == {"conversation", "tag"}


@pytest.mark.slow
@pytest.mark.parametrize(("scenario", "way"), cases())
def test_with_the_default_policy_only_what_nothing_protects_leaves(
    scenario: Scenario,
    way: Ability,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    protocol = list(RECEIVERS)[(FRAMEWORKS.index(scenario) + 1) % 2]
    with recorded(protocol, "full", tmp_path, monkeypatch, caplog) as left:
        go(scenario, way, tmp_path)
        assert places_in(left()) == {"conversation", *PLAIN}


# -- protocols --------------------------------------------------------------------------------------------------------


def _client(provider: testing.ScriptedProvider) -> Any:
    return httpx2.Client(transport=provider.transport("httpx2"), headers={"x-note": sentinel("requestheader")})


def _openai(provider: testing.ScriptedProvider) -> openai.OpenAI:
    return openai.OpenAI(
        api_key=key("header"),
        base_url="http://model.test/v1",
        http_client=_client(provider),
        default_headers={"x-sdk": sentinel("sdkheader")},
        max_retries=0,
    )


def _chat(provider: testing.ScriptedProvider, *, stream: bool) -> None:
    asked: Any = [
        {"role": "system", "content": f"{sentinel('instructions')} password={sentinel('instructionkey')}"},
        {"role": "user", "content": f"{sentinel('question')} {key('questionkey')}"},
    ]
    note: Any = {"note": sentinel("metadata"), "api_key": key("metadatakey")}
    got: Any = _openai(provider).chat.completions.create(
        model="m", messages=asked, stream=stream, user=sentinel("user"), metadata=note
    )
    list(got)


def _completions(provider: testing.ScriptedProvider, *, stream: bool) -> None:
    note: Any = {"metadata": {"note": sentinel("metadata"), "api_key": key("metadatakey")}}
    got: Any = _openai(provider).completions.create(
        model="m",
        prompt=f"{sentinel('question')} {key('questionkey')} password={sentinel('instructionkey')}",
        stream=stream,
        user=sentinel("user"),
        extra_body=note,
    )
    list(got)


def _responses(provider: testing.ScriptedProvider, *, stream: bool) -> None:
    note: Any = {"note": sentinel("metadata"), "api_key": key("metadatakey")}
    got: Any = _openai(provider).responses.create(
        model="m",
        instructions=f"{sentinel('instructions')} password={sentinel('instructionkey')}",
        input=f"{sentinel('question')} {key('questionkey')}",
        stream=stream,
        user=sentinel("user"),
        metadata=note,
    )
    list(got)


def _embeddings(provider: testing.ScriptedProvider, *, stream: bool) -> None:
    _openai(provider).embeddings.create(
        model="m", input=f"{sentinel('question')} {key('questionkey')}", user=sentinel("user"), encoding_format="float"
    )


def _anthropic(provider: testing.ScriptedProvider, *, stream: bool) -> None:
    client = anthropic.Anthropic(
        api_key=key("header"), base_url="http://model.test", http_client=_client(provider), max_retries=0
    )
    got: Any = client.messages.create(
        model="m",
        max_tokens=10,
        system=f"{sentinel('instructions')} password={sentinel('instructionkey')}",
        messages=[{"role": "user", "content": f"{sentinel('question')} {key('questionkey')}"}],
        stream=stream,
        metadata={"user_id": sentinel("user")},
        extra_headers={"x-sdk": sentinel("sdkheader")},
    )
    list(got)


PROTOCOLS: dict[str, Callable[..., None]] = {
    "openai_chat": _chat,
    "openai_completions": _completions,
    "openai_responses": _responses,
    "openai_embeddings": _embeddings,
    "anthropic": _anthropic,
}


def ask(name: str, *, stream: bool) -> None:
    """An answer, and then a failure."""
    answer = testing.embeddings if "embeddings" in name else testing.text(sentinel("output"))
    PROTOCOLS[name](testing.ScriptedProvider([answer]), stream=stream)
    with pytest.raises((openai.APIStatusError, anthropic.APIStatusError)):
        PROTOCOLS[name](testing.ScriptedProvider(failing()), stream=stream)


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("capture", ["metadata", "full"])
def test_a_request_by_itself_lets_out_no_more(
    name: str,
    capture: str,
    stream: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    protocol = list(RECEIVERS)[list(PROTOCOLS).index(name) % 2]
    with recorded(protocol, capture, tmp_path, monkeypatch, caplog) as left:
        ask(name, stream=stream)
        found = places_in(left())
    if capture == "metadata":
        assert found == {"conversation", "tag"}
    else:
        assert {"question", "errorbody", "user", "metadata", "name"} <= found
        assert found.isdisjoint({*SECRET, *HIDDEN})


@pytest.mark.parametrize("capture", ["metadata", "full"])
def test_spans_on_a_provider_of_the_users_let_out_no_more(capture: str, tmp_path: Path) -> None:
    with http_receiver() as received:
        provider = TracerProvider(shutdown_on_exit=False)
        exporter = OTLPSpanExporter(endpoint=f"{received.endpoint}/v1/traces")
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        spanreel.instrument(tracer_provider=provider, settings=read_settings({"SPANREEL_CAPTURE": capture}))
        try:
            with spanreel.session(sentinel("conversation"), user_id=sentinel("user"), name=sentinel("name")):
                go(FRAMEWORKS[0], Ability.PLAIN, tmp_path)
                ask("openai_responses", stream=True)
        finally:
            spanreel.uninstrument()
        found = places_in(received.data.decode("latin-1"))
    assert found == ({"conversation"} if capture == "metadata" else {"conversation", *PLAIN} - {"tag"})


def test_the_sweep_is_over_every_framework_and_finds_what_leaves() -> None:
    assert [scenario.name for scenario in FRAMEWORKS] == [
        *("hand_written", "openai_agents", "anthropic_runner", "langgraph", "pydantic_ai"),
    ]
    assert places_in(sentinel("user") + sentinel("header")) == {"user", "header"}
    assert "spanreel" in sys.modules
