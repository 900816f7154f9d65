"""Dialects: our own spans, and the GenAI conventions, each as it is met."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conftest import cases
from dialect_cases import wrong_fields
from otlp_lines import (
    GENAI,
    TRACE,
    agent,
    asks,
    attribute_list,
    called,
    chat,
    converted,
    log,
    model,
    only_run,
    ours,
    request,
    said,
    session,
    sessions,
    span,
    told,
    tool,
)
from spanreel import conventions as names
from spanreel.model import Fidelity, Status, ToolKind
from spanreel.records import ModelRecord, RunRecord, ToolRecord
from spanreel.session import ModelCall, Session
from spanreel_collector import dialects
from spanreel_collector.conversion.convert import convert_files
from spanreel_collector.dialects import genai
from spanreel_collector.otlp import read_request
from spanreel_collector.span import RawSpan

PARIS = called("get_weather", {"city": "Paris"}, "call_1")


def raw(written: dict[str, Any], scope: str = GENAI) -> RawSpan:
    (read,) = read_request(request(written, scope=scope), "x").spans
    return read


def read_model(**also: Any) -> ModelRecord:
    record = genai.read(raw(chat(1, None, None, also=also)))
    assert isinstance(record, ModelRecord)
    return record


def only_call(one: Session) -> ModelCall:
    (call,) = only_run(one).model_calls()
    return call


def test_our_spans_are_ours_and_others_are_the_conventions() -> None:
    written = chat(1, [said("user", "Hi")], said("assistant", "Ho"))
    assert [dialect.NAME for dialect in dialects.find(raw(written, scope="spanreel"))] == ["spanreel"]
    assert [dialect.NAME for dialect in dialects.find(raw(written))] == ["genai"]
    assert dialects.find(raw(span(1, "GET /", {"http.request.method": "GET"}))) == ()


def test_what_our_own_span_says_arrives_whole() -> None:
    record = model([said("user", "Hi")], said("assistant", "Ho"), response_id="r1", call_id="c1")
    call = only_call(session(ours(1, record)))
    assert (call.id, call.provider, call.protocol, call.response_id) == ("c1", "openai", "openai_chat", "r1")
    assert (call.http_status, len(call.attempts), call.fidelity) == (200, 1, {})


@pytest.mark.parametrize("operation", ["chat", "generate_content", "text_completion"])
def test_model_operations_are_model_calls(operation: str) -> None:
    record = read_model(**{names.OPERATION: operation})
    assert record.request.operation == "chat"


def test_an_operation_is_known_by_the_spans_name_where_its_attribute_was_lost() -> None:
    record = genai.read(raw(span(1, "execute_tool search", {names.TOOL_NAME: "search"})))
    assert isinstance(record, ToolRecord)
    assert not genai.speaks(raw(span(1, "chat room", {"room": 1})))


@pytest.mark.parametrize("operation", ["create_agent", "agent_step", "plan", "unknown", "chain"])
def test_other_operations_only_group(operation: str) -> None:
    assert genai.read(raw(span(1, operation, {names.OPERATION: operation}))) is None


def test_messages_may_be_json_text_or_nested_values() -> None:
    messages = [said("system", "Be short."), said("user", "Weather?"), asks(PARIS), told("call_1", {"c": 18})]
    text = read_model(**{names.INPUT_MESSAGES: json.dumps(messages)})
    nested = read_model(**{names.INPUT_MESSAGES: messages})
    assert text.request.messages == nested.request.messages == tuple(messages)


def test_settings_usage_and_response_facts_are_read() -> None:
    record = read_model(
        **{
            names.PROVIDER: "openai",
            names.REQUEST_TEMPERATURE: 0.5,
            names.REQUEST_MAX_TOKENS: 100,
            names.REQUEST_STOP_SEQUENCES: ["END"],
            names.REQUEST_STREAM: True,
            names.RESPONSE_ID: "r1",
            names.RESPONSE_MODEL: "gpt-5-2026",
            names.RESPONSE_FINISH_REASONS: ["stop"],
            names.RESPONSE_TIME_TO_FIRST_CHUNK: 0.25,
            names.USAGE_INPUT_TOKENS: 60,
            names.USAGE_OUTPUT_TOKENS: "12",
            names.USAGE_CACHE_READ_TOKENS: 8.0,
            names.USAGE_REASONING_TOKENS: 4,
            names.SERVER_ADDRESS: "api.openai.com",
            names.SERVER_PORT: 443,
            "openai.response.service_tier": "default",
        }
    )
    assert record.request.settings == {"temperature": 0.5, "max_tokens": 100, "stop_sequences": ["END"]}
    assert record.request.stream
    assert record.answer is not None
    assert record.answer.finish_reasons == ["stop"]
    assert record.answer.provider_fields == {"service_tier": "default"}
    usage = record.answer.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.reasoning_tokens) == (60, 12, 8, 4)
    assert (record.host, record.port, record.time_to_first_chunk) == ("api.openai.com", 443, 0.25)


def test_names_of_older_versions_are_understood() -> None:
    record = read_model(
        **{"gen_ai.system": "openai", "gen_ai.usage.prompt_tokens": 5, "gen_ai.usage.completion_tokens": 1}
    )
    assert record.provider == "openai"
    assert record.answer is not None
    assert record.answer.usage is not None
    assert (record.answer.usage.input_tokens, record.answer.usage.output_tokens) == (5, 1)


def test_input_tokens_include_the_cache_whatever_the_writer_meant() -> None:
    conversion = convert_files([str(cases("reports/035-cache-tokens.jsonl"))])
    usages = [call.usage for call in only_run(conversion.sessions[0]).model_calls() if call.usage is not None]
    counts = [(usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens) for usage in usages]
    assert counts == [*[(130213, 128955, 1253)] * 3, (10, 3, None)]


@pytest.mark.parametrize(
    ("part", "response"),
    [
        ({"response": {"c": 18}}, {"c": 18}),
        ({"result": {"c": 18}}, {"c": 18}),
        ({"response": None, "result": {"c": 18}}, {"c": 18}),
        ({"response": None}, None),
        ({"response": False, "result": 1}, False),
    ],
)
def test_a_tool_response_stands_under_response_or_result(part: dict[str, Any], response: Any) -> None:
    message = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_1", **part}]}
    (read,) = read_model(**{names.INPUT_MESSAGES: json.dumps([message])}).request.messages
    assert read["parts"] == [{"type": "tool_call_response", "id": "call_1", "response": response}]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"role": "model", "parts": []}, {"role": "assistant", "parts": [], "provider_fields": {"role": "model"}}),
        ({"role": "user", "content": "Hi"}, said("user", "Hi")),
        ({"role": "user", "parts": [{"content": "Hi"}], "name": None}, said("user", "Hi")),
        ({"role": "user", "parts": [{"x": 1}, 5]}, {"role": "user", "parts": [{"x": 1, "type": "unknown"}]}),
        (asks(called("f", '{"a": 1}', "c")), asks(called("f", {"a": 1}, "c"))),
    ],
)
def test_messages_of_other_shapes_become_the_conventions(written: Any, read: Any) -> None:
    assert read_model(**{names.INPUT_MESSAGES: json.dumps([written])}).request.messages == (read,)


@pytest.mark.parametrize(
    "definition",
    [
        {"type": "function", "name": "f", "parameters": {"type": "object"}},
        {"name": "f", "parameters": {"type": "object"}, "description": None},
        {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}},
    ],
)
def test_tool_definitions_have_one_form_whatever_the_nesting(definition: Any) -> None:
    (read,) = read_model(**{names.TOOL_DEFINITIONS: json.dumps([definition])}).request.tools
    assert read == {"type": "function", "name": "f", "parameters": {"type": "object"}}


# -- fidelity --------------------------------------------------------------------------------------------------------


def test_what_is_not_there_is_absent() -> None:
    assert read_model().fidelity == {"input": Fidelity.ABSENT, "output": Fidelity.ABSENT}


def test_messages_that_were_cut_give_what_is_whole_and_their_raw_text() -> None:
    text = json.dumps([said("user", "Hi"), asks(PARIS), said("user", "And now?")])
    record = read_model(**{names.INPUT_MESSAGES: text[: text.index("And now") + 4]})
    assert [message["parts"] for message in record.request.messages] == [
        [{"type": "text", "content": "Hi"}],
        [PARIS],
        [],
    ]
    assert record.fidelity["input"] is Fidelity.TRUNCATED
    assert record.raw_request == text[: text.index("And now") + 4]


def test_arguments_that_the_cut_went_through_are_not_taken_for_whole() -> None:
    text = json.dumps([asks(called("f", {"a": 1, "b": "long"}, "c"))])
    record = read_model(**{names.OUTPUT_MESSAGES: text[: text.index("long") + 2]})
    assert record.answer is None or not any(message["parts"] for message in record.answer.messages)


@pytest.mark.parametrize("text", ["ResponseText(x)", "{}", "[", "[{'role': 'user'}]", "5"])
def test_what_is_no_messages_is_kept_raw(text: str) -> None:
    record = read_model(**{names.INPUT_MESSAGES: text})
    assert record.request.messages == ()
    assert record.raw_request == text


@pytest.mark.parametrize(
    ("result", "read", "state"),
    [
        ("18 C, cloudy", "18 C, cloudy", None),
        ('{"c": 18}', {"c": 18}, None),
        ('"quoted"', "quoted", None),
        ("[not json", "[not json", None),
        ('{"c": 1', '{"c": 1', Fidelity.TRUNCATED),
        ("", "", None),
    ],
)
def test_a_result_is_json_or_text(result: str, read: Any, state: Fidelity | None) -> None:
    record = genai.read(raw(tool(1, "f", {}, result)))
    assert isinstance(record, ToolRecord)
    assert (record.result, record.fidelity.get("result")) == (read, state)


# -- runs, tools, errors ---------------------------------------------------------------------------------------------


def test_a_tool_error_has_no_result_and_is_not_lossy() -> None:
    failed = {names.OPERATION: "execute_tool", names.TOOL_NAME: "f", names.ERROR_TYPE: "ValueError"}
    record = genai.read(raw(span(1, "execute_tool f", failed, status={"code": 2, "message": "bad"})))
    assert isinstance(record, ToolRecord)
    assert record.error is not None
    assert (record.error.category, record.error.type, record.error.message) == ("tool", "ValueError", "bad")
    assert (record.status, record.fidelity) == (Status.ERROR, {"arguments": Fidelity.ABSENT})


@pytest.mark.parametrize(
    ("kind", "category", "status"),
    [
        ("asyncio.CancelledError", "cancelled", Status.CANCELLED),
        ("httpx.ReadTimeout", "timeout", Status.ERROR),
        ("openai.RateLimitError", "model", Status.ERROR),
    ],
)
def test_error_types_have_categories(kind: str, category: str, status: Status) -> None:
    record = read_model(**{names.ERROR_TYPE: kind})
    assert record.error is not None
    assert (record.error.category, record.status) == (category, status)


def test_an_exception_event_tells_the_error_where_attributes_do_not() -> None:
    told_by = {"exception.type": "KeyError", "exception.message": "'x'"}
    event = {"name": "exception", "attributes": attribute_list(told_by)}
    record = genai.read(raw(chat(1, None, None, status={"code": 2}, events=[event])))
    assert isinstance(record, ModelRecord)
    assert record.error is not None
    assert (record.error.type, record.error.message) == ("KeyError", "'x'")


def test_a_retrieval_is_a_tool_call_of_its_own_kind() -> None:
    attributes = {
        names.OPERATION: "retrieval",
        "gen_ai.data_source.id": "docs",
        "gen_ai.retrieval.query.text": "weather",
        "gen_ai.retrieval.documents": '[{"id": 1}]',
    }
    record = genai.read(raw(span(1, "retrieval docs", attributes)))
    assert isinstance(record, ToolRecord)
    assert (record.name, record.kind) == ("docs", ToolKind.RETRIEVER)
    assert (record.arguments, record.result) == ("weather", [{"id": 1}])


def test_a_workflow_is_a_run_without_an_agents_name() -> None:
    record = genai.read(raw(span(1, "invoke_workflow w", {names.OPERATION: "invoke_workflow", names.AGENT_NAME: "w"})))
    assert isinstance(record, RunRecord)
    assert record.agent.name is None


# -- content beside the span -----------------------------------------------------------------------------------------

DETAILS = "gen_ai.client.inference.operation.details"


def test_content_in_log_records_of_today_is_joined_by_trace_and_span() -> None:
    messages, answer = [said("user", "Hi")], said("assistant", "Ho")
    content = {names.INPUT_MESSAGES: messages, names.OUTPUT_MESSAGES: [answer]}
    written = request(chat(1, None, None), scope=GENAI)
    conversion = converted(written, log(DETAILS, content, inside=1), log("other", {}, inside=99))
    (one,) = conversion.sessions
    call = only_call(one)
    assert [one.messages[index].parts for index in (*call.input, *call.output)] == [
        messages[0]["parts"],
        answer["parts"],
    ]
    assert call.fidelity == {}
    assert conversion.skipped == {"logs": 1}


def test_content_in_span_events_of_today_is_merged() -> None:
    events = [
        {
            "name": DETAILS,
            "attributes": [{"key": names.INPUT_MESSAGES, "value": {"stringValue": json.dumps([said("user", "Hi")])}}],
        },
        {
            "name": DETAILS,
            "attributes": [
                {"key": names.OUTPUT_MESSAGES, "value": {"stringValue": json.dumps([said("assistant", "Ho")])}}
            ],
        },
    ]
    record = genai.read(raw(chat(1, None, None, events=events)))
    assert isinstance(record, ModelRecord)
    assert record.fidelity == {}


def test_content_in_log_records_of_old_is_read_in_order_of_time() -> None:
    function = {"name": "f", "arguments": '{"a": 1}'}
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "18 C."}}
    conversion = converted(
        request(chat(1, None, None), scope=GENAI),
        log("gen_ai.choice", {}, 1, choice, time=9),
        log("gen_ai.tool.message", {}, 1, {"id": "c", "content": "18 C"}, time=4),
        log(
            "gen_ai.assistant.message",
            {},
            1,
            {"tool_calls": [{"id": "c", "type": "function", "function": function}]},
            time=3,
        ),
        log("gen_ai.user.message", {}, 1, {"content": "Weather?"}, time=2),
        log("gen_ai.system.message", {}, 1, {"content": "Be short."}, time=1),
    )
    (one,) = conversion.sessions
    call = only_call(one)
    assert [(m.role, m.parts) for m in (one.messages[index] for index in call.input)] == [
        ("system", [{"type": "text", "content": "Be short."}]),
        ("user", [{"type": "text", "content": "Weather?"}]),
        ("assistant", [called("f", {"a": 1}, "c")]),
        ("tool", [{"type": "tool_call_response", "id": "c", "response": "18 C"}]),
    ]
    assert one.messages[call.output[0]].finish_reason == "stop"


# -- what strangers write --------------------------------------------------------------------------------------------


def test_a_span_that_its_dialect_fails_on_is_reported_and_costs_only_itself() -> None:
    broken = span(
        1, "chat", {names.OPERATION: "chat", names.RESPONSE_HEADERS: "{}", names.FIDELITY: '{"a": ["no state"]}'}
    )
    good = ours(2, model([said("user", "Hi")], said("assistant", "Ho")))
    conversion = converted(request(broken, good))
    assert sum(1 for one in conversion.sessions for run in one.runs for _ in run.model_calls()) >= 1
    for fault in conversion.faults:
        assert fault.place.startswith("test:1, span 0")


def test_json_in_our_attributes_that_was_cut_is_marked() -> None:
    record = ours(1, model([said("user", "Hi there")], said("assistant", "Ho")))
    for pair in record["attributes"]:
        if pair["key"] == names.INPUT_MESSAGES:
            pair["value"]["stringValue"] = pair["value"]["stringValue"][:-10]
    one = session(record)
    assert only_call(one).fidelity["input"] is Fidelity.TRUNCATED
    assert not one.replay.eligible


@pytest.mark.parametrize("report", ["031-response-vs-result"])
def test_tool_results_under_either_name_reach_the_session(report: str) -> None:
    conversion = convert_files([str(cases(f"reports/{report}.jsonl"))])
    results = [call.result for one in conversion.sessions for run in one.runs for call in run.tool_calls()]
    assert results == [{"tempC": 18}, {"tempC": 18}, {"tempC": 18}, None]
    last = only_run(conversion.sessions[-1]).loose_tool_calls[0]
    assert last.fidelity["result"] is Fidelity.RECONSTRUCTED


def test_nested_values_and_json_text_give_the_same_session() -> None:
    one, other = convert_files([str(cases("reports/025-anyvalue-nesting.jsonl"))]).sessions
    assert one.messages == other.messages
    assert [call.finish_reasons for call in only_run(one).model_calls()] == [["tool_call"]]


# What these dumps do not hold: the tokens of a call that the SDK went on from, tools that left no trace at all.
LOST = {
    "genai-google-genai-nocontent": "usage",
    "genai-smolagents": "tool_calls, arguments",
}


def test_real_dumps_of_the_conventions_come_out_as_their_truth_says() -> None:
    assert wrong_fields("genai-*") == LOST


def test_spans_of_unknown_dialects_make_no_session_and_do_not_fail() -> None:
    conversion = converted(request(span(1, "llm.call", {"vendor.kind": "LLM"}), scope="other"))
    assert (conversion.sessions, conversion.faults) == ((), ())
    assert conversion.skipped == {"spans of no known dialect": 1}


def test_an_agent_around_calls_of_the_conventions_is_their_run() -> None:
    one = session(
        agent(1, "demo", seconds=9),
        chat(2, [said("user", "Weather?")], asks(PARIS), 1),
        tool(3, "get_weather", {"city": "Paris"}, "18 C", 1, also={names.TOOL_CALL_ID: "call_1"}),
        chat(4, [said("user", "Weather?"), asks(PARIS), told("call_1", "18 C")], said("assistant", "18 C."), 1),
        scope=GENAI,
    )
    run = only_run(one)
    assert (one.key.kind, one.key.value, one.origin) == ("trace", TRACE, "imported")
    assert [(turn.index, [call.name for call in turn.tool_calls]) for turn in run.turns] == [
        (0, ["get_weather"]),
        (1, []),
    ]
    assert one.replay.eligible


@pytest.mark.parametrize(("kept", "read"), [("0.2", 0.2), ("1e-1", 0.1), ("100", 100), ("high", "high"), ("", "")])
def test_settings_of_a_store_that_keeps_texts_alone_are_numbers(kept: str, read: Any) -> None:
    attributes = {names.OPERATION: "chat", names.REQUEST_TEMPERATURE: kept, names.REQUEST_SEED: "7"}
    (call,) = only_run(session(span(1, "chat gpt-5", attributes), scope=GENAI)).model_calls()
    assert call.settings == {"temperature": read, "seed": 7}


def test_an_id_that_was_redacted_is_none_and_joins_no_conversations() -> None:
    """As Logfire scrubs attributes whose name has "session" in it."""
    scrubbed = {names.OPERATION: "chat", "session.id": "[Scrubbed due to 'session']", "user.id": "[REDACTED]"}
    calls = [span(number, "chat gpt-5", scrubbed, trace=f"{number}" * 32) for number in (1, 2)]
    found = sessions(*calls, scope=GENAI)
    assert [(one.key.kind, one.user_id) for one in found] == [("trace", None), ("trace", None)]
