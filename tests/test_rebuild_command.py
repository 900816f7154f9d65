"""`spanreel rebuild`: which sessions are made again, and what is said of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from deriving import TENANT, send, settle
from otlp_lines import GENAI, request, said, span
from spanreel.cli import main
from spanreel_collector.service.derivation import Derivation
from spanreel_collector.service.reading_code import reading_code
from spanreel_collector.service.retelling import retell
from spanreel_collector.stores.opening import open_store
from spanreel_collector.stores.records import Filter
from spanreel_collector.stores.store import Store

pytestmark = pytest.mark.slow


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a store with three sessions, two of which other code has made."""
    cluster = None if request.param == "sqlite" else request.getfixturevalue("cluster")
    made = cluster.new_database() if cluster else f"sqlite:///{tmp_path}/store.db"
    store = open_store(made)
    for number in (1, 2, 3):
        talk(store, number)
        reader = "0.0.1+another" if number < 3 else reading_code()
        settle(Derivation(store, retell, lambda *_: None, 0, reader=reader))
    store.close()
    yield made
    if cluster:
        cluster.give_back(made)


def talk(store: Store, number: int) -> None:
    told = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-5",
        "gen_ai.input.messages": json.dumps([said("user", f"{number}?")]),
    }
    send(store, request(span(number, "chat gpt-5", told, trace=f"{number:032x}"), scope=GENAI))


def ids(url: str) -> list[str]:
    store = open_store(url)
    found = [one.id for one in store.find(TENANT, Filter()).sessions]
    store.close()
    return found


def test_what_other_code_has_made_is_made_again_and_once(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rebuild", "--store", url]) == 0
    assert "2 traces read again, 0 sessions changed, 0 traces not readable" in capsys.readouterr().err
    assert main(["rebuild", "--store", url]) == 0
    assert "0 traces read again" in capsys.readouterr().err


def test_all_sessions_are_made_again_where_it_is_asked_for(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert main(["rebuild", "--store", url, "--all"]) == 0
        assert "3 traces read again, 0 sessions changed" in capsys.readouterr().err


def test_one_session_is_made_again_where_it_is_named(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    first, second, _ = ids(url)
    assert main(["rebuild", "--store", url, "--session", first, "--session", second]) == 0
    assert "2 traces read again" in capsys.readouterr().err
    assert main(["rebuild", "--store", url, "--session", first, "--tenant", "acme"]) == 64
    assert f"tenant 'acme' has no session {first!r}; nothing was rebuilt" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["rebuild", "--store", url, "--session", first, "--all"])
