"""Policies of the user's own: where rules hold, and the forms of what they find."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanreel import conventions as names
from spanreel import json_text
from spanreel.detectors import has_library
from spanreel.digest import digest, make_key
from spanreel.errors import SettingsError
from spanreel.keyring import NoKey, OneKey
from spanreel.memory import Memory
from spanreel.policy import BY_PLAN, Policy
from spanreel.policy_labels import KEYLESS, join_labels
from spanreel.presets import preset
from spanreel.redaction import Form, Rule, header, make_policy, redact_attributes, redact_json, redact_text

KEY = make_key(b"a key of the tests, and of nobody else")
JANE = "jane.doe" + "@example.org"


def policy(*rules: Rule, extends: str | None = None) -> Policy:
    return make_policy("test/1", rules, extends=extends, digests=OneKey(KEY))


def put(field_class: str, leaf: Any) -> str:
    return digest(KEY, "", field_class, leaf)


def tool_span(name: str, arguments: Any, result: Any = None) -> dict[str, Any]:
    return {
        names.OPERATION: "execute_tool",
        names.TOOL_NAME: name,
        names.TOOL_CALL_ARGUMENTS: json_text.encode(arguments),
        names.TOOL_CALL_RESULT: json_text.encode(result),
    }


# -- keys ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["customer_name", "customerName", "Customer-Name", "CUSTOMER_NAME", "app.customer_name", "customer name"]
)
def test_a_key_is_known_in_any_spelling(name: str) -> None:
    one = policy(Rule(Form.MASK, keys=("customer_name",)))
    assert redact_json({name: "Ann", "name": "Bob"}, one)[0] == {name: "[redacted]", "name": "Bob"}
    assert redact_attributes({name: "Ann"}, one).attributes == {name: "[redacted]"}
    assert redact_json(f'{{"a": {{"{name}": "Ann"}}}}', one)[0] == f'{{"a":{{"{name}":"[redacted]"}}}}'


@pytest.mark.parametrize(("pattern", "known"), [("*_ssn", True), ("ssn", False), ("user_*", True), ("user?ssn", True)])
def test_keys_have_wildcards(pattern: str, known: bool) -> None:
    redacted = redact_json({"user_ssn": "1"}, policy(Rule(Form.MASK, keys=(pattern,))))[0]
    assert redacted == {"user_ssn": "[redacted]" if known else "1"}


def test_what_stands_under_a_key_goes_whole_and_its_structure_stays() -> None:
    customer = {"name": "Ann", "age": 41, "vip": True, "left": None, "tags": ["a", {"b": 1.5}], "": ""}
    masked: dict[str, Any] = {"name": "[redacted]", "age": "[redacted]", "vip": "[redacted]", "left": None}
    masked |= {"tags": ["[redacted]", {"b": "[redacted]"}], "": ""}
    one = policy(Rule(Form.MASK, keys=("customer",)))
    assert redact_json({"customer": customer}, one)[0] == {"customer": masked}
    assert redact_json({"customer": json.dumps(customer)}, one)[0] == {"customer": json_text.encode(masked)}
    schema = {"properties": {"customer": {"type": "string", "description": "who", "default": "Ann"}}}
    spared = {"properties": {"customer": {"type": "string", "description": "who", "default": "[redacted]"}}}
    assert redact_json(schema, one)[0] == spared


# -- forms -----------------------------------------------------------------------------------------------------------


def test_what_is_dropped_leaves_no_trace() -> None:
    one = policy(Rule(Form.DROP, keys=("note",)), Rule(Form.DROP, detectors=("e-mail",)))
    value = {"note": "x", "notes": [{"note": 1}, {"a": f"to {JANE}, today"}], "json": '{"note": "x", "b": 1}'}
    assert redact_json(value, one)[0] == {"notes": [{}, {"a": "to , today"}], "json": '{"b":1}'}
    redacted = redact_attributes({"note": "x", "a": "b"}, one)
    assert redacted.attributes == {"a": "b"}
    assert redacted.changed == {"note"}
    assert redact_json([["note", "x"], {"name": "note", "value": "x"}], one)[0] == [["note"], {"name": "note"}]


def test_equal_values_have_equal_digests_of_their_class_and_type() -> None:
    one = policy(Rule(Form.DIGEST, keys=("name", "number", "who", "text")))
    value = {"name": "Ann", "number": 2, "other": {"name": "Ann", "number": 2.0}, "text": "2", "who": "Ann"}
    redacted, _ = redact_json(value, one)
    assert redacted == {
        "name": put("name", "Ann"),
        "number": put("number", 2),
        "other": {"name": put("name", "Ann"), "number": put("number", 2)},
        "text": put("text", "2"),
        "who": put("who", "Ann"),
    }
    assert put("name", "Ann") != put("who", "Ann")
    assert put("text", "2") != put("text", 2)
    linked = policy(Rule(Form.DIGEST, keys=("name", "who"), field_class="person"))
    assert redact_json({"name": "Ann", "who": "Ann"}, linked)[0] == dict.fromkeys(("name", "who"), put("person", "Ann"))


def test_a_value_that_a_detector_knows_has_the_same_digest_wherever_it_stands() -> None:
    one = policy(Rule(Form.DIGEST, keys=("contact",)), Rule(Form.DIGEST, detectors=("personal",)))
    redacted, _ = redact_json({"contact": JANE, "text": f"to {JANE}."}, one)
    assert redacted == {"contact": put("e_mail", JANE), "text": f"to {put('e_mail', JANE)}."}


def test_a_placeholder_is_its_own_digest() -> None:
    one = policy(Rule(Form.DIGEST, keys=("name",)), Rule(Form.DIGEST, detectors=("personal",)), extends="default")
    redacted: Any = redact_json({"name": "Ann", "text": f"password={JANE} to {JANE}"}, one)[0]
    assert redact_json(redacted, one) == (redacted, False)
    placeholder = redacted["name"]
    for value in ({"name": placeholder}, {"password": placeholder}, f"Bearer {placeholder}", f"token={placeholder}"):
        assert redact_json(value, one) == (value, False)


def test_projects_have_digests_of_their_own() -> None:
    rule = Rule(Form.DIGEST, keys=("name",))
    one, other = (make_policy("test/1", [rule], domain=name, digests=OneKey(KEY)) for name in ("a", "b"))
    assert redact_json({"name": "Ann"}, one) != redact_json({"name": "Ann"}, other)


def test_without_a_key_what_would_be_digested_is_masked_and_the_recording_says_so() -> None:
    keyless = preset("default", NoKey())
    assert keyless is not None
    redacted = redact_attributes({"a": f"to {JANE}"}, keyless)
    assert redacted.attributes == {"a": "to [redacted]"}
    said = json.loads(header(keyless, redacted.key_ids))
    assert said == {"policy": f"{keyless.name}{BY_PLAN * has_library()};keyless", "key_ids": []}


def test_a_header_says_what_one_before_it_said_too() -> None:
    one, other = make_policy("one/1", extends=None), make_policy("other/2", extends=None)
    before = header(one, ["k1"])
    assert json.loads(header(other, ["k2"], before)) == {"policy": f"{one.name}, {other.name}", "key_ids": ["k1", "k2"]}
    assert header(one, [], before) == before
    assert header(one, ["k1"], "no JSON") == header(one, ["k1"], "[]") == before


def test_a_label_says_whether_telephone_numbers_are_known_by_their_plans() -> None:
    all_of_ours, none_of_ours = make_policy("mine/1"), make_policy("mine/1", extends=None)
    assert all_of_ours.label.removesuffix(KEYLESS) == all_of_ours.name + BY_PLAN * has_library()
    assert none_of_ours.label == none_of_ours.name


# -- places ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pointer", "redacted"),
    [
        ("/user.id", {"user.id": "[redacted]", "a": '{"b":[{"c":"x"},{"c":"y","d":"z"}]}', "c/d": "q"}),
        ("/a/b/1/c", {"user.id": "u", "a": '{"b":[{"c":"x"},{"c":"[redacted]","d":"z"}]}', "c/d": "q"}),
        ("/a/b/*/c", {"user.id": "u", "a": '{"b":[{"c":"[redacted]"},{"c":"[redacted]","d":"z"}]}', "c/d": "q"}),
        ("/**/d", {"user.id": "u", "a": '{"b":[{"c":"x"},{"c":"y","d":"[redacted]"}]}', "c/d": "q"}),
        ("/a/**", {"user.id": "u", "a": '{"b":[{"c":"[redacted]"},{"c":"[redacted]","d":"[redacted]"}]}', "c/d": "q"}),
        ("/c~1d", {"user.id": "u", "a": '{"b":[{"c":"x"},{"c":"y","d":"z"}]}', "c/d": "[redacted]"}),
        ("/missing/b", {"user.id": "u", "a": '{"b":[{"c":"x"},{"c":"y","d":"z"}]}', "c/d": "q"}),
    ],
)
def test_pointers_go_from_an_attribute_on_and_into_json_in_text(pointer: str, redacted: Any) -> None:
    attributes = {"user.id": "u", "a": '{"b":[{"c":"x"},{"c":"y","d":"z"}]}', "c/d": "q"}
    assert redact_attributes(attributes, policy(Rule(Form.MASK, pointers=(pointer,)))).attributes == redacted


@pytest.mark.parametrize("form", ["text", "anthropic", "chat", "ours", "session"])
@pytest.mark.parametrize(
    "pattern", ["get_customer.result.*", "get_*.result.email", "*.result.**", "get_customer.result"]
)
def test_the_results_of_a_tool_are_known_in_every_form(pattern: str, form: str) -> None:
    one = policy(Rule(Form.MASK, tools=(pattern,)))
    result = {"email": "E"}
    message: Any = {
        "text": {"role": "tool", "tool_call_id": "c1", "content": json.dumps(result)},
        "anthropic": {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": json.dumps(result)}]}
            ],
        },
        "chat": {"role": "tool", "tool_call_id": "c1", "name": "get_customer", "content": f"{result}"},
        "ours": {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": result}]},
        "session": {"name": "get_customer", "arguments": {}, "result": result},
    }[form]
    asked = {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "get_customer", "arguments": {}}]}
    said = json_text.encode_list([asked, message])
    for _ in range(2):  # the second time from memory
        redacted = str(redact_attributes({names.INPUT_MESSAGES: said}, one).attributes[names.INPUT_MESSAGES])
        assert "[redacted]" in redacted
        assert '"E"' not in redacted
        assert "'E'" not in redacted
        assert json.loads(redacted)[0] == asked
    assert redact_attributes({names.INPUT_MESSAGES: redacted}, one).attributes == {names.INPUT_MESSAGES: redacted}
    given: Any = {names.INPUT_MESSAGES: [asked, message]}
    live = redact_attributes(given, one).attributes[names.INPUT_MESSAGES]
    assert json_text.encode(live) == redacted


def test_the_result_of_another_tool_stays_and_that_of_an_unknown_one_goes() -> None:
    one = policy(Rule(Form.MASK, tools=("get_customer.result.email",)))
    other = {"role": "assistant", "parts": [{"type": "tool_call", "id": "c2", "name": "list_orders", "arguments": {}}]}
    answers = [
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": one, "response": {"email": one}}]}
        for one in ("c2", "c3")
    ]
    redacted: Any = redact_json([other, *answers], one)[0]
    told = [message["parts"][0]["response"] for message in redacted[1:]]
    assert told == [{"email": "c2"}, {"email": "[redacted]"}]


def test_the_arguments_of_tools_are_known_in_spans_and_in_messages() -> None:
    one = policy(Rule(Form.DIGEST, tools=("*.arguments.email",)))
    expected = {"email": put("email", "E"), "n": 1}
    redacted = redact_attributes(tool_span("find", {"email": "E", "n": 1}, {"email": "E"}), one).attributes
    assert json.loads(str(redacted[names.TOOL_CALL_ARGUMENTS])) == expected
    assert json.loads(str(redacted[names.TOOL_CALL_RESULT])) == {"email": "E"}
    for call in (
        {"type": "tool_call", "id": "c", "name": "find", "arguments": {"email": "E", "n": 1}},
        {"type": "tool_use", "id": "c", "name": "find", "input": {"email": "E", "n": 1}},
        {"id": "c", "type": "function", "function": {"name": "find", "arguments": '{"email": "E", "n": 1}'}},
    ):
        assert put("email", "E") in json.dumps(redact_json({"x": [call]}, one)[0])
        assert '"E"' not in json.dumps(redact_json({"x": [call]}, one)[0])
    foreign = {"tool.name": "find", "input.value": '{"email":"E"}', "output.value": "{}"}
    assert "E" not in str(redact_attributes(foreign, one).attributes["input.value"]).replace("email", "")
    flat = "llm.output_messages.0.message.tool_calls.0.tool_call.function"
    flattened = {f"{flat}.name": "find", f"{flat}.arguments": '{"email":"E"}'}
    assert redact_attributes(flattened, one).changed == {f"{flat}.arguments"}


@pytest.mark.parametrize("result", ["Ann", 5, True, [1, "x"], {"a": "b"}])
def test_a_whole_result_goes_alike_as_json_text_and_as_a_live_value(result: Any) -> None:
    one = policy(Rule(Form.DIGEST, tools=("find.result",)))
    recorded = redact_attributes(tool_span("find", {}, result), one).attributes[names.TOOL_CALL_RESULT]
    live = {**tool_span("find", {}), names.TOOL_CALL_RESULT: result}
    assert json.loads(str(recorded)) == redact_attributes(live, one).attributes[names.TOOL_CALL_RESULT]
    assert str(recorded).count("[redacted:") == (2 if isinstance(result, list) else 1)


def test_text_in_which_a_place_cannot_be_found_goes_where_it_names_it() -> None:
    one = policy(Rule(Form.MASK, tools=("find.result.email",)))
    said = [redact_attributes(tool_span("find", {}, text), one).attributes for text in ("email: E", "no such customer")]
    assert [one[names.TOOL_CALL_RESULT] for one in said] == ['"[redacted]"', '"no such customer"']


# -- allowing --------------------------------------------------------------------------------------------------------


def test_what_is_allowed_stays() -> None:
    one = policy(
        Rule(
            Form.KEEP,
            keys=("page_password",),
            pointers=("/app.contact", "/a/b"),
            tools=("find.arguments.email",),
            values=("*@example.com", "SUPPORT@example.org"),
        ),
        extends="default",
    )
    attributes = {"app.contact": JANE, "a": json.dumps({"b": JANE}), "page_password": "x"}
    assert redact_attributes(attributes, one).changed == frozenset()
    span = tool_span("find", {"email": JANE})
    assert redact_attributes(span, one).changed == frozenset()
    assert redact_text("a.b@example.com, support@example.org", one) == "a.b@example.com, support@example.org"
    assert JANE not in redact_text(f"{JANE}, a.b@example.com", one)
    kept = policy(Rule(Form.KEEP, detectors=("e-mail",)), extends="default")
    assert redact_text(f"{JANE} password=hunter2", kept) == f"{JANE} password=[redacted]"
    named = policy(Rule(Form.KEEP, detectors=("credential",)), extends="default")
    assert redact_json({"password": "x", "a": "password=hunter2"}, named)[1] is False


def test_addresses_of_servers_stay_and_others_do_not() -> None:
    attributes = {names.SERVER_ADDRESS: "93.184.216.34", "client.address": "93.184.216.34"}
    redacted = redact_attributes(attributes, policy(extends="default")).attributes
    assert redacted == {names.SERVER_ADDRESS: "93.184.216.34", "client.address": put("ip_address", "93.184.216.34")}


def test_the_first_rule_decides() -> None:
    one = policy(Rule(Form.DROP, detectors=("e-mail",)), Rule(Form.MASK, detectors=("personal",)), extends="default")
    assert redact_text(f"{JANE}; +49 30 901820", one) == "; [redacted]"


# -- functions -------------------------------------------------------------------------------------------------------


def find_orders(text: str) -> Iterator[tuple[int, int]]:
    """Orders, as a user's function finds them."""
    place = text.find("ORD")
    while place >= 0:
        yield place, place + 6
        place = text.find("ORD", place + 6)


