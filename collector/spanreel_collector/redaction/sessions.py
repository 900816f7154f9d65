"""A policy applied to session documents: each field as the attribute that it came from, and marked where it changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from spanreel import conventions as names
from spanreel.binary import without_binary
from spanreel.digest import key_ids_in
from spanreel.model import Json
from spanreel.policy import Policy
from spanreel.policy_labels import join_labels
from spanreel.redaction import redact_attributes, redact_json
from spanreel.session import Session
from spanreel.session_files import read_session
from spanreel_collector import json_text
from spanreel_collector.sessions.eligibility import judge

Document = dict[str, Any]

_SESSION: Final = {
    "id": names.CONVERSATION_ID,
    "user_id": names.USER_ID,
    "name": names.SESSION_NAME,
    "tags": names.SESSION_TAGS,
    "metadata": names.SESSION_METADATA,
    "messages": names.INPUT_MESSAGES,
    "tools": names.TOOL_DEFINITIONS,
}
_RUN: Final = {"user_id": names.USER_ID, "arguments": names.RUN_ARGUMENTS, "result": names.RUN_RESULT}
_MODEL_CALL: Final = {
    "settings": names.REQUEST_SETTINGS,
    "request_fields": names.REQUEST_PROVIDER_FIELDS,
    "provider_fields": names.RESPONSE_PROVIDER_FIELDS,
    "headers": names.RESPONSE_HEADERS,
    "raw_request": names.RAW_REQUEST,
    "raw_response": names.RAW_RESPONSE,
    "chunks": names.STREAM_CHUNKS,
}
_TOOL_CALL: Final = {
    "name": names.TOOL_NAME,
    "arguments": names.TOOL_CALL_ARGUMENTS,
    "result": names.TOOL_CALL_RESULT,
    "raised": names.TOOL_RAISED,
}
_LEFT: Final = frozenset({"schema", "revision", "canon", "redaction", "replay", "fidelity", "usage", "cost"})
_NO_FIELDS: Final = frozenset(
    {"turns", "side_calls", "loose_tool_calls", "fidelity", "parent", "id", "trace_id", "evaluations"}
)


def redact_session(document: Document, policy: Policy) -> Session:
    """The session of a document, redacted; it says by what, and what that means for a replay."""
    done = redact_document(document, policy)
    if done == document:
        return read_session(document)
    _mark(document, done)
    before = document.get("redaction", {}).get("policy")
    done["redaction"] = {
        "policy": join_labels(before, policy.label),
        "key_ids": sorted({*document.get("redaction", {}).get("key_ids", ()), *key_ids_in(json_text.canonical(done))}),
    }
    done["revision"] = document.get("revision", 1) + 1
    session = read_session(done)
    session.replay = judge(session)
    return session


def redact_document(document: Document, policy: Policy) -> Document:
    """A session document without what the policy finds in it, and nothing else changed."""
    document = without_binary(document)
    done = {**document, **_apply(document, _SESSION, policy)}
    # The answers of models stand among the messages too.
    said = redact_attributes({names.OUTPUT_MESSAGES: done.get("messages", [])}, policy).attributes
    done["messages"] = said.get(names.OUTPUT_MESSAGES, [])
    if isinstance(key := done.get("key"), dict):
        value = redact_attributes({names.CONVERSATION_ID: key.get("value")}, policy).attributes
        done["key"] = {**key, "value": value.get(names.CONVERSATION_ID, "")}
    done["runs"] = [_run(run, policy) for run in document.get("runs", [])]
    rest = {name: value for name, value in done.items() if name not in (*_SESSION, *_LEFT, "key")}
    redacted, _ = redact_json(rest, policy)
    assert isinstance(redacted, dict)
    return {name: redacted.get(name) if name in rest else done[name] for name in done}


def _apply(document: Mapping[str, Any], fields: Mapping[str, str], policy: Policy) -> Document:
    """The fields of an object, redacted as the attributes that they came from; one that is dropped is null."""
    given = {fields[name]: document[name] for name in fields if document.get(name) is not None}
    said = redact_attributes(given, policy).attributes
    return {name: said.get(fields[name]) for name in fields if fields[name] in given}


def _run(run: Document, policy: Policy) -> Document:
    done = {**run, **_apply(run, _RUN, policy)}
    if isinstance(entrypoint := run.get("entrypoint"), dict):
        argv = {"argv": entrypoint["argv"]} if "argv" in entrypoint else {}
        said = redact_attributes({names.RUN_ENTRYPOINT: argv}, policy).attributes.get(names.RUN_ENTRYPOINT)
        done["entrypoint"] = {**entrypoint, **(said if isinstance(said, dict) else {})}
        done["entrypoint"] |= _apply(entrypoint, {"arguments": names.RUN_ARGUMENTS}, policy)
    done["turns"] = [_turn(turn, policy) for turn in run.get("turns", [])]
    done["side_calls"] = [{**call, **_apply(call, _MODEL_CALL, policy)} for call in run.get("side_calls", [])]
    done["loose_tool_calls"] = [_tool_call(call, policy) for call in run.get("loose_tool_calls", [])]
    return {name: value for name, value in done.items() if name in run}


def _turn(turn: Document, policy: Policy) -> Document:
    done = dict(turn)
    if isinstance(call := turn.get("model_call"), dict):
        done["model_call"] = {**call, **_apply(call, _MODEL_CALL, policy)}
    if "tool_calls" in turn:
        done["tool_calls"] = [_tool_call(call, policy) for call in turn["tool_calls"]]
    return done


def _tool_call(call: Document, policy: Policy) -> Document:
    requested = {"name": names.TOOL_NAME, "requested": names.TOOL_CALL_ARGUMENTS}
    after = {"name": names.TOOL_NAME, "arguments_after": names.TOOL_ARGUMENTS_AFTER}
    return {
        **call,
        **_apply(call, _TOOL_CALL, policy),
        **_apply(call, requested, policy),
        **_apply(call, after, policy),
    }


# -- marks -----------------------------------------------------------------------------------------------------------


def _mark(before: Document, after: Document) -> None:
    """Say in each run and call which of its fields changed."""
    tables = zip(before.get("messages", []), after["messages"], strict=False)
    changed = {number for number, (old, new) in enumerate(tables) if old != new}
    for old, new in zip(_records(before), _records(after), strict=True):
        fields = [name for name in new if name not in _NO_FIELDS and new[name] != old.get(name)]
        fields += [name for name in ("input", "output") if changed.intersection(_numbers(new.get(name)))]
        if "entrypoint" in fields:
            fields.append("arguments")
        fidelity = dict(new.get("fidelity", {}))
        for name in fields:
            if fidelity.get(name) not in ("truncated", "absent"):
                fidelity[name] = "redacted"
        if fidelity:
            new["fidelity"] = fidelity


def _records(document: Document) -> Iterator[Document]:
    """The runs, model calls and tool calls, in the order of the document."""
    for run in document.get("runs", []):
        yield run
        for turn in run.get("turns", []):
            if isinstance(turn.get("model_call"), dict):
                yield turn["model_call"]
            yield from turn.get("tool_calls", [])
        yield from run.get("side_calls", [])
        yield from run.get("loose_tool_calls", [])


def _numbers(value: Json) -> list[int]:
    return [number for number in value if isinstance(number, int)] if isinstance(value, list) else []
