"""Makes `mlflow.otlp.jsonl`: the librarian, recorded by MLflow's decorator and its autologging of the OpenAI SDK.

``OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:1 \\
PYTHONPATH=src:tests python tests/golden/mlflow_dump.py > tests/golden/mlflow.otlp.jsonl``
"""

from __future__ import annotations

from typing import Any

import mlflow
import mlflow.openai
import mlflow.tracing.provider
import openai

from golden import librarian

mlflow.tracing.provider.get_otlp_exporter = librarian.Lines
mlflow.openai.autolog()
client = openai.OpenAI(**librarian.CLIENT)
TOOLS: Any = {
    "find_book": mlflow.trace(name="find_book", span_type="TOOL")(librarian.find_book),
    "reserve": mlflow.trace(name="reserve", span_type="TOOL")(librarian.reserve),
}
GIVEN: list[Any] = []


def ask(question: str) -> str:
    del question  # it is the last of the messages
    messages, settings = GIVEN
    return librarian.answer(messages, client.chat.completions.create, TOOLS, **settings)


ask_recorded: Any = mlflow.trace(name="librarian", span_type="AGENT")(ask)


def recorded(question: str, messages: list[Any], **settings: Any) -> str:
    GIVEN[:] = [messages, settings]
    return str(ask_recorded(question))


librarian.converse(recorded)
mlflow.flush_trace_async_logging()
