"""Variables of the environment that nothing reads, and that look like one of ours: a slip of the finger."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from spanreel import settings

_OURS: Final = "SPANREEL_"
_OF_THE_SERVICE: Final = "SPANREEL_SERVE_"
_READ_ELSEWHERE: Final = frozenset(
    _OURS + name
    for name in ("INGEST_TOKEN", "READ_TOKEN", "REDACTION_KEY", "REDACTION_KEY_FILE", "STORE", "STRICT", "TOKEN", "URL")
)
"""By other modules, the service and the Collector's configurations."""


def find_slips(environ: Mapping[str, str] = os.environ) -> list[str]:
    """A sentence for each. What looks like none of ours is the user's: Kubernetes sets ``SPANREEL_PORT`` and others."""
    names = {value for value in vars(settings).values() if isinstance(value, str) and value.startswith(_OURS)}
    known = names | _READ_ELSEWHERE
    unread = [name for name in environ if name.startswith(_OURS) and name not in known]
    found = []
    for name in sorted(name for name in unread if not name.startswith(_OF_THE_SERVICE)):
        import difflib  # noqa: PLC0415 -- almost never needed, and each program would pay for it at its start

        # Without what all begin with, which makes any two alike.
        ends = [other.removeprefix(_OURS) for other in sorted(known)]
        for near in difflib.get_close_matches(name.removeprefix(_OURS), ends, n=1, cutoff=0.8):
            found.append(f"nothing reads {name}; did you mean {_OURS}{near}?")
    return found
