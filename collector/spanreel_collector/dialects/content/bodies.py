"""Requests and answers inside values: bodies as they were sent, results of LangChain, reprs, and lone messages.

A body of a known provider is read by its protocol.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from spanreel.exchange import ModelProtocol
from spanreel.model import Answer, Json, Message, Operation, Request, ToolDefinition
from spanreel.protocols import anthropic, openai_chat, openai_responses, openai_usage
from spanreel_collector import json_text
from spanreel_collector.dialects import values
from spanreel_collector.dialects.content import gemini, messages, reprs, tokens
from spanreel_collector.dialects.content.blocks import ITEMS, parts_of

_SETTINGS = {
    "temperature": ("temperature",),
    "top_p": ("top_p", "topP"),
    "top_k": ("top_k", "topK"),
    "max_tokens": (
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "max_new_tokens",
        "maxTokens",
        "maxOutputTokens",
        "maxTokenCount",
    ),
    "stop_sequences": ("stop_sequences", "stop", "stopSequences"),
    "seed": ("seed",),
    "frequency_penalty": ("frequency_penalty", "frequencyPenalty"),
    "presence_penalty": ("presence_penalty", "presencePenalty"),
    "choice_count": ("n", "candidate_count"),
    "tool_choice": ("tool_choice", "toolChoice"),
    "parallel_tool_calls": ("parallel_tool_calls",),
    "response_format": ("response_format",),
    "reasoning_effort": ("reasoning_effort",),
    "previous_response_id": ("previous_response_id",),
    "service_tier": ("service_tier",),
    "dimensions": ("dimensions",),
}
_OF_HAYSTACK = ("name", "description", "parameters")
_ANTHROPIC_BLOCKS = ("tool_use", "tool_result", "thinking", "redacted_thinking")


def read_request(body: Json, operation: Operation = Operation.CHAT) -> tuple[Request, ModelProtocol | None] | None:
    """What a value says that a model was asked, and the protocol where it is a body as it was sent."""
    protocol = _protocol_of_request(body)
    if protocol is not None:
        try:
            return protocol.read_request(json.dumps(body).encode(), operation), protocol
        except ValueError:
            pass
    said = messages.asked(body)
    if isinstance(body, str) and body:
        said = ({"role": "user", "parts": parts_of(body)},)
    if not isinstance(body, dict):
        return (Request(operation, None, said), None) if said else None
    inner = body.get("generation_config") or body.get("config")
    parameters = {**body, **inner} if isinstance(inner, dict) else body
    system = parameters.get("system_instruction") or (
        body.get("system") if isinstance(body.get("messages"), list) else None
    )
    if not said and isinstance(body.get("input"), list):
        said = messages.read_messages(body["input"])  # of the Responses API, without the model
    if "input" in body and isinstance(body.get("instructions"), str):
        system = system or body["instructions"]
    request = Request(
        operation,
        values.text(body, "model", "model_name"),
        said,
        instructions=tuple(parts_of(system)),
        tools=read_tools(parameters.get("tools")),
        settings=settings(parameters),
        stream=body.get("stream") is True,
    )
    return (request, None) if said or request.tools else None


def read_answer(body: Json) -> Answer | None:
    """What a value says that a model answered; None where it is of no form that is known."""
    if isinstance(body, dict) and isinstance(body.get("output"), dict) and set(body) == {"output"}:
        body = body["output"]
    protocol = _protocol_of_answer(body)
    if protocol is not None:
        try:
            return protocol.read_response(json.dumps(body).encode(), 200)
        except ValueError:
            pass
    said = _answered(body)
    kept = read_facts(body) or Answer()
    if said and "finish_reason" not in said[-1] and kept.finish_reasons:
        said = (*said[:-1], {**said[-1], "finish_reason": kept.finish_reasons[0]})
    answer = replace(kept, messages=said or kept.messages)
    return None if answer == Answer() else answer


def read_tools(given: Json) -> tuple[ToolDefinition, ...]:
    """Tool definitions of any provider's form, Gemini's declarations too."""
    found: list[ToolDefinition] = []
    for item in json_text.plain(given) if isinstance(given, list) else []:
        if isinstance(item, dict) and isinstance(item.get("data"), dict):
            item = {key: item["data"].get(key) for key in _OF_HAYSTACK}  # noqa: PLW2901 the same, of Haystack
        declared = item.get("function_declarations") if isinstance(item, dict) else None
        found += [
            values.tool_definition(one)
            for one in (declared if isinstance(declared, list) else [item])
            if isinstance(one, dict) and one
        ]
    return tuple(found)


def settings(parameters: dict[str, Json]) -> dict[str, Json]:
    """Invocation parameters by the names of ours; those that nobody set are left out."""
    read: dict[str, Json] = {}
    for name, keys in _SETTINGS.items():
        value = next((parameters[key] for key in keys if parameters.get(key) is not None), None)
        if value is not None:
            read[name] = [value] if name == "stop_sequences" and isinstance(value, str) else json_text.plain(value)
    reasoning, text = parameters.get("reasoning"), parameters.get("text")
    if isinstance(reasoning, dict) and isinstance(reasoning.get("effort"), str):
        read.setdefault("reasoning_effort", reasoning["effort"])
    if isinstance(text, dict) and isinstance(text.get("format"), dict) and text["format"].get("type") != "text":
        read.setdefault("response_format", text["format"])
    for name, value in gemini.read_settings(parameters).items():
        read.setdefault(name, json_text.plain(value))
    return values.with_numbers(read)


def read_facts(body: Json) -> Answer | None:
    """What a framework's result tells beside its messages: who answered, why it ended, what it cost."""
    return _read_langchain(body) or _read_gemini(body) or _read_repr(body)


