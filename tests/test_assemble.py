"""Sessions, runs, turns and calls out of repaired traces."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import cases
from otlp_lines import (
    GENAI,
    TRACE,
    agent,
    asks,
    called,
    chat,
    converted,
    model,
    only_run,
    ours,
    request,
    said,
    session,
    sessions,
    span,
    span_id,
    told,
    tool,
)
from spanreel import conventions as names
from spanreel.model import Agent, Fidelity, Status, ToolKind
from spanreel.records import ModelRecord, RunRecord, ToolRecord, TurnRecord
from spanreel.session import Run, Session
from spanreel.session_files import read_session, write_session
from spanreel_collector.conversion.convert import convert_files

WEATHER = [said("user", "Weather?")]
PARIS = called("get_weather", {"city": "Paris"}, "call_1")
ROME = called("get_weather", {"city": "Rome"}, "call_2")


def conversation(identity: str) -> dict[str, str]:
    return {names.CONVERSATION_ID: identity}


def turns(run: Run) -> list[tuple[int, str | None, list[str]]]:
    return [
        (turn.index, turn.model_call.id if turn.model_call else None, [call.id for call in turn.tool_calls])
        for turn in run.turns
    ]


def parts(one: Session, indexes: list[int]) -> list[list[dict[str, Any]]]:
    return [one.messages[index].parts for index in indexes]


# -- sessions --------------------------------------------------------------------------------------------------------


def test_runs_that_share_a_conversation_are_one_session_across_traces_and_files() -> None:
    first = request(
        agent(1, "demo", also=conversation("c")), chat(2, WEATHER, said("assistant", "Rain."), 1), scope=GENAI
    )
    second = request(agent(1, "demo", trace="b" * 32, start=50, also=conversation("c")), scope=GENAI)
    (one,) = converted(second, first).sessions
    assert (one.key.kind, one.key.value, one.id) == ("conversation", "c", "s-7d2ce16475179735")
    assert [run.trace_id for run in one.runs] == [TRACE, "b" * 32]
    assert [run.id for run in one.runs] == [span_id(1), f"{span_id(1)}.{'b' * 32}"]
    assert [run.path for run in one.runs] == ["root", "root"]


def test_without_a_conversation_a_trace_is_a_session() -> None:
    found = sessions(agent(1, "a"), agent(2, "b", trace="b" * 32), scope=GENAI)
    assert [(one.key.kind, one.key.value) for one in found] == [("trace", TRACE), ("trace", "b" * 32)]


def test_the_conversation_may_be_said_by_any_span_of_the_run() -> None:
    root = span(1, "POST /chat", conversation("c"), seconds=9)
    assert session(root, chat(2, WEATHER, None, 1), scope=GENAI).key.value == "c"
    assert session(agent(1, "a"), chat(2, WEATHER, None, 1, also=conversation("c")), scope=GENAI).key.value == "c"
    assert session(agent(1, "a"), chat(2, WEATHER, None, also=conversation("c")), scope=GENAI).key.value == "c"


def test_a_response_id_is_no_conversation() -> None:
    assert session(chat(1, WEATHER, None, also=conversation("resp_1")), scope=GENAI).key.kind == "trace"


def test_two_conversations_in_one_trace_are_two_sessions() -> None:
    found = sessions(
        span(1, "batch", {}, seconds=9),
        agent(2, "a", 1, also=conversation("c")),
        agent(3, "a", 1, also=conversation("d")),
        scope=GENAI,
    )
    assert [one.key.value for one in found] == ["c", "d"]


def test_the_session_knows_its_user_name_tags_metadata_source_and_redaction() -> None:
    facts = {
        **conversation("c"),
        names.USER_ID: "u",
        names.SESSION_NAME: "refund",
        names.SESSION_TAGS: ["a", "b"],
        names.SESSION_METADATA: '{"plan": "gold"}',
        names.REDACTION: '{"policy": "default/1", "key_ids": ["k1"]}',
    }
    record = RunRecord(run_id=span_id(1), path="root", agent=Agent("care", "a1", "2"))
    one = session(ours(1, record, also=facts))
    assert (one.user_id, one.name, one.tags, one.metadata) == ("u", "refund", ["a", "b"], {"plan": "gold"})
    assert (one.redaction.policy, one.redaction.key_ids) == ("default/1", ["k1"])
    assert one.source == {
        "service_name": "demo",
        "scopes": ["spanreel"],
        "dialects": ["spanreel"],
        "files": ["test"],
    }
    assert one.runs[0].agent.version == "2"


def test_a_recorded_replay_names_its_baseline() -> None:
    record = RunRecord(run_id=span_id(1), path="root")
    one = session(ours(1, record, also={names.ORIGIN: "replay", names.BASELINE: "s-1"}))
    assert (one.origin, one.baseline) == ("replay", "s-1")
    assert session(ours(1, record)).origin == "recorded"


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [
        (Status.ERROR, Status.OK, Status.OK),
        (Status.OK, Status.INTERRUPTED, Status.INTERRUPTED),
        (Status.OK, Status.CANCELLED, Status.CANCELLED),
    ],
)
def test_a_session_ends_as_its_last_request_did(first: Status, second: Status, status: Status) -> None:
    one = session(
        ours(1, RunRecord(run_id=span_id(1), path="root", status=first), also=conversation("c")),
        ours(2, RunRecord(run_id=span_id(2), path="root", status=second), also=conversation("c")),
    )
    assert one.status is status


# -- messages and tools ----------------------------------------------------------------------------------------------


def test_messages_and_tool_definitions_are_stored_once() -> None:
    definition = {names.TOOL_DEFINITIONS: '[{"name": "f", "parameters": {}}]'}
    history = [*WEATHER, asks(PARIS), told("call_1", "18 C")]
    one = session(
        agent(1, "demo", seconds=9),
        chat(2, WEATHER, asks(PARIS), 1, also=definition),
        chat(3, history, said("assistant", "18 C."), 1, also=definition),
        scope=GENAI,
    )
    first, second = only_run(one).model_calls()
    assert (first.input, first.output, second.input, second.output) == ([0], [1], [0, 1, 2], [3])
    assert (first.tools, second.tools, len(one.tools)) == ([0], [0], 1)


def test_instructions_become_the_first_system_message() -> None:
    record = model(WEATHER, said("assistant", "Rain."))
    record = replace(record, request=replace(record.request, instructions=({"type": "text", "content": "Be short."},)))
    one = session(ours(1, record))
    (call,) = only_run(one).model_calls()
    first = one.messages[call.input[0]]
    assert (first.role, first.parts) == ("system", [{"type": "text", "content": "Be short."}])
    assert first.provider_fields == {"place": "instructions"}


def test_a_run_without_content_of_its_own_shows_that_of_its_calls() -> None:
    talk = [said("system", "Be short."), said("user", "Hi"), said("assistant", "Ho"), *WEATHER]
    one = session(agent(1, "demo", seconds=9), chat(2, talk, said("assistant", "Rain."), 1), scope=GENAI)
    run = only_run(one)
    assert parts(one, run.input) == [WEATHER[0]["parts"]]
    assert parts(one, run.output) == [said("assistant", "Rain.")["parts"]]
    assert run.fidelity == {"input": Fidelity.RECONSTRUCTED, "output": Fidelity.RECONSTRUCTED}


# -- turns and tool calls --------------------------------------------------------------------------------------------


def test_tool_calls_stand_in_the_turn_of_the_model_call_that_asked_for_them() -> None:
    late = tool(9, "get_weather", {"city": "Rome"}, "20 C", 1, also={names.TOOL_CALL_ID: "call_2"})
    one = session(
        agent(1, "demo", seconds=99),
        chat(2, WEATHER, asks(PARIS, ROME), 1),
        tool(3, "get_weather", {"city": "Paris"}, "18 C", 1, also={names.TOOL_CALL_ID: "call_1"}),
        chat(5, WEATHER, said("assistant", "Wait."), 1),
        late,
        scope=GENAI,
    )
    run = only_run(one)
    assert turns(run) == [(0, span_id(2), [span_id(3), span_id(9)]), (1, span_id(5), [])]
    first, second = run.turns[0].tool_calls
    assert second.requested_by is not None
    assert (second.requested, second.requested_by.model_call, second.requested_by.position) == (
        {"city": "Rome"},
        span_id(2),
        1,
    )
    assert first.requested_by is not None
    assert first.requested_by.position == 0


def test_tool_calls_without_ids_join_by_name_and_arguments_then_by_order() -> None:
    one = session(
        agent(1, "demo", seconds=99),
        chat(2, WEATHER, asks(PARIS, ROME, called("get_weather", {"city": "Oslo"}, "call_3")), 1),
        tool(3, "get_weather", {"city": "Rome"}, "20 C", 1),
        tool(4, "get_weather", {"city": "Oslo", "unit": "C"}, "5 C", 1),
        tool(5, "get_weather", {"city": "Paris"}, "18 C", 1),
        scope=GENAI,
    )
    joined = {call.id: call.call_id for call in only_run(one).tool_calls()}
    assert joined == {span_id(3): "call_2", span_id(4): "call_3", span_id(5): "call_1"}


def test_a_request_is_not_joined_to_a_tool_call_that_had_started_before() -> None:
    run = only_run(
        session(
            agent(1, "demo", seconds=99),
            tool(2, "get_weather", {"city": "Paris"}, "18 C", 1),
            chat(3, WEATHER, asks(PARIS), 1),
            scope=GENAI,
        )
    )
    assert [call.id for call in run.loose_tool_calls] == [span_id(2)]
    assert [call.executed for call in run.turns[0].tool_calls] == [False]


def test_tool_calls_that_nobody_asked_for_stand_in_the_turn_before_them() -> None:
    spans = [chat(2, WEATHER, None, 1), tool(3, "f", {}, "a", 1), chat(4, WEATHER, None, 1), tool(5, "f", {}, "b", 1)]
    assert turns(only_run(session(agent(1, "demo", seconds=99), *spans, scope=GENAI))) == [
        (0, span_id(2), [span_id(3)]),
        (1, span_id(4), [span_id(5)]),
    ]


def test_a_tool_call_inside_a_model_call_stands_in_its_turn() -> None:
    merged = chat(2, WEATHER, asks(called("g", {}, "b")), 1, seconds=9)
    other = chat(3, WEATHER, None, 1)
    run = only_run(session(agent(1, "demo", seconds=99), merged, other, tool(5, "f", {}, "a", 2), scope=GENAI))
    assert turns(run) == [(0, span_id(2), [span_id(5), f"{span_id(2)}.0"]), (1, span_id(3), [])]


def test_a_run_without_model_calls_has_one_turn_for_its_tools() -> None:
    for report, results in (
        ("041-repeat-calls", [{"ticket": "A"}, {"ticket": "B"}, {"ticket": "C"}]),
        ("043-reordered-calls", [["F1"], ["H1"]]),
    ):
        (one,) = convert_files([str(cases(f"reports/{report}.jsonl"))]).sessions
        (turn,) = only_run(one).turns
        assert turn.model_call is None
        assert [call.result for call in turn.tool_calls] == results
        assert one.replay.eligible


def test_recorded_turns_and_positions_come_before_clocks() -> None:
    asked = model(WEATHER, asks(PARIS, ROME), run=1, turn=0)
    one = session(
        ours(1, RunRecord(run_id=span_id(1), path="root"), seconds=99),
        ours(2, TurnRecord(span_id(1), 0), 1),
        ours(3, asked, 2),
        ours(
            4,
            ToolRecord("get_weather", {"city": "Rome"}, "20 C", "call_2", position=1, run_id=span_id(1), turn_index=0),
            2,
        ),
        ours(
            5,
            ToolRecord("get_weather", {"city": "Paris"}, "18 C", "call_1", position=0, run_id=span_id(1), turn_index=0),
            2,
        ),
        ours(6, TurnRecord(span_id(1), 1), 1),
        ours(7, model(WEATHER, said("assistant", "Done.")), 6),
    )
    run = only_run(one)
    assert turns(run) == [(0, span_id(3), [span_id(5), span_id(4)]), (1, span_id(7), [])]
    assert run.order == "cause"


# -- tools that left no span -----------------------------------------------------------------------------------------


def undecorated(answer: dict[str, Any]) -> Session:
    return session(
        agent(1, "demo", seconds=99),
        chat(2, WEATHER, asks(PARIS, ROME), 1),
        tool(3, "get_weather", {"city": "Rome"}, "20 C", 1, also={names.TOOL_CALL_ID: "call_2"}),
        chat(4, [*WEATHER, asks(PARIS, ROME), answer, told("call_2", "20 C")], said("assistant", "Done."), 1),
        scope=GENAI,
    )


def test_the_result_of_a_tool_without_a_span_comes_from_the_next_request() -> None:
    one = undecorated(told("call_1", "18 C"))
    recovered, recorded = only_run(one).turns[0].tool_calls
    assert (recovered.id, recovered.call_id, recovered.executed) == (f"{span_id(2)}.0", "call_1", False)
    assert (recovered.arguments, recovered.result, recovered.status) == ({"city": "Paris"}, "18 C", Status.OK)
    assert recovered.fidelity == {"arguments": Fidelity.RECONSTRUCTED, "result": Fidelity.RECONSTRUCTED}
    assert recorded.executed
    (reason,) = one.replay.reasons
    assert (reason.place, reason.remedy) == (
        "/runs/0/turns/0/tool_calls/0",
        "decorate the tool with @spanreel.tool and the agent around it with @spanreel.run, and record again",
    )


def test_a_recovered_null_is_a_result() -> None:
    recovered = only_run(undecorated(told("call_1", None))).turns[0].tool_calls[0]
    assert (recovered.result, recovered.fidelity["result"]) == (None, Fidelity.RECONSTRUCTED)


@pytest.mark.parametrize("said_so", [{"provider_fields": {"is_error": True}}, {"status": "error"}])
def test_a_tool_without_a_span_failed_where_the_model_was_told_so(said_so: dict[str, Any]) -> None:
    answer = told("call_1", "no such city")
    answer["parts"][0].update(said_so)
    recovered = only_run(undecorated(answer)).turns[0].tool_calls[0]
    assert (recovered.status, recovered.result) == (Status.ERROR, "no such city")
    assert recovered.error is not None
    assert recovered.error.message == "no such city"


def test_a_request_that_was_never_answered_is_unfinished() -> None:
    recovered = only_run(undecorated(told("call_9", "?"))).turns[0].tool_calls[0]
    assert (recovered.status, recovered.fidelity["result"]) == (Status.UNFINISHED, Fidelity.ABSENT)


def test_an_unanswered_request_at_the_end_of_a_good_run_is_its_output_and_stops_no_replay() -> None:
    one = session(agent(1, "demo", seconds=9), chat(2, WEATHER, asks(called("final_result", {}, "c")), 1), scope=GENAI)
    assert one.replay.eligible


def test_a_tools_span_without_content_takes_it_from_the_messages() -> None:
    bare = {names.OPERATION: "execute_tool", names.TOOL_NAME: "get_weather", names.TOOL_CALL_ID: "call_1"}
    one = session(
        agent(1, "demo", seconds=99),
        chat(2, WEATHER, asks(PARIS), 1),
        span(3, "execute_tool get_weather", bare, 1),
        chat(4, [*WEATHER, asks(PARIS), told("call_1", "18 C")], None, 1),
        scope=GENAI,
    )
    (call,) = only_run(one).tool_calls()
    assert (call.executed, call.arguments, call.result) == (True, {"city": "Paris"}, "18 C")
    assert call.fidelity == {"arguments": Fidelity.RECONSTRUCTED, "result": Fidelity.RECONSTRUCTED}


def test_what_the_provider_ran_itself_is_a_tool_call_of_its_kind_and_no_obstacle() -> None:
    search = {"type": "server_tool_call", "id": "ws_1", "name": "web_search", "server_tool_call": {"query": "rain"}}
    found = {"type": "server_tool_call_response", "id": "ws_1", "server_tool_call_response": {"hits": 3}}
    answer = {
        "role": "assistant",
        "parts": [search, found, {**search, "id": "ws_2"}, {"type": "text", "content": "Rain."}],
    }
    one = session(ours(1, model(WEATHER, answer, call_id="m")))
    first, second = only_run(one).turns[0].tool_calls
    assert (first.id, first.call_id, first.name, first.kind) == (
        "m.provider.0",
        "ws_1",
        "web_search",
        ToolKind.PROVIDER,
    )
    assert (first.arguments, first.result, first.fidelity) == ({"query": "rain"}, {"hits": 3}, {})
    assert second.fidelity == {"result": Fidelity.ABSENT}
    assert one.replay.eligible


def test_what_the_recorder_had_to_drop_is_said() -> None:
    lost = {names.LOSSES: '{"queue_full": 2, "x": "y"}'}
    one = session(*(ours(number, model(WEATHER, None), also=lost) for number in (1, 2)))
    assert one.source["losses"] == {"queue_full": 4}


def test_bytes_and_numbers_that_json_has_not_stand_in_the_document_by_name() -> None:
    written = tool(2, "f", {}, "x", 1)
    value = {
        "kvlistValue": {
            "values": [
                {"key": "b", "value": {"bytesValue": "AAH/"}},
                {"key": "n", "value": {"doubleValue": "-Infinity"}},
            ]
        }
    }
    written["attributes"] = [pair for pair in written["attributes"] if pair["key"] != names.TOOL_CALL_RESULT]
    written["attributes"].append({"key": names.TOOL_CALL_RESULT, "value": value})
    (call,) = only_run(session(agent(1, "demo", seconds=9), written, scope=GENAI)).tool_calls()
    assert call.result == {"b": {"base64": "AAH/"}, "n": "-Infinity"}


# -- runs inside runs ------------------------------------------------------------------------------------------------


def test_an_agent_as_a_tool_is_a_run_inside_that_tool_call() -> None:
    one = session(
        agent(1, "demo", seconds=99),
        chat(2, WEATHER, asks(called("research", {}, "c")), 1),
        tool(3, "research", {}, "ok", 1, seconds=9, also={names.TOOL_CALL_ID: "c"}),
        agent(4, "researcher", 3),
        chat(5, WEATHER, said("assistant", "ok"), 4),
        agent(7, "researcher", 1),
        scope=GENAI,
    )
    outer, inner, other = one.runs
    assert (outer.path, inner.path, other.path) == ("root", "root/researcher#0", "root/researcher#1")
    assert inner.parent is not None
    assert (inner.parent.run, inner.parent.tool_call) == (outer.id, span_id(3))
    assert outer.turns[0].tool_calls[0].run == inner.id
    assert other.parent is not None
    assert other.parent.tool_call is None
    assert [call.id for call in outer.model_calls()] == [span_id(2)]
    assert one.roots() == [outer]


def test_recorded_paths_are_kept() -> None:
    one = session(
        ours(1, RunRecord(run_id=span_id(1), path="root"), seconds=9),
        ours(2, RunRecord(run_id=span_id(2), path="root/a_b#3", agent=Agent("a/b")), 1),
    )
    assert [run.path for run in one.runs] == ["root", "root/a_b#3"]


def test_a_model_call_inside_a_tool_without_an_agent_is_a_run_inside_that_tool_call() -> None:
    one = session(
        ours(1, RunRecord(run_id=span_id(1), path="root"), seconds=99),
        ours(2, model(WEATHER, asks(called("ask", {}, "c")), run=1, turn=0), 1),
        ours(3, ToolRecord("ask", {}, "ok", "c", run_id=span_id(1), turn_index=0), 1, seconds=9),
        ours(4, model(WEATHER, said("assistant", "ok")), 3),
    )
    outer, inner = one.runs
    assert (inner.id, inner.path, inner.implicit) == (span_id(3), "root/ask#0", True)
    assert outer.turns[0].tool_calls[0].run == inner.id
    assert turns(inner) == [(0, span_id(4), [])]


def test_a_handoff_leads_to_the_run_of_its_target() -> None:
    handoff = ToolRecord("transfer_to_billing", {}, None, "c", ToolKind.HANDOFF, target="billing", turn_index=0)
    billing = RunRecord(run_id=span_id(4), path="root/billing#0", agent=Agent("billing"))
    one = session(
        ours(1, RunRecord(run_id=span_id(1), path="root", agent=Agent("triage")), seconds=99),
        ours(2, model(WEATHER, asks(called("transfer_to_billing", {}, "c")), run=1, turn=0), 1),
        ours(3, handoff, 1),
        ours(4, billing, 1, seconds=9),
        ours(5, model(WEATHER, said("assistant", "Hello."), run=4, turn=0), 4),
    )
    outer, inner = one.runs
    (call,) = outer.tool_calls()
    assert inner.parent is not None
    assert (call.run, call.target, inner.parent.tool_call) == (inner.id, "billing", call.id)


def test_calls_without_an_agent_in_one_trace_are_one_implicit_run() -> None:
    root = span(1, "POST /chat", {}, seconds=99)
    spans = [span(2, "step", {}, 1), chat(3, WEATHER, asks(PARIS), 2), chat(4, WEATHER, said("assistant", "Ok."), 1)]
    run = only_run(session(root, *spans, scope=GENAI))
    assert (run.id, run.implicit, len(run.turns)) == (span_id(1), True, 2)


def test_a_lone_model_call_is_an_implicit_run_that_failed_if_it_did() -> None:
    run = only_run(session(chat(1, WEATHER, None, status={"code": 2, "message": "no"}), scope=GENAI))
    assert (run.id, run.status, run.error.message if run.error else None) == (f"{span_id(1)}-run", Status.ERROR, "no")


# -- loops cut into traces -------------------------------------------------------------------------------------------


def loop(number: int, messages: list[Any], answer: Any, **also: Any) -> dict[str, Any]:
    return chat(number, messages, answer, trace=f"{number:032x}", also=also)


def test_an_undecorated_loop_whose_calls_are_traces_is_one_run() -> None:
    again = [*WEATHER, asks(PARIS), told("call_1", "18 C")]
    unrelated = loop(3, [said("user", "Something else?")], said("assistant", "No."))
    first, second = sessions(
        loop(2, WEATHER, asks(PARIS)), unrelated, loop(4, again, said("assistant", "18 C.")), scope=GENAI
    )
    run = only_run(first)
    assert turns(run) == [(0, span_id(2), [f"{span_id(2)}.0"]), (1, span_id(4), [])]
    assert first.key.value == f"{2:032x}"
    assert parts(first, run.output) == [said("assistant", "18 C.")["parts"]]
    assert run.ended_at == "2026-11-18T11:06:44.500000000Z"
    assert parts(second, only_run(second).input) == [said("user", "Something else?")["parts"]]


def test_new_words_of_the_user_are_the_next_run_of_the_conversation() -> None:
    answer = said("assistant", "Rain.")
    one = session(
        loop(1, WEATHER, answer),
        loop(2, [*WEATHER, answer, said("user", "And now?")], said("assistant", "Sun.")),
        scope=GENAI,
    )
    assert len(one.runs) == 2
    assert parts(one, one.runs[1].input) == [said("user", "And now?")["parts"]]


def test_a_response_id_continues_a_loop_whose_history_the_provider_keeps() -> None:
    one = session(
        loop(1, WEATHER, asks(PARIS), **{names.RESPONSE_ID: "resp_1"}),
        loop(2, [told("call_1", "18 C")], said("assistant", "18 C."), **{names.REQUEST_PREVIOUS_RESPONSE_ID: "resp_1"}),
        scope=GENAI,
    )
    assert len(only_run(one).turns) == 2


def test_two_equal_conversations_side_by_side_are_not_mixed() -> None:
    again = [*WEATHER, asks(PARIS), told("call_1", "18 C")]
    begun = [loop(number, WEATHER, asks(PARIS)) for number in (1, 2)]
    ended = [loop(number, again, said("assistant", "18 C.")) for number in (3, 4)]
    found = sessions(*begun, *ended, scope=GENAI)
    assert [len(only_run(one).turns) for one in found] == [2, 2]


# -- replay ----------------------------------------------------------------------------------------------------------


def reasons(*spans: dict[str, Any]) -> list[str]:
    return [f"{reason.place}: {reason.reason}" for reason in session(*spans).replay.reasons]


def test_what_stands_in_the_way_of_a_replay_is_named_at_its_place() -> None:
    whole = model(WEATHER, said("assistant", "Ok."))
    lossy = replace(whole, fidelity={"input": Fidelity.TRUNCATED, "output": Fidelity.REDACTED})
    tool_record = ToolRecord("f", {}, None, fidelity={"result": Fidelity.ABSENT, "arguments": Fidelity.REDACTED})
    found = reasons(
        ours(1, RunRecord(run_id=span_id(1), path="root"), seconds=99), ours(2, lossy, 1), ours(3, tool_record, 1)
    )
    assert found == [
        "/runs/0/turns/0/model_call/input: input truncated: a live request cannot be known again",
        "/runs/0/turns/0/model_call/output: output of the answer redacted",
        "/runs/0/turns/0/tool_calls/0/result: tool 'f': result absent",
    ]
    assert reasons(ours(1, whole)) == []
    assert reasons(ours(1, RunRecord(run_id=span_id(1), path="root"))) == [
        "/runs: no call was recorded: there is nothing to answer with"
    ]


def test_an_unfinished_tool_has_nothing_to_answer_with_and_an_agent_as_a_tool_needs_nothing() -> None:
    run = ours(1, RunRecord(run_id=span_id(1), path="root"), seconds=99)
    call = ours(2, model(WEATHER, said("assistant", "Ok.")), 1)
    unfinished = ours(3, ToolRecord("f", {}, "x"), 1, endTimeUnixNano="0")
    agent_tool = ours(4, ToolRecord("g", {}, None, kind=ToolKind.AGENT, fidelity={"result": Fidelity.ABSENT}), 1)
    assert reasons(run, call, unfinished, agent_tool) == [
        "/runs/0/turns/0/tool_calls/0: tool 'f' never finished: there is no result to answer with"
    ]


def test_the_gravest_fidelity_of_each_field_stands_on_the_session() -> None:
    cut = {names.INPUT_MESSAGES: '[{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}, {"ro'}
    one = session(chat(1, None, said("assistant", "Ho"), also=cut), chat(2, None, said("assistant", "Ho")), scope=GENAI)
    assert one.fidelity == {"input": Fidelity.ABSENT, "output": Fidelity.RECONSTRUCTED}


# -- anything --------------------------------------------------------------------------------------------------------

NUMBERS = st.integers(1, 6)
TEXTS = st.sampled_from(
    ['{"a": 1}', "[1]", "[[1], 2]", '{"policy": 5, "key_ids": 5}', '{"argv": [5], "callable": {}}', '{"message": {}}',
     '{"input": "truncated"}', '"\\ud800"', "{", "root/a#0", "ok", "null"]
)  # fmt: skip
LISTS = st.lists(st.text(max_size=3) | st.integers(), max_size=3)
VALUES = st.none() | st.booleans() | st.integers(-9, 9) | st.floats() | st.text(max_size=4) | LISTS | TEXTS
MESSAGES = st.sampled_from(
    ['[{"role":"user","parts":[{"type":"text","content":"Hi"}]}]', '[{"role":"us', "[1,2]", "{}",
     '[{"role":"tool","parts":[null]}]', '[{"role":null,"name":5}]', '[{"role":"user","provider_fields":7,"name":7}]',
     '[{"role":"assistant","parts":[{"type":"tool_call","id":"c","name":"f","arguments":{}}]}]',
     '[{"role":"tool","parts":[{"type":"tool_call_response","id":"c","response":null}]}]']
)  # fmt: skip
KEYS = st.sampled_from(
    [value for name, value in vars(names).items() if name.isupper() and isinstance(value, str) and "." in value]
)
OPERATIONS = st.sampled_from(
    ["chat", "embeddings", "invoke_agent", "invoke_workflow", "execute_tool", "agent_step", "run_started", "other"]
)


ODDITIES: list[dict[str, Any]] = [{}, {"startTimeUnixNano": "0"}, {"endTimeUnixNano": "0"}, {"status": {"code": 2}}]


@st.composite
def written_spans(draw: st.DrawFn) -> dict[str, Any]:
    attributes = draw(st.dictionaries(KEYS, VALUES, max_size=6))
    attributes[names.OPERATION] = draw(OPERATIONS)
    for key in (names.INPUT_MESSAGES, names.OUTPUT_MESSAGES):
        if draw(st.booleans()):
            attributes[key] = draw(MESSAGES)
    for key in (names.RUN_ID, names.CALL_ID):
        if draw(st.booleans()):
            attributes[key] = span_id(draw(NUMBERS))
    for key in (names.TURN_INDEX, names.ATTEMPT, names.TOOL_POSITION):
        if draw(st.booleans()):
            attributes[key] = draw(st.integers(0, 3))
    return span(
        draw(NUMBERS),
        draw(st.text(max_size=5)),
        attributes,
        draw(st.none() | NUMBERS),
        trace=draw(st.sampled_from([TRACE, "b" * 32])),
        start=draw(st.integers(0, 9)),
        **draw(st.sampled_from(ODDITIES)),
    )


@pytest.mark.slow
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(written_spans(), max_size=12), st.sampled_from(["spanreel", GENAI]))
def test_no_tree_of_spans_makes_the_converter_fail(spans: list[dict[str, Any]], scope: str) -> None:
    documents = [request(one, scope=scope) for one in spans]
    conversion = converted(*documents)
    for one in conversion.sessions:
        text = write_session(one)
        assert write_session(read_session(text)) == text
        assert len({run.id for run in one.runs}) == len(one.runs)
        assert one.roots()
    for fault in conversion.faults:
        assert fault.place.startswith("test:"), fault
    again = converted(*documents)
    assert [write_session(one) for one in again.sessions] == [write_session(one) for one in conversion.sessions]


def test_no_call_is_lost_or_counted_twice() -> None:
    spans = [agent(1, "a", seconds=99), *(chat(n, WEATHER, None, 1) for n in range(2, 30)), tool(30, "f", {}, "x", 29)]
    run = only_run(session(*spans, scope=GENAI))
    assert len(list(run.model_calls())) == 28
    assert [call.id for call in run.tool_calls()] == [span_id(30)]
    assert isinstance(model(WEATHER, None), ModelRecord)