def explode(text: str) -> list[tuple[int, int]]:
    if "boom" in text:
        raise RuntimeError("a rule of the user")
    return []


def test_a_function_finds_what_no_detector_knows() -> None:
    one = policy(Rule(Form.DIGEST, "order", find=find_orders))
    assert redact_json({"a": ["ORD123, ORD124", "x"]}, one)[0] == {
        "a": [f"{put('order', 'ORD123')}, {put('order', 'ORD124')}", "x"]
    }


def test_a_function_that_raises_closes_its_text_alone_and_is_counted() -> None:
    one = policy(Rule(Form.MASK, find=explode), extends="default")
    attributes: dict[str, Any] = {
        "a": '{"x":"boom boom","y":"fine"}',
        "b": "boom",
        "c": ["ok", "boom"],
        "d": {"boom": 1},
    }
    for _ in range(2):
        redacted = redact_attributes(attributes, one)
        assert redacted.attributes == {
            "a": '{"x":"[redacted]","y":"fine"}',
            "b": "[redacted]",
            "c": ["ok", "[redacted]"],
            "d": {"[redacted]": 1},
        }
        assert redacted.failures >= 3
    assert redact_json("boom", one) == ("[redacted]", True)
    assert redact_text("boom", one) == "[redacted]"


# -- what cannot be --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (Rule(Form.MASK), "rule 1 finds nothing: give keys"),
        (Rule(Form.MASK, "mine", detectors=("email",)), "mine: there is no detector 'email'; there are ['IBAN', "),
        (Rule(Form.MASK, pointers=("user.id",)), "'user.id' is no JSON pointer: it begins with /"),
        (Rule(Form.MASK, tools=("get_customer",)), "'get_customer' names no place in a tool call: TOOL.arguments.PATH"),
        (Rule(Form.MASK, tools=("result.x",)), "names no place in a tool call"),
        (Rule(Form.MASK, values=("x",)), "values can be kept only"),
    ],
)
def test_a_rule_that_cannot_be_says_why(rule: Rule, said: str) -> None:
    with pytest.raises(SettingsError) as refused:
        policy(rule)
    assert said in str(refused.value)


