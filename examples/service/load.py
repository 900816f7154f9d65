"""Record the service under load, and replay one request of it: PASS; with a changed retriever: FAIL, with the reason.

    python examples/service/load.py

A scripted provider, two processes of the service, 40 conversations of 3 questions at once whose questions go to the one
process and the other in turn. Everything stays on this machine, and in ./service-out.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx

from spanreel import testing
from spanreel.model import Operation, Request
from spanreel.session_files import load_sessions

HERE = Path(__file__).resolve().parent
OUT = Path("service-out").resolve()
CONVERSATIONS = 40
AT_ONCE = 20
SHOWN = 7
SPANREEL = [sys.executable, "-m", "spanreel"]


def provider(request: Request) -> testing.Scripted:
    """What the scripted provider answers: embeddings; where the order is; else the handbook's best passage."""
    if request.operation is Operation.EMBEDDINGS:
        return testing.embeddings(request)
    instructions, first, *_, last = [request.messages[0], *request.messages[1:2], *request.messages]
    reader = first["parts"][0]["content"].removeprefix("I am ").partition(".")[0]  # known from the first question alone
    said = last["parts"][0]
    if last["role"] == "tool":
        return testing.text(f"{reader}, {said['response']}.")
    if "order" in said["content"]:
        number = reader.split()[-1]
        return testing.tool_call("find_order", {"order": int(number)}, f"call_{number}")
    passages = instructions["parts"][0]["content"].splitlines()[1:]
    return testing.text(f"{reader}, I read {passages[0]}")


def questions(number: int) -> list[str]:
    """What the reader of this number asks; the second and third make sense after the first alone."""
    return [
        f"I am reader {number}. For how many days may I send a book back?",
        "Where is my order?",
        "Who pays for sending it back?",
    ]


@contextmanager
def service(environment: Mapping[str, str]) -> Iterator[str]:
    """A process of the service, recorded; its address, once it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [*SPANREEL, "run", "-m", "uvicorn", "app:app", "--port", str(port), "--log-level", "warning"]
    process = subprocess.Popen(command, cwd=HERE, env=dict(environment))
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


def wait_for(address: str) -> None:
    """Return when the service answers."""
    for _ in range(600):
        try:
            httpx.get(f"{address}/openapi.json")
        except httpx.TransportError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit(f"the service at {address} does not start")


def talk(number: int, addresses: list[str]) -> list[str]:
    """One conversation, question by question."""
    answers = []
    for turn, question in enumerate(questions(number)):
        address = addresses[(number + turn) % len(addresses)]
        answered = httpx.post(f"{address}/conversations/c-{number}", json={"question": question}, timeout=120)
        answers.append(answered.raise_for_status().json()["answer"])
    return answers


def record(environment: Mapping[str, str]) -> list[list[str]]:
    """All conversations, over two processes that each write a file of their own; their answers."""
    first, second = ({**environment, "SPANREEL_FILE": str(OUT / f"process-{number}.jsonl")} for number in (1, 2))
    with service(first) as one, service(second) as other, ThreadPoolExecutor(AT_ONCE) as readers:
        for address in (one, other):
            wait_for(address)
        return list(readers.map(lambda number: talk(number, [one, other]), range(CONVERSATIONS)))


def run(*words: str, **environment: str) -> int:
    """A command of spanreel's, shown as a person would type it; its exit code."""
    print("\n$", *(f"{name}={value}" for name, value in environment.items()), "spanreel", *words, flush=True)
    return subprocess.run([*SPANREEL, *words], cwd=HERE, env={**os.environ, **environment}, check=False).returncode


def main() -> int:
    """Returns 0 where each step ended as it should."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    os.environ.update(DATABASE=str(OUT / "conversations.db"), OTEL_SERVICE_NAME="help-desk")
    started = time.monotonic()
    with testing.ScriptedProvider(provider) as scripted:
        answers = record({**os.environ, "OPENAI_BASE_URL": scripted.base_url, "OPENAI_API_KEY": "sk-none"})
    seconds = time.monotonic() - started
    print(f"\n{CONVERSATIONS} conversations of {len(answers[SHOWN])} questions in {seconds:.1f} s. One of them:")
    for question, answered in zip(questions(SHOWN), answers[SHOWN], strict=True):
        print(f"  {question}\n    {answered}")

    sessions = OUT / "sessions"
    converted = run("convert", *(str(OUT / f"process-{number}.jsonl") for number in (1, 2)), "--out", f"{sessions}/")
    found = {file: load_sessions(file)[0] for file in sessions.glob("*.json")}
    talks = {session.key.value: file for file, session in found.items() if session.key.kind == "conversation"}
    print(f"{len(talks)} conversations; {len(found) - len(talks)} more for what each process did at its start")

    # Its second request: the agent remembers the first, and calls a tool.
    request = f"{talks[f'c-{SHOWN}']}#1"
    unchanged = run("replay", request, "--entry", "app:answer")
    changed = run("replay", request, "--entry", "app:answer", PASSAGES="1")

    fine = (converted, len(talks), unchanged, changed) == (0, CONVERSATIONS, 0, 1)
    print("\nAs it should be: PASS, and FAIL once the retriever changed." if fine else "\nNot as it should be.")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
