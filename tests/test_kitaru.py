"""Kitaru's session JSONL, in and out; and session documents, which convert to themselves."""

from __future__ import annotations

import argparse
import copy
import json
from pathlib import Path
from typing import Any

import pytest

from conftest import cases
from golden_sessions import GOLDEN, document
from otlp_lines import asks, called, only_run, said, told
from spanreel.model import Fidelity, Status
from spanreel.session import Session
from spanreel.session_files import write_session
from spanreel_collector.commands.convert import CONVERT
from spanreel_collector.conversion.account import Account
from spanreel_collector.conversion.convert import Conversion, convert, convert_files
from spanreel_collector.conversion.kitaru_jsonl import write_line, write_record
from spanreel_collector.sources.documents import read_line

DUMPS = ("spanreel", "genai", "openinference", "vercel", "vercel_otel", "mastra", "claude_code", "claude_code_logs")
ORDER = called("order", {"dish": "soup"}, "call_1")


def read(*texts: str) -> Conversion:
    return convert(read_line(text.encode(), f"x:{number}") for number, text in enumerate(texts, 1))


def imported(*records: dict[str, Any]) -> list[Session]:
    conversion = read(*(json.dumps(one) for one in records))
    assert conversion.faults == ()
    return list(conversion.sessions)


def refused(record: dict[str, Any], **also: Any) -> str:
    conversion = read(json.dumps({**record, **also}))
    assert conversion.sessions == ()
    (fault,) = conversion.faults
    return fault.reason


def node(index: Any, kind: str, parent: Any = None, **also: Any) -> dict[str, Any]:
    times = {"started_at": f"2026-11-29T10:00:0{index}Z", "ended_at": f"2026-11-29T10:00:0{index}.500Z"}
    base = {"index": index, "node_type": kind, "name": kind, "status": "completed", "inputs": None, "outputs": None}
    return {**base, **({} if parent is None else {"parent_index": parent}), "attributes": {}, **times, **also}


def record(*nodes: dict[str, Any], **also: Any) -> dict[str, Any]:
    base = {"external_id": "inn:7", "status": "completed", "inputs": "Soup!", "outputs": "Here.", "nodes": list(nodes)}
    return {**base, **also}


def ordered() -> dict[str, Any]:
    """A session of another writer's: two model calls in OpenAI's form, and a tool call."""
    asked = {"id": "call_1", "type": "function", "function": {"name": "order", "arguments": '{"dish": "soup"}'}}
    context = [{"role": "system", "content": "Serve."}, {"role": "user", "content": "Soup!"}]
    answer = {"role": "assistant", "content": None, "tool_calls": [asked]}
    later = [*context, answer, {"role": "tool", "tool_call_id": "call_1", "content": "served"}]
    return record(
        node(0, "span"),
        node(
            1,
            "llm_call",
            0,
            inputs={"messages": context},
            outputs=answer,
            requested_model="gpt-5",
            model="gpt-5-2026",
            model_provider="openai",
            tokens={"input_tokens": 10, "output_tokens": 3, "cached_input_tokens": 4},
            cost=0.5,
            model_params={"temperature": 0.5},
        ),
        node(2, "tool_call", 1, tool_name="order", inputs={"dish": "soup"}, outputs="served"),
        node(3, "llm_call", 0, inputs={"messages": later}, outputs={"role": "assistant", "content": "Here."}),
    )


def messages(one: Session, indexes: list[int]) -> list[dict[str, Any]]:
    return [{"role": one.messages[index].role, "parts": one.messages[index].parts} for index in indexes]


def without_source(session: Session) -> dict[str, Any]:
    return {**document(session), "source": None}


# -- out, and back ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DUMPS)
@pytest.mark.parametrize("write", [write_line, write_session], ids=["kitaru", "session"])
def test_a_session_comes_back_whole(name: str, write: Any) -> None:
    sessions = convert_files([str(GOLDEN / f"{name}.otlp.jsonl")]).sessions
    back = read(*(write(one) for one in sessions))
    assert back.faults == ()
    assert [without_source(one) for one in back.sessions] == [without_source(one) for one in sessions]


