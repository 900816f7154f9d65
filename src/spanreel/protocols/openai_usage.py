"""Token counts as OpenAI and its likes write them, in the names of chat completions or of responses."""

from __future__ import annotations

from collections.abc import Mapping

from spanreel.model import Json, Usage


def read_usage(usage: Json) -> Usage | None:
    """Token counts by either set of names; cache and reasoning from the details, or from where gateways put them.

    None where it says no count at all.
    """
    if not isinstance(usage, dict):
        return None
    given = _object(usage.get("prompt_tokens_details")) or _object(usage.get("input_tokens_details"))
    taken = _object(usage.get("completion_tokens_details")) or _object(usage.get("output_tokens_details"))
    asked = _first(usage.get("prompt_tokens"), usage.get("input_tokens"))
    answered = _first(usage.get("completion_tokens"), usage.get("output_tokens"))
    read = _first(given.get("cached_tokens"), usage.get("cached_tokens"), usage.get("prompt_cache_hit_tokens"))
    wrote = _first(given.get("cache_write_tokens"), usage.get("cache_creation_input_tokens"))
    thought = _first(taken.get("reasoning_tokens"), usage.get("reasoning_tokens"))
    whole = _first(usage.get("total_tokens"))
    beside = (answered or 0) + (thought or 0)
    if answered is not None and thought and (thought > answered or whole == (asked or 0) + beside):
        answered = beside  # xAI counts thoughts beside what it says, not in it
    counts = Usage(_with_cached(asked, read, wrote), answered, read, wrote, thought)
    return counts if counts != Usage() else None


def _with_cached(asked: int | None, read: int | None, wrote: int | None) -> int | None:
    """The tokens of the input; parts of it that are more than all of it are counted beside it."""
    cached = (read or 0) + (wrote or 0)
    return asked + cached if asked is not None and cached > asked else asked


def write_chat_usage(usage: Usage) -> dict[str, Json]:
    """Token counts of a chat completion; the details only where they are known."""
    counts: dict[str, Json] = {
        "prompt_tokens": usage.input_tokens or 0,
        "completion_tokens": usage.output_tokens or 0,
        "total_tokens": (usage.input_tokens or 0) + (usage.output_tokens or 0),
    }
    given = {"cached_tokens": usage.cache_read_tokens, "cache_write_tokens": usage.cache_write_tokens}
    given = {key: value for key, value in given.items() if value is not None}
    if given:
        counts["prompt_tokens_details"] = given
    if usage.reasoning_tokens is not None:
        counts["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    return counts


def write_responses_usage(usage: Usage) -> dict[str, Json]:
    """Token counts of a response, always with the details that the SDK reads."""
    given: dict[str, Json] = {"cached_tokens": usage.cache_read_tokens or 0}
    if usage.cache_write_tokens is not None:
        given["cache_write_tokens"] = usage.cache_write_tokens
    return {
        "input_tokens": usage.input_tokens or 0,
        "input_tokens_details": given,
        "output_tokens": usage.output_tokens or 0,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        "total_tokens": (usage.input_tokens or 0) + (usage.output_tokens or 0),
    }


def _object(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


def _first(*values: Json) -> int | None:
    """The first that is a count; some gateways write theirs as floats."""
    counts = (value for value in values if isinstance(value, int | float) and not isinstance(value, bool))
    return next((int(value) for value in counts if isinstance(value, int) or value.is_integer()), None)
