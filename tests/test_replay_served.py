"""Sessions that are replayed from a service: fetched from the host that was named, and from nowhere else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import spanreel
from conftest import ROOT
from spanreel.cli import main
from spanreel.errors import ReplayRefused
from spanreel.replay.running.served import brought, fetch, post_report
from spanreel.session_files import read_session
from spanreel.testing.provider import Reply
from spanreel.testing.server import LoopbackServer

DOCUMENT = (ROOT / "tests" / "golden" / "spanreel.session.json").read_bytes()
PATH = "/api/v1/sessions/s-1"

Asked = list[tuple[str, str, str | None, bytes]]


@contextmanager
def serving(answer: Callable[[str], Reply]) -> Iterator[tuple[str, Asked]]:
    asked: Asked = []

    def reply(method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        known = {name.lower(): value for name, value in headers.items()}
        asked.append((method, path, known.get("authorization"), body))
        return answer(path)

    with closing(LoopbackServer(reply)) as server:
        yield f"http://127.0.0.1:{server.port}", asked


def document(path: str) -> Reply:
    return Reply(200, {"content-type": "application/json"}, (DOCUMENT,))


def test_a_session_is_fetched_with_the_token_and_is_a_file_for_as_long_as_it_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPANREEL_TOKEN", "t" * 20)
    with serving(document) as (home, asked), brought([f"{home}{PATH}#0", "here.json"]) as here:
        file, run = here.sources[0].split("#")
        assert (Path(file).read_bytes(), run, here.sources[1]) == (DOCUMENT, "0", "here.json")
        assert here.homes == {file: f"{home}{PATH}"}
        assert asked == [("GET", PATH, f"Bearer {'t' * 20}", b"")]
    assert not Path(file).exists()


def test_files_are_left_alone() -> None:
    with brought(["a.json", "b.json#1"]) as here:
        assert (here.sources, here.homes) == (("a.json", "b.json#1"), {})


def test_the_address_of_a_sessions_page_will_do() -> None:
    with serving(document) as (home, asked):
        with brought([f"{home}/?session=s-1&at=%2Fruns%2F0#0", f"{home}/?session=a%2Fb&revision=2"]) as here:
            assert here.faults == {}
            assert here.sources[0].endswith("s-1.json#0")
        post_report(f"{home}/?session=s-1&revision=2", b"{}")
        assert [(method, path) for method, path, _, _ in asked] == [
            ("GET", PATH),
            ("GET", "/api/v1/sessions/a%2Fb"),
            ("POST", f"{PATH}/reports"),
        ]


def test_a_report_is_the_sessions_whichever_revision_was_replayed() -> None:
    with serving(lambda _: Reply(201, {}, (b"{}",))) as (home, asked):
        post_report(f"{home}{PATH}?revision=3", b"{}")
    assert [path for _, path, _, _ in asked] == [f"{PATH}/reports"]


def test_python_takes_the_address_too() -> None:
    with serving(document) as (home, _):
        assert spanreel.replay(f"{home}{PATH}").session == read_session(DOCUMENT)


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:9/",
        "http://127.0.0.1:9/?agent=care",
        "http://127.0.0.1:9/?session=",
        "http://user:word@127.0.0.1:9/?session=s-1",
        "http://127.0.0.1:9/sessions/s-1",
        "http://127.0.0.1:9/api/v1/sessions/",
        "http://127.0.0.1:9/api/v1/sessions/a/b",
        "http://user:word@127.0.0.1:9/api/v1/sessions/s-1",
    ],
)
def test_what_is_no_sessions_address_is_refused_before_anything_is_asked(address: str) -> None:
    with pytest.raises(ReplayRefused, match=r"no session's address|credentials"):
        fetch(address)


@pytest.mark.parametrize(
    ("status", "words"), [(401, "SPANREEL_TOKEN"), (403, "does not allow"), (404, "no such session")]
)
def test_an_answer_that_is_no_session_says_what_to_do(status: int, words: str) -> None:
    with serving(lambda _: Reply(status, {}, (b"{}",))) as (home, _), pytest.raises(ReplayRefused, match=words):
        fetch(f"{home}{PATH}")


def test_the_token_is_not_taken_to_another_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANREEL_TOKEN", "t" * 20)
    with serving(document) as (other, asked):
        moved = Reply(302, {"location": f"{other}{PATH}"}, ())
        with serving(lambda _: moved) as (home, _), pytest.raises(ReplayRefused, match="302"):
            fetch(f"{home}{PATH}")
        assert asked == []


def test_a_service_that_is_not_there_is_said() -> None:
    with pytest.raises(ReplayRefused, match="cannot be reached"):
        fetch("http://127.0.0.1:9/api/v1/sessions/s-1")


def test_a_report_is_given_back() -> None:
    with serving(lambda _: Reply(201, {}, (b"{}",))) as (home, asked):
        post_report(f"{home}{PATH}", b'{"a": 1}')
    assert [(method, path, json.loads(body)) for method, path, _, body in asked] == [
        ("POST", f"{PATH}/reports", {"a": 1})
    ]


def test_a_report_can_be_given_back_only_where_the_session_came_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "here.json", "--post-report", "--", "true"]) == 64
    assert "--post-report" in capsys.readouterr().err


def test_a_session_is_shown_from_a_service_too(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(document) as (home, asked):
        assert main(["show", f"{home}{PATH}"]) == 0
        assert main(["show", f"{home}{PATH}#0"]) == 0
        assert [path for _, path, _, _ in asked] == [PATH, PATH]
        assert capsys.readouterr().out.count("root") > 1
    assert main(["show", f"{home}{PATH}"]) == 1
    assert "is the service up?" in capsys.readouterr().err


def test_a_plan_is_made_from_a_service_too(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(document) as (home, _):
        assert main(["replay", f"{home}{PATH}", "--plan"]) in (0, 3)
    assert "root" in capsys.readouterr().out
