"""Which provider answers at a host, by the names of the GenAI conventions."""

from __future__ import annotations

import functools
from typing import Final

from spanreel.exchange import ModelProtocol

HOSTS: Final[tuple[tuple[str, str], ...]] = (
    ("api.openai.com", "openai"),
    (".openai.azure.com", "azure.ai.openai"),
    (".cognitiveservices.azure.com", "azure.ai.openai"),
    (".services.ai.azure.com", "azure.ai.inference"),
    (".models.ai.azure.com", "azure.ai.inference"),
    ("models.inference.ai.azure.com", "azure.ai.inference"),
    (".api.openai.com", "openai"),
    ("api.groq.com", "groq"),
    ("api.mistral.ai", "mistral_ai"),
    ("api.deepseek.com", "deepseek"),
    ("api.x.ai", "x_ai"),
    ("api.perplexity.ai", "perplexity"),
    ("api.anthropic.com", "anthropic"),
    ("api.cohere.com", "cohere"),
    ("api.cohere.ai", "cohere"),
    ("generativelanguage.googleapis.com", "gcp.gemini"),
    ("aiplatform.googleapis.com", "gcp.vertex_ai"),
    ("-aiplatform.googleapis.com", "gcp.vertex_ai"),
    (".ml.cloud.ibm.com", "ibm.watsonx.ai"),
    ("api.moonshot.ai", "moonshot_ai"),
    ("api.moonshot.cn", "moonshot_ai"),
    ("openrouter.ai", "openrouter"),
    ("api.together.xyz", "together_ai"),
    ("api.fireworks.ai", "fireworks_ai"),
    ("api.cerebras.ai", "cerebras"),
    (".amazonaws.com", "aws.bedrock"),
)
"""Hosts, whole or (where they begin with a dot or a dash) by their end, and the provider there; the first that fits."""


def provider_of(host: str, protocol: ModelProtocol) -> str:
    """The provider's name for a host (a port is ignored); the protocol's own provider where the host says nothing."""
    return _provider_at(host) or protocol.PROVIDER


@functools.lru_cache(256)
def _provider_at(host: str) -> str | None:
    name = host.rpartition("@")[2].split(":", 1)[0].lower().rstrip(".")
    for known, provider in HOSTS:
        if name == known or (known[0] in ".-" and name.endswith(known)):
            return provider
    return None
