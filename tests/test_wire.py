"""Records as attributes and back."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreel import conventions as names
from spanreel import json_text, wire
from spanreel.fidelity import content_of
from spanreel.model import Agent, Answer, Error, ErrorCategory, Fidelity, Operation, Request, Status, ToolKind, Usage
from spanreel.records import ModelRecord, Record, RunRecord, ToolRecord, TurnRecord

MODEL = ModelRecord(
    request=Request(
        operation=Operation.CHAT,
        model="gpt-5",
        messages=({"role": "user", "parts": [{"type": "text", "content": "Weather in Köln?"}]},),
        instructions=({"type": "text", "content": "Be short."},),
        tools=({"type": "function", "name": "weather", "description": "It.", "parameters": {"type": "object"}},),
        settings={
            "temperature": 0.5,
            "max_tokens": 100,
            "stop_sequences": ["END"],
            "seed": 7,
            "reasoning_effort": "low",
            "tool_choice": "auto",
            "response_format": {"type": "json_schema", "json_schema": {"name": "answer"}},
            "parallel_tool_calls": False,
        },
        stream=True,
        provider_fields={"store": None},
    ),
    answer=Answer(
        response_id="resp_1",
        model="gpt-5-2026",
        messages=({"role": "assistant", "parts": [{"type": "text", "content": "Rain."}], "finish_reason": "stop"},),
        usage=Usage(10, 2, 4, 1, 1),
        streamed=True,
        complete=False,
        chunks=([12, 5], [13, "x"]),
        provider_fields={"service_tier": "default"},
    ),
    provider="openai",
    protocol="openai_chat",
    call_id="c1",
    attempt=1,
    run_id="00f067aa0ba902b7",
    turn_index=0,
    agent=Agent("weatherman", "a1", "2"),
    host="api.openai.com",
    port=443,
    headers={"x-request-id": "r1"},
    time_to_first_chunk=0.25,
    error=Error(ErrorCategory.TIMEOUT, "httpx.ReadTimeout", "too slow"),
    status=Status.ERROR,
    fidelity={"output": Fidelity.TRUNCATED},
)
TOOL = ToolRecord(
    name="weather",
    arguments={"city": "Köln"},
    result=None,
    call_id="call_1",
    kind=ToolKind.MCP,
    description="It.",
    side_effect=False,
    target="forecaster",
    position=0,
    run_id="00f067aa0ba902b7",
    turn_index=0,
)
RUN = RunRecord(
    run_id="00f067aa0ba902b7",
    path="root",
    agent=Agent("weatherman"),
    input=({"role": "user", "parts": []},),
    output=({"role": "assistant", "parts": []},),
    arguments={"input": "hi"},
    argv=("python", "app.py"),
    callable="app:main",
    result={"final": "Rain."},
)


def test_a_model_call_is_written_in_the_names_of_the_conventions() -> None:
    assert wire.write(MODEL) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-5",
        "gen_ai.system_instructions": '[{"type":"text","content":"Be short."}]',
        "gen_ai.input.messages": '[{"role":"user","parts":[{"type":"text","content":"Weather in Köln?"}]}]',
        "gen_ai.tool.definitions": '[{"type":"function","name":"weather","description":"It.","parameters":'
        '{"type":"object"}}]',
        "gen_ai.request.stream": True,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 100,
        "gen_ai.request.stop_sequences": ["END"],
        "gen_ai.request.seed": 7,
        "gen_ai.request.reasoning.level": "low",
        "gen_ai.output.type": "json",
        "gen_ai.provider.name": "openai",
        "gen_ai.agent.name": "weatherman",
        "gen_ai.agent.id": "a1",
        "gen_ai.agent.version": "2",
        "gen_ai.response.id": "resp_1",
        "gen_ai.response.model": "gpt-5-2026",
        "gen_ai.output.messages": '[{"role":"assistant","parts":[{"type":"text","content":"Rain."}],'
        '"finish_reason":"stop"}]',
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.response.time_to_first_chunk": 0.25,
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 2,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "gen_ai.usage.cache_write.input_tokens": 1,
        "gen_ai.usage.reasoning.output_tokens": 1,
        "server.address": "api.openai.com",
        "server.port": 443,
        "error.type": "httpx.ReadTimeout",
        "openai.api.type": "chat_completions",
        "spanreel.error.category": "timeout",
        "spanreel.error.message": "too slow",
        "spanreel.protocol": "openai_chat",
        "spanreel.call.id": "c1",
        "spanreel.attempt": 1,
        "spanreel.run.id": "00f067aa0ba902b7",
        "spanreel.turn.index": 0,
        "spanreel.run.status": "error",
        "spanreel.request.settings": '{"tool_choice":"auto","response_format":{"type":"json_schema","json_schema":'
        '{"name":"answer"}},"parallel_tool_calls":false}',
        "spanreel.request.provider_fields": '{"store":null}',
        "spanreel.response.status": 200,
        "spanreel.response.headers": '{"x-request-id":"r1"}',
        "spanreel.response.provider_fields": '{"service_tier":"default"}',
        "spanreel.stream.complete": False,
        "spanreel.stream.chunks": '[[12,5],[13,"x"]]',
        "spanreel.fidelity": '{"gen_ai.output.messages":"truncated"}',
    }


PROVIDER_ERROR = Error(ErrorCategory.MODEL, "rate_limit_exceeded", "slow down")


@pytest.mark.parametrize(
    "record",
    [
        MODEL,
        TOOL,
        RUN,
        TurnRecord("00f067aa0ba902b7", 3),
        TurnRecord(),
        ModelRecord(Request(Operation.EMBEDDINGS, None)),
        ModelRecord(Request(Operation.CHAT, "m"), Answer()),
        ModelRecord(Request(Operation.CHAT, "m", stream=True), Answer(streamed=False)),
        ModelRecord(Request(Operation.CHAT, "m"), Answer(status=429, error=PROVIDER_ERROR)),
        ModelRecord(Request(Operation.CHAT, "m"), Answer(status=429, error=PROVIDER_ERROR), error=PROVIDER_ERROR),
        dataclasses.replace(MODEL, answer=Answer(status=500, error=PROVIDER_ERROR)),
        ModelRecord(Request(Operation.CHAT, "m"), error=Error(ErrorCategory.MODEL, "httpx.ConnectError")),
        ModelRecord(Request(Operation.CHAT, None), Answer(), raw_request="{", raw_response="<html>"),
        dataclasses.replace(TOOL, result={"deep": [None, 1.5, "x", True]}),
        dataclasses.replace(TOOL, fidelity={"result": Fidelity.ABSENT}),
        dataclasses.replace(TOOL, arguments=None, fidelity={"arguments": Fidelity.ABSENT}),
        dataclasses.replace(TOOL, status=Status.ERROR, error=Error(ErrorCategory.TOOL, "ValueError", "no")),
        dataclasses.replace(TOOL, status=Status.BLOCKED, fidelity={"result": Fidelity.ABSENT}),
        RunRecord(),
        RunRecord(started_only=True),
        dataclasses.replace(RUN, result=None, fidelity={"result": Fidelity.ABSENT}),
        dataclasses.replace(RUN, started_only=True, output=(), result=None),
        dataclasses.replace(RUN, result=None, status=Status.CANCELLED),
        RunRecord(arguments={}, argv=()),
    ],
    ids=lambda record: type(record).__name__,
)
def test_what_is_written_is_read_again(record: Record) -> None:
    assert wire.read(wire.write(record)) == record


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
OBJECT = st.dictionaries(st.text(max_size=5), JSON, max_size=3)
OBJECTS = st.lists(OBJECT, max_size=2).map(tuple)
ERROR = st.builds(Error, st.sampled_from(ErrorCategory), st.text(), st.none() | st.text())
SETTINGS = st.dictionaries(
    st.sampled_from(
        ["temperature", "top_k", "seed", "stop_sequences", "tool_choice", "reasoning_effort", "dimensions"]
    ),
    JSON,
    max_size=4,
)
RECORDS = st.one_of(
    st.builds(
        ModelRecord,
        request=st.builds(
            Request,
            operation=st.sampled_from(Operation),
            model=st.none() | st.text(),
            messages=OBJECTS,
            instructions=OBJECTS,
            tools=OBJECTS,
            settings=SETTINGS,
            stream=st.booleans(),
            provider_fields=OBJECT,
        ),
        answer=st.none()
        | st.builds(
            Answer,
            response_id=st.none() | st.text(),
            messages=OBJECTS.map(lambda messages: tuple({"role": "assistant", **one} for one in messages)),
            usage=st.none() | st.builds(Usage, input_tokens=st.integers(0, 9)),
            status=st.integers(200, 599),
            error=st.none() | ERROR,
            streamed=st.booleans(),
            complete=st.booleans(),
            chunks=st.lists(st.lists(JSON, max_size=3), max_size=3).map(tuple),
            provider_fields=OBJECT,
        ),
        attempt=st.integers(0, 3),
        error=st.none() | ERROR,
        headers=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2),
    ),
    st.builds(ToolRecord, name=st.text(), arguments=JSON, result=JSON, position=st.none() | st.integers(0, 5)),
    st.builds(RunRecord, input=OBJECTS, output=OBJECTS, arguments=st.none() | OBJECT, result=JSON),
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(RECORDS)
def test_any_record_is_read_as_it_was_written(record: Record) -> None:
    assert wire.read(wire.write(record)) == record


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("\ud800 lone", "\ufffd lone"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (10**400, 10**400),
        (b"\xff\x00", "_wA="),
        ({1: (2, 3)}, {"1": [2, 3]}),
        ({"a": "\udfff", "b": [b"x", {2.5}, float("inf"), object]}, None),
        (object(), "<builtins.object>"),
    ],
)
def test_odd_values_are_written_as_json(value: Any, read: Any) -> None:
    text = json_text.encode(value)
    text.encode()
    if read is not None:
        assert json_text.decode(text) == read
    else:
        assert json_text.decode(text) == {"a": "\ufffd", "b": ["eA==", [2.5], "Infinity", "<builtins.type>"]}


def test_a_value_that_holds_itself_is_written_as_its_type() -> None:
    value: list[Any] = []
    value.append(value)
    assert json_text.decode(json_text.encode(value)) == "<builtins.list>"


def test_json_that_is_nested_too_deep_is_not_json() -> None:
    with pytest.raises(ValueError, match="too deep"):
        json_text.decode("[" * 100_000 + "]" * 100_000)


def test_metadata_leaves_names_ids_numbers_and_reasons() -> None:
    record = dataclasses.replace(MODEL, answer=dataclasses.replace(MODEL.answer, error=PROVIDER_ERROR))  # type: ignore[type-var]
    attributes = wire.write(record, content=False)
    assert {name: attributes.get(name) for name in (names.TOOL_DEFINITIONS, names.REQUEST_SETTINGS)} == {
        names.TOOL_DEFINITIONS: '[{"type":"function","name":"weather"}]',
        names.REQUEST_SETTINGS: '{"tool_choice":"auto","parallel_tool_calls":false}',
    }
    assert attributes[names.RESPONSE_ERROR] == '{"category":"model","type":"rate_limit_exceeded"}'
    everything = json_text.encode(attributes)
    for said in (
        "Köln",
        "Be short",
        "It.",
        "object",
        "END",
        "Rain",
        "too slow",
        "slow down",
        "json_schema",
        "r1",
        "store",
    ):
        assert said not in everything
    read = wire.read(attributes)
    assert isinstance(read, ModelRecord)
    assert read.answer is not None
    assert (read.request.messages, read.fidelity["input"], read.fidelity["output"]) == (
        (),
        Fidelity.ABSENT,
        Fidelity.ABSENT,
    )
    assert (read.answer.finish_reasons, read.answer.usage) == (["stop"], Usage(10, 2, 4, 1, 1))
    assert read.request.settings == {
        "temperature": 0.5,
        "max_tokens": 100,
        "seed": 7,
        "reasoning_effort": "low",
        "tool_choice": "auto",
        "parallel_tool_calls": False,
    }
    assert read.time_to_first_chunk == 0.25


def test_metadata_of_runs_and_tools_holds_nothing_said() -> None:
    run, tool = wire.read(wire.write(RUN, content=False)), wire.read(wire.write(TOOL, content=False))
    assert run == RunRecord(
        run_id=RUN.run_id,
        path="root",
        agent=RUN.agent,
        fidelity=dict.fromkeys(("input", "output", "arguments", "entrypoint", "result"), Fidelity.ABSENT),
    )
    assert tool == dataclasses.replace(
        TOOL,
        arguments=None,
        description=None,
        fidelity={
            "arguments": Fidelity.ABSENT,
            "result": Fidelity.ABSENT,
            names.TOOL_DESCRIPTION: Fidelity.ABSENT,
        },
    )


def test_a_missing_result_is_absent_and_a_null_is_a_value() -> None:
    attributes = wire.write(TOOL)
    assert attributes[names.TOOL_CALL_RESULT] == "null"
    del attributes[names.TOOL_CALL_RESULT]
    assert wire.read(attributes) == dataclasses.replace(TOOL, fidelity={"result": Fidelity.ABSENT})


def test_json_that_a_backend_has_cut_is_marked_truncated() -> None:
    attributes = {
        **wire.write(MODEL),
        names.INPUT_MESSAGES: '[{"role":"us',
        names.REQUEST_PROVIDER_FIELDS: "[1]",
        names.FIDELITY: '{"gen_ai.output.messages":"nonsense"}',
    }
    read = wire.read(attributes)
    assert isinstance(read, ModelRecord)
    assert read.fidelity == {"input": Fidelity.TRUNCATED, "request_fields": Fidelity.TRUNCATED}


def test_values_that_were_decoded_on_the_way_are_read_too() -> None:
    attributes = {**wire.write(TOOL), names.TOOL_CALL_ARGUMENTS: {"city": "Köln"}}
    assert wire.read(attributes) == TOOL


@pytest.mark.parametrize("attributes", [{}, {"gen_ai.operation.name": "create_agent"}, {"http.method": "GET"}])
def test_what_we_do_not_write_is_not_read(attributes: dict[str, Any]) -> None:
    assert wire.read(attributes) is None


def test_unknown_choices_are_read_as_the_default() -> None:
    attributes = {**wire.write(TOOL), names.TOOL_KIND: "psychic", names.ERROR_TYPE: "x", names.ERROR_CATEGORY: "?"}
    read = wire.read(attributes)
    assert isinstance(read, ToolRecord)
    assert (read.kind, read.error) == (ToolKind.FUNCTION, Error(ErrorCategory.OTHER, "x"))


def test_the_graver_mark_stays() -> None:
    marked = wire.mark({}, ["a", "b"], Fidelity.TRUNCATED)
    marked = wire.mark(marked, ["a"], Fidelity.REDACTED)
    marked = wire.mark(marked, ["b"], Fidelity.ABSENT)
    assert marked == {names.FIDELITY: '{"a":"truncated","b":"absent"}'}


@pytest.mark.parametrize(
    ("operation", "fields"),
    [
        ("chat", (names.SYSTEM_INSTRUCTIONS, names.INPUT_MESSAGES, names.TOOL_DEFINITIONS, names.OUTPUT_MESSAGES)),
        ("invoke_agent", (names.INPUT_MESSAGES, names.RUN_ARGUMENTS, names.OUTPUT_MESSAGES, names.RUN_RESULT)),
        ("execute_tool", (names.TOOL_CALL_ARGUMENTS, names.TOOL_CALL_RESULT)),
        ("agent_step", ()),
    ],
)
def test_each_operation_has_its_content(operation: str, fields: tuple[str, ...]) -> None:
    assert content_of(operation) == fields


def test_metadata_of_what_cannot_be_read_is_nothing() -> None:
    attributes = {
        names.TOOL_DEFINITIONS: "{}",
        names.REQUEST_SETTINGS: "[]",
        names.RESPONSE_ERROR: "cut {",
        names.FIDELITY: "cut {",
    }
    assert json_text.decode(str(wire.without_content(attributes)[names.FIDELITY])) == {
        names.TOOL_DEFINITIONS: "absent",
        names.REQUEST_SETTINGS: "absent",
        names.RESPONSE_ERROR: "absent",
    }
