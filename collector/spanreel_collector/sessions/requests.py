"""Tool calls and the requests for them: which answer of a model asked for which call, and what it was answered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

from spanreel.frozen import dataclass
from spanreel.memory import Known
from spanreel.model import Fidelity, Json
from spanreel.records import ModelRecord, ToolRecord
from spanreel_collector import json_text
from spanreel_collector.trace import Placed

MISSING = object()
"""No answer to a request was found; None is an answer."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A model's request for a tool call: ``position`` counts those of one answer, ``model`` is the call's number.

    The number is -1 where the request stands only in the history of the first call.
    """

    model: int
    position: int
    call_id: str | None
    name: str
    arguments: Json = field(hash=False)


@dataclass(frozen=True, slots=True)
class ToolMentions:
    """What a message tells of tool calls: how many it asks for and answers, and the ids of these."""

    calls: int
    answers: int
    called: tuple[str, ...]
    answered: tuple[str, ...]


_NOTHING_TOLD = ToolMentions(0, 0, (), ())


def told_of(message: Mapping[str, Json]) -> ToolMentions:
    """What a message tells of tool calls; of one that many histories share it is worked out once."""
    if type(message) is not Known:
        return _told_of(message)
    if message.calls is None:
        message.calls = _told_of(message)
    told: ToolMentions = message.calls
    return told


def _told_of(message: Mapping[str, Json]) -> ToolMentions:
    calls = answers = 0
    called: list[str] = []
    answered: list[str] = []
    for part in message.get("parts", ()):
        kind = part.get("type")
        if kind == "tool_call":
            calls += 1
            called += filter(None, (_text(part.get("id")),))
        elif kind == "tool_call_response":
            answers += 1
            answered += filter(None, (_text(part.get("id")),))
    return ToolMentions(calls, answers, tuple(called), tuple(answered)) if calls or answers else _NOTHING_TOLD


def read_requests(models: list[Placed]) -> list[Asked]:
    """All requests for tool calls in the answers of these model calls, in order."""
    found: list[Asked] = []
    for number, placed in enumerate(models):
        answer = placed.record.answer if isinstance(placed.record, ModelRecord) else None
        position = 0
        for part in _parts(answer.messages if answer else ()):
            if part.get("type") == "tool_call":
                name = part.get("name")
                text = name if isinstance(name, str) else ""
                found.append(Asked(number, position, _text(part.get("id")), text, part.get("arguments")))
                position += 1
    return found


def read_provider_calls(model: Placed) -> list[tuple[dict[str, Json], Json]]:
    """The calls that the provider ran itself while it answered, each with its result, or `MISSING`."""
    answer = model.record.answer if isinstance(model.record, ModelRecord) else None
    parts = list(_parts(answer.messages if answer else ()))
    results = {
        _text(part.get("id")): part.get("server_tool_call_response", MISSING)
        for part in parts
        if part.get("type") == "server_tool_call_response"
    }
    return [
        (part, results.get(_text(part.get("id")), MISSING)) for part in parts if part.get("type") == "server_tool_call"
    ]


def join(tools: list[Placed], asked: list[Asked], models: list[Placed]) -> dict[str, Asked]:
    """Tool spans' ids to the requests for them: by call id, then by name and arguments, then by name in order."""
    joined: dict[str, Asked] = {}
    left = set(range(len(asked)))
    for key_of_request, key_of_tool in _KEYS:
        waiting: dict[str | None, list[int]] = defaultdict(list)
        for index in sorted(left):
            waiting[key_of_request(asked[index])].append(index)
        for tool in tools if left else ():
            key = None if tool.id in joined else key_of_tool(_record(tool))
            if key is None:
                continue
            for index in waiting.get(key, ()):
                by_id = key_of_tool is _id_of_tool
                if index in left and (by_id or not _too_late(tool, models[asked[index].model])):
                    joined[tool.id] = asked[index]
                    left.remove(index)
                    break
    return joined


def _too_late(tool: Placed, model: Placed) -> bool:
    """Whether the tool had started before the model was asked."""
    return 0 < tool.span.start < model.started


def _id_of_request(request: Asked) -> str | None:
    return request.call_id


def _id_of_tool(record: ToolRecord) -> str | None:
    return record.call_id


def _content_of_request(request: Asked) -> str | None:
    return json_text.canonical([request.name, request.arguments])


def _content_of_tool(record: ToolRecord) -> str | None:
    absent = record.fidelity.get("arguments") is Fidelity.ABSENT
    return None if absent else json_text.canonical([record.name, record.arguments])


def _name_of_request(request: Asked) -> str | None:
    return request.name


def _name_of_tool(record: ToolRecord) -> str | None:
    return record.name


_Key = tuple[Callable[[Asked], str | None], Callable[[ToolRecord], str | None]]
_KEYS: tuple[_Key, ...] = (
    (_id_of_request, _id_of_tool),
    (_content_of_request, _content_of_tool),
    (_name_of_request, _name_of_tool),
)


