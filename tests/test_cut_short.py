"""What limits of values and attributes took, and roots that never arrived: what the rest tells is put back, no more."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otlp_lines import (
    GENAI,
    agent,
    asks,
    called,
    chat,
    only_run,
    said,
    session,
    sessions,
    span,
    told,
    tool,
)
from spanreel import conventions as names
from spanreel.model import Fidelity
from spanreel.session import ModelCall, Run, Session

OI = "openinference.instrumentation."
HI = said("user", "Weather in Rome?")
LOOK = asks(called("look", {"city": "Rome"}, "t1"))
HISTORY = [said("system", "Be short."), HI, LOOK, told("t1", "25")]


def loop(second: Any, answer: dict[str, Any] = LOOK, result: Any = "25") -> Session:
    """A run of two calls, the second with these messages."""
    spans = [
        agent(1, "clerk", seconds=60),
        chat(2, HISTORY[:2], answer, 1),
        tool(3, "look", {"city": "Rome"}, result, 1, also={names.TOOL_CALL_ID: "t1"}),
        chat(4, second, said("assistant", "Warm."), 1),
    ]
    return session(*spans, scope=GENAI)


def last_call(one: Session) -> ModelCall:
    return list(only_run(one).model_calls())[-1]


def heard(one: Session, call: ModelCall) -> list[Any]:
    return [one.messages[index].parts for index in call.input]


# -- histories -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.5, 0.7, 0.9])
def test_a_history_that_was_cut_off_is_whole_where_the_call_before_tells_the_rest(share: float) -> None:
    text = json.dumps(HISTORY)
    one = loop(text[: int(len(text) * share)])
    assert heard(one, last_call(one)) == [message["parts"] for message in HISTORY]
    assert last_call(one).fidelity == {"input": Fidelity.RECONSTRUCTED}


def test_a_history_cut_off_after_other_words_is_left_as_it_came() -> None:
    text = json.dumps([said("system", "Be short."), said("user", "And in Oslo, please?"), LOOK])
    one = loop(text[:-40])
    assert last_call(one).fidelity["input"] is Fidelity.TRUNCATED
    assert len(last_call(one).input) < len(HISTORY)


def test_after_an_answer_that_asked_for_nothing_a_cut_history_may_have_held_new_words() -> None:
    text = json.dumps([*HISTORY[:2], said("assistant", "Where?"), said("user", "In Rome!")])
    one = loop(text[:-50], said("assistant", "Where?"))
    assert last_call(one).fidelity["input"] is Fidelity.TRUNCATED


def test_a_cut_history_is_not_made_whole_without_the_tools_answer() -> None:
    text = json.dumps(HISTORY)
    one = session(
        agent(1, "clerk", seconds=60),
        chat(2, HISTORY[:2], LOOK, 1),
        chat(4, text[: int(len(text) * 0.7)], said("assistant", "Warm."), 1),
        scope=GENAI,
    )
    assert last_call(one).fidelity["input"] is Fidelity.TRUNCATED


def indexed(messages: list[dict[str, Any]], prefix: str) -> dict[str, Any]:
    """Messages as OpenInference writes them."""
    attributes: dict[str, Any] = {}
    for number, message in enumerate(messages):
        at = f"{prefix}.{number}.message."
        attributes[f"{at}role"] = message["role"]
        for part in message["parts"]:
            if part["type"] == "tool_call":
                call = f"{at}tool_calls.0.tool_call."
                attributes[f"{call}id"] = part["id"]
                attributes[f"{call}function.name"] = part["name"]
                attributes[f"{call}function.arguments"] = json.dumps(part["arguments"])
            else:
                attributes[f"{at}content"] = part.get("content", part.get("response"))
                attributes.update({f"{at}tool_call_id": part["id"]} if "id" in part else {})
    return attributes


def openinference(number: int, messages: Any, answer: Any, parent: int | None = 1, dropped: int = 0) -> dict[str, Any]:
    """A model call in OpenInference, of which a limit took the oldest attributes."""
    attributes = {
        "llm.model_name": "gpt-5",
        **indexed(messages, "llm.input_messages"),
        **indexed([answer], "llm.output_messages"),
        "openinference.span.kind": "LLM",
    }
    left = dict(list(attributes.items())[dropped:])
    return span(number, "ChatCompletion", left, parent, droppedAttributesCount=dropped)


@pytest.mark.parametrize("dropped", [3, 4, 5, 6])
def test_the_beginning_of_a_history_that_a_limit_took_is_told_by_the_call_before(dropped: int) -> None:
    used = {"openinference.span.kind": "TOOL", "input.value": '{"city": "Rome"}', "output.value": "25"}
    one = session(
        span(1, "clerk", {"openinference.span.kind": "AGENT"}, seconds=60),
        openinference(2, HISTORY[:2], LOOK),
        span(3, "look", used, 1),
        openinference(4, HISTORY, said("assistant", "Warm."), dropped=dropped),
        scope=f"{OI}openai",
    )
    assert heard(one, last_call(one)) == [message["parts"] for message in HISTORY]
    assert last_call(one).fidelity["input"] is Fidelity.RECONSTRUCTED


def test_messages_whose_content_stood_in_a_value_that_was_cut_are_marked() -> None:
    attributes = {
        "input.value": json.dumps({"messages": ["ChatMessage(" + "x" * 200]})[:100],
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "Weather in Rome?",
        "llm.input_messages.1.message.role": "tool",
        **indexed([said("assistant", "Warm.")], "llm.output_messages"),
        "openinference.span.kind": "LLM",
    }
    one = session(span(1, "OpenAIChatGenerator.run", attributes), scope=f"{OI}haystack")
    assert last_call(one).fidelity["input"] is Fidelity.TRUNCATED


# -- calls that a cut went through ------------------------------------------------------------------------------------


def test_a_tool_call_whose_name_was_cut_off_is_none() -> None:
    call = {"function": {"arguments": '{"city": "Rome"}', "name": "look"}, "id": "t1", "type": "function"}
    answered = json.dumps({"choices": [{"message": {"role": "assistant", "tool_calls": [{"id": "t1", **call}]}}]})
    asked = json.dumps({"model": "gpt-5", "messages": [{"role": "user", "content": "Weather in Rome?"}]})
    attributes = {
        "mlflow.spanType": '"CHAT_MODEL"',
        "mlflow.spanInputs": asked,
        "mlflow.spanOutputs": answered[: answered.index('"name"') - 10],
    }
    one = session(span(1, "Completions", attributes), scope="mlflow.tracing.provider")
    assert list(only_run(one).tool_calls()) == []
    assert last_call(one).fidelity["output"] is Fidelity.TRUNCATED


def test_langfuses_input_that_was_cut_off_is_marked_though_it_held_tools() -> None:
    offered = {"role": "tool", "content": {"type": "function", "function": {"name": "look"}}}
    given = json.dumps([{"role": "user", "content": "Weather in Rome?"}, offered, {"role": "user", "content": "x"}])
    attributes = {
        "langfuse.observation.type": "generation",
        "langfuse.observation.input": given[:-8],
        "langfuse.observation.output": json.dumps({"role": "assistant", "content": "Warm."}),
    }
    one = session(span(1, "ChatOpenAI", attributes), scope="langfuse-sdk")
    assert [found["name"] for found in one.tools] == ["look"]
    assert last_call(one).fidelity["input"] is Fidelity.TRUNCATED


def stray(answer: dict[str, Any]) -> Session:
    attributes = {
        **indexed([HI], "llm.input_messages"),
        **indexed([answer], "llm.output_messages"),
        "message.tool_calls.0.tool_call.function.name": "look",
        "message.tool_calls.0.tool_call.function.arguments": '{"city": "Rome"}',
        "openinference.span.kind": "LLM",
    }
    return session(span(1, "GenerateContent", attributes), scope=f"{OI}google_genai")


def test_google_genais_calls_under_no_message_are_the_answers_where_it_says_nothing_else() -> None:
    one = stray({"role": "model", "parts": []})
    (call,) = only_run(one).model_calls()
    assert [(found.name, found.requested) for found in only_run(one).tool_calls()] == [("look", {"city": "Rome"})]
    assert one.messages[call.output[0]].parts[0]["type"] == "tool_call"


def test_google_genais_calls_under_no_message_were_a_round_before_the_answers_words() -> None:
    one = stray(said("model", "Warm."))
    first, last = only_run(one).model_calls()
    assert (first.fidelity["usage"], last.fidelity["input"]) == (Fidelity.ABSENT, Fidelity.TRUNCATED)
    assert [found.name for found in only_run(one).tool_calls()] == ["look"]


# -- attributes that tell what a span is ------------------------------------------------------------------------------


def test_the_ai_sdks_spans_are_known_by_their_names_where_a_limit_took_the_operation() -> None:
    attributes = {
        "ai.response.text": "Warm.",
        "ai.response.finishReason": "stop",
        "ai.prompt.messages": json.dumps([{"role": "user", "content": [{"type": "text", "text": "Weather?"}]}]),
        "ai.prompt.tools": json.dumps([json.dumps({"type": "function", "name": "look", "inputSchema": {}})]),
        "ai.telemetry.functionId": "clerk",
    }
    one = session(span(1, "ai.generateText.doGenerate", attributes), scope="ai")
    assert [found["name"] for found in one.tools] == ["look"]
    assert (len(last_call(one).output), only_run(one).agent.name) == (1, "clerk")


def test_a_models_answer_is_known_though_a_limit_took_its_operation() -> None:
    answered = {names.OUTPUT_MESSAGES: json.dumps([said("assistant", "Warm.")]), names.RESPONSE_ID: "r1"}
    named = "Chat Completion with {request_data[model]!r}"
    one = session(span(1, named, answered, droppedAttributesCount=9), scope="logfire.openai")
    assert last_call(one).response_id == "r1"


def test_the_model_is_told_by_a_spans_name_where_a_limit_took_it() -> None:
    answered = {names.OUTPUT_MESSAGES: json.dumps([said("assistant", "Warm.")])}
    assert last_call(session(span(1, "chat gpt-5", answered, droppedAttributesCount=9), scope=GENAI)).model == "gpt-5"
    assert last_call(session(span(1, "chat gpt-5", answered), scope=GENAI)).model is None


def test_an_agent_that_openinference_made_of_the_conventions_has_no_operation_in_its_name() -> None:
    one = session(
        span(1, "invoke_agent clerk", {"openinference.span.kind": "AGENT"}, seconds=9),
        openinference(2, [HI], said("assistant", "Warm.")),
        scope="agent_framework",
    )
    assert only_run(one).agent.name == "clerk"


# -- roots that never arrived ----------------------------------------------------------------------------------------


def steps(second: list[dict[str, Any]]) -> list[Run]:
    """Nodes of a graph, whose own span never arrived; the second one's model was told this."""
    node = {"openinference.span.kind": "CHAIN", "metadata": json.dumps({"lc_agent_name": "clerk"})}
    used = {"openinference.span.kind": "TOOL", "input.value": '{"city": "Rome"}', "output.value": "25"}
    spans = [
        span(2, "model", {**node, "input.value": json.dumps({"messages": [{"role": "user", "content": "Hi"}]})}, 1),
        openinference(3, HISTORY[:2], LOOK, 2),
        span(4, "tools", node, 1),
        span(5, "look", used, 4),
        span(6, "model", {**node, "output.value": json.dumps({"messages": [{"role": "ai", "content": "Warm."}]})}, 1),
        openinference(7, second, said("assistant", "Warm."), 6),
    ]
    (one,) = sessions(*spans, scope=f"{OI}langchain")
    return one.runs


