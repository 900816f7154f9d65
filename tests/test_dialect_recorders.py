"""What recorders of one framework leave out or write otherwise, alone and beside each other."""

from __future__ import annotations

import json
from typing import Any

from otlp_lines import agent, asks, called, chat, converted, only_run, request, said, session, span
from spanreel import conventions as names
from spanreel.model import Fidelity, Status

LISTENER = "openinference.instrumentation.crewai._event_listener"
HI = said("user", "Hi")
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"city": "Rome"}'}}
SCHEMA = {"type": "object", "properties": {"city": {"title": "City", "type": "string"}}, "required": ["city"]}


def llm(number: int, attributes: dict[str, Any], **rest: Any) -> dict[str, Any]:
    asked = {"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "Hi"}
    also = {"openinference.span.kind": "LLM", "llm.model_name": "small", **asked}
    return span(number, "small.llm_call", {**also, **attributes}, 1, **rest)


def test_crewais_listener_tells_calls_of_tools_without_a_message_and_reprs_of_what_is_deep() -> None:
    deep = {"type": "object", "properties": {"city": str(SCHEMA["properties"]["city"])}, "required": ["'city'"]}  # type: ignore[index]
    offered = {"type": "function", "function": {"name": "look", "description": "Look", "parameters": deep}}
    asking = "llm.input_messages.1.message"
    history = {
        f"{asking}.role": "assistant",
        f"{asking}.tool_calls.0.tool_call.id": "c1",
        f"{asking}.tool_calls.0.tool_call.function.name": "'look'",
        f"{asking}.tool_calls.0.tool_call.function.arguments": '{"city": "Rome"}',
        "llm.input_messages.2.message.role": "tool",
        "llm.input_messages.2.message.tool_call_id": "c1",
        "llm.input_messages.2.message.content": "25",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "Ho",
    }
    used = {"openinference.span.kind": "TOOL", "tool.name": "look", "input.value": '{"city": "Rome"}'}
    one = session(
        span(1, "Cook.Hi.execute", {"openinference.span.kind": "AGENT", "input.value": "Hi"}, seconds=20),
        llm(2, {"output.value": json.dumps([CALL]), "llm.tools": json.dumps([offered])}, start=1),
        span(3, "look.run", {**used, "output.value": "25"}, 1, start=3),
        llm(4, {**history, "output.value": "Ho"}, start=5),
        scope=LISTENER,
    )
    (tool_call,) = only_run(one).tool_calls()
    assert (tool_call.name, tool_call.call_id, tool_call.result) == ("look", "c1", "25")
    first, _ = only_run(one).model_calls()
    asked = one.messages[first.output[0]]
    assert (asked.role, [part["name"] for part in asked.parts]) == ("assistant", ["look"])
    assert [one.tools[number]["parameters"] for number in first.tools] == [SCHEMA]
    assert one.replay.eligible


def test_a_tool_failed_whose_outer_view_repeats_the_exceptions_words_as_the_result() -> None:
    outer = {"openinference.span.kind": "TOOL", "tool.name": "look", "output.value": "no such city"}
    inner = {names.OPERATION: "execute_tool", names.TOOL_NAME: "look", "error.type": "ValueError"}
    failed = span(3, "execute_tool look", inner, 2, start=2, status={"code": 2, "message": "no such city"})
    one = session(agent(1, "cook", None, seconds=20), span(2, "look", outer, 1, seconds=9), failed, scope="demo")
    (tool_call,) = only_run(one).tool_calls()
    assert tool_call.status is Status.ERROR
    assert tool_call.error is not None
    assert tool_call.error.type == "ValueError"


def test_a_request_that_was_read_as_it_was_sent_without_tools_had_none() -> None:
    offered = json.dumps([{"type": "function", "name": "look", "parameters": SCHEMA}])
    body = {"model": "small", "messages": [{"role": "user", "content": "Hi"}]}
    answer = {"id": "c-1", "object": "chat.completion", "choices": [{"index": 0, "message": {"role": "assistant"}}]}
    answer["choices"][0]["message"]["content"] = "Ho"  # type: ignore[index]
    kept = {"input.value": json.dumps(body), "output.value": json.dumps(answer)}
    run = agent(1, "cook", None, seconds=20, also={names.TOOL_DEFINITIONS: offered})
    bare = session(run, llm(2, kept), scope="openinference.instrumentation.openai")
    (call,) = only_run(bare).model_calls()
    assert not call.tools
    untold = session(run, chat(2, [HI], said("assistant", "Ho"), 1), scope="demo")
    (call,) = only_run(untold).model_calls()
    assert len(call.tools) == 1


def test_pydantic_ais_old_events_tell_thoughts_that_stand_alone_as_thoughts() -> None:
    asked = {"event.name": "gen_ai.user.message", "role": "user", "content": "Hi", "gen_ai.message.index": 0}
    thought = {"role": "assistant", "content": [{"kind": "thinking", "text": "Hm."}], "tool_calls": [CALL]}
    came = {"event.name": "gen_ai.choice", "index": 0, "message": thought}
    told_of = {names.OPERATION: "chat", names.REQUEST_MODEL: "small", "events": json.dumps([asked, came])}
    one = session(span(1, "chat small", told_of), scope="pydantic-ai")
    (call,) = only_run(one).model_calls()
    assert [part["type"] for part in one.messages[call.output[0]].parts] == ["reasoning", "tool_call"]


def test_haystacks_streamed_calls_are_read_though_a_callback_makes_their_input_a_repr() -> None:
    given = (
        "{'messages': [ChatMessage(_role=<ChatRole.USER: 'user'>, _content=[TextContent(text='Is 1 < 2 at 0x1?')], "
        "_name=None, _meta={})], 'streaming_callback': <function main.<locals>.<lambda> at 0x7f45d4990680>, "
        f"'tools': [Tool(name='look', description='Look', parameters={SCHEMA}, function=<function look at 0x7f45d5>)]}}"
    )
    came = {"replies": [{"role": "assistant", "meta": {"model": "small"}, "name": None, "content": [{"text": "Yes"}]}]}
    ends = {"haystack.agent.step.llm.input": given, "haystack.agent.step.llm.output": json.dumps(came)}
    one = session(span(1, "haystack.agent.step.llm", ends), scope="app")
    (call,) = only_run(one).model_calls()
    assert [one.messages[number].parts for number in call.input] == [[{"type": "text", "content": "Is 1 < 2 at 0x1?"}]]
    assert [one.tools[number]["parameters"] for number in call.tools] == [SCHEMA]
    assert call.streamed


def mlflow(number: int, name: str, kind: str, given: Any, came: Any, parent: int | None = None, **rest: Any) -> Any:
    ends = {"mlflow.spanInputs": json.dumps(given), "mlflow.spanOutputs": json.dumps(came)}
    also = {key: json.dumps(value) for key, value in rest.pop("also", {}).items()}
    return span(number, name, {"mlflow.spanType": json.dumps(kind), **ends, **also}, parent, **rest)


def test_mlflows_streams_of_the_agents_sdk_are_one_call_each_and_its_workflows_null_is_no_prompt() -> None:
    said_so = [{"role": "user", "content": "Hi"}]
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Ho"}]}
    left_out = "<openai.Omit object at 0x7f38957d3c10>"
    sent = {"model": "small", "instructions": "Be brief.", "input": said_so, "temperature": left_out, "stream": True}
    counts = {"input_tokens": 7, "output_tokens": 2}
    response = {"id": "resp_1", "object": "response", "model": "small-1", "usage": counts}
    unread = "<AsyncAPIResponse [200 OK] type=<class 'openai.types.responses.response.Response'>>"
    one = session(
        mlflow(1, "AgentRunner.run_streamed", "AGENT", "Hi", "Ho", seconds=9),
        mlflow(2, "Agent workflow", "CHAIN", None, None, 1, seconds=8),
        mlflow(3, "cook", "AGENT", None, None, 2, seconds=7),
        mlflow(4, "Response", "CHAT_MODEL", said_so, [item], 3, seconds=2, also=response),
        mlflow(5, "AsyncResponses", "CHAT_MODEL", sent, unread, 4),
        scope="mlflow.tracing.provider",
    )
    (call,) = [call for run in one.runs for call in run.model_calls()]
    assert [one.messages[number].role for number in call.input] == ["system", "user"]
    assert call.usage is not None
    assert (call.response_id, call.usage.input_tokens, call.settings) == ("resp_1", 7, {})
    prompts = {part["content"] for run in one.runs for number in run.input for part in one.messages[number].parts}
    assert "null" not in prompts


def test_mlflow_tells_items_of_the_responses_api_as_messages_of_one_answer() -> None:
    parts = [{"type": "tool_call", "id": f"c{number}", "name": "look", "arguments": {}} for number in (1, 2)]
    came = [{"role": "assistant", "parts": [part], "finish_reason": "completed"} for part in parts]
    told_of = {names.OPERATION: "chat", names.REQUEST_MODEL: "small", names.OUTPUT_MESSAGES: json.dumps(came)}
    one = session(
        span(1, "chat small", {**told_of, names.INPUT_MESSAGES: json.dumps([HI])}), scope="mlflow.tracing.provider"
    )
    (call,) = only_run(one).model_calls()
    assert [[part["id"] for part in one.messages[number].parts] for number in call.output] == [["c1", "c2"]]


def test_ag2s_tools_have_the_functions_arguments_and_its_result() -> None:
    ends = {
        "input.value": json.dumps({"name": "look", "arguments": '{"city": "Rome"}'}),
        "output.value": json.dumps([False, {"name": "look", "role": "function", "content": "Error: no such city"}]),
    }
    used = span(1, "look", {"openinference.span.kind": "TOOL", "tool.name": "look", **ends})
    (tool_call,) = only_run(session(used, scope="openinference.instrumentation.ag2")).tool_calls()
    assert (tool_call.arguments, tool_call.result) == ({"city": "Rome"}, "Error: no such city")
    assert tool_call.status is Status.ERROR


def old_openlit(number: int, prompt: str, answer: str, **also: Any) -> Any:
    told_of = {
        names.OPERATION: "chat",
        names.REQUEST_MODEL: "small",
        "gen_ai.prompt": prompt,
        "gen_ai.completion": answer,
    }
    return span(number, "chat small", {**told_of, **also})


def test_openlits_older_versions_tell_messages_as_one_text_and_calls_as_lists_with_commas() -> None:
    asked = {names.TOOL_NAME: "look, look", names.TOOL_CALL_ID: "c1, c2"}
    calls = [{**CALL, "id": f"c{number}"} for number in (1, 2)]
    history = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi\nuser: there"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        *({"role": "tool", "tool_call_id": f"c{number}", "content": "25"} for number in (1, 2)),
    ]
    lines = f"system: Be brief.\nuser: Hi\nuser: there\nuser: {history}\ntool: 25\ntool: 25"
    one = session(
        old_openlit(
            1, "system: Be brief.\nuser: Hi", "", **asked, **{"gen_ai.tool.args": '{"city": "A"}, {"city": "B"}'}
        ),
        old_openlit(9, lines, "Ho", **{"gen_ai.request.is_stream": True}),
        scope="openlit.otel.tracing",
    )
    first, second = [call for run in one.runs for call in run.model_calls()]
    texts = [(one.messages[number].role, one.messages[number].parts[0].get("content")) for number in first.input]
    assert texts == [("system", "Be brief."), ("user", "Hi")]
    assert first.fidelity["input"] is Fidelity.RECONSTRUCTED
    asking = one.messages[first.output[0]].parts
    assert [(part["id"], part["arguments"]) for part in asking] == [("c1", {"city": "A"}), ("c2", {"city": "B"})]
    assert [one.messages[number].role for number in second.input] == ["system", "user", "assistant", "tool", "tool"]
    assert second.streamed


