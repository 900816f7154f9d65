"""Graphs as runs, and what they keep between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spanreel.frameworks.langchain.messages import listed, messages_in, read_input, read_message
from spanreel.frameworks.langchain.objects import CONTROL_FLOW, ERRORS, asked_in, rebuild
from spanreel.model import Agent, Json, Status
from spanreel.point import Framework, Kind, Outcome, Point, ReadFrom, RunRequest, RunResult


def read_run(graph: Any, arguments: Mapping[str, Any]) -> RunRequest:
    """The graph and its input; the conversation is the thread of its checkpoints."""
    asked = arguments["input"]
    thread = user = None
    for config in (arguments.get("config"), getattr(graph, "config", None)):
        said = (config or {}).get("configurable") or {}
        thread = said.get("thread_id") if thread is None else thread
        user = said.get("user_id") if user is None else user
    return RunRequest(
        # A function that is a graph (`entrypoint`) is its one node, by its name.
        agent=Agent(name=next(iter(graph.nodes)) if len(graph.nodes) == 1 else graph.name),
        input=ReadFrom("input", read_input),
        arguments={"input": asked},
        conversation_id=str(thread) if thread is not None else None,
        user_id=str(user) if user is not None else None,
    )


def rewrite_run(arguments: Mapping[str, Any], recorded: Mapping[str, Json]) -> Mapping[str, Any]:
    """The caller's arguments with the recorded input."""
    if "input" not in recorded:
        return arguments
    asked = rebuild(recorded["input"])
    pair = messages_in(asked)
    if isinstance(pair, list) and len(pair) == 2 and pair[0] in ("user", "human") and isinstance(pair[1], str):
        asked["messages"] = [tuple(pair)]  # a single pair was a tuple, which JSON has none of
    return {**arguments, "input": asked}


def isolate(arguments: Mapping[str, Any], memory: dict[Any, Any]) -> Mapping[str, Any]:
    """A checkpointer in memory lent to the graph, as graphs lend theirs to those inside; each graph has its own."""
    graph, config = arguments["self"], arguments.get("config") or {}
    said = config.get("configurable") or {}
    if not hasattr(graph.checkpointer, "serde") or _CHECKPOINTER in said:
        return arguments
    key = ("langgraph", graph.name, *sorted(graph.nodes))
    if key not in memory:
        from langgraph.checkpoint.memory import InMemorySaver

        memory.setdefault(key, InMemorySaver(serde=graph.checkpointer.serde))
    return {**arguments, "config": {**config, "configurable": {**said, _CHECKPOINTER: memory[key]}}}


_CHECKPOINTER = "__pregel_checkpointer"


def read_outcome(loop: Any, arguments: Mapping[str, Any]) -> Outcome:
    """The loop of a graph that is being left, and with what exception; it has its last state when it has been left."""
    return Outcome((loop, arguments["exc_value"]))


def read_run_result(outcome: Any) -> RunResult:
    """The last state, of its messages the last one; nothing of a stream that was closed early."""
    if not isinstance(outcome, tuple):
        return RunResult()
    loop, error = outcome
    state = loop.output
    last = tuple(read_message(message) for message in listed(messages_in(state) or [])[-1:])
    value = state
    if last and isinstance(state, Mapping):
        # Tools of deepagents write files past what they return, so that a replayed run has none.
        value = {**{name: one for name, one in state.items() if name != "files"}, "messages": list(last)}
    if not any(kind.__name__ == "GraphInterrupt" for kind in type(error).__mro__):
        return RunResult(output=last, value=value)
    return RunResult(output=last, value={"state": value, "interrupts": asked_in(error)}, status=Status.INTERRUPTED)


def read_run_interrupt(error: BaseException) -> RunResult:
    """A graph inside another that waits for somebody, or that gives the word to the outer one."""
    if type(error).__name__ == "ParentCommand":
        return RunResult(value=error.args[0])
    return RunResult(value={"interrupts": asked_in(error)}, status=Status.INTERRUPTED)


def _run(target: str) -> Point:
    return Point(
        target,
        Kind.RUN,
        read_run,
        read_run_result,
        rewrite=rewrite_run,
        isolate=isolate,
        values=False,
        control_flow=CONTROL_FLOW,
        read_control_flow=read_run_interrupt,
        errors=ERRORS,
    )


def _memory(target: str) -> Point:
    return Point(target, Kind.MEMORY, lambda _graph, _arguments: None, read_run_result, isolate=isolate)


LANGGRAPH = Framework(
    library="langgraph",
    releases=">=1.2",
    points=(
        # invoke, batch and the streams of events end in these two.
        _run("langgraph.pregel.main:Pregel.stream"),
        _run("langgraph.pregel.main:Pregel.astream"),
        Point("langgraph.pregel._loop:SyncPregelLoop.__exit__", Kind.OUTCOME, read_outcome, read_run_result),
        Point("langgraph.pregel._loop:AsyncPregelLoop.__aexit__", Kind.OUTCOME, read_outcome, read_run_result),
        _memory("langgraph.pregel.main:Pregel.get_state"),
        _memory("langgraph.pregel.main:Pregel.aget_state"),
        _memory("langgraph.pregel.main:Pregel.get_state_history"),
        _memory("langgraph.pregel.main:Pregel.aget_state_history"),
        _memory("langgraph.pregel.main:Pregel.bulk_update_state"),
        _memory("langgraph.pregel.main:Pregel.abulk_update_state"),
    ),
)
