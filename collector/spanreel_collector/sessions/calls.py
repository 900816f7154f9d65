"""Model calls and tool calls of the document, from what their spans say."""

from __future__ import annotations

from spanreel.loss_markers import find_loss
from spanreel.model import Fidelity, Json, Status, ToolKind
from spanreel.records import ModelRecord, ToolRecord
from spanreel.session import Attempt, ModelCall, RequestedBy, ToolCall
from spanreel_collector import json_text
from spanreel_collector.dialects.spanreel import NAME as OURS
from spanreel_collector.sessions import requests
from spanreel_collector.sessions.requests import Asked
from spanreel_collector.sessions.tables import Tables, error_info, evaluations_info, timestamp, usage_info
from spanreel_collector.trace import Placed


def write_model_call(placed: Placed, tables: Tables) -> ModelCall:
    """The model call of the document; the last attempt gives its answer."""
    record = placed.record
    assert isinstance(record, ModelRecord)
    request, answer = record.request, record.answer
    absent = record.fidelity.get("output") is Fidelity.ABSENT
    output = [message for message in (answer.messages if answer else ()) if not absent or message.get("parts")]
    error = record.error or (answer.error if answer else None)
    unfinished = placed.span.end == 0 and error is None
    status = (
        Status.UNFINISHED if unfinished else Status.ERROR if error and record.status is Status.OK else record.status
    )
    return ModelCall(
        id=record.call_id or placed.id,
        operation=str(request.operation),
        provider=record.provider,
        protocol=record.protocol,
        model=request.model,
        response_model=answer.model if answer else None,
        response_id=answer.response_id if answer else None,
        settings=json_text.plain(dict(request.settings)),
        input=tables.add_input(record),
        output=tables.add_messages(output),
        tools=tables.add_tools(request.tools),
        finish_reasons=answer.finish_reasons if answer else [],
        usage=usage_info(answer.usage if answer else None),
        streamed=request.stream or bool(answer and answer.streamed),
        complete=answer.complete if answer else True,
        chunks=json_text.plain([list(chunk) for chunk in answer.chunks]) if answer else [],
        attempts=[_attempt(one) for one in (*placed.earlier, placed)] if record.call_id or placed.earlier else [],
        request_fields=json_text.plain(dict(request.provider_fields)),
        provider_fields=json_text.plain(dict(answer.provider_fields)) if answer else {},
        raw_request=record.raw_request,
        raw_response=record.raw_response,
        headers=dict(record.headers),
        status=status,
        http_status=answer.status if answer and record.protocol else None,
        error=error_info(error),
        started_at=timestamp(placed.started),
        ended_at=timestamp(placed.span.end),
        fidelity=dict(record.fidelity),
        evaluations=evaluations_info(placed.evaluations),
    )


def _attempt(placed: Placed) -> Attempt:
    record = placed.record
    assert isinstance(record, ModelRecord)
    answer = record.answer
    return Attempt(
        started_at=timestamp(placed.span.start),
        ended_at=timestamp(placed.span.end),
        status=answer.status if answer else None,
        error=error_info(record.error or (answer.error if answer else None)),
        headers=dict(record.headers),
        provider_fields=json_text.plain(dict(answer.provider_fields)) if answer and answer.status >= 400 else {},
        raw_response=record.raw_response if answer is None or answer.status >= 400 else None,
    )


