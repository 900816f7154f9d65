"""Which calls belong to which run, where no agent stands around them."""

from __future__ import annotations

from otlp_lines import GENAI, agent, chat, said, session, tool


def test_a_run_inside_a_tool_call_hangs_there_though_no_agent_is_around_the_call() -> None:
    one = session(
        chat(1, [said("user", "Hi")], None),
        tool(2, "ask", {}, "yes", seconds=9),
        agent(3, "cook", 2, seconds=5),
        chat(4, [said("user", "?")], said("assistant", "yes"), 3),
        scope=GENAI,
    )
    outer, cook = one.runs
    (ask,) = outer.tool_calls()
    assert (outer.implicit, ask.run, cook.parent and cook.parent.tool_call) == (True, cook.id, ask.id)
    assert one.roots() == [outer]
