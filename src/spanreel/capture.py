"""What one crossing kept: bytes as they were, arguments as a snapshot. Read into attributes in the export thread."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from spanreel import wire
from spanreel.exchange import HttpRequest, ModelProtocol, Piece
from spanreel.model import Agent, Answer, Error, ErrorCategory, Fidelity, Operation, Request, Status
from spanreel.protocols import provider_of
from spanreel.protocols.paths import read_request
from spanreel.protocols.sse import Arrived
from spanreel.quiet import quietly
from spanreel.records import ModelRecord, RunRecord, ToolRecord

KEPT_HEADERS = ("x-request-id", "request-id", "retry-after", "retry-after-ms", "x-should-retry", "x-amzn-errortype")
"""The response headers that an SDK reads again; no other is kept."""
_READ_HEADERS = frozenset({*KEPT_HEADERS, "content-type", "content-encoding"})

_STREAM_TYPE = re.compile(r"event-stream|x-ndjson|amazon\.eventstream|stream\+json")
_STREAM_START = re.compile(rb"\s*(?:data|event|id|retry)?:")

Attributes = Mapping[str, Any]


@dataclass(slots=True)
class RecordCapture:
    """A run or a tool call: its values had to be taken at once; the record is made of them when it is read."""

    record: Callable[[], RunRecord | ToolRecord]
    content: bool
    size: int = 0

    def attributes(self) -> Attributes:
        """The span attributes of what was kept."""
        return wire.write(self.record(), content=self.content)


@dataclass(slots=True)
class ExchangeCapture:
    """One attempt of a model call: the request, and what has come of the response so far.

    ``pieces`` are raw, each behind when it came, in nanoseconds of the clock that ``started`` is by: in one flat list,
    or the garbage collector would look at a pair a piece. ``body`` is the decoded body where the client read it, at
    ``body_at`` of that clock.
    """

    reads: ClassVar[bool] = False

    protocol: ModelProtocol
    operation: Operation
    request: HttpRequest
    content: bool
    decode: Callable[[Mapping[str, str], Sequence[Piece]], list[Piece]]
    limit: int
    call_id: str = ""
    attempt: int = 0
    run_id: str | None = None
    turn_index: int | None = None
    agent: Agent = field(default_factory=Agent)
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    body_at: int = 0
    started: int = 0
    pieces: list[Any] = field(default_factory=list)
    dropped: int = 0
    error: Error | None = None
    outcome: Status = Status.OK

    @property
    def size(self) -> int:
        """Bytes held."""
        streamed = sum(map(len, self._data())) if self.pieces else 0
        return len(self.request.body) + streamed + (len(self.body) if self.body is not None else 0)

    def end(self, _result: Any, error: Error | None, status: Status) -> None:
        """The exchange has ended, well or with an error."""
        self.error, self.outcome = error, status

    def capture(self) -> ExchangeCapture:
        """What is handed over when the span ends."""
        return self

    def mentions(self, call_id: str) -> bool:
        """Whether the answer so far asked for the tool call of this id: found in the bytes, not parsed."""
        needle = call_id.encode()
        return needle in (self.body or b"") or needle in b"".join(self._data())

    def attributes(self) -> Attributes:
        """The span attributes of what was kept: read by the protocol, raw where it cannot."""
        return wire.write(self.record(), content=self.content)

    def record(self) -> ModelRecord:
        """What was kept, read."""
        headers = self.headers = _read_headers(self.headers)
        request, raw_request = Request(self.operation, None), None
        try:
            request = read_request(self.protocol, self.operation, self.request.path, self.request.body)
        except Exception as fault:  # noqa: BLE001 -- a fault of the protocol's costs what it reads, not the answer
            raw_request = self.request.body.decode("utf-8", "replace")
            _note(fault, "read a model's request")
        answer, raw_response = self._answer()
        # The provider's own words say more than the HTTP status.
        failure = answer.error if answer is not None else None
        return ModelRecord(
            request=request,
            provider=provider_of(self.request.host, self.protocol),
            protocol=self.protocol.NAME,
            call_id=self.call_id or None,
            attempt=self.attempt,
            run_id=self.run_id,
            turn_index=self.turn_index,
            agent=self.agent,
            host=self.request.host or None,
            port=self.request.port,
            headers={name: headers[name] for name in KEPT_HEADERS if name in headers},
            time_to_first_chunk=self._time_to_first_chunk(),
            answer=answer,
            raw_request=raw_request,
            raw_response=raw_response,
            fidelity={"output": Fidelity.TRUNCATED} if self.dropped else {},
            error=failure or self.error,
            status=Status.ERROR if failure and self.outcome is Status.OK else self.outcome,
        )

    def _answer(self) -> tuple[Answer | None, str | None]:
        """The answer, where there was one; with its text where that could not be read."""
        if self.status is None:
            return None, None
        pieces: Sequence[Piece] = [] if self.body is None else [((self.body_at - self.started) / 1e6, self.body)]
        if self.pieces and self.body is None:
            with quietly("decode a response"):
                pieces = Arrived(self.pieces, self.started)
                if "content-encoding" in self.headers:
                    pieces = self.decode(self.headers, list(pieces))
        try:
            return self._read(pieces), None
        except Exception as fault:  # noqa: BLE001 -- as above
            _note(fault, "read a model's answer")
            return Answer(status=self.status, complete=False), _joined(pieces).decode("utf-8", "replace")

    def _read(self, pieces: Sequence[Piece]) -> Answer:
        status = self.status or 200
        if status < 400 and self._is_stream():
            return self.protocol.join(pieces)
        body = _joined(pieces)
        if status < 400 and self._is_stream(body):
            return self.protocol.join(pieces)
        if not body and status < 400:
            return Answer(status=status, complete=False)
        return self.protocol.read_response(body, status)

    def _data(self) -> list[bytes]:
        return self.pieces[1::2]

    def _time_to_first_chunk(self) -> float | None:
        return (self.pieces[0] - self.started) / 1e9 if self.pieces and self._is_stream() else None

    def _is_stream(self, body: bytes | None = None) -> bool:
        kind = self.headers.get("content-type", "")
        if kind and _STREAM_TYPE.search(kind) is not None:
            return True
        if kind or body is None:
            return False
        return _STREAM_START.match(body) is not None


def _read_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Those that are read here, by their names in small letters: a client's own object is slow to ask."""
    return {name: headers[name] for name in _READ_HEADERS.intersection([name.lower() for name in headers])}


def _note(fault: Exception, doing: str) -> None:
    """A ValueError says that a body is not of the protocol's form; all else is a fault of ours."""
    if not isinstance(fault, ValueError):
        with quietly(doing):
            raise fault


def _joined(pieces: Sequence[Piece]) -> bytes:
    return pieces[0][1] if len(pieces) == 1 else b"".join([piece for _, piece in pieces])


def http_error(status: int) -> Error:
    """What an HTTP status from 400 on amounts to, before its body is read."""
    category = ErrorCategory.TIMEOUT if status in (408, 504) else ErrorCategory.MODEL
    return Error(category, str(status))
