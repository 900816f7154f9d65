"""Session documents as spans of our own again: what they were made of, as far as they say. They convert to the same."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from spanreel import conventions as names
from spanreel import wire
from spanreel.errors import SessionError
from spanreel.model import Agent, Answer, Error, Json, Message, Operation, Request, Status, Usage
from spanreel.records import Draw, ModelRecord, Record, RunRecord, ToolRecord
from spanreel.session import INSTRUCTIONS, Attempt, ErrorInfo, Evaluation, ModelCall, Run, Session, ToolCall
from spanreel.session_files import read_session
from spanreel_collector.dialects import evaluations
from spanreel_collector.evaluation import Scope
from spanreel_collector.sources.times import nanoseconds
from spanreel_collector.span import ENDED, Batch, Fault, Origin, RawEvent, RawSpan


@dataclass(frozen=True, slots=True)
class ToldSpan:
    """A span of a session with what of the document it tells, and the record that its attributes say.

    ``around`` is the model call's span in whose turn a tool call stands.
    """

    span: RawSpan
    part: Run | ModelCall | ToolCall
    record: Record | None
    around: str | None = None


def recognises(document: Json) -> bool:
    """Whether the document is a session of ours, or a list of them."""
    sessions = document if isinstance(document, list) else [document]
    return bool(sessions) and all(
        isinstance(one, dict) and str(one.get("schema")).startswith("spanreel.session/") for one in sessions
    )


def read(document: Json, place: str) -> Batch:
    """The spans of the sessions; one that this release cannot read costs only itself."""
    spans: list[RawSpan] = []
    faults: list[Fault] = []
    for one in document if isinstance(document, list) else [document]:
        try:
            spans += [replace(told.span, place=place) for told in spans_of(read_session(one))]
        except SessionError as error:
            faults.append(Fault(place, str(error)))
    return Batch(tuple(spans), faults=tuple(faults))


def spans_of(session: Session) -> Iterator[ToldSpan]:
    """The spans of the session's runs and calls. Calls that left no span, which the document tells again, have none."""
    writer = _Writer(session)
    for told in (told for run in session.runs for told in writer.run(run)):
        if session.origin == "recorded":
            yield told
        else:
            attributes = {**told.span.attributes, names.ORIGIN: session.origin}
            yield replace(told, span=replace(told.span, attributes=attributes))


