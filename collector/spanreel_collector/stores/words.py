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
_WORD: Final = re.compile(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])[^\W_])+")


def split_words(text: str) -> list[str]:
    """The words of a text, in order, each as often as it stands there."""
    if not text.isascii():
        parts = unicodedata.normalize("NFKD", text)
        # A second time: what casefold makes of some letters (the dotted capital I) has marks again.
        parts = unicodedata.normalize("NFKD", parts.casefold())
        text = "".join(character for character in parts if not unicodedata.combining(character))
    return [word[:LONGEST] for word in _WORD.findall(text.casefold())]


def distinct_words(text: str) -> list[str]:
    """The words of a session's text, each once; the first that there is room for."""
    room = MOST
    words = dict.fromkeys(split_words(text))
    if sum(map(len, words)) * 4 > room:
        kept: list[str] = []
        for word in words:
            room -= len(word.encode())
            if room < 0:
                break
            kept.append(word)
        return sorted(kept)
    return sorted(words)