def test_openlits_older_versions_leave_nothing_but_the_name_of_a_call_that_raised() -> None:
    raised = span(1, "chat small", {}, status={"code": 2, "message": "RateLimitError: later"})
    (call,) = only_run(session(raised, scope="openlit.otel.tracing")).model_calls()
    assert (call.model, call.status) == ("small", Status.ERROR)


def test_the_answer_of_llama_indexs_workflow_stands_in_blocks_under_openllmetry() -> None:
    response = {"role": "assistant", "additional_kwargs": {}, "blocks": [{"block_type": "text", "text": "Ho"}]}
    came = {"result": {"response": response, "current_agent_name": "cook", "tool_calls": [], "retry_messages": []}}
    told_of = {"traceloop.span.kind": "workflow", "traceloop.entity.output": json.dumps(came)}
    used = {"kwargs": {"city": "Rome"}}
    shown = {"blocks": [], "tool_name": "look", "raw_output": "25", "is_error": False}
    ends = {"traceloop.entity.input": json.dumps(used), "traceloop.entity.output": json.dumps(shown)}
    one = session(
        span(1, "FunctionAgent.workflow", told_of, seconds=9),
        span(2, "FunctionTool.task", {"traceloop.span.kind": "task", **ends}, 1),
        scope="opentelemetry.instrumentation.llamaindex",
    )
    run = only_run(one)
    assert [one.messages[number].parts for number in run.output] == [[{"type": "text", "content": "Ho"}]]


