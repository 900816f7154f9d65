"""Claude Code: spans and events, together or either alone, with more or less content kept back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dialect_cases import wrong_fields
from golden_sessions import converted_and_agreed
from otlp_lines import (
    BEGAN,
    SECOND,
    TRACE,
    Span,
    attribute_list,
    called,
    converted,
    only_run,
    request,
    said,
    span,
    span_id,
    told,
)
from spanreel.model import Fidelity, Status, ToolKind
from spanreel.session import ModelCall, Run, Session

SCOPE = "com.anthropic.claude_code.tracing"
EVENTS = "com.anthropic.claude_code.events"
LIST = called("Bash", {"command": "ls"}, "toolu_1")


def cc(number: int, kind: str, attributes: dict[str, Any], parent: int | None = None, **rest: Any) -> Span:
    return span(number, f"claude_code.{kind}", {"span.type": kind, "session.id": "s-1", **attributes}, parent, **rest)


def event(number: int, name: str, trace: str | None = TRACE, **attributes: Any) -> dict[str, Any]:
    """An event: its number is its place in the order, and the second it was written in."""
    shared = {"event.name": name, "event.sequence": number, "session.id": "s-1", "prompt.id": "p-1"}
    return {
        "timeUnixNano": str(BEGAN + number * SECOND),
        **({"traceId": trace, "spanId": span_id(1)} if trace else {}),
        "body": {"stringValue": f"claude_code.{name}"},
        "attributes": attribute_list({**shared, **attributes}),
    }


def logs(*records: dict[str, Any]) -> dict[str, Any]:
    return {"resourceLogs": [{"resource": {}, "scopeLogs": [{"scope": {"name": EVENTS}, "logRecords": list(records)}]}]}


def one_of(*requests: dict[str, Any]) -> Session:
    conversion = converted(*requests)
    assert conversion.faults == ()
    assert conversion.skipped == {}
    (one,) = conversion.sessions
    return one


def session_of(*spans: Span, events: tuple[dict[str, Any], ...] = ()) -> Session:
    return one_of(request(*spans, scope=SCOPE), *([logs(*events)] if events else []))


def alone(*events: dict[str, Any]) -> Run:
    return only_run(
        one_of(
            logs(*({key: value for key, value in one.items() if key not in ("traceId", "spanId")} for one in events))
        )
    )


def messages(one: Session, indexes: list[int]) -> list[dict[str, Any]]:
    return [{"role": one.messages[index].role, "parts": one.messages[index].parts} for index in indexes]


def calls(one: Session) -> list[ModelCall]:
    return list(only_run(one).model_calls())


@pytest.mark.parametrize("name", ["claude_code", "claude_code_logs"])
def test_an_agent_with_tools_and_a_sub_agent_comes_out_as_agreed(name: str) -> None:
    """`tests/golden/claude_code_dump.py` makes the dumps, of the detailed beta and of events alone."""
    found, agreed = converted_and_agreed(f"{name}.otlp.jsonl", name)
    assert found == agreed


def test_real_dumps_of_claude_code_come_out_as_their_truth_says() -> None:
    assert wrong_fields("claude-code-*") == {}


def test_input_tokens_have_the_cache_put_in_and_answers_their_cost() -> None:
    counts: dict[str, Any] = {
        "model": "m",
        "input_tokens": 40,
        "output_tokens": 12,
        "cache_read_tokens": 7,
        "cache_creation_tokens": 5,
    }
    one = session_of(
        cc(1, "interaction", {}),
        cc(2, "llm_request", counts, 1),
        events=(event(3, "api_request", cost_usd=0.5, **counts),),
    )
    (call,) = calls(one)
    assert call.usage is not None
    assert (call.usage.input_tokens, call.usage.cache_read_tokens, call.usage.cache_write_tokens) == (52, 7, 5)
    assert call.provider_fields == {"cost_usd": 0.5}
    assert call.provider == "anthropic"


def test_events_belong_to_calls_by_the_ids_of_requests_whatever_their_order() -> None:
    one = session_of(
        cc(1, "interaction", {"user_prompt": "Hi"}),
        cc(2, "llm_request", {"model": "m", "request_id": "r1", "stop_reason": "end_turn"}, 1),
        cc(3, "llm_request", {"model": "m", "request_id": "r2", "stop_reason": "end_turn"}, 1),
        events=(
            event(4, "api_request", model="m", request_id="r2"),
            event(5, "assistant_response", model="m", request_id="r2", response="second"),
            event(6, "api_request", model="m", request_id="r1"),
            event(7, "assistant_response", model="m", request_id="r1", response="first"),
        ),
    )
    assert [messages(one, call.output) for call in calls(one)] == [
        [said("assistant", "first")],
        [said("assistant", "second")],
    ]
    assert [call.response_id for call in calls(one)] == ["r1", "r2"]


def test_bodies_are_the_request_and_the_answer_as_they_were_sent() -> None:
    sent = {
        "model": "m",
        "max_tokens": 5,
        "system": [{"type": "text", "text": "Serve."}],
        "messages": [{"role": "user", "content": "Hi"}],
        "tools": [{"name": "Bash", "input_schema": {"type": "object"}}],
    }
    came: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m-1",
        "content": [{"type": "text", "text": "Ho"}],
    }
    came |= {"stop_reason": "end_turn", "usage": {"input_tokens": 3, "output_tokens": 1}}
    one = session_of(
        cc(1, "interaction", {}),
        cc(2, "llm_request", {"model": "m"}, 1),
        events=(
            event(3, "api_request_body", model="m", body=json.dumps(sent)),
            event(4, "api_request", model="m"),
            event(5, "api_response_body", model="m", body=json.dumps(came)),
        ),
    )
    (call,) = calls(one)
    assert messages(one, call.input) == [said("system", "Serve."), said("user", "Hi")]
    assert messages(one, call.output) == [said("assistant", "Ho")]
    assert (call.response_id, call.response_model, call.settings, call.fidelity) == (
        "msg_1",
        "m-1",
        {"max_tokens": 5},
        {},
    )
    assert one.tools[0]["name"] == "Bash"


def test_a_body_that_was_cut_gives_what_is_whole() -> None:
    text = json.dumps(
        {
            "model": "m",
            "max_tokens": 5,
            "messages": [{"role": "user", "content": "Hi"}, {"role": "user", "content": "x"}],
        }
    )
    cut = text[:-8] + "\n\n[TRUNCATED - Content exceeds 60KB limit]"
    one = session_of(
        cc(1, "interaction", {}),
        cc(2, "llm_request", {"model": "m"}, 1),
        events=(event(3, "api_request_body", model="m", body=cut), event(4, "api_request", model="m")),
    )
    (call,) = calls(one)
    assert (call.fidelity["input"], call.raw_request) == (Fidelity.TRUNCATED, cut)
    assert messages(one, call.input)[0] == said("user", "Hi")


def test_what_was_added_to_the_context_makes_the_history() -> None:
    result = "[TOOL RESULT: toolu_1]\none\n\n---\n\ntwo"
    one = session_of(
        cc(1, "interaction", {"new_context": "[USER PROMPT]\nList."}),
        cc(2, "llm_request", {"model": "m", "new_context": "[USER]\nList.", "stop_reason": "tool_use"}, 1),
        cc(
            3,
            "tool",
            {"tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": '[TOOL INPUT: Bash]\n{"command":"ls"}'},
            1,
        ),
        cc(
            4,
            "llm_request",
            {"model": "m", "new_context": f"{result}\n\n---\n\n[USER]\nGo on.", "response.model_output": "Two."},
            1,
        ),
    )
    first, last = calls(one)
    assert messages(one, only_run(one).input) == [said("user", "List.")]
    assert messages(one, last.input) == [
        said("user", "List."),
        {"role": "assistant", "parts": [LIST]},
        told("toolu_1", "one\n\n---\n\ntwo"),
        said("user", "Go on."),
    ]
    assert messages(one, last.output) == [said("assistant", "Two.")]
    assert first.fidelity["input"] is last.fidelity["input"] is Fidelity.RECONSTRUCTED
    (tool,) = only_run(one).tool_calls()
    assert (tool.result, tool.fidelity["result"]) == ("one\n\n---\n\ntwo", Fidelity.RECONSTRUCTED)


def test_reminders_in_a_request_are_told_apart_and_nobody_knows_where_they_stood() -> None:
    context = {"new_context": "[USER]\nHi", "system_reminders": "Be kind.", "system_reminders_count": 1}
    (call,) = calls(session_of(cc(1, "interaction", {}), cc(2, "llm_request", {"model": "m", **context}, 1)))
    assert call.fidelity["input"] is Fidelity.TRUNCATED
    assert call.request_fields == {"system_reminders": "Be kind."}


def test_prompts_and_tools_logged_once_are_found_by_their_hashes() -> None:
    named = {"system_prompt_hash": "sp_1", "tools": '[{"name":"Bash","hash":"h1"},{"name":"Edit","hash":"h2"}]'}
    one = session_of(
        cc(1, "interaction", {}),
        cc(2, "llm_request", {"model": "m", "new_context": "[USER]\nHi", **named}, 1),
        events=(
            event(3, "system_prompt", system_prompt_hash="sp_1", system_prompt="Serve."),
            event(4, "tool", tool_hash="h1", tool='{"name":"Bash","input_schema":{"type":"object"}}'),
        ),
    )
    (call,) = calls(one)
    assert messages(one, call.input)[0] == said("system", "Serve.")
    assert [tool["name"] for tool in one.tools] == ["Bash", "Edit"]
    assert call.fidelity["tools"] is Fidelity.TRUNCATED


@pytest.mark.parametrize(
    ("attributes", "arguments", "state"),
    [
        ({"tool_input": '[TOOL INPUT: Bash]\n{"command":"ls"}'}, {"command": "ls"}, None),
        ({"full_command": "ls"}, {"command": "ls"}, Fidelity.TRUNCATED),
        ({"file_path": "/a"}, {"file_path": "/a"}, Fidelity.TRUNCATED),
        ({}, None, Fidelity.ABSENT),
    ],
)
def test_arguments_are_whole_or_what_facts_repeat_of_them(
    attributes: dict[str, Any], arguments: Any, state: Any
) -> None:
    one = session_of(cc(1, "interaction", {}), cc(2, "tool", {"tool_name": "Bash", **attributes}, 1))
    (call,) = only_run(one).tool_calls()
    assert (call.arguments, call.fidelity.get("arguments")) == (arguments, state)


@pytest.mark.parametrize(
    "written", ['{"command":"aaa…[900 chars]"}', '{"a":["x","…[9 items]"]}', '{"a":"<nested>"}', '{"a":"b"…[truncated]']
)
def test_arguments_that_an_event_cut_are_marked(written: str) -> None:
    one = session_of(
        cc(1, "interaction", {}),
        cc(2, "tool", {"tool_name": "Bash", "tool_use_id": "t"}, 1),
        events=(event(3, "tool_result", tool_use_id="t", tool_name="Bash", success="true", tool_input=written),),
    )
    (call,) = only_run(one).tool_calls()
    assert call.fidelity["arguments"] is Fidelity.TRUNCATED


def test_how_a_tool_ended_stands_inside_it_or_in_an_event() -> None:
    one = session_of(
        cc(1, "interaction", {}),
        cc(2, "tool", {"tool_name": "Bash", "tool_use_id": "a"}, 1, seconds=2),
        cc(3, "tool.execution", {"success": False, "error": "no such file"}, 2),
        cc(5, "tool", {"tool_name": "Bash", "tool_use_id": "b"}, 1),
        cc(6, "tool", {"tool_name": "Write", "tool_use_id": "c"}, 1),
        events=(
            event(7, "tool_result", tool_use_id="b", tool_name="Bash", success="false", error_type="ShellError"),
            event(8, "tool_decision", tool_use_id="c", tool_name="Write", decision="reject", source="user_reject"),
        ),
    )
    inside, outside, rejected = only_run(one).tool_calls()
    assert (inside.status, inside.error and inside.error.message) == (Status.ERROR, "no such file")
    assert (outside.status, outside.error and outside.error.type) == (Status.ERROR, "ShellError")
    assert (rejected.status, rejected.error and rejected.error.category) == (Status.BLOCKED, "policy")


def test_a_tools_output_is_its_result_and_what_a_writer_was_given_is_none() -> None:
    def output(**attributes: Any) -> list[dict[str, Any]]:
        return [{"name": "tool.output", "attributes": attribute_list(attributes)}]

    one = session_of(
        cc(1, "interaction", {}),
        cc(2, "tool", {"tool_name": "Bash"}, 1, events=output(bash_command="ls", output="")),
        cc(3, "tool", {"tool_name": "Read"}, 1, events=output(file_path="/a", content="text")),
        cc(4, "tool", {"tool_name": "Write"}, 1, events=output(file_path="/a", content="text")),
    )
    bash, read, write = only_run(one).tool_calls()
    assert (bash.result, read.result, write.fidelity["result"]) == ("", "text", Fidelity.ABSENT)


def test_servers_tools_are_named_as_they_are_known_inside() -> None:
    parameters = json.dumps({"mcp_server_name": "inn", "mcp_tool_name": "order"})
    run = alone(
        event(1, "tool_result", tool_use_id="t", tool_name="mcp_tool", success="true", tool_parameters=parameters)
    )
    (call,) = run.tool_calls()
    assert (call.name, call.kind) == ("mcp__inn__order", ToolKind.MCP)


def test_what_was_kept_back_is_redacted() -> None:
    one = session_of(
        cc(1, "interaction", {"user_prompt": "<REDACTED>"}),
        cc(2, "llm_request", {"model": "m"}, 1),
        events=(event(3, "api_request", model="m"), event(4, "assistant_response", model="m", response="<REDACTED>")),
    )
    assert only_run(one).fidelity["input"] is Fidelity.REDACTED
    assert calls(one)[0].fidelity["output"] is Fidelity.REDACTED


# -- events alone ----------------------------------------------------------------------------------------------------


def test_events_alone_make_runs_with_their_calls_in_order() -> None:
    run = alone(
        event(1, "user_prompt", prompt="List."),
        event(3, "api_request", model="m", input_tokens=3, output_tokens=1, duration_ms=1000),
        event(
            5,
            "tool_result",
            tool_use_id="toolu_1",
            tool_name="Bash",
            success="true",
            tool_input='{"command":"ls"}',
            duration_ms="500",
        ),
        event(7, "api_request", model="m", input_tokens=5, output_tokens=2, duration_ms=1000),
        event(8, "assistant_response", model="m", response="Two."),
    )
    assert (run.status, len(run.turns)) == (Status.OK, 2)
    assert [tool.arguments for tool in run.turns[0].tool_calls] == [{"command": "ls"}]
    assert run.turns[0].tool_calls[0].fidelity == {"result": Fidelity.ABSENT}
    assert [call.usage and call.usage.input_tokens for call in run.model_calls()] == [3, 5]
    assert run.started_at == "2026-11-18T11:06:41.000000000Z"


def test_events_of_one_session_are_one_session_whatever_their_prompts() -> None:
    first, second = (event(n, "user_prompt", trace=None, prompt=f"Hi {n}", **{"prompt.id": f"p-{n}"}) for n in (1, 2))
    one = one_of(logs(first), logs(second), logs(first))
    assert (one.key.value, len(one.roots())) == ("s-1", 2)


def test_a_call_that_failed_ends_its_run_where_nothing_follows() -> None:
    run = alone(
        event(1, "user_prompt", prompt="Hi"),
        event(2, "api_error", model="m", error="Overloaded", status_code="529", attempt=3),
    )
    (call,) = run.model_calls()
    assert call.error is not None
    assert (call.status, call.error.type, call.error.message) == (Status.ERROR, "529", "Overloaded")
    assert (run.status, run.output) == (Status.ERROR, [])


def test_a_sub_agents_calls_stand_in_the_tool_call_that_ran_then() -> None:
    one = one_of(
        logs(
            event(1, "user_prompt", trace=None, prompt="Ask."),
            event(2, "api_request", trace=None, model="m", query_source="sdk", duration_ms=500),
            event(4, "api_request", trace=None, model="m", query_source="agent:builtin", duration_ms=500),
            event(6, "tool_result", trace=None, tool_use_id="b", tool_name="Bash", success="true", duration_ms="500"),
            event(8, "tool_result", trace=None, tool_use_id="t", tool_name="Task", success="true", duration_ms="5000"),
            event(9, "api_request", trace=None, model="m", query_source="sdk", duration_ms=500),
        )
    )
    outer, inner = one.runs
    assert [tool.name for tool in outer.tool_calls()] == ["Task"]
    assert [tool.name for tool in inner.tool_calls()] == ["Bash"]
    assert (len(list(outer.model_calls())), len(list(inner.model_calls()))) == (2, 1)
    assert next(iter(outer.tool_calls())).run == inner.id


def test_other_logs_are_left_alone() -> None:
    conversion = converted(
        logs(event(1, "user_prompt", trace=None, prompt="Hi")), logs({"body": {"stringValue": "started"}})
    )
    assert len(conversion.sessions) == 1
    assert conversion.skipped == {"logs": 1}
