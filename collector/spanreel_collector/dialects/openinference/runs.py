"""Agents and chains: which of them are runs, what they were asked and what they came to."""

from __future__ import annotations

import re

from spanreel.model import Agent, ErrorCategory, Fidelity, Json, Message
from spanreel.records import RunRecord
from spanreel_collector.dialects import values
from spanreel_collector.dialects.content import blocks
from spanreel_collector.dialects.content import messages as content
from spanreel_collector.dialects.openinference import messages
from spanreel_collector.dialects.openinference.llama_index import CURRENT_AGENT
from spanreel_collector.span import Attributes, RawSpan

_OUTPUT = "llm.output_messages"
_AGENT_NAMES = ("agent.name", "gen_ai.agent.name", "graph.node.name", "ai.telemetry.functionId")
_OBJECT = re.compile(r"[A-Z]\w+\(\w+=|<\w+")
"""How the repr of an object begins."""
_FRAMEWORKS_OWN = ("langchain", "smolagents", "agno")
"""Instrumentations that name an agent in the span's name only, as spans opened by hand do."""


def read_run(span: RawSpan, kind: str, cut_at: int | None) -> RunRecord:
    """An agent; or a chain, which is a run only where it stands outermost."""
    attributes = span.attributes
    error = values.failure(span, ErrorCategory.OTHER)
    given, asked, input_state = _end(attributes, "input.value", "user", cut_at)
    came, answered, output_state = _end(attributes, "output.value", "assistant", cut_at)
    asked = content.with_system(asked, content.read_messages(came))
    whole, whole_state = messages.read(attributes, _OUTPUT, cut_at)
    if content.weight(whole) > content.weight(answered):
        answered, output_state = whole, whole_state
    fidelity = {"input": input_state, "output": output_state}
    return RunRecord(
        agent=Agent(_agent_name(span, kind) or _speaker(span, answered)),
        input=asked,
        output=answered,
        arguments=given if isinstance(given, dict) and not asked else None,
        result=came if not answered else None,
        status=values.status_of(error),
        error=error,
        outermost_only=kind == "CHAIN" or _is_node(span),
        fidelity=values.marks(fidelity),
    )


def _end(attributes: Attributes, key: str, role: str, cut_at: int | None) -> tuple[Json, tuple[Message, ...], Fidelity]:
    """What went into a run or came out of it: the value, the messages in it, and how they came."""
    value = attributes.get(key)
    if not isinstance(value, str) or not value or value == messages.REDACTED:
        return None, (), messages.lost(attributes, key)
    decoded, state = values.decode(value)
    if len(value) == cut_at:
        state = Fidelity.TRUNCATED
    if isinstance(decoded, str):
        # A run's text is what was said; a repr of an object, or the beginning of JSON, is not.
        plain = state is Fidelity.WHOLE and not _OBJECT.match(decoded)
        said: tuple[Message, ...] = ({"role": role, "parts": blocks.parts_of(decoded)},) if plain else ()
        return decoded, said, state if said or state is not Fidelity.WHOLE else Fidelity.ABSENT
    found = content.asked(decoded) if role == "user" else content.answered(decoded)
    return decoded, found, state if found else Fidelity.ABSENT


def _agent_name(span: RawSpan, kind: str) -> str | None:
    name = values.text(span.attributes, *_AGENT_NAMES)
    name = name or values.text(values.members(span.attributes.get("metadata")), "lc_agent_name")
    library = span.origin.scope.rpartition(".")[2]
    if name is None and library == "llama_index":
        found = CURRENT_AGENT.search(str(span.attributes.get("output.value")))
        return found.group(1) if found else None
    if name is not None or kind != "AGENT":
        return name
    if library == "crewai":
        return values.text(span.attributes, "graph.node.id")
    by_hand = "openinference" not in span.origin.scope
    named = span.name.removeprefix("invoke_agent ").removesuffix(".run")
    return named if by_hand or library in _FRAMEWORKS_OWN else None


def _speaker(span: RawSpan, answered: tuple[Message, ...]) -> str | None:
    """The agent whose answers a graph of LangGraph's gives: it names itself on each, the instrumentation nowhere."""
    known = values.members(span.attributes.get("metadata"))
    names = {message.get("name") for message in answered if message.get("role") == "assistant"}
    name = names.pop() if len(names) == 1 else None
    # Inside a node, where a graph is called by a tool, steps give the same answers: the graph is called as its agent.
    alone = "langgraph_node" not in known or name == span.name
    return name if isinstance(name, str) and alone and known.get("ls_integration") == "langgraph" else None


def _is_node(span: RawSpan) -> bool:
    """Whether LangGraph ran the span as a node: the instrumentation takes those for agents whose name says so."""
    return values.members(span.attributes.get("metadata")).get("langgraph_node") == span.name
