"""What SDKs and routers put around values: objects and blocks around tools' results, providers in models' names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spanreel.model import Json, Message
from spanreel_collector.dialects import values
from spanreel_collector.dialects.content import bedrock, gemini, tools

_GOOGLE = ("google", "gemini", "gcp", "vertex")
_AMAZON = ("aws", "bedrock", "amazon")
_ROUTED = frozenset(
    (
        *("openai", "azure", "azure_ai", "anthropic", "gemini", "vertex_ai", "bedrock", "groq", "mistral", "ollama"),
        *("ollama_chat", "openrouter", "together_ai", "cohere", "cohere_chat", "deepseek", "xai", "fireworks_ai"),
        *("perplexity", "huggingface", "replicate", "hosted_vllm", "litellm_proxy"),
    )
)
"""LiteLLM's names of providers that its users reach."""


def read_results(found: tuple[Message, ...], provider: str | None) -> tuple[Message, ...]:
    """The messages with tools' results out of what this provider's SDK has put them in; the same where it is none."""
    name = (provider or "").lower()
    read = _of_google if name.startswith(_GOOGLE) else _of_amazon if name.startswith(_AMAZON) else None
    if read is None or not any(message["role"] == "tool" for message in found):
        return found
    return tuple(_unwrapped(message, read) if message["role"] == "tool" else message for message in found)


def bare_model(model: str | None) -> str | None:
    """The model's name as its provider knows it, without the provider's, which LiteLLM is told which one to ask by."""
    prefix, _, rest = (model or "").partition("/")
    return rest if rest and prefix in _ROUTED else model


def _unwrapped(message: Message, read: Callable[[Json], Json]) -> Message:
    parts: list[dict[str, Any]] = [
        {**part, "response": read(part["response"])} if "response" in part else part for part in message["parts"]
    ]
    return {**message, "parts": parts}


def _of_google(response: Json) -> Json:
    told = tools.read_literal(values.decode(response)[0])
    inner = gemini.read_result(told)
    return response if inner is told else inner


def _of_amazon(response: Json) -> Json:
    return bedrock.read_result(response)
