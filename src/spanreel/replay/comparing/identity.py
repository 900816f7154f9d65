"""What makes a model request the same request: its canonical messages, tools and settings, without what is transport.

Built by one function for recorded and for live requests. Whether two are the same is decided in `matching`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from spanreel.model import Answer, Error, ErrorCategory, Json, Message, Operation, Request, Usage
from spanreel.replay.comparing.canonical import canonical_arguments, canonical_json
from spanreel.session import INSTRUCTIONS, ErrorInfo, ModelCall, Session
from spanreel.session import Message as StoredMessage

TRANSPORT: Final = (
    "stream",
    "stream_options",
    "user",
    "metadata",
    "store",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "include",
)
"""Fields of a request that do not change what the model is asked (part of `spanreel.canon/1`). Every other one does."""

_GENERATED: Final = re.compile(r"(msg|rs|fc|fco|ws|fs|ci|cu|ctc|ig|mcp|mcpl|mcpr|lsh|resp|chatcmpl)[_-]")
_RECORDERS: Final = ("cost_usd",)
"""What a recorder noted beside an answer's fields, which the provider never sent."""
_NO_FIELDS: Final = ("provider_fields",)


def request_of(session: Session, call: ModelCall) -> Request:
    """The recorded request of a model call."""
    stored = [session.messages[number] for number in call.input]
    beside = [message for message in stored if message.role == "system" and message.provider_fields == INSTRUCTIONS]
    return Request(
        operation=Operation(call.operation),
        model=call.model,
        messages=tuple(message_of(message) for message in stored if message not in beside),
        instructions=tuple(dict(part) for message in beside for part in message.parts),
        tools=tuple(session.tools[number] for number in call.tools),
        settings=call.settings,
        stream=call.streamed,
        provider_fields=call.request_fields,
    )


def answer_of(session: Session, call: ModelCall) -> Answer:
    """The recorded answer of a model call (of its last attempt)."""
    messages = [message_of(session.messages[number]) for number in call.output]
    for message, reason in zip(messages, call.finish_reasons, strict=False):
        message.setdefault("finish_reason", reason)
    return Answer(
        response_id=call.response_id,
        model=call.response_model,
        messages=tuple(messages),
        usage=Usage(**_known(call.usage.model_dump())) if call.usage else None,
        status=call.http_status or 200,
        error=error_of(call.error),
        streamed=call.streamed,
        complete=call.complete,
        chunks=tuple(call.chunks),
        provider_fields={name: value for name, value in call.provider_fields.items() if name not in _RECORDERS},
    )


def message_of(stored: StoredMessage) -> Message:
    """A stored message in canonical form; what is null inside a part stays."""
    message: Message = {"role": stored.role, "parts": [dict(part) for part in stored.parts]}
    if stored.name is not None:
        message["name"] = stored.name
    if stored.finish_reason is not None:
        message["finish_reason"] = stored.finish_reason
    if stored.provider_fields:
        message["provider_fields"] = stored.provider_fields
    return message


def error_of(stored: ErrorInfo | None) -> Error | None:
    """A stored failure in canonical form."""
    if stored is None:
        return None
    return Error(ErrorCategory(stored.category), stored.type or "error", stored.message)


def without_provider_fields(answer: Answer) -> Answer:
    """The answer without what only its own provider's protocol understands."""
    return Answer(
        response_id=answer.response_id,
        model=answer.model,
        messages=tuple(
            {**_without(message), "parts": [_without(part) for part in message["parts"]]} for message in answer.messages
        ),
        usage=answer.usage,
        status=answer.status,
        error=answer.error,
        streamed=answer.streamed,
        complete=answer.complete,
    )


def identity(request: Request) -> dict[str, Json]:
    """What makes the request the same request, in the order in which differences are told.

    Instructions stand in front as a system message; call ids are ``#k.j``: assistant message k, call j.
    """
    settings = {name: value for name, value in request.settings.items() if name not in TRANSPORT and value is not None}
    fields = _meant({name: value for name, value in request.provider_fields.items() if name not in TRANSPORT})
    return {
        "model": request.model,
        "messages": _messages(request),
        "tools": [canonical_json(_plain(tool)) for tool in request.tools],
        "settings": canonical_json(settings),
        "provider_fields": canonical_json(fields),
        "operation": str(request.operation),
    }


