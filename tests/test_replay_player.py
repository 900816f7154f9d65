"""What a player answers and what it stops: the acceptance cases of replay that need no framework."""

from __future__ import annotations

import asyncio
import json
import os
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from conftest import cases
from replaying import TOOL, Book, Live, asks, quiet, text, told
from spanreel.errors import ReplayStop
from spanreel.model import Error, ErrorCategory, Status
from spanreel.point import RecordedError, ToolRequest, ToolResult
from spanreel.protocols import openai_chat
from spanreel.replay.comparing.placeholders import Placeholders
from spanreel.replay.judging.report import to_json, to_text
from spanreel.replay.judging.verdict import Verdict
from spanreel.replay.playing.player import SessionPlayer
from spanreel.snapshot import snapshot


def weather() -> Book:
    """Two tools in one answer, then the final answer: two model calls, two tool calls."""
    book = Book(tools=[TOOL])
    run = book.run(result="sunny everywhere")
    user = text("user", "weather?")
    asked = asks(("c1", "w", {"city": "Paris"}), ("c2", "w", {"city": "Rome"}))
    first = book.model(run, [user], asked, offered=[TOOL])
    for position, (call_id, city) in enumerate((("c1", "Paris"), ("c2", "Rome"))):
        requested_by = {"model_call": first["id"], "position": position}
        book.tool(run, "w", {"city": city}, f"{city}: sun", call_id=call_id, requested_by=requested_by)
    said = [user, asked, told("c1", "Paris: sun"), told("c2", "Rome: sun")]
    book.model(run, said, text("assistant", "sunny everywhere"), offered=[TOOL])
    return book


def replay_weather(live: Live, *, order: tuple[int, ...] = (0, 1), prompt: str = "weather?") -> None:
    run = live.run()
    answer = live.ask(run, [text("user", prompt)], tools=(TOOL,))
    parts = answer.messages[0]["parts"]
    results = {index: live.call(run, "w", parts[index]["arguments"], parts[index]["id"]) for index in order}
    said = [text("user", prompt), answer.messages[0], told("c1", results[0]), told("c2", results[1])]
    final = live.ask(run, said, tools=(TOOL,))
    live.end(run, final.messages[0]["parts"][0]["content"])


# -- case 1 and 4 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_an_unchanged_agent_passes_whatever_the_order_of_its_parallel_tools(order: tuple[int, ...]) -> None:
    live = Live(weather().session())
    replay_weather(live, order=order)
    report = live.report()
    assert (report.verdict, report.reasons, report.order) == (Verdict.PASS, (), ())
    assert (report.model_calls.matched, report.tool_calls.matched) == (2, 2)
    assert report.tiers == {"call_id": 2, "exact": 2}
    assert report.tokens == {
        "recorded": {"input_tokens": 20, "output_tokens": 4},
        "served": {"input_tokens": 20, "output_tokens": 4},
        "live": {"input_tokens": 0, "output_tokens": 0},
        "delta": {"input_tokens": 0, "output_tokens": 0},
    }
    assert [run.outcome for run in report.runs] == ["same"]


def test_a_changed_prompt_fails_and_names_the_place_and_both_texts() -> None:
    live = Live(weather().session())
    with pytest.raises(ReplayStop) as stop:
        replay_weather(live, prompt="weather today?")
    said = (
        "model call 1 of root diverged at /messages/0/parts/0/content: recorded 'weather?', now 'weather today?' "
        "(nearest recorded: model call 1 of root)"
    )
    assert str(stop.value) == said
    report = live.report()
    assert (report.verdict, report.exit_code, report.misses, report.reasons) == (Verdict.FAIL, 1, 1, (said,))
    assert report.first_divergence is not None
    assert report.first_divergence["pointer"] == "/messages/0/parts/0/content"
    assert (report.first_divergence["recorded"], report.first_divergence["live"]) == ("weather?", "weather today?")
    assert (report.model_calls.not_reached, report.tool_calls.not_reached) == (2, 2)


def test_after_a_miss_nothing_more_is_answered_in_the_run_even_where_it_is_swallowed() -> None:
    live = Live(weather().session())
    run = live.run()
    with quiet():
        live.ask(run, [text("user", "other")])
    with pytest.raises(ReplayStop, match="diverged"):
        live.call(run, "w", {"city": "Paris"}, "c1")
    with pytest.raises(ReplayStop, match="diverged"):
        live.ask(run, [text("user", "weather?")], tools=(TOOL,))
    live.end(run, error=RuntimeError("swallowed"))
    assert live.report().misses == 1
    assert live.report().reasons[0].startswith("model call 1 of root diverged")


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"model": "gpt-6"}, "/model"),
        ({"tools": ({**TOOL, "description": "new"},)}, "/tools/0/description"),
        ({"tools": ()}, "/tools/0"),
        ({"settings": {"temperature": 0.5}}, "/settings/temperature"),
        ({"provider_fields": {"verbosity": "low"}}, "/provider_fields/verbosity"),
    ],
)
def test_every_change_of_a_request_diverges_at_its_place(change: dict[str, Any], pointer: str) -> None:
    live = Live(weather().session())
    run = live.run()
    with pytest.raises(ReplayStop, match=f"diverged at {pointer}: "):
        live.ask(run, [text("user", "weather?")], **{"tools": (TOOL,), **change})


