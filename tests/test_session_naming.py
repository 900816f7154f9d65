"""Under which names vendors and hand-written spans tell the session's id, its user and its name."""

from __future__ import annotations

from typing import Any

import pytest

from otlp_lines import GENAI, TRACE, agent, session, sessions


@pytest.mark.parametrize(
    "key",
    [
        "session.id",
        "gen_ai.session.id",
        "langfuse.session.id",
        "langfuse.observation.metadata.langfuse_session_id",
        "langfuse.trace.metadata.langfuse_session_id",
        "lmnr.association.properties.session_id",
        "traceloop.association.properties.thread_id",
        "spring.ai.chat.client.conversation.id",
        "wandb.thread_id",
        "ag.session.id",
        "opik.metadata.thread_id",
        "session_id",
        "thread_id",
        "conversation_id",
    ],
)
def test_a_session_is_known_by_its_vendors_name_for_it(key: str) -> None:
    """langfuse/langfuse-docs#3415, comet-ml/opik#3441, baranwang/stremio-addon-douban#71."""
    assert session(agent(1, "clerk", also={key: "desk-7"}), scope=GENAI).key.value == "desk-7"


@pytest.mark.parametrize(
    "key",
    [
        "user.id",
        "langfuse.user.id",
        "langfuse.trace.metadata.langfuse_user_id",
        "lmnr.association.properties.user_id",
        "gen_ai.user.id",
        "enduser.id",
        "user_id",
    ],
)
@pytest.mark.parametrize(("written", "user"), [("ada", "ada"), (42, "42"), ('"ada"', "ada")])
def test_a_user_is_known_by_the_vendors_name_for_one(key: str, written: Any, user: str) -> None:
    """langfuse/langfuse-docs#1487; mlflow/mlflow#23642, where each id came with quotation marks around it."""
    assert session(agent(1, "clerk", also={key: written}), scope=GENAI).user_id == user


def test_an_id_written_as_json_is_the_same_as_without_its_quotation_marks() -> None:
    written = ("desk-7", '"desk-7"')
    spans = [agent(n, "clerk", trace=f"{n:032x}", also={"session.id": one}) for n, one in enumerate(written, 1)]
    assert [one.key.value for one in sessions(*spans, scope=GENAI)] == ["desk-7"]


def test_a_number_of_a_thread_is_no_session() -> None:
    assert session(agent(1, "clerk", also={"thread_id": 139_872}), scope=GENAI).key.value == TRACE


def test_a_vendors_own_name_is_believed_before_a_bare_one() -> None:
    also = {"session_id": "http-1", "langfuse.session.id": "desk-7"}
    assert session(agent(1, "clerk", also=also), scope=GENAI).key.value == "desk-7"


def test_langfuses_name_of_a_trace_is_the_sessions() -> None:
    assert session(agent(1, "clerk", also={"langfuse.trace.name": "refund"}), scope=GENAI).name == "refund"