def answer_to(request: Asked, models: list[Placed]) -> Json:
    """What the model was told that the requested call had answered, or `MISSING`."""
    told = answer_by_id(request.call_id, models[request.model + 1 :])
    return _answer_in_place(request, models) if told is MISSING else told


def answer_by_id(call_id: str | None, models: Iterable[Placed]) -> Json:
    """What these model calls were told that the call of this id had answered, or `MISSING`."""
    for placed in models if call_id is not None else ():
        record = placed.record
        if isinstance(record, ModelRecord):
            for part in _parts(record.request.messages):
                if part.get("type") == "tool_call_response" and part.get("id") == call_id:
                    return part.get("response", MISSING)
    return MISSING


def said_to_have_failed(call_id: str | None, models: Iterable[Placed]) -> bool:
    """Whether a model was told of the call of this id that it failed, as Anthropic and Bedrock can say."""
    records = (placed.record for placed in models) if call_id is not None else ()
    parts = (part for record in records if isinstance(record, ModelRecord) for part in _parts(record.request.messages))
    for part in parts:
        if part.get("type") == "tool_call_response" and part.get("id") == call_id:
            fields = part.get("provider_fields")
            said = {**part, **fields} if isinstance(fields, dict) else part
            return said.get("is_error") is True or said.get("status") == "error"
    return False


def _answer_in_place(request: Asked, models: list[Placed]) -> Json:
    """The answer in the same place of those that the next request ends with, where no id of theirs is a call's.

    Some writers have no ids, and OpenLLMetry those of OpenAI's items for calls, those of calls for answers.
    """
    following = models[request.model + 1].record if len(models) > request.model + 1 else None
    messages = following.request.messages if isinstance(following, ModelRecord) else ()
    called = {_text(part.get("id")) for part in _parts(messages) if part.get("type") == "tool_call"} - {None}
    answers: list[Json] = []
    for message in reversed(messages):
        parts = list(_parts((message,)))
        if not parts or any(
            part.get("type") != "tool_call_response" or _text(part.get("id")) in called for part in parts
        ):
            break
        answers = [*(part.get("response", MISSING) for part in parts), *answers]
    return answers[request.position] if len(answers) > request.position else MISSING


def calls_of(record: ModelRecord) -> list[str]:
    """The ids of the tool calls that an answer asks for."""
    asked = _parts(record.answer.messages if record.answer else ())
    return [identity for part in asked if part.get("type") == "tool_call" and (identity := _text(part.get("id")))]


def calls_before(record: ModelRecord) -> list[str]:
    """The ids of tool calls that a request answers and nothing else: of a call before it, which it goes on from."""
    if any(message.get("role") == "user" for message in record.request.messages):
        return []  # some writers leave the calls of a whole history out
    parts = list(_parts(record.request.messages))
    repeated = {part.get("id") for part in parts if part.get("type") == "tool_call"}
    answered = [_text(part.get("id")) for part in parts if part.get("type") == "tool_call_response"]
    return [identity for identity in answered if identity is not None and identity not in repeated]


def earlier_rounds(model: Placed) -> list[tuple[Asked, Json]]:
    """Tool calls, with their answers, that a request repeats from rounds since the user's last words."""
    record = model.record
    if not isinstance(record, ModelRecord):
        return []
    calls: list[Asked] = []
    answered: dict[int, Json] = {}
    for message in record.request.messages:
        parts = list(_parts((message,)))
        if message.get("role") == "user" and any(part.get("type") == "text" for part in parts):
            calls, answered = [], {}
        for part in parts:
            identity, name = _text(part.get("id")), part.get("name")
            if part.get("type") == "tool_call" and isinstance(name, str):
                calls.append(Asked(-1, len(calls), identity, name, part.get("arguments")))
            elif part.get("type") == "tool_call_response" and "response" in part:
                position = _answers_which(identity, calls, answered)
                if position is not None:
                    answered[position] = part["response"]
    return [(calls[position], response) for position, response in answered.items()]


def _answers_which(identity: str | None, calls: list[Asked], answered: dict[int, Json]) -> int | None:
    """The position of the call that is answered: by its id, else the first without an answer where that id is none."""
    if identity is not None and any(call.call_id == identity for call in calls):
        return next(call.position for call in reversed(calls) if call.call_id == identity)
    return next((call.position for call in calls if call.position not in answered), None)


def _record(tool: Placed) -> ToolRecord:
    assert isinstance(tool.record, ToolRecord)
    return tool.record


def _parts(messages: Iterable[Any]) -> Iterator[dict[str, Json]]:
    for message in messages:
        parts = message.get("parts") if isinstance(message, dict) else None
        for part in parts if isinstance(parts, list) else []:
            if isinstance(part, dict):  # a stranger's message may hold anything
                yield part


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None