# -- cases 3, 6, 7 and the reports 041 and 043 -----------------------------------------------------------------------


def test_equal_calls_get_their_results_in_the_recorded_order_and_one_more_is_a_miss() -> None:
    book = Book()
    run = book.run()
    for result in ("pending", "pending", "shipped"):
        book.tool(run, "status", {"order": "A"}, result)
    live = Live(book.session())
    root = live.run()
    assert [live.call(root, "status", {"order": "A"}) for _ in range(3)] == ["pending", "pending", "shipped"]
    with pytest.raises(
        ReplayStop, match=r"made once more than it was recorded; tool call 3 of root \('status'\) is used"
    ):
        live.call(root, "status", {"order": "A"})
    report = live.report()
    assert (report.verdict, report.misses, report.ambiguous) == (Verdict.FAIL, 1, ())


def test_an_inserted_call_is_a_miss() -> None:
    live = Live(_sequence("a", "b"))
    run = live.run()
    with pytest.raises(ReplayStop, match="tool call 'new' of root is not in the recording"):
        live.call(run, "new", {})
    assert live.report().misses == 1


def test_a_removed_call_is_reported_unused_and_fails() -> None:
    live = Live(_sequence("a", "b"))
    run = live.run()
    assert live.call(run, "b", {}) == "result of b"
    live.end(run)
    report = live.report()
    assert report.verdict is Verdict.FAIL
    assert report.reasons == ("tool call 1 of root ('a') was recorded and was not made",)
    assert (report.unused, report.order) == (("tool call 1 of root ('a')",), ())


def test_calls_in_another_order_get_their_own_results_and_the_order_is_reported() -> None:
    live = Live(_sequence("a", "b"))
    run = live.run()
    assert [live.call(run, name, {}) for name in ("b", "a")] == ["result of b", "result of a"]
    live.end(run)
    report = live.report()
    assert report.verdict is Verdict.FAIL
    assert report.order == (
        "order differs from the recording: tool call 2 of root ('b') came before tool call 1 of root ('a')",
    )


@pytest.mark.parametrize("name", ["041-repeat-calls", "043-reordered-calls"])
def test_the_reported_calls_get_what_the_report_expects(name: str) -> None:
    recording = [json.loads(line) for line in (cases("reports") / f"{name}.jsonl").read_text().splitlines()]
    spans = recording[0]["resourceSpans"][0]["scopeSpans"][0]["spans"]
    live = Live(_from_spans(spans))
    run = live.run()
    for line in (cases("reports") / f"{name}.calls.jsonl").read_text().splitlines():
        call = json.loads(line)
        if call["expect"].get("miss"):
            with pytest.raises(ReplayStop):
                live.call(run, call["tool"], call["arguments"])
        else:
            assert live.call(run, call["tool"], call["arguments"]) == call["expect"]["result"]
    report = live.report()
    assert (report.verdict, report.misses) == (Verdict.FAIL, 1)
    assert bool(report.order) == (name == "043-reordered-calls")


def test_parallel_calls_get_the_same_results_whatever_the_scheduling() -> None:
    session = _sequence("hotels", "flights")
    for round_ in range(50):
        live = Live(session)
        run = live.run()
        names = ["hotels", "flights"]
        random.Random(round_).shuffle(names)
        with ThreadPoolExecutor(2) as pool:
            results = dict(zip(names, pool.map(lambda name: live.call(run, name, {}), names), strict=True))  # noqa: B023
        assert results == {"hotels": "result of hotels", "flights": "result of flights"}


# -- case 5 ----------------------------------------------------------------------------------------------------------


def _twins() -> Book:
    book = Book()
    run = book.run()
    model = book.model(run, [text("user", "roll twice")], asks(("c1", "roll", {}), ("c2", "roll", {})))
    for position, call_id in ((1, "c2"), (0, "c1")):
        requested_by = {"model_call": model["id"], "position": position}
        book.tool(run, "roll", {}, position + 1, call_id=call_id, requested_by=requested_by)
    return book


