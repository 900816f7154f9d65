"""Agents on google-genai, whose functions the SDK calls itself: recorded, converted, and played again offline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google import genai
from google.genai import types

import spanreel
from recording import content, recorded_in, recording
from spanreel import testing
from spanreel.model import Status
from spanreel.replay.judging.verdict import Verdict
from spanreel.session import Session
from spanreel_collector.conversion.convert import convert_files

# The SDK makes a class of a session of aiohttp's, which that would rather not have.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class .* is discouraged:DeprecationWarning")

ran: list[str] = []
QUESTION = "How is the weather?"
NOWHERE = "http://127.0.0.1:9"


def weather(city: str) -> dict[str, str]:
    """The weather of a city."""
    ran.append(city)
    if city == "Atlantis":
        raise LookupError("it has sunk")
    return {"sky": f"sunny in {city}"}


async def weather_later(city: str) -> dict[str, str]:
    """The weather of a city."""
    await asyncio.sleep(0)
    return weather(city)


def script(function: str = "weather") -> list[testing.Scripted]:
    cities = [testing.tool_call(function, {"city": city}) for city in ("Paris", "Atlantis")]
    return [testing.answer(tool_calls=cities), testing.text("Sunny in Paris.")]


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


def client_at(url: str) -> genai.Client:
    return genai.Client(api_key="none", http_options=types.HttpOptions(base_url=url))


def asked_at(url: str, agent: Callable[[genai.Client], Any]) -> Any:
    with client_at(url) as client:
        return agent(client)


def config_of(function: Callable[..., Any] = weather) -> types.GenerateContentConfig:
    return types.GenerateContentConfig(tools=[function], system_instruction="Be brief.")


# -- the ways to ask ---------------------------------------------------------------------------------------------------


def in_a_chat(client: genai.Client) -> Any:
    return client.chats.create(model="g", config=config_of()).send_message(QUESTION).text


def in_a_streamed_chat(client: genai.Client) -> Any:
    chunks = client.chats.create(model="g", config=config_of()).send_message_stream([QUESTION])
    return "".join(_text(chunk) for chunk in chunks)


def by_the_models(client: genai.Client) -> Any:
    asked = [types.Content(role="user", parts=[types.Part(text=QUESTION)])]
    return client.models.generate_content(model="g", contents=asked, config={"tools": [weather]}).text


def by_the_models_streamed(client: genai.Client) -> Any:
    chunks = client.models.generate_content_stream(model="g", contents=QUESTION, config=config_of())
    return "".join(_text(chunk) for chunk in chunks)


def in_an_asynchronous_chat(client: genai.Client) -> Any:
    async def ask() -> Any:
        async with client.aio as own:
            chat = own.chats.create(model="g", config=config_of())
            return (await chat.send_message(QUESTION)).text

    return asyncio.run(ask())


def by_the_asynchronous_models_streamed(client: genai.Client) -> Any:
    async def ask() -> Any:
        async with client.aio as own:
            chunks = await own.models.generate_content_stream(model="g", contents=QUESTION, config=config_of())
            return "".join([_text(chunk) async for chunk in chunks])

    return asyncio.run(ask())


def _text(chunk: types.GenerateContentResponse) -> str:
    content = (chunk.candidates or [types.Candidate()])[0].content
    return "".join(part.text or "" for part in (content.parts if content is not None else None) or ())


WAYS: list[Callable[[genai.Client], Any]] = [
    in_a_chat,
    in_a_streamed_chat,
    by_the_models,
    by_the_models_streamed,
    in_an_asynchronous_chat,
    by_the_asynchronous_models_streamed,
]


def recorded(folder: Path, agent: Callable[[genai.Client], Any], *, function: str = "weather") -> tuple[Session, Any]:
    with testing.ScriptedProvider(script(function)) as provider:
        url = provider.base_url.removesuffix("/v1")
        result = recorded_in(folder / "traces.jsonl", lambda: asked_at(url, agent))
    (session,) = convert_files([str(folder / "traces.jsonl")]).sessions
    return session, result


@pytest.mark.parametrize("agent", WAYS)
def test_what_the_sdk_calls_is_recorded_and_answered_in_a_replay(
    agent: Callable[[genai.Client], Any], tmp_path: Path
) -> None:
    session, result = recorded(tmp_path, agent)
    assert (result, ran) == ("Sunny in Paris.", ["Paris", "Atlantis"])
    (run,) = session.runs
    assert not run.implicit
    (asked,) = run.input
    assert session.messages[asked].parts == [{"type": "text", "content": QUESTION}]
    paris, atlantis = run.tool_calls()
    assert (paris.name, paris.arguments, paris.result, paris.status) == (
        "weather",
        {"city": "Paris"},
        {"sky": "sunny in Paris"},
        Status.OK,
    )
    assert atlantis.status is Status.ERROR
    assert len(run.turns) == 2

    with spanreel.replay(session, check=False) as playing:
        again = asked_at(NOWHERE, agent)
    assert playing.report is not None
    assert (playing.report.verdict, playing.report.reasons) == (Verdict.PASS, ())
    assert (again, ran) == (result, ["Paris", "Atlantis"])


def test_coroutine_functions_are_tools_too(tmp_path: Path) -> None:
    def agent(client: genai.Client) -> Any:
        async def ask() -> Any:
            async with client.aio as own:
                chat = own.chats.create(model="g", config=config_of(weather_later))
                return (await chat.send_message(QUESTION)).text

        return asyncio.run(ask())

    session, result = recorded(tmp_path, agent, function="weather_later")
    assert [call.name for call in session.runs[0].tool_calls()] == ["weather_later", "weather_later"]
    with spanreel.replay(session, check=False) as playing:
        assert asked_at(NOWHERE, agent) == result
    assert playing.verdict is Verdict.PASS
    assert ran == ["Paris", "Atlantis"]


def test_another_function_than_was_recorded_is_not_called(tmp_path: Path) -> None:
    session, _ = recorded(tmp_path, in_a_chat)
    calls = list(session.runs[0].tool_calls())
    calls[0].arguments = {"city": "Rome"}
    with spanreel.replay(session, check=False) as playing, pytest.raises(BaseException, match="diverged"):
        asked_at(NOWHERE, in_a_chat)
    assert playing.verdict is Verdict.FAIL
    assert ran == ["Paris", "Atlantis"]


@pytest.mark.parametrize(
    "config",
    [
        None,
        {"temperature": 0},
        types.GenerateContentConfig(
            tools=[weather], automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True)
        ),
    ],
)
def test_a_call_without_functions_to_call_is_no_run(config: Any) -> None:
    with testing.ScriptedProvider([testing.text("Hello.")]) as provider, recording() as made:
        url = provider.base_url.removesuffix("/v1")
        asked_at(url, lambda client: client.models.generate_content(model="g", contents="Hi.", config=config))
    assert [span.name for span in made.spans] == ["chat g"]


def test_what_was_said_before_is_input_too() -> None:
    call = types.FunctionCall(name="weather", args={"city": "Rome"})
    asked: list[Any] = [
        types.Content(
            role="user", parts=[types.Part(text="Look at"), types.Part.from_bytes(data=b"x", mime_type="image/png")]
        ),
        types.Content(role="model", parts=[types.Part(function_call=call)]),
        {"role": "user", "parts": [{"function_response": {"name": "weather", "response": {"sky": "grey"}}}]},
    ]
    with testing.ScriptedProvider([testing.text("Grey.")]) as provider, recording() as made:
        url = provider.base_url.removesuffix("/v1")
        asked_at(url, lambda client: client.models.generate_content(model="g", contents=asked, config=config_of()))
    assert content(made.one("invoke_agent"), "gen_ai.input.messages") == [
        {"role": "user", "parts": [{"type": "text", "content": "Look at"}, {"type": "other"}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "name": "weather", "arguments": {"city": "Rome"}}]},
        {"role": "user", "parts": [{"type": "tool_call_response", "response": {"sky": "grey"}}]},
    ]
