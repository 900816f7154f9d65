"""A replay as Kitaru's API is asked for one, read as changes: ``override`` and ``tool_policy``.

What of it names sessions and versions in Kitaru's own store says nothing here; evaluators are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from spanreel.errors import ReplayRefused

_OF_ITS_STORE: Final = ("baseline_session_id", "agent_version_id", "baseline_evaluation_mode")
_OVERRIDES: Final = ("model", "system_prompt", "prompt", "model_params")
_SETTINGS: Final = {
    "topP": "top_p",
    "topK": "top_k",
    "maxOutputTokens": "max_tokens",
    "maxTokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "presencePenalty": "presence_penalty",
    "frequencyPenalty": "frequency_penalty",
    "stopSequences": "stop_sequences",
    "stop": "stop_sequences",
    "toolChoice": "tool_choice",
}
"""Its names of model parameters, where ours are others."""


def is_kitaru(value: Any) -> bool:
    """Whether changes are in Kitaru's form; a ``tool_policy`` alone is in both."""
    return isinstance(value, Mapping) and ("override" in value or "baseline_session_id" in value)


def from_kitaru(value: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The same changes in our form.

    Raises:
        ReplayRefused: it asks for what no replay here does.
    """
    if value.get("evaluators"):
        raise ReplayRefused(f"{source}: evaluators: Kitaru's own; leave them out, and judge by the report")
    told = {name: item for name, item in value.items() if name not in ("override", "evaluators", *_OF_ITS_STORE)}
    told = {name: item for name, item in told.items() if item is not None}
    override = value.get("override") or {}
    if not isinstance(override, Mapping) or (unknown := sorted({*override} - {*_OVERRIDES})):
        what = "a table is expected" if not isinstance(override, Mapping) else f"unknown: {', '.join(unknown)}"
        raise ReplayRefused(f"{source}: override: {what}; known here: {', '.join(_OVERRIDES)}")
    if override.get("prompt") is not None:
        told["input"] = override["prompt"]
    overrides = list(_overrides(override))
    return {**told, "overrides": overrides} if overrides else told


def _overrides(override: Mapping[str, Any]) -> list[dict[str, Any]]:
    shared: dict[str, Any] = {}
    if override.get("system_prompt") is not None:
        shared["instructions"] = override["system_prompt"]
    if override.get("model_params"):
        given = override["model_params"]
        shared["settings"] = (
            {_SETTINGS.get(name, name): item for name, item in given.items()} if isinstance(given, Mapping) else given
        )
    model = override.get("model")
    if isinstance(model, Mapping):
        named = [{"of_model": old, "model": new} for old, new in model.items()]
        return [*([shared] if shared else []), *named]
    if model is not None:
        shared["model"] = model
    return [shared] if shared else []
