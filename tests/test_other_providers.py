"""Agents on the SDKs of Gemini, Ollama and Cohere: recorded at the wire, and replayed with nothing running."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import boto3
import cohere
import httpx
import ollama
import pytest
from botocore.config import Config
from google import genai

import spanreel
from recording import attribute, recording
from spanreel import testing
from spanreel.replay.judging.verdict import Verdict
from spanreel.replay.running.runner import replay
from spanreel_collector.conversion.convert import convert_files

pytestmark = [
    pytest.mark.slow,
    # Google's own session of aiohttp, which it makes by inheritance.
    pytest.mark.filterwarnings("ignore:Inheritance class Aiohttp:DeprecationWarning"),
]

QUESTION = "What is the weather in Paris?"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
LOOKED_UP: list[str] = []


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    LOOKED_UP.clear()
    monkeypatch.setenv("SPANREEL_LOG", "off")


@spanreel.tool()
def get_weather(city: str) -> str:
    LOOKED_UP.append(city)
    return f"It is sunny in {city}."


def _ask_gemini(client: Any, asked: dict[str, Any], *, stream: bool) -> list[Any]:
    if stream:
        return list(client.models.generate_content_stream(**asked))
    return [client.models.generate_content(**asked)]


def _ask_gemini_asynchronously(client: Any, asked: dict[str, Any], *, stream: bool) -> list[Any]:
    async def ask() -> list[Any]:
        try:
            if stream:
                return [answer async for answer in await client.aio.models.generate_content_stream(**asked)]
            return [await client.aio.models.generate_content(**asked)]
        finally:
            await client.aio.aclose()

    return asyncio.run(ask())


@spanreel.run(agent="gemini")
def gemini_agent(root: str, *, stream: bool) -> str:
    return _gemini_loop(root, _ask_gemini, stream)


@spanreel.run(agent="gemini")
def gemini_agent_over_aiohttp(root: str, *, stream: bool) -> str:
    return _gemini_loop(root, _ask_gemini_asynchronously, stream)


def _gemini_loop(root: str, ask: Any, stream: bool) -> str:
    options = genai.types.HttpOptions(base_url=root)
    client: Any = genai.Client(api_key="k", http_options=options)
    declaration = genai.types.FunctionDeclaration(
        name="get_weather", description="The weather.", parameters_json_schema=SCHEMA
    )
    config = genai.types.GenerateContentConfig(
        system_instruction="Be brief.",
        temperature=0.5,
        tools=[genai.types.Tool(function_declarations=[declaration])],
        automatic_function_calling=genai.types.AutomaticFunctionCallingConfig(disable=True),
    )
    contents: list[Any] = [genai.types.Content(role="user", parts=[genai.types.Part(text=QUESTION)])]
    while True:
        asked: dict[str, Any] = {"model": "gemini-2.5-flash", "contents": contents, "config": config}
        answers = ask(client, asked, stream=stream)
        parts: list[Any] = [part for answer in answers for part in answer.candidates[0].content.parts or ()]
        calls = [part.function_call for part in parts if part.function_call]
        if not calls:
            return "".join(part.text or "" for part in parts)
        contents.append(genai.types.Content(role="model", parts=parts))
        contents += [
            genai.types.Content(
                role="user",
                parts=[
                    genai.types.Part.from_function_response(
                        name=call.name, response={"result": get_weather(**call.args)}
                    )
                ],
            )
            for call in calls
        ]


@spanreel.run(agent="ollama")
def ollama_agent(root: str, *, stream: bool) -> str:
    with ollama.Client(host=root) as client:
        return _ollama_loop(client, stream)


def _ollama_loop(client: Any, stream: bool) -> str:
    function = {"name": "get_weather", "description": "The weather.", "parameters": SCHEMA}
    messages: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]
    while True:
        answer = client.chat(
            model="qwen3",
            messages=messages,
            tools=[{"type": "function", "function": function}],
            options={"temperature": 0.5},
            stream=stream,
        )
        answers = list(answer) if stream else [answer]
        calls = [call for one in answers for call in one.message.tool_calls or ()]
        text = "".join(one.message.content or "" for one in answers)
        if not calls:
            return text
        messages.append({"role": "assistant", "content": text, "tool_calls": [call.model_dump() for call in calls]})
        messages += [
            {"role": "tool", "tool_name": call.function.name, "content": get_weather(**call.function.arguments)}
            for call in calls
        ]


@spanreel.run(agent="cohere")
def cohere_agent(root: str, *, stream: bool) -> str:
    with httpx.Client() as http:
        return _cohere_loop(cohere.ClientV2(api_key="k", base_url=root, httpx_client=http), stream)


def _cohere_loop(client: Any, stream: bool) -> str:
    function = {"name": "get_weather", "description": "The weather.", "parameters": SCHEMA}
    messages: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]
    while True:
        asked: dict[str, Any] = {
            "model": "command-r7b",
            "messages": messages,
            "tools": [{"type": "function", "function": function}],
            "temperature": 0.5,
        }
        text, calls = _streamed(client.chat_stream(**asked)) if stream else _plain(client.chat(**asked))
        if not calls:
            return text
        messages.append({"role": "assistant", "tool_calls": calls})
        for call in calls:
            result = get_weather(**json.loads(call["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


def _plain(answer: Any) -> tuple[str, list[Any]]:
    calls = [call.model_dump() for call in answer.message.tool_calls or ()]
    return "".join(entry.text for entry in answer.message.content or ()), calls


def _streamed(events: Any) -> tuple[str, list[Any]]:
    text, calls = "", []
    for event in events:
        if event.type == "content-delta":
            text += event.delta.message.content.text
        elif event.type == "tool-call-start":
            calls.append(event.delta.message.tool_calls.model_dump())
        elif event.type == "tool-call-delta":
            calls[-1]["function"]["arguments"] += event.delta.message.tool_calls.function.arguments
    return text, calls


@spanreel.run(agent="bedrock")
def bedrock_agent(root: str, *, stream: bool) -> str:
    account = {"aws_access_key_id": "k", "aws_secret_access_key": "k", "region_name": "us-east-1"}
    once = Config(retries={"max_attempts": 1})
    with closing(boto3.client("bedrock-runtime", endpoint_url=root, config=once, **account)) as client:
        return _bedrock_loop(client, stream)


def _bedrock_loop(client: Any, stream: bool) -> str:
    spec = {"name": "get_weather", "description": "The weather.", "inputSchema": {"json": SCHEMA}}
    messages: list[Any] = [{"role": "user", "content": [{"text": QUESTION}]}]
    while True:
        asked: dict[str, Any] = {
            "modelId": "us.amazon.nova-v1:0",
            "system": [{"text": "Be brief."}],
            "messages": messages,
            "toolConfig": {"tools": [{"toolSpec": spec}]},
            "inferenceConfig": {"temperature": 0.5},
        }
        message = (
            _joined(client.converse_stream(**asked)["stream"])
            if stream
            else client.converse(**asked)["output"]["message"]
        )
        messages.append(message)
        calls = [block["toolUse"] for block in message["content"] if "toolUse" in block]
        if not calls:
            return "".join(block["text"] for block in message["content"])
        results = [
            {"toolResult": {"toolUseId": call["toolUseId"], "content": [{"text": get_weather(**call["input"])}]}}
            for call in calls
        ]
        messages.append({"role": "user", "content": results})


def _joined(events: Any) -> dict[str, Any]:
    """A streamed message, as an agent puts it together."""
    text, call, written = "", None, ""
    for event in events:
        if "contentBlockStart" in event:
            call = event["contentBlockStart"]["start"]["toolUse"]
        delta = event.get("contentBlockDelta", {}).get("delta", {})
        text += delta.get("text", "")
        written += delta.get("toolUse", {}).get("input", "")
    called = [{"toolUse": {**call, "input": json.loads(written)}}] if call else []
    return {"role": "assistant", "content": [*([{"text": text}] if text else []), *called]}


AGENTS: dict[str, Callable[..., str]] = {
    "gemini": gemini_agent,
    "gemini_over_aiohttp": gemini_agent_over_aiohttp,
    "ollama_chat": ollama_agent,
    "cohere_chat": cohere_agent,
    "bedrock_converse": bedrock_agent,
}
PROTOCOLS = {"gemini_over_aiohttp": "gemini"}
MODELS = {
    "gemini": "gemini-2.5-flash",
    "gemini_over_aiohttp": "gemini-2.5-flash",
    "ollama_chat": "qwen3",
    "cohere_chat": "command-r7b",
    "bedrock_converse": "us.amazon.nova-v1:0",
}


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_is_recorded_whole_and_replays_with_nothing_running(
    agent: str, stream: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "traces.jsonl"
    monkeypatch.setenv("SPANREEL_FILE", str(file))
    script = [testing.tool_call("get_weather", {"city": "Paris"}), testing.text("It is sunny in Paris.")]
    with testing.ScriptedProvider(script) as provider:
        spanreel.instrument()
        try:
            root = provider.base_url.removesuffix("/v1")
            said = AGENTS[agent](root, stream=stream)
            assert spanreel.flush()
        finally:
            spanreel.uninstrument()
    assert said == "It is sunny in Paris."
    (session,) = convert_files([str(file)]).sessions
    (run,) = session.runs
    calls = [turn.model_call for turn in run.turns]
    assert [(call.protocol, call.model, call.streamed, call.finish_reasons) for call in calls if call] == [
        (PROTOCOLS.get(agent, agent), MODELS[agent], stream, calls[0].finish_reasons if calls[0] else None),
        (PROTOCOLS.get(agent, agent), MODELS[agent], stream, ["stop"]),
    ]
    first = calls[0]
    assert first is not None
    assert first.settings["temperature"] == 0.5
    assert first.usage is not None
    assert first.usage.input_tokens
    assert first.usage.output_tokens
    assert [session.tools[index]["name"] for index in first.tools] == ["get_weather"]
    (tool,) = run.turns[0].tool_calls
    assert (tool.name, tool.arguments, tool.result) == (
        "get_weather",
        {"city": "Paris"},
        "It is sunny in Paris.",
    )
    assert tool.requested == {"city": "Paris"}
    assert not run.turns[1].tool_calls
    assert session.replay.eligible, session.replay.reasons
    LOOKED_UP.clear()
    with replay(session, check=False) as played:
        assert AGENTS[agent]("http://127.0.0.1:9", stream=stream) == said
    assert played.report is not None
    assert played.report.verdict is Verdict.PASS, (played.report.reasons, played.report.notes)
    assert LOOKED_UP == []


@pytest.mark.parametrize("agent", AGENTS)
def test_a_failure_is_recorded_with_what_the_provider_said_of_it(agent: str) -> None:
    failing = testing.ScriptedProvider([testing.error(400, "too many tools")])
    with failing as provider, recording() as rec, pytest.raises(Exception, match=r"too many tools"):
        AGENTS[agent](provider.base_url.removesuffix("/v1"), stream=False)
    span = rec.of("chat")[0]
    assert attribute(span, "error.type")
    assert attribute(span, "gen_ai.request.model") == MODELS[agent]
    assert "too many tools" in json.dumps(dict(span.attributes or {}), default=str)


def _generate(root: str) -> Any:
    with ollama.Client(host=root) as client:
        return client.generate(model="m", prompt="Count.", system="Be brief.").response


def _generate_stream(root: str) -> Any:
    with ollama.Client(host=root) as client:
        return [part.response for part in client.generate(model="m", prompt="Count.", stream=True)]


def _embed(root: str) -> Any:
    with ollama.Client(host=root) as client:
        return [list(vector) for vector in client.embed(model="m", input=["one", "two"], dimensions=8).embeddings]


def _embed_gemini(root: str) -> Any:
    client: Any = genai.Client(api_key="k", http_options=genai.types.HttpOptions(base_url=root))
    config = genai.types.EmbedContentConfig(output_dimensionality=8)
    return [
        one.values for one in client.models.embed_content(model="m", contents=["one", "two"], config=config).embeddings
    ]


def _ask_cohere(root: str) -> Any:
    with httpx.Client() as http:
        client: Any = cohere.Client(api_key="k", base_url=root, httpx_client=http)
        history = [{"role": "USER", "message": "Hello."}, {"role": "CHATBOT", "message": "Well?"}]
        answer = client.chat(model="m", message="Count.", preamble="Be brief.", chat_history=history)
        return answer.text, answer.finish_reason


def _ask_cohere_stream(root: str) -> Any:
    with httpx.Client() as http:
        client: Any = cohere.Client(api_key="k", base_url=root, httpx_client=http)
        events = list(client.chat_stream(model="m", message="Count."))
        return [event.text for event in events if event.event_type == "text-generation"], events[-1].response.text


OTHERS: dict[str, tuple[Callable[[str], Any], Any]] = {
    "cohere_chat_v1": (_ask_cohere, testing.text("one two three")),
    "cohere_chat_v1-stream": (_ask_cohere_stream, testing.text("one two three")),
    "ollama_generate": (_generate, testing.text("one two three")),
    "ollama_generate-stream": (_generate_stream, testing.text("one two three")),
    "ollama_embeddings": (_embed, testing.embeddings),
    "gemini_embeddings": (_embed_gemini, testing.embeddings),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_calls_beside_the_chat_are_recorded_and_answered_again(kind: str, tmp_path: Path) -> None:
    ask, step = OTHERS[kind]
    file = tmp_path / "traces.jsonl"
    with testing.ScriptedProvider([step] * 2) as provider:
        root = provider.base_url.removesuffix("/v1")
        plain = ask(root)
        spanreel.instrument(settings=spanreel.read_settings({"SPANREEL_FILE": str(file), "SPANREEL_LOG": "off"}))
        try:
            said = ask(root)
            assert spanreel.flush()
        finally:
            spanreel.uninstrument()
    assert said == plain
    (session,) = convert_files([str(file)]).sessions
    (call,) = session.runs[0].model_calls()
    assert (call.protocol, call.model) == (kind.partition("-")[0], "m")
    with replay(session, check=False) as played:
        assert ask("http://127.0.0.1:9") == said
    assert played.report is not None
    assert played.report.verdict is Verdict.PASS, (played.report.reasons, played.report.notes)
