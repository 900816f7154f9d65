"""What others lost is known by the markers that they left; words that only look like one are words."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from spanreel.loss_markers import find_loss, glance, note_losses
from spanreel.memory import known
from spanreel.model import Answer, Fidelity, Operation, Request
from spanreel.records import ModelRecord, RunRecord, ToolRecord, TurnRecord

TRUNCATED = [
    "<truncated>",
    "[MaxDepth]",
    "[Circular]",
    "[Circular Reference]",
    "[Function]",
    "[Symbol(x)]",
    "[Buffer length=120]",
    "[ArrayBuffer byteLength=4]",
    "<not serializable>",
    "[object Object]",
    "a long text that was cut…[truncated]",
    "a long text that was cut...[truncated]",
    "a long text that was cut…[truncated 120 bytes]",
    '{"messages": "and cut JSON ...[truncated]"}',
    "body [TRUNCATED - Content exceeds 60KB limit]",
    "…[12 more items]",
    "[…12 more items]",
    "text <truncated 500 characters>",
    {"a": {"b": ["whole", "<truncated>"]}},
    {"__truncated": "3 keys omitted", "a": 1},
    {"_kitaru_truncated": {"reason": "depth"}},
    {"__kitaru_capture__": "too_large"},
    ["a", "…[3 more items]"],
    '{"text": "[MaxDepth]"}',
    json.dumps({"inner": json.dumps(["[Circular]"])}),
    {"image": {"format": "png", "source": {"bytes": "<replaced>"}}},
    "@@@langfuseMedia:type=image/jpeg|id=cc48838a-3da8-4ca4-a007-2cf8df930e69|source=base64_data_uri@@@",
    "mlflow-attachment://0b1f?content_type=image%2Fpng&trace_id=tr-1" + "0" * 160,
    "data:image/png;base64,[base64_data truncated: 12.50KB]",
    "<Upload handling failed for LangfuseMedia of type image/png>",
]
REDACTED = [
    "__REDACTED__",
    "[REDACTED]",
    "[redacted]",
    "[Scrubbed due to 'session']",
    "my card is [REDACTED_CREDIT_CARD], bill it",
    "<REDACTED>",
    "***REDACTED***",
    "[EMAIL_REDACTED]",
    "[REDACTED:email]",
    "[Filtered]",
    "<redacted due to mask function error>",
    "*****",
    "[EMAIL_1]",
    "abc…xyz",
    {"password": "[REDACTED]", "user": "u"},
    '{"token": "[redacted]"}',
    {"[REDACTED]": 1},
]
WHOLE = [
    None,
    "",
    0,
    True,
    b"[REDACTED]",
    "the report was truncated by the editor",
    "print <replaced> where it was",
    "links begin with mlflow-attachment:// and an id",
    "say [redacted] in place of names, then ... go on",
    "see the list [1] ... and more items below",
    "He said… [laughs] and left.",
    "[a-z]+<b>bold</b>",
    "*** important ***",
    "__init__",
    ["[1, 2]", {"truncated": False}],
    {"__truncated": False},
    '{"a": "[1]"}',
    "data:image/png;base64,[binary image/png 68 bytes sha256:" + "0" * 64 + "]",
    "[redacted:email:0a1b2c3d:" + "0" * 32 + "]",
    "mail [redacted:email:0a1b2c3d:" + "0" * 32 + "] to …",
    {"type": "redacted_thinking", "data": "opaque"},
]


@pytest.mark.parametrize("value", TRUNCATED, ids=str)
def test_what_was_cut_or_never_written_is_truncated(value: Any) -> None:
    assert find_loss(value) is Fidelity.TRUNCATED


@pytest.mark.parametrize("value", REDACTED, ids=str)
def test_what_was_redacted_by_another_is_redacted(value: Any) -> None:
    assert find_loss(value) is Fidelity.REDACTED


@pytest.mark.parametrize("value", WHOLE, ids=str)
def test_words_are_words(value: Any) -> None:
    assert find_loss(value) is None


def test_the_gravest_loss_counts_and_depth_has_an_end() -> None:
    assert find_loss(["[REDACTED]", "<truncated>", "[REDACTED]"]) is Fidelity.TRUNCATED
    deep: Any = "fine"
    for _ in range(100):
        deep = [deep]
    assert find_loss(deep) is Fidelity.TRUNCATED


def test_every_field_of_a_record_is_looked_at() -> None:
    lost = [{"role": "user", "parts": [{"type": "text", "content": "<truncated>"}]}]
    tool: Any = ToolRecord(name="t", arguments={"key": "[REDACTED]"}, result="<not serializable>")
    note: Any = note_losses
    assert note(tool).fidelity == {"arguments": Fidelity.REDACTED, "result": Fidelity.TRUNCATED}
    model = ModelRecord(
        request=Request(Operation.CHAT, "m", messages=tuple(lost), instructions=({"content": "__REDACTED__"},)),
        answer=Answer(messages=tuple(lost)),
        fidelity={"output": Fidelity.ABSENT},
    )
    assert note(model).fidelity == {
        "input": Fidelity.TRUNCATED,
        "instructions": Fidelity.REDACTED,
        "output": Fidelity.ABSENT,
    }
    run = RunRecord(run_id="r", path="root", input=tuple(lost), arguments={"a": "[Circular]"})
    assert note(run).fidelity == {"input": Fidelity.TRUNCATED, "arguments": Fidelity.TRUNCATED}
    for whole in (ToolRecord(name="t", arguments={"a": 1}), TurnRecord("r", 0)):
        assert note(whole) is whole


def test_the_search_is_linear_in_the_text() -> None:
    for piece in (
        "[REDACTED ",
        "REDACTED ",
        "[Scrubbed due to ",
        "<redacted due to ",
        "…[truncated",
        "***REDACTED",
        "A_",
    ):
        times = []
        for count in (2000, 20_000):
            start = time.thread_time()
            find_loss("[" + piece * count)
            times.append(time.thread_time() - start)
        assert times[1] < max(times[0] * 60, 0.5), piece


@pytest.mark.parametrize(("text", "state"), [("<truncated>", Fidelity.TRUNCATED), ("all there", None)])
def test_a_message_that_many_calls_share_is_marked_in_each(text: str, state: Fidelity | None) -> None:
    note: Any = note_losses
    shared = known({"role": "user", "parts": [{"type": "text", "content": text}]})
    for _ in range(2):
        record = note(ModelRecord(request=Request(Operation.CHAT, "m", messages=(shared,))))
        assert record.fidelity == ({} if state is None else {"input": state})


@pytest.mark.parametrize("text", ['{"content": "<truncated>"}', '{"content": "\\u003ctruncated\\u003e"}'])
def test_a_glance_at_the_text_that_an_object_was_read_from_passes_over_no_marker(text: str) -> None:
    note: Any = note_losses
    read = known(json.loads(text))
    glance(read, text)
    assert note(ToolRecord(name="t", result=read)).fidelity == {"result": Fidelity.TRUNCATED}
