"""One scenario's agent, run without us, recorded, and replayed: what its caller and its model saw each time."""

from __future__ import annotations

import asyncio
import functools
import gc
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, get_type_hints

import spanreel
from contract.scenario import Ability, Scenario, Streaming, Task
from spanreel import testing
from spanreel.replay.judging.verdict import Report
from spanreel.session import Session
from spanreel.settings import read_settings
from spanreel_collector.conversion.convert import convert_files


@dataclass(frozen=True, slots=True)
class Seen:
    """What the world around an agent saw of one run: its caller, its model, its tools, its user's hooks."""

    value: Any = None
    error: tuple[str, str] | None = None
    requests: tuple[bytes, ...] = ()
    ran: tuple[str, ...] = ()
    told: tuple[str, ...] = ()


@dataclass
class Trial:
    """What an agent is to do, again and again: each run has a model of its own that says the same."""

    scenario: Scenario
    way: Ability
    script: testing.Script
    tools: Sequence[Callable[..., Any]] = ()
    folder: Path = field(default_factory=Path)
    question: str = "How is the weather in Paris?"
    instructions: str = "Be brief."
    drive: Callable[[Trial, Task], Any] | None = None
    """How the agent is run, where not to its end."""
    ran: list[str] = field(default_factory=list)
    provider: testing.ScriptedProvider = field(default_factory=lambda: testing.ScriptedProvider(()))
    """The model of the last run."""

    def go(self) -> Seen:
        """Run the agent as things stand."""
        told: list[str] = []
        self.ran.clear()
        self.provider = testing.ScriptedProvider(self.script)
        task = Task(
            self.provider,
            [self._noted(tool) for tool in self.tools],
            self.question,
            self.instructions,
            tell=told.append,
        )
        seen = Seen()
        try:
            seen = replace(seen, value=(self.drive or run)(self, task))
        except Exception as error:  # noqa: BLE001 - whatever a framework raises is compared
            seen = replace(seen, error=(type(error).__name__, str(error)))
        # Tools in parallel have no order of their own.
        requests = tuple(asked.body for asked in self.provider.requests)
        return replace(seen, requests=requests, ran=tuple(sorted(self.ran)), told=tuple(told))

    def record(self, **environment: str) -> tuple[Seen, Session]:
        """Run the agent recorded; what was seen, and the one session that was written."""
        with self.recording(**environment):
            seen = self.go()
        (session,) = self.sessions()
        return seen, session

    @contextmanager
    def recording(self, **environment: str) -> Iterator[None]:
        """Record into the trial's file for the length of a block."""
        self.file.unlink(missing_ok=True)
        settings = read_settings({"SPANREEL_FILE": str(self.file), "SPANREEL_LOG": "off", **environment})
        spanreel.instrument(settings=settings)
        try:
            yield
            gc.collect()
            assert spanreel.flush()
        finally:
            spanreel.uninstrument()

    def replay(self, session: Session, *, serve_redacted: bool = False) -> tuple[Seen, Report]:
        """Run the agent against its recording."""
        with spanreel.replay(session, check=False, serve_redacted=serve_redacted) as playing:
            seen = self.go()
        assert playing.report is not None
        return seen, playing.report

    @property
    def file(self) -> Path:
        """Where recordings go."""
        return self.folder / "traces.jsonl"

    def sessions(self) -> list[Session]:
        """What has been recorded."""
        if not self.file.exists():
            return []
        found = convert_files([str(self.file)])
        assert found.faults == ()
        return list(found.sessions)

    def _noted(self, tool: Callable[..., Any]) -> Callable[..., Any]:
        """The tool, which notes that it ran; to a framework it looks the same."""

        @functools.wraps(tool)
        def noted(*args: Any, **kwargs: Any) -> Any:
            self.ran.append(f"{tool.__name__} {args} {kwargs}")
            return tool(*args, **kwargs)

        noted.__annotations__ = get_type_hints(tool)
        return noted


def run(trial: Trial, task: Task) -> Any:
    """To the end, in the trial's way: the final text, or all that a stream gave."""
    scenario = trial.scenario
    if trial.way is Ability.PLAIN:
        assert scenario.plain is not None
        return scenario.plain(task)
    if trial.way is Ability.ASYNC:
        assert scenario.asynchronous is not None
        return asyncio.run(_awaited(scenario.asynchronous(task)))
    return read(trial, task)


def read(trial: Trial, task: Task, most: int | None = None) -> list[Any]:
    """So many items of a stream, which is then closed; all of them by default."""
    streaming = streaming_of(trial)
    if trial.way is Ability.ASYNC_STREAM:
        return asyncio.run(_read_async(streaming, task, most))
    stream = streaming.open(task)
    items = list(islice(streaming.items(stream), most))
    if most is not None:
        streaming.close(stream)
    return items


def streaming_of(trial: Trial) -> Streaming:
    """The steps of the trial's way to stream."""
    scenario = trial.scenario
    streaming = scenario.streaming if trial.way is Ability.STREAM else scenario.async_streaming
    assert streaming is not None
    return streaming


def opened_and_dropped(trial: Trial, task: Task) -> None:
    """A stream that nobody reads or closes."""

    async def open_and_drop() -> None:
        stream = await _awaited(streaming_of(trial).open(task))
        del stream
        gc.collect()
        await asyncio.sleep(0)

    if trial.way is Ability.ASYNC_STREAM:
        asyncio.run(open_and_drop())
    else:
        streaming_of(trial).open(task)
        gc.collect()


def at_once(trial: Trial, tasks: Sequence[Task]) -> list[Any]:
    """Several agents at the same time: in one loop, or in threads."""
    scenario = trial.scenario
    if trial.way is Ability.ASYNC:

        async def gather() -> list[Any]:
            assert scenario.asynchronous is not None
            return list(await asyncio.gather(*(_awaited(scenario.asynchronous(task)) for task in tasks)))

        return asyncio.run(gather())
    if trial.way is Ability.ASYNC_STREAM:

        async def gather_streams() -> list[Any]:
            return list(await asyncio.gather(*(_read_async(streaming_of(trial), task, None) for task in tasks)))

        return asyncio.run(gather_streams())
    barrier = threading.Barrier(len(tasks))

    def start(task: Task) -> Any:
        barrier.wait()
        return run(trial, task)

    with ThreadPoolExecutor(len(tasks)) as pool:
        return list(pool.map(start, tasks))


def cancelled(trial: Trial, task: Task) -> str:
    """The agent's task, cancelled while its model is thinking."""

    async def cancel() -> str:
        if trial.way is Ability.ASYNC:
            assert trial.scenario.asynchronous is not None
            work = asyncio.ensure_future(_awaited(trial.scenario.asynchronous(task)))
        else:
            work = asyncio.ensure_future(_read_async(streaming_of(trial), task, None))
        while not task.provider.requests and not work.done():
            await asyncio.sleep(0.001)
        work.cancel()
        await asyncio.wait([work])
        return "cancelled" if work.cancelled() else repr(work.exception())

    return asyncio.run(cancel())


async def _read_async(streaming: Streaming, task: Task, most: int | None) -> list[Any]:
    stream = await _awaited(streaming.open(task))
    items: list[Any] = []
    iterator: AsyncIterator[Any] = streaming.items(stream)
    async for item in iterator:
        items.append(item)
        if most is not None and len(items) >= most:
            break
    if most is not None:
        if inspect.isasyncgen(iterator):
            await iterator.aclose()
        await _awaited(streaming.close(stream))
    return items


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
