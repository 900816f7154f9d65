"""Credentials do not leave; what only looks like one does."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.util.types import AttributeValue

from effort import growth
from spanreel import conventions, json_text
from spanreel.credential_names import LAST_WORDS, PHRASES, WORDS, is_credential_name
from spanreel.detectors import DETECTORS, Detector, Found, Kind
from spanreel.outgoing import finish
from spanreel.policy import compile_policy
from spanreel.redaction import Redacted, make_policy, redact_attributes, redact_json, redact_text
from spanreel.rules import Form, Rule
from spanreel.safe_texts import safe_text
from spanreel.settings import Settings

AWS = "AKIA" + "ABCDEFGHIJKLMNOP"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAK\n-----END RSA PRIVATE KEY-----"
BASIC = base64.b64encode(b"user:hunter2").decode()


CREDENTIALS = """
api_key apikey API_KEY apiKey X-API-Key x-api-key OPENAI_API_KEY openaiApiKey APIKey api_key_2 authorization
Authorization Proxy-Authorization http.request.header.authorization bearer password passwd PASSWORD
DB_PASSWORD_PROD dbPassword password2 passphrase secret SECRET client_secret clientSecret app-secret secret_id
secretKey access_token accessToken refresh_token id_token token auth_token X-Auth-Token csrfToken github_token
private_key privateKey ssh_private_key cookie Set-Cookie set-cookie cookies connection_string connectionString
credentials aws_secret_access_key password_hash access_key access_key_secret signing_key pass smtp_pass
DB_PASS basic_auth token_value jwt X-Amz-Signature
"""
HARMLESS = """
max_tokens maxTokens input_tokens total_tokens completion_tokens cached_tokens token_type tokenType
token_count token_limit tokens tokenizer secretary next_page_token nextPageToken pageToken page_token
continuation_token sync_token stop_token eos_token auth_types auth author authorized price cache_key cacheKey
prompt_cache_key idempotency_key primary_key foreign_key public_key sort_key key keys secret_name secret_arn
password_policy password_length api_key_id private_key_path token_url authorization_endpoint cookie_policy
cookie_consent compass passenger boarding_pass first_pass bypass cost_per_token bearer_format credentials_mode
monkey keyboard 12 _ gen_ai.token.type gen_ai.usage.input_tokens gen_ai.tool.call.id spanreel.run.id
"""


@pytest.mark.parametrize(
    "name",
    CREDENTIALS.split(),
)
def test_these_names_name_a_credential(name: str) -> None:
    assert is_credential_name(name)


@pytest.mark.parametrize(
    "name",
    ["", *HARMLESS.split()],
)
def test_these_names_do_not(name: str) -> None:
    assert not is_credential_name(name)


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("use sk-proj-abcdef_123-x please", "use [redacted] please"),
        ("sk-ant-api03-xyz", "[redacted]"),
        ("sk-test", "[redacted]"),
        (f"id {AWS}.", "id [redacted]."),
        ("ghp_" + "a1" * 18, "[redacted]"),
        ("github_pat_" + "a1_" * 12, "[redacted]"),
        ("xoxb-123456789012-abc", "[redacted]"),
        ("AIza" + "Sy0_-" * 7, "[redacted]"),
        ("hf_" + "aB3" * 11, "[redacted]"),
        ("glpat-" + "a1-_" * 5, "[redacted]"),
        ("sk_live_" + "a1" * 10, "[redacted]"),
        ("SG." + "a" * 20 + "." + "b" * 20, "[redacted]"),
        (f"jwt {JWT} end", "jwt [redacted] end"),
        (f"key:\n{PEM}\nend", "key:\n[redacted]\nend"),
        (PEM[:50] + " cut off", "[redacted]"),
        ("Authorization: Bearer abc.def-ghi", "Authorization: [redacted]"),
        ("curl -H 'authorization: token x y' host", "curl -H 'authorization: [redacted]' host"),
        ("Cookie: a=b; c=d\nHost: h", "Cookie: [redacted]\nHost: h"),
        ("with Bearer abc123def", "with Bearer [redacted]"),
        ("with bearer " + "abcde" * 5, "with bearer [redacted]"),
        (f"auth Basic {BASIC}", "auth Basic [redacted]"),
        ("postgres://user:p@ss:w@host:5432/db", "postgres://user:[redacted]@host:5432/db"),
        ("redis://:hunter2@host", "redis://:[redacted]@host"),
        ("password=hunter2", "password=[redacted]"),
        ("{password=hunter2}", "{password=[redacted]}"),
        ("password = 'correct horse'!", "password = '[redacted]'!"),
        ('password: "a \\"b\\" c" rest', 'password: "[redacted]" rest'),
        ('password="never closed\nnext', 'password="[redacted]\nnext'),
        ('{"password": "hunter2", cut o', '{"password": "[redacted]", cut o'),
        (r"{\"password\": \"hunter2\", \"a\": 1} x", r"{\"password\": \"[redacted]\", \"a\": 1} x"),
        ("OPENAI_API_KEY=abc OTHER=1", "OPENAI_API_KEY=[redacted] OTHER=1"),
        ("Server=s;Password=a;b,c;Database=d", "Server=s;Password=[redacted];Database=d"),
        ("f(password=hunter2, user=u)", "f(password=[redacted], user=u)"),
        ("https://h/p?api_key=abc&x=1#f", "https://h/p?api_key=[redacted]&x=1#f"),
        (
            "https://b.example/c?sv=1&sig=aB%2Fc0123456789def&se=2 and ?key=abcdefghijklmnop1#x",
            "https://b.example/c?sv=1&sig=[redacted]&se=2 and ?key=[redacted]#x",
        ),
        ("run --api-key hunter2 --verbose", "run --api-key [redacted] --verbose"),
        ("<password>hunter2</password>", "<password>[redacted]</password>"),
        ("password password=abc", "password password=[redacted]"),
        ("key: api_key=abc", "key: api_key=[redacted]"),
        ("token => abc", "token => [redacted]"),
        (r"repr: 'line\nsk-proj-abcdefgh'", r"repr: 'line\n[redacted]'"),
        ("q=%20sk-proj-abcdefgh", "q=%20[redacted]"),
        ("\u0130 \u0130 password=abc \u0130", "\u0130 \u0130 password=[redacted] \u0130"),
    ],
)
def test_text_loses_its_credentials_and_nothing_else(text: str, redacted: str) -> None:
    assert redact_text(text) == redacted
    assert redact_text(redacted) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "",
        "abc",
        "550e8400-e29b-41d4-a716-446655440000",
        "0af7651916cd43dd8448eb211c80319c",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "risk-averse task-force sk-SK sk-learn",
        "max_tokens: 5, token: 7, tokens=12",
        "the secretary has a basic understanding of bearer authentication",
        "password: None, secret: null, token=true",
        "api_key: str = field(), password: string",
        "next_page_token=abc secret_name=db cache_key=k",
        "password [redacted], password=[redacted], password: '[redacted]'",
        "http://localhost:4318/v1/traces?email=a@b.c",
        "Basic !!!! Basic abcd",
        "keys: a, b; monkey: c",
        "https://h/find?key=title&design=1234567890abcdefgh&sigma=1234567890abcdefgh",
    ],
)
def test_harmless_text_stays(text: str) -> None:
    assert redact_text(text) is text


@pytest.mark.parametrize(
    ("value", "redacted"),
    [
        (
            {"headers": {"Authorization": ["Bearer x"], "X": "y"}},
            {"headers": {"Authorization": ["[redacted]"], "X": "y"}},
        ),
        ({"a": [{"b": {"password": "p", "n": None}}]}, {"a": [{"b": {"password": "[redacted]", "n": None}}]}),
        ({"password": 1234, "secret": True, "api_key": None, "token": 5}, None),
        (
            {"secrets": {"db": "x", "n": [1.5, "y"]}},
            {"secrets": {"db": "[redacted]", "n": ["[redacted]", "[redacted]"]}},
        ),
        ({"env": [{"name": "API_KEY", "value": "z"}]}, {"env": [{"name": "API_KEY", "value": "[redacted]"}]}),
        ({"name": "city", "value": "Köln"}, {"name": "city", "value": "Köln"}),
        (["app", "--token", "abc", "--x=1", "y"], ["app", "--token", "[redacted]", "--x=1", "y"]),
        ([["authorization", "x"], ["accept", "y"]], [["authorization", "[redacted]"], ["accept", "y"]]),
        ({"k": '{"a":"{\\"password\\":\\"x\\"}"}'}, {"k": '{"a":"{\\"password\\":\\"[redacted]\\"}"}'}),
        ({"k": '"password=x"'}, {"k": '"password=[redacted]"'}),
        ('{"a": "sk-abcdefgh", "a": "fine"}', '{"a":"fine"}'),
        ('{"pass\\u0077ord": "x"}', '{"password":"[redacted]"}'),
        ('{"password": "x" cut', '{"password": "[redacted]" cut'),
        ({"sk-abcdefgh": 1, 2: "x"}, {"[redacted]": 1, 2: "x"}),
        (
            {"sk-abcdefgh": 1, "sk-ijklmnop": 2, "[redacted]": 3},
            {"[redacted]": 1, "[redacted] (2)": 2, "[redacted] (3)": 3},
        ),
        ({"password": ""}, {"password": ""}),
        ({"password": ("a", "")}, {"password": ("[redacted]", "")}),
        (("--key", "password=a"), ("--key", "password=[redacted]")),
        ({"password": b"\x00"}, {"password": "[redacted]"}),
        (b"\xffpassword=x", b"\xffpassword=[redacted]"),
        (b"\xffplain", b"\xffplain"),
        (
            {"authentication": {"type": "api_key", "key": "hunter2"}},
            {"authentication": {"type": "api_key", "key": "[redacted]"}},
        ),
        (
            {"auth_token": {"type": "bearer", "value": "hunter2"}},
            {"auth_token": {"type": "[redacted]", "value": "[redacted]"}},
        ),
        (
            {"credentials": {"description": "of the bot", "value": "hunter2"}},
            {"credentials": {"description": "[redacted]", "value": "[redacted]"}},
        ),
        (
            {"properties": {"password": {"type": "string", "default": "hunter2", "description": "yours"}}},
            {"properties": {"password": {"type": "string", "default": "[redacted]", "description": "yours"}}},
        ),
        ({"type": "token", "value": "the"}, {"type": "token", "value": "the"}),
        ({"secrets": {}}, {"secrets": {}}),
        ({"cookies": []}, {"cookies": []}),
    ],
)
def test_values_are_redacted_to_any_depth(value: Any, redacted: Any) -> None:
    if redacted is None:
        redacted = {"password": "[redacted]", "secret": True, "api_key": None, "token": 5}
    before = json.dumps(value, default=str, skipkeys=True)
    result, changed = redact_json(value)
    assert (result, changed) == (redacted, value != redacted)
    assert type(result) is type(redacted)
    assert json.dumps(value, default=str, skipkeys=True) == before
    assert redact_json(result) == (result, False)


@pytest.mark.parametrize(
    "value",
    [
        {
            "type": "object",
            "properties": {"password": {"type": "string", "description": "yours"}, "secrets": {"enum": ["a", "b"]}},
            "required": ["password", "email"],
        },
        {"logprobs": {"content": [{"token": "Hello", "logprob": -0.1, "bytes": [72]}]}},
        {"usage": {"prompt_tokens": 5, "total_tokens": 6}, "finish_reason": "stop"},
        '{"clean": "text", "and": ["more"]}',
        '{ "spaced": "max_tokens", "token_type": "x" }',
    ],
)
def test_harmless_values_are_given_back_as_they_are(value: Any) -> None:
    result, changed = redact_json(value)
    assert result is value
    assert not changed


def test_attributes_are_redacted_by_name_and_value_and_say_which() -> None:
    attributes: dict[str, AttributeValue] = {
        "http.request.header.authorization": ("Bearer x",),
        "gen_ai.input.messages": '[{"role":"user","parts":[{"type":"text","content":"key sk-abcdefgh"}]}]',
        "db.password": "x",
        "sk-abcdefgh": 1,
        "gen_ai.usage.input_tokens": 12,
        conventions.FIDELITY: '{"http.request.header.authorization":"redacted"}',
    }
    redacted = redact_attributes(attributes)
    assert redacted.attributes == {
        "http.request.header.authorization": ("[redacted]",),
        "gen_ai.input.messages": '[{"role":"user","parts":[{"type":"text","content":"key [redacted]"}]}]',
        "db.password": "[redacted]",
        "[redacted]": 1,
        "gen_ai.usage.input_tokens": 12,
        conventions.FIDELITY: '{"http.request.header.authorization":"redacted"}',
    }
    assert redacted.changed == {
        "http.request.header.authorization",
        "gen_ai.input.messages",
        "db.password",
        "[redacted]",
    }
    assert redact_attributes(redacted.attributes).changed == frozenset()


def test_a_rule_that_raises_closes() -> None:
    def explode(text: str, places: Sequence[int]) -> list[Found]:
        raise RuntimeError("broken rule")

    rule = Rule(Form.MASK, "broken", detectors=("broken",))
    policy = compile_policy("broken/1", [rule], [Detector("broken", Kind.CREDENTIAL, ("boom",), explode)])
    redacted = redact_attributes({"a": "boom boom", "b": "fine"}, policy)
    assert redacted == Redacted({"a": "[redacted]", "b": "fine"}, frozenset({"a"}), 1)
    finished = finish({"a": "boom boom"}, Settings(), policy)
    assert (finished["a"], finished[conventions.REDACTION_FAILURES]) == ("[redacted]", 1)
    assert (safe_text("boom boom", 100, policy), safe_text("fine", 100, policy)) == ("[redacted]", "fine")


@pytest.mark.slow
def test_json_nested_too_deep_to_examine_does_not_leave() -> None:
    deep: Any = "sk-abcdefgh"
    for _ in range(5000):
        deep = [deep]
    redacted = redact_attributes({"a": deep, "b": "[" * 5000 + '"password=x"' + "]" * 5000})
    assert redacted.attributes == {"a": "[redacted]", "b": "[" * 5000 + '"password=[redacted]"' + "]" * 5000}


def test_tokens_with_their_probabilities_do_not_spell_what_was_redacted() -> None:
    secret = "sk-" + "proj-QwErTyUiOpAsDfGhJkLz"
    pieces = ["it ", "is ", *(secret[start : start + 4] for start in range(0, len(secret), 4)), " now"]
    tokens = [
        {"token": piece, "logprob": -1.0, "bytes": [1], "top_logprobs": [{"token": piece, "logprob": -1.0}]}
        for piece in pieces
    ]
    redacted = redact_attributes({"a": json.dumps({"logprobs": {"content": tokens}})}).attributes
    told = json.loads(str(redacted["a"]))["logprobs"]["content"]
    assert [told[0], told[1], told[-1]] == [tokens[0], tokens[1], tokens[-1]]
    assert told[2:-1] == [{"token": "[redacted]", "logprob": -1.0}] * (len(tokens) - 3)
    assert redact_attributes(redacted).attributes == redacted


def test_every_credential_name_is_found_by_the_search_that_goes_before() -> None:
    fragments = [fragment for detector in DETECTORS for fragment in detector.fragments]
    names = [*WORDS, *LAST_WORDS, *("_".join(pair) for pair in PHRASES), "pass"]
    assert [name for name in names if not any(fragment in name for fragment in fragments)] == []


@pytest.mark.parametrize("around", ["%s", '{"totals": %s}', '{"name": "x", "totals": %s}', '[["x"], %s, 1]', "[%s]"])
def test_a_long_list_of_numbers_is_looked_through_once(around: str) -> None:
    """Each may be part of a number to call; no string ends behind the last of them, or begins before the first."""

    def unchanged(text: str) -> None:
        assert redact_attributes({"gen_ai.tool.call.arguments": text}).attributes["gen_ai.tool.call.arguments"] == text

    small, text = (
        around % json.dumps(list(range(1_000_000, 1_000_000 + count)), separators=(",", ":"))
        for count in (1_000, 8_000)
    )
    assert growth(unchanged, small, text) < 24  # were it the square, it would be 64 times as much
    called = text.replace("1000007,", '"call +49 30 901820",')
    redacted = redact_attributes({"gen_ai.tool.call.arguments": called}).attributes["gen_ai.tool.call.arguments"]
    assert "901820" not in str(redacted)


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        *("eyJ-", "eyJaaaaa.", "sk-", "key", 'password="', "password='", 'password=\\"', "key ", '\\"', "://a:", "://"),
        *("-----BEGIN PRIVATE KEY-----", "bearer ", "basic ", "password=,", "password=[", "Authorization: ", "-", "a_"),
        *("Cookie", "=", "key=", "password=a;", "password:\\", "key\\\\\\", "--key ", "\ud800", "%20", "SG.a", "eyJ"),
    ],
)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    small, large = (piece * (size // len(piece)) + " password" for size in (12_500, 100_000))
    assert growth(redact_text, small, large) < 24  # were it the square, it would be 64 times as much


FRAGMENTS = st.sampled_from(
    [
        "password",
        "=",
        ":",
        " ",
        '"',
        "'",
        "\\",
        "[redacted]",
        "Bearer ",
        "sk-",
        "abcdef12",
        "://u:",
        "@h",
        "{",
        "}",
        "[",
        "]",
        "token",
        "Authorization: ",
        "\n",
        ";",
        ",",
        "api_key",
        "--",
        "eyJabcde.fghij",
        "key",
        "null",
        "<",
        ">",
        "(",
        "&",
    ]
)


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(st.lists(FRAGMENTS, max_size=12).map("".join))
def test_redacting_again_changes_nothing(text: str) -> None:
    once = redact_text(text)
    assert redact_text(once) == once
    value, _ = redact_json({"a": [text], "b": json.dumps({"c": text})})
    assert redact_json(value) == (value, False)
    json.loads(value["b"])


@pytest.mark.parametrize(
    "item",
    [
        {"role": "user", "content": 'the password is "hunter2secret" and "a \\" b"'},
        {"usage": {"total_tokens": 12}, "note": "connection, key and secret are words \\n of \\t prose"},
        {"api_key": "abcdefgh"},
        {"name": "authorization", "value": "Basic dXNlcjpwYXNzd29yZA=="},
        {"nested": '{"token": "abcdefgh"}'},
        {"nested": '{"total_tokens": 3}'},
        {"headers": [["Authorization", "x y z"]]},
        {"é": "Bearer abcdef123456ü", "\u2028": "sk-abcdefghijkl"},
        {"arguments": ["--api-key", "abcdefgh"]},
        {"text": 'x\\\\" password=hunter2 "'},
    ],
)
def test_lists_of_known_items_are_redacted_as_their_text_is(item: dict[str, Any]) -> None:
    listed = json_text.encode_list([{"role": "user"}, item])
    for _ in range(2):  # the second time from memory
        by_items = redact_attributes({"messages": listed}).attributes["messages"]
        assert by_items == json_text.encode(redact_json([{"role": "user"}, item])[0])
        assert redact_attributes({"messages": str(listed)}).attributes["messages"] == by_items


_VALUES = st.lists(FRAGMENTS, max_size=6).map("".join) | st.integers() | st.floats(allow_nan=False) | st.booleans()
_OPENED = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "yes"}]


@settings(deadline=None)
@given(_VALUES, st.sampled_from(["input", "api_key", "data", "messages", "me@mail.example"]))
def test_arguments_with_known_lists_are_redacted_as_their_text_is(value: Any, name: str) -> None:
    arguments = {"first": value, name: [*_OPENED, {"role": "user", "content": value}], "last": [value]}
    parted = json_text.encode_parted(arguments)
    assert parted == json_text.encode(arguments)
    whole = _redacted_arguments(json_text.encode(arguments))
    for _ in range(2):  # what was found the first time is known the second
        assert _redacted_arguments(parted) == whole


def _redacted_arguments(text: str) -> Any:
    return finish({conventions.RUN_ARGUMENTS: text, conventions.RUN_ID: "0a5db387325f91dd"}, Settings())


@given(_VALUES)
def test_an_attribute_known_to_leave_as_it_is_says_what_it_would_if_it_were_not_known(value: Any) -> None:
    said = {"first": "me", "said": value, "gen_ai.usage.input_tokens": 5}
    # Where values may be cut, none is taken for known.
    finished, alone = finish(said, Settings()), finish(said, Settings(max_value_bytes=63))
    if len(str(value)) < 32:
        assert list(finished.items()) == list(alone.items())


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(st.from_regex(r"(?:[0-9]{2}|[a-f]{2}|[0-9a-f]{2})(?:[0-9]{13}[a-f]|[0-9a-f]{14})", fullmatch=True))
def test_what_is_taken_for_the_id_of_a_span_without_looking_is_none_of_what_is_found(text: str) -> None:
    (leaves,) = redact_attributes({"spanreel.call.id": text}).attributes.values()
    assert leaves == redact_text(text)
    assert redact_text(text) == text or not re.search("[a-f]", text[2:])


def test_a_rule_of_the_users_own_is_asked_about_ids_of_spans_too() -> None:
    ids = Rule(Form.MASK, "ids", find=lambda text: [(0, len(text))] if len(text) == 16 else [])
    policy = make_policy("ids/1", [ids])
    assert redact_attributes({"a": "0a5db387325f91dd"}, policy).attributes == {"a": "[redacted]"}
