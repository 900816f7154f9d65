"""Dialects of frameworks' own spans: golden sessions, the shared cases' truth, each trap, the reports on them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import cases
from dialect_cases import wrong_fields
from golden_sessions import converted_and_agreed
from otlp_lines import attribute_list, chat, converted, log, only_run, request, said, session, span, span_id
from spanreel import conventions as names
from spanreel.model import ErrorCategory, Fidelity, Status, ToolKind
from spanreel.session import Run, Session
from spanreel_collector.conversion.convert import convert_files

ADK, PYDANTIC_AI, STRANDS, AUTOGEN = "gcp.vertex.agent", "pydantic-ai", "strands.telemetry.tracer", "autogen-core"


def one_of(*written: dict[str, Any], scope: str) -> Session:
    return session(*written, scope=scope)


def tool_span(**attributes: Any) -> dict[str, Any]:
    named = {key.replace("__", "."): value for key, value in attributes.items()}
    return span(5, "execute_tool look", {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", **named})


def only_tool(run: Run) -> Any:
    (call,) = run.tool_calls()
    return call


def of_report(name: str, lines: slice, tmp_path: Path) -> Session:
    """The session of some lines of a report, spans of which may be left out."""
    file = tmp_path / "report.jsonl"
    file.write_text("".join(cases(f"reports/{name}").read_text().splitlines(keepends=True)[lines]))
    (found,) = convert_files([str(file)]).sessions
    return found


# -- whole sessions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        *("pydantic_ai_old", "pydantic_ai", "strands", "strands_latest", "autogen", "agent_framework", "logfire"),
        *("google_adk_old", "google_adk"),
    ],
)
def test_a_recorded_agent_comes_out_as_agreed(name: str) -> None:
    """`tests/golden/*_dump.py` make the dumps; `SPANREEL_GOLDEN=write` writes the sessions anew."""
    found, agreed = converted_and_agreed(f"{name}.otlp.jsonl", name)
    assert found == agreed


@pytest.mark.parametrize(
    "pattern", ["pydantic-ai-*", "logfire-*", "strands-*", "autogen-*", "agent-framework-*", "semantic-kernel-*"]
)
def test_real_dumps_come_out_as_their_truth_says(pattern: str) -> None:
    assert wrong_fields(pattern) == {}


def test_real_dumps_of_adk_come_out_as_their_truth_says() -> None:
    # Whether a result was heard is judged by results that are text, and these are objects.
    assert wrong_fields("google-adk-*") == {"google-adk-native-v1.14": "history", "google-adk-semconv": "history"}


# -- pydantic-ai -----------------------------------------------------------------------------------------------------


def test_032_tools_under_old_and_new_names_are_the_same_call(tmp_path: Path) -> None:
    told = []
    for number in (0, 1):
        run = only_run(of_report("032-pydanticai-tool-keys.jsonl", slice(number, number + 1), tmp_path))
        call = only_tool(run)
        told.append((run.agent.name, call.name, call.call_id, call.arguments, call.result))
    assert told == [("agent", "get_weather", "call_1", {"city": "Oslo"}, "18 C")] * 2


def test_031_results_are_read_from_either_name_and_null_is_one(tmp_path: Path) -> None:
    results = []
    for number in range(4):
        one = of_report("031-response-vs-result.jsonl", slice(number, number + 1), tmp_path)
        answers = [part for message in one.messages for part in message.parts if part["type"] == "tool_call_response"]
        results.append([answer["response"] for answer in answers])
    assert results == [[{"tempC": 18}], [{"tempC": 18}], [{"tempC": 18}], [None]]


@pytest.mark.parametrize("marked", [{"pydantic_ai__tool__deferral__name": "ApprovalRequired"}, {}])
def test_a_tool_call_that_waits_for_approval_is_interrupted_and_no_failure(marked: dict[str, Any]) -> None:
    written = tool_span(**marked)
    if not marked:  # before format 5 it looked like one
        written["status"] = {"code": 2}
        exception = {"key": "exception.type", "value": {"stringValue": "pydantic_ai.exceptions.ApprovalRequired"}}
        written["events"] = [{"name": "exception", "attributes": [exception]}]
    call = only_tool(only_run(one_of(written, scope=PYDANTIC_AI)))
    assert (call.status, call.error.category) == (Status.INTERRUPTED, ErrorCategory.APPROVAL_REQUIRED)


def test_content_that_was_not_captured_is_absent_not_whole() -> None:
    bare = {"role": "user", "parts": [{"type": "text"}]}
    events = json.dumps(
        [
            {"event.name": "gen_ai.user.message", "role": "user", "content": {"kind": "text"}},
            {"event.name": "gen_ai.choice", "message": {"role": "assistant", "content": [{"kind": "text"}]}},
        ]
    )
    for written in (chat(1, [bare], None), chat(1, None, None, also={"events": events})):
        (call,) = only_run(one_of(written, scope=PYDANTIC_AI)).model_calls()
        assert call.fidelity["input"] is Fidelity.ABSENT


def test_what_the_user_said_beside_a_tools_answer_is_told_apart() -> None:
    answer = {"type": "tool_call_response", "id": "c", "result": "18 C"}
    mixed = {"role": "user", "parts": [answer, {"type": "text", "content": "and?"}]}
    found = one_of(chat(1, [mixed], said("assistant", "ok")), scope=PYDANTIC_AI)
    assert [(message.role, message.parts[0]["type"]) for message in found.messages[:2]] == [
        ("tool", "tool_call_response"),
        ("user", "text"),
    ]


# -- Google ADK ------------------------------------------------------------------------------------------------------


def test_040_a_result_that_was_not_serialised_is_taken_from_what_the_model_was_told(tmp_path: Path) -> None:
    run = only_run(of_report("040-adk-not-serializable.jsonl", slice(None), tmp_path))
    call = only_tool(run)
    assert (run.agent.name, call.result) == ("finder", {"query": "docs", "total": 2, "items": ["a", "b"]})
    assert call.fidelity["result"] is Fidelity.RECONSTRUCTED


def test_040_a_result_that_nothing_else_tells_is_lossy(tmp_path: Path) -> None:
    document = json.loads(cases("reports/040-adk-not-serializable.jsonl").read_text())
    spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    spans[:] = [one for one in spans if one["spanId"] != "b510000000000005"]
    file = tmp_path / "cut.jsonl"
    file.write_text(json.dumps(document))
    (one,) = convert_files([str(file)]).sessions
    assert only_tool(only_run(one)).fidelity["result"] is Fidelity.TRUNCATED
    assert not one.replay.eligible


def test_ids_that_adk_made_up_join_no_later_round_to_an_earlier_one() -> None:
    def asked(city: str) -> dict[str, Any]:
        part = {"type": "tool_call", "id": "look_0", "name": "look", "arguments": {"city": city}}
        return {"role": "assistant", "parts": [part]}

    def gave(text: str) -> dict[str, Any]:
        part = {"type": "tool_call_response", "id": "look_0", "response": {"result": text}}
        return {"role": "user", "parts": [part]}

    first, rounds = [said("user", "both")], [asked("A"), gave("1"), asked("B"), gave("2")]
    written = [
        chat(1, first, rounds[0]),
        chat(2, [*first, *rounds[:2]], rounds[2]),
        chat(3, [*first, *rounds], said("assistant", "1 and 2")),
    ]
    calls = only_run(one_of(*written, scope=ADK)).tool_calls()
    assert [(call.arguments, call.result) for call in calls] == [({"city": "A"}, "1"), ({"city": "B"}, "2")]


def test_the_span_that_merges_parallel_tools_is_no_call() -> None:
    merged = span(6, "execute_tool (merged tools)", {"gen_ai.operation.name": "execute_tool"})
    found = only_run(one_of(tool_span(gen_ai__tool__call__id="<not specified>"), merged, scope=ADK))
    assert [(call.name, call.call_id) for call in found.tool_calls()] == [("look", None)]


def test_a_transfer_to_another_agent_is_a_handoff() -> None:
    written = span(
        5,
        "execute_tool transfer_to_agent",
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "transfer_to_agent",
            "gcp.vertex.agent.tool_call_args": '{"agent_name": "clerk"}',
            "gcp.vertex.agent.tool_response": '{"result": null}',
        },
    )
    call = only_tool(only_run(one_of(written, scope=ADK)))
    assert (call.kind, call.target, call.result) == (ToolKind.HANDOFF, "clerk", None)


# -- Strands ---------------------------------------------------------------------------------------------------------


def test_a_tool_of_strands_that_failed_without_its_span_failing_is_a_failure() -> None:
    result = '[{"text": "Error: lent out"}]'
    call = only_tool(only_run(one_of(tool_span(tool__status="error", tool__result=result), scope=STRANDS)))
    assert (call.status, call.result, call.error.message) == (Status.ERROR, "Error: lent out", "Error: lent out")


def test_counts_of_strands_that_leave_cached_tokens_out_get_them_back() -> None:
    usage = {"input_tokens": 40, "output_tokens": 12, "total_tokens": 60, "cache_read.input_tokens": 8}
    written = chat(1, [said("user", "Hi")], None, also={f"gen_ai.usage.{key}": count for key, count in usage.items()})
    (call,) = only_run(one_of(written, scope=STRANDS)).model_calls()
    assert call.usage is not None
    assert (call.usage.input_tokens, call.usage.cache_read_tokens) == (48, 8)


def test_a_run_of_strands_that_stopped_for_an_interrupt_is_interrupted() -> None:
    output = json.dumps([{**said("assistant", "May I?"), "finish_reason": "interrupt"}])
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.output.messages": output}
    assert only_run(one_of(span(1, "invoke_agent a", attributes), scope=STRANDS)).status is Status.INTERRUPTED


# -- repairs that frameworks need ------------------------------------------------------------------------------------


def test_a_call_whose_parent_never_arrived_belongs_to_the_run_it_was_made_during() -> None:
    run = span(1, "invoke_agent a", {"gen_ai.operation.name": "invoke_agent"}, seconds=60)
    orphan = chat(2, [said("user", "Hi")], said("assistant", "Ho"), 9)
    found = only_run(one_of(run, orphan, scope="any"))
    assert [call.id for call in found.model_calls()] == [span_id(2)]


def test_between_runs_side_by_side_nothing_tells_whose_an_orphan_is() -> None:
    runs = [
        span(number, f"invoke_agent {number}", {"gen_ai.operation.name": "invoke_agent"}, seconds=60)
        for number in (1, 2)
    ]
    orphan = chat(3, [said("user", "Hi")], said("assistant", "Ho"), 9)
    found = one_of(*runs, orphan, scope="any")
    assert [list(run.model_calls()) for run in found.runs if not run.implicit] == [[], []]


def test_the_same_answer_in_a_span_inside_a_models_is_one_call() -> None:
    asked = [said("user", "Hi")]
    outer = chat(1, asked, said("assistant", "Ho"), seconds=60)
    found = only_run(one_of(outer, chat(2, asked, said("assistant", "Ho"), 1), scope="any"))
    assert len(list(found.model_calls())) == 1


def test_an_elided_message_of_a_log_is_absent() -> None:
    written = chat(1, None, None)
    found = converted(request(written, scope=ADK), log("gen_ai.user.message", {}, 1, {"content": "<elided>"})).sessions
    (call,) = only_run(found[0]).model_calls()
    assert call.fidelity["input"] is Fidelity.ABSENT
    assert all(not message.parts for message in found[0].messages)


def test_content_of_bedrocks_kinds_under_the_conventions_names_is_what_it_is() -> None:
    thought = {"type": "reasoningContent", "content": {"reasoningText": {"text": "Soup?", "signature": "c2ln"}}}
    image = {"type": "image", "content": {"format": "png", "source": {"bytes": "<replaced>"}}}
    attributes = {
        names.OPERATION: "chat",
        names.PROVIDER: "strands-agents",
        names.INPUT_MESSAGES: json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Soup!"}, image]}]),
        names.OUTPUT_MESSAGES: json.dumps([{"role": "assistant", "parts": [thought]}]),
    }
    one = session(span(1, "chat", attributes), scope="strands.telemetry.tracer")
    (call,) = only_run(one).model_calls()
    ((_, seen), (thinking,)) = (
        [part for ref in refs for part in one.messages[ref].parts] for refs in (call.input, call.output)
    )
    assert (seen["type"], seen["modality"], seen["mime_type"]) == ("blob", "image", "image/png")
    assert (thinking["type"], thinking["content"]) == ("reasoning", "Soup?")


def test_a_tool_of_old_adks_that_raised_has_nothing_but_its_name_and_failed() -> None:
    raised = {
        "name": "exception",
        "attributes": attribute_list({"exception.type": "LookupError", "exception.message": "no soup"}),
    }
    one = session(
        span(1, "agent_run [waiter]", {}, seconds=9),
        span(2, "call_llm", {"gcp.vertex.agent.llm_request": "{}", "gen_ai.request.model": "gemini"}, 1, seconds=5),
        span(3, "execute_tool order", {}, 2, status={"code": 2}, events=[raised]),
        scope=ADK,
    )
    (call,) = only_run(one).tool_calls()
    assert (call.name, call.status, call.error and call.error.message) == ("order", Status.ERROR, "no soup")


def test_old_logfires_calls_of_anthropic_have_the_cache_in_their_counts_and_the_arguments_bare() -> None:
    """The answer leaves the ids of its tool calls out; the next request, which repeats it, tells them."""
    opening = [{"role": "user", "content": "Soup!"}]
    asked = {"model": "claude", "max_tokens": 9, "system": "Serve.", "messages": opening}
    block = {"type": "tool_use", "id": "toolu_1", "name": "order", "input": {"dish": "soup"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "served"}
    words = {"type": "text", "text": "At once."}
    later = [{"role": "assistant", "content": [words, block]}, {"role": "user", "content": [result]}]
    call = {"function": {"arguments": json.dumps({"input": {"dish": "soup"}}), "name": "order"}}
    usage = {"input_tokens": 40, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 5, "output_tokens": 12}
    said_first = {"message": {"role": "assistant", "content": "At once.", "tool_calls": [call]}, "usage": usage}
    again = {**asked, "messages": [*opening, *later]}
    one = session(
        span(1, "Message", {"request_data": json.dumps(asked), "response_data": json.dumps(said_first)}),
        span(2, "Message", {"request_data": json.dumps(again), "response_data": "{}"}),
        scope="logfire.anthropic",
    )
    run = only_run(one)
    (order,) = run.tool_calls()
    assert (order.call_id, order.arguments, order.result) == ("toolu_1", {"dish": "soup"}, "served")
    first, _ = run.model_calls()
    assert first.usage is not None
    assert first.usage.input_tokens == 52


def test_old_logfires_calls_of_the_responses_api_are_told_as_events() -> None:
    events = [
        {"event.name": "gen_ai.user.message", "role": "user", "content": "Soup!"},
        {"event.name": "gen_ai.assistant.message", "role": "assistant", "content": "Enjoy."},
    ]
    attributes = {"gen_ai.request.model": "gpt-5", "gen_ai.usage.input_tokens": 60, "events": json.dumps(events)}
    one = session(span(1, "Responses API", attributes), scope="logfire.openai")
    (call,) = only_run(one).model_calls()
    assert [one.messages[ref].role for ref in (*call.input, *call.output)] == ["user", "assistant"]
    assert one.usage.input_tokens == 60
