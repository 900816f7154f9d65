"""Names that belong together, as pairs of them tell; what the names stand for is their users' business."""

from __future__ import annotations

from typing import Generic, TypeVar

Name = TypeVar("Name", int, bytes)


class Unions(Generic[Name]):
    """Names that belong together; the chief of each group is the least of them."""

    def __init__(self) -> None:
        self._above: dict[Name, Name] = {}

    def join(self, one: Name, other: Name) -> None:
        """These two belong together, and all that belong to either."""
        first, second = self._chief(one), self._chief(other)
        chief, under = (first, second) if first <= second else (second, first)
        self._above[chief] = self._above[under] = chief

    def _chief(self, name: Name) -> Name:
        walked = []
        while (above := self._above.get(name, name)) != name:
            walked.append(name)
            name = above
        for step in walked:
            self._above[step] = name
        return name

    def pairs(self) -> list[tuple[Name, Name]]:
        """Each name with its chief, in order."""
        return [(name, self._chief(name)) for name in sorted(self._above)]
