"""Codex: events that mostly name no trace are one conversation's runs; spans alone tell of turns, calls and tools."""

from __future__ import annotations

import json
from typing import Any

from otlp_lines import BEGAN, SECOND, attribute_list, converted, request, span
from spanreel.model import Fidelity
from spanreel.session import Run, Session

SCOPE = "codex_otel.log_only"
TALK = "01a22c3f-3949-7762-8dda-9bfdcffc5b73"
COUNTS = {"input_token_count": "60", "output_token_count": "12", "cached_token_count": "8", "tool_token_count": "72"}
ASKED, ENDED = {"event.kind": "response.created"}, {"event.kind": "response.completed"}


def event(second: float, name: str, trace: str | None = None, talk: str = TALK, **attributes: Any) -> dict[str, Any]:
    told = {"event.name": f"codex.{name}", "conversation.id": talk, "model": "gpt-5-codex", **attributes}
    record = {"timeUnixNano": "0", "observedTimeUnixNano": str(BEGAN + int(second * SECOND)), "body": None}
    where = {} if trace is None else {"traceId": trace, "spanId": "0" * 15 + "7"}
    return {**record, **where, "attributes": attribute_list(told)}


def logs(*records: dict[str, Any]) -> dict[str, Any]:
    scopes = [{"scope": {"name": SCOPE}, "logRecords": list(records)}]
    return {"resourceLogs": [{"resource": {"attributes": []}, "scopeLogs": scopes}]}


def session_of(*requests: dict[str, Any]) -> Session:
    conversion = converted(*requests)
    assert conversion.faults == ()
    (one,) = conversion.sessions
    return one


def asked(second: float, **attributes: Any) -> dict[str, Any]:
    return event(second, "api_request", "b" * 32, **{"duration_ms": "200", "attempt": "0", **attributes})


def answered(second: float) -> list[dict[str, Any]]:
    """A stream's end is told twice, of which one tells the counts."""
    return [
        event(second, "sse_event", **ASKED),
        event(second + 0.1, "sse_event", **ENDED),
        event(second + 0.2, "sse_event", **ENDED, **COUNTS),
    ]


def ran(second: float, identity: str, output: str, **attributes: Any) -> dict[str, Any]:
    arguments = json.dumps({"cmd": "ls"})
    told = {"tool_name": "exec_command", "call_id": identity, "arguments": arguments, "output": output}
    return event(second, "tool_result", "c" * 32, **{"success": "true", "duration_ms": "50", **told, **attributes})


def header(code: int) -> str:
    return f"Chunk ID: 06b94f\nWall time: 0.0 seconds\nProcess exited with code {code}\nOutput:\n"


def task(*more: dict[str, Any]) -> dict[str, Any]:
    prompt = event(1, "user_prompt", "a" * 32, prompt="List the books.", prompt_length="15")
    first = [
        asked(2),
        *answered(2.1),
        ran(3, "call_1", f"{header(0)}momo.txt\n"),
        ran(3.1, "call_2", f"{header(2)}no\n"),
    ]
    return logs(prompt, *first, asked(4), *answered(4.1), *more)


def only(one: Session) -> Run:
    (run,) = one.runs
    return run


def test_events_of_a_prompt_are_a_run_whichever_traces_they_name() -> None:
    one = session_of(task())
    assert one.key.value == TALK
    run = only(one)
    assert [part["content"] for index in run.input for part in one.messages[index].parts] == ["List the books."]
    assert [len(turn.tool_calls) for turn in run.turns] == [2, 0]
    assert one.usage.model_dump(exclude_none=True) == {
        "input_tokens": 120,
        "output_tokens": 24,
        "cache_read_tokens": 16,
    }


def test_tool_calls_tell_what_the_model_asked_for() -> None:
    one = session_of(task())
    turn = only(one).turns[0]
    assert turn.model_call is not None
    (message,) = (one.messages[index] for index in turn.model_call.output)
    assert [(part["id"], part["arguments"]) for part in message.parts] == [
        ("call_1", {"cmd": "ls"}),
        ("call_2", {"cmd": "ls"}),
    ]
    assert turn.model_call.fidelity["output"] is Fidelity.TRUNCATED  # its words, if any, are not told


def test_a_commands_output_is_its_result_and_a_code_that_says_more_stays_with_it() -> None:
    first, second = only(session_of(task())).turns[0].tool_calls
    assert first.result == "momo.txt"
    assert second.result == f"{header(2)}no\n"


def test_each_prompt_of_a_conversation_is_a_run() -> None:
    later = event(6, "user_prompt", "d" * 32, prompt="And Krabat?")
    one = session_of(task(later, asked(7), *answered(7.1)))
    assert [len(run.turns) for run in one.runs] == [2, 1]


def test_an_attempt_that_failed_is_told_as_such() -> None:
    refused = asked(5, **{"http.response.status_code": "500", "error.message": "http 500"})
    one = session_of(task(event(4.9, "user_prompt", prompt="Again."), refused))
    run = one.runs[-1]
    assert run.error is not None
    assert run.error.message == "http 500"


def test_a_tool_call_that_was_refused_or_failed_is_no_success() -> None:
    refused = event(4.6, "tool_decision", tool_name="exec_command", call_id="call_3", decision="denied", source="User")
    failed = ran(4.7, "call_4", "no such file", success="false")
    one = session_of(task(refused, failed))
    blocked, broken = only(one).turns[-1].tool_calls
    assert (blocked.status, broken.status) == ("blocked", "error")
    assert broken.error is not None
    assert broken.error.message == "no such file"


def test_a_prompt_that_was_kept_back_is_redacted() -> None:
    prompt = event(1, "user_prompt", prompt="[REDACTED]")
    run = only(session_of(logs(prompt, asked(2), *answered(2.1))))
    assert run.fidelity["input"] is Fidelity.REDACTED


def spans() -> dict[str, Any]:
    program = [
        span(1, "session_task.turn", {"turn.id": "t1", "model": "gpt-5-codex"}, seconds=20),
        span(2, "try_run_sampling_request", {"model": "gpt-5-codex"}, 1, seconds=5),
        span(3, "codex.sampling", {"conversation.id": TALK, "turn.id": "t1"}, 2, seconds=2),
        span(4, "receiving_stream", {}, 2, seconds=4),
        span(5, "handle_responses", {"gen_ai.usage.input_tokens": 60, "gen_ai.usage.output_tokens": 12}, 4),
        span(6, "exec_command", {"tool_name": "exec_command", "call_id": "call_1", "codex.tool.phase": "dispatch"}, 5),
        span(7, "append_items", {"item_count": "1"}, 1),
    ]
    return request(*program, scope="codex_exec", service="codex_exec")


def test_spans_alone_tell_of_turns_calls_and_tools() -> None:
    one = session_of(spans())
    assert one.key.value == TALK
    (turn,) = only(one).turns
    assert turn.model_call is not None
    assert turn.model_call.usage is not None
    assert (turn.model_call.model, turn.model_call.usage.input_tokens) == ("gpt-5-codex", 60)
    assert [tool.name for tool in turn.tool_calls] == ["exec_command"]


def test_where_events_tell_of_a_conversation_its_spans_tell_nothing_twice() -> None:
    assert [len(run.turns) for run in session_of(task(), spans()).runs] == [2]