def test_equal_parallel_calls_are_told_apart_by_their_ids() -> None:
    live = Live(_twins().session())
    run = live.run()
    live.ask(run, [text("user", "roll twice")])
    assert [live.call(run, "roll", {}, "c2"), live.call(run, "roll", {}, "c1")] == [2, 1]
    live.end(run)
    assert live.report().verdict is Verdict.PASS


def test_equal_parallel_calls_without_ids_are_served_by_cause_and_flagged() -> None:
    live = Live(_twins().session())
    run = live.run()
    live.ask(run, [text("user", "roll twice")])
    assert [live.call(run, "roll", {}), live.call(run, "roll", {})] == [1, 2]
    live.end(run)
    report = live.report()
    assert (report.verdict, report.exit_code) == (Verdict.INCONCLUSIVE, 2)
    assert report.ambiguous == ("tool call 1 of root ('roll')",)


# -- case 8 ----------------------------------------------------------------------------------------------------------


def _search(arguments: Any) -> Live:
    book = Book(tools=[TOOL])
    run = book.run()
    book.model(run, [text("user", "find")], asks(("c1", "search", arguments)), offered=[TOOL])
    book.tool(run, "search", arguments, ["found"], call_id="c1")
    return Live(book.session())


@pytest.mark.parametrize(
    ("recorded", "now"),
    [
        ({"q": "x"}, {"q": "x", "limit": 10}),
        ({"limit": 10, "q": "x"}, {"q": "x"}),
        ({"q": "x", "limit": 2}, {"limit": 2.0, "q": "x"}),
        ({"q": ["a", "b"]}, {"q": ("a", "b")}),
        ('{"q": "x"}', {"q": "x", "limit": 10}),
    ],
)
@pytest.mark.parametrize("call_id", ["c1", None, "other"])
def test_equivalent_arguments_match(recorded: Any, now: Any, call_id: str | None) -> None:
    live = _search(recorded)
    assert live.call(live.run(), "search", now, call_id) == ["found"]


@pytest.mark.parametrize(
    ("recorded", "now", "said"),
    [
        ({"q": True}, {"q": 1}, "/q: recorded True, now 1"),
        ({"q": "a"}, {"q": "a "}, "/q: recorded 'a', now 'a '"),
        ({"q": ["a", "b"]}, {"q": ["b", "a"]}, "/q/0: recorded 'a', now 'b'"),
        ({"q": "x", "note": None}, {"q": "x"}, "/note: recorded None, now nothing"),
    ],
)
@pytest.mark.parametrize("call_id", ["c1", None])
def test_other_arguments_miss(recorded: Any, now: Any, said: str, call_id: str | None) -> None:
    live = _search(recorded)
    with pytest.raises(ReplayStop) as stop:
        live.call(live.run(), "search", now, call_id)
    assert f"tool call 'search' of root diverged at {said}" in str(stop.value)


def test_defaults_are_filled_where_only_the_live_request_knows_the_schema() -> None:
    book = Book()
    run = book.run()
    book.model(run, [text("user", "find")], asks(("c1", "search", {"q": "x"})), fidelity={"tools": "absent"})
    book.tool(run, "search", {"q": "x"}, ["found"], call_id="c1")
    live = Live(book.session())
    root = live.run()
    live.ask(root, [text("user", "find")], tools=(TOOL,))
    assert live.call(root, "search", {"q": "x", "limit": 10}) == ["found"]
    assert live.report().uncompared == {"tools": 1}


def test_the_nearest_recorded_call_is_the_one_that_shares_most_arguments() -> None:
    book = Book()
    run = book.run()
    book.tool(run, "refund", {"order": "A", "amount": 10}, "ok")
    book.tool(run, "refund", {"order": "B", "amount": 20, "to": "x"}, "ok")
    book.tool(run, "refund", "not an object", "ok")
    live = Live(book.session())
    with pytest.raises(ReplayStop, match=r"/to: recorded 'x', now 'y' \(nearest recorded: tool call 2 of root"):
        live.call(live.run(), "refund", {"order": "B", "amount": 20, "to": "y"})


def test_an_id_whose_tool_was_renamed_is_told_as_a_change_of_name() -> None:
    live = _search({"q": "x"})
    with pytest.raises(ReplayStop, match="diverged at /name: recorded 'search', now 'find'"):
        live.call(live.run(), "find", {"q": "x"}, "c1")


def test_an_id_that_stands_for_several_calls_does_not_decide() -> None:
    book = Book()
    run = book.run()
    book.tool(run, "a", {"n": 1}, "one", call_id="0")
    book.tool(run, "a", {"n": 2}, "two", call_id="0")
    live = Live(book.session())
    root = live.run()
    assert [live.call(root, "a", {"n": 2}, "0"), live.call(root, "a", {"n": 1}, "0")] == ["two", "one"]


# -- case 9, 10: nothing runs live -----------------------------------------------------------------------------------


