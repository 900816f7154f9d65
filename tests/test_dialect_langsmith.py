"""LangSmith: traces of the OpenAI Agents SDK, of services called by others, and with LangChain's own blocks."""

from __future__ import annotations

import json
from typing import Any

from otlp_lines import Span, converted, only_run, request, span
from spanreel.session import Message, Session

OF_SDK = {"langsmith.metadata.ls_integration": "openai-agents-sdk", "langsmith.metadata.thread_id": "talk"}
ASKED = {"input": [{"role": "user", "content": "Soup!"}], "instructions": "Serve."}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "order", "arguments": '{"dish": "soup"}'}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Enjoy."}]}


def told(number: int, kind: str, given: Any, came: Any, parent: int | None = None, **rest: Any) -> Span:
    attributes = {
        "langsmith.span.kind": kind,
        "gen_ai.prompt": json.dumps(given),
        "gen_ai.completion": json.dumps(came),
    }
    return span(number, rest.pop("name", kind), {**attributes, **rest.pop("also", {})}, parent, **rest)


def session_of(*spans: Span) -> Session:
    conversion = converted(request(*spans, scope="langsmith"))
    assert conversion.faults == ()
    (one,) = conversion.sessions
    return one


def texts(found: list[Message]) -> list[tuple[str, Any]]:
    return [(one.role, part.get("content", part.get("arguments"))) for one in found for part in one.parts]


def of_sdk(number: int, kind: str, given: Any, came: Any, parent: int | None = None, **rest: Any) -> Span:
    also = {**OF_SDK, "langsmith.metadata.openai_span_id": f"span_{number}", **rest.pop("also", {})}
    return told(number, kind, given, came, parent, also=also, **rest)


def of_model(identity: str) -> dict[str, Any]:
    usage = {"input_tokens": 60, "output_tokens": 12, "input_token_details": {"cache_read": 8}}
    metadata = {
        "object": "response",
        "id": identity,
        "ls_model_name": "gpt-5-2026",
        "usage_metadata": json.dumps(usage),
    }
    return {f"langsmith.metadata.{key}": value for key, value in metadata.items()}


def test_an_agent_of_the_agents_sdk_is_a_run_whose_workflow_is_told_once() -> None:
    """The workflow comes a second time, as a trace of its own."""
    again = [*ASKED["input"], CALL, {"type": "function_call_output", "call_id": "call_1", "output": "served"}]
    one = session_of(
        told(9, "chain", ASKED, {"output": [SAID]}, name="wf", also=OF_SDK, trace="b" * 32, start=1, seconds=20),
        of_sdk(1, "chain", {}, {}, name="wf", seconds=20),
        of_sdk(2, "chain", {}, {}, 1, name="waiter", seconds=15),
        of_sdk(3, "chain", {}, {}, 2, name="Span", seconds=5),
        of_sdk(4, "llm", ASKED, {"output": [CALL]}, 3, name="Response", also=of_model("resp_1")),
        of_sdk(5, "tool", {"dish": "soup"}, {"output": "served"}, 3, name="order"),
        of_sdk(6, "llm", {**ASKED, "input": again}, {"output": [SAID]}, 2, name="Response", also=of_model("resp_2")),
    )
    run = only_run(one)
    first, second = run.model_calls()
    assert (run.agent.name, one.key.value) == ("waiter", "talk")
    assert texts([one.messages[ref] for ref in first.input]) == [("system", "Serve."), ("user", "Soup!")]
    assert texts([one.messages[ref] for ref in first.output]) == [("assistant", {"dish": "soup"})]
    assert texts([one.messages[ref] for ref in run.output]) == [("assistant", "Enjoy.")]
    assert (second.response_id, second.response_model) == ("resp_2", "gpt-5-2026")
    assert one.usage.input_tokens == 120
    assert one.usage.cache_read_tokens == 16


def test_a_decorated_agent_that_another_service_calls_has_its_name() -> None:
    one = session_of(
        told(1, "chain", {"question": "Soup!"}, {"output": "Enjoy."}, 77, name="waiter", seconds=9),
        told(2, "tool", {"dish": "soup"}, {"output": "served"}, 1, name="order"),
    )
    assert only_run(one).agent.name == "waiter"


