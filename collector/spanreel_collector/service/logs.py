"""The service's logs: lines for people, or JSON; to standard error. They say what happened, never what was sent."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any, Literal

Form = Literal["text", "json"]

_QUIET = ("uvicorn", "uvicorn.error", "httpx", "httpcore", "opentelemetry", "psycopg", "asyncio", "grpc", "multipart")


class Lines(logging.Formatter):
    """Records as lines. Of an exception where it was raised and its kind: its words may hold what was sent."""

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name for it
        """The stack and the exception's class."""
        kind, _, trace = ei
        frames = "".join(traceback.format_tb(trace))
        return f"{frames}{kind.__module__}.{kind.__qualname__}" if kind else ""


class JsonLines(Lines):
    """Records as lines of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        said: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            said["exception"] = self.formatException(record.exc_info)
        return json.dumps(said, default=str)


def configure(form: Form, level: str) -> None:
    """Have all logs of this process written so."""
    handler = logging.StreamHandler(sys.stderr)
    plain = Lines("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(JsonLines() if form == "json" else plain)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in _QUIET:
        # What they say at lower levels holds addresses and queries of callers.
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
