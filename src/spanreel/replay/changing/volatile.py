"""Model requests without what differs by itself: the places that a changes file names hold a stand-in on either side.

A value may differ there; whether there is one may not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from spanreel.model import Json
from spanreel.places import pointer_steps
from spanreel.replay.changing.changes import Volatile
from spanreel.replay.changing.tool_policies import mapped

STAND_IN: Final = "[volatile]"


def settled(identity: dict[str, Json], volatile: Sequence[Volatile]) -> dict[str, Any]:
    """The identity of a request with stand-ins."""
    value: Any = identity
    for one in volatile:
        for pointer in one.at:
            value = mapped(value, pointer_steps(pointer), partial(_stand_in, one.pattern))
    return dict(value)


def _stand_in(pattern: str | None, value: Json) -> Json:
    if pattern is None:
        return STAND_IN
    return re.sub(pattern, STAND_IN, value) if isinstance(value, str) else value