def output_identity(messages: tuple[Message, ...]) -> Json:
    """What a run's output messages say, without generated ids."""
    return _messages(Request(Operation.CHAT, None, messages))


def forget_provider_fields(value: Json) -> Json:
    """An identity without the providers' own fields, at whatever depth: what a foreign recording does not have."""
    if isinstance(value, dict):
        return {key: forget_provider_fields(item) for key, item in value.items() if key not in _NO_FIELDS}
    if isinstance(value, list):
        return [forget_provider_fields(item) for item in value]
    return value


def _messages(request: Request) -> list[Json]:
    names = _CallNames()
    messages: list[dict[str, Json]] = []
    if request.instructions:
        messages.append({"role": "system", "parts": [_part(part, names) for part in request.instructions]})
    for message in request.messages:
        if message.get("role") == "assistant":
            names.next_message()
        parts = [_part(part, names) for part in message.get("parts") or []]
        # A recording may hold several system texts as one message or as several, depending on its conventions.
        if message.get("role") == "system" and len(messages) == 1 and messages[0]["role"] == "system":
            messages[0]["parts"] = [*messages[0]["parts"], *parts]
            continue
        plain = _plain({key: value for key, value in message.items() if key not in ("parts", "finish_reason")})
        messages.append({**canonical_json(plain), "parts": parts})
    return list(messages)


class _CallNames:
    """The ids of tool calls in the order in which the messages name them, as ``#k.j``."""

    def __init__(self) -> None:
        self._message = -1
        self._asked = 0
        self._names: dict[str, str] = {}
        self._nameless: list[str] = []

    def next_message(self) -> None:
        self._message += 1
        self._asked = 0

    def asked(self, call_id: Json) -> str:
        name = f"#{self._message}.{self._asked}"
        self._asked += 1
        if call_id is None:
            self._nameless.append(name)
        else:
            self._names[str(call_id)] = name
        return name

    def answered(self, call_id: Json) -> str:
        # Calls whose ids a recorder dropped are answered in their order.
        if str(call_id) not in self._names and self._nameless:
            self._names[str(call_id)] = self._nameless.pop(0)
        # An id that no message asked for: the history was cut, and its place among the others is all that stays.
        return self._names.setdefault(str(call_id), f"#-.{len(self._names)}")


def _part(part: Mapping[str, Json], names: _CallNames) -> Json:
    plain = _plain(part)
    kind = plain.get("type")
    if kind in ("tool_call", "server_tool_call"):
        plain["id"] = names.asked(plain.get("id"))
        if "arguments" in plain:
            plain["arguments"] = canonical_arguments(plain["arguments"])
    elif kind in ("tool_call_response", "server_tool_call_response"):
        plain["id"] = names.answered(plain.get("id"))
    return canonical_json(plain)


def _plain(value: Mapping[str, Json]) -> dict[str, Any]:
    """Without nulls of the form itself and generated ids; the values are left as they are."""
    plain = {key: item for key, item in value.items() if item is not None}
    fields = plain.pop("provider_fields", None)
    if isinstance(fields, Mapping):
        kept = {key: item for key, item in _meant(fields).items() if not (key == "id" and _generated(item))}
        if kept:
            plain["provider_fields"] = kept
    return plain


def _meant(fields: Mapping[str, Json]) -> dict[str, Json]:
    """Without what only says how something stood on the wire: nulls, and the protocols' own marks."""
    return {key: value for key, value in fields.items() if value is not None and not key.startswith("$")}


def _generated(value: Json) -> bool:
    return isinstance(value, str) and _GENERATED.match(value) is not None


def _without(value: Mapping[str, Json]) -> dict[str, Json]:
    return {key: item for key, item in value.items() if key != "provider_fields"}


def _known(usage: Mapping[str, Json]) -> dict[str, int | None]:
    return {name: usage.get(name) for name in Usage.__slots__}