@pytest.mark.slow
def test_sessions_of_all_dialects_come_back_whole() -> None:
    for case in sorted(cases("dialects").iterdir()):
        sessions = convert_files([str(file) for file in sorted(case.glob("*.jsonl"))]).sessions
        back = read(*(write_line(one) for one in sessions))
        assert [without_source(one) for one in back.sessions] == [without_source(one) for one in sessions], case.name


def test_what_is_written_is_what_kitaru_reads() -> None:
    session_keys = {
        *("status", "name", "input_text_selector", "output_text_selector", "inputs", "outputs", "error"),
        *("started_at", "ended_at", "external_id", "metadata", "framework", "nodes"),
    }
    node_keys = {
        *("index", "parent_index", "links", "external_id", "trace_id", "node_type", "name", "status", "error"),
        *("started_at", "ended_at", "input_text_selector", "output_text_selector", "system_prompt_selector"),
        *("reasoning_selectors", "inputs", "outputs", "requested_model", "model", "model_provider", "tokens", "cost"),
        *("model_params", "tool_name", "subagent_id", "attributes", "metadata"),
    }
    for name in DUMPS:
        for one in convert_files([str(GOLDEN / f"{name}.otlp.jsonl")]).sessions:
            written = write_record(one)
            assert {"status", "inputs", "outputs", "external_id", "nodes"} <= set(written) <= session_keys
            for found in written["nodes"]:
                required = {"index", "node_type", "name", "status", "inputs", "outputs", "attributes"}
                assert required <= set(found) <= node_keys
                assert found["status"] in ("completed", "failed", "in_progress")
                assert found["node_type"] in ("llm_call", "tool_call", "subagent_call", "span")
            ids = [found["external_id"] for found in written["nodes"]]
            assert len(set(ids)) == len(ids)


def test_tool_calls_stand_under_the_model_call_that_asked_and_selectors_point_at_texts() -> None:
    (first, *_) = convert_files([str(GOLDEN / "vercel.otlp.jsonl")]).sessions
    written = write_record(first)
    nodes = {found["index"]: found for found in written["nodes"]}
    for found in nodes.values():
        if found["node_type"] == "tool_call":
            assert nodes[found["parent_index"]]["node_type"] == "llm_call"
    model = next(found for found in nodes.values() if found["node_type"] == "llm_call")
    assert _pointed(model["inputs"], model["system_prompt_selector"]) == "You are a librarian."
    assert _pointed(model["inputs"], model["input_text_selector"]) == "Reserve Momo for me."
    assert _pointed(model["outputs"], model["output_text_selector"]) == "Let me look."
    assert model["tokens"] == {"input_tokens": 60, "output_tokens": 12}
    failed = next(found for found in nodes.values() if found["name"] == "reserve")
    assert (failed["status"], failed["error"]) == ("failed", "reservations are closed")


def _pointed(payload: Any, pointer: str) -> Any:
    for step in pointer.split("/")[1:]:
        payload = payload[int(step)] if isinstance(payload, list) else payload[step]
    return payload


def test_several_runs_are_turns_and_stay_runs() -> None:
    (one,) = convert_files([str(GOLDEN / "vercel.otlp.jsonl")]).sessions
    written = write_record(one)
    assert written["inputs"]["schema_version"] == 1
    assert [turn["source_trace_id"] for turn in written["inputs"]["turns"]] == [run.trace_id for run in one.roots()]
    (back,) = read(write_line(one)).sessions
    assert len(back.roots()) == len(one.roots()) == 3


def test_lines_hold_no_character_at_which_kitaru_would_cut_them() -> None:
    (one,) = imported(record(inputs="one\u2028two\u0085three", outputs=None))
    assert write_line(one).isascii()
    assert len(write_line(one).splitlines()) == 1


# -- in --------------------------------------------------------------------------------------------------------------