def test_functions_that_are_left_of_a_lost_run_are_no_agents() -> None:
    spans = [told(number, "chain", {"question": "Soup!"}, {"output": "Enjoy."}, 77, name="step") for number in (1, 3)]
    calls = [
        told(number + 1, "llm", {"messages": [{"role": "user", "content": "Soup!"}]}, {}, number) for number in (1, 3)
    ]
    conversion = converted(request(*spans, *calls, scope="langsmith"))
    assert {run.agent.name for one in conversion.sessions for run in one.runs} == {None}


def test_the_model_that_was_asked_for_is_langsmiths_own_word() -> None:
    """Who passes spans on may have put the model that answered in the place of the other."""
    also = {"gen_ai.request.model": "gpt-5-2026", "langsmith.metadata.ls_model_name": "gpt-5"}
    one = session_of(told(1, "llm", {"messages": [{"role": "user", "content": "Soup!"}]}, {}, also=also))
    (call,) = only_run(one).model_calls()
    assert call.model == "gpt-5"


def test_a_call_that_failed_before_anything_was_counted_is_read() -> None:
    also = {"langsmith.metadata.usage_metadata": "{}"}
    failed = told(1, "llm", {"messages": [{"role": "user", "content": "Soup!"}]}, {}, also=also, status={"code": 2})
    (call,) = only_run(session_of(failed)).model_calls()
    assert (call.status, call.usage) == ("error", None)


def test_blocks_that_repeat_calls_of_the_responses_api_are_those_calls() -> None:
    kwargs = {
        "content": [CALL],
        "type": "ai",
        "tool_calls": [{"name": "order", "args": {"dish": "soup"}, "id": "call_1"}],
    }
    message = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "AIMessage"], "kwargs": kwargs}
    came = {"generations": [[{"text": "", "message": message}]]}
    one = session_of(told(1, "llm", {"messages": [{"role": "user", "content": "Soup!"}]}, came))
    (call,) = only_run(one).model_calls()
    assert texts([one.messages[ref] for ref in call.output]) == [("assistant", {"dish": "soup"})]


def of_javascript(**also: Any) -> dict[str, Any]:
    """What LangChain's JavaScript says of a model call."""
    kwargs = {"content": "Enjoy.", "id": "chatcmpl-1", "response_metadata": {}, **also}
    message = {"lc": 1, "type": "constructor", "id": ["langchain_core", "messages", "AIMessage"], "kwargs": kwargs}
    told = {"finish_reason": "stop", "model_name": "gpt-5-2026"}
    counted = {"tokenUsage": {"promptTokens": 10, "completionTokens": 3, "totalTokens": 13}}
    return {"generations": [[{"text": "Enjoy.", "message": message, "generationInfo": told}]], "llmOutput": counted}


def test_a_model_call_of_langchains_javascript_tells_its_end_its_model_and_its_tokens() -> None:
    one = session_of(told(1, "llm", {"messages": [[{"type": "human", "content": "Soup!"}]]}, of_javascript()))
    (call,) = only_run(one).model_calls()
    assert (call.finish_reasons, call.response_model) == (["stop"], "gpt-5-2026")
    assert call.usage is not None
    assert (call.usage.input_tokens, call.usage.output_tokens) == (10, 3)


def test_details_of_tokens_that_stand_with_the_answer_alone_are_counted() -> None:
    usage = {
        "input_tokens": 10,
        "output_tokens": 3,
        "total_tokens": 13,
        "input_token_details": {"cache_read": 4},
        "output_token_details": {"reasoning": 1},
    }
    counted = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 3}
    asked = {"messages": [[{"type": "human", "content": "Soup!"}]]}
    one = session_of(told(1, "llm", asked, of_javascript(usage_metadata=usage), also=counted))
    (call,) = only_run(one).model_calls()
    assert call.usage is not None
    assert (call.usage.input_tokens, call.usage.cache_read_tokens, call.usage.reasoning_tokens) == (10, 4, 1)


def test_values_that_were_written_as_bytes_are_the_texts_that_they_are() -> None:
    asked = json.dumps({"messages": [{"role": "user", "content": "Soup!"}]}).encode()
    came = json.dumps({"choices": [{"message": {"role": "assistant", "content": "Here."}}]}).encode()
    written = {"langsmith.span.kind": "llm", "gen_ai.prompt": asked, "gen_ai.completion": came}
    found = session_of(span(1, "ChatOpenAI", written))
    assert texts(found.messages) == [("user", "Soup!"), ("assistant", "Here.")]
    assert found.replay.eligible
