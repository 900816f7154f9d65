"""Texts that come in pieces, put together in JSON values that are still growing."""

from __future__ import annotations

from spanreel.model import Json


class Text:
    """A text in the making."""

    def __init__(self, *pieces: str) -> None:
        self.pieces = list(pieces)

    def __str__(self) -> str:
        return "".join(self.pieces)


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
