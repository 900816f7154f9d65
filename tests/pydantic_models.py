"""Models of pydantic-ai on a scripted provider in process, for its tests and its scenario."""

from __future__ import annotations

from typing import Any

import anthropic
import httpx2
import openai
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from spanreel.testing import Script, ScriptedProvider

PROTOCOLS = ("openai_chat", "openai_responses", "anthropic_messages")


def model_of(provider: ScriptedProvider, protocol: str = "openai_chat") -> Any:
    """The model of a protocol, without retries."""
    http = httpx2.AsyncClient(transport=provider.transport("httpx2"))
    if protocol == "anthropic_messages":
        claude = anthropic.AsyncAnthropic(api_key="none", base_url="http://model.test", http_client=http, max_retries=0)
        return AnthropicModel("claude-test", provider=AnthropicProvider(anthropic_client=claude))
    client = openai.AsyncOpenAI(api_key="none", base_url="http://model.test/v1", http_client=http, max_retries=0)
    chosen = OpenAIChatModel if protocol == "openai_chat" else OpenAIResponsesModel
    return chosen("gpt-test", provider=OpenAIProvider(openai_client=client))


def scripted(script: Script, protocol: str = "openai_chat") -> Any:
    """A model that says what a script says."""
    return model_of(ScriptedProvider(script), protocol)
