"""`make demo`: record an agent, convert its trace, show it, replay it unchanged, change its instructions, replay again.

Everything runs on this machine: a scripted model stands in for the provider, and the traces go to a file. No key.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from spanreel import testing
from spanreel.model import Request

HERE = Path(__file__).resolve().parent
AGENT = HERE / "refund_agent.py"


def care(request: Request) -> testing.Scripted:
    """What the scripted model says: look the order up, pay it back, say so."""
    answered = sum(message["role"] == "tool" for message in request.messages)
    if answered == 0:
        return testing.tool_call("find_order", {"order_id": 17})
    if answered == 1:
        return testing.tool_call("refund", {"order_id": 17, "amount": 12.5})
    return testing.text("Order 17 was late. I have paid 12.5 back to you.")


def run(title: str, command: list[str], environment: Mapping[str, str]) -> int:
    """Run one command of the demo, shown as a person would type it."""
    shown = " ".join(f"'{word}'" if " " in word else word for word in command)
    print(f"\n\033[1m{title}\033[0m\n$ {shown}" if sys.stdout.isatty() else f"\n{title}\n$ {shown}", flush=True)
    spanreel, *words = command
    start = [sys.executable, "-m", spanreel] if spanreel == "spanreel" else [spanreel]
    words = [sys.executable if word == "python" else word for word in words]
    return subprocess.run([*start, *words], env=dict(environment), check=False).returncode


def main() -> int:
    """Run the demo in ./demo-out. Returns 0 where each step ended as it should."""
    out = Path("demo-out")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    shutil.copy(AGENT, out / AGENT.name)
    os.chdir(out)
    ledger = Path("ledger.txt")
    with testing.ScriptedProvider(care) as provider:
        environment = {
            **os.environ,
            "OPENAI_BASE_URL": provider.base_url,
            "OPENAI_API_KEY": "sk-demo",
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
            "LEDGER": str(ledger),
        }
        recorded = run(
            "1. Record: the agent as it is, its spans as OTLP in a file",
            ["spanreel", "run", "--", "python", AGENT.name],
            {**environment, "SPANREEL_FILE": "traces.jsonl"},
        )
    environment.pop("OPENAI_BASE_URL")
    environment.pop("OPENAI_API_KEY")
    converted = run(
        "2. Convert the trace into a session",
        ["spanreel", "convert", "traces.jsonl", "--out", "session.json"],
        environment,
    )
    shown = run("3. Look at it", ["spanreel", "show", "session.json"], environment)
    unchanged = run(
        "4. Replay it: the same code, no model, no network, no side effect",
        ["spanreel", "replay", "session.json", "--", "python", AGENT.name],
        environment,
    )
    changed = run(
        "5. Change the instructions and replay again",
        ["spanreel", "replay", "session.json", "--", "python", AGENT.name],
        {**environment, "INSTRUCTIONS": "You care for customers of a book shop. Never refund."},
    )
    payments = ledger.read_text().splitlines() if ledger.exists() else []
    print(f"\nThe ledger holds {len(payments)} payment(s): the refund happened once, in step 1.")
    fine = (recorded, converted, shown, unchanged, changed, len(payments)) == (0, 0, 0, 0, 1, 1)
    print("All as it should be: PASS unchanged, FAIL with the reason once changed." if fine else "Not as it should be.")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