def test_a_policy_that_says_something_else_has_another_name() -> None:
    one = make_policy("acme/1", [Rule(Form.MASK, keys=("a",))])
    assert one.name.startswith("acme/1+")
    assert one.name == make_policy("acme/1", [Rule(Form.MASK, "a better word", keys=("a",))]).name
    others = [
        make_policy("acme/1", [Rule(Form.DIGEST, keys=("a",))]),
        make_policy("acme/1", [Rule(Form.MASK, keys=("a", "b"))]),
        make_policy("acme/1", [Rule(Form.MASK, keys=("a",))], extends="mask"),
        make_policy("acme/1", [Rule(Form.MASK, keys=("a",))], domain="d"),
        make_policy("acme/1", [Rule(Form.MASK, find=explode)]),
    ]
    assert len({one.name, *(other.name for other in others)}) == 6
    with pytest.raises(SettingsError, match="there is no such preset; there are default, mask, credentials"):
        make_policy("acme/1", extends="strict")


# -- any input -------------------------------------------------------------------------------------------------------

CARD = 4111111111111111
SECRETS = (JANE, "sk-" + "fake0123456789abcdef", "4111 1111 1111 1111", "+49 30 901820", "DE89370400440532013000")
WORDS = st.sampled_from(
    ["a", "of", "{", '"', "\\", "é", "\u2028", "[redacted]", "[redacted:", "]", ":", "=", "key", "x@"]
)
TEXTS = st.lists(st.one_of(WORDS, st.sampled_from(SECRETS)), max_size=6).map(" ".join)
KEYS = st.sampled_from(["a", "name", "email", "password", "arguments", "result", "type", "id", "value", "role", JANE])
LEAVES = st.one_of(
    TEXTS, st.integers(), st.booleans(), st.none(), st.floats(allow_nan=False), st.just(4111111111111111)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(KEYS, inner, max_size=3),
        inner.map(json.dumps),
    ),
    max_leaves=8,
)
POLICIES = [
    policy(extends="default"),
    policy(extends="mask"),
    policy(Rule(Form.DROP, detectors=("personal",)), Rule(Form.MASK, keys=("name",)), extends="default"),
    policy(Rule(Form.DIGEST, tools=("*.result.**",)), Rule(Form.DROP, keys=("email",)), extends="default"),
    policy(Rule(Form.MASK, pointers=("/**/a", "/x/*/name")), Rule(Form.DIGEST, find=find_orders), extends="default"),
]


