"""Results of tools that a recording knows from the model's next request alone, as answers, where somebody vouches.

By itself such a recording is refused: nothing in it shows that the tools cross a point of ours, and where they do not,
they would run for real.
"""

from __future__ import annotations

from spanreel.model import Fidelity, Status, ToolKind
from spanreel.replay.changing.changes import Changes
from spanreel.session import Session, ToolCall, was_made_up

RUN_BY_US = (ToolKind.FUNCTION, ToolKind.MCP, ToolKind.RETRIEVER)


def ran_unseen(call: ToolCall) -> bool:
    """Whether a tool ran without crossing a boundary, as its result in the next request tells."""
    if call.executed or call.kind not in RUN_BY_US or call.status not in (Status.OK, Status.ERROR):
        return False
    # One that no recorded model call asked for is history that the recording began with.
    return call.requested_by is not None and call.fidelity.get("result") is not Fidelity.ABSENT


def with_recovered(session: Session, changes: Changes) -> Session:
    """The session, such calls as if they had been recorded where the changes say so; itself where not."""
    unseen = [run.id for run in session.runs if any(ran_unseen(call) for call in run.tool_calls())]
    if not (changes.recovered and unseen):
        return session
    vouched = session.model_copy(deep=True)
    for run in vouched.runs:
        for call in run.tool_calls():
            if ran_unseen(call) and not was_made_up(vouched, run, call):
                call.executed = True
                call.arguments = call.arguments if call.arguments is not None else call.requested
    return vouched
