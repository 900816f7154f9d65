"""Makes `claude_code.otlp.jsonl` and `claude_code_logs.otlp.jsonl`: Claude Code before a scripted provider.

The first has spans and events of the detailed beta, the second events alone. Claude Code's binary is of the package
`@anthropic-ai/claude-code` (and its platform's); nothing of it is kept, and it talks to this machine only:
``PYTHONPATH=src python tests/golden/claude_code_dump.py PATH/TO/claude tests/golden``
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from spanreel import testing
from spanreel.model import Answer, Request, Usage

PROMPT = "Reserve Momo, and ask the archive for Ronja."
USAGE = Usage(input_tokens=52, output_tokens=12, cache_read_tokens=7, cache_write_tokens=5)
LOOK_UP = {"command": "echo shelf 7", "description": "Look Momo up"}
RESERVE = {"command": "echo closed >&2; exit 3", "description": "Reserve Momo"}
ASK = {"description": "Ask the archive", "prompt": "Where is Ronja?", "subagent_type": "general-purpose"}


def answer(request: Request) -> testing.Scripted | Answer:
    """What the model says: by who asks, and by how many tools have answered since."""
    parts = [part for message in request.messages if message["role"] != "system" for part in message["parts"]]
    told = [part for part in parts if part["type"] == "tool_call_response"]
    words = [str(part["content"]) for part in parts if part["type"] == "text"]
    if not any(PROMPT in text for text in words):
        return testing.text("Ronja is lent out.", usage=USAGE)
    if not told:
        calls = [testing.tool_call("Bash", LOOK_UP, "toolu_1"), testing.tool_call("Bash", RESERVE, "toolu_2")]
        return testing.answer("Let me look.", tool_calls=calls, usage=USAGE)
    if len(told) < 3:
        return testing.tool_call("Task", ASK, "toolu_3", usage=USAGE)
    return testing.text("Momo is on shelf 7; Ronja is lent out.", usage=USAGE)


class Receiver(ThreadingHTTPServer):
    """Keeps what is exported to it."""

    def __init__(self) -> None:
        self.kept: dict[str, list[Any]] = {"traces": [], "logs": [], "metrics": []}
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    """Takes an export request."""

    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0)) or b"".join(self._chunks())
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.kept[self.path.rsplit("/", 1)[-1]].append(json.loads(body))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(b"{}")

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def record(binary: str, *, traces: bool) -> dict[str, list[Any]]:
    receiver = Receiver()
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{receiver.server_port}"
    with testing.ScriptedProvider(answer) as provider, tempfile.TemporaryDirectory() as home:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": home,
            "IS_SANDBOX": "1",
            "ANTHROPIC_API_KEY": "none",
            "ANTHROPIC_BASE_URL": provider.base_url.removesuffix("/v1"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_ENABLE_TELEMETRY": "1",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
            "OTEL_EXPORTER_OTLP_ENDPOINT": url,
            "OTEL_LOGS_EXPORTER": "otlp",
            "OTEL_LOG_USER_PROMPTS": "1",
            "OTEL_LOG_TOOL_DETAILS": "1",
        }
        if traces:
            environment |= {
                "CLAUDE_CODE_ENHANCED_TELEMETRY_BETA": "1",
                "ENABLE_BETA_TRACING_DETAILED": "1",
                "BETA_TRACING_ENDPOINT": url,
                "OTEL_TRACES_EXPORTER": "otlp",
                "OTEL_LOG_TOOL_CONTENT": "1",
            }
        command = [binary, "-p", PROMPT, "--model", "claude-sonnet-4-5"]
        command += ["--tools", "Bash,Task", "--allowedTools", "Bash,Task"]
        subprocess.run(command, env=environment, cwd=home, check=True, timeout=60, stdin=subprocess.DEVNULL)
    receiver.shutdown()
    return receiver.kept


def without_the_machine(requests: list[Any]) -> str:
    """The requests as lines; bodies as long as the vendor's prompts are cut, and who ran it is nobody."""
    lines = []
    for request in requests:
        for resource in (*request.get("resourceSpans", ()), *request.get("resourceLogs", ())):
            kept = ("service.name", "service.version")
            resource["resource"]["attributes"] = [
                one for one in resource["resource"]["attributes"] if one["key"] in kept
            ]
            for scope in (*resource.get("scopeSpans", ()), *resource.get("scopeLogs", ())):
                for item in (*scope.get("spans", ()), *scope.get("logRecords", ())):
                    item["attributes"] = [_shortened(one) for one in item["attributes"] if one["key"] != "user.id"]
        lines.append(json.dumps(request, separators=(",", ":")))
    return "".join(f"{line}\n" for line in lines)


def _shortened(attribute: dict[str, Any]) -> dict[str, Any]:
    text = attribute["value"].get("stringValue")
    vendors = attribute["key"] in (
        "system_prompt",
        "system_prompt_preview",
        "tool",
        "system_reminders",
        "user_system_prompt",
    )
    if vendors and isinstance(text, str) and attribute["key"] != "tool":
        return {**attribute, "value": {"stringValue": f"{text[:20]}"}}
    if vendors and isinstance(text, str):
        tool = json.loads(text)
        short = {
            "name": tool.get("name"),
            "description": str(tool.get("description"))[:20],
            "input_schema": {"type": "object"},
        }
        return {**attribute, "value": {"stringValue": json.dumps(short)}}
    return attribute


if __name__ == "__main__":
    binary, folder = sys.argv[1], Path(sys.argv[2])
    both = record(binary, traces=True)
    (folder / "claude_code.otlp.jsonl").write_text(without_the_machine([*both["traces"], *both["logs"]]))
    alone = record(binary, traces=False)
    (folder / "claude_code_logs.otlp.jsonl").write_text(without_the_machine(alone["logs"]))