def write_tool_call(placed: Placed, request: Asked | None, models: list[Placed]) -> ToolCall:
    """The tool call of the document; what its span lacks is taken from the request and from what the model was told."""
    record = placed.record
    assert isinstance(record, ToolRecord)
    fidelity = dict(record.fidelity)
    arguments, result = record.arguments, record.result
    if request is not None and request.arguments is not None and fidelity.get("arguments") is Fidelity.ABSENT:
        arguments, fidelity["arguments"] = request.arguments, Fidelity.RECONSTRUCTED
    state = fidelity.get("result")
    # What another recorder lost on the tool's span may stand whole in what the model was told.
    lost = placed.dialect != OURS and state in (Fidelity.TRUNCATED, Fidelity.REDACTED)
    if request is not None and (state is Fidelity.ABSENT or lost):
        told = requests.answer_to(request, models)
        if told is not requests.MISSING and not (lost and find_loss(told)):
            result, fidelity["result"] = told, Fidelity.RECONSTRUCTED
    if request is not None:
        arguments = _by_name(arguments, request.arguments)
    position = record.position if record.position is not None else request.position if request else 0
    unfinished = placed.span.end == 0 and record.error is None
    return ToolCall(
        id=placed.id,
        call_id=record.call_id or (request.call_id if request else None),
        name=record.name,
        kind=record.kind,
        requested=json_text.plain(request.arguments) if request else None,
        arguments=json_text.plain(arguments),
        result=json_text.plain(result),
        status=Status.UNFINISHED if unfinished else record.status,
        error=error_info(record.error),
        requested_by=_requested_by(models[request.model], position) if request else None,
        target=record.target,
        side_effect=record.side_effect,
        result_type=record.result_type,
        arguments_after=json_text.plain(dict(record.arguments_after)) if record.arguments_after else None,
        raised=json_text.plain(dict(record.raised)) if record.raised else None,
        started_at=timestamp(placed.span.start),
        ended_at=timestamp(placed.span.end),
        fidelity=fidelity,
        evaluations=evaluations_info(placed.evaluations),
    )


def _by_name(arguments: Json, asked: Json) -> Json:
    """Arguments without their names under those that they were asked by, where the values are the same.

    LangChain tells a tool with one argument its value alone; decorated functions tell ``{"args", "kwargs"}``.
    """
    if not isinstance(asked, dict) or not asked:
        return arguments
    if isinstance(arguments, dict) and set(arguments) == {"args", "kwargs"}:
        given, named = arguments["args"], arguments["kwargs"]
        if isinstance(given, list) and isinstance(named, dict) and len(given) <= len(asked):
            whole = {**dict(zip(asked, given, strict=False)), **named}
            return asked if whole == asked else arguments
    return asked if len(asked) == 1 and arguments in asked.values() else arguments


def _requested_by(model: Placed, position: int) -> RequestedBy:
    return RequestedBy(model_call=model_id(model), position=position)


def model_id(model: Placed) -> str:
    """The id of a model call: equal on all its attempts."""
    return getattr(model.record, "call_id", None) or model.id


def provider_tool_call(model: Placed, number: int, part: dict[str, Json], result: Json) -> ToolCall:
    """A call that the provider ran itself, as its answer tells; no span of ours can."""
    asked = json_text.plain(part.get("server_tool_call"))
    known = result is not requests.MISSING
    return ToolCall(
        id=f"{model_id(model)}.provider.{number}",
        call_id=part["id"] if isinstance(part.get("id"), str) else None,
        name=part["name"] if isinstance(part.get("name"), str) else "",
        kind=ToolKind.PROVIDER,
        requested=asked,
        arguments=asked,
        result=json_text.plain(result) if known else None,
        requested_by=_requested_by(model, number),
        executed=False,
        fidelity={} if known else {"result": Fidelity.ABSENT},
    )


def recover_tool_call(model_call: str, request: Asked, answer: Json) -> ToolCall:
    """A call that left no span: what the model asked for, and what it was told in a later request."""
    known = answer is not requests.MISSING
    return ToolCall(
        id=f"{model_call}.{request.position}",
        call_id=request.call_id,
        name=request.name,
        kind=ToolKind.FUNCTION,
        requested=json_text.plain(request.arguments),
        arguments=json_text.plain(request.arguments),
        result=json_text.plain(answer) if known else None,
        status=Status.OK if known else Status.UNFINISHED,
        requested_by=RequestedBy(model_call=model_call, position=request.position) if request.model >= 0 else None,
        executed=False,
        fidelity={
            "arguments": Fidelity.RECONSTRUCTED if request.arguments is not None else Fidelity.ABSENT,
            "result": Fidelity.RECONSTRUCTED if known else Fidelity.ABSENT,
        },
    )
