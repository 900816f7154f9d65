"""Golden sessions: what a dump of `tests/golden` converts to, as agreed; `SPANREEL_GOLDEN=write` writes it anew."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from spanreel.session import Session
from spanreel.session_files import write_session
from spanreel_collector.conversion.convert import convert_files

GOLDEN = Path(__file__).parent / "golden"


def document(session: Session) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(write_session(session))
    return read


def converted_and_agreed(dump: str, name: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The sessions of a dump, and those that were agreed on."""
    conversion = convert_files([str(GOLDEN / dump)])
    assert conversion.faults == ()
    found = [document(one) for one in conversion.sessions]
    agreed = GOLDEN / f"{name}.sessions.json"
    if os.environ.get("SPANREEL_GOLDEN") == "write":
        agreed.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return found, json.loads(agreed.read_text(encoding="utf-8"))
