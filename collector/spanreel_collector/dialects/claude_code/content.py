"""What Claude Code's attributes hold: prompts, contexts, bodies, arguments, results, and what was kept back of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from spanreel.model import Answer, Fidelity, Json, Message, Operation, Request, ToolDefinition
from spanreel.protocols import anthropic
from spanreel_collector import json_text
from spanreel_collector.dialects import values
from spanreel_collector.dialects.content import losses
from spanreel_collector.span import Attributes, RawSpan

_SECTION = re.compile(r"^\[(USER|USER PROMPT|TOOL RESULT: [^\]\n]*)\]\n", re.MULTILINE)
_BETWEEN = "\n\n---\n\n"
_CUT = re.compile(r"\s*\[TRUNCATED - Content exceeds \d+KB limit\]$")
_TOOL_INPUT = re.compile(r"\[TOOL INPUT: [^\]\n]*\]\n")
_RESULTS = ("output", "content", "result")
"""What an event ``tool.output`` calls a result; of a tool that writes, ``content`` is what it was given."""
_WRITERS = ("Write", "Edit", "MultiEdit", "NotebookEdit")
_PARAMETERS = {"full_command": "command", "timeout": "timeout", "description": "description"}
"""Facts of a call to the arguments that they repeat; not all arguments are among them."""


def text_parts(text: str | None) -> tuple[list[dict[str, Json]], Fidelity]:
    """The parts of a text, and how it came: kept back, cut off, not there, or whole."""
    if text is None:
        return [], Fidelity.ABSENT
    state = losses.state(text)
    return [{"type": "text", "content": _CUT.sub("", text)}], state


def prompt(attributes: Attributes) -> str | None:
    """The user's words in an interaction's context."""
    text = values.text(attributes, "new_context")
    return _SECTION.sub("", text, count=1) if text else None


def new_context(attributes: Attributes) -> tuple[tuple[Message, ...], Fidelity]:
    """The messages that were added since the request before: ``[USER]`` and ``[TOOL RESULT: id]`` sections.

    They are a rendering of the request's. Reminders that the request had among them are told apart, where no one knows.
    """
    text = values.text(attributes, "new_context")
    if text is None:
        return (), Fidelity.ABSENT
    reminded = values.integer(attributes, "system_reminders_count") or 0
    state = losses.graver(losses.state(text), Fidelity.TRUNCATED if reminded else Fidelity.RECONSTRUCTED)
    found = []
    for section in _sections(_CUT.sub("", text)):
        heading = _SECTION.match(section)
        words = section[heading.end() :] if heading else section
        if heading and heading.group(1).startswith("TOOL RESULT: "):
            identity = heading.group(1).partition(": ")[2]
            part: dict[str, Json] = {"type": "tool_call_response", "id": identity, "response": _blocks(words)}
            found.append({"role": "tool", "parts": [part]})
        else:
            found.append({"role": "user", "parts": [{"type": "text", "content": words}]})
    return tuple(found), state


def _sections(text: str) -> list[str]:
    """The text cut before each heading that follows a line of dashes."""
    sections: list[str] = []
    for piece in text.split(_BETWEEN):
        if sections and not _SECTION.match(piece):
            sections[-1] += _BETWEEN + piece
        else:
            sections.append(piece)
    return sections


def _blocks(words: str) -> Json:
    """A tool's result as the model was told it: texts of content blocks joined, else as it stands."""
    found, _ = values.decode(words)
    if isinstance(found, list) and found and all(_is_text(block) for block in found):
        return "\n".join(block["text"] for block in found)
    return found if isinstance(found, list) else words


def _is_text(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)


def request_body(log: Mapping[str, Any]) -> tuple[str | None, Request | None, Fidelity]:
    """The request as it was sent, where its body was logged: its text, what it says, and whether that is all."""
    text = values.text(log, "body")
    if text is None:
        return None, None, Fidelity.ABSENT
    body, state = _body(text)
    if not isinstance(body, dict):
        return text, None, state
    try:
        return text, anthropic.read_request(json.dumps(body).encode(), Operation.CHAT), state
    except ValueError:
        return text, None, Fidelity.TRUNCATED