@dataclass(frozen=True, slots=True)
class _Writer:
    session: Session

    def run(self, run: Run) -> Iterator[ToldSpan]:
        """The run's own span, where it has one, and those of its calls."""
        inside_tool = run.parent is not None and run.parent.tool_call is not None
        parent = (run.parent.tool_call or run.parent.run) if run.parent is not None else None
        home = run.id
        if run.implicit and inside_tool:
            home = parent or run.id
        else:
            record = None if run.implicit else _run_record(run, self._messages(run.input), self._messages(run.output))
            attributes = {} if record is None else dict(wire.write(record))
            if run.parent is None:
                attributes |= self._session_attributes(run)
            name = run.agent.name or "calls" if record is None else f"invoke_agent {run.agent.name or ''}".strip()
            span = _judged(_span(run, name, (home, parent), attributes, run), run.evaluations)
            if run is self.session.runs[0]:
                span = _judged(span, self.session.evaluations, Scope.SESSION)
            yield ToldSpan(span, run, record)
        for turn in run.turns:
            index = turn.index if run.order == "cause" else None
            if turn.model_call is not None:
                yield from self._model_call(turn.model_call, run, home, index)
            for call in turn.tool_calls:
                around = turn.model_call.id if turn.model_call is not None else None
                yield from _tool_call(call, run, home, index, around)
        for side_call in run.side_calls:
            yield from self._model_call(side_call, run, home, None)
        for call in run.loose_tool_calls:
            yield from _tool_call(call, run, home, None, None)

    def _session_attributes(self, run: Run) -> dict[str, Any]:
        session = self.session
        redaction = {"policy": session.redaction.policy, "key_ids": session.redaction.key_ids}
        found = {
            names.CONVERSATION_ID: session.key.value if session.key.kind == "conversation" else None,
            names.USER_ID: run.user_id or session.user_id,
            names.SESSION_NAME: session.name,
            names.SESSION_TAGS: list(session.tags) or None,
            names.SESSION_NAMESPACE: session.source.get("namespace"),
            names.SESSION_METADATA: json.dumps(session.metadata) if session.metadata else None,
            names.BASELINE: session.baseline,
            names.REDACTION: json.dumps(redaction) if any(redaction.values()) else None,
        }
        return {name: value for name, value in found.items() if value is not None}

    def _messages(self, indexes: list[int]) -> tuple[Message, ...]:
        return tuple(
            self.session.messages[index].model_dump(exclude_none=True, exclude_defaults=True) | {"parts": parts}
            for index in indexes
            for parts in [self.session.messages[index].parts]
        )

    def _model_call(self, call: ModelCall, run: Run, home: str, index: int | None) -> Iterator[ToldSpan]:
        messages = self._messages(call.input)
        instructions: tuple[dict[str, Any], ...] = ()
        if messages and messages[0].get("provider_fields") == INSTRUCTIONS:
            instructions, messages = tuple(messages[0]["parts"]), messages[1:]
        request = Request(
            operation=Operation(call.operation),
            model=call.model,
            messages=messages,
            instructions=instructions,
            tools=tuple(self.session.tools[number] for number in call.tools),
            settings=call.settings,
            stream=call.streamed,
            provider_fields=call.request_fields,
        )
        record = ModelRecord(
            request=request,
            answer=_answer(call, self._messages(call.output)),
            provider=call.provider,
            protocol=call.protocol,
            call_id=call.id if call.attempts else None,
            attempt=max(0, len(call.attempts) - 1),
            run_id=None if run.implicit else run.id,
            turn_index=index,
            headers=call.headers,
            error=_error(call.error),
            status=Status.OK if call.status is Status.UNFINISHED else call.status,
            raw_request=call.raw_request,
            raw_response=call.raw_response,
            fidelity=call.fidelity,
        )
        for number, attempt in enumerate(call.attempts[:-1]):
            tried = _attempt(record, attempt, number)
            span = _span(run, "chat", (f"{call.id}.{number}", home), dict(wire.write(tried)), attempt)
            yield ToldSpan(span, call, tried)
        unfinished = call.status is Status.UNFINISHED
        timed = call.attempts[-1] if call.attempts and not unfinished else call
        name = f"{call.operation} {call.model or ''}".strip()
        span = _span(run, name, (call.id, home), dict(wire.write(record)), timed)
        yield ToldSpan(_judged(span, call.evaluations), call, record)


def _tool_call(call: ToolCall, run: Run, home: str, index: int | None, around: str | None) -> Iterator[ToldSpan]:
    if not call.executed:
        return
    record = ToolRecord(
        name=call.name,
        arguments=call.arguments,
        result=call.result,
        call_id=call.call_id,
        kind=call.kind,
        side_effect=call.side_effect,
        target=call.target,
        position=call.requested_by.position if call.requested_by is not None and index is not None else None,
        run_id=None if run.implicit else run.id,
        turn_index=index,
        result_type=call.result_type,
        arguments_after=call.arguments_after,
        raised=call.raised,
        status=Status.OK if call.status is Status.UNFINISHED else call.status,
        error=_error(call.error),
        fidelity=call.fidelity,
    )
    # What no answer asks for is placed by the call that it stood in.
    parent = home if call.requested_by is not None or around is None else around
    name = f"execute_tool {call.name}"
    span = _span(run, name, (call.id, parent), dict(wire.write(record)), call)
    yield ToldSpan(_judged(span, call.evaluations), call, record, around)


