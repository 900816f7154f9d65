"""What a model call of OpenInference's cost in tokens."""

from __future__ import annotations

from spanreel.model import Usage
from spanreel_collector.dialects import values
from spanreel_collector.span import Attributes

_USAGE = {
    "input_tokens": ("llm.token_count.prompt",),
    "output_tokens": ("llm.token_count.completion",),
    "cache_read_tokens": (
        "llm.token_count.prompt_details.cache_read",
        "llm.token_count.prompt_details.cache_input",
        "metadata.usage.cached_prompt_tokens",
    ),
    "cache_write_tokens": (
        "llm.token_count.prompt_details.cache_write",
        "metadata.usage.cached_creation_tokens",
    ),
    "reasoning_tokens": ("llm.token_count.completion_details.reasoning",),
}


def read_usage(attributes: Attributes, kept: Usage | None = None) -> Usage | None:
    """The counts, with those that only the answer's own body tells."""
    told = {field: values.integer(attributes, *keys) for field, keys in _USAGE.items()}
    if kept is not None:
        told = {field: getattr(kept, field) if count is None else count for field, count in told.items()}
    return values.whole_usage(Usage(**told)) if any(count is not None for count in told.values()) else None