def response_body(log: Mapping[str, Any]) -> tuple[Answer | None, Fidelity]:
    """The answer, where its body was logged."""
    text = values.text(log, "body")
    body, state = _body(text) if text is not None else (None, Fidelity.ABSENT)
    if not isinstance(body, dict):
        return None, state
    try:
        return anthropic.read_response(json.dumps(body).encode(), 200), state
    except ValueError:
        return None, Fidelity.TRUNCATED


def _body(text: str) -> tuple[Json, Fidelity]:
    cut = _CUT.sub("", text)
    try:
        body = json_text.parse(cut)
    except ValueError:
        try:
            body, _ = json_text.parse_prefix(cut)
        except ValueError:
            return None, Fidelity.TRUNCATED
        return body, Fidelity.TRUNCATED
    # Thinking is kept back in bodies; a live request would have it.
    return body, losses.state(body)


def instructions(span: RawSpan) -> tuple[dict[str, Json], ...]:
    """The system prompt: logged once by its hash, else as much of it as a preview holds."""
    wanted = values.text(span.attributes, "system_prompt_hash")
    for log in span.logs:
        if wanted and log.attributes.get("system_prompt_hash") == wanted:
            text = values.text(log.attributes, "system_prompt")
            return tuple(text_parts(text)[0])
    return tuple(text_parts(values.text(span.attributes, "system_prompt_preview"))[0])


def tools(span: RawSpan) -> tuple[tuple[ToolDefinition, ...], Fidelity]:
    """The tools on offer: names and hashes, their definitions logged once by hash."""
    listed = values.decoded(span.attributes, "tools")
    if not isinstance(listed, list):
        return (), Fidelity.ABSENT
    bodies = {log.attributes.get("tool_hash"): log.attributes.get("tool") for log in span.logs}
    read, state = [], Fidelity.WHOLE
    for item in (item for item in listed if isinstance(item, dict)):
        found = values.members(bodies.get(item.get("hash")))
        if not found:
            found, state = {"name": item.get("name")}, Fidelity.TRUNCATED
        read.append(values.tool_definition(found))
    return tuple(read), state


def arguments(attributes: Attributes, log: Mapping[str, Any]) -> tuple[Json, Fidelity]:
    """A tool call's arguments, from its span or its log; else those that its facts repeat, marked as not all."""
    given = values.text(attributes, "tool_input")
    if given is not None:
        text = _CUT.sub("", _TOOL_INPUT.sub("", given, count=1))
        found, state = values.decode(text)
        return found, losses.graver(state, losses.state(given))
    if (given := values.text(log, "tool_input")) is not None:
        found, state = values.decode(given)
        return found, losses.graver(state, losses.state(found))
    parameters = {**attributes, **values.members(log.get("tool_parameters"))}
    known = {name: parameters[key] for key, name in _PARAMETERS.items() if parameters.get(key) is not None}
    if isinstance(attributes.get("file_path"), str):
        known["file_path"] = attributes["file_path"]
    return (known, Fidelity.TRUNCATED) if known else (None, Fidelity.ABSENT)


def tool_result(span: RawSpan) -> tuple[Json, Fidelity]:
    """What a tool gave: its event of output, else the context it left; of both, marks of a cut."""
    name = span.attributes.get("tool_name")
    for event in span.events:
        if event.name == "tool.output" and name not in _WRITERS:
            text = values.text(event.attributes, *_RESULTS)
            if text is None and any(event.attributes.get(key) == "" for key in _RESULTS):
                return "", Fidelity.WHOLE
            if text is not None:
                return _CUT.sub("", text), losses.state(text)
    text = values.text(span.attributes, "new_context")
    if text is not None:
        found, state = values.decode(_CUT.sub("", _SECTION.sub("", text, count=1)))
        return found, losses.graver(state, losses.state(text))
    return None, Fidelity.ABSENT
