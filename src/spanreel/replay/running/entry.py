"""An entry function: found by its name, run to its end, and the runs before the one that it is to make again."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from spanreel.errors import ReplayRefused
from spanreel.session import Run, Session
from spanreel.streams import generator_in


def load(entry: str) -> Callable[..., Any]:
    """What ``module:name`` names; modules are looked for in the working directory too.

    Raises:
        ReplayRefused: it is not there, cannot be imported, or cannot be called.
    """
    module, _, name = entry.partition(":")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
        for step in name.split("."):
            found = getattr(found, step)
    except (ImportError, AttributeError) as error:
        raise ReplayRefused(f"--entry {entry!r} is not here: {error}") from error
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        said = f"{type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno})"
        raise ReplayRefused(f"--entry {entry!r} cannot be imported: {said}") from error
    if not callable(found):
        raise ReplayRefused(f"--entry {entry!r} is a {type(found).__name__}, which cannot be called")
    return found  # type: ignore[no-any-return]  # what getattr finds has no type


def finish(result: Any) -> None:
    """Run what a function has only begun: a coroutine, a generator of either kind, the body of a streamed response."""
    if inspect.iscoroutine(result) or inspect.isasyncgen(generator_in(result)):
        asyncio.run(_finish_in_loop(result))
    else:
        _drain(generator_in(result))


async def _finish_in_loop(result: Any) -> None:
    generator = generator_in(await result if inspect.iscoroutine(result) else result)
    if inspect.isasyncgen(generator):
        async for _ in generator:
            pass
    else:
        _drain(generator)


def _drain(generator: Iterable[Any] | None) -> None:
    for _ in generator or ():
        pass


def remembered(session: Session, run: Run | None) -> list[tuple[int, Run]]:
    """The runs of the same agent before one run of a conversation, by their numbers: the agent may remember them."""
    roots = session.roots()
    if run is None or run not in roots or session.key.kind != "conversation":
        return []
    before = list(enumerate(roots))[: roots.index(run)]
    return [(number, one) for number, one in before if one.agent.name == run.agent.name and one.turns]
