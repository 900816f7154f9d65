"""A process that imports a scenario's library and us, in either order, and runs the agent once."""

from __future__ import annotations

import asyncio
import importlib
import sys


def weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


def main(name: str, order: str) -> None:
    if order == "before":
        importlib.import_module("spanreel.auto")
    from contract.scenario import Task
    from contract.scenarios import load
    from spanreel import testing

    scenario = load(name)
    if order == "after":
        importlib.import_module("spanreel.auto")
    script = [testing.tool_call("weather", {"city": "Paris"}), testing.text("It is sunny there.")]
    task = Task(testing.ScriptedProvider(script), [weather])
    if scenario.plain is not None:
        scenario.plain(task)
    elif scenario.asynchronous is not None:
        asyncio.run(scenario.asynchronous(task))  # type: ignore[arg-type]  # an awaitable of a coroutine function


if __name__ == "__main__":
    main(*sys.argv[1:])
