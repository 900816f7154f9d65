"""Chunks of an OpenAI chat stream that repeat the one before them but for their piece of text: nearly all of them."""

from __future__ import annotations

from typing import Any

import pydantic_core

from spanreel.model import Json
from spanreel.protocols.sse import Event

_CONTENT = '"content":'


class Repeats:
    """Knows the chunk before, as text around its piece: the next one need not be parsed where that is the same."""

    def __init__(self) -> None:
        self._before = self._after = ""

    def find(self, event: Event) -> str | None:
        """The piece of text, where that is all in which the event differs from the chunk before it."""
        data = event.data
        if not self._before or data is None or event.name is not None or event.other or not event.ended:
            return None
        if not data.startswith(self._before) or not data.endswith(self._after):
            return None
        text = data[len(self._before) : len(data) - len(self._after)]
        try:
            piece = pydantic_core.from_json(text)
        except ValueError:
            return None
        return piece if isinstance(piece, str) else None

    def follow(self, event: Event, chunk: dict[str, Json]) -> bool:
        """Take a chunk that was parsed as the one before the next; whether it can be repeated."""
        self._before = self._after = ""
        if event.data is None or not _is_simple(chunk):
            return False
        start = event.data.find(_CONTENT) + len(_CONTENT)
        while event.data[start : start + 1] == " ":
            start += 1
        written = pydantic_core.to_json(chunk["choices"][0]["delta"]["content"]).decode()
        if event.data.count(_CONTENT) == 1 and event.data.startswith(written, start):
            self._before, self._after = event.data[:start], event.data[start + len(written) :]
        return bool(self._before)


def _is_simple(chunk: dict[str, Any]) -> bool:
    """Whether the chunk says nothing for one choice but a piece of its content."""
    choices: list[Any] = chunk.get("choices") or []
    if len(choices) != 1 or not isinstance(choices[0].get("delta"), dict):
        return False
    choice, delta = choices[0], choices[0]["delta"]
    return (
        isinstance(delta.get("content"), str)
        and isinstance(choice.get("index", 0), int)
        and all(value is None for key, value in choice.items() if key not in ("index", "delta"))
        and all(value is None for key, value in delta.items() if key not in ("role", "content"))
        and isinstance(delta.get("role", ""), str)
    )
