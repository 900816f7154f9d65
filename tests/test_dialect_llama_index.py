"""llama-index by OpenInference: its model for structured output stands around another, which was asked."""

from __future__ import annotations

import json
from typing import Any

from otlp_lines import only_run, session, span


def asked(number: int, name: str, answer: str, parent: int | None = None, **rest: Any) -> dict[str, Any]:
    told = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "gpt",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "Soup!",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": answer,
        **rest,
    }
    return span(number, name, told, parent, seconds=1)


def test_the_model_for_structured_output_is_not_asked_itself() -> None:
    answer = {"dish": "soup"}
    one = session(
        asked(1, "StructuredLLM.achat", json.dumps(answer, separators=(",", ":"))),
        asked(2, "OpenAI.achat", json.dumps(answer), 1, **{"llm.token_count.prompt": 40}),
        scope="openinference.instrumentation.llama_index",
    )
    (call,) = only_run(one).model_calls()
    assert call.usage is not None
    assert call.usage.input_tokens == 40