def test_a_session_of_another_writer_is_read() -> None:
    (one,) = imported(ordered())
    run = only_run(one)
    assert (one.key.kind, one.key.value, one.origin, one.status) == ("conversation", "inn:7", "imported", Status.OK)
    assert messages(one, run.input) == [said("user", "Soup!")]
    assert messages(one, run.output) == [said("assistant", "Here.")]
    first, last = run.model_calls()
    assert messages(one, first.input) == [said("system", "Serve."), said("user", "Soup!")]
    assert messages(one, first.output) == [asks(ORDER)]
    assert messages(one, last.input)[-1] == told("call_1", "served")
    assert (first.model, first.response_model, first.provider) == ("gpt-5", "gpt-5-2026", "openai")
    assert first.settings == {"temperature": 0.5}
    assert first.usage is not None
    assert (first.usage.input_tokens, first.usage.cache_read_tokens) == (10, 4)
    assert first.provider_fields["cost_usd"] == 0.5
    (order,) = run.tool_calls()
    assert (order.name, order.arguments, order.result, order.call_id) == ("order", {"dish": "soup"}, "served", "call_1")
    assert [len(turn.tool_calls) for turn in run.turns] == [1, 0]


def test_the_same_record_twice_changes_nothing_and_a_longer_one_grows_its_session() -> None:
    whole = ordered()
    begun = {**whole, "nodes": whole["nodes"][:2], "status": "in_progress", "outputs": None}
    assert imported(whole, whole) == imported(whole)
    (short,), (grown,) = imported(begun), imported(begun, whole)
    assert (short.id, short.status) == (grown.id, Status.UNFINISHED)
    assert grown.runs == imported(whole)[0].runs


def test_turns_of_one_session_are_runs_of_their_own() -> None:
    turns = [{"source_trace_id": f"t{n}", "inputs": f"Hi {n}", "outputs": f"Ho {n}"} for n in (1, 2)]
    llm = [node(n, "llm_call", trace_id=f"t{n}", inputs=f"Hi {n}", outputs=f"Ho {n}") for n in (1, 2)]
    inside = node(3, "tool_call", 2, tool_name="order", inputs={}, outputs=1)
    (one,) = imported(record(*llm, inside, inputs={"schema_version": 1, "turns": turns}, outputs="Ho 2"))
    assert [messages(one, run.input) for run in one.roots()] == [[said("user", "Hi 1")], [said("user", "Hi 2")]]
    assert [len(list(run.model_calls())) for run in one.roots()] == [1, 1]
    assert [len(list(run.tool_calls())) for run in one.roots()] == [0, 1]


def in_turns(*sources: str | None) -> dict[str, Any]:
    """A session of as many turns, the source trace of each with a model call in it."""
    said = [{"inputs": f"Hi {n}", "outputs": f"Ho {n}"} for n in range(len(sources))]
    turns = [
        one if trace is None else {"source_trace_id": trace, **one} for one, trace in zip(said, sources, strict=True)
    ]
    calls = [
        node(n, "llm_call", **one, **({} if trace is None else {"trace_id": trace}))
        for n, (one, trace) in enumerate(zip(said, sources, strict=True))
    ]
    return record(*calls, inputs={"schema_version": 1, "turns": turns}, outputs=turns[-1]["outputs"])


def test_a_session_written_without_turns_grows_by_one_written_with_them() -> None:
    grown = in_turns("t0", "t1")
    begun = {**grown, "nodes": grown["nodes"][:1], "inputs": "Hi 0", "outputs": "Ho 0"}
    (one,) = imported(begun, grown)
    assert one.runs == imported(grown)[0].runs
    assert [run.id for run in imported(begun)[0].runs] == [one.runs[0].id]


def test_turns_without_a_source_trace_are_not_merged() -> None:
    (one,) = imported(in_turns(None, None))
    first, last = one.roots()
    assert [messages(one, run.input) for run in (first, last)] == [[said("user", "Hi 0")], [said("user", "Hi 1")]]
    # Nothing tells which turn the calls are of.
    assert [len(list(run.model_calls())) for run in (first, last)] == [0, 2]


def test_a_turn_without_nodes_keeps_its_place() -> None:
    whole = in_turns("t0", "t1", "t2")
    (one,) = imported({**whole, "nodes": [whole["nodes"][0], whole["nodes"][2]]})
    asked = [messages(one, run.input) for run in one.roots()]
    assert asked == [[said("user", f"Hi {n}")] for n in range(3)]


def test_two_turns_of_one_source_trace_are_two_runs_and_its_calls_are_there_once() -> None:
    (one,) = imported(in_turns("t0", "t0"))
    assert [len(list(run.model_calls())) for run in one.roots()] == [2, 0]


