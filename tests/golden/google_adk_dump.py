"""Makes `google_adk_old.otlp.jsonl` (google-adk 1.14) and `google_adk.otlp.jsonl` (2.13): the librarian on ADK.

``PYTHONPATH=src:tests python tests/golden/google_adk_dump.py > tests/golden/google_adk_old.otlp.jsonl``; the other with
``OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental`` and
``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY``.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from golden import librarian

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(librarian.Lines()))
trace.set_tracer_provider(provider)
USAGE: Any = {"candidates_token_count": 12, "thoughts_token_count": 4, "cached_content_token_count": 8}


def call(name: str, **arguments: str) -> types.Part:
    return types.Part(function_call=types.FunctionCall(name=name, args=arguments))


ANSWERS = iter(
    (
        [call("find_book", title="Momo"), call("find_book", title="Krabat")],
        [call("transfer_to_agent", agent_name="clerk")],
        [call("reserve", title="Krabat")],
        [types.Part(text="Momo is on shelf 4; Krabat is reserved.")],
    )
)


class Canned(BaseLlm):  # type: ignore[misc] # in no environment of ours
    """A model that says what was written down for it, and then fails."""

    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False) -> AsyncIterator[LlmResponse]:
        parts = next(ANSWERS, None)
        if parts is None:
            raise ConnectionError("Too many readers.")
        content = types.Content(role="model", parts=parts)
        usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=50, **USAGE)
        yield LlmResponse(content=content, finish_reason=types.FinishReason.STOP, usage_metadata=usage)


def find_book(title: str) -> dict[str, Any]:
    """Look a book up in the catalogue."""
    return {**librarian.find_book(title), "copy": object()} if title == "Krabat" else librarian.find_book(title)


def reserve(title: str) -> str:
    """Reserve a book."""
    return f"{title} is reserved"


async def main() -> None:
    model = Canned(model="canned-gemini")
    clerk = LlmAgent(name="clerk", model=model, instruction="You are a clerk.", tools=[reserve])
    agent = LlmAgent(
        name="librarian", model=model, instruction="You are a librarian.", tools=[find_book], sub_agents=[clerk]
    )
    sessions = InMemorySessionService()
    await sessions.create_session(app_name="library", user_id="reader-9", session_id="visit-1")
    runner = Runner(agent=agent, app_name="library", session_service=sessions)
    for question in librarian.QUESTIONS[:2]:
        said = types.Content(role="user", parts=[types.Part(text=question)])
        with contextlib.suppress(Exception):
            async for _ in runner.run_async(user_id="reader-9", session_id="visit-1", new_message=said):
                pass


asyncio.run(main())
