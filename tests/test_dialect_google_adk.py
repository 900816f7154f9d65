"""Google ADK's spans: pieces of streamed answers, images that one of its two spans leaves out, users, settings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otlp_lines import converted, log, only_run, request, session, span
from spanreel import conventions as names
from spanreel.model import Fidelity, Message
from spanreel.session import ModelCall, Session

ADK, OPENINFERENCE = "gcp.vertex.agent", "openinference.instrumentation.google_adk"
PNG = "iVBORw0KGgo="
SOUP = [{"role": "user", "parts": [{"type": "text", "content": "Soup!"}]}]


def model_span(number: int = 1, parent: int | None = None, **said: Any) -> dict[str, Any]:
    attributes = {name: json.dumps(value) for name, value in said.items()}
    told = {names.OPERATION: "generate_content", names.REQUEST_MODEL: "gemini-2.0-flash", **attributes}
    return span(number, "generate_content gemini-2.0-flash", told, parent)


def answered(*texts: str) -> dict[str, Any]:
    """An answer in pieces, of which the last has the reason."""
    given = [{"role": "assistant", "parts": [{"type": "text", "content": text}], "finish_reason": ""} for text in texts]
    given[-1]["finish_reason"] = "stop"
    return {names.INPUT_MESSAGES: SOUP, names.OUTPUT_MESSAGES: given}


def of(*refs: int, in_: Session) -> list[Message]:
    return [in_.messages[ref].model_dump(exclude_none=True) for ref in refs]


def only_call(found: Session) -> ModelCall:
    (call,) = only_run(found).model_calls()
    return call


@pytest.mark.parametrize("pieces", [("Here ", "you are."), ("Here ", "you are.", "Here you are.")])
def test_the_pieces_of_a_streamed_answer_are_one_message(pieces: tuple[str, ...]) -> None:
    found = session(model_span(**answered(*pieces)), scope=ADK)
    call = only_call(found)
    (message,) = of(*call.output, in_=found)
    assert [part["content"] for part in message["parts"]] == ["Here you are."]
    assert call.finish_reasons == ["stop"]


def test_tools_that_a_streamed_answer_asks_for_stay_in_their_order() -> None:
    asked = {"type": "tool_call", "id": "c1", "name": "order", "arguments": {"dish": "soup"}}
    told = answered("At ", "once.")
    told[names.OUTPUT_MESSAGES].append({"role": "assistant", "parts": [asked], "finish_reason": "stop"})
    found = session(model_span(**told), scope=ADK)
    (message,) = of(*only_call(found).output, in_=found)
    assert [(part["type"], part.get("content")) for part in message["parts"]] == [
        ("text", "At once."),
        ("tool_call", None),
    ]


def test_an_image_that_the_whole_request_leaves_out_is_known_from_the_other_span() -> None:
    """Of 1.x with the conventions' content: `call_llm` has no image in it, and nothing in its place."""
    body = {"model": "gemini-2.0-flash", "contents": [{"role": "user", "parts": [{"text": "Soup?"}]}]}
    around = span(1, "call_llm", {"gcp.vertex.agent.llm_request": json.dumps(body), "gen_ai.system": ADK})
    image = {"type": "blob", "mime_type": "image/png", "data": "<not serializable>"}
    asked = [{"role": "user", "parts": [{"type": "text", "content": "Soup?"}, image]}]
    found = session(around, model_span(2, 1, **{names.INPUT_MESSAGES: asked}), scope=ADK)
    call = only_call(found)
    (message,) = of(*call.input, in_=found)
    assert [part["type"] for part in message["parts"]] == ["text", "blob"]
    assert call.fidelity["input"] is Fidelity.TRUNCATED
    assert not found.replay.eligible


def test_an_image_in_a_log_record_is_whole() -> None:
    blob = {"type": "blob", "mime_type": "image/png", "data": PNG}
    asked = [{"role": "user", "parts": [{"type": "text", "content": "Soup?"}, blob]}]
    told = {names.INPUT_MESSAGES: json.dumps(asked)}
    record = log("gen_ai.client.inference.operation.details", told, 1)
    (found,) = converted(request(model_span(), scope=ADK), record).sessions
    call = only_call(found)
    (message,) = of(*call.input, in_=found)
    assert message["parts"][1] == {"type": "blob", "mime_type": "image/png", "modality": "image", "content": PNG}
    assert "input" not in call.fidelity


def test_a_user_whom_only_the_spans_own_events_name_is_the_sessions() -> None:
    record = log("gen_ai.client.inference.operation.details", {names.USER_ID: "ada"}, 1)
    assert [one.user_id for one in converted(request(model_span(), scope=ADK), record).sessions] == ["ada"]


def test_the_span_that_merges_tools_is_no_call_through_another_tracer_either() -> None:
    told = {names.OPERATION: names.EXECUTE_TOOL, names.TOOL_NAME: "(merged tools)"}
    found = session(model_span(**answered("Soup.")), span(2, "execute_tool (merged)", told, 1), scope=OPENINFERENCE)
    assert not list(only_run(found).tool_calls())


def test_what_the_answer_is_to_be_is_read_from_a_request_of_geminis() -> None:
    schema = {"type": "object"}
    config = {"response_mime_type": "application/json", "response_schema": schema, "temperature": 0.2}
    told = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "gemini-2.0-flash",
        "llm.invocation_parameters": json.dumps(config),
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "Soup!",
    }
    call = only_call(session(span(1, "call_llm", told), scope=OPENINFERENCE))
    assert call.settings == {"temperature": 0.2, "response_format": {"type": "json_schema", "schema": schema}}
