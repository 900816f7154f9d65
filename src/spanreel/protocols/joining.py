"""Texts that come in pieces, put together in JSON values that are still growing; and cut as a model would."""

from __future__ import annotations

import re
from typing import Final

from spanreel.model import Json

_WORD: Final = re.compile(r"\s*\S+|\s+")
_SLICE: Final = 16


class Text:
    """A text in the making."""

    def __init__(self, *pieces: str) -> None:
        self.pieces = list(pieces)

    def __str__(self) -> str:
        return "".join(self.pieces)


def words(text: str) -> list[str]:
    """The text in pieces as a model gives it: its words, each with the space before it."""
    return _WORD.findall(text)


def slices(text: str) -> list[str]:
    """The text in pieces of one length, as what is no prose may be given."""
    return [text[start : start + _SLICE] for start in range(0, len(text), _SLICE)]


def append(target: dict[str, Json], key: str, piece: str) -> None:
    """Add a piece to the text at a key; what else stands there gives way."""
    known = target.get(key)
    if isinstance(known, Text):
        known.pieces.append(piece)
    else:
        target[key] = Text(known, piece) if isinstance(known, str) else Text(piece)


def settle(value: Json) -> Json:
    """The value with its texts whole."""
    if isinstance(value, Text):
        return str(value)
    if isinstance(value, dict):
        return {key: settle(part) for key, part in value.items()}
    return [settle(part) for part in value] if isinstance(value, list) else value