def test_a_tool_that_was_forgotten_is_served_or_stopped_never_run() -> None:
    book = Book()
    run = book.run()
    book.tool(run, "refund", {"order": "A", "amount": 10}, "refunded", side_effect=True)
    live = Live(book.session())
    root = live.run()
    assert live.call(root, "refund", {"order": "A", "amount": 10}, side_effect=True) == "refunded"
    with pytest.raises(ReplayStop):
        live.call(root, "refund", {"order": "A", "amount": 20}, side_effect=True)


def test_a_call_from_a_thread_without_context_belongs_to_the_only_run() -> None:
    live = Live(_sequence("a"))
    live.run()
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(live.call(None, "a", {})))
    thread.start()
    thread.join()
    assert found == ["result of a"]


def test_a_call_without_context_beside_several_runs_is_stopped() -> None:
    book = Book()
    book.tool(book.run(), "a", {}, 1)
    book.tool(book.run(), "a", {}, 2)
    live = Live(book.session())
    live.run()
    live.run()
    with pytest.raises(ReplayStop, match="tool call 'a' of outside every run is not in the recording"):
        live.call(None, "a", {})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_is_answered_nothing() -> None:
    live = Live(_sequence("a"))
    run = live.run()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - another process
        try:
            live.call(run, "a", {})
        except ReplayStop as stop:
            os.write(writer, str(stop).encode())
        with quiet():
            live.player.refuse("a connection")
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    assert b"forked from a replayed one" in os.read(reader, 1000)
    os.close(reader)
    assert live.call(run, "a", {}) == "result of a"
    live.end(run)
    assert live.report().verdict is Verdict.PASS


def test_a_replay_that_is_over_answers_nothing() -> None:
    live = Live(_sequence("a"))
    run = live.run()
    live.player.close()
    with pytest.raises(ReplayStop, match="is over"):
        live.call(run, "a", {})
    with pytest.raises(ReplayStop):
        live.player.refuse("a late connection")
    assert live.report().misses == 0


def test_what_went_past_every_point_stops_the_whole_replay() -> None:
    live = Live(weather().session())
    run = live.run()
    with pytest.raises(ReplayStop, match=r"a connection to .* from app\.py:3 would have gone past"):
        live.player.refuse("a connection to api.example.com:443 from app.py:3")
    with pytest.raises(ReplayStop, match="would have gone past"):
        live.call(run, "w", {"city": "Paris"})
    with pytest.raises(ReplayStop, match="would have gone past"):
        live.run()
    report = live.report()
    assert (report.verdict, report.exit_code) == (Verdict.NOT_INTERCEPTED, 4)
    assert report.reasons == ("a connection to api.example.com:443 from app.py:3 would have gone past the replay",)


# -- case 16 and results that cannot be served -----------------------------------------------------------------------


def test_truncated_arguments_match_nothing() -> None:
    book = Book()
    run = book.run()
    for result in (1, 2):
        book.tool(run, "a", {"text": "aaa"}, result, fidelity={"arguments": "truncated"}, call_id=f"c{result}")
    for call_id in ("c1", None):
        live = Live(book.session())
        with pytest.raises(ReplayStop, match=r"the recording has tool call 1 of root \('a'\) cut short"):
            live.call(live.run(), "a", {"text": "aaa"}, call_id)
        assert live.report().verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"fidelity": {"result": "truncated"}}, "cut short"),
        ({"fidelity": {"result": "absent"}}, "has not kept the result of tool call 1 of root"),
        ({"status": "unfinished"}, "ended before tool call 1 of root"),
    ],
)
def test_a_result_that_is_not_there_is_not_served(more: dict[str, Any], said: str) -> None:
    book = Book()
    book.tool(book.run(), "a", {}, None, **more)
    live = Live(book.session())
    with pytest.raises(ReplayStop, match=said):
        live.call(live.run(), "a", {})
    assert live.report().verdict is Verdict.INCONCLUSIVE


def test_a_recorded_null_is_served() -> None:
    book = Book()
    book.tool(book.run(), "a", {}, None)
    live = Live(book.session())
    run = live.run()
    assert live.call(run, "a", {}) is None
    live.end(run)
    assert live.report().verdict is Verdict.PASS


def test_results_are_copies() -> None:
    book = Book()
    run = book.run()
    book.tool(run, "a", {}, {"list": [1]})
    session = book.session()
    live = Live(session)
    live.call(live.run(), "a", {})["list"].append(2)
    again = Live(session)
    assert again.call(again.run(), "a", {}) == {"list": [1]}


def test_a_redacted_result_is_served_and_said() -> None:
    book = Book()
    book.tool(book.run(), "a", {}, "to [redacted]", fidelity={"result": "redacted"})
    live = Live(book.session())
    assert live.call(live.run(), "a", {}) == "to [redacted]"
    assert live.report().redacted == ("tool call 1 of root ('a')",)


