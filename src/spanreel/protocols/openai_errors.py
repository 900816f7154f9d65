"""How providers write failures: ``{"error": {"message", "type", "param", "code"}}`` as OpenAI does, or anything."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Final

from spanreel.model import Answer, Error, ErrorCategory, Json
from spanreel.protocols.residue import overlay, read_json, residue, write_json

TEXT: Final = "$text"
"""In ``provider_fields`` of an answer: its body, where that is no JSON object."""
BASE64: Final = "$base64"
"""The same, where the body is not even UTF-8."""

_MESSAGE_LIMIT = 2000
_TIMEOUTS = (408, 504)


def write_failure(error: Error) -> dict[str, Json]:
    """The body of a failure in OpenAI's form."""
    return {"error": {"message": error.message, "type": error.type, "param": None, "code": None}}


Form = Callable[[Error], dict[str, Json]]


def read_error(body: bytes, status: int, form: Form = write_failure) -> Answer:
    """An answer of status 400 and more, whatever its body is; ``form`` is how the protocol writes a failure."""
    try:
        value = read_json(body)
    except ValueError:
        value = None
    if isinstance(value, dict):
        error = describe_error(value, status)
        return Answer(status=status, error=error, provider_fields=residue(value, form(error)))
    if isinstance(value, list) and value and isinstance(value[0], dict):
        error = describe_error(value[0], status)
    else:
        text = body.decode("utf-8", "replace").strip()[:_MESSAGE_LIMIT]
        error = Error(_category(status), str(status), text or None)
    try:
        return Answer(status=status, error=error, provider_fields={TEXT: body.decode()})
    except UnicodeDecodeError:
        return Answer(status=status, error=error, provider_fields={BASE64: base64.b64encode(body).decode()})


def write_error(answer: Answer, form: Form = write_failure) -> bytes:
    """The body of an answer that `read_error` read, or of any failed one."""
    text, encoded = answer.provider_fields.get(TEXT), answer.provider_fields.get(BASE64)
    if isinstance(text, str):
        return text.encode()
    if isinstance(encoded, str):
        try:
            return base64.b64decode(encoded, validate=True)
        except ValueError:  # what stands for content that was not recorded
            return encoded.encode()
    error = answer.error or Error(_category(answer.status), str(answer.status))
    return write_json(overlay(form(error), answer.provider_fields))


def describe_error(body: Mapping[str, Json], status: int) -> Error:
    """The failure that a JSON object tells of: an ``error`` object or text, else its ``message`` or ``detail``."""
    inner = body.get("error")
    source = inner if isinstance(inner, dict) else body
    kinds = [source.get(key) for key in ("type", "code", "status")]
    # A number says no more than the status does; Gemini has a name beside it.
    named = (kind for kind in kinds if isinstance(kind, str) and kind != "")
    numbered = (kind for kind in kinds if isinstance(kind, int) and not isinstance(kind, bool))
    kind = str(next(named, None) or next(numbered, status))
    texts = [inner, source.get("message"), source.get("detail")]
    return Error(_category(status), kind, next((text for text in texts if isinstance(text, str)), None))


def _category(status: int) -> ErrorCategory:
    return ErrorCategory.TIMEOUT if status in _TIMEOUTS else ErrorCategory.MODEL
