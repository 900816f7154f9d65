"""A replay with one thing changed: the model goes live from the first call that is touched, the tools do not."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import openai
import pytest

import spanreel
from kinds import Kind, Scene, hand_written, record, script
from kinds import play as play_offline
from spanreel import testing
from spanreel.errors import ReplayRefused
from spanreel.replay.changing.change_files import from_options, parse_changes, read_changes
from spanreel.replay.changing.changes import Changes, Override, apply
from spanreel.replay.judging.verdict import Report, Verdict
from spanreel.session import Session
from wire_server import calls, completion

ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


def status(order: str) -> str:
    """Pending, then shipped."""
    ran.append("status")
    return "shipped" if len(ran) > 1 else "pending"


POLLS = script(
    calls(("call_1", "status", {"order": "A"})),
    calls(("call_2", "status", {"order": "A"})),
    completion("It has shipped."),
)


def recorded(kind: Kind, tmp_path: Path) -> Session:
    session = record(lambda: kind(Scene(POLLS, [status])), tmp_path)
    ran.clear()
    return session


def play(session: Session, kind: Kind, scene: Scene, changes: Any) -> Report:
    """Replay with changes; nothing may run."""
    with spanreel.replay(session, changes=changes, check=False) as playing:
        kind(scene)
    assert ran == []
    assert playing.report is not None
    return playing.report


def asked(scene: Scene) -> list[dict[str, Any]]:
    return [json.loads(body) for body in scene.asked]


def test_13_another_model_answers_every_call_and_the_tools_come_from_the_recording(kind: Kind, tmp_path: Path) -> None:
    session = recorded(kind, tmp_path)
    scene = Scene(POLLS, [status])
    report = play(session, kind, scene, {"overrides": [{"model": "v2"}]})
    assert [body["model"] for body in asked(scene)] == ["v2"] * 3
    assert report.verdict is Verdict.PASS, report.reasons
    assert (report.model_calls.live, report.model_calls.replaced, report.model_calls.matched) == (3, 3, 0)
    assert (report.tool_calls.matched, report.tool_calls.live) == (2, 0)
    assert report.changed == ("root: model v2",)
    assert report.tokens["live"] == report.tokens["recorded"]


def test_a_shorter_path_of_another_model_leaves_recorded_calls_unused(kind: Kind, tmp_path: Path) -> None:
    session = recorded(kind, tmp_path)
    scene = Scene(script(calls(("call_9", "status", {"order": "A"})), completion("No idea.")), [status])
    report = play(session, kind, scene, {"overrides": [{"model": "v2"}]})
    assert report.verdict is Verdict.FAIL
    assert report.reasons == ("tool call 2 of root ('status') was recorded and was not made",)
    assert len(report.unused) == 1


def test_a_tool_call_that_was_never_recorded_does_not_run(kind: Kind, tmp_path: Path) -> None:
    session = recorded(kind, tmp_path)
    scene = Scene(script(calls(("call_9", "status", {"order": "B"})), completion("Fine.")), [status])
    report = play(session, kind, scene, {"overrides": [{"settings": {"temperature": 0.5}}]})
    assert report.verdict is Verdict.FAIL
    assert "diverged at /order: recorded 'A', now 'B'" in report.reasons[0]


def test_another_wording_is_told_and_fails_nothing(kind: Kind, tmp_path: Path) -> None:
    session = recorded(kind, tmp_path)
    answers = (calls(("x", "status", {"order": "A"})), calls(("y", "status", {"order": "A"})), completion("Shipped!"))
    report = play(session, kind, Scene(script(*answers), [status]), {"overrides": [{"instructions": "Be brisk."}]})
    assert report.verdict is Verdict.PASS, report.reasons
    assert "other instructions" in report.changed[0]
    if any(run.agent for run in report.runs):
        assert "worded differently" in report.changed[1]
        assert [run.outcome for run in report.runs] == ["reworded"]


def test_instructions_take_the_place_of_the_recorded_ones(kind: Kind, tmp_path: Path) -> None:
    session = recorded(kind, tmp_path)
    scene = Scene(POLLS, [status])
    play(session, kind, scene, {"overrides": [{"instructions": "Speak like a pirate."}]})
    bodies = asked(scene)
    assert bodies
    for body in bodies:
        system = [message for message in body["messages"] if message["role"] in ("system", "developer")]
        assert [message["content"] for message in system] == ["Speak like a pirate."]


def test_settings_are_merged_with_the_callers(kind: Kind, tmp_path: Path) -> None:
    session = recorded(kind, tmp_path)
    scene, plain = Scene(POLLS, [status]), Scene(POLLS, [status])
    kind(plain)
    ran.clear()
    play(session, kind, scene, {"overrides": [{"settings": {"temperature": 0.5, "seed": 7}}]})
    for before, after in zip(asked(plain), asked(scene), strict=True):
        assert after == {**before, "temperature": 0.5, "seed": 7}


def test_an_override_that_changes_nothing_leaves_the_replay_offline(kind: Kind, tmp_path: Path) -> None:
    session = recorded(kind, tmp_path)
    model = next(session.roots()[0].model_calls()).model
    scene = Scene(POLLS, [status])
    report = play(session, kind, scene, {"overrides": [{"model": model}]})
    assert (report.verdict, scene.asked) == (Verdict.PASS, [])


def test_a_fork_answers_from_the_recording_up_to_a_turn(kind: Kind, tmp_path: Path) -> None:
    session = recorded(kind, tmp_path)
    scene = Scene(POLLS, [status])
    report = play(session, kind, scene, {"from_turn": 2})
    assert len(scene.asked) == 1
    assert report.verdict is Verdict.PASS, report.reasons
    assert (report.model_calls.matched, report.model_calls.live, report.model_calls.replaced) == (2, 1, 1)


def test_what_is_changed_at_a_fork_counts_from_there_on(kind: Kind, tmp_path: Path) -> None:
    session = recorded(kind, tmp_path)
    scene = Scene(POLLS, [status])
    report = play(session, kind, scene, {"from_turn": 2, "overrides": [{"model": "v2", "settings": {"seed": 7}}]})
    (body,) = asked(scene)
    assert (body["model"], body["seed"]) == ("v2", 7)
    assert report.verdict is Verdict.PASS, report.reasons
    assert (report.model_calls.matched, report.model_calls.live, report.model_calls.replaced) == (2, 1, 1)


def test_an_edited_result_is_given_and_the_model_is_live_from_there_on(kind: Kind, tmp_path: Path) -> None:
    session = recorded(kind, tmp_path)
    second = list(session.roots()[0].tool_calls())[1]
    scene = Scene(POLLS, [status])
    report = play(session, kind, scene, {"edits": [{"call": second.id, "value": "lost"}]})
    (body,) = asked(scene)
    assert [message["content"] for message in body["messages"] if message["role"] == "tool"] == ["pending", "lost"]
    assert report.verdict is Verdict.PASS, report.reasons
    assert report.changed == ("tool call 2 of root ('status') was answered with another answer than the recorded one",)


def test_an_edited_answer_of_a_model_ends_the_run_early(kind: Kind, tmp_path: Path) -> None:
    session = recorded(kind, tmp_path)
    first = next(session.roots()[0].model_calls())
    scene = Scene(POLLS, [status])
    with spanreel.replay(
        session, changes={"edits": [{"call": first.id, "value": "I give up."}]}, check=False
    ) as playing:
        assert kind(scene) == "I give up."
    assert playing.report is not None
    assert playing.report.verdict is Verdict.FAIL
    assert scene.asked == []


def test_another_input_takes_the_place_of_the_recorded_one(kind: Kind, tmp_path: Path) -> None:
    session = recorded(kind, tmp_path)
    scene = Scene(POLLS, [status])
    with spanreel.replay(session, changes={"input": "Where is it?"}, check=False) as playing:
        assert playing.run_input == "Where is it?"
        kind(Scene(POLLS, [status], question=str(playing.run_input), asked=scene.asked))
    assert playing.report is not None
    assert playing.report.verdict is Verdict.PASS, playing.report.reasons
    users = [message["content"] for body in asked(scene) for message in body["messages"] if message["role"] == "user"]
    assert users == ["Where is it?"] * 3


def test_a_live_model_is_reached_over_the_network_and_nothing_else_is(tmp_path: Path) -> None:
    with testing.ScriptedProvider([testing.text("Hi."), testing.text("Hello.")]) as provider:

        def work() -> None:
            openai.OpenAI(base_url=provider.base_url, api_key="none").chat.completions.create(
                model="small", messages=[{"role": "user", "content": "Hi?"}]
            )

        session = record(work, tmp_path)
        with spanreel.replay(session, changes={"overrides": [{"model": "large"}]}) as playing:
            work()
        assert playing.report is not None
        assert [one.request.model for one in provider.requests if one.request] == ["small", "large"]
        assert playing.report.model_calls.live == 1


def test_another_place_is_asked_where_a_base_url_says_so(tmp_path: Path) -> None:
    with testing.ScriptedProvider([testing.text("Hi.")]) as one, testing.ScriptedProvider([testing.text("Hi.")]) as two:

        def work() -> None:
            openai.OpenAI(base_url=one.base_url, api_key="none").chat.completions.create(
                model="small", messages=[{"role": "user", "content": "Hi?"}]
            )

        session = record(work, tmp_path)
        with spanreel.replay(session, changes={"overrides": [{"base_url": two.base_url}]}):
            work()
        assert (len(one.requests), len(two.requests)) == (1, 1)


def test_only_the_named_model_of_an_agent_that_asks_several_is_changed(tmp_path: Path) -> None:
    with testing.ScriptedProvider([testing.text("Hi.")] * 6) as provider:

        def work() -> None:
            client = openai.OpenAI(base_url=provider.base_url, api_key="none")
            with spanreel.run(agent="demo"):
                for model in ("main", "guard"):
                    client.chat.completions.create(model=model, messages=[{"role": "user", "content": "Hi?"}])

        session = record(work, tmp_path)
        for override in ({"model": "new"}, {"model": "new", "of_model": "guard"}):
            with spanreel.replay(session, changes={"overrides": [override]}):
                work()
        assert [one.request.model for one in provider.requests if one.request] == [
            "main",
            "guard",
            "new",
            "guard",
            "new",
        ]


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"overrides": [{"settings": {"temperature": "hot"}}]}, "overrides.0.settings.temperature"),
        ({"overrides": [{"settings": {"temperature": 3}}]}, "overrides.0.settings.temperature"),
        ({"overrides": [{"settings": {"max_tokens": 0}}]}, "overrides.0.settings.max_tokens"),
        ({"overrides": [{"settings": {"warmth": 1}}]}, "overrides.0.settings.warmth"),
        ({"overrides": [{"model": ""}]}, "overrides.0.model"),
        ({"overrides": [{"base_url": "nowhere"}]}, "overrides.0.base_url"),
        ({"from_turn": -1}, "from_turn"),
        ({"whatever": 1}, "whatever"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(value: dict[str, Any], place: str) -> None:
    with pytest.raises(ReplayRefused, match=place.replace(".", r"\.")):
        parse_changes(value, "changes")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"overrides": [{"settings": {"temperature": 3}}]}, "less than or equal to 2, not 3"),
        ({"overrides": [{"settings": {"temperature": "hot"}}]}, "a number is expected, not 'hot'"),
        ({"overrides": [{"settings": {"max_tokens": True}}]}, "a whole number is expected, not True"),
        ({"overrides": [{"settings": {"warmth": 1}}]}, "warmth: unknown; known here: frequency_penalty, "),
        ({"overrides": {"model": "v2"}}, "overrides: a list is expected, not {'model': 'v2'}"),
        ({"overrides": [{"tools": [{"description": "x"}]}]}, r"overrides.0.tools.0.name: it is missing"),
        ({"whatever": 1}, "whatever: unknown; known here: edits, freeze, "),
        ({"pace": "yes"}, "pace: true or false is expected, not 'yes'"),
        ({"volatile": [{"at": []}]}, r"volatile.0.at: a list that is not empty is expected, not \[\]$"),
        ({"volatile": [{"at": ["x"]}]}, r"volatile.0.at.0: 'x' is no JSON pointer[^;]*$"),
        ([], r"a table \(an object\) is expected, not \[\]"),
        ({"tool_policy": {"default": {"on_miss": "fail"}}}, "type is missing: one of history, static, passthrough"),
        ({"tool_policy": {"default": {"type": "guess"}}}, "type 'guess' is none of history, static, passthrough"),
        ({"tool_policy": {"default": {"type": "llm", "model": "m"}}}, "answer with type 'history', or 'static'"),
        (
            {"tool_policy": {"tools": {"t": {"type": "static", "case": []}}}},
            "unknown; known here: cases, on_miss, type",
        ),
    ],
)
def test_a_refusal_says_what_stands_there_and_what_may(value: Any, said: str) -> None:
    with pytest.raises(ReplayRefused, match=said):
        parse_changes(value, "changes")


def test_a_replay_as_kitaru_is_asked_for_one_is_read() -> None:
    asked: dict[str, Any] = {
        "baseline_session_id": "0b9c",
        "agent_version_id": None,
        "override": {
            "model": {"old": "new", "other": "newer"},
            "system_prompt": "Be brief.",
            "prompt": "Go on.",
            "model_params": {"temperature": 0, "topP": 0.5, "maxOutputTokens": 7, "stopSequences": ["x"]},
        },
        "tool_policy": {"default": {"type": "history", "scope": "baseline", "on_miss": "fail"}},
        "evaluators": [],
        "baseline_evaluation_mode": "none",
    }
    settings = {"temperature": 0, "top_p": 0.5, "max_tokens": 7, "stop_sequences": ["x"]}
    assert parse_changes(asked, "kitaru.json") == parse_changes(
        {
            "input": "Go on.",
            "overrides": [
                {"instructions": "Be brief.", "settings": settings},
                {"of_model": "old", "model": "new"},
                {"of_model": "other", "model": "newer"},
            ],
        },
        "ours",
    )
    assert parse_changes({"override": {"model": "new"}}, "x").overrides[0].model == "new"
    refused: list[Any] = [{"override": {"temperature": 1}}, {"override": [1]}, {"override": {}, "evaluators": [{}]}]
    for wrong in refused:
        with pytest.raises(ReplayRefused, match=r"kitaru\.json: (override|evaluators): "):
            parse_changes(wrong, "kitaru.json")


def test_only_models_that_may_be_asked_are_asked_live(tmp_path: Path) -> None:
    session = recorded(hand_written, tmp_path)
    changes = {"models": ["cheap-*"], "overrides": [{"model": "dear"}]}
    with pytest.raises(ReplayRefused, match="'dear' may not be asked live; `models` allows: cheap-"):
        spanreel.replay(session, changes=changes).__enter__()
    scene = Scene(POLLS, [status])
    report = play(session, hand_written, scene, {"models": ["cheap-*"], "from_turn": 1})
    assert scene.asked == []
    assert report.verdict is Verdict.FAIL
    assert "may not be asked live: `models` allows others than 'gpt-5'" in report.reasons[0]


def test_an_override_of_a_model_that_was_not_asked_and_two_edits_of_a_call_are_refused(tmp_path: Path) -> None:
    session = recorded(hand_written, tmp_path)
    call = next(session.roots()[0].model_calls()).id
    for changes, said in (
        ({"overrides": [{"of_model": "gtp-5", "model": "v2"}]}, "no model 'gtp-5' was recorded at root; known: gpt-5"),
        ({"edits": [{"call": call, "value": "a"}, {"call": call, "value": "b"}]}, "is edited more than once"),
    ):
        with pytest.raises(ReplayRefused, match=said):
            spanreel.replay(session, changes=changes).__enter__()


def test_what_was_not_recorded_cannot_be_changed(tmp_path: Path) -> None:
    session = recorded(hand_written, tmp_path)
    for changes, said in (
        ({"overrides": [{"agent": "root/nobody#0", "model": "v2"}]}, "no agent 'root/nobody#0' was recorded"),
        ({"edits": [{"call": "nothing", "value": 1}]}, "no call 'nothing' was recorded"),
        ({"edits": [{"call": next(session.roots()[0].model_calls()).id, "value": 1}]}, "is a int, expected text"),
    ):
        with pytest.raises(ReplayRefused, match=said), spanreel.replay(session, changes=changes):
            pass


def test_an_edit_by_the_name_of_a_tool_is_told_the_ids_of_its_calls(tmp_path: Path) -> None:
    session = recorded(hand_written, tmp_path)
    call = next(call for run in session.runs for call in run.tool_calls())
    edits = {"edits": [{"call": call.name, "value": 1}]}
    with pytest.raises(ReplayRefused, match=f"is the name of a tool.*{call.id} is tool call 1 of root"):
        spanreel.replay(session, changes=edits).__enter__()


def test_a_fixed_answer_that_the_recorded_model_was_not_told_is_noted(tmp_path: Path) -> None:
    def look(order: str) -> str:
        """Look an order up."""
        return "late"

    scene = Scene(script(calls(("c1", "look", {"order": "A"})), completion("Late.")), [look])
    session = record(lambda: hand_written(scene), tmp_path)
    for result, noted in (("late", False), ("on its way", True)):
        policy = {"tools": {"look": {"type": "static", "cases": [{"result": result}]}}}
        report = play_offline(session, hand_written, scene, changes={"tool_policy": policy})
        assert report.verdict is (Verdict.FAIL if noted else Verdict.PASS), report.reasons
        assert any("to which no recorded model has an answer" in note for note in report.notes) is noted


def test_a_file_and_options_say_the_same(tmp_path: Path) -> None:
    file = tmp_path / "changes.toml"
    file.write_text(
        'from_turn = 1\n[[overrides]]\nmodel = "v2"\nagent = "root"\n[overrides.settings]\ntemperature = 0.5\n'
    )
    (tmp_path / "pirate.txt").write_text("Arr.")
    given: dict[str, Any] = {
        "model": None,
        "set": [],
        "instructions": None,
        "base_url": None,
        "agent": "root",
        "input": None,
        "from_turn": None,
        "edit": [],
        "changes": None,
        "pace": False,
    }
    read = from_options({**given, "changes": str(file)})
    assert read == read_changes(file)
    assert read == from_options({**given, "model": "v2", "set": ["temperature=0.5"], "from_turn": 1})
    named = from_options({**given, "model": "old=new", "instructions": str(tmp_path / "pirate.txt"), "edit": ["c=[1]"]})
    assert named.overrides == (Override(of_model="old", model="new", instructions="Arr."),)
    assert named.edited == {"c": [1]}
    assert not from_options(given)
    with pytest.raises(ReplayRefused, match="is not NAME=VALUE with one of the settings"):
        from_options({**given, "set": ["warmth=1"]})


@pytest.mark.parametrize("protocol", ["openai_chat", "openai_responses", "anthropic_messages"])
def test_every_protocol_writes_what_was_changed_and_keeps_the_rest(protocol: str) -> None:
    from spanreel.model import Operation
    from spanreel.protocols import protocol_named

    wire = protocol_named(protocol)
    bodies: dict[str, dict[str, Any]] = {
        "openai_chat": {
            "model": "a",
            "messages": [{"role": "system", "content": "Old."}, {"role": "user", "content": "Hi"}],
            "max_completion_tokens": 5,
            "odd": 1,
        },
        "openai_responses": {
            "model": "a",
            "instructions": "Old.",
            "input": [{"role": "user", "content": "Hi"}],
            "max_output_tokens": 5,
            "odd": 1,
        },
        "anthropic_messages": {
            "model": "a",
            "system": [{"type": "text", "text": "Old.", "cache_control": {"type": "ephemeral"}}],
            "messages": [{"role": "user", "content": "Hi"}],
            "max_tokens": 5,
            "odd": 1,
        },
    }
    body = bodies[protocol]
    request = wire.read_request(json.dumps(body).encode(), Operation.CHAT)
    override = Override(model="b", instructions="New.", settings={"temperature": 0.5, "max_tokens": 9})
    after = json.loads(wire.write_request(apply([override], request)))
    text = json.dumps(after)
    assert (after["model"], after["temperature"], after["odd"]) == ("b", 0.5, 1)
    assert "New." in text
    assert "Old." not in text
    assert [value for key, value in after.items() if key.startswith("max_")] == [9]
    assert Changes(overrides=(override,)).describe()[0] == "root: model b"


def test_a_paced_stream_takes_the_time_that_it_took(tmp_path: Path) -> None:
    slow = testing.text("One two three four.", hold=100)
    with testing.ScriptedProvider([slow]) as provider:
        address = provider.base_url

        def work() -> float:
            client = openai.OpenAI(base_url=address, api_key="none")
            started = time.monotonic()
            asked = client.chat.completions.create(
                model="small", messages=[{"role": "user", "content": "Hi?"}], stream=True
            )
            assert list(asked)
            return time.monotonic() - started

        session = record(work, tmp_path)
    with spanreel.replay(session, changes={"pace": True}):
        took = work()
    assert took > 0.2  # a lower bound: the rest takes time too, more on a slow machine