def test_a_call_that_was_blocked_stays_blocked_and_need_not_be_made() -> None:
    book = Book()
    book.tool(book.run(), "a", {}, "not allowed", status="blocked")
    live = Live(book.session())
    answer = live.player.answer_tool(live.run(), ToolRequest("a", {}))
    assert isinstance(answer, ToolResult)
    assert (answer.status, answer.value) == (Status.BLOCKED, "not allowed")
    idle = Live(book.session())
    idle.end(idle.run())
    assert idle.report().verdict is Verdict.PASS


def test_calls_that_no_point_sees_are_not_asked_for() -> None:
    book = Book()
    run = book.run()
    book.tool(run, "a", {}, 1)
    book.tool(run, "web_search", {}, 2, kind="provider")
    book.tool(run, "final_result", {}, 3, executed=False)
    live = Live(book.session())
    root = live.run()
    live.call(root, "a", {})
    live.end(root)
    assert live.report().verdict is Verdict.PASS


# -- case 17: streams ------------------------------------------------------------------------------------------------


def test_a_stream_is_served_as_a_stream_at_once_and_a_plain_caller_gets_the_same_message() -> None:
    book = weather()
    for turn in book.runs[0]["turns"]:
        turn["model_call"]["streamed"] = True
    said = [text("user", "weather?")]
    live = Live(book.session())
    http = live.ask_http(live.run(), said, tools=(TOOL,), stream=True)
    assert http.headers["content-type"].startswith("text/event-stream")
    assert len(http.pieces) > 1
    assert {delay for delay, _ in http.pieces} == {0.0}
    streamed = openai_chat.join(list(http.pieces))
    plain = Live(book.session())
    answer = plain.ask(plain.run(), said, tools=(TOOL,))
    assert streamed.messages == answer.messages
    assert streamed.finish_reasons == answer.finish_reasons
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (10, 2)


# -- case 18: errors -------------------------------------------------------------------------------------------------


def test_a_recorded_tool_error_is_raised_once_and_the_retry_is_served() -> None:
    book = Book()
    run = book.run()
    error = {"category": "timeout", "type": "builtins.TimeoutError", "message": "too slow"}
    book.tool(run, "a", {}, None, status="error", error=error, fidelity={"result": "absent"})
    book.tool(run, "a", {}, "done")
    live = Live(book.session())
    root = live.run()
    assert live.call(root, "a", {}) == RecordedError("builtins.TimeoutError", "too slow", ErrorCategory.TIMEOUT)
    assert live.call(root, "a", {}) == "done"
    live.end(root)
    assert live.report().verdict is Verdict.PASS


def _attempts(*statuses: int | None, **more: Any) -> Book:
    book = Book()
    error = {"category": "model", "type": "rate_limit", "message": "slow down"}
    attempts = [{"status": one, "error": error if one != 200 else None} for one in statuses]
    answer = text("assistant", "hi") if statuses[-1] == 200 else None
    failed = {} if answer else {"http_status": statuses[-1], "error": error, "status": "error"}
    book.model(book.run(), [text("user", "hi")], answer, attempts=attempts, **failed, **more)
    return book


def test_recorded_attempts_are_served_one_by_one_without_sleeping() -> None:
    live = Live(_attempts(429, 500, 200).session())
    run = live.run()
    answers = [live.ask_http(run, [text("user", "hi")]) for _ in range(3)]
    assert [answer.status for answer in answers] == [429, 500, 200]
    assert [answer.headers.get("retry-after-ms") for answer in answers] == ["1", "1", None]
    assert openai_chat.read_response(answers[0].body, 429).error == Error(
        ErrorCategory.MODEL, "rate_limit", "slow down"
    )
    live.end(run)
    report = live.report()
    assert (report.verdict, report.model_calls.matched) == (Verdict.PASS, 1)
    with pytest.raises(ReplayStop, match="made once more than it was recorded"):
        live.ask(run, [text("user", "hi")])


def test_fewer_attempts_than_recorded_fail() -> None:
    live = Live(_attempts(429, 200).session())
    run = live.run()
    live.ask_http(run, [text("user", "hi")])
    live.end(run)
    assert live.report().reasons == ("model call 1 of root was tried 2 times when it was recorded, now 1",)


def test_the_last_recorded_error_tells_the_sdk_not_to_try_again() -> None:
    live = Live(_attempts(429, 429).session())
    run = live.run()
    answers = [live.ask_http(run, [text("user", "hi")]) for _ in range(2)]
    assert [answer.status for answer in answers] == [429, 429]
    assert answers[1].headers["x-should-retry"] == "false"