def test_steps_whose_run_never_arrived_are_one_run() -> None:
    (run,) = steps(HISTORY)
    assert (run.agent.name, len(run.turns), len(list(run.tool_calls()))) == ("clerk", 2, 1)
    assert (run.fidelity["input"], run.fidelity["output"]) == (Fidelity.RECONSTRUCTED, Fidelity.RECONSTRUCTED)


def test_chains_beside_each_other_that_do_not_go_on_are_runs_each() -> None:
    assert len(steps([said("user", "And in Oslo?")])) > 1


def test_a_run_without_a_span_is_of_the_agent_that_its_calls_name() -> None:
    also = {names.AGENT_NAME: "clerk"}
    one = session(chat(2, [HI], said("assistant", "Warm."), 1, also=also), scope="pydantic-ai")
    assert only_run(one).agent.name == "clerk"
    other = chat(3, [HI], said("assistant", "Warm."), 1, also={names.AGENT_NAME: "cook"})
    two = session(chat(2, [HI], said("assistant", "Warm."), 1, also=also), other, scope="pydantic-ai")
    assert [run.agent.name for run in two.runs] == [None]


# -- answers that only say that they asked -----------------------------------------------------------------------------


def untold(*ran: dict[str, Any]) -> Session:
    """A run whose model's answer says that it asked for tools, and not for which; and a history that says as little."""
    ended = {"role": "assistant", "parts": [{"type": "text", "content": ""}], "finish_reason": "tool_call"}
    bare = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": None, "response": "25"}]} for _ in ran]
    spans = [
        agent(1, "clerk", seconds=60),
        chat(2, HISTORY[:2], ended, 1),
        *ran,
        chat(9, [*HISTORY[:2], {"role": "assistant", "parts": []}, *bare], said("assistant", "Warm."), 1),
    ]
    return session(*spans, scope=GENAI)