def test_a_call_has_the_id_that_its_tools_answer_names_whichever_recorder_tells_it() -> None:
    item = chat(2, [HI], asks(called("look", {}, "fc_1")), 1, seconds=3, also={names.RESPONSE_ID: "resp_1"})
    call = chat(3, [HI], asks(called("look", {}, "call_1")), 2, also={names.RESPONSE_ID: "resp_1"})
    one = session(agent(1, "cook", seconds=9), item, call, scope="demo")
    (found,) = only_run(one).model_calls()
    assert [part["id"] for part in one.messages[found.output[0]].parts] == ["call_1"]


def test_two_recorders_beside_each_other_tell_of_one_call_though_one_names_the_version_that_answered() -> None:
    answer = {"role": "assistant", "content": [{"type": "output_text", "text": "Ho"}], "type": "message"}
    came = {"id": "resp_1", "object": "response", "model": "small-2024-07-18", "output": [answer]}
    seen = {"openinference.span.kind": "LLM", "llm.model_name": "small-2024-07-18", "output.value": json.dumps(came)}
    by_oi = span(3, "response", seen, 1, start=2.1)
    by_other = chat(
        2, [HI], said("assistant", "Ho"), 1, also={names.REQUEST_MODEL: "small", names.RESPONSE_ID: "resp_1"}
    )
    document = request(agent(1, "cook", seconds=9), by_other, scope="demo")
    document["resourceSpans"] += request(by_oi, scope="openinference.instrumentation.openai_agents")["resourceSpans"]
    (one,) = converted(document).sessions
    assert len(list(only_run(one).model_calls())) == 1


