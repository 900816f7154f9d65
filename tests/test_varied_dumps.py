"""The golden dumps as others would have exported them: other ids, orders, forms and surroundings, the same sessions."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from golden_sessions import GOLDEN, document
from spanreel.session import Session
from spanreel_collector.conversion.convert import convert
from spanreel_collector.sources.documents import read_line

pytestmark = pytest.mark.slow

Documents = list[dict[str, Any]]
STRUCTURED = re.compile(
    r"gen_ai\.(input\.messages|output\.messages|system_instructions|tool\.definitions|tool\.call\.\w+)"
    r"|pydantic_ai\.all_messages"
)
DUMPS = sorted(GOLDEN.glob("*.otlp.jsonl"))


def spans(documents: Documents) -> Iterator[dict[str, Any]]:
    for one in documents:
        for resource in one.get("resourceSpans", ()):
            for scope in resource["scopeSpans"]:
                yield from scope["spans"]


def apart(documents: Documents) -> Documents:
    """Each span and each record in a request of its own."""
    found = []
    for one in documents:
        for outer, inner, items in (
            ("resourceSpans", "scopeSpans", "spans"),
            ("resourceLogs", "scopeLogs", "logRecords"),
        ):
            for resource in one.get(outer, ()):
                for scope in resource[inner]:
                    for item in scope[items]:
                        found.append({outer: [{**resource, inner: [{**scope, items: [item]}]}]})
    return found


def shuffled(documents: Documents) -> Documents:
    found = apart(documents)
    random.Random(5).shuffle(found)
    return found


def renamed(documents: Documents) -> Documents:
    chance, text = random.Random(3), json.dumps(documents)
    ids = {span[key] for span in spans(documents) for key in ("traceId", "spanId", "parentSpanId") if span.get(key)}
    for identity in sorted(ids):
        text = text.replace(identity, "".join(chance.choices("0123456789abcdef", k=len(identity))))
    found: Documents = json.loads(text)
    return found


def capitals(documents: Documents) -> Documents:
    for span in spans(documents):
        span.update({key: span[key].upper() for key in ("traceId", "spanId", "parentSpanId") if span.get(key)})
    return documents


def twice(documents: Documents) -> Documents:
    return documents + documents


def any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(item) for item in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [{"key": key, "value": any_value(item)} for key, item in value.items()]}}
    kinds = {bool: "boolValue", int: "intValue", float: "doubleValue", str: "stringValue"}
    return {} if value is None else {kinds[type(value)]: str(value) if type(value) is int else value}


def structured(documents: Documents) -> Documents:
    """What the conventions have as JSON text, as the values that it holds."""
    for span in spans(documents):
        for pair in span.get("attributes", ()):
            text = pair["value"].get("stringValue")
            if STRUCTURED.fullmatch(pair["key"]) and text and text[0] in "[{":
                with suppress(ValueError):  # text that only looks like it
                    pair["value"] = any_value(json.loads(text))
    return documents


def in_python(documents: Documents) -> Documents:
    """Fields in the spelling of protobuf's own JSON."""
    names = ("resourceSpans", "scopeSpans", "resourceLogs", "scopeLogs", "logRecords", "traceId", "spanId", "eventName")
    more = ("parentSpanId", "startTimeUnixNano", "endTimeUnixNano", "timeUnixNano", "stringValue", "intValue")
    text = json.dumps(documents)
    for name in (*names, *more, "boolValue", "doubleValue", "arrayValue", "kvlistValue", "droppedAttributesCount"):
        text = text.replace(f'"{name}":', f'"{re.sub("[A-Z]", lambda match: f"_{match.group().lower()}", name)}":')
    found: Documents = json.loads(text)
    return found


def in_an_application(documents: Documents) -> Documents:
    """Around all of a trace that has no parent, the span of a request to a web application."""
    tops: dict[str, list[dict[str, Any]]] = {}
    for span in spans(documents):
        if not span.get("parentSpanId"):
            tops.setdefault(span["traceId"], []).append(span)
    around = []
    for trace, below in tops.items():
        identity = f"{trace[:15]}e"
        times = {"startTimeUnixNano": str(min(int(span["startTimeUnixNano"]) for span in below) - 1000)}
        times["endTimeUnixNano"] = str(max(int(span["endTimeUnixNano"]) for span in below) + 1000)
        around.append({"traceId": trace, "spanId": identity, "name": "POST /chat", "kind": 2, **times})
        for span in below:
            span["parentSpanId"] = identity
    scope = {"name": "opentelemetry.instrumentation.fastapi"}
    return [*documents, {"resourceSpans": [{"scopeSpans": [{"scope": scope, "spans": around}]}]}]


def of_a_remote_caller(documents: Documents) -> Documents:
    """What has no parent is called by another service, whose spans are not here."""
    for span in spans(documents):
        span["parentSpanId"] = span.get("parentSpanId") or "feedfeedfeedfeed"
    return documents


def sessions(documents: Documents) -> list[Session]:
    conversion = convert(read_line(json.dumps(one).encode(), f"x:{number}") for number, one in enumerate(documents))
    assert conversion.faults == ()
    return list(conversion.sessions)


def said(session: Session) -> str:
    """What a session says, ids of traces and spans and the order of its tables aside."""
    told = document(session)
    messages, tools = told.pop("messages", []), told.pop("tools", [])
    for run in told["runs"]:
        calls = [*(turn.get("model_call") for turn in run["turns"]), *run.get("side_calls", [])]
        for holder in (run, *filter(None, calls)):
            for key in ("input", "output"):
                holder[key] = [messages[index] for index in holder.get(key, [])]
            if "tools" in holder:
                holder["tools"] = [tools[index] for index in holder["tools"]]
    if told["key"]["kind"] == "trace":
        told["key"]["value"] = ""
    for key in ("id", "source"):
        told.pop(key)
    return re.sub(r"[0-9a-fA-F]{16,32}(-run)?", "ID", json.dumps(told, sort_keys=True))


VARIANTS = (
    *(apart, shuffled, renamed, capitals, twice, structured, in_python),
    *(in_an_application, of_a_remote_caller),
)


@pytest.mark.parametrize("vary", VARIANTS, ids=lambda vary: vary.__name__)
@pytest.mark.parametrize("dump", DUMPS, ids=lambda dump: dump.name.removesuffix(".otlp.jsonl"))
def test_a_dump_exported_otherwise_is_the_same_sessions(dump: Path, vary: Callable[[Documents], Documents]) -> None:
    if vary is structured and dump.name.startswith("spanreel"):
        return  # our own spans have text there, and nothing else is ours
    if vary is of_a_remote_caller and dump.name.startswith("langsmith"):
        return  # whether a function is the agent or a step of it, its place alone tells
    documents = [json.loads(line) for line in dump.read_text(encoding="utf-8").splitlines()]
    expected = sorted(said(one) for one in sessions(documents))
    assert sorted(said(one) for one in sessions(vary(copy.deepcopy(documents)))) == expected
