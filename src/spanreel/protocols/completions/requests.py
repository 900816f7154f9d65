"""Requests for the completion of a text: the prompt is what a user says, its settings have many names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from spanreel.model import Json, Operation, Request
from spanreel.protocols.completions.forms import CONFIGS, PROMPTS, SETTINGS
from spanreel.protocols.named_settings import read_settings
from spanreel.protocols.residue import overlay, residue, unexpected

STOOD: Final = "$stood"
"""In a request's ``provider_fields``: where things stood, for all that OpenAI would write otherwise.

``prompt`` and each setting to its field, ``in`` to the object of the settings, ``list`` for a prompt in a list.
"""


def read_request(wire: dict[str, Json], operation: Operation, place: str) -> Request:
    """Read a request; ValueError where it has no prompt. What is asked in tokens is no message."""
    prompt = next((name for name in PROMPTS if name in wire), None)
    if prompt is None:
        raise unexpected(f"{place} request: prompt", None, "text")
    stood: dict[str, Json] = {} if prompt == PROMPTS[0] else {"prompt": prompt}
    config = next((name for name in CONFIGS if isinstance(wire.get(name), dict)), None)
    if config is not None:
        stood["in"] = config
    settings, fields = read_settings(wire[config] if config is not None else wire, SETTINGS)
    if isinstance(settings.get("stop_sequences"), str):
        settings["stop_sequences"] = [settings["stop_sequences"]]
    texts = wire[prompt] if isinstance(wire[prompt], list) else [wire[prompt]]
    asked = [text for text in texts if isinstance(text, str)]
    said = asked if len(asked) == len(texts) else []
    if said and isinstance(wire[prompt], list):
        stood["list"] = True
    parts: list[dict[str, Any]] = [{"type": "text", "content": text} for text in said]
    stood |= fields
    request = Request(
        operation=operation,
        model=wire["model"] if isinstance(wire.get("model"), str) else None,
        messages=({"role": "user", "parts": parts},) if parts else (),
        settings=settings,
        stream=wire.get("stream") is True,
        provider_fields={STOOD: stood} if stood else {},
    )
    return replace(request, provider_fields={**request.provider_fields, **residue(wire, write_request(request))})


def write_request(request: Request) -> dict[str, Json]:
    """Write a request; of a conversation all that was said is the prompt."""
    told = request.provider_fields.get(STOOD)
    stood: Mapping[str, Json] = told if isinstance(told, dict) else {}
    wire: dict[str, Json] = {} if request.model is None else {"model": request.model}
    said = [{"parts": list(request.instructions)}] if request.instructions else []
    texts = [
        str(part.get("content") or "")
        for message in (*said, *request.messages)
        for part in message.get("parts") or []
        if part.get("type") in ("text", "tool_call_response")
    ]
    prompt = str(stood.get("prompt", PROMPTS[0]))
    if request.messages:
        wire[prompt] = texts if stood.get("list") is True else "\n\n".join(texts)
    settings = {
        str(stood.get(setting, names[0])): request.settings[setting]
        for setting, names in SETTINGS.items()
        if setting in request.settings
    }
    if "in" in stood:
        wire[str(stood["in"])] = settings
    else:
        wire |= settings
    if request.stream:
        wire["stream"] = True
    rest = request.provider_fields
    # What was kept must not beat what has been put in since.
    carried = {"stream": request.stream, prompt: bool(request.messages)}
    return overlay(wire, {key: value for key, value in rest.items() if not carried.get(key)})