def test_ag2s_conversation_is_the_run_and_a_tool_stands_where_it_was_asked_for() -> None:
    ends = {names.INPUT_MESSAGES: json.dumps([HI]), names.OUTPUT_MESSAGES: json.dumps([HI, said("user", "Ho")])}
    used = {names.OPERATION: "execute_tool", names.TOOL_NAME: "look", names.TOOL_CALL_ID: "c1"}
    one = session(
        span(1, "conversation user", {names.OPERATION: "conversation", names.AGENT_NAME: "user", **ends}, seconds=20),
        agent(2, "cook", 1, seconds=2),
        chat(3, [HI], asks(called("look", {}, "c1")), 2, start=2),
        agent(4, "user", 1, start=5, seconds=2),
        span(5, "execute_tool look", {**used, names.TOOL_CALL_RESULT: "25"}, 4, start=5.5),
        scope="opentelemetry.instrumentation.ag2",
    )
    (root,) = [run for run in one.runs if run.parent is None]
    told = [(one.messages[number].role, one.messages[number].parts[0]["content"]) for number in root.output]
    assert told == [("assistant", "Ho")]
    (cook,) = [run for run in one.runs if run.agent.name == "cook"]
    assert [(tool.call_id, tool.result) for tool in cook.tool_calls()] == [("c1", "25")]
