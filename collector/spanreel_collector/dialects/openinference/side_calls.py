"""Model calls beside the agent's loop: embeddings and rerankings, as OpenInference tells them."""

from __future__ import annotations

from dataclasses import replace

from spanreel.model import Answer, ErrorCategory, Json, Message, Operation, Request
from spanreel.records import ModelRecord
from spanreel_collector.dialects import values
from spanreel_collector.dialects.content import blocks
from spanreel_collector.dialects.content.bodies import settings
from spanreel_collector.dialects.content.indexed import nested
from spanreel_collector.dialects.openinference import bodies, messages, tool_calls
from spanreel_collector.dialects.openinference.usage import read_usage
from spanreel_collector.span import RawSpan


def read_embedding(span: RawSpan) -> ModelRecord:
    """A call that makes vectors of texts, which the span tells."""
    attributes = span.attributes
    sent = bodies.read_request(span, Operation.EMBEDDINGS)
    items = (item.get("embedding") for item in nested(attributes, "embedding.embeddings"))
    texts = [text for item in items if isinstance(item, dict) and (text := values.text(item, "text"))]
    said: tuple[Message, ...] = ({"role": "user", "parts": blocks.parts_of(list(texts))},) if texts else ()
    parameters, _ = values.decode(attributes.get("embedding.invocation_parameters"))
    model = values.text(attributes, "embedding.model_name")
    request = sent[0] if sent else Request(Operation.EMBEDDINGS, model, said, settings=_settings(parameters))
    return _side_call(span, request, Answer(model=model))


def read_reranker(span: RawSpan) -> ModelRecord:
    """A call that orders documents by a query."""
    attributes = span.attributes
    query = values.text(attributes, "reranker.query")
    given = tool_calls.read_documents(span, "reranker.input_documents")
    ranked = tool_calls.read_documents(span, "reranker.output_documents")
    top = values.integer(attributes, "reranker.top_k")
    fields = {"documents": given or None, "top_n": top}
    request = Request(
        Operation.RERANK,
        values.text(attributes, "reranker.model_name"),
        ({"role": "user", "parts": blocks.parts_of(query)},) if query else (),
        provider_fields={key: value for key, value in fields.items() if value is not None},
    )
    return _side_call(span, request, Answer(provider_fields={"documents": ranked} if ranked else {}))


def _side_call(span: RawSpan, request: Request, answer: Answer) -> ModelRecord:
    error = values.failure(span, ErrorCategory.MODEL)
    return ModelRecord(
        request=request,
        answer=None if error else replace(answer, usage=read_usage(span.attributes)),
        provider=values.text(span.attributes, "llm.provider", "llm.system"),
        error=error,
        status=values.status_of(error),
        fidelity={} if request.messages else {"input": messages.lost(span.attributes, "input.value")},
    )


def _settings(parameters: Json) -> dict[str, Json]:
    return settings(parameters) if isinstance(parameters, dict) else {}
