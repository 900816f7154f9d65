"""Which thread and task code runs in: calls of one lane come in the order of the code, those of several in any."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

Lane = tuple[int, "asyncio.Task[Any] | None"]
"""A thread, and the task that runs in it. The task itself, since another may get the id of one that is gone."""


def current_lane() -> Lane:
    """The lane of the caller."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop runs in this thread
        task = None
    return threading.get_ident(), task
