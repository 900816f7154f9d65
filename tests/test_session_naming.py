"""Under which names vendors and hand-written spans tell the session's id, its user and its name."""

from __future__ import annotations

from typing import Any

import pytest

from otlp_lines import (
    GENAI,
    TRACE,
    Span,
    agent,
    attribute_list,
    chat,
    converted,
    log,
    request,
    said,
    session,
    sessions,
    span,
)
from spanreel_collector.conversion.packing import pack
from spanreel_collector.otlp import read_request

HI = [said("user", "Hi")]


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


# -- whole processes -------------------------------------------------------------------------------------------------


def of_process(*spans: Span, **resource: Any) -> dict[str, Any]:
    """A request of a process whose resource says more of it."""
    made = request(*spans, scope=GENAI)
    told = {key.replace("__", "."): value for key, value in resource.items()}
    made["resourceSpans"][0]["resource"]["attributes"] += attribute_list(told)
    return made


def test_a_process_that_is_one_session_says_so_on_its_resource() -> None:
    first = of_process(chat(1, HI, None), session__id="s-1", user__id="ann")
    second = of_process(chat(2, HI, None, trace="b" * 32, start=50), session__id="s-1", user__id="ann")
    (one,) = converted(first, second).sessions
    assert (one.key.kind, one.key.value, one.user_id, len(one.runs)) == ("conversation", "s-1", "ann", 2)


def test_what_spans_say_of_their_session_counts_before_what_the_resource_says() -> None:
    also = {"gen_ai.conversation.id": "c", "user.id": "bob"}
    spans = agent(1, "clerk", also=also), chat(2, HI, None, 1)
    (one,) = converted(of_process(*spans, session__id="s-1", user__id="ann")).sessions
    assert (one.key.value, one.user_id) == ("c", "bob")


@pytest.mark.parametrize("told", ["", "unknown", "[REDACTED]", "resp_1"])
def test_what_is_no_id_is_none_on_a_resource_either(told: str) -> None:
    (one,) = converted(of_process(chat(1, HI, None), session__id=told)).sessions
    assert one.key.kind == "trace"


def test_who_is_named_on_a_resource_is_found_again_in_spans_and_in_logs() -> None:
    logs = log("app.said", {}, 1)
    logs["resourceLogs"][0]["resource"] = {"attributes": attribute_list({"user.id": "ann"})}
    for document in (of_process(span(1, "GET /", {}), user__id="ann"), logs):
        (segment,) = pack(read_request(document, "test")).segments
        assert segment.users == {"ann"}
