"""Agno by OpenInference: images and other files stand in the request's messages, and in no indexed attribute."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otlp_lines import only_run, session, span

PNG = "iVBORw0KGgo="


@pytest.mark.parametrize(
    ("beside", "read"),
    [
        (
            {"images": [{"id": "1", "format": "png", "mime_type": "image/png", "content": PNG}]},
            {"type": "blob", "modality": "image", "mime_type": "image/png", "content": PNG},
        ),
        (
            {"audio": [{"id": "1", "format": "mp3", "content": PNG}]},
            {"type": "blob", "modality": "audio", "mime_type": "audio/mp3", "content": PNG},
        ),
        (
            {"images": [{"id": "1", "url": "https://x/y.png"}]},
            {"type": "uri", "modality": "image", "uri": "https://x/y.png"},
        ),
        ({"files": [{"id": "1", "filepath": "menu.pdf"}]}, {"type": "blob", "modality": "document"}),
    ],
)
def test_what_stands_beside_a_messages_text_is_a_part_of_it(beside: dict[str, Any], read: dict[str, Any]) -> None:
    message = {"role": "user", "content": "What is this?", **beside}
    told = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "gpt",
        "input.value": json.dumps({"messages": [message]}),
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "What is this?",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "Soup.",
    }
    found = session(span(1, "OpenAIChat.invoke", told), scope="openinference.instrumentation.agno")
    (call,) = only_run(found).model_calls()
    (asked,) = (found.messages[ref] for ref in call.input)
    assert asked.parts == [{"type": "text", "content": "What is this?"}, read]
