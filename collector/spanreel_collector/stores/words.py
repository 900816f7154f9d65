"""The words of a text, as they are searched: both stores index what this makes, so that both find the same.

Without accents and case, letters and digits only; a character of a script without spaces is a word. Knows no store.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

LONGEST: Final = 64
"""Characters of a word; of a longer one (an encoded file) its beginning is found."""
MOST: Final = 900_000
"""Bytes of all words of a session: PostgreSQL's tsvector ends at a megabyte."""

_UNSPACED: Final = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_ANY_UNSPACED: Final = re.compile(f"[{_UNSPACED}]")
_WORD: Final = re.compile(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])[^\W_])+")
_SPACED_WORD: Final = re.compile(r"[^\W_]+")
_ASCII: Final = "".join(character.lower() if (character := chr(code)).isalnum() else " " for code in range(128))
"""What stands for each character of ASCII, by its code."""


def split_words(text: str) -> list[str]:
    """The words of a text, in order, each as often as it stands there."""
    return [word[:LONGEST] for word in _whole_words(text)]


def _whole_words(text: str) -> list[str]:
    if text.isascii():  # as below, in a tenth of the time
        return text.translate(_ASCII).split()
    parts = unicodedata.normalize("NFKD", text)
    # A second time: what casefold makes of some letters (the dotted capital I) has marks again.
    parts = unicodedata.normalize("NFKD", parts.casefold())
    for mark in filter(unicodedata.combining, set(parts)):
        parts = parts.replace(mark, "")
    parts = parts.casefold()
    # To ask at each character whether its script has spaces takes long.
    return (_WORD if _ANY_UNSPACED.search(parts) else _SPACED_WORD).findall(parts)


def distinct_words(text: str) -> list[str]:
    """The words of a session's text, each once; the first that there is room for."""
    room = MOST
    words = dict.fromkeys(word[:LONGEST] for word in dict.fromkeys(_whole_words(text)))
    if sum(map(len, words)) * 4 > room:
        kept: list[str] = []
        for word in words:
            room -= len(word.encode())
            if room < 0:
                break
            kept.append(word)
        return sorted(kept)
    return sorted(words)
