"""A glance at text: whether anything stands in it that is worth a look. Nearly always nothing does.

One pass of pydantic_core's regular expressions (Rust's, which need time linear in the text) for all that is looked for,
where Python's would take one for each. It may see what is not there, and misses nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from pydantic_core import SchemaValidator, core_schema

_PIECE: Final = 128 * 1024
"""Characters that are looked at in one pass, which holds the interpreter's lock."""
_REACH: Final = 64
"""Characters that no pattern is longer than."""

_IS_TEXT: Final = SchemaValidator(core_schema.str_schema(pattern=""))


class Glance:
    """Looks for patterns, in the syntax of Rust's `regex`, made ready when they are first needed."""

    __slots__ = ("_is_found", "_pattern")

    def __init__(self, patterns: Iterable[str]) -> None:
        self._pattern = "|".join(patterns)
        self._is_found: Callable[[str], bool] | None = None

    def sees(self, text: str) -> bool:
        """Whether one of the patterns matches somewhere, or the text has half a surrogate pair and cannot be told."""
        is_found = self._is_found or self._make_ready()
        if len(text) > _PIECE:
            return any(self.sees(text[start : start + _PIECE]) for start in range(0, len(text), _PIECE - _REACH))
        return is_found(text) or not (text.isascii() or _IS_TEXT.isinstance_python(text))

    def _make_ready(self) -> Callable[[str], bool]:
        self._is_found = SchemaValidator(core_schema.str_schema(pattern=self._pattern)).isinstance_python
        return self._is_found


def pattern_of(fragment: str, *, folded: bool = False) -> str:
    """The pattern that finds a fragment, in which a question mark is any character; ``folded``: any case, any digit."""
    signs = (
        "(?s:.)" if sign == "?" else "[0-9]" if folded and sign.isdigit() else re.escape(sign) for sign in fragment
    )
    return f"(?i:{''.join(signs)})" if folded else "".join(signs)
