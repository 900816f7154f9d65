"""Whatever JSON comes: nothing but ValueError is raised, and nothing is lost."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exchange_cases import events_of, pieces_of
from spanreel.exchange import ModelProtocol
from spanreel.model import Answer, Operation, Usage
from spanreel.protocols import PROTOCOLS, is_exchange, peek_model
from spanreel.protocols.residue import same

pytestmark = pytest.mark.slow

# Names that mean something to a protocol, so that what is generated gets past its first line.
NAMES = """
    role content type text refusal tool_calls function function_call name arguments id index delta choices message
    error messages input output tools model usage prompt_tokens input_tokens finish_reason logprobs stop stream
    reasoning_content reasoning image_url url input_audio data format file file_id file_data custom call_id status item
    part response output_index content_index summary_index item_id sequence_number summary annotations
    encrypted_content results functions tool_call_id audio incomplete_details reason code object created instructions
    conversation x_groq reasoning_details action detail provider effort file_url parameters outputs max_tokens
    system thinking signature source media_type tool_use_id input_schema is_error cache_control citations citation
    content_block partial_json stop_reason stop_sequence output_config thread previous_message_id encrypted_content
    cache_read_input_tokens cache_creation_input_tokens output_tokens output_tokens_details thinking_tokens
    $ref $absent $choice $form $forms $item $arguments $event $raw cut
""".split()  # noqa: SIM905  a list of a hundred strings reads worse
WORDS = """
    user assistant system developer tool function text image_url input_audio file refusal stop tool_calls length custom
    message reasoning function_call custom_tool_call computer_call web_search_call file_search_call mcp_call compaction
    function_call_output local_shell_call_output mcp_approval_response summary_text reasoning_text output_text
    input_text input_image input_file completed incomplete failed in_progress max_output_tokens hello {"a":1} [] null
    "x" https://x.test/a.png data:image/png;base64,AAAA response.created response.completed response.failed error other
    response.output_item.added response.output_item.done response.output_text.delta response.output_text.done
    response.content_part.added response.function_call_arguments.delta response.reasoning_summary_text.delta
    thinking redacted_thinking tool_use tool_result server_tool_use mcp_tool_use web_search_tool_result image document
    base64 url compaction end_turn stop_sequence pause_turn message_start message_delta message_stop ping
    content_block_start content_block_delta content_block_stop text_delta thinking_delta signature_delta
    input_json_delta citations_delta compaction_delta
