"""Token counts under the conventions' names, of today and of before, and under those that libraries made up."""

from __future__ import annotations

from spanreel import conventions as names
from spanreel.model import Usage
from spanreel_collector.dialects import values
from spanreel_collector.span import Attributes

_USAGE = {
    "input_tokens": (names.USAGE_INPUT_TOKENS, "gen_ai.usage.prompt_tokens"),
    "output_tokens": (names.USAGE_OUTPUT_TOKENS, "gen_ai.usage.completion_tokens"),
    "cache_read_tokens": (
        names.USAGE_CACHE_READ_TOKENS,
        "gen_ai.usage.cache_read_input_tokens",
        "gen_ai.usage.details.cache_read_tokens",
        "gen_ai.usage.details.cache_read_input_tokens",
        "gen_ai.usage.cache_read_tokens",
        "gen_ai.usage.cached_input_tokens",
        "gen_ai.usage.input_cached_tokens",
        "gen_ai.usage.cached_tokens",
        "gen_ai.usage.prompt_tokens_details.cached_tokens",
        "gen_ai.usage.input_tokens.cached",
    ),
    "cache_write_tokens": (
        names.USAGE_CACHE_WRITE_TOKENS,
        "gen_ai.usage.cache_creation.input_tokens",
        "gen_ai.usage.cache_creation_input_tokens",
        "gen_ai.usage.details.cache_write_tokens",
        "gen_ai.usage.details.cache_creation_input_tokens",
        "gen_ai.usage.cache_write_tokens",
        "gen_ai.usage.cache_write_input_tokens",
        "gen_ai.usage.cache_creation_tokens",
        "gen_ai.usage.input_tokens.cache_write",
    ),
    "reasoning_tokens": (
        names.USAGE_REASONING_TOKENS,
        "gen_ai.usage.details.reasoning_tokens",
        "gen_ai.usage.reasoning_tokens",
        "gen_ai.usage.output_tokens.reasoning",
        "gen_ai.usage.completion_tokens_details.reasoning_tokens",
    ),
}
_USAGE_KEYS = tuple((field, key) for field, keys in _USAGE.items() for key in keys)


def read(attributes: Attributes) -> Usage | None:
    """The counts that the attributes hold, the first name of each first; None where there are none."""
    counts: dict[str, int] = {}
    for field, key in _USAGE_KEYS:
        if key in attributes and field not in counts and (count := values.integer(attributes, key)) is not None:
            counts[field] = count
    return values.whole_usage(Usage(**counts)) if counts else None
