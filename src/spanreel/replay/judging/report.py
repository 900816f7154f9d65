"""A replay's report, written: JSON with the same bytes for the same replay, and a few lines for people."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

from spanreel.model import Json
from spanreel.replay.judging.tallies import Count
from spanreel.replay.judging.verdict import Report

SHOWN = 12
"""Reasons and notes that the lines for people hold of each kind; JSON has them all."""


def to_json(report: Report) -> dict[str, Json]:
    """The report as a JSON value, without times or generated ids."""
    return {**dataclasses.asdict(report), "verdict": str(report.verdict), "exit_code": report.exit_code}


def write_json(report: Report, path: str | Path) -> None:
    """Write the report as JSON, whole or not at all."""
    write_value(to_json(report), path)


def write_value(value: Json, path: str | Path) -> None:
    """Write a JSON value, the same bytes for the same value, whole or not at all."""
    file = Path(path)
    part = file.with_name(f".{file.name}.{os.getpid()}")
    part.write_bytes(written(value))
    part.replace(file)


def written(value: Json) -> bytes:
    """A JSON value as the bytes of a file."""
    return (json.dumps(value, indent=2, sort_keys=True) + "\n").encode()


def to_text(report: Report) -> str:
    """The report for people: the verdict and why, then the counts."""
    calls = report.model_calls.matched + report.tool_calls.matched
    live = report.model_calls.live + report.tool_calls.live
    answered = f"{calls} call{'s' * (calls != 1)} answered from the recording" + (f", {live} live" if live else "")
    headline = report.reasons[0] if report.reasons else answered
    lines = [f"{report.verdict}: {headline}"]
    lines += _listed("also", report.reasons[1:])
    lines.append(f"  session   {report.session}" + (f"#{report.run}" if report.run else ""))
    lines.append(f"  models    {_counted(report.model_calls)}")
    lines.append(f"  tools     {_counted(report.tool_calls)}{_tiers(report)}")
    lines += [f"  outcome   {run.path} {_agent(run.agent)}{run.outcome}" for run in report.runs]
    recorded, served = report.tokens["recorded"], report.tokens["served"]
    if any(recorded.values()):
        lines.append(
            f"  tokens    recorded {recorded['input_tokens']} in, {recorded['output_tokens']} out; "
            f"served {served['input_tokens']} in, {served['output_tokens']} out{_live(report)}"
        )
    if report.cost is not None:
        said = [f"{name} {usd:+.6f}" if name == "delta" else f"{name} {usd:.6f}" for name, usd in report.cost.items()]
        lines.append(f"  cost      {', '.join(said)} US dollars")
    if report.uncompared:
        lines.append(f"  unseen    not whole in the recording, so not compared: {', '.join(report.uncompared)}")
    if report.lenient:
        named = ", ".join(f"{name} ({number})" for name, number in report.lenient.items())
        lines.append(f"  lenient   recorders write these each in their own way, so they may differ: {named}")
    lines += _listed("live", report.live_tools)
    lines += _listed("changed", report.changed)
    lines += _listed("redacted", [f"{name} was served with a redacted result" for name in report.redacted])
    lines += _listed("note", report.notes)
    return "\n".join(lines)


def _counted(count: Count) -> str:
    words = [f"{count.matched} of {count.recorded} matched"]
    for name in ("missed", "unused", "not_reached", "covered", "live", "replaced"):
        if number := getattr(count, name):
            words.append(f"{number} {name.replace('_', ' ')}")
    return ", ".join(words)


def _live(report: Report) -> str:
    live = report.tokens["live"]
    if not report.model_calls.live:
        return ""
    more = report.tokens["delta"]
    return (
        f"; live {live['input_tokens']} in, {live['output_tokens']} out "
        f"({more['input_tokens']:+} in, {more['output_tokens']:+} out)"
    )


def _tiers(report: Report) -> str:
    by_id = report.tiers.get("call_id", 0)
    return f" ({by_id} by call id)" if by_id else ""


def _agent(name: str | None) -> str:
    return f"({name}) " if name else ""


def _listed(word: str, sentences: tuple[str, ...] | list[str]) -> list[str]:
    lines = [f"  {word:<9} {sentence}" for sentence in sentences[:SHOWN]]
    if len(sentences) > SHOWN:
        lines.append(f"  {word:<9} and {len(sentences) - SHOWN} more")
    return lines
