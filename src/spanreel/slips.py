"""Variables of the environment that nothing reads, and that look like one of ours: a slip of the finger."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Final

from spanreel import settings

_OURS: Final = "SPANREEL_"
_OF_THE_SERVICE: Final = "SPANREEL_SERVE_"
_READ_ELSEWHERE: Final = frozenset(
    _OURS + name
    for name in ("INGEST_TOKEN", "READ_TOKEN", "REDACTION_KEY", "REDACTION_KEY_FILE", "STORE", "STRICT", "TOKEN", "URL")
)
"""By other modules, the service and the Collector's configurations."""
_ALIKE: Final = {_OURS: 0.8, _OF_THE_SERVICE: 0.74}
"""How alike two names are of which one is a slip. The service has names of four letters, of which one is a quarter."""


def find_slips(environ: Mapping[str, str] = os.environ, *, service: Collection[str] = ()) -> list[str]:
    """A sentence for each. What looks like none of ours is the user's: Kubernetes sets ``SPANREEL_PORT`` and others.

    ``service``: the variables of the service, which looks at its own alone, as others look at theirs.
    """
    names = {value for value in vars(settings).values() if isinstance(value, str) and value.startswith(_OURS)}
    known = set(service) or names | _READ_ELSEWHERE
    prefix = _OF_THE_SERVICE if service else _OURS
    unread = [name for name in environ if name.startswith(prefix) and name not in known]
    found = []
    for name in sorted(name for name in unread if service or not name.startswith(_OF_THE_SERVICE)):
        import difflib  # noqa: PLC0415 -- almost never needed, and each program would pay for it at its start

        # Without what all begin with, which makes any two alike.
        ends = [other.removeprefix(prefix) for other in sorted(known)]
        for near in difflib.get_close_matches(name.removeprefix(prefix), ends, n=1, cutoff=_ALIKE[prefix]):
            found.append(f"nothing reads {name}; did you mean {prefix}{near}?")
    return found
