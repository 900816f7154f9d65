"""What answers tools in a replay: the recording, fixed cases, the tools themselves; and what may never run."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

import spanreel
from kinds import Kind, Scene, hand_written, record, script
from spanreel.errors import ReplayRefused
from spanreel.replay.changing.change_files import parse_changes
from spanreel.replay.changing.tool_policies import NormalForm, ToolPolicies, choose, normalised
from spanreel.replay.judging.verdict import Report, Verdict
from spanreel.session import Session
from spanreel.session_files import write_session
from wire_server import calls, completion

pytestmark = pytest.mark.slow

ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


def search(query: str) -> str:
    """Look something up."""
    ran.append(f"search {query}")
    return f"found {query}"


def refund(order: str, amount: float = 10.0) -> str:
    """Pay back."""
    ran.append(f"refund {order}")
    return f"refunded {amount}"


def asking(*asked: tuple[str, dict[str, Any]]) -> Any:
    """A model that asks for these calls one by one, and then is done."""
    return script(*(calls((f"call_{n}", name, given)) for n, (name, given) in enumerate(asked)), completion("Done."))


TWO = asking(("search", {"query": "a"}), ("refund", {"order": "A"}))


def recorded(kind: Kind, tmp_path: Path, answer: Any = TWO) -> Session:
    session = record(lambda: kind(Scene(answer, [search, refund])), tmp_path)
    ran.clear()
    return session


def play(session: Session, kind: Kind, policy: dict[str, Any], answer: Any = TWO, **more: Any) -> Report:
    """Replay under policies; with another script the model is live, so that tools are asked something else."""
    changes = {"tool_policy": policy, **({} if answer is TWO else {"from_turn": 0}), **more}
    with spanreel.replay(session, changes=changes, check=False) as playing:
        kind(Scene(answer, [search, refund]))
    assert playing.report is not None
    return playing.report


def test_a_named_tool_that_passes_through_runs_once_and_is_told(kind: Kind, tmp_path: Path) -> None:
    report = play(recorded(kind, tmp_path), kind, {"tools": {"search": {"type": "passthrough"}}})
    assert ran == ["search a"]
    assert report.verdict is Verdict.PASS, report.reasons
    assert report.live_tools == ("tool call 'search' of root ran for real",) or "search" in report.live_tools[0]
    assert (report.tool_calls.live, report.tool_calls.matched) == (1, 2)


def test_09_without_a_policy_nothing_runs(kind: Kind, tmp_path: Path) -> None:
    report = play(recorded(kind, tmp_path), kind, {})
    assert (ran, report.verdict) == ([], Verdict.PASS)


@pytest.mark.parametrize(
    "policy",
    [
        {"default": {"type": "passthrough"}},
        {"tools": {"re*": {"type": "passthrough", "side_effects": True}}},
        {"tools": {"refund": {"type": "passthrough"}}},
        {"tools": {"refund": {"type": "history", "on_miss": "passthrough"}}},
    ],
)
def test_12_what_changes_the_world_does_not_run_unless_it_is_named_and_allowed(
    kind: Kind, policy: dict[str, Any], tmp_path: Path
) -> None:
    other = asking(("search", {"query": "a"}), ("refund", {"order": "B"}))
    report = play(recorded(kind, tmp_path), kind, {"side_effects": ["refund"], **policy}, other)
    assert not any(one.startswith("refund") for one in ran)
    assert report.verdict is Verdict.FAIL
    assert "may not run: it changes something in the world" in report.reasons[0]


def test_what_changes_the_world_runs_where_it_is_named_and_allowed(kind: Kind, tmp_path: Path) -> None:
    policy = {"side_effects": ["refund"], "tools": {"refund": {"type": "passthrough", "side_effects": True}}}
    report = play(recorded(kind, tmp_path), kind, policy)
    assert ran == ["refund A"]
    assert len(report.live_tools) == 1


def test_fixed_cases_answer_by_what_they_match(kind: Kind, tmp_path: Path) -> None:
    cases = [
        {"match": {"query": "z"}, "result": "not this"},
        {"match": {"query": "a"}, "match_mode": "subset", "result": "fixed"},
    ]
    session = recorded(kind, tmp_path)
    seen: list[str] = []

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        seen.extend(str(message["content"]) for message in body["messages"] if message["role"] == "tool")
        answered: dict[str, Any] = TWO(body)
        return answered

    report = play(session, kind, {"tools": {"search": {"type": "static", "cases": cases}}}, answer)
    assert ran == []
    assert "fixed" in seen[0]
    assert report.verdict is Verdict.PASS, report.reasons
    assert report.tiers["static"] == 1


def test_a_call_that_no_case_fits_is_a_miss(kind: Kind, tmp_path: Path) -> None:
    policy = {"tools": {"search": {"type": "static", "cases": [{"match": {"query": "z"}, "result": 1}]}}}
    report = play(recorded(kind, tmp_path), kind, policy)
    assert (ran, report.verdict) == ([], Verdict.FAIL)
    assert "fits none of the policy's cases" in report.reasons[0]


def test_a_genuine_miss_may_be_told_to_the_agent_which_leaves_a_doubt(kind: Kind, tmp_path: Path) -> None:
    policy = {"default": {"type": "history", "on_miss": "error_result"}}
    other = asking(("search", {"query": "b"}), ("refund", {"order": "A"}))
    report = play(recorded(kind, tmp_path), kind, policy, other)
    assert ran == []
    assert "recorded 'a', now 'b'" in " ".join(report.reasons)
    assert report.verdict is Verdict.FAIL  # the recorded search was not made
    assert report.tool_calls.matched == 1


def test_a_genuine_miss_may_pass_through_which_leaves_a_doubt(kind: Kind, tmp_path: Path) -> None:
    policy = {"default": {"type": "history", "on_miss": "passthrough"}}
    other = asking(("search", {"query": "a"}), ("refund", {"order": "A"}), ("search", {"query": "b"}))
    report = play(recorded(kind, tmp_path), kind, policy, other)
    assert ran == ["search b"]
    assert report.verdict is Verdict.INCONCLUSIVE, report.reasons
    assert "ran for real, since it is not in the recording" in report.reasons[0]


def test_what_comes_after_a_changed_write_is_a_doubt(kind: Kind, tmp_path: Path) -> None:
    session = recorded(kind, tmp_path, asking(("refund", {"order": "A"}), ("search", {"query": "a"})))
    policy = {
        "side_effects": ["refund"],
        "tools": {"refund": {"type": "static", "cases": [{"result": "refused"}]}},
    }
    report = play(session, kind, policy, asking(("refund", {"order": "A"}), ("search", {"query": "a"})))
    assert report.verdict is Verdict.INCONCLUSIVE, report.reasons
    assert "after a write that was not as recorded" in report.reasons[0]
    assert len(report.stale) == 1


def test_a_normal_form_makes_calls_equal_and_is_told(kind: Kind, tmp_path: Path) -> None:
    session = recorded(kind, tmp_path)
    other = asking(("search", {"query": " a "}), ("refund", {"order": "A"}))
    policy = {"normal_forms": {"search": {"strip": ["/query"]}}}
    report = play(session, kind, policy, other)
    assert report.verdict is Verdict.PASS, report.reasons
    assert report.tiers["normalised"] == 1
    assert play(session, kind, {}, other).verdict is Verdict.FAIL


def test_a_wider_scope_finds_calls_of_other_sessions(kind: Kind, tmp_path: Path) -> None:
    session = recorded(kind, tmp_path)
    (tmp_path / "other").mkdir()
    other = asking(("search", {"query": "b"}), ("refund", {"order": "A"}))
    file = tmp_path / "other.json"
    file.write_text(write_session(recorded(kind, tmp_path / "other", other)))
    third = asking(("search", {"query": "a"}), ("refund", {"order": "A"}), ("search", {"query": "b"}))
    policy = {"default": {"type": "history", "scope": "agent"}, "sessions": [str(file)]}
    report = play(session, kind, policy, third)
    assert ran == []
    assert report.verdict is Verdict.PASS, report.reasons
    assert report.tiers["elsewhere"] == 1


def test_a_tool_that_passes_through_may_reach_the_network_and_no_other_may(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        @spanreel.tool()
        def dial(times: int) -> str:
            socket.create_connection(("127.0.0.1", port)).close()
            return f"dialled {times}"

        def work() -> None:
            with spanreel.run(agent="demo"):
                dial(1)

        session = record(work, tmp_path)
        with spanreel.replay(session, changes={"tool_policy": {"tools": {"dial": {"type": "passthrough"}}}}) as playing:
            work()
        assert playing.report is not None
        assert playing.report.tool_calls.live == 1


def test_the_policy_of_kitaru_is_read_as_it_is() -> None:
    kitaru = {
        "default": {"type": "history", "scope": "baseline", "on_miss": "fail"},
        "tools": {
            "clock": {"type": "passthrough"},
            "refund": {
                "type": "static",
                "on_miss": "error_result",
                "cases": [{"match": {"id": "1"}, "match_mode": "exact", "result": "ok"}],
            },
        },
    }
    policies = parse_changes({"tool_policy": kitaru}, "policy").tool_policy
    assert choose(policies, "clock", {}).policy.type == "passthrough"
    assert choose(policies, "other", {}).policy.type == "history"
    static = choose(policies, "refund", {}).policy
    assert [case.fits({"id": "1"}) for case in static.cases] == [True]  # type: ignore[union-attr]
    with pytest.raises(ReplayRefused, match="llm"):
        parse_changes({"tool_policy": {"tools": {"x": {"type": "llm", "model": "m"}}}}, "policy")


def test_rules_come_before_names_and_names_before_globs() -> None:
    policies = ToolPolicies.model_validate(
        {
            "rules": [{"tool": "get_*", "when": {"/city": "Rome"}, "policy": {"type": "static"}}],
            "tools": {"get_*": {"type": "passthrough"}, "get_time": {"type": "history", "on_miss": "error_result"}},
        }
    )
    assert choose(policies, "get_time", {"city": "Rome"}).policy.type == "static"
    named = choose(policies, "get_time", {"city": "Oslo"})
    assert (named.policy.type, named.named) == ("history", True)
    glob = choose(policies, "get_weather", {"city": "Oslo"})
    assert (glob.policy.type, glob.named) == ("passthrough", False)


def test_a_normal_form_ignores_reorders_and_strips_by_pointers() -> None:
    form = NormalForm(ignore=("/id", "/items/*/at"), unordered=("/tags",), strip=("/q",))
    one = {"id": 1, "items": [{"at": 1, "n": 1}], "tags": ["b", "a"], "q": " x "}
    other = {"id": 2, "items": [{"at": 2, "n": 1}], "tags": ["a", "b"], "q": "x"}
    assert normalised(form, one) == normalised(form, other)
    assert normalised(form, one) != normalised(form, {**other, "items": []})


def test_a_policy_that_fits_nothing_that_was_recorded_is_told(tmp_path: Path) -> None:
    session = recorded(hand_written, tmp_path)
    changes = {
        "tool_policy": {
            "default": {"type": "history", "scope": "agent"},
            "tools": {"refnud": {"type": "passthrough"}, "no_*": {"type": "history"}},
        }
    }
    with spanreel.replay(session, changes=changes, check=False) as playing:
        pass
    assert playing.report is not None
    assert playing.report.notes == (
        "no tool 'no_*' was recorded, for which there is a policy",
        "no tool 'refnud' was recorded, for which there is a policy",
        "tool_policy.sessions names no file, so that history is looked for in this session alone",
    )


@pytest.mark.parametrize("where", ["policy", "code", "nowhere"])
def test_a_pure_tool_gives_its_last_result_once_more_and_no_other_does(where: str, tmp_path: Path) -> None:
    got: list[str] = []

    @spanreel.tool(pure=where == "code")
    def look(name: str) -> str:
        ran.append(name)
        return f"{name} {len(ran)}"

    def scene(times: int) -> Scene:
        return Scene(script(completion("Done.")), before=lambda: got.extend(look("a") for _ in range(times)))

    session = record(lambda: hand_written(scene(2)), tmp_path)
    ran.clear()
    got.clear()
    changes = {"tool_policy": {"pure": ["lo*"]}} if where == "policy" else None
    with spanreel.replay(session, changes=changes, check=False) as playing:
        hand_written(scene(4))
    assert ran == []
    report = playing.report
    assert report is not None
    if where == "nowhere":
        assert got == ["a 1", "a 2"]
        assert "is made once more than it was recorded" in report.reasons[0]
        return
    assert got == ["a 1", "a 2", "a 2", "a 2"]
    assert (report.verdict, report.reasons) == (Verdict.PASS, ())
    assert report.tiers["repeated"] == 2
    assert (report.tool_calls.recorded, report.tool_calls.matched) == (2, 2)
