"""Model calls of dspy's own engine, which has a transport of its own: recorded, and answered in a replay."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy  # type: ignore[import-untyped]  # it brings none
import pytest

import spanreel
from spanreel import testing
from spanreel_collector import convert_files

pytestmark = pytest.mark.slow

SAID = "[[ ## answer ## ]]\nIt is sunny.\n\n[[ ## completed ## ]]"


def _lm(root: str) -> Any:
    return dspy.LM("openai/m", api_base=root, api_key="none", cache=False, num_retries=0)


def _plain(root: str) -> str:
    with dspy.context(lm=_lm(root)):
        return str(dspy.Predict("question -> answer")(question="How is the weather?").answer)


def _asynchronous(root: str) -> str:
    async def ask() -> str:
        with dspy.context(lm=_lm(root)):
            said = await dspy.Predict("question -> answer").acall(question="How is the weather?")
            return str(said.answer)

    return asyncio.run(ask())


def _streamed(root: str) -> str:
    async def ask() -> str:
        with dspy.context(lm=_lm(root)):
            program: Any = dspy.streamify(dspy.Predict("question -> answer"))
            items = [item async for item in program(question="How is the weather?")]
            return str(items[-1].answer)

    return asyncio.run(ask())


@pytest.mark.parametrize("ask", [_plain, _asynchronous, _streamed])
def test_a_call_is_recorded_once_and_comes_again(ask: Callable[[str], str], tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    with testing.ScriptedProvider([testing.text(SAID)] * 2) as provider:
        plain = ask(provider.base_url)
        spanreel.instrument(settings=spanreel.read_settings({"SPANREEL_FILE": str(file), "SPANREEL_LOG": "off"}))
        try:
            assert ask(provider.base_url) == plain == "It is sunny."
            assert spanreel.flush()
        finally:
            spanreel.uninstrument()
    (session,) = convert_files([str(file)]).sessions
    (call,) = session.runs[0].model_calls()
    assert (call.protocol, call.streamed, call.complete) == ("openai_chat", ask is _streamed, True)
    assert session.messages[call.output[0]].parts == [{"type": "text", "content": SAID}]
    with spanreel.replay(session) as playing:
        assert ask("http://127.0.0.1:9/v1") == plain
    assert str(playing.verdict) == "PASS"


def test_a_failure_is_an_error_of_the_call(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    with testing.ScriptedProvider([testing.error(400, "too long")]) as provider:
        spanreel.instrument(settings=spanreel.read_settings({"SPANREEL_FILE": str(file), "SPANREEL_LOG": "off"}))
        try:
            with pytest.raises(Exception, match="too long") as raised:
                _plain(provider.base_url)
            assert spanreel.flush()
        finally:
            spanreel.uninstrument()
    (session,) = convert_files([str(file)]).sessions
    assert {call.status for call in session.runs[0].model_calls()} == {"error"}
    with spanreel.replay(session), pytest.raises(type(raised.value), match="too long"):
        _plain("http://127.0.0.1:9/v1")