def test_an_attempt_that_never_got_an_answer_is_served_as_unavailable() -> None:
    live = Live(_attempts(None, 200).session())
    run = live.run()
    assert [live.ask_http(run, [text("user", "hi")]).status for _ in range(2)] == [503, 200]


def test_a_connection_that_failed_fails_again() -> None:
    book = Book()
    error = {"category": "model", "type": "builtins.ConnectionResetError", "message": "gone"}
    book.model(book.run(), [text("user", "hi")], None, status="error", error=error)
    live = Live(book.session())
    with pytest.raises(ConnectionResetError, match="gone"):
        live.ask(live.run(), [text("user", "hi")])


def test_recorded_headers_are_served_but_for_advice_on_retrying() -> None:
    book = Book()
    headers = {"X-Request-Id": "req-1", "Retry-After": "20"}
    error = {"category": "model", "type": "rate_limit", "message": "slow down"}
    book.model(book.run(), [text("user", "hi")], None, http_status=429, error=error, status="error", headers=headers)
    live = Live(book.session())
    answer = live.ask_http(live.run(), [text("user", "hi")])
    assert answer.headers == {"x-request-id": "req-1", "x-should-retry": "false", "content-type": "application/json"}


def test_a_body_that_could_not_be_read_is_served_as_it_came() -> None:
    book = Book()
    book.model(book.run(), [text("user", "hi")], None, raw_response="<html>", http_status=502, status="error")
    live = Live(book.session())
    answer = live.ask_http(live.run(), [text("user", "hi")])
    assert (answer.status, answer.body) == (502, b"<html>")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"fidelity": {"input": "truncated"}}, "cut short"),
        ({"fidelity": {"output": "absent"}}, "cut short"),
        ({"status": "unfinished"}, "ended before model call 1 of root had a result"),
    ],
)
def test_a_model_call_that_is_not_whole_is_not_served(more: dict[str, Any], said: str) -> None:
    book = Book()
    answer = None if "status" in more else text("assistant", "hi")
    book.model(book.run(), [text("user", "hi")], answer, **more)
    live = Live(book.session())
    with pytest.raises(ReplayStop, match=said):
        live.ask(live.run(), [text("user", "hi")])
    assert live.report().verdict is Verdict.INCONCLUSIVE


def test_what_was_masked_is_not_compared_and_that_is_said() -> None:
    book = Book()
    run = book.run()
    book.model(run, [text("user", "write to [redacted]")], text("assistant", "hello"), fidelity={"input": "redacted"})
    book.tool(run, "send", {"to": "[redacted]"}, 1, fidelity={"arguments": "redacted"})
    live = Live(book.session())
    root = live.run()
    live.ask(root, [text("user", "write to [redacted]")])
    live.call(root, "send", {"to": "[redacted]"})
    live.end(root)
    assert (live.report().verdict, live.report().uncompared) == (Verdict.PASS, {"what was masked": 2})


def test_an_object_in_arguments_that_says_nothing_of_itself_is_not_compared_and_that_is_said() -> None:
    class Basket:
        """Without a text of its own."""

    book = Book()
    run = book.run()
    book.tool(run, "pack", {"into": [snapshot(Basket()).value]}, 1)
    live = Live(book.session())
    root = live.run()
    live.call(root, "pack", {"into": [Basket()]})
    live.end(root)
    assert (live.report().verdict, live.report().uncompared) == (Verdict.PASS, {"what an object holds": 1})


def test_instructions_that_were_cut_are_not_compared_and_that_is_said() -> None:
    book = Book()
    said = [text("system", "be br"), text("user", "hi")]
    book.model(book.run(), said, text("assistant", "hello"), fidelity={"instructions": "truncated"})
    live = Live(book.session())
    run = live.run()
    live.ask(run, [text("system", "be brief"), text("user", "hi")])
    live.end(run)
    assert (live.report().verdict, live.report().uncompared) == (Verdict.PASS, {"instructions": 1})
    without = Live(book.session())
    without.ask(without.run(), [text("user", "hi")])


def test_a_request_that_cannot_be_read_is_stopped() -> None:
    live = Live(weather().session())
    with pytest.raises(ReplayStop, match="model call 0 of root could not be read"):
        live.send(live.run(), b"not json")


# -- models in parallel ----------------------------------------------------------------------------------------------


def _three(*, times: bool = True) -> Book:
    """Two model calls side by side, then a third."""
    book = Book()
    run = book.run()
    for name, start in (("a", 1), ("b", 1), ("c", 5)):
        span = {"started_at": f"2026-03-01T10:00:0{start}Z", "ended_at": f"2026-03-01T10:00:0{start + 1}.5Z"}
        book.model(run, [text("user", name)], text("assistant", name), **(span if times else {}))
    return book


