"""Policies in TOML files: what the documentation shows works, and what cannot be is told with its place."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import spanreel
from conftest import ROOT
from recording import attribute, recording
from spanreel.digest import digest, make_key
from spanreel.errors import SettingsError
from spanreel.keyring import Keyring
from spanreel.policy_file import find_policy, read_policy
from spanreel.presets import DEFAULT
from spanreel.redaction import redact_attributes, redact_json, redact_text
from spanreel.settings import read_settings

JANE = "jane.doe" + "@example.org"
SECRET = "a secret of the tests of 32 characters"


def documented(language: str) -> list[str]:
    page = (ROOT / "docs" / "redaction.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def test_the_policy_of_the_documentation_does_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "redaction.key").write_text(f"# of this year\n{SECRET}\n")
    (tmp_path / "redaction.key").chmod(0o600)
    (text,) = documented("toml")
    (tmp_path / "acme.toml").write_text(text)
    policy = read_policy(tmp_path / "acme.toml")
    assert policy.name.startswith("acme/3+")
    key = make_key(SECRET.encode())
    value = {"customerName": "Ann", "page_password": "x", "to": f"a@acme.example, {JANE}, +49 30 901820"}
    assert redact_json(value, policy)[0] == {
        "customerName": digest(key, "acme-support", "customer", "Ann"),
        "page_password": "x",
        "to": f"a@acme.example, {digest(key, 'acme-support', 'e_mail', JANE)}, [redacted]",
    }
    call = {"name": "get_customer", "arguments": {"email": "e"}, "result": {"street": "s"}}
    redacted: Any = redact_json(call, policy)[0]
    assert redacted["arguments"]["email"] == digest(key, "acme-support", "email", "e")
    assert redacted["result"]["street"] == digest(key, "acme-support", "street", "s")
    said = '[{"parts":[{"type":"text","internal_note":"n"}]}]'
    left = redact_attributes({"gen_ai.input.messages": said, "app.contact": JANE}, policy).attributes
    assert left == {"gen_ai.input.messages": '[{"parts":[{"type":"text"}]}]', "app.contact": JANE}


def test_the_code_of_the_documentation_runs() -> None:
    (code,) = documented("python")
    namespace: dict[str, Any] = {}
    exec(code, namespace)
    assert redact_text("ORD-12345 a@acme.example", namespace["policy"]) == "[redacted] a@acme.example"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name = ", "is no TOML: "),
        ("", "name: Field required"),
        ('name = "acme"', "name: String should match pattern"),
        ('name = "acme"', 'it is to be a name and a version, as in "acme/1"'),
        (
            'name = "a/1"\nextend = "mask"',
            "extend: there is no such setting; there are name, extends, domain, key, ",
        ),
        (
            'name = "a/1"\nextends = "strict"',
            "extends 'strict': there is no such preset; there are default, ",
        ),
        ('name = "a/1"\n[[rules]]\nkeys = ["a"]', "rules.0.form: Field required"),
        ('name = "a/1"\n[[rules]]\nform = "hide"', "rules.0.form: Input should be 'mask', 'drop', 'digest' or 'keep'"),
        (
            'name = "a/1"\n[[rules]]\nform = "mask"\nkey = "a"',
            "rules.0.key: there is no such setting; ",
        ),
        ('name = "a/1"\n[[rules]]\nform = "mask"\nkeys = "a"', "rules.0.keys: Input should be a valid tuple"),
        ('name = "a/1"\n[[rules]]\nform = "mask"\nkeys = ["a"]\nclass = "A b"', "rules.0.class: String should match"),
        ('name = "a/1"\n[[rules]]\nform = "mask"', "rule 1 finds nothing: give keys"),
        ('name = "a/1"\n[[rules]]\nform = "mask"\ndetectors = ["email"]', "there is no detector 'email'; there are "),
        ('name = "a/1"\n[[rules]]\nform = "mask"\nfunction = "os:nothing"', "function 'os:nothing' is not here"),
        ('name = "a/1"\n[[rules]]\nform = "mask"\nfunction = "os"', "function 'os' is not here, as module:name"),
        (
            'name = "a/1"\n[[rules]]\nform = "mask"\nfunction = "os:sep"',
            "'os:sep' is a str, which cannot be called",
        ),
        ('name = "a/1"\n[allow]\nvalue = ["a"]', "allow.value: there is no such setting; there are keys, detectors"),
    ],
)
def test_a_file_that_cannot_be_says_what_where_and_what_is_allowed(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(text)
    with pytest.raises(SettingsError) as refused:
        read_policy(file)
    assert f"the redaction policy {str(file)!r}" in str(refused.value)
    assert said in str(refused.value)


def test_a_policy_is_found_by_its_name_or_its_file(tmp_path: Path) -> None:
    assert find_policy("default").name == find_policy(DEFAULT.name).name == DEFAULT.name
    assert redact_text(JANE, find_policy("mask")) == "[redacted]"
    assert redact_text(JANE, find_policy("credentials")) == JANE
    with pytest.raises(SettingsError, match=r"no redaction policy 'strict': give default, mask, "):
        find_policy("strict")
    with pytest.raises(SettingsError, match="cannot be read: No such file or directory"):
        find_policy(str(tmp_path / "missing.toml"))


def test_a_key_that_a_policy_names_is_the_only_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "policy.toml"
    file.write_text('name = "house/1"\n[key]\nenv = "HOUSE_KEY"\n')
    policy = read_policy(file)
    with pytest.raises(SettingsError, match="the variable HOUSE_KEY, which is to hold the policy's key, is not set"):
        policy.digests.check()
    monkeypatch.setenv("HOUSE_KEY", SECRET)
    policy.digests.check()
    assert redact_text(JANE, policy) == digest(make_key(SECRET.encode()), "", "e_mail", JANE)


def test_the_environment_names_the_policy_of_what_is_recorded(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text('name = "house/1"\nextends = "credentials"\n[[rules]]\nform = "mask"\nkeys = ["city"]\n')

    @spanreel.tool()
    def weather(city: str) -> str:
        return f"fine, says {JANE}"

    with recording(settings=read_settings({"SPANREEL_REDACTION": str(file)})) as rec:
        weather("Rome")
        span = rec.one("execute_tool")
    assert attribute(span, "gen_ai.tool.call.arguments") == '{"city":"[redacted]"}'
    assert JANE in attribute(span, "gen_ai.tool.call.result")
    assert attribute(span, "spanreel.redaction").startswith('{"policy":"house/1+')
    with recording(redaction="mask") as rec:
        weather("Rome")
        span = rec.one("execute_tool")
    assert attribute(span, "gen_ai.tool.call.result") == '"fine, says [redacted]"'


@pytest.mark.parametrize("variable", ["SPANREEL_REDACTION", "SPANREEL_REDACTION_KEY", "SPANREEL_REDACTION_KEY_FILE"])
def test_what_cannot_be_used_is_said_before_anything_is_recorded(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPANREEL_REDACTION_KEY")
    monkeypatch.setenv(variable, "short")
    with pytest.raises(SettingsError) as refused, recording():
        pass
    said = {
        "SPANREEL_REDACTION": "no redaction policy 'short'",
        "SPANREEL_REDACTION_KEY": "SPANREEL_REDACTION_KEY, line 1: a key of 5 characters can be guessed; 16 or more",
        "SPANREEL_REDACTION_KEY_FILE": "there is no key file 'short'; make one: python -c",
    }[variable]
    assert said in str(refused.value)


# -- keys ------------------------------------------------------------------------------------------------------------


def ring(tmp_path: Path, **environ: str) -> Keyring:
    return Keyring(environ={"XDG_STATE_HOME": str(tmp_path / "state"), **environ})


def test_a_key_is_made_on_first_use_and_kept_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "state" / "spanreel" / "redaction.key"
    one = ring(tmp_path)
    assert one.find("12345678") is None
    assert not file.exists()
    key = one.current()
    assert key is not None
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert [entry.name for entry in file.parent.iterdir()] == [file.name]
    assert ring(tmp_path).current() == ring(tmp_path).find(key.id) == key
    assert file.read_text().strip() not in repr(key)
    assert key.secret.decode() not in one.place("", "e_mail", JANE)  # type: ignore[operator]  # there is a key


def test_many_who_need_a_key_at_once_get_the_same(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: ring(tmp_path).current(), range(16)))
    assert len(keys) == 1


def test_keys_of_a_variable_come_before_those_of_files_and_older_ones_are_known(tmp_path: Path) -> None:
    old, new = "old " * 8, "new " * 8
    one = ring(tmp_path, SPANREEL_REDACTION_KEY=f"{new}, {old}")
    assert one.current() == make_key(new.strip().encode())
    assert one.find(make_key(old.strip().encode()).id) == make_key(old.strip().encode())
    assert one.where == "the variable SPANREEL_REDACTION_KEY"
    file = tmp_path / "keys"
    file.write_text(f"\n# comment\n{new}\n{old}\n")
    two = ring(tmp_path, SPANREEL_REDACTION_KEY_FILE=str(file))
    assert (two.current(), two.where) == (one.current(), f"the file {file}")
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("trouble", ["no folder", "empty", "no text"])
def test_where_no_key_can_be_kept_there_is_none_and_it_is_said_why(trouble: str, tmp_path: Path) -> None:
    folder = tmp_path / "state" / "spanreel"
    if trouble == "no folder":
        folder.parent.write_text("a file")
    else:
        folder.mkdir(parents=True)
        (folder / "redaction.key").write_bytes(b"" if trouble == "empty" else b"\xff\xfe\x00" * 30)
    one = ring(tmp_path)
    assert one.unavailable is None
    assert one.place("", "e_mail", JANE) is None
    assert one.unavailable is not None
    assert one.place("", "e_mail", JANE) is None
