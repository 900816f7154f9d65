"""What the tests of conversion share: export requests in OTLP/JSON, of our own spans and of anybody's."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from spanreel import conventions as names
from spanreel import wire
from spanreel.conventions import SCOPE
from spanreel.model import Answer, Operation, Request, Usage
from spanreel.records import ModelRecord, Record
from spanreel.session import Run, Session
from spanreel_collector.conversion.convert import Conversion, convert
from spanreel_collector.otlp import read_request

Span = dict[str, Any]
TRACE = "a" * 32
SECOND = 1_000_000_000
BEGAN = 1_795_000_000 * SECOND
GENAI = "opentelemetry.instrumentation.genai.openai"


def any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, bytes):
        return {"bytesValue": base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {"kvlistValue": {"values": attribute_list(value)}}
    if isinstance(value, (list, tuple)):
        return {"arrayValue": {"values": [any_value(item) for item in value]}}
    assert value is None
    return {}


def attribute_list(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": any_value(value)} for key, value in attributes.items()]


def span_id(number: int) -> str:
    return f"{number:016x}"


def span(
    number: int,
    name: str,
    attributes: Mapping[str, Any],
    parent: int | None = None,
    *,
    trace: str = TRACE,
    start: float | None = None,
    seconds: float = 0.5,
    **rest: Any,
) -> Span:
    """A span; its number is its id and, if nothing else is said, the second it starts in."""
    began = BEGAN + int((number if start is None else start) * SECOND)
    return {
        "traceId": trace,
        "spanId": span_id(number),
        **({"parentSpanId": span_id(parent)} if parent is not None else {}),
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(began),
        "endTimeUnixNano": str(began + int(seconds * SECOND)),
        "attributes": attribute_list(attributes),
        **rest,
    }


def ours(number: int, record: Record, parent: int | None = None, **rest: Any) -> Span:
    """One of our own spans, with what it says, and ``also`` these attributes."""
    also = rest.pop("also", {})
    attributes = {**wire.write(record), **also}
    return span(number, str(attributes[names.OPERATION]), attributes, parent, **rest)


def request(*spans: Span, scope: str = SCOPE, service: str = "demo") -> dict[str, Any]:
    """An export request."""
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": attribute_list({"service.name": service})},
                "scopeSpans": [{"scope": {"name": scope}, "spans": list(spans)}],
            }
        ]
    }


def line(*spans: Span, scope: str = SCOPE, service: str = "demo") -> str:
    return json.dumps(request(*spans, scope=scope, service=service)) + "\n"


def log(event: str, attributes: Mapping[str, Any], inside: int, body: Any = None, time: int = 1) -> dict[str, Any]:
    """An export request of one log record."""
    record = {
        "timeUnixNano": str(BEGAN + time),
        "traceId": TRACE,
        "spanId": span_id(inside),
        "eventName": event,
        "body": any_value(body),
        "attributes": attribute_list(attributes),
    }
    return {"resourceLogs": [{"resource": {}, "scopeLogs": [{"scope": {"name": GENAI}, "logRecords": [record]}]}]}


def converted(*requests: dict[str, Any]) -> Conversion:
    return convert(read_request(document, f"test:{number}") for number, document in enumerate(requests, 1))


def sessions(*spans: Span, scope: str = SCOPE) -> list[Session]:
    """The sessions of these spans, which must all be readable."""
    conversion = converted(request(*spans, scope=scope))
    assert conversion.faults == ()
    return list(conversion.sessions)


def session(*spans: Span, scope: str = SCOPE) -> Session:
    (one,) = sessions(*spans, scope=scope)
    return one


def only_run(one: Session) -> Run:
    (run,) = one.runs
    return run


# -- content ---------------------------------------------------------------------------------------------------------


def said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def called(name: str, arguments: Any, identity: str | None = None) -> dict[str, Any]:
    return {"type": "tool_call", "id": identity, "name": name, "arguments": arguments}


def asks(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "parts": list(calls)}


def told(identity: str, response: Any) -> dict[str, Any]:
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": identity, "response": response}]}


def model(messages: list[dict[str, Any]], answer: dict[str, Any] | None, **rest: Any) -> ModelRecord:
    """A model call of our own; ``run`` and ``turn`` say where it stands."""
    run, turn = rest.pop("run", None), rest.pop("turn", None)
    usage = rest.pop("usage", Usage(10, 2))
    rest.setdefault("call_id", None)
    return ModelRecord(
        request=Request(Operation.CHAT, "gpt-5", messages=tuple(messages)),
        answer=Answer(response_id=rest.pop("response_id", None), model="gpt-5", messages=(answer,), usage=usage)
        if answer
        else rest.pop("failed", None),
        provider="openai",
        protocol="openai_chat",
        run_id=None if run is None else span_id(run),
        turn_index=turn,
        **rest,
    )


def chat(number: int, messages: Any, answer: Any, parent: int | None = None, **rest: Any) -> Span:
    """A model call in the GenAI conventions; lists become JSON text."""
    also = rest.pop("also", {})
    attributes = {names.OPERATION: "chat", names.REQUEST_MODEL: "gpt-5", **also}
    if messages is not None:
        attributes[names.INPUT_MESSAGES] = messages if isinstance(messages, str) else json.dumps(messages)
    if answer is not None:
        attributes[names.OUTPUT_MESSAGES] = answer if isinstance(answer, str) else json.dumps([answer])
    return span(number, "chat gpt-5", attributes, parent, **rest)


def tool(number: int, name: str, arguments: Any, result: Any, parent: int | None = None, **rest: Any) -> Span:
    """A tool call in the GenAI conventions."""
    also = rest.pop("also", {})
    attributes = {
        names.OPERATION: "execute_tool",
        names.TOOL_NAME: name,
        names.TOOL_CALL_ARGUMENTS: json.dumps(arguments),
        names.TOOL_CALL_RESULT: result if isinstance(result, str) else json.dumps(result),
        **also,
    }
    return span(number, f"execute_tool {name}", attributes, parent, **rest)


def agent(number: int, name: str | None, parent: int | None = None, **rest: Any) -> Span:
    """A run in the GenAI conventions."""
    also = rest.pop("also", {})
    named = {names.AGENT_NAME: name} if name else {}
    return span(number, f"invoke_agent {name}", {names.OPERATION: "invoke_agent", **named, **also}, parent, **rest)