def test_parallel_model_calls_arrive_in_any_order() -> None:
    live = Live(_three().session())
    run = live.run()
    answers = [live.ask(run, [text("user", name)]).messages[0]["parts"][0]["content"] for name in "bac"]
    assert answers == ["b", "a", "c"]


@pytest.mark.parametrize("place", ["argument", "message", "model", "tool", "error"])
def test_no_credential_stands_in_a_report_or_in_what_is_raised(place: str) -> None:
    key = "sk-proj-" + "a1" * 20
    live = Live(_three().session())
    run = live.run()
    said = ""
    try:
        if place in ("argument", "tool"):
            live.call(run, key if place == "tool" else "w", {"x": key})
        elif place in ("message", "model"):
            live.ask(run, [text("user", key)], **({"model": key} if place == "model" else {}))
        else:
            live.end(run, error=ValueError(f"password=hunter2 {key}"))
    except ReplayStop as stop:
        said = str(stop)
    report = live.report()
    written = f"{said} {to_text(report)} {json.dumps(to_json(report))}"
    assert report.verdict is not Verdict.PASS
    assert "[redacted]" in written or place == "argument"
    assert key not in written
    assert "hunter2" not in written


def _in_a_thread(call: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


def test_tool_calls_beside_the_runs_own_thread_have_no_order() -> None:
    live = Live(_sequence("a", "b"))
    run = live.run()
    for name in ("b", "a"):
        assert _in_a_thread(partial(live.call, run, name, {})) == f"result of {name}"
    live.end(run)
    assert live.report().verdict is Verdict.PASS


async def test_tool_calls_beside_the_runs_own_task_have_no_order() -> None:
    live = Live(_sequence("a", "b"))
    run = live.run()

    async def call(name: str) -> Any:
        return live.call(run, name, {})

    assert list(await asyncio.gather(call("b"), call("a"))) == ["result of b", "result of a"]
    live.end(run)
    assert live.report().verdict is Verdict.PASS


def test_a_model_call_beside_the_runs_own_thread_may_come_early_and_a_dropped_one_is_missed_still() -> None:
    live = Live(_three().session())
    run = live.run()
    for name in ("c", "a"):
        answer = _in_a_thread(partial(live.ask, run, [text("user", name)]))
        assert answer.messages[0]["parts"][0]["content"] == name
    live.end(run)
    assert live.report().reasons == ("model call 2 of root was recorded and was not made",)


def test_runs_side_by_side_are_told_apart_by_what_they_were_asked() -> None:
    book = Book()
    root = book.run()
    for number, question in enumerate(("a", "b")):
        asked = {"arguments": {"question": question}}
        inner = book.run(f"root/sub#{number}", agent="sub", parent={"run": root["id"]}, entrypoint=asked)
        book.tool(inner, "look", {"for": question}, f"found {question}")
    live = Live(book.session())
    outer = live.run()

    def ask(number: int, question: str) -> Any:
        inner = live.run(f"root/sub#{number}", agent="sub", parent=outer, arguments={"question": question})
        found = live.call(inner, "look", {"for": question})
        live.end(inner)
        return found

    # The second of the recording comes first, and is counted first.
    assert [_in_a_thread(partial(ask, *one)) for one in ((0, "b"), (1, "a"))] == ["found b", "found a"]
    live.end(outer)
    assert live.report().verdict is Verdict.PASS


def test_a_model_call_before_its_time_is_told_so() -> None:
    live = Live(_three().session())
    with pytest.raises(ReplayStop, match="recorded as model call 3 of root, after calls that have not been made yet"):
        live.ask(live.run(), [text("user", "c")])


def test_without_times_calls_stand_in_the_order_of_their_turns() -> None:
    book = _three(times=False)
    for turn in book.runs[0]["turns"]:
        del turn["model_call"]["started_at"], turn["model_call"]["ended_at"]
    live = Live(book.session())
    with pytest.raises(ReplayStop, match="after calls that have not been made yet"):
        live.ask(live.run(), [text("user", "b")])


def test_equal_parallel_requests_with_other_answers_are_flagged() -> None:
    book = Book()
    run = book.run()
    span = {"started_at": "2026-03-01T10:00:01Z", "ended_at": "2026-03-01T10:00:02Z"}
    for answer in ("a", "b"):
        book.model(run, [text("user", "hi")], text("assistant", answer), **span)
    live = Live(book.session())
    root = live.run()
    assert [live.ask(root, [text("user", "hi")]).messages[0]["parts"][0]["content"] for _ in range(2)] == ["a", "b"]
    assert live.report().ambiguous == ("model call 1 of root",)


def test_a_model_call_more_than_recorded_says_that_nothing_is_left() -> None:
    live = Live(_sequence("a"))
    with pytest.raises(
        ReplayStop, match=r"model call 1 of root is not in the recording \(nothing of its kind is left there"
    ):
        live.ask(live.run(), [text("user", "hi")])


def test_a_recording_that_was_killed_cannot_say_what_comes_after_its_end() -> None:
    book = Book()
    run = book.run(status="unfinished")
    book.model(run, [text("user", "a")], text("assistant", "a"))
    live = Live(book.session())
    root = live.run()
    live.ask(root, [text("user", "a")])
    with pytest.raises(ReplayStop):
        live.ask(root, [text("user", "b")])
    live.end(root)
    assert live.report().verdict is Verdict.INCONCLUSIVE


# -- foreign recordings ----------------------------------------------------------------------------------------------


def _foreign(**more: Any) -> Live:
    book = Book(extra={"origin": "imported"})
    call = book.model(book.run(), [text("user", "hi")], text("assistant", "hello"), **more)
    del call["protocol"]
    return Live(book.session())


def test_of_a_foreign_recording_only_what_it_has_is_compared() -> None:
    live = _foreign(settings={"temperature": 1})
    run = live.run()
    settings = {"temperature": 1.0, "top_p": 0.5}
    live.ask(run, [text("user", "hi")], tools=(TOOL,), settings=settings, provider_fields={"verbosity": "low"})
    live.end(run, "whatever")
    report = live.report()
    assert report.verdict is Verdict.PASS
    assert report.uncompared == {"outcome": 1, "provider_fields": 1, "settings/top_p": 1, "tools": 1}


def test_what_a_foreign_recording_has_is_compared() -> None:
    live = _foreign(settings={"temperature": 1}, fidelity={"provider_fields": "absent"})
    with pytest.raises(ReplayStop, match="diverged at /settings/temperature: recorded 1, now 0"):
        live.ask(live.run(), [text("user", "hi")], settings={"temperature": 0})


def test_fields_that_a_foreign_recording_has_lost_are_not_compared() -> None:
    live = _foreign(fidelity={"provider_fields": "absent", "settings": "truncated"}, offered=[TOOL])
    run = live.run()
    live.ask(run, [text("user", "hi")], tools=(TOOL,), settings={"temperature": 0})
    live.end(run)
    assert live.report().uncompared == {"provider_fields": 1, "settings": 1}


def test_a_recording_in_another_protocol_is_answered_in_the_live_one() -> None:
    book = Book()
    answer = {
        "role": "assistant",
        "parts": [{"type": "text", "content": "hello", "provider_fields": {"annotations": []}}],
        "provider_fields": {"id": "msg_1"},
    }
    more = {"protocol": "openai_responses", "chunks": [[1.0, "x"]], "provider_fields": {"object": "response"}}
    book.model(book.run(), [text("user", "hi")], answer, streamed=True, **more)
    live = Live(book.session())
    found = live.ask(live.run(), [text("user", "hi")], stream=True)
    assert found.messages[0]["parts"] == [{"type": "text", "content": "hello"}]


# -- redaction -------------------------------------------------------------------------------------------------------


def test_live_values_are_redacted_as_the_recording_was_before_they_are_compared() -> None:
    book = Book()
    run = book.run(result="***")
    book.model(run, [text("user", "***")], text("assistant", "ok"))
    book.tool(run, "a", {"key": "***"}, 1)

    def redact(attributes: Any) -> Any:
        return json.loads(json.dumps(attributes).replace("secret", "***"))

    live = Live(book.session())
    live.player = SessionPlayer(live.session, placeholders=Placeholders((redact,)))
    root = live.run()
    live.ask(root, [text("user", "secret")])
    assert live.call(root, "a", {"key": "secret"}) == 1
    live.end(root, "secret")
    assert live.report().verdict is Verdict.PASS


# -- helpers ---------------------------------------------------------------------------------------------------------


def _sequence(*names: str) -> Any:
    book = Book()
    run = book.run()
    for name in names:
        book.tool(run, name, {}, f"result of {name}")
    return book.session()


def _from_spans(spans: list[dict[str, Any]]) -> Any:
    book = Book()
    run = book.run()
    for span in spans[1:]:
        attributes = {one["key"]: one["value"]["stringValue"] for one in span["attributes"]}
        started, ended = (int(span[name]) // 10**9 for name in ("startTimeUnixNano", "endTimeUnixNano"))
        book.tool(
            run,
            attributes["gen_ai.tool.name"],
            json.loads(attributes["gen_ai.tool.call.arguments"]),
            json.loads(attributes["gen_ai.tool.call.result"]),
            call_id=attributes["gen_ai.tool.call.id"],
            started_at=f"2026-01-01T00:00:{started % 60:02}Z",
            ended_at=f"2026-01-01T00:00:{ended % 60:02}Z",
        )
    return book.session()
