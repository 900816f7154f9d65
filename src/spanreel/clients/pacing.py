"""The body of a recorded answer, piece by piece, each when it is due."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator

from spanreel.exchange import HttpAnswer


def paced(answer: HttpAnswer) -> Iterator[bytes]:
    """The pieces; where the call was broken off, or its connection broke, it is so again behind them."""
    started = time.monotonic()
    for due, piece in answer.pieces:
        if (wait := started + due / 1000 - time.monotonic()) > 0 and due:
            time.sleep(wait)
        yield piece
    if answer.broken_off is not None:
        answer.broken_off.give_up()
    if answer.failure is not None:
        raise answer.failure


async def paced_async(answer: HttpAnswer) -> AsyncIterator[bytes]:
    """`paced` for asynchronous clients."""
    started = time.monotonic()
    for due, piece in answer.pieces:
        if (wait := started + due / 1000 - time.monotonic()) > 0 and due:
            await asyncio.sleep(wait)
        yield piece
    if answer.broken_off is not None:
        await answer.broken_off.wait()
    if answer.failure is not None:
        raise answer.failure