@pytest.mark.slow
@settings(max_examples=300)
@given(VALUES, st.integers(0, len(POLICIES) - 1))
def test_whatever_the_value_it_is_redacted_whole_and_once(value: Any, number: int) -> None:
    fresh = replace(POLICIES[number], known=Memory(1 << 20))
    redacted = redact_attributes({"x": value, names.TOOL_CALL_RESULT: json.dumps(value)}, fresh)
    again = redact_attributes(redacted.attributes, fresh)
    assert again.attributes == redacted.attributes
    assert redacted.failures == 0
    json.loads(str(redacted.attributes.get(names.TOOL_CALL_RESULT, "null")))
    written = json.dumps(redacted.attributes, ensure_ascii=False)
    for secret in SECRETS:
        assert secret not in written


@pytest.mark.slow
@settings(max_examples=200)
@given(st.text(min_size=1).map(lambda text: f"\u2023{text}\u2023"), VALUES, st.sampled_from(list(Form)[:3]))
def test_what_stands_at_a_place_of_a_rule_never_leaves(secret: str, beside: Any, form: Form) -> None:
    one = policy(
        Rule(form, keys=("name",), pointers=("/p/*/deep",), tools=("find.result.**",), detectors=("personal",))
    )
    attributes = {
        **tool_span("find", {"name": secret, "beside": beside}, [secret, {"k": [secret]}]),
        "p": json.dumps([{"deep": {"er": secret, "beside": beside}}]),
        "q": {"list": [{"name": json.dumps([secret])}, ["name", secret], {"key": "name", "value": secret}]},
    }
    redacted = redact_attributes(attributes, one).attributes
    written = json.dumps(redacted, ensure_ascii=False)
    assert secret not in written
    assert json.dumps(secret)[1:-1] not in json.dumps(redacted)
    assert redact_attributes(redacted, one).attributes == redacted


@pytest.mark.parametrize(
    ("labels", "joined"),
    [
        ([None, "a/1"], "a/1"),
        (["a/1", "a/1", None], "a/1"),
        (["a/1", "a/1;keyless", "a/1"], "a/1;keyless"),
        (["b/1", "a/1", "b/1"], "a/1, b/1"),
        (["b/1;keyless", "a/1", "b/1"], "a/1, b/1;keyless"),
    ],
)
def test_a_recording_of_several_parts_names_the_policies_of_all(labels: list[str | None], joined: str) -> None:
    for order in (labels, labels[::-1]):
        assert functools.reduce(join_labels, order) == joined
