"""Which recorded run a live run plays: order, agents, sub-agents, calls outside every run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import spanreel
from kinds import Scene, play, record, script
from replaying import Book, Live, asks, quiet, text, told
from spanreel.errors import ReplayStop
from spanreel.model import Agent, Message, Status, ToolKind
from spanreel.player import LiveRun
from spanreel.point import RunResult, ToolRequest
from spanreel.replay.judging.verdict import Verdict
from spanreel.snapshot import snapshot
from wire_server import completion


def reply(live: Live, run: LiveRun | None, said: str) -> str:
    return str(live.ask(run, [text("user", said)]).messages[0]["parts"][0]["content"])


def team() -> Book:
    """A boss that asks two researchers at once; both ask the same tool the same, and are told different things."""
    book = Book()
    boss = book.run(agent="boss")
    user = text("user", "compare")
    asked = asks(("c0", "research", {"on": "x"}), ("c1", "research", {"on": "y"}))
    first = book.model(boss, [user], asked)
    for number, topic in enumerate("xy"):
        call = book.tool(
            boss,
            "research",
            {"on": topic},
            f"about {topic}",
            call_id=f"c{number}",
            kind="agent",
            requested_by={"model_call": first["id"], "position": number},
        )
        parent = {"run": boss["id"], "tool_call": call["id"]}
        inner = book.run(f"root/researcher#{number}", agent="researcher", parent=parent, result=f"about {topic}")
        call["run"] = inner["id"]
        book.model(inner, [text("user", "go")], asks((f"d{number}", "read", {"page": 1})))
        book.tool(inner, "read", {"page": 1}, f"page of {topic}")
        book.model(inner, [text("user", f"page of {topic}")], text("assistant", f"about {topic}"))
    book.model(boss, [user, asked, told("c0", "about x"), told("c1", "about y")], text("assistant", "equal"))
    return book


def research(live: Live, boss: LiveRun, topic: str, call_id: str, path: str) -> str:
    request = live.through(boss, "research", {"on": topic}, call_id)
    run = live.run(path, agent="researcher", parent=boss, inside=request)
    live.ask(run, [text("user", "go")])
    page = live.call(run, "read", {"page": 1})
    result = reply(live, run, page)
    live.end(run, result)
    return result


@pytest.mark.parametrize("reversed_", [False, True])
def test_parallel_sub_agents_get_what_is_theirs_in_either_order(reversed_: bool) -> None:
    live = Live(team().session())
    boss = live.run(agent="boss")
    asked = live.ask(boss, [text("user", "compare")]).messages[0]
    calls = [("x", "c0"), ("y", "c1")]
    results = {}
    # The live paths are numbered by arrival; the tool call they are inside of says who they are.
    for arrival, (topic, call_id) in enumerate(reversed(calls) if reversed_ else calls):
        results[topic] = research(live, boss, topic, call_id, f"root/researcher#{arrival}")
    assert results == {"x": "about x", "y": "about y"}
    live.ask(boss, [text("user", "compare"), asked, told("c0", "about x"), told("c1", "about y")])
    live.end(boss)
    report = live.report()
    assert (report.verdict, report.order) == (Verdict.PASS, ())
    assert [run.outcome for run in report.runs] == ["same", "same", "same"]


def test_a_copy_of_the_request_still_names_the_tool_call() -> None:
    live = Live(team().session())
    boss = live.run(agent="boss")
    live.ask(boss, [text("user", "compare")])
    live.through(boss, "research", {"on": "x"}, "c0")
    live.through(boss, "research", {"on": "y"}, "c1")
    copy = ToolRequest("research", {"on": "y"}, "c1", ToolKind.AGENT)
    run = live.run("root/researcher#0", agent="researcher", parent=boss, inside=copy)
    live.ask(run, [text("user", "go")])
    assert live.call(run, "read", {"page": 1}) == "page of y"


def test_equal_calls_of_a_sub_agent_are_told_apart_by_what_is_left_inside() -> None:
    book = Book()
    boss = book.run(agent="boss")
    for number in range(2):
        call = book.tool(boss, "research", {}, number, kind="agent")
        inner = book.run(f"root/r#{number}", agent="r", parent={"run": boss["id"], "tool_call": call["id"]})
        book.tool(inner, "read", {}, number)
    live = Live(book.session())
    run = live.run(agent="boss")
    for _ in range(2):
        live.through(run, "research", {})
    results = []
    for number in range(2):
        copy = ToolRequest("research", {}, None, ToolKind.AGENT)
        results.append(live.call(live.run(f"root/r#{number}", agent="r", parent=run, inside=copy), "read", {}))
    assert results == [0, 1]


def test_calls_of_a_sub_agent_do_not_match_those_of_another() -> None:
    live = Live(team().session())
    boss = live.run(agent="boss")
    live.ask(boss, [text("user", "compare")])
    with pytest.raises(ReplayStop, match="tool call 'read' of root is not in the recording"):
        live.call(boss, "read", {"page": 1})


def test_a_tool_that_is_served_covers_what_happened_inside_it() -> None:
    live = Live(team().session())
    boss = live.run(agent="boss")
    asked = live.ask(boss, [text("user", "compare")]).messages[0]
    results = [live.call(boss, "research", {"on": topic}, call_id) for topic, call_id in (("x", "c0"), ("y", "c1"))]
    assert results == ["about x", "about y"]
    live.ask(boss, [text("user", "compare"), asked, told("c0", "about x"), told("c1", "about y")])
    live.end(boss)
    report = live.report()
    assert (report.verdict, report.reasons) == (Verdict.PASS, ())
    assert (report.model_calls.covered, report.tool_calls.covered) == (4, 2)
    assert [run.path for run in report.runs] == ["root"]


def test_a_sub_agent_that_does_not_run_is_told_once() -> None:
    live = Live(team().session())
    boss = live.run(agent="boss")
    asked = live.ask(boss, [text("user", "compare")]).messages[0]
    research(live, boss, "x", "c0", "root/researcher#0")
    live.through(boss, "research", {"on": "y"}, "c1")
    live.ask(boss, [text("user", "compare"), asked, told("c0", "about x"), told("c1", "about y")])
    live.end(boss)
    report = live.report()
    assert report.reasons == ("root/researcher#1 of agent 'researcher' was recorded and did not run",)
    assert [run.outcome for run in report.runs] == ["same", "same", "not started"]


def test_a_sub_agent_that_was_not_recorded_stops_the_run() -> None:
    live = Live(team().session())
    boss = live.run(agent="boss")
    with pytest.raises(ReplayStop) as stop:
        live.run("root/critic#0", agent="critic", parent=boss)
    assert str(stop.value) == (
        "run of agent 'critic' at root/critic#0 is not in the recording (left in the recording: "
        "root/researcher#0 of agent 'researcher', root/researcher#1 of agent 'researcher')"
    )
    with pytest.raises(ReplayStop):
        live.ask(boss, [text("user", "compare")])
    assert (live.report().verdict, live.report().misses) == (Verdict.FAIL, 1)


def test_an_agent_that_was_handed_the_word_is_a_run_inside() -> None:
    book = Book()
    first = book.run(agent="triage")
    book.model(first, [text("user", "hi")], asks(("c", "transfer_to_sales", {})))
    book.tool(first, "transfer_to_sales", None, None, kind="handoff", target="sales")
    second = book.run("root/sales#0", agent="sales", parent={"run": first["id"]})
    book.model(second, [text("user", "hi")], text("assistant", "buy"))
    live = Live(book.session())
    run = live.run(agent="triage")
    live.ask(run, [text("user", "hi")])
    assert live.player.answer_tool(run, ToolRequest("transfer_to_sales", {}, "c", ToolKind.HANDOFF)) is None
    sales = live.run("root/sales#0", agent="sales", parent=run)
    assert reply(live, sales, "hi") == "buy"
    live.player.end_run(sales, None, None)
    live.end(run)
    assert live.report().verdict is Verdict.PASS


def test_root_runs_go_by_agent_and_order() -> None:
    book = Book()
    for agent, said in (("a", "1"), ("b", "2"), ("a", "3")):
        book.model(book.run(agent=agent), [text("user", "hi")], text("assistant", said))
    live = Live(book.session())
    answers = []
    for agent in ("b", "a", "a"):
        run = live.run(agent=agent)
        answers.append(reply(live, run, "hi"))
        live.end(run)
    assert answers == ["2", "1", "3"]
    assert live.report().verdict is Verdict.PASS
    with pytest.raises(ReplayStop, match=r"is not in the recording \(the recording has no further run there\)"):
        live.run(agent="a")


def test_one_failing_run_leaves_the_others_alone() -> None:
    book = Book()
    for said in ("1", "2"):
        book.model(book.run(), [text("user", said)], text("assistant", said))
    live = Live(book.session())
    first, second = live.run(), live.run()
    with quiet():
        live.ask(first, [text("user", "other")])
    assert reply(live, second, "2") == "2"
    live.end(second)
    report = live.report()
    assert [run.outcome for run in report.runs] == ["stopped", "same"]
    assert (report.verdict, report.unused) == (Verdict.FAIL, ())


def test_one_run_of_a_session_is_replayed_alone() -> None:
    book = Book()
    for said in ("1", "2"):
        book.model(book.run(), [text("user", said)], text("assistant", said))
    live = Live(book.session(), "1")
    run = live.run()
    assert reply(live, run, "2") == "2"
    live.end(run)
    report = live.report()
    assert (report.verdict, report.run, report.model_calls.recorded) == (Verdict.PASS, "run-1", 1)


def test_a_sub_agent_can_be_replayed_alone() -> None:
    live = Live(team().session(), "root/researcher#1")
    run = live.run(agent="researcher")
    live.ask(run, [text("user", "go")])
    assert live.call(run, "read", {"page": 1}) == "page of y"
    reply(live, run, "page of y")
    live.end(run, "about y")
    assert live.report().verdict is Verdict.PASS


# -- recorded input --------------------------------------------------------------------------------------------------


def _with_arguments(**more: Any) -> Live:
    book = Book()
    run = book.run(entrypoint={"callable": "app:main", "arguments": {"question": "old"}}, **more)
    book.model(run, [text("user", "old")], text("assistant", "x"))
    return Live(book.session())


def test_a_root_run_gets_its_recorded_arguments_and_a_change_is_noted() -> None:
    live = _with_arguments()
    live.run(arguments={"question": "new", "verbose": True})
    assert live.given == {"question": "old"}
    assert live.report().notes == (
        "root was given the recorded input, not the caller's: /question: recorded 'old', now 'new'",
    )


def test_the_same_arguments_and_arguments_that_are_not_told_are_not_worth_a_note() -> None:
    for arguments in ({"question": "old"}, {}):
        live = _with_arguments()
        live.run(arguments=arguments)
        assert live.report().notes == ()


def test_redacted_arguments_do_not_beat_the_callers() -> None:
    live = _with_arguments(fidelity={"arguments": "redacted"})
    live.run(arguments={"question": "new"})
    assert live.given is None


def test_another_name_of_the_agent_is_noted() -> None:
    live = _with_arguments()
    live.run(agent="renamed")
    assert live.report().notes == ("the agent of root was recorded as 'demo', now 'renamed'",)


# -- outside every run -----------------------------------------------------------------------------------------------


def loop() -> Book:
    book = Book()
    run = book.run(agent=None, implicit=True)
    book.model(run, [text("user", "hi")], asks(("c", "a", {})))
    book.tool(run, "a", {}, 1)
    later = book.run(agent=None, implicit=True)
    book.model(later, [text("user", "more")], text("assistant", "done"))
    return book


def test_a_loop_without_an_agent_is_replayed() -> None:
    live = Live(loop().session())
    live.ask(None, [text("user", "hi")])
    assert live.call(None, "a", {}) == 1
    assert reply(live, None, "more") == "done"
    report = live.report()
    assert (report.verdict, report.runs) == (Verdict.PASS, ())


def test_a_miss_outside_every_run_stops_what_is_outside() -> None:
    live = Live(loop().session())
    with pytest.raises(ReplayStop, match="model call 1 of outside every run diverged"):
        live.ask(None, [text("user", "other")])
    with pytest.raises(ReplayStop):
        live.call(None, "a", {})
    report = live.report()
    assert (report.verdict, report.unused, report.model_calls.not_reached) == (Verdict.FAIL, (), 2)


def test_a_loop_that_has_got_an_agent_around_it_since_is_still_replayed() -> None:
    live = Live(loop().session())
    run = live.run(agent="new")
    live.ask(run, [text("user", "hi")])
    live.call(run, "a", {})
    reply(live, run, "more")
    live.end(run)
    assert live.report().verdict is Verdict.PASS


def test_a_loop_that_is_not_called_is_reported_call_by_call() -> None:
    live = Live(loop().session())
    live.ask(None, [text("user", "hi")])
    live.call(None, "a", {})
    assert live.report().reasons == ("model call 2 of root was recorded and was not made",)


def test_model_calls_inside_a_tool_are_the_implicit_run_inside_it() -> None:
    book = Book()
    boss = book.run()
    call = book.tool(boss, "summarise", {}, "short", kind="agent")
    inner = book.run("root/summarise#0", agent=None, implicit=True, parent={"run": boss["id"], "tool_call": call["id"]})
    book.model(inner, [text("user", "long")], text("assistant", "short"))
    live = Live(book.session())
    run = live.run()
    request = live.through(run, "summarise", {})
    # The boundary announces no run for these; the first call in it does.
    unannounced = LiveRun("live-x", "root/summarise#0", Agent(), run.id, request)
    assert reply(live, unannounced, "long") == "short"
    live.end(run)
    assert live.report().verdict is Verdict.PASS


def test_where_a_recording_does_not_tell_runs_apart_their_calls_are_the_parents() -> None:
    book = Book(extra={"origin": "imported"})
    boss = book.run(agent="boss")
    book.tool(boss, "a", {}, 1)
    live = Live(book.session())
    run = live.run(agent="boss")
    inner = live.run("root/helper#0", agent="helper", parent=run)
    assert live.call(inner, "a", {}) == 1
    live.end(inner)
    live.end(run)
    assert live.report().verdict is Verdict.PASS


def test_root_runs_that_start_in_another_order_are_told_apart_by_what_they_are_asked() -> None:
    book = Book()
    for question in ("x", "y", "z"):
        run = book.run(entrypoint={"callable": "app:answer", "arguments": {"question": question}})
        book.tool(run, "a", {"of": question}, question)
    live = Live(book.session())
    for question in ("z", "x", "y"):
        root = live.run(arguments={"question": question})
        assert live.call(root, "a", {"of": question}) == question
        live.end(root)
    assert live.report().verdict is Verdict.PASS


# -- outcomes --------------------------------------------------------------------------------------------------------


def _ended(recorded: dict[str, Any], result: RunResult | None, error: BaseException | None = None) -> Live:
    book = Book()
    run = book.run(**recorded)
    book.tool(run, "a", {}, 1)
    book.messages.append(text("assistant", "hi"))
    live = Live(book.session())
    root = live.run()
    live.call(root, "a", {})
    live.player.end_run(root, result, error)
    return live


def test_another_result_fails_and_names_the_place() -> None:
    live = _ended({"result": {"answer": 42}}, RunResult(value={"answer": 43}))
    report = live.report()
    assert report.reasons == ("the outcome of root differs at /result/answer: recorded 42, now 43",)
    assert report.first_divergence is not None
    assert report.first_divergence["reason"] == "outcome"
    assert report.runs[0].difference == {"pointer": "/result/answer", "recorded": 42, "live": 43}


def test_an_outcome_of_a_run_that_was_never_announced_is_nothing() -> None:
    live = Live(loop().session())
    live.player.end_run(LiveRun("stranger", "root", Agent()), RunResult(), None)
    assert live.report().runs == ()


def test_output_messages_are_compared_where_there_is_no_result() -> None:
    said: Message = {**text("assistant", "hi"), "finish_reason": "stop"}
    assert _ended({"output": [0]}, RunResult(output=(said,))).report().verdict is Verdict.PASS
    other = _ended({"output": [0]}, RunResult(output=(text("assistant", "bye"),)))
    assert other.report().reasons == (
        "the outcome of root differs at /output/0/parts/0/content: recorded 'hi', now 'bye'",
    )


def test_an_outcome_that_was_not_recorded_is_not_compared() -> None:
    for recorded in ({}, {"status": "unfinished"}, {"result": "cut", "fidelity": {"result": "truncated"}}):
        report = _ended(recorded, RunResult(value="x")).report()
        assert (report.verdict, report.runs[0].outcome) == (Verdict.PASS, "not compared")


ERROR = {"status": "error", "error": {"category": "tool", "type": "builtins.ValueError", "message": "bad"}}


def test_the_recorded_error_is_the_recorded_outcome() -> None:
    assert _ended(ERROR, None, ValueError("bad")).report().verdict is Verdict.PASS


def test_another_error_or_none_or_a_new_one_fails() -> None:
    told_ = "the outcome of root differs at /error: recorded "
    assert _ended(ERROR, None, KeyError("x")).report().reasons == (
        told_ + "'builtins.ValueError', now \"builtins.KeyError: 'x'\"",
    )
    assert _ended(ERROR, RunResult()).report().reasons == (told_ + "'builtins.ValueError', now nothing",)
    assert _ended({}, None, ValueError("bad")).report().reasons == (told_ + "nothing, now 'builtins.ValueError: bad'",)


def test_another_status_fails() -> None:
    live = _ended({"status": "interrupted"}, RunResult(status=Status.OK))
    assert live.report().reasons == ("the outcome of root differs at /status: recorded 'interrupted', now 'ok'",)


@pytest.mark.parametrize("given", ["left to the code", "given"])
def test_what_a_caller_has_left_to_the_code_is_the_codes_when_it_is_replayed(given: str, tmp_path: Path) -> None:
    def agent(default: str, scene: Scene) -> str:
        @spanreel.run(agent="care")
        def answer(question: str, instructions: str = default) -> str:
            messages: Any = [{"role": "system", "content": instructions}, {"role": "user", "content": question}]
            with scene.client() as client:
                return client.chat.completions.create(model="gpt-5", messages=messages).choices[0].message.content or ""

        return answer("Where is it?", "Be brief.") if given == "given" else answer("Where is it?")

    scene = Scene(script(completion("Here.")))
    session = record(lambda: agent("Be brief.", scene), tmp_path)
    unchanged = play(session, lambda scene: agent("Be brief.", scene), scene)
    changed = play(session, lambda scene: agent("Be rude.", scene), scene)
    assert unchanged.verdict is Verdict.PASS, unchanged.reasons
    if given == "given":
        assert changed.verdict is Verdict.PASS
    else:
        assert changed.verdict is Verdict.FAIL
        assert "recorded 'Be brief.', now 'Be rude.'" in changed.reasons[0]


def test_something_where_nothing_was_recorded_to_come_out_fails() -> None:
    recorded = {"fidelity": {"result": "whole"}}
    assert _ended(recorded, RunResult(value=None)).report().verdict is Verdict.PASS
    assert _ended(recorded, RunResult(value="x")).report().reasons == (
        "the outcome of root differs at /result: recorded None, now 'x'",
    )


def test_an_object_that_says_nothing_of_itself_is_not_called_the_same() -> None:
    class Answer:
        """Without a text of its own."""

    live = Answer()
    recorded = {"result": [snapshot(live).value]}
    report = _ended(recorded, RunResult(value=[live])).report()
    assert (report.verdict, report.runs[0].outcome) == (Verdict.PASS, "not compared")
    assert _ended({"result": "Answer(1)"}, RunResult(value="Answer(1)")).report().runs[0].outcome == "same"


def test_the_same_error_with_another_text_fails() -> None:
    assert _ended(ERROR, None, ValueError("worse")).report().reasons == (
        "the outcome of root differs at /error/message: recorded 'bad', now 'worse'",
    )
    cut = {**ERROR, "fidelity": {"error": "truncated"}}
    assert _ended(cut, None, ValueError("worse")).report().verdict is Verdict.PASS
    where = {**ERROR, "error": {**ERROR["error"], "message": "no <Thing at 0x7f00aa>"}}  # type: ignore[dict-item]
    assert _ended(where, None, ValueError("no <Thing at 0x7f11bb>")).report().verdict is Verdict.PASS


def test_a_run_that_made_no_call_has_to_run_again() -> None:
    book = Book()
    run = book.run()
    book.tool(run, "a", {}, 1)
    book.run("root/helper#0", agent="helper", parent={"run": run["id"]})
    live = Live(book.session())
    root = live.run()
    live.call(root, "a", {})
    live.end(root)
    assert live.report().reasons == ("root/helper#0 of agent 'helper' was recorded and did not run",)
