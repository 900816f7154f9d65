"""What was worked out before, by the content it was worked out of: bounded in bytes, the longest unused goes first.

A conversation repeats its history in every call; what was read, examined or written of it once is known here.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")

ENTRY_BYTES = 256
"""What an entry is reckoned to take beside its content."""
_MOST_EXAMINERS = 4


class ListItem(str):
    """The JSON text of an item of a list, which stands in the lists of the calls that follow too.

    ``passed`` are those who examined it and found nothing, the last few of them: they need not look it up there.
    ``read`` is who read it last as something else, and what that was; None where nobody has.
    """

    __slots__ = ("passed", "read")

    passed: tuple[object, ...]
    read: tuple[object, Any] | None

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str.__str__(self),)  # what is known of it is this process's own


def item(text: str) -> ListItem:
    """The text as an item that nobody has examined."""
    made = ListItem(text)
    made.passed, made.read = (), None
    return made


def note_passed(examined: ListItem, examiner: object) -> None:
    """The examiner found nothing in the item."""
    examined.passed = (*examined.passed[1 - _MOST_EXAMINERS :], examiner)


class Known(dict[str, Any]):
    """A JSON object that was read before, and remembers its own JSON text. It is shared: nobody may change it.

    ``unmarked`` says whether it holds no marker of a loss; ``calls`` what a message tells of tool calls, as conversion
    works it out. None where nobody has looked.
    """

    __slots__ = ("calls", "text", "unmarked")

    text: ListItem | None
    unmarked: bool | None
    calls: Any


def known(value: dict[str, Any]) -> Known:
    """The object, nothing of it worked out yet."""
    made = Known(value)
    made.text = made.unmarked = made.calls = None
    return made


class Memory(Generic[Value]):
    """Results by content. ``most`` bounds the bytes held; a result is reckoned to be as large as its content.

    What is handed out is shared: nobody may change it. Thread-safe. Nobody waits: where another thread is at it, or
    this one is and a finalizer runs meanwhile, a result is not kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = self._passed = 0
        # Each with what had passed when it was last put at the end, so that it is not moved at each use.
        self._known: OrderedDict[str | bytes, tuple[Value, int]] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, content: str | bytes) -> Value | None:
        """What was kept for this content; None where there is nothing (any more)."""
        found = self._known.get(content)
        if found is None:
            return None
        if self._passed - found[1] > self._most // 4 and self._lock.acquire(blocking=False):
            try:
                if self._known.pop(content, None) is not None:
                    self._known[content] = found[0], self._passed  # last in the order: used last
            finally:
                self._lock.release()
        return found[0]

    def keep(self, content: str | bytes, value: Value) -> None:
        """Keep a result, in the place of the longest unused; what is larger than a quarter of all is not kept."""
        size = _size(content)
        if size > self._most // 4:
            return
        if not self._lock.acquire(blocking=False):
            return
        try:
            if content not in self._known:
                self._held += size
                self._passed += size
                self._known[content] = value, self._passed
            while self._held > self._most:
                oldest, _ = self._known.popitem(last=False)
                self._held -= _size(oldest)
        finally:
            self._lock.release()

    def __len__(self) -> int:
        return len(self._known)


def _size(content: str | bytes) -> int:
    # Once for the content, once for the result.
    return 2 * len(content) + ENTRY_BYTES