def test_nodes_of_a_source_trace_that_no_turn_tells_of_are_a_run_of_their_own() -> None:
    whole = in_turns("t0", "t1")
    stray = node(2, "tool_call", tool_name="order", inputs={}, outputs=1, trace_id="t2")
    (one,) = imported({**whole, "nodes": [*whole["nodes"], stray]})
    assert [[call.name for call in run.tool_calls()] for run in one.roots()] == [[], [], ["order"]]


@pytest.mark.parametrize(("cost", "kept"), [("0.0125", 0.0125), (0, 0), ("free", None), (None, None)])
def test_a_cost_is_a_number_also_in_text_and_none_stays_none(cost: Any, kept: float | None) -> None:
    (one,) = imported(record(node(0, "llm_call", inputs="Hi", outputs="Ho", cost=cost)))
    (call,) = only_run(one).model_calls()
    assert call.provider_fields.get("cost_usd") == kept


def test_what_sessions_have_no_place_for_is_told() -> None:
    account = Account()
    line = json.dumps(record(node(0, "span", inputs="x", metadata={"tenant": "acme"}, links=[{"external_id": "a"}])))
    for span in read_line(line.encode(), "x").spans:
        account.add_span(span)
    assert [name for _, name, _ in account.unread()] == ["kitaru.inputs", "kitaru.links", "kitaru.metadata"]


def test_a_sub_agent_is_a_run_and_a_failure_is_an_error() -> None:
    (one,) = imported(
        record(
            node(0, "tool_call", tool_name="ask", inputs={}, outputs="yes"),
            node(1, "subagent_call", 0, subagent_id="cook", inputs="?", outputs="yes"),
            node(2, "tool_call", tool_name="order", inputs={}, status="failed", error="closed"),
            status="failed",
            error="no soup",
        )
    )
    root, cook = one.runs
    ask, order = root.tool_calls()
    assert (ask.run, cook.agent.name) == (cook.id, "cook")
    assert (order.status, order.error and order.error.message, order.fidelity) == (Status.ERROR, "closed", {})
    assert (root.status, root.error and root.error.message) == (Status.ERROR, "no soup")


def test_selectors_tell_texts_in_payloads_of_any_form() -> None:
    payload = {"ask": [{"sys": "Serve."}, {"say~to/me": "Soup!"}]}
    selectors = {"system_prompt_selector": "/ask/0/sys", "input_text_selector": "/ask/1/say~0to~1me"}
    answer = {"out": "Here.", "why": "They are hungry."}
    pointed = {"output_text_selector": "/out", "reasoning_selectors": ["/why", "/nothing"]}
    (one,) = imported(record(node(0, "llm_call", inputs=payload, outputs=answer, **selectors, **pointed)))
    (call,) = only_run(one).model_calls()
    assert messages(one, call.input) == [said("system", "Serve."), said("user", "Soup!")]
    thought = {"type": "reasoning", "content": "They are hungry."}
    assert messages(one, call.output)[0]["parts"] == [thought, {"type": "text", "content": "Here."}]


def test_a_tools_null_is_what_it_gave_and_no_inputs_are_none() -> None:
    envelope = {"schema": "kitaru.langgraph.tool_result.v1", "result": {"ok": True}}
    (one,) = imported(
        record(
            node(0, "tool_call", tool_name="order", inputs=None, outputs=None),
            node(1, "tool_call", tool_name="order", inputs={}, outputs=envelope),
            node(2, "tool_call", tool_name="order", inputs={"_kitaru_truncated": {"reason": "size"}}, outputs=1),
        )
    )
    null, wrapped, cut = only_run(one).tool_calls()
    assert null.fidelity == {"arguments": Fidelity.ABSENT}
    assert wrapped.result == {"ok": True}
    assert cut.fidelity == {"arguments": Fidelity.TRUNCATED}