def _protocol_of_request(body: Json) -> ModelProtocol | None:
    if not isinstance(body, dict):
        return None
    if "model" not in body:
        return None  # a part of what was sent
    given = body.get("messages")
    if isinstance(given, list) and given and all(isinstance(item, dict) and "role" in item for item in given):
        if any("lc" in item or "type" in item for item in given):
            return None  # LangChain's
        return anthropic if _is_anthropic(body, given) else openai_chat
    if "input" in body and isinstance(body.get("input"), str | list):
        return openai_responses
    return None


def _is_anthropic(body: dict[str, Any], given: list[dict[str, Any]]) -> bool:
    tools = body.get("tools")
    named = [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    blocks = [
        block
        for item in given
        if isinstance(item.get("content"), list)
        for block in item["content"]
        if isinstance(block, dict)
    ]
    return (
        "system" in body
        or any("input_schema" in tool for tool in named)
        or any(block.get("type") in _ANTHROPIC_BLOCKS for block in blocks)
    )


def _protocol_of_answer(body: Json) -> ModelProtocol | None:
    if not isinstance(body, dict):
        return None
    if isinstance(_at(body, "choices", 0, "message"), dict):
        return openai_chat
    if body.get("object") == "response" and isinstance(body.get("output"), list):
        return openai_responses
    if body.get("type") == "message" and isinstance(body.get("content"), list) and not _is_item(body):
        return anthropic
    return None


def _is_item(item: Json) -> bool:
    """Whether this is an item of what the Responses API gives; one answer is several of them."""
    blocks = item.get("content") if isinstance(item, dict) else None
    kinds = [_at(block, "type") for block in blocks] if isinstance(blocks, list) else []
    return _at(item, "type") in ITEMS or any(kind in ("output_text", "refusal") for kind in kinds)


def _answered(body: Json) -> tuple[Message, ...]:
    generation = _at(body, "generations", 0, 0)
    if isinstance(generation, dict):
        message = messages.read_message(generation.get("message"))
        text = values.text(generation, "text")
        return (message,) if message else ({"role": "assistant", "parts": parts_of(text)},) if text else ()
    candidate = _at(body, "candidates", 0, "content")
    if isinstance(candidate, dict):
        body = {"role": "model", **candidate}
    if isinstance(body, str):
        return ({"role": "assistant", "parts": parts_of(body)},) if body else ()
    texts = [one.get("text") if isinstance(one, dict) else one for one in body] if isinstance(body, list) else []
    if texts and all(isinstance(text, str) and not text.startswith("ChatMessage(") for text in texts):
        return tuple({"role": "assistant", "parts": parts_of(text)} for text in texts)  # DSPy's completions
    if isinstance(body, dict) and (found := messages.read_message(body)) is not None:
        return ({**found, "role": "assistant"},)
    items = _at(body, "output") if isinstance(body, dict) else body
    of_responses = isinstance(items, list) and (items is not body or any(_is_item(item) for item in items))
    if of_responses and (said := messages.read_messages(items)):
        return ({"role": "assistant", "parts": [part for message in said for part in message["parts"]]},)
    told = messages.answered(body)
    return tuple({key: value for key, value in message.items() if key != messages.FACTS} for message in told)


_CAMEL_USAGE = {"promptTokens": "prompt_tokens", "completionTokens": "completion_tokens", "totalTokens": "total_tokens"}


def _read_langchain(body: Json) -> Answer | None:
    """What a LangChain result, or a message of its alone, tells: who answered, why it ended, and the tokens.

    LangChain's JavaScript writes the same in camel case.
    """
    generation = _at(body, "generations", 0, 0)
    message = _at(generation, "message") if isinstance(generation, dict) else body
    message = _at(message, "kwargs") or _at(message, "data") or message
    facts: dict[str, Any] = {}
    told = [_at(generation, name) for name in ("generation_info", "generationInfo")]
    for found in (*told, _at(message, "response_metadata")):
        facts.update(found if isinstance(found, dict) else {})
    if not facts and not isinstance(generation, dict):
        return None
    reason = values.text(facts, "finish_reason", "stop_reason")
    answer = _answer(values.text(facts, "id"), values.text(facts, "model_name", "model"), reason)
    usage = _at(message, "usage_metadata") or facts.get("token_usage") or _at(body, "llm_output", "token_usage")
    counted = facts.get("tokenUsage") or _at(body, "llmOutput", "tokenUsage")
    if not usage and isinstance(counted, dict):
        usage = {snake: counted.get(camel) for camel, snake in _CAMEL_USAGE.items()}
    return replace(answer, usage=tokens.read(usage))


def _read_gemini(body: Json) -> Answer | None:
    if not isinstance(body, dict) or "model_version" not in body:
        return None
    reason = _at(body, "candidates", 0, "finish_reason") or body.get("finish_reason")
    return _answer(
        values.text(body, "response_id"),
        values.text(body, "model_version"),
        reason if isinstance(reason, str) else None,
    )


def _read_repr(body: Json) -> Answer | None:
    """The provider's answer where it was kept as a repr only: OpenAI's by smolagents, its numbers by Haystack."""
    shown = _at(body, "raw") if _at(body, "role") == "assistant" else _at(body, "replies", 0)
    try:
        found = reprs.parse(shown) if isinstance(shown, str) else None
        if _at(found, "") == "ChatCompletion":
            return openai_chat.read_response(json.dumps(reprs.without_names(found)).encode(), 200)
    except ValueError:
        return None
    meta = _at(found, "_meta") or _at(body, "replies", 0, "meta")
    if not isinstance(meta, dict):
        return None
    answer = _answer(values.text(meta, "id"), values.text(meta, "model"), values.text(meta, "finish_reason"))
    usage = meta.get("usage")
    return replace(answer, usage=openai_usage.read_usage(usage)) if isinstance(usage, dict) and usage else answer


def _answer(response_id: str | None, model: str | None, reason: str | None) -> Answer:
    empty: Message = {"role": "assistant", "parts": []}
    return Answer(
        response_id=response_id, model=model, messages=({**empty, "finish_reason": reason},) if reason else ()
    )


def _at(value: Any, *path: str | int) -> Any:
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and len(value) > step else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value
