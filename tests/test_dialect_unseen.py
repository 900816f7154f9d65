"""What was wrong on dumps of libraries that no golden session stands for: small spans, as those write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from otlp_lines import (
    agent,
    asks,
    attribute_list,
    called,
    chat,
    converted,
    log,
    only_run,
    request,
    said,
    session,
    sessions,
    span,
    told,
)
from spanreel import conventions as names
from spanreel.model import Fidelity, Status
from spanreel.session import ModelCall, Session, ToolCall
from spanreel_collector.conversion.convert import convert_files

OI = "openinference.instrumentation."
TRACELOOP = {"name": "opentelemetry.instrumentation.", "version": "0.62.4"}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
HI = said("user", "Hi")
ASKED = {
    "llm.input_messages.0.message.role": "user",
    "llm.input_messages.0.message.content": "Hi",
    "openinference.span.kind": "LLM",
}
OUTPUT = "llm.output_messages.0.message"
HO = {"llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "Ho"}


def traceloop(library: str, *spans: dict[str, Any]) -> Session:
    document = request(*spans)
    document["resourceSpans"][0]["scopeSpans"][0]["scope"] = {**TRACELOOP, "name": TRACELOOP["name"] + library}
    (one,) = converted(document).sessions
    return one


def only_call(one: Session) -> ModelCall:
    (call,) = only_run(one).model_calls()
    return call


def only_tool(one: Session) -> ToolCall:
    (call,) = only_run(one).tool_calls()
    return call


# -- OpenInference ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["groq", "mistralai", "portkey", "together"])
def test_bodies_of_providers_that_speak_as_openai_does_are_read(library: str) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"city": "Rome"}'}}
    sent = {"model": "small", "messages": [{"role": "user", "content": "Hi"}], "temperature": 0.2, "top_p": ""}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    came = {"id": "c-1", "object": "chat.completion", "model": "small-1", "choices": [{"index": 0, "message": message}]}
    told_of = {"input.value": json.dumps(sent), "output.value": json.dumps(came), "openinference.span.kind": "LLM"}
    one = session(span(1, "Completions", told_of), scope=OI + library)
    found = only_call(one)
    assert (found.model, found.response_model, found.settings) == ("small", "small-1", {"temperature": 0.2})
    assert only_tool(one).call_id == "call_1"


def test_parameters_that_nobody_set_are_no_settings() -> None:
    parameters = {"temperature": 0.2, "top_p": "<openai.Omit object at 0x7f0>", "stop": "", "max_tokens": "NOT_GIVEN"}
    spans = span(1, "chat", {**ASKED, **HO, "llm.invocation_parameters": json.dumps(parameters)})
    assert only_call(session(spans, scope=OI + "portkey")).settings == {"temperature": 0.2}


def test_a_stream_that_the_span_did_not_listen_to_is_a_model_call_all_the_same() -> None:
    heard = {**ASKED, "output.value": "<groq.Stream object at 0x7f0>", "llm.provider": "groq"}
    found = only_call(session(span(1, "Completions", heard), scope=OI + "groq"))
    assert found.fidelity["output"] is Fidelity.ABSENT


def test_settings_of_ollama_stand_in_its_options() -> None:
    parameters = {"stream": False, "options": {"temperature": 0.2}}
    spans = span(1, "Chat", {**ASKED, **HO, "llm.invocation_parameters": json.dumps(parameters)})
    assert only_call(session(spans, scope=OI + "ollama")).settings == {"temperature": 0.2}


def test_litellm_is_told_the_provider_before_the_model() -> None:
    spans = span(1, "completion", {**ASKED, **HO, "llm.model_name": "openai/small"})
    found = only_call(session(spans, scope=OI + "litellm"))
    assert (found.model, found.response_model) == ("small", None)
    assert only_call(session(spans, scope=OI + "openai")).model == "openai/small"


def test_bedrocks_tool_definitions_and_results_are_out_of_their_wrapping() -> None:
    spec = {"toolSpec": {"name": "look", "description": "Looks.", "inputSchema": {"json": SCHEMA}}}
    spans = span(1, "bedrock.converse", {**ASKED, **HO, "llm.tools.0.tool.json_schema": json.dumps(spec)})
    (tool,) = session(spans, scope=OI + "bedrock").tools
    assert (tool["name"], tool["parameters"]) == ("look", SCHEMA)
    history = [HI, asks(called("look", {}, "t1")), told("t1", [{"text": "25"}])]
    both = [
        chat(number, messages, answer, trace=f"{number:032x}", also={names.PROVIDER: "aws.bedrock"})
        for number, messages, answer in ((1, [HI], history[1]), (2, history, said("assistant", "Ho")))
    ]
    assert only_tool(session(*both, scope="demo")).result == "25"


def test_what_a_user_is_made_to_say_of_a_tools_call_is_the_tools_answer() -> None:
    answer = {"role": "user", "content": "25", "tool_call_id": "t1"}
    history = {f"llm.input_messages.1.message.{key}": value for key, value in answer.items()}
    one = session(span(1, "bedrock.invoke_model", {**ASKED, **HO, **history}), scope=OI + "bedrock")
    assert [one.messages[index].role for index in only_call(one).input] == ["user", "tool"]


@pytest.mark.parametrize("response", ['{"result": "25"}', "{'result': '25'}", {"result": "25"}])
def test_googles_sdk_puts_results_into_an_object(response: Any) -> None:
    history = [HI, asks(called("look", {})), told("", response)]
    both = [
        chat(number, messages, answer, trace=f"{number:032x}", also={names.PROVIDER: "gcp.gemini"})
        for number, messages, answer in ((1, [HI], history[1]), (2, history, said("assistant", "Ho")))
    ]
    assert only_tool(session(*both, scope="demo")).result == "25"


def test_googles_declarations_are_tools_each() -> None:
    declared = [{"function_declarations": [{"name": "look", "parameters": SCHEMA}, {"name": "ask"}]}]
    also = {names.TOOL_DEFINITIONS: json.dumps(declared)}
    assert [one["name"] for one in session(chat(1, [HI], None, also=also), scope="demo").tools] == ["look", "ask"]


def test_beeais_arguments_stand_beside_options_and_ids_with_the_content() -> None:
    answer = {"role": "tool", "contents.0.message_content.text": "25", "contents.0.message.tool_call_id": "t1"}
    history = {f"llm.input_messages.1.message.{key}": value for key, value in answer.items()}
    one = session(span(1, "Model", {**ASKED, **HO, **history}), scope=OI + "beeai")
    assert one.messages[1].parts == [{"type": "tool_call_response", "id": "t1", "response": "25"}]
    given = {"input": {"city": "Rome"}, "options": None}
    spans = span(1, "look", {"openinference.span.kind": "TOOL", "input.value": json.dumps(given)})
    assert only_tool(session(spans, scope=OI + "beeai")).arguments == {"city": "Rome"}


def test_what_beeai_tells_of_inside_a_call_is_no_call() -> None:
    failing = {"openinference.span.kind": "TOOL", "metadata.class_name": "Look", "tool.name": "look"}
    event = {"openinference.span.kind": "TOOL", "metadata.path": "tool.look.error", "input.value": '{"error": "no"}'}
    spans = [span(1, "look", failing, seconds=9, status={"code": 2}), span(2, "error", event, 1)]
    found = only_tool(session(*spans, scope=OI + "beeai"))
    assert (found.name, found.status) == ("look", Status.ERROR)


def test_what_was_thought_before_an_answer_is_a_part_of_it_where_openllmetry_has_it_as_a_message() -> None:
    call = span(
        1,
        "anthropic.chat",
        {
            "llm.request.type": "completion",
            "gen_ai.prompt.0.role": "user",
            "gen_ai.prompt.0.content": "Soup!",
            "gen_ai.completion.0.finish_reason": "end_turn",
            "gen_ai.completion.0.role": "thinking",
            "gen_ai.completion.0.content": "Soup, then.",
            "gen_ai.completion.1.role": "assistant",
            "gen_ai.completion.1.content": "Here.",
        },
    )
    one = traceloop("anthropic", call)
    (read,) = only_run(one).model_calls()
    (answer,) = (one.messages[index] for index in read.output)
    assert [(part["type"], part["content"]) for part in answer.parts] == [
        ("reasoning", "Soup, then."),
        ("text", "Here."),
    ]
    assert read.finish_reasons == ["end_turn"]


def test_openllmetry_of_javascript_before_0_23_writes_schemas_as_arguments_and_no_content_as_json() -> None:
    schema = {"type": "object", "properties": {"dish": {"type": "string"}}}
    call = span(
        1,
        "openai.chat",
        {
            "llm.request.type": "chat",
            "gen_ai.system": "OpenAI",
            "gen_ai.prompt.0.role": "user",
            "gen_ai.prompt.0.content": "Soup!",
            "gen_ai.prompt.1.role": "assistant",
            "gen_ai.prompt.1.content": "null",
            "gen_ai.prompt.2.role": "user",
            "gen_ai.prompt.2.content": "null",
            "gen_ai.prompt.3.role": "user",
            "gen_ai.prompt.3.content": "[]",
            "llm.request.functions.0.name": "order",
            "llm.request.functions.0.arguments": json.dumps(schema),
            "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.content": "Here.",
        },
    )
    document = request(call, scope="@traceloop/instrumentation-openai")
    (one,) = converted(document).sessions
    assert one.tools == [{"type": "function", "name": "order", "parameters": schema}]
    (read,) = next(iter(one.runs)).model_calls()
    texts = [[part["content"] for part in one.messages[index].parts] for index in read.input]
    assert texts == [["Soup!"], [], ["null"], []]


def test_openllmetry_of_javascript_writes_blocks_into_texts_and_names_tools_in_their_results() -> None:
    system = said("system", json.dumps([{"type": "text", "text": "Be short."}]))
    call = chat(1, [system, HI], said("assistant", "Ho"))
    document = request(call, scope="@traceloop/instrumentation-langchain")
    document["resourceSpans"][0]["scopeSpans"][0]["scope"]["version"] = "0.27.0"
    (one,) = converted(document).sessions
    assert [part["content"] for message in one.messages for part in message.parts] == ["Be short.", "Hi", "Ho"]
    answer = {"content": "25", "tool_call_id": "t1", "name": "look"}
    told_of = {
        "gen_ai.operation.name": "execute_tool",
        "traceloop.span.kind": "task",
        "traceloop.entity.name": "DynamicStructuredTool",
        "traceloop.entity.input": json.dumps({"args": ['{"city": "Rome"}']}),
        "traceloop.entity.output": json.dumps(
            {"lc": 1, "type": "constructor", "id": ["ToolMessage"], "kwargs": answer}
        ),
    }
    tool = only_tool(session(span(1, "execute_tool DynamicStructuredTool", told_of), scope="@traceloop/langchain"))
    assert (tool.name, tool.arguments, tool.result, tool.call_id) == ("look", {"city": "Rome"}, "25", "t1")


def test_openllmetrys_workflow_of_llama_index_says_in_its_output_who_ran() -> None:
    told_of = {
        "traceloop.span.kind": "workflow",
        "traceloop.entity.output": '{"result": {"current_agent_name": "cook"}}',
    }
    one = traceloop("llamaindex", span(1, "FunctionAgent.workflow", told_of, seconds=9), chat(2, [HI], HI, 1))
    assert only_run(one).agent.name == "cook"


def test_a_model_call_of_openllmetrys_that_a_limit_took_its_kind_from_is_one_all_the_same() -> None:
    left = {"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "Ho", "llm.usage.total_tokens": 9}
    one = traceloop("openai.v1", span(1, "openai.chat", left, droppedAttributesCount=4))
    assert one.messages[only_call(one).output[0]].parts[0]["content"] == "Ho"


def test_old_openllmetry_has_bedrocks_blocks_as_text_and_words_of_answers_alone() -> None:
    use = {"toolUse": {"toolUseId": "t1", "name": "look", "input": {"city": "Rome"}}}
    result = {"toolResult": {"toolUseId": "t1", "content": [{"text": "25"}]}}
    said_of = [("user", [{"text": "Hi"}]), ("assistant", [{"text": "I look."}, use]), ("user", [result])]

    def prompts(count: int) -> dict[str, str]:
        each = [(f"gen_ai.prompt.{number}", *said_of[number]) for number in range(count)]
        return {
            key: value
            for prefix, role, blocks in each
            for key, value in ((f"{prefix}.role", role), (f"{prefix}.content", json.dumps(blocks)))
        }

    words = {"gen_ai.completion.0.role": "assistant", "llm.request.type": "chat", "gen_ai.request.model": "small"}
    first = {**words, **prompts(1), "gen_ai.completion.0.content": "I look."}
    second = {**words, **prompts(3), "gen_ai.completion.0.content": "25 degrees."}
    spans = [span(number, "converse", one, trace=f"{number:032x}") for number, one in ((1, first), (2, second))]
    assert only_tool(traceloop("bedrock", *spans)).result == "25"


def test_an_agents_span_that_a_limit_took_its_kind_from_is_no_model_call() -> None:
    spans = [span(1, "invoke_agent clerk", HO, seconds=9), span(2, "chat small", {**ASKED, **HO}, 1)]
    assert len(list(only_run(session(*spans, scope="agent_framework")).model_calls())) == 1


def test_an_agent_of_llama_indexes_is_named_by_its_steps() -> None:
    run = span(1, "FunctionAgent.run", {"output.value": "StopEvent(res...", "openinference.span.kind": "CHAIN"})
    event = {"ev": "AgentInput(input=[], current_agent_name='clerk')"}
    step = {"input.value": json.dumps(event), "openinference.span.kind": "CHAIN"}
    spans = [run, span(2, "BaseWorkflowAgent.setup_agent", step, 1), span(3, "OpenAI.achat", {**ASKED, **HO}, 1)]
    assert only_run(session(*spans, scope=OI + "llama_index")).agent.name == "clerk"


def test_a_streamed_generation_of_openai_agents_is_the_response_in_its_list() -> None:
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Ho"}]}
    usage = {"input_tokens": 9, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 4}}
    response = {"id": "__fake_id__", "object": "response", "model": "small", "output": [item], "usage": usage}
    spans = span(1, "generation", {**ASKED, "output.value": json.dumps([response])})
    one = session(spans, scope=OI + "openai_agents")
    found = only_call(one)
    assert one.messages[found.output[0]].parts[0]["content"] == "Ho"
    assert (found.response_id, found.usage and found.usage.cache_read_tokens) == (None, 4)


def test_arguments_that_openinference_leaves_out_are_the_empty_object() -> None:
    bare = {f"{OUTPUT}.tool_calls.0.tool_call.{key}": value for key, value in (("id", "t1"), ("function.name", "look"))}
    one = session(span(1, "generation", {**ASKED, f"{OUTPUT}.role": "assistant", **bare}), scope=OI + "openai_agents")
    assert only_tool(one).arguments == {}


@pytest.mark.parametrize("asked", [[["user", "Hi"]], [{"role": "user", "content": "Hi"}, ["assistant", "Ho"]]])
def test_a_message_may_be_a_pair_of_role_and_text(asked: list[Any]) -> None:
    told_of = {"input.value": json.dumps({"messages": asked}), "openinference.span.kind": "CHAIN"}
    one = session(span(1, "clerk", told_of, seconds=9), span(2, "Chat", {**ASKED, **HO}, 1), scope=OI + "langchain")
    (run,) = one.runs
    assert len(run.input) == len(asked)


# -- the conventions, OpenLLMetry, OpenLIT ---------------------------------------------------------------------------


def test_roles_may_be_members_of_an_enumeration() -> None:
    spans = chat(1, [said("MessageRole.SYSTEM", "Be short."), said("MessageRole.USER", "Hi")], None)
    one = session(spans, scope="demo")
    assert [message.role for message in one.messages] == ["system", "user"]


def test_a_tools_message_of_text_is_its_answer() -> None:
    answer = {**said("tool", "25"), "tool_call_id": "t1"}
    one = session(chat(1, [HI, asks(called("look", {}, "t1")), answer], None), scope="demo")
    assert one.messages[-1].parts[0] == {"type": "tool_call_response", "id": "t1", "response": "25"}


def test_botocores_events_hold_bedrocks_blocks_and_tell_results_twice() -> None:
    use = {"toolUse": {"toolUseId": "t1", "name": "look", "input": {"city": "Rome"}}}
    call = {"id": "t1", "type": "function", "function": {"name": "look", "arguments": {"city": "Rome"}}}
    result = {"toolResult": {"toolUseId": "t1", "content": [{"text": "25"}]}}
    bodies = [
        ("gen_ai.user.message", {"content": [{"text": "Hi"}]}),
        ("gen_ai.assistant.message", {"content": [{"text": "I look."}, use], "tool_calls": [call]}),
        ("gen_ai.tool.message", {"id": "t1", "content": [{"text": "25"}]}),
        ("gen_ai.user.message", {"content": [result]}),
        ("gen_ai.choice", {"index": 0, "message": {"role": "assistant", "content": [{"text": "Ho"}]}}),
    ]
    logs = [log(name, {}, 1, body, time) for time, (name, body) in enumerate(bodies)]
    written = request(chat(1, None, None, also={"gen_ai.system": "aws.bedrock"}), scope="botocore")
    (one,) = converted(written, *logs).sessions
    told_of = [(message.role, [part["type"] for part in message.parts]) for message in one.messages]
    assert told_of == [
        ("user", ["text"]),
        ("assistant", ["text", "tool_call"]),
        ("tool", ["tool_call_response"]),
        ("assistant", ["text"]),
    ]
    assert one.messages[2].parts[0]["response"] == "25"


def test_agnos_results_are_out_of_what_openllmetry_shows_of_them() -> None:
    def tool(shown: str) -> ToolCall:
        told_of = {"traceloop.span.kind": "tool", "gen_ai.tool.name": "look", "traceloop.entity.output": shown}
        return only_tool(traceloop("agno", span(1, "look.tool", told_of)))

    assert tool("status='success' result='25, or so=much' error=None images=None").result == "25, or so=much"
    failed = tool("status='failure' result=None error='no such city' images=None")
    assert failed.status is Status.ERROR


def test_messages_that_were_uploaded_line_by_line_are_read(tmp_path: Path) -> None:
    lines = [{**message, "index": index} for index, message in enumerate([said("system", "Be short."), HI])]
    (tmp_path / "in.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in lines), encoding="utf-8")
    kept = chat(1, None, said("assistant", "Ho"), also={f"{names.INPUT_MESSAGES}_ref": "in.jsonl"})
    dump = tmp_path / "traces.jsonl"
    dump.write_text(json.dumps(request(kept, scope="demo")), encoding="utf-8")
    (one,) = convert_files([str(dump)]).sessions
    assert [message.role for message in one.messages] == ["system", "user", "assistant"]


def test_what_is_asked_of_a_memory_is_a_tools_call() -> None:
    records = [{"content": "Likes tea."}]
    told_of = {
        names.OPERATION: "search_memory",
        "gen_ai.memory.query.text": "tea",
        "gen_ai.memory.records": json.dumps(records),
    }
    call = only_tool(session(agent(1, "clerk", seconds=9), span(2, "search_memory", told_of, 1), scope="demo"))
    assert (call.name, call.arguments, call.result) == ("search_memory", "tea", records)


def test_an_exception_that_was_logged_is_how_a_call_failed() -> None:
    written = request(chat(1, [HI], None), scope="demo")
    told_of = {"exception.type": "openai.RateLimitError", "exception.message": "Too many."}
    (one,) = converted(written, log("gen_ai.client.operation.exception", told_of, 1)).sessions
    failed = only_call(one)
    assert failed.error is not None
    assert (failed.status, failed.error.type, failed.error.message) == (
        *(Status.ERROR, "openai.RateLimitError", "Too many."),
    )


def test_openlits_settings_that_nobody_gave_are_known_in_its_events_too() -> None:
    invented = {names.REQUEST_TOP_P: 1.0, names.REQUEST_MAX_TOKENS: -1, names.REQUEST_TEMPERATURE: 0.2}
    written = request(chat(1, [HI], said("assistant", "Ho"), also=invented), scope="openlit.instrumentation.openai")
    event = log("gen_ai.client.inference.operation.details", invented, 1)
    (one,) = converted(written, event).sessions
    assert only_call(one).settings == {"temperature": 0.2}


def test_openlits_input_tokens_of_anthropic_leave_the_cached_ones_out() -> None:
    counts = {names.USAGE_INPUT_TOKENS: 40, names.USAGE_CACHE_READ_TOKENS: 7, names.USAGE_CACHE_WRITE_TOKENS: 5}
    also = {names.PROVIDER: "anthropic", names.USAGE_OUTPUT_TOKENS: 12, **counts}
    found = only_call(session(chat(1, [HI], None, also=also), scope="openlit.instrumentation.anthropic"))
    assert found.usage is not None
    assert found.usage.input_tokens == 52


def test_of_two_views_the_one_with_the_body_as_sent_tells_which_model_was_asked() -> None:
    response = {"id": "resp_1", "object": "response", "model": "small-1", "output": [], "temperature": 1.0}
    sent = {"model": "small", "input": [{"role": "user", "content": "Hi"}]}
    outer = {**ASKED, **HO, "llm.model_name": "small-1", "output.value": json.dumps(response)}
    inner = {**HO, "openinference.span.kind": "LLM", "input.value": json.dumps(sent)}
    inner["output.value"] = json.dumps(response)
    spans = [request(span(1, "response", outer, seconds=9), scope=OI + "openai_agents")]
    spans.append(request(span(2, "Response", inner, 1), scope=OI + "openai"))
    (one,) = converted(*spans).sessions
    assert only_call(one).model == "small"


def test_what_a_handoff_gave_is_told_to_whom_was_handed_over() -> None:
    over = asks(called("transfer_to_cook", {}, "t1"))
    spans = [
        span(1, "invoke_workflow kitchen", {names.OPERATION: "invoke_workflow"}, seconds=60),
        agent(2, "clerk", 1, seconds=9),
        chat(3, [HI], over, 2),
        agent(20, "cook", 1, seconds=9),
        chat(21, [HI, over, told("t1", "the cook")], said("assistant", "Ho"), 20),
    ]
    (call,) = (tool for run in session(*spans, scope="demo").runs for tool in run.tool_calls())
    assert (call.result, call.status) == ("the cook", Status.OK)


def test_arguments_that_nobody_told_are_absent() -> None:
    bare = {"type": "tool_call", "id": "t1", "name": "look"}
    both = [
        chat(1, [HI], asks(bare), trace=f"{1:032x}"),
        chat(2, [HI, asks(bare), told("t1", "25")], said("assistant", "Ho"), trace=f"{2:032x}"),
    ]
    (one,) = sessions(*both, scope="demo")
    assert only_tool(one).fidelity["arguments"] is Fidelity.ABSENT


def test_blocks_that_langchain_wrote_into_texts_are_told_once() -> None:
    use = {"type": "tool_use", "id": "t1", "name": "look", "input": {"city": "Rome"}}
    texts = [json.dumps({"type": "thinking", "thinking": "Hm."}), json.dumps(use)]
    answer = asks(called("look", {"city": "Rome"}, "t1"))
    answer["parts"] = [{"type": "text", "content": text} for text in texts] + answer["parts"]
    one = traceloop("langchain", chat(1, [HI], answer, None))
    assert [part["type"] for part in one.messages[only_call(one).output[0]].parts] == ["reasoning", "tool_call"]


def test_an_agent_that_a_tool_calls_has_its_name_from_langchains_metadata() -> None:
    named = {"traceloop.association.properties.lc_agent_name": "cook", "traceloop.entity.name": "cook"}
    spans = [
        agent(1, "clerk", None, seconds=60),
        chat(2, [HI], asks(called("ask_cook", {}, "t1")), 1),
        span(3, "execute_tool ask_cook", {names.OPERATION: "execute_tool", names.TOOL_NAME: "ask_cook"}, 1, seconds=9),
        span(4, "invoke_agent cook", {names.OPERATION: "invoke_agent", "gen_ai.workflow.nodes": ["model"]}, 3),
        span(5, "execute_task cook", {"traceloop.span.kind": "task", **named}, 3, seconds=5),
        chat(6, [HI], said("assistant", "Ho"), 5),
    ]
    one = traceloop("langchain", *spans)
    assert [(run.agent.name, run.parent is None) for run in one.runs] == [("clerk", True), ("cook", False)]


def test_mlflows_tools_have_the_parameters_of_the_call_itself() -> None:
    offered = [{"type": "function", "function": {"name": "look"}}]
    invoked = {"tools": [{"name": "look", "input_schema": SCHEMA}]}
    told_of = {
        "mlflow.spanType": json.dumps("CHAT_MODEL"),
        "mlflow.spanInputs": json.dumps({"messages": [{"role": "user", "content": "Hi"}]}),
        "mlflow.chat.tools": json.dumps(offered),
        "invocation_params": json.dumps(invoked),
    }
    one = session(span(1, "ChatAnthropic", told_of), scope="mlflow.tracing.provider")
    assert one.tools == [{"type": "function", "name": "look", "parameters": SCHEMA}]


def test_what_raised_in_langsmith_failed_whatever_its_status_says() -> None:
    told_of = {
        "langsmith.span.kind": "llm",
        "gen_ai.prompt": json.dumps({"messages": [{"role": "user", "content": "Hi"}]}),
    }
    raised = {"name": "exception", "attributes": attribute_list({"exception.message": "RateLimitError('later')"})}
    one = session({**span(1, "ChatOpenAI", told_of), "status": {"code": 1}, "events": [raised]}, scope="langsmith")
    call = only_call(one)
    assert call.error is not None
    assert (call.status, call.error.type, call.error.message) == (Status.ERROR, "RateLimitError", "later")


def test_a_clients_call_in_a_trace_of_its_own_is_known_by_its_counts() -> None:
    counts = {names.USAGE_INPUT_TOKENS: 90, names.USAGE_OUTPUT_TOKENS: 13}
    outer = [agent(1, "clerk", seconds=9), chat(2, [HI], said("assistant", "Ho"), 1, start=2, seconds=2, also=counts)]
    also = {names.OPERATION: "chat", names.REQUEST_MODEL: "gpt-5", names.RESPONSE_ID: "r1", **counts}
    inner = span(3, "anthropic.messages.create", also, start=2.1, trace=f"{2:032x}")
    (one,) = converted(request(*outer, scope="demo"), request(inner, scope="com.anthropic.sdk.python")).sessions
    (call,) = only_run(one).model_calls()
    assert (call.response_id, len(call.output)) == ("r1", 1)


def test_a_call_around_one_of_its_own_writers_that_cost_the_same_is_that_call() -> None:
    thought = {
        "role": "assistant",
        "parts": [{"type": "reasoning", "content": "Hm."}, {"type": "text", "content": "Ho"}],
    }
    flat = {"role": "assistant", "parts": [{"type": "text", "content": "Hm."}, {"type": "text", "content": "Ho"}]}
    counts = {names.USAGE_INPUT_TOKENS: 90, names.USAGE_OUTPUT_TOKENS: 9}
    inner = {**counts, names.USAGE_OUTPUT_TOKENS: 13, names.USAGE_REASONING_TOKENS: 4}
    one = session(
        chat(1, [HI], thought, None, seconds=3, also=counts), chat(2, [HI], flat, 1, also=inner), scope="demo"
    )
    assert len(list(only_run(one).model_calls())) == 1


def test_a_run_that_handed_over_came_to_what_the_other_answered() -> None:
    spans = [
        agent(1, "clerk", None, seconds=60),
        chat(2, [HI], asks(called("transfer_to_cook", {}, "t1")), 1, seconds=50),
        agent(3, "cook", 2, start=4, seconds=9),
        chat(4, [HI], said("assistant", "Ho"), 3, start=5),
    ]
    one = session(*spans, scope="demo")
    assert [one.messages[run.output[0]].parts[0]["content"] for run in one.runs] == ["Ho", "Ho"]


def test_dspys_answers_are_texts_and_its_tools_have_their_own_names() -> None:
    told_of = {
        "mlflow.spanType": json.dumps("CHAT_MODEL"),
        "mlflow.message.format": json.dumps("dspy"),
        "mlflow.spanInputs": json.dumps({"messages": [{"role": "user", "content": "Hi"}], "prompt": None}),
        "mlflow.spanOutputs": json.dumps(["Ho"]),
        "mlflow.llm.model": json.dumps("openai/small"),
    }
    used = {"mlflow.spanType": json.dumps("TOOL"), "mlflow.spanInputs": json.dumps({"city": "Rome"})}
    one = session(span(1, "LM.__call__", told_of), span(2, "Tool.look", used), scope="mlflow.tracing.provider")
    call = only_call(one)
    assert (call.model, one.messages[call.output[0]].parts) == ("small", [{"type": "text", "content": "Ho"}])
    assert only_tool(one).name == "look"
    seen = span(1, "look.__call__", {"openinference.span.kind": "TOOL", "input.value": '{"kwargs": {"city": "Rome"}}'})
    assert only_tool(session(seen, scope=OI + "dspy")).name == "look"


def test_litellms_streams_tell_calls_in_names_of_old_alone_and_go_on_in_the_next_trace() -> None:
    empty = {"role": "assistant", "parts": [{"type": "text", "content": ""}], "finish_reason": "tool_calls"}
    of_old = {"gen_ai.completion.0.function_call.name": "look", "gen_ai.completion.0.function_call.arguments": "{}"}
    first = chat(1, [HI], empty, None, also=of_old, trace=f"{1:032x}")
    said_then = [HI, asks(called("look", {}, "t1")), told("t1", "25")]
    second = chat(2, said_then, said("assistant", "Ho"), start=9, trace=f"{2:032x}")
    tool_call = only_tool(session(first, second, scope="litellm"))
    assert (tool_call.call_id, tool_call.arguments, tool_call.result) == ("t1", {}, "25")


def test_a_tool_that_haystacks_invoker_failed_at_is_a_failed_one() -> None:
    call = {"tool_name": "look", "arguments": {"city": "Rome"}, "id": "t1"}
    asked = {"messages": [{"role": "assistant", "content": [{"tool_call": call}]}]}
    told_of = {"openinference.span.kind": "CHAIN", "input.value": json.dumps(asked)}
    failed: dict[str, Any] = {"status": {"code": 2, "message": "no such city"}}
    spans = [span(1, "Agent.run", {"openinference.span.kind": "AGENT"}, seconds=9)]
    one = session(*spans, span(2, "ToolInvoker.run", told_of, 1, **failed), scope=OI + "haystack")
    found = only_tool(one)
    assert (found.name, found.arguments, found.status) == ("look", {"city": "Rome"}, Status.ERROR)


def test_adks_older_spans_of_calls_last_until_their_tools_have_run() -> None:
    counts = {names.USAGE_INPUT_TOKENS: 50, names.USAGE_OUTPUT_TOKENS: 12}
    bare = {"gen_ai.system": "gcp.vertex.agent", "gcp.vertex.agent.llm_request": "{}", **counts}
    told_of = {**bare, names.REQUEST_MODEL: "gemini-2.0-flash", names.RESPONSE_FINISH_REASONS: ["stop"]}
    used = {names.OPERATION: "execute_tool", names.TOOL_NAME: "look", "gcp.vertex.agent.tool_call_args": "{}"}
    spans = [
        span(1, "invocation", {}, seconds=60),
        span(2, "agent_run [clerk]", {}, 1, seconds=50),
        span(3, "call_llm", told_of, 2, seconds=5),
        span(4, "execute_tool look", used, 3),
        span(9, "call_llm", told_of, 2),
    ]
    one = session(*spans, scope="gcp.vertex.agent")
    assert [call.id for call in only_run(one).model_calls()] == [f"{number:016x}" for number in (3, 9)]
    assert [call.name for call in only_run(one).tool_calls()] == ["look"]


def test_dspys_modules_around_a_call_are_no_calls() -> None:
    module = {"mlflow.spanType": json.dumps("LLM"), "signature": json.dumps("question -> answer")}
    inner = {"mlflow.spanType": json.dumps("CHAT_MODEL"), "mlflow.spanOutputs": json.dumps(["Ho"])}
    spans = [span(1, "Predict.forward", {**module, "mlflow.spanOutputs": json.dumps({"answer": "H"})}, seconds=9)]
    one = session(*spans, span(2, "LM.__call__", inner, 1), scope="mlflow.tracing.provider")
    assert only_call(one).id.startswith(f"{2:016x}"[:8])


def test_javascripts_langchain_has_its_flat_spans_put_into_the_workflows_that_they_ran_in() -> None:
    """OpenLLMetry writes all of a run's spans beside each other; a workflow in another is a step, and no run."""
    workflow = {"traceloop.span.kind": "workflow", "gen_ai.operation.name": "workflow"}
    answer = [{"role": "assistant", "parts": [{"type": "text", "content": ""}], "finish_reason": "tool_call"}]
    call = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps([said("user", "Rome?")]),
        "gen_ai.output.messages": json.dumps(answer),
    }
    spans = [
        span(1, "workflow CompiledStateGraph", workflow, seconds=9),
        span(2, "workflow RunnableSequence", workflow, seconds=5),
        span(3, "chat gpt-5", call, seconds=1),
    ]
    run = only_run(session(*spans, scope="@traceloop/instrumentation-langchain"))
    (made,) = run.model_calls()
    assert made.finish_reasons == ["tool_call"]
