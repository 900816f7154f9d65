"""Requests and responses of HTTP clients that exceptions carry: as JSON, and made again.

Of a request, method and URL, never its headers or body; of a response, its status, headers, and what has been read of
its text, up to a length.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from http.client import responses as REASONS  # noqa: N812 -- a constant, which the standard library writes small
from typing import Any, Final

from spanreel.model import Json

KEY: Final = "$http"
"""Under which the JSON stands, so that it is told from a dict of the user's."""
LONGEST: Final = 64 * 1024
"""Characters of a body; what is more is left out."""

_HTTPX: Final = ("httpx", "httpx2")
_NOT_KEPT: Final = frozenset({"content-encoding", "content-length", "transfer-encoding", "set-cookie"})
"""Headers that say how a body came, which is kept as text; and cookies, which are nobody's business."""


def to_json(value: Any) -> Any:
    """The JSON of a request or a response; the value itself where it is neither."""
    library, kind = type(value).__module__.partition(".")[0], type(value).__name__
    try:
        if (library in _HTTPX and kind == "Request") or (library == "requests" and kind == "PreparedRequest"):
            return {KEY: {"class": f"{library}.{kind}", **_request(value)}}
        if library in (*_HTTPX, "requests") and kind == "Response":
            return {KEY: {"class": f"{library}.{kind}", **_response(value)}}
    except Exception:  # noqa: BLE001 - a client's object may be half made
        return value
    return value


def made_again(value: Any) -> Any:
    """The object of this JSON; the value itself where it is of none, or the client is not loaded."""
    told = value.get(KEY) if isinstance(value, dict) and len(value) == 1 else None
    if not isinstance(told, dict):
        return value
    library, _, kind = str(told.get("class")).partition(".")
    if library not in (*_HTTPX, "requests") or library not in sys.modules:
        return value
    client = importlib.import_module(library)
    try:
        if library == "requests":
            return _of_requests(client, kind, told)
        return _httpx_request(client, told) if kind == "Request" else _httpx_response(client, told)
    except Exception:  # noqa: BLE001 - a document may hold anything
        return value


def _request(request: Any) -> dict[str, Json]:
    return {"method": request.method, "url": None if request.url is None else str(request.url)}


def _response(response: Any) -> dict[str, Json]:
    content = getattr(response, "_content", None)  # what has not been read is not ours to read
    text = response.text if isinstance(content, bytes) else ""
    request = getattr(response, "_request", None) or vars(response).get("request")
    return {
        "status": response.status_code,
        "headers": {name: text for name, text in response.headers.items() if name.lower() not in _NOT_KEPT},
        "text": text[:LONGEST],
        "encoding": response.encoding,
        "url": vars(response).get("url"),
        "request": None if request is None else _request(request),
    }


def _httpx_request(client: Any, told: Mapping[str, Any]) -> Any:
    return client.Request(told["method"], told["url"])


def _httpx_response(client: Any, told: Mapping[str, Any]) -> Any:
    asked = told.get("request")
    request = _httpx_request(client, asked) if isinstance(asked, dict) else None
    return client.Response(told["status"], headers=told["headers"], content=_body(told), request=request)


def _body(told: Mapping[str, Any]) -> bytes:
    return str(told.get("text") or "").encode(told.get("encoding") or "utf-8", "replace")


def _of_requests(client: Any, kind: str, told: Mapping[str, Any]) -> Any:
    if kind == "PreparedRequest":
        request = client.PreparedRequest()
        request.method, request.url = told["method"], told["url"]
        return request
    response, asked = client.Response(), told.get("request")
    response.status_code = told["status"]
    response.headers = client.structures.CaseInsensitiveDict(told["headers"])
    response._content, response.encoding = _body(told), told.get("encoding")  # noqa: SLF001 - as if it had been read
    response.url, response.reason = told.get("url"), REASONS.get(told["status"], "")
    if isinstance(asked, dict):
        response.request = _of_requests(client, "PreparedRequest", asked)
    return response
