"""What an offline replay of a session will do, call by call, as text for people."""

from __future__ import annotations

from spanreel.session import Run, Session
from spanreel_collector.sessions.eligibility import forecast, judge_run
from spanreel_collector.show.session import printable


def show_forecast(session: Session, only: Run | None = None) -> str:
    """Each root run (or the one that is asked for) with whether it can be replayed, and what becomes of each call."""
    lines = [f"session {session.id}"]
    wanted = [only] if only is not None else session.roots()
    for run in wanted:
        eligibility = judge_run(session, run)
        state = "can be replayed" if eligibility.eligible else "cannot be replayed exactly"
        lines.append(f"  run {run.id} {run.path}: {state}")
        for reason in eligibility.reasons:
            remedy = f"; {reason.remedy}" if reason.remedy else ""
            lines.append(f"    {reason.place}: {reason.reason}{remedy}")
    lines.append("calls")
    lines += [f"  {one.outcome:<8}  {one.name}  {one.place}" for one in forecast(session, only)]
    return "\n".join(printable(line) for line in lines)
