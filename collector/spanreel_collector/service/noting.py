"""What could not be read, noted in the store as refused: each once, however often it is read again."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from spanreel_collector.span import Fault
from spanreel_collector.stores.records import Refusal
from spanreel_collector.stores.store import Store

_REMEMBERED: Final = 10_000


@dataclass(eq=False, slots=True)
class Noting:
    """Remembers what was noted last."""

    store: Store
    _noted: OrderedDict[Refusal, None] = field(default_factory=OrderedDict)

    def note(self, tenant: str, faults: Iterable[Fault]) -> None:
        """Note what was not yet."""
        fresh = []
        for fault in faults:
            key = Refusal(tenant, 0, fault.place, fault.reason)
            if key not in self._noted:
                self._noted[key] = None
                fresh.append(replace(key, at=time.time_ns()))
        while len(self._noted) > _REMEMBERED:
            self._noted.popitem(last=False)
        if fresh:
            self.store.append((), fresh)
