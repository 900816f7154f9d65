"""The example of a service: it records each conversation by itself under load, and one request of it replays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT
from spanreel.model import Operation, ToolKind
from spanreel.session import Run, Session
from spanreel.session_files import load_sessions

pytestmark = pytest.mark.slow

QUESTIONS = [
    "I am reader {}. For how many days may I send a book back?",
    "Where is my order?",
    "Who pays for sending it back?",
]
ANSWERS = [
    "reader {}, I read - Returns: a reader may send a book back for thirty days.",
    "reader {0}, order {0} left the shop yesterday.",
    "reader {}, I read - Postage: we pay for sending a book back when it came damaged.",
]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The example, run as its README says; where it wrote, and what it said."""
    folder = tmp_path_factory.mktemp("service")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "OTEL_"))}
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "service" / "load.py")],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "service-out", done.stdout


@pytest.fixture(scope="module")
def sessions(played: tuple[Path, str]) -> list[Session]:
    """All that was converted."""
    return [session for file in (played[0] / "sessions").glob("*.json") for session in load_sessions(file)]


@pytest.fixture(scope="module")
def talks(sessions: list[Session]) -> dict[int, Session]:
    """The session of each reader's conversation."""
    found = [one for one in sessions if one.key.kind == "conversation"]
    return {int(session.key.value.removeprefix("c-")): session for session in found}


def said(session: Session, numbers: list[int]) -> str:
    """The text of messages."""
    return " ".join(str(part.get("content")) for number in numbers for part in session.messages[number].parts)


def requests_of(session: Session) -> list[Run]:
    """The runs of an agent."""
    return [run for run in session.roots() if not run.implicit]


def port_of(run: Run) -> str:
    """Which process it ran in."""
    assert run.entrypoint is not None
    words = run.entrypoint.argv
    assert words is not None
    return words[words.index("--port") + 1]


def test_one_conversation_is_one_session_and_what_processes_do_at_their_start_is_apart(
    sessions: list[Session], talks: dict[int, Session]
) -> None:
    assert sorted(talks) == list(range(40))
    others = [one for one in sessions if one.key.kind != "conversation"]
    assert len(sessions) == 40 + len(others)
    kinds = [[(run.implicit, call.operation) for run in one.runs for call in run.model_calls()] for one in others]
    assert kinds == [[(True, Operation.EMBEDDINGS)]] * 2


def test_the_requests_of_a_conversation_are_in_order_and_of_both_processes(talks: dict[int, Session]) -> None:
    for number, session in talks.items():
        runs = requests_of(session)
        assert [said(session, run.input) for run in runs] == [one.format(number) for one in QUESTIONS]
        assert [said(session, run.output) for run in runs] == [one.format(number) for one in ANSWERS]
        first, second, third = (port_of(run) for run in runs)
        assert first == third != second
        assert session.source["service_name"] == "help-desk"
    assert len({port_of(run) for session in talks.values() for run in session.roots()}) == 2


def test_no_conversation_holds_text_of_another(talks: dict[int, Session]) -> None:
    for number, session in talks.items():
        texts = " ".join(message.model_dump_json() for message in session.messages)
        assert {other for other in talks if f"reader {other}." in texts or f"reader {other}," in texts} == {number}


def test_what_was_retrieved_and_embedded_stands_where_it_happened(talks: dict[int, Session]) -> None:
    for session in talks.values():
        for run, question in zip(requests_of(session), (0, 1, 2), strict=True):
            found = [call for call in run.tool_calls() if call.kind is ToolKind.RETRIEVER]
            asked = {"query": said(session, run.input), "search_type": "similarity", "search_kwargs": {"k": 2}}
            assert [call.arguments for call in found] == [asked] * (2 if question == 1 else 1)
            assert all(isinstance(call.result, list) and len(call.result) == 2 for call in found)
            inside = [
                one
                for call in found
                for one in session.runs
                if one.parent is not None and one.parent.run == run.id and one.parent.tool_call == call.id
            ]
            embedded = [call for one in inside for call in one.model_calls()]
            assert [call.operation for call in embedded] == [Operation.EMBEDDINGS] * len(found)
            chats = [call.operation for call in run.model_calls()]
            assert chats == [Operation.CHAT] * (2 if question == 1 else 1)
            tools = [call.name for call in run.tool_calls() if call.kind is ToolKind.FUNCTION]
            assert tools == (["find_order"] if question == 1 else [])


def test_a_request_passes_offline_and_a_changed_retriever_is_the_reason_of_its_failing(
    played: tuple[Path, str],
) -> None:
    passed = played[1].index("PASS: 5 calls answered from the recording")
    failed = played[1].index(
        "FAIL: tool call 'VectorStoreRetriever' of root diverged at /search_kwargs/k: recorded 2, now 1"
    )
    assert passed < failed
