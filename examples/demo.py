"""`make demo`: record an agent into the service, look at its session, replay it unchanged, and with other instructions.

Everything runs on this machine: a scripted model stands in for the provider, and the service keeps what it gets in a
file of ./demo-out. No key. A person at a terminal gets the address of the page at the end; without one, it just ends.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx

from spanreel import testing
from spanreel.model import Request

HERE = Path(__file__).resolve().parent
AGENT = HERE / "refund_agent.py"
PORT = 4318
PATIENCE = 60
REDACTION_KEY = "SPANREEL_REDACTION_KEY"


def care(request: Request) -> testing.Scripted:
    """What the scripted model says: look the order up, pay it back, say so."""
    answered = sum(message["role"] == "tool" for message in request.messages)
    if answered == 0:
        return testing.tool_call("find_order", {"order_id": 17})
    if answered == 1:
        return testing.tool_call("refund", {"order_id": 17, "amount": 12.5})
    return testing.text("Order 17 was late. I have paid 12.5 back to you.")


def say(title: str, command: list[str]) -> None:
    """A step, and the command as a person would type it."""
    shown = " ".join(f"'{word}'" if " " in word else word for word in command)
    print(f"\n\033[1m{title}\033[0m\n$ {shown}" if sys.stdout.isatty() else f"\n{title}\n$ {shown}", flush=True)


def start(command: list[str]) -> list[str]:
    """What a command of ours is with this Python."""
    return [sys.executable, "-m", *command] if command[0] == "spanreel" else command


def run(title: str, command: list[str], environment: Mapping[str, str]) -> int:
    """Run one command of the demo."""
    say(title, command)
    words = [sys.executable if word == "python" else word for word in start(command)]
    return subprocess.run(words, env=dict(environment), check=False).returncode


@contextlib.contextmanager
def service(environment: Mapping[str, str]) -> Iterator[str]:
    """The service with a store in this folder; its address, once it is ready."""
    port = free_port()
    command = ["spanreel", "serve", "--store", "sqlite:///spanreel.db", "--http", f"127.0.0.1:{port}", "--grpc", "off"]
    say("1. Serve: receives traces, keeps them, makes sessions of them", command)
    # Behind the terminal's back: Ctrl-C is for us, who end it.
    process = subprocess.Popen(start(command), env=dict(environment), start_new_session=True)
    try:
        address = f"http://127.0.0.1:{port}"
        wait_for(f"{address}/readyz", lambda said: True, process)
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            print(f"The service did not end within {PATIENCE} s, and was killed.", file=sys.stderr)
            process.kill()
            process.wait()


def free_port() -> int:
    """The port of OTLP over HTTP, or another where somebody has it."""
    for port in (PORT, 0):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)) as asked:
            return int(asked.getsockname()[1])
    raise SystemExit("no port of this machine is free")


def wait_for(url: str, holds: Callable[[Any], bool], process: subprocess.Popen[bytes] | None = None) -> Any:
    """What a URL says once it is what is waited for."""
    for _ in range(PATIENCE * 10):
        if process is not None and process.poll() is not None:
            raise SystemExit("the service did not start")
        with contextlib.suppress(httpx.TransportError):
            answer = httpx.get(url, timeout=PATIENCE, trust_env=False)
            if answer.is_success and holds(answer.json()):
                return answer.json()
        time.sleep(0.1)
    raise SystemExit(f"{url} does not say what is waited for")


def demonstrate(address: str, environment: dict[str, str]) -> tuple[int, ...]:
    """Record, look, replay twice; what each step ended with."""
    with testing.ScriptedProvider(care) as provider:
        recorded = run(
            "2. Record: the agent as it is, its spans sent there",
            ["spanreel", "run", "--", "python", AGENT.name],
            {
                **environment,
                "OPENAI_BASE_URL": provider.base_url,
                "OPENAI_API_KEY": "sk-demo",
                "OTEL_EXPORTER_OTLP_ENDPOINT": address,
                "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            },
        )
    wait_for(f"{address}/api/v1/size", lambda size: size["sessions"] > 0 and size["pending"] == 0)
    (session,) = httpx.get(f"{address}/api/v1/sessions", timeout=PATIENCE, trust_env=False).json()["sessions"]
    url = f"{address}/api/v1/sessions/{session['id']}"
    say("3. Its trace has become a session", ["curl", url, "--output", "session.json"])
    Path("session.json").write_bytes(httpx.get(url, timeout=PATIENCE, trust_env=False).content)
    shown = run("4. Look at it", ["spanreel", "show", "session.json"], environment)
    replay = ["spanreel", "replay", url, "--post-report", "--", "python", AGENT.name]
    unchanged = run("5. Replay it: the same code, no model, no network, no side effect", replay, environment)
    changed = run(
        "6. Change the instructions and replay again",
        replay,
        {**environment, "INSTRUCTIONS": "You care for customers of a book shop. Never refund."},
    )
    return recorded, shown, unchanged, changed


def main() -> int:
    """Run the demo in ./demo-out. Returns 0 where each step ended as it should."""
    out = Path("demo-out")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    shutil.copy(AGENT, out / AGENT.name)
    os.chdir(out)
    ledger = Path("ledger.txt")
    # A world of its own: no token, endpoint or model of the person who runs it.
    foreign = tuple(name for name in os.environ if name.startswith(("OPENAI_", "OTEL_", "SPANREEL_")))
    kept = {name: value for name, value in os.environ.items() if name not in foreign or name == REDACTION_KEY}
    environment = {**kept, "OPENAI_AGENTS_DISABLE_TRACING": "1", "LEDGER": str(ledger)}
    environment["SPANREEL_SERVE_LOG_LEVEL"] = "warning"  # what it says of itself would stand between the steps
    with service(environment) as address:
        ended = demonstrate(address, environment)
        payments = ledger.read_text().splitlines() if ledger.exists() else []
        print(f"\nThe ledger holds {len(payments)} payment(s): the refund happened once, in step 2.")
        fine = (*ended, len(payments)) == (0, 0, 0, 1, 1)
        said = "All as it should be: PASS unchanged, FAIL with the reason once changed."
        print(said if fine else "Not as it should be.", flush=True)
        if sys.stdin.isatty() and sys.stdout.isatty() and not os.environ.get("CI"):
            with contextlib.suppress(KeyboardInterrupt):
                print(f"\nThe session and both replays are at {address}/ (Ctrl-C ends it)", flush=True)
                while True:  # not signal.pause, which never hears of a Ctrl-C that comes right before it
                    time.sleep(0.2)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
