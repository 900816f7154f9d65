"""Names of traces, by which a store finds those that belong together, and those of a user.

A name is of one length, and has nothing of what it stands for to be read in it.
"""

from __future__ import annotations

import hashlib
from typing import Final

_OPPOSITES: Final = {"h": "l", "l": "h"}
_USER: Final = "u"


def conversation_name(key: str) -> str:
    """Of traces that may share a conversation."""
    return _name("c", key.encode("utf-8", "surrogatepass"))


def session_name(session: str) -> str:
    """Of traces that a session was made of."""
    return _name("s", session.encode())


def beginning_name(head: bytes) -> str:
    """Of traces with a loop that begins so."""
    return _name("h", head)


def end_name(tail: bytes) -> str:
    """Of traces with a loop that ends so."""
    return _name("l", tail)


def call_name(twin: bytes) -> str:
    """Of traces that tell of the same model call."""
    return _name("w", twin)


def own_name(trace: bytes) -> str:
    """The name of a trace that others may link to."""
    return _name("t", trace.hex().encode())


def user_name(user: str) -> str:
    """Of traces in which somebody is named as a user; it joins nothing."""
    return _name(_USER, user.encode("utf-8", "surrogatepass"))


def opposites(names: frozenset[str]) -> frozenset[str]:
    """The names that traces have which these join: an end of a loop is joined to a beginning, others to their like.

    So two conversations that begin alike are not read together.
    """
    kinds = ((name[0], name[1:]) for name in names)
    return frozenset(f"{_OPPOSITES.get(kind, kind)}{rest}" for kind, rest in kinds if kind != _USER)


def _name(kind: str, content: bytes) -> str:
    return f"{kind}:{hashlib.sha256(content).hexdigest()[:24]}"
