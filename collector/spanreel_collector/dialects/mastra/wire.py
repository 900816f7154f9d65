"""What a step of Mastra's keeps of its exchange with the provider: the request's body, the response's, its headers."""

from __future__ import annotations

from dataclasses import asdict, replace

from spanreel import conventions as names
from spanreel.model import Answer, Fidelity, Json, Request, ToolDefinition
from spanreel_collector.dialects import values
from spanreel_collector.dialects.content import bodies, losses
from spanreel_collector.span import RawSpan

_METADATA = "mastra.metadata."
_USAGE = {
    "input_tokens": names.USAGE_INPUT_TOKENS,
    "output_tokens": names.USAGE_OUTPUT_TOKENS,
    "cache_read_tokens": names.USAGE_CACHE_READ_TOKENS,
    "cache_write_tokens": names.USAGE_CACHE_WRITE_TOKENS,
    "reasoning_tokens": names.USAGE_REASONING_TOKENS,
}
_SCHEMA = ("properties", "$ref", "anyOf", "oneOf", "allOf")
_FORMAT = "response_format"


def read_sent(step: RawSpan) -> Request | None:
    """The request as the provider got it, which steps before core 1.4x or so have for their input; None of later ones.

    JSON schemas in it are shortened (``{"city": "string (required)"}``): those are left out.
    """
    given = values.members(values.decoded(step.attributes, "mastra.model_step.input"))
    body = values.members(given.get("body"))
    read = bodies.read_request(body) if body else None
    # Before 1.0 a body was cut where it went deep, and the context beside it was not.
    if read is None or not read[0].messages or losses.state(list(read[0].messages)) is not Fidelity.WHOLE:
        return None
    settings = {name: value for name, value in read[0].settings.items() if name != _FORMAT or _is_whole_format(value)}
    return replace(read[0], settings=settings, tools=tuple(_without_short_schema(tool) for tool in read[0].tools))


def read_response(step: RawSpan) -> dict[str, Json]:
    """Who answered, why the answer ended and what it cost, by the conventions' names; nothing of a stream."""
    body = step.attributes.get(f"{_METADATA}body")
    answer = (bodies.read_answer(values.members(body)) if body else None) or Answer()
    usage = asdict(answer.usage) if answer.usage else {}
    found: dict[str, Json] = {
        names.RESPONSE_ID: answer.response_id,
        names.RESPONSE_MODEL: answer.model,
        names.RESPONSE_FINISH_REASONS: list(answer.finish_reasons) or None,
        **{name: usage.get(field) for field, name in _USAGE.items()},
    }
    return {name: value for name, value in found.items() if value is not None}


def is_streamed(step: RawSpan) -> bool | None:
    """Whether the provider streamed its answer, by the response's headers; None where they are not told."""
    headers = values.members(step.attributes.get(f"{_METADATA}headers"))
    kind = next((value for name, value in headers.items() if name.lower() == "content-type"), None)
    return None if not isinstance(kind, str) else "stream" in kind or "ndjson" in kind


def _without_short_schema(tool: ToolDefinition) -> ToolDefinition:
    whole = _is_schema(tool.get("parameters"))
    return tool if whole else {key: value for key, value in tool.items() if key != "parameters"}


def _is_whole_format(given: Json) -> bool:
    inner = given.get("json_schema", given) if isinstance(given, dict) else None
    return not isinstance(inner, dict) or "schema" not in inner or _is_schema(inner["schema"])


def _is_schema(schema: Json) -> bool:
    if not isinstance(schema, dict):
        return False
    return schema.get("type") == "object" or any(isinstance(schema.get(key), dict | list) for key in _SCHEMA)
