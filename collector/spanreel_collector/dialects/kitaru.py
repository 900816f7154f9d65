"""Nodes of Kitaru's sessions, as `sources.kitaru` hands them on: payloads of any form, told by selectors and fields."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from spanreel import json_text
from spanreel.json_pointers import read_step
from spanreel.model import Agent, Answer, Error, ErrorCategory, Fidelity, Json, Message, Operation, Request, Usage
from spanreel.records import ModelRecord, Record, RunRecord, ToolRecord
from spanreel_collector.dialects import values
from spanreel_collector.dialects.content import bodies, costs, losses
from spanreel_collector.span import RawSpan

NAME = "kitaru"

_NODE, _TURN = "kitaru.node", "kitaru.turn"
_ENVELOPES = ("kitaru.langgraph.tool_result.v1", "kitaru.claude_agent_sdk.tool_result.v1")
_Node = dict[str, Any]


def speaks(span: RawSpan) -> bool:
    """Whether the span was a node or a turn."""
    return isinstance(span.attributes.get(_NODE), dict) or isinstance(span.attributes.get(_TURN), dict)


def read(span: RawSpan) -> Record | None:
    """What the node says; None where it only groups others."""
    turn = span.attributes.get(_TURN)
    if isinstance(turn, dict):
        return _read_run(span, turn, Agent())
    node: _Node = span.attributes[_NODE]
    kind = node.get("node_type")
    if kind == "subagent_call":
        return _read_run(span, node, Agent(values.text(node, "subagent_id", "name")))
    if kind == "llm_call":
        return _read_model(span, node)
    return _read_tool(span, node) if kind == "tool_call" else None


def _read_run(span: RawSpan, node: _Node, agent: Agent) -> RunRecord:
    request = bodies.read_request(node.get("inputs"))
    answer = bodies.read_answer(node.get("outputs"))
    asked = _selected(node, "inputs", "input_text_selector", "user") or (request[0].messages if request else ())
    asked = asked or _whole(node.get("inputs"), "user")
    answered = _selected(node, "outputs", "output_text_selector", "assistant")
    answered = answered or (answer.messages if answer else ()) or _whole(node.get("outputs"), "assistant")
    error = _error(span, ErrorCategory.OTHER)
    fidelity = {"input": _state(node.get("inputs")), "output": _state(node.get("outputs"))}
    if error and fidelity["output"] is Fidelity.ABSENT:
        del fidelity["output"]
    return RunRecord(
        agent=agent,
        input=asked,
        output=answered,
        status=values.status_of(error),
        error=error,
        fidelity=values.marks(fidelity),
    )


def _read_model(span: RawSpan, node: _Node) -> ModelRecord:
    found = bodies.read_request(node.get("inputs"))
    request = found[0] if found else Request(Operation.CHAT, None)
    if not request.messages:
        request = replace(request, messages=_selected(node, "inputs", "input_text_selector", "user"))
    if not request.messages and node.get("inputs") is not None:
        request = replace(request, messages=_whole(node["inputs"], "user"))
    system = _pointed(node.get("inputs"), node.get("system_prompt_selector"))
    told = request.instructions or any(message["role"] == "system" for message in request.messages)
    if isinstance(system, str) and not told:
        request = replace(request, instructions=({"type": "text", "content": system},))
    parameters = node.get("model_params")
    settings = bodies.settings(parameters) if isinstance(parameters, dict) else {}
    error = _error(span, ErrorCategory.MODEL)
    fidelity = {"input": _state(node.get("inputs")), "output": _state(node.get("outputs"))}
    if error and fidelity["output"] is Fidelity.ABSENT:
        del fidelity["output"]
    return ModelRecord(
        request=replace(
            request,
            model=values.text(node, "requested_model") or request.model or values.text(node, "model"),
            settings={**request.settings, **settings},
        ),
        answer=_read_answer(node),
        provider=values.text(node, "model_provider"),
        error=error,
        status=values.status_of(error),
        fidelity=values.marks(fidelity),
    )


def _read_answer(node: _Node) -> Answer | None:
    outputs = node.get("outputs")
    answer = bodies.read_answer(outputs) or Answer()
    said = answer.messages or _selected(node, "outputs", "output_text_selector", "assistant")
    said = said or (_whole(outputs, "assistant") if outputs is not None else ())
    selectors = node.get("reasoning_selectors")
    thoughts = [_pointed(outputs, selector) for selector in selectors] if isinstance(selectors, list) else []
    parts = [{"type": "reasoning", "content": thought} for thought in thoughts if isinstance(thought, str)]
    if said and parts and not any(part["type"] == "reasoning" for part in said[0]["parts"]):
        said = ({**said[0], "parts": [*parts, *said[0]["parts"]]}, *said[1:])
    tokens = node.get("tokens")
    counts = tokens if isinstance(tokens, dict) else {}
    usage = Usage(
        input_tokens=values.integer(counts, "input_tokens"),
        output_tokens=values.integer(counts, "output_tokens"),
        cache_read_tokens=values.integer(counts, "cached_input_tokens"),
        reasoning_tokens=values.integer(counts, "reasoning_tokens"),
    )
    cost = costs.amount(node.get("cost"))
    fields = {**answer.provider_fields, **({} if cost is None else {costs.FIELD: cost})}
    found = replace(
        answer,
        model=answer.model or values.text(node, "model"),
        messages=said,
        usage=answer.usage if usage == Usage() else usage,
        provider_fields=fields,
    )
    return None if found == Answer() else found


def _read_tool(span: RawSpan, node: _Node) -> ToolRecord:
    error = _error(span, ErrorCategory.TOOL)
    result, state = _unwrapped(node.get("outputs"))
    # Kitaru cannot tell null from nothing: of a call that ended well, null is what it gave.
    fidelity = {"arguments": _state(node.get("inputs")), "result": losses.graver(state, losses.state(result))}
    if span.end == 0:
        fidelity["result"] = Fidelity.ABSENT
    return ToolRecord(
        name=values.text(node, "tool_name", "name") or "tool",
        arguments=node.get("inputs"),
        result=result,
        status=values.status_of(error),
        error=error,
        fidelity=values.marks(fidelity),
    )


def _unwrapped(outputs: Json) -> tuple[Json, Fidelity]:
    """A tool's result out of the envelope that two of Kitaru's adapters put it in."""
    if isinstance(outputs, dict) and outputs.get("schema") in _ENVELOPES:
        for key in ("result", "content", "value"):
            if key in outputs:
                return outputs[key], Fidelity.WHOLE
    return outputs, Fidelity.WHOLE


def _selected(node: _Node, payload: str, selector: str, role: str) -> tuple[Message, ...]:
    text = _pointed(node.get(payload), node.get(selector))
    return ({"role": role, "parts": [{"type": "text", "content": text}]},) if isinstance(text, str) and text else ()


def _whole(payload: Json, role: str) -> tuple[Message, ...]:
    """A payload of no form that is known, as text: nothing is lost, nothing is read into it."""
    if payload is None:
        return ()
    text = payload if isinstance(payload, str) else json_text.encode(payload)
    return ({"role": role, "parts": [{"type": "text", "content": text}]},) if text else ()


def _pointed(payload: Json, pointer: Json) -> Json:
    """What a JSON pointer (RFC 6901) points at; None where that is nothing."""
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        return None
    for step in pointer.split("/")[1:]:
        key = read_step(step)
        if isinstance(payload, dict):
            payload = payload.get(key)
        elif isinstance(payload, list) and key.isdecimal() and int(key) < len(payload):
            payload = payload[int(key)]
        else:
            return None
    return payload


def _error(span: RawSpan, category: ErrorCategory) -> Error | None:
    return Error(category, "error", span.status_message or None) if span.status == 2 else None


def _state(value: Json) -> Fidelity:
    return Fidelity.ABSENT if value is None else losses.state(value)
