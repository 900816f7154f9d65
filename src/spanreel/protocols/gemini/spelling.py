"""Names with underscores: Google takes them in the place of its own, and LiteLLM and many scripts send them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from spanreel.model import Json

SPELLED: Final = "$spelled"
"""In ``provider_fields`` of requests and parts: the names that had underscores."""

_NAMES: Final = (
    *("systemInstruction", "generationConfig", "toolConfig", "functionDeclarations", "functionCallingConfig"),
    *("topP", "topK", "maxOutputTokens", "stopSequences", "frequencyPenalty", "presencePenalty", "candidateCount"),
    *("thinkingConfig", "thinkingLevel", "inlineData", "fileData", "mimeType", "fileUri"),
    *("functionCall", "functionResponse", "executableCode", "codeExecutionResult"),
)
"""Those that mean something to us, of requests, of their settings and tools, and of parts."""
_OURS: Final = {re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name): name for name in _NAMES}
_THEIRS: Final = {ours: theirs for theirs, ours in _OURS.items()}
_OPEN: Final = frozenset(("generationConfig", "toolConfig", "thinkingConfig", "tools", "inlineData", "fileData"))
"""What is looked into."""


def respell(wire: Mapping[str, Json]) -> tuple[dict[str, Json], list[str]]:
    """An object under our names, and which of these it had otherwise."""
    spelled: set[str] = set()
    changed: dict[str, Json] = _renamed(wire, _OURS, spelled)
    return changed, sorted(_OURS[name] for name in spelled)


def spell_again(wire: Mapping[str, Json], spelled: Json) -> dict[str, Json]:
    """The inverse of `respell`."""
    known = {name: _THEIRS[name] for name in spelled if name in _THEIRS} if isinstance(spelled, list) else {}
    changed: dict[str, Json] = _renamed(wire, known, set()) if known else dict(wire)
    return changed


def _renamed(value: Any, names: Mapping[str, str], found: set[str]) -> Any:
    if isinstance(value, list):
        return [_renamed(entry, names, found) for entry in value]
    if not isinstance(value, Mapping):
        return value
    changed: dict[str, Json] = {}
    for name, inner in value.items():
        other = names.get(name)
        if other is None or other in value:
            other = name
        else:
            found.add(name)
        is_open = other in _OPEN or name in _OPEN
        changed[other] = _renamed(inner, names, found) if is_open else inner
    return changed