def test_more_is_accepted_than_kitaru_does(tmp_path: Path) -> None:
    nested = node("a", "span", started_at=None, ended_at=None)
    tool = node(1, "tool_call", tool_name="order", inputs={"text": "one\u2028two"}, outputs=1)
    del tool["attributes"]
    nested["children"] = [tool]
    file = tmp_path / "sessions.jsonl"
    line = json.dumps(record(nested, imported_from="elsewhere"), ensure_ascii=False)
    file.write_bytes(b"\xef\xbb\xbf" + f"{line}\r\n\r\n".encode())
    conversion = convert_files([str(file)])
    assert conversion.faults == ()
    (call,) = only_run(conversion.sessions[0]).tool_calls()
    assert call.arguments == {"text": "one\u2028two"}


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ([node(0, "span", 1), node(1, "span", 0)], "parents go in a circle"),
        ([node(0, "span", 0)], "parents go in a circle"),
        ([node(0, "span", 7)], "is no node's"),
        ([node(0, "span"), node(0, "span")], "two nodes of index"),
        ([node(0, "span", external_id="x"), node(1, "span", external_id="x")], "two nodes of external_id"),
        ([node(0, "span", status="done")], "status 'done'"),
        ([node(0, "llm_call", tokens={"input_tokens": -1})], "below zero"),
        ([node(0, "llm_call", cost=-0.5)], "below zero"),
        ([node(0, "llm_call", cost="-0.5")], "below zero"),
        ([node(0, "llm_call", inputs=float("nan"))], "no JSON value"),
        ([node(0, "llm_call", cost=float("nan"))], "no JSON value"),
        ([node(0, "llm_call", attributes={"score": float("inf")})], "no JSON value"),
        ([node(0, "model_call")], "node_type 'model_call' is none of"),
        ([node(0, "llm_call", started_at="2026-11-29T10:00:00")], "without its zone"),
        ([5], "is no object"),
    ],
)
def test_what_cannot_be_a_session_is_refused_and_costs_only_itself(nodes: list[Any], reason: str) -> None:
    assert reason in refused(record(*nodes))
    conversion = read(json.dumps(record(*nodes)), json.dumps({**ordered(), "external_id": "inn:8"}))
    assert [one.key.value for one in conversion.sessions] == ["inn:8"]


def test_a_status_or_an_id_that_is_none_is_refused() -> None:
    assert "status 'done'" in refused(ordered(), status="done")
    assert "external_id is no text" in refused(ordered(), external_id=5)


@pytest.mark.parametrize("name", ["status", "inputs", "outputs", "nodes", "external_id"])
def test_a_record_that_lacks_a_member_says_which(name: str) -> None:
    lacking = {key: value for key, value in ordered().items() if key != name}
    assert refused(lacking) == f"a session record of Kitaru's without [{name!r}]"


def test_of_a_list_of_records_one_with_a_fault_costs_only_itself() -> None:
    lacking = {key: value for key, value in ordered().items() if key != "inputs"}
    conversion = read(json.dumps([lacking, {**ordered(), "external_id": "inn:8"}, 5]))
    assert [one.key.value for one in conversion.sessions] == ["inn:8"]
    assert [fault.place for fault in conversion.faults] == ["x:1 (session 'inn:7')", "x:1 (record 2)"]


# -- the command -----------------------------------------------------------------------------------------------------


def run(*words: str | Path) -> int:
    parser = argparse.ArgumentParser()
    CONVERT.configure(parser)
    return CONVERT.run(parser.parse_args([str(word) for word in words]))


def test_convert_writes_kitarus_lines_and_reads_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines, folder = tmp_path / "sessions.kitaru.jsonl", tmp_path / "folder"
    assert run(GOLDEN / "vercel_otel.otlp.jsonl", "--format", "kitaru", "--out", lines) == 0
    assert len(lines.read_text(encoding="utf-8").splitlines()) == 2
    assert run(lines, "--format", "kitaru", "--out", f"{folder}/") == 0
    capsys.readouterr()
    assert run(lines, "--format", "kitaru", "--out", f"{folder}/") == 0
    assert "2 sessions unchanged" in capsys.readouterr().err
    assert sorted(file.read_text(encoding="utf-8") for file in folder.iterdir()) == sorted(
        f"{line}\n" for line in lines.read_text(encoding="utf-8").splitlines()
    )


def test_a_session_document_can_become_kitarus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(GOLDEN / "genai.session.json", "--format", "kitaru") == 0
    (line,) = capsys.readouterr().out.splitlines()
    (one,) = read(line).sessions
    agreed = json.loads((GOLDEN / "genai.session.json").read_text(encoding="utf-8"))
    assert without_source(one) == {**agreed, "source": None}


def test_records_are_not_changed_by_being_read() -> None:
    one = ordered()
    before = copy.deepcopy(one)
    imported(one)
    assert one == before
