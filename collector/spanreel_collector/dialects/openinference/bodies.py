"""What a model call's span keeps beside its indexed attributes: both bodies as they were sent, and the parameters.

Bodies are read by the protocol that the instrumented library speaks; of other libraries they are reprs of objects.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace

from spanreel.exchange import ModelProtocol
from spanreel.model import Answer, Json, Operation, Request
from spanreel.protocols import anthropic, bedrock_invoke, openai_chat, openai_embeddings, openai_responses
from spanreel.protocols.bedrock_invoke.families import family_answering
from spanreel_collector.dialects import values
from spanreel_collector.dialects.content import bodies as content
from spanreel_collector.span import RawSpan

_INNER = ("generation_config", "config", "options", "inferenceConfig", "textGenerationConfig")
"""Where Google, Ollama, Bedrock and Titan have a request's settings."""
_SPEAK_OPENAI = ("openai", "litellm", "groq", "mistralai", "portkey", "together", "instructor")
"""Libraries whose requests and answers are written as OpenAI's are."""
_NO_ID = "__fake_id__"
"""What openai-agents calls each response of a provider's that has no id."""
_NOT_GIVEN = re.compile(r"|<[\w.]*(?:Omit|NotGiven|Unset|object)\b[^>]*>|NOT_GIVEN|UNSET|NOTGIVEN")
"""What stands for a parameter that nobody set, where a library has objects of its own for that."""


def protocol_of(span: RawSpan, body: Json) -> ModelProtocol | None:
    """The protocol that a body is written in, by the library that was instrumented; None where that is not known."""
    library = span.origin.scope.replace("_", "-").rpartition("instrumentation")[2].lstrip(".-")
    if not isinstance(body, dict):
        return None
    if library == "anthropic":
        return anthropic
    if library == "bedrock":  # which sends bodies of each maker's
        told = family_answering(body) is not None or not body.keys().isdisjoint(bedrock_invoke.NEEDED)
        return bedrock_invoke if told else None
    if library in _SPEAK_OPENAI:
        if "messages" in body or body.get("object") == "chat.completion" or "choices" in body:
            return openai_chat
        if "output" in body or body.get("object") == "response":
            return openai_responses
        if "input" in body:
            embeds = span.attributes.get("openinference.span.kind") == "EMBEDDING"
            return openai_embeddings if embeds else openai_responses
    if library == "openai-agents" and body.get("object") == "response":
        return openai_responses
    return None


def read_request(span: RawSpan, operation: Operation) -> tuple[Request, ModelProtocol] | None:
    """The whole request, where the span kept it as it was sent."""
    body, _ = values.decode(span.attributes.get("input.value"))
    if body is None and span.origin.scope.endswith(".bedrock"):
        body = values.members(span.attributes.get("llm.invocation_parameters"))  # which are all that was sent
    protocol = protocol_of(span, body)
    if protocol is None or not isinstance(body, dict):
        return None
    body = _given(body)
    try:
        request = protocol.read_request(json.dumps(body).encode(), operation)
    except ValueError:
        return None
    return (request, protocol) if request.messages else None


def read_answer(span: RawSpan) -> Answer | None:
    """The whole answer, where the span kept it as it came; of a stream, as the instrumentation put it together."""
    body, _ = values.decode(span.attributes.get("output.value"))
    if isinstance(body, list) and len(body) == 1:
        body = body[0]  # as openai-agents has what it put together of a stream
    if span.origin.scope.endswith(".bedrock"):
        body = _with_objects(body)
    protocol = protocol_of(span, body)
    if protocol is None:
        return content.read_facts(body)
    try:
        answer = protocol.read_response(json.dumps(body).encode(), 200)
    except ValueError:
        return None
    return replace(answer, response_id=None) if answer.response_id == _NO_ID else answer


def _with_objects(body: Json) -> Json:
    """Anthropic's answer, with the arguments as objects: put together of a stream they are still text."""
    content = body.get("content") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(content, list):
        return body
    whole: list[Json] = [
        {**block, "input": values.arguments(block["input"])}
        if isinstance(block, dict) and isinstance(block.get("input"), str)
        else block
        for block in content
    ]
    return {**body, "content": whole}


def read_parameters(span: RawSpan) -> dict[str, Json]:
    """The invocation parameters; of those cut off, what is whole."""
    key = "metadata" if span.origin.scope.endswith(".pipecat") else "llm.invocation_parameters"
    found = _given(values.members(span.attributes.get(key)))
    inner = next((found[name] for name in _INNER if isinstance(found.get(name), dict)), None)
    return {**found, **inner} if isinstance(inner, dict) else found


def _given(parameters: dict[str, Json]) -> dict[str, Json]:
    """The parameters that somebody set."""
    return {
        name: value
        for name, value in parameters.items()
        if not isinstance(value, str) or not _NOT_GIVEN.fullmatch(value)
    }