""".split()  # noqa: SIM905  as above


def names_but(*taken: str) -> dict[str, st.SearchStrategy[Any]]:
    """Values for all names but those."""
    return {name: values for name in NAMES if name not in taken}


texts = st.sampled_from([*WORDS, "", "{", '{"a": 1}', "two words"])
scalars = st.none() | st.booleans() | st.integers(-1, 3) | st.floats(0, 2) | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=20,
)
objects = st.dictionaries(st.sampled_from(NAMES), values, max_size=8)

# Objects that nearly are what each protocol expects.
messages = st.fixed_dictionaries({"role": texts, "content": values}, optional=names_but("role", "content"))
items = st.fixed_dictionaries({"type": texts}, optional=names_but("type"))
requests = st.fixed_dictionaries(
    {"messages": st.lists(messages, max_size=3), "input": texts | st.lists(items | messages, max_size=3)},
    optional=names_but("messages", "input"),
)
choices = st.fixed_dictionaries({"message": messages}, optional={"finish_reason": texts})
responses = st.fixed_dictionaries(
    {
        "choices": st.lists(choices, max_size=3),
        "output": st.lists(items, max_size=3),
        "content": st.lists(items, max_size=3) | texts,
    },
    optional=names_but("choices", "output", "content"),
)
pieces = st.fixed_dictionaries(
    {"delta": objects, "index": st.integers(0, 1)}, optional={"logprobs": values, "text": texts}
)
chunks = st.fixed_dictionaries({"choices": st.lists(pieces, max_size=3)}, optional=names_but("choices", "type"))
BLOCKS = ["text", "thinking", "redacted_thinking", "tool_use", "mcp_tool_use", "compaction", "web_search_tool_result"]
DELTAS = ["text_delta", "thinking_delta", "signature_delta", "input_json_delta", "citations_delta", "compaction_delta"]
blocks = st.fixed_dictionaries({"type": st.sampled_from(BLOCKS) | texts}, optional=names_but("type"))
deltas = st.fixed_dictionaries(
    {"type": st.sampled_from(DELTAS), "text": texts, "thinking": texts, "partial_json": texts, "signature": texts},
    optional={"citation": values, "content": values, "encrypted_content": values},
)
block_events = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            ["content_block_start", "content_block_delta", "message_delta", "message_start", "error"]
        )
    },
    optional={
        "index": st.integers(-1, 1),
        "content_block": blocks | values,
        "delta": deltas | objects,
        "message": objects,
        "usage": objects,
        "error": values,
    },
)
events = st.fixed_dictionaries(
    {"type": texts, "output_index": st.integers(-1, 2), "delta": texts, "content_index": st.integers(-1, 1)},
    optional=names_but("type", "output_index", "delta", "content_index"),
)

every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.NAME)
often = settings(
    max_examples=int(os.environ.get("SPANREEL_EXAMPLES", "25")), deadline=None, suppress_health_check=list(HealthCheck)
)


@every_protocol
@often
@given(body=objects | requests | values)
def test_a_request_is_read_without_loss_or_not_at_all(protocol: ModelProtocol, body: Any) -> None:
    operation = next(iter(protocol.PATHS.values()))
    try:
        request = protocol.read_request(json.dumps(body).encode(), operation)
    except ValueError:
        return
    written = protocol.write_request(request)
    assert same(json.loads(written), body)
    assert protocol.read_request(written, operation) == request


@every_protocol
@often
@given(body=objects | responses | values, status=st.sampled_from([200, 429, 504]))
def test_an_answer_is_read_without_loss_or_not_at_all(protocol: ModelProtocol, body: Any, status: int) -> None:
    try:
        answer = protocol.read_response(json.dumps(body).encode(), status)
    except ValueError:
        assert not isinstance(body, dict)
        return
    written = protocol.write_response(answer)
    assert same(json.loads(written), body)
    assert protocol.read_response(written, status) == answer
    protocol.split(answer)


@every_protocol
@often
@given(
    bodies=st.lists(objects | chunks | events | block_events | values, min_size=1, max_size=6),
    named=st.booleans(),
    cut=st.integers(0, 9),
)
def test_a_stream_is_joined_without_loss_or_not_at_all(
    protocol: ModelProtocol, bodies: list[Any], named: bool, cut: int
) -> None:
    stream = b"".join(_event(body, named) for body in bodies)
    stream = stream[: len(stream) - cut]
    try:
        answer = protocol.join(pieces_of(stream))
    except ValueError:
        return
    again = protocol.split(answer)
    assert protocol.join(again) == answer
    if not cut:
        assert same(events_of(b"".join(piece for _, piece in again)), events_of(stream))


@every_protocol
@often
@given(body=st.binary(max_size=200), status=st.sampled_from([200, 400]))
def test_bytes_that_are_nothing_raise_value_errors_only(protocol: ModelProtocol, body: bytes, status: int) -> None:
    operation = next(iter(protocol.PATHS.values()))
    for read in (
        lambda: protocol.read_request(body, operation),
        lambda: protocol.join([(0.0, body)]),
        lambda: protocol.join([]),
    ):
        try:
            read()
        except ValueError:
            pass
    try:
        answer = protocol.read_response(body, status)
    except ValueError:
        assert status == 200
    else:
        assert status == 200 or protocol.write_response(answer) == body


@often
@given(body=objects, spaces=st.booleans(), last=st.booleans())
def test_the_model_is_that_of_the_top_level(body: dict[str, Any], spaces: bool, last: bool) -> None:
    without = {key: value for key, value in body.items() if key != "model"}
    whole = {**without, "model": "m"} if last else {"model": "m", **without}
    text = json.dumps(whole) if spaces else json.dumps(whole, separators=(",", ":"))
    assert peek_model(text.encode()) == "m"
    assert peek_model(json.dumps(without).encode()) is None
    is_exchange(Operation.CHAT, text.encode())


def _event(body: Any, named: bool) -> bytes:
    name = body.get("type") if isinstance(body, dict) else None
    head = f"event: {name}\n" if named and isinstance(name, str) else ""
    return f"{head}data: {json.dumps(body)}\n\n".encode()


@pytest.mark.parametrize("before", ["", "event: message\n", ": ping\nid: 7\n"])
def test_what_stands_around_the_data_of_an_event_changes_nothing_and_is_written_again(before: str) -> None:
    """Gateways leave names out, invent some, and add ids, retry advice and comments."""
    answer = Answer(
        response_id="r",
        model="m",
        messages=({"role": "assistant", "parts": [{"type": "text", "content": "Hello."}], "finish_reason": "stop"},),
        usage=Usage(3, 2),
    )
    for protocol in PROTOCOLS:
        if Operation.CHAT not in protocol.PATHS.values() or "amazon.eventstream" in protocol.STREAM_TYPE:
            continue  # frames of bytes have nothing around their events
        body = b"".join(piece for _, piece in protocol.split(answer))
        lines = [line for line in body.decode().split("\n") if not line.startswith("event:")]
        framed = "\n".join(f"{before}{line}" if line.startswith("data:") else line for line in lines).encode()
        joined = protocol.join([(1.0, framed)])
        assert joined.messages[0]["parts"][0]["content"] == "Hello.", protocol.NAME
        assert joined.complete
        assert joined.usage == protocol.join([(1.0, body)]).usage
        again = b"".join(piece for _, piece in protocol.split(joined))
        around = [[line for line in text.split(b"\n") if not line.startswith(b"data:")] for text in (again, framed)]
        assert around[0] == around[1]
        assert protocol.join([(1.0, again)]) == joined
