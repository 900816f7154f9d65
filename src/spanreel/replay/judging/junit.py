"""Replays as JUnit XML, which CI shows as tests: one case a session, the same bytes for the same verdicts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

from spanreel.errors import ReplayRefused
from spanreel.model import Json
from spanreel.replay.judging.verdict import Verdict

SUITE: Final = "spanreel replay"
_ERRORS: Final = (str(Verdict.NOT_INTERCEPTED), "REFUSED")
"""Verdicts that say nothing about the agent."""
_NO_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(reports: Sequence[tuple[str, dict[str, Json]]], path: str | Path) -> None:
    """Write reports, each with its session's name, as one suite.

    Raises:
        ReplayRefused: the file cannot be written.
    """
    try:
        Path(path).write_text(to_junit(reports), encoding="utf-8")
    except OSError as error:
        raise ReplayRefused(f"cannot write JUnit's report to {str(path)!r}: {error.strerror or error}") from error


def to_junit(reports: Sequence[tuple[str, dict[str, Json]]]) -> str:
    """The suite as text."""
    verdicts = [str(report["verdict"]) for _, report in reports]
    errors = sum(verdict in _ERRORS for verdict in verdicts)
    failures = sum(verdict not in (*_ERRORS, str(Verdict.PASS)) for verdict in verdicts)
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<testsuite name="{SUITE}" tests="{len(reports)}" failures="{failures}" errors="{errors}" skipped="0">',
    ]
    for name, report in reports:
        lines += _case(name, report)
    return "\n".join([*lines, "</testsuite>", ""])


def _case(name: str, report: dict[str, Json]) -> list[str]:
    verdict, told = str(report["verdict"]), report.get("reasons")
    head = f'  <testcase classname="spanreel.replay" name={_attribute(name)}'
    if verdict == Verdict.PASS:
        return [f"{head}/>"]
    reasons: list[Any] = list(told) if isinstance(told, (list, tuple)) else []
    element = "error" if verdict in _ERRORS else "failure"
    first = _attribute(str(reasons[0]) if reasons else verdict)
    text = escape(_NO_XML.sub("\ufffd", "\n".join(map(str, reasons))))
    said = f"    <{element} type={_attribute(verdict)} message={first}>{text}</{element}>"
    return [f"{head}>", said, "  </testcase>"]


def _attribute(text: str) -> str:
    return quoteattr(_NO_XML.sub("\ufffd", text), {"\n": "&#10;", "\t": "&#9;"})
