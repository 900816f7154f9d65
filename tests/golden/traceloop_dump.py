"""Makes `traceloop.otlp.jsonl`: the librarian, recorded by Traceloop's SDK and OpenLLMetry's OpenAI instrumentation.

``PYTHONPATH=src:tests python tests/golden/traceloop_dump.py > tests/golden/traceloop.otlp.jsonl``
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import openai
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from traceloop.sdk import Traceloop
from traceloop.sdk.decorators import agent, tool, workflow
from traceloop.sdk.instruments import Instruments

from golden import librarian

lines = SimpleSpanProcessor(librarian.Lines())
with contextlib.redirect_stdout(sys.stderr):  # it greets
    Traceloop.init("library", processor=lines, instruments={Instruments.OPENAI}, telemetry_enabled=False)
Traceloop.set_association_properties({"session_id": "visit-1", "user_id": "reader-9"})
client = openai.OpenAI(**librarian.CLIENT)
TOOLS: Any = {
    "find_book": tool(name="find_book")(librarian.find_book),
    "reserve": tool(name="reserve")(librarian.reserve),
}
HISTORY: list[Any] = []


def ask(question: str, **settings: Any) -> str:
    del question  # it is the last of the messages
    return librarian.answer(HISTORY[0], client.chat.completions.create, TOOLS, **settings)


ask_recorded: Any = agent(name="librarian")(ask)


def request(question: str, **settings: Any) -> str:
    return str(ask_recorded(question, **settings))


request_recorded: Any = workflow(name="visit")(request)


def recorded(question: str, messages: list[Any], **settings: Any) -> str:
    HISTORY[:] = [messages]
    return str(request_recorded(question, **settings))


librarian.converse(recorded)
