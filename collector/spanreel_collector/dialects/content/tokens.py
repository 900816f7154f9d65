"""Token counts by the names of OpenAI, LangChain and Anthropic."""

from __future__ import annotations

from typing import Any

from spanreel.model import Json, Usage
from spanreel.protocols import openai_usage
from spanreel_collector.dialects import values

_LANGCHAIN = {
    "input_tokens": ("input_tokens",),
    "output_tokens": ("output_tokens",),
    "cache_read_tokens": ("input_token_details", "cache_read"),
    "cache_write_tokens": ("input_token_details", "cache_creation"),
    "reasoning_tokens": ("output_token_details", "reasoning"),
}


def read(usage: Json) -> Usage | None:
    """Token counts by the names of OpenAI, LangChain and Anthropic, the last without the cached ones in the input."""
    if not isinstance(usage, dict):
        return None
    found = openai_usage.read_usage(usage) or Usage()
    told = {name: values.integer({"": _at(usage, *path)}, "") for name, path in _LANGCHAIN.items()}
    told["cache_read_tokens"] = told["cache_read_tokens"] or values.integer(usage, "cache_read_input_tokens")
    read = Usage(**{name: getattr(found, name) if count is None else count for name, count in told.items()})
    return values.whole_usage(read) if read != Usage() else None


def _at(value: Any, *path: str) -> Any:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value
