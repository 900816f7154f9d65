"""What the path of a model request says of it where the body does not: the model, and that the answer is a stream.

Gemini and Bedrock say both there, Vertex and Azure the model; whoever reads a request reads it with its path.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final
from urllib.parse import quote, unquote

from spanreel.exchange import ModelProtocol
from spanreel.model import Json, Operation, Request
from spanreel.protocols.residue import ABSENT

_MODEL: Final = re.compile(
    r"(?P<before>/(?:models|tunedModels|endpoints)/)(?P<model>[^/:]+)(?=:\w+$)"
    r"|(?P<before_verb>/model/)(?P<modelled>.+)(?=/(?:converse|converse-stream|invoke|invoke-with-response-stream)$)"
    r"|(?P<before_deployment>/deployments/)(?P<deployment>[^/]+)(?=/)"
)
_STREAMS: Final = (":streamGenerateContent", ":streamRawPredict", "/converse-stream", "/invoke-with-response-stream")


def model_in(path: str) -> str | None:
    """The model that a path names; None where it names none."""
    match = _MODEL.search(path)
    return unquote(match["model"] or match["modelled"] or match["deployment"]) if match is not None else None


def with_model(url: str, model: str) -> str:
    """The URL with another model in the place of the one that its path names; itself where it names none."""
    head, mark, query = url.partition("?")
    match = _MODEL.search(head)
    if match is None:
        return url
    before = match["before"] or match["before_verb"] or match["before_deployment"]
    return f"{head[: match.start()]}{before}{quote(model, safe='@')}{head[match.end() :]}{mark}{query}"


def read_request(protocol: ModelProtocol, operation: Operation, path: str, body: bytes) -> Request:
    """The request that a body and its path make together; ValueError where the body is not of the protocol's form."""
    request = protocol.read_request(body, operation)
    if path.endswith(_STREAMS):
        request = replace(request, stream=True, provider_fields=_unwritten(request, "stream"))
    if request.model is None and (model := model_in(path)) is not None:
        request = replace(request, model=model, provider_fields=_unwritten(request, "model"))
    return request


def _unwritten(request: Request, field: str) -> dict[str, Json]:
    """The request's provider fields, saying that this field does not stand in the body."""
    absent = request.provider_fields.get(ABSENT)
    known = absent if isinstance(absent, list) else []
    return {**request.provider_fields, ABSENT: sorted({*known, field})}