def _run_record(run: Run, asked: tuple[Message, ...], answered: tuple[Message, ...]) -> RunRecord:
    entrypoint = run.entrypoint
    return RunRecord(
        run_id=run.id,
        path=run.path,
        agent=Agent(run.agent.name, run.agent.id, run.agent.version),
        input=asked,
        output=answered,
        arguments=entrypoint.arguments if entrypoint else None,
        argv=tuple(entrypoint.argv) if entrypoint and entrypoint.argv is not None else None,
        callable=entrypoint.callable if entrypoint else None,
        defaults=tuple(entrypoint.defaults) if entrypoint else (),
        result=run.result,
        status=Status.OK if run.status is Status.UNFINISHED else run.status,
        error=_error(run.error),
        sees_tools=run.sees_tools,
        draws=tuple(Draw(one.kind, one.site, tuple(one.values)) for one in run.draws or ()),
        fidelity=run.fidelity,
    )


def _answer(call: ModelCall, messages: tuple[Message, ...]) -> Answer | None:
    usage = Usage(**call.usage.model_dump(include=set(Usage.__dataclass_fields__))) if call.usage is not None else None
    status = call.http_status or 200
    # Reasons of an answer whose messages were not recorded stand on empty ones.
    messages = messages or tuple(
        {"role": "assistant", "parts": [], "finish_reason": why} for why in call.finish_reasons
    )
    answer = Answer(
        response_id=call.response_id,
        model=call.response_model,
        messages=messages,
        usage=usage,
        status=status,
        error=_error(call.error) if status >= 400 else None,
        streamed=call.streamed,
        complete=call.complete,
        chunks=tuple(list(chunk) for chunk in call.chunks),
        provider_fields=call.provider_fields,
    )
    return None if answer == Answer(streamed=call.streamed) and call.http_status is None else answer


def _attempt(record: ModelRecord, attempt: Attempt, number: int) -> ModelRecord:
    """An attempt before the last: of it only its failure is known."""
    failed = attempt.status is not None and attempt.status >= 400
    error = _error(attempt.error)
    answer = None
    if attempt.status is not None:
        answer = Answer(status=attempt.status, error=error if failed else None, provider_fields=attempt.provider_fields)
    return replace(
        record,
        request=Request(record.request.operation, record.request.model),
        answer=answer,
        attempt=number,
        headers=attempt.headers,
        error=error,
        status=Status.ERROR if error else Status.OK,
        raw_request=None,
        raw_response=attempt.raw_response,
        fidelity={},
    )


def _error(error: ErrorInfo | None) -> Error | None:
    return None if error is None else Error(error.category, error.type or "error", error.message)


_Timed = Run | ModelCall | ToolCall | Attempt


def _span(run: Run, name: str, ids: tuple[str, str | None], attributes: dict[str, Any], timed: _Timed) -> RawSpan:
    """A span of the run's trace. ``ids`` are its own and its parent's; ``timed`` says when it was, and if it ended."""
    end = nanoseconds(timed.ended_at)
    unfinished = not isinstance(timed, Attempt) and timed.status is Status.UNFINISHED
    return RawSpan(
        trace_id=run.trace_id,
        span_id=ids[0],
        parent_id=ids[1],
        name=name,
        kind=1,
        start=nanoseconds(timed.started_at),
        end=end if end or unfinished else ENDED,
        attributes=attributes,
        origin=Origin(scope=names.SCOPE),
        place="session",
    )


def _judged(span: RawSpan, told: Iterable[Evaluation] | None, scope: Scope = Scope.SPAN) -> RawSpan:
    """The span with these evaluations too, as events in the conventions' form."""
    events = tuple(
        RawEvent(
            evaluations.RESULT,
            nanoseconds(one.judged_at),
            {
                name: value
                for name, value in {
                    **one.provider_fields,
                    evaluations.NAME: one.name,
                    evaluations.SCORE: one.score,
                    evaluations.LABEL: one.label,
                    evaluations.EXPLANATION: one.explanation,
                    names.ERROR_TYPE: one.error_type,
                    names.RESPONSE_ID: one.response_id,
                    names.EVALUATION_BY: one.evaluator,
                    names.EVALUATION_OF: str(scope),
                }.items()
                if value is not None
            },
        )
        for one in told or ()
    )
    return replace(span, events=(*span.events, *events)) if events else span
