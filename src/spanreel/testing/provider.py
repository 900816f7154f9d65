"""The scripted provider: takes requests, by a loopback server or in process, and answers them from its script."""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

from spanreel.exchange import ModelProtocol
from spanreel.model import Answer, Error, ErrorCategory, Message, Request
from spanreel.protocols import as_asked, protocol_named, recognise
from spanreel.protocols.openai_errors import write_error
from spanreel.protocols.paths import read_request
from spanreel.testing.script import Script, Scripted
from spanreel.testing.server import LoopbackServer
from spanreel.testing.transports import make_transport

_GZIP = 31
_PREFIXES = {
    "openai_chat": "chatcmpl-",
    "openai_responses": "resp_",
    "openai_embeddings": "embd-",
    "anthropic_messages": "msg_",
}
_ECHOED = ("instructions", "temperature", "top_p", "max_output_tokens", "tools", "tool_choice", "parallel_tool_calls")
_CALL_PREFIXES = {"anthropic_messages": "toolu_"}


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that came in; ``request`` is None where it could not be read."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    request: Request | None


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP answer about to be sent: the pieces of its body, ``delay`` before the first, ``hold`` between them."""

    status: int
    headers: Mapping[str, str]
    pieces: tuple[bytes, ...]
    delay: float = 0.0
    hold: float = 0.0


class ScriptedProvider:
    """Answers model requests from a script, in the protocol and form (plain or streamed) that each request asks for.

    ``script`` is a sequence of answers, given in the order of the requests, or a function from request to answer.
    ``protocol`` names the one to speak where none claims the path. ``gzip`` compresses for clients that accept it.

        with ScriptedProvider([testing.text("hello")]) as provider:      # a server on 127.0.0.1
            openai.OpenAI(base_url=provider.base_url, api_key="none")

        provider = ScriptedProvider([testing.text("hello")])             # no server at all
        openai.OpenAI(http_client=httpx2.Client(transport=provider.transport("httpx2")), api_key="none")

    A request beyond the script's end is answered with HTTP 500 and counted in ``exhausted``. Ids are ``chatcmpl-1``,
    ``resp_2``, ``msg_3``, ``call_1``, ``toolu_2``, ... in the order of giving. Safe to use from many threads.
    """

    def __init__(self, script: Script, protocol: str | None = None, *, gzip: bool = False) -> None:
        self.requests: list[Asked] = []
        self.exhausted = 0
        self._script = script if callable(script) else tuple(script)
        self._protocol = protocol_named(protocol) if protocol else None
        self._gzip = gzip
        self._lock = threading.Lock()
        self._given = 0
        self._calls = 0
        self._server: LoopbackServer | None = None

    def __enter__(self) -> Self:
        self._server = LoopbackServer(self.reply)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    @property
    def base_url(self) -> str:
        """What an SDK takes as its base URL: ``http://127.0.0.1:PORT/v1``; Anthropic.s adds its own, unharmed."""
        if self._server is None:
            raise RuntimeError(
                "the scripted provider has an address only inside `with ScriptedProvider(...) as provider:`"
            )
        return f"http://127.0.0.1:{self._server.port}/v1"

    def transport(self, library: str = "httpx") -> Any:
        """A transport for clients of ``library`` (httpx or httpx2), sync and async alike, that answers in process."""
        return make_transport(library, self.reply)

    def reply(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """The HTTP answer to a request; ``path`` is without the query, names of headers are in lower case."""
        protocol, request, failure = self._read(method, path, body)
        with self._lock:
            self.requests.append(Asked(method, path, dict(headers), body, request))
            number = len(self.requests)
            if request is not None:
                step = self._next(number)
        if protocol is None or request is None:
            return _failed(404 if protocol is None else 400, failure, protocol)
        if step is None:
            return _failed(
                500, f"the script is exhausted: it has {self._given} answers, this is request {number}", protocol
            )
        scripted = step(request) if callable(step) else step
        scripted = scripted if isinstance(scripted, Scripted) else Scripted(scripted)
        completed = self._complete(scripted.answer, request, protocol, number)
        scripted = replace(scripted, answer=_echoing(completed, body, protocol))
        return self._write(scripted, request, protocol, headers, number)

    def _read(self, method: str, path: str, body: bytes) -> tuple[ModelProtocol | None, Request | None, str]:
        found = recognise(method, path)
        if found is None and self._protocol is not None and method == "POST":
            found = self._protocol, next(iter(self._protocol.PATHS.values()))
        if found is None:
            return None, None, f"no model protocol is spoken at {method} {path}"
        try:
            return found[0], read_request(*found, path, body), ""
        except ValueError as error:
            return found[0], None, str(error)

    def _next(self, number: int) -> Any:
        if not isinstance(self._script, tuple):
            return self._script
        if self._given >= len(self._script):
            self.exhausted += 1
            return None
        self._given += 1
        return self._script[self._given - 1]

    def _complete(self, answer: Answer, request: Request, protocol: ModelProtocol, number: int) -> Answer:
        """The answer with what a provider would add: ids, the model, how many tokens the request had."""
        if answer.status >= 400:
            return answer
        usage = answer.usage
        if usage is not None and usage.input_tokens is None:
            usage = replace(usage, input_tokens=_count_words(request))
        return replace(
            answer,
            response_id=answer.response_id or f"{_PREFIXES.get(protocol.NAME, 'response-')}{number}",
            model=answer.model or request.model,
            messages=tuple(self._with_call_ids(message, protocol) for message in answer.messages),
            usage=usage,
        )

    def _with_call_ids(self, message: Message, protocol: ModelProtocol) -> Message:
        prefix = _CALL_PREFIXES.get(protocol.NAME, "call_")
        return {**message, "parts": [self._with_call_id(part, prefix) for part in message["parts"]]}

    def _with_call_id(self, part: dict[str, Any], prefix: str) -> dict[str, Any]:
        if part.get("type") != "tool_call" or part.get("id") is not None:
            return part
        with self._lock:
            self._calls += 1
            return {**part, "id": f"{prefix}{self._calls}"}

    def _write(
        self, scripted: Scripted, request: Request, protocol: ModelProtocol, headers: Mapping[str, str], number: int
    ) -> Reply:
        answer = as_asked(protocol, request, scripted.answer)
        streamed = request.stream and answer.status < 400
        kind = protocol.STREAM_TYPE if streamed else "application/json"
        sent = {"content-type": kind, "x-request-id": f"req_{number}", **scripted.headers}
        pieces = [piece for _, piece in protocol.split(answer)] if streamed else [protocol.write_response(answer)]
        if self._gzip and "gzip" in headers.get("accept-encoding", ""):
            sent["content-encoding"] = "gzip"
            pieces = _compress(pieces)
        return Reply(answer.status, sent, tuple(pieces), scripted.delay, scripted.hold)


def _echoing(answer: Answer, body: bytes, protocol: ModelProtocol) -> Answer:
    """An answer of OpenAI's Responses repeats what it was asked with, and there are recorders that read it there."""
    if answer.status >= 400 or protocol.NAME != "openai_responses":
        return answer
    asked = json.loads(body)
    echoed = {name: asked[name] for name in _ECHOED if asked.get(name) is not None}
    return replace(answer, provider_fields={**echoed, **answer.provider_fields})


def _failed(status: int, message: str, protocol: ModelProtocol | None) -> Reply:
    """A failure of the provider itself, which an SDK is told not to try again."""
    answer = Answer(status=status, error=Error(ErrorCategory.MODEL, "scripted_provider", message))
    body = protocol.write_response(answer) if protocol is not None else write_error(answer)
    return Reply(status, {"content-type": "application/json", "x-should-retry": "false"}, (body,))


def _count_words(request: Request) -> int:
    parts = [*request.instructions, *(part for message in request.messages for part in message["parts"])]
    return sum(len(str(part.get("content") or part.get("response") or "").split()) for part in parts)


def _compress(pieces: Sequence[bytes]) -> list[bytes]:
    """One gzip stream, flushed after each piece so that each can be read when it comes."""
    stream = zlib.compressobj(wbits=_GZIP)
    flushed = [stream.compress(piece) + stream.flush(zlib.Z_SYNC_FLUSH) for piece in pieces[:-1]]
    return [*flushed, stream.compress(pieces[-1]) + stream.flush()]
