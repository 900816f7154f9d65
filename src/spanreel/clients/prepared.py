"""Requests as requests, botocore and lm15 prepare them: an object with a method, a URL, a body. Owns reading these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from spanreel.exchange import HttpRequest


def peek(arguments: Mapping[str, Any]) -> tuple[str, str]:
    """Method and path; the path of what is no POST nobody asks for."""
    request = arguments["request"]
    return request.method, urlsplit(request.url).path if request.method == "POST" else ""


def read_request(arguments: Mapping[str, Any]) -> HttpRequest | None:
    """The request with its body; None where the body is a file or a stream."""
    request = arguments["request"]
    body = request.body.encode() if isinstance(request.body, str) else request.body
    if not isinstance(body, bytes | bytearray):
        return None
    url = urlsplit(request.url)
    return HttpRequest(request.method, request.url, url.hostname or "", url.path, bytes(body), url.port)