def looked(number: int, city: str) -> dict[str, Any]:
    return tool(number, "look", {"city": city}, "25", 1, also={names.TOOL_CALL_ID: f"t{number}"})


def test_an_answer_that_only_says_that_it_asked_for_tools_asked_for_those_that_ran() -> None:
    one = untold(looked(3, "Rome"), looked(4, "Oslo"))
    first, last = only_run(one).model_calls()
    calls = [called("look", {"city": city}, identity) for identity, city in (("t3", "Rome"), ("t4", "Oslo"))]
    assert one.messages[first.output[0]].parts[1:] == calls
    assert first.fidelity["output"] is Fidelity.RECONSTRUCTED
    assert [call.requested_by is not None for call in only_run(one).tool_calls()] == [True, True]
    assert heard(one, last)[2:] == [
        [{"type": "text", "content": ""}, *calls],
        *([told(identity, "25")["parts"][0]] for identity in ("t3", "t4")),
    ]
    assert last.fidelity["input"] is Fidelity.RECONSTRUCTED


def test_tools_whose_arguments_nobody_told_are_not_put_into_an_answer() -> None:
    ran = span(3, "execute_tool look", {names.OPERATION: "execute_tool", names.TOOL_NAME: "look"}, 1)
    one = untold(ran)
    first = next(only_run(one).model_calls())
    assert [part["type"] for part in one.messages[first.output[0]].parts] == ["text"]
