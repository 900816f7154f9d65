from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import zstandard

from spanreel.cli import main
from spanreel_collector.stores.opening import open_store
from spanreel_collector.stores.records import Derived, Entry, Filter, Made, Refusal, Report, Segment, Summary
from spanreel_collector.stores.store import Store

pytestmark = pytest.mark.slow

NewStore = Callable[[], str]
KINDS = ("sqlite", "postgresql")


def new_stores(request: pytest.FixtureRequest, folder: Path) -> Iterator[NewStore]:
    """Makes URLs of stores that are not there yet."""
    urls: list[str] = []
    cluster = None if request.param == "sqlite" else request.getfixturevalue("cluster")

    def new() -> str:
        urls.append(cluster.new_database() if cluster else f"sqlite:///{folder}/{request.fixturename}{len(urls)}.db")
        return urls[-1]

    yield new
    if cluster:
        for url in urls:
            cluster.give_back(url)


@pytest.fixture(params=KINDS)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NewStore]:
    yield from new_stores(request, tmp_path)


@pytest.fixture(params=KINDS)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NewStore]:
    yield from new_stores(request, tmp_path)


@pytest.fixture
def filled(source: NewStore) -> Iterator[tuple[str, Store]]:
    url = source()
    store = open_store(url)
    fill(store)
    yield url, store
    store.close()


def trace(number: int) -> bytes:
    return number.to_bytes(16, "big")


def fill(store: Store) -> None:
    for number in range(30):
        items = tuple(one.to_bytes(12, "big") for one in range(5))
        store.append([Segment("default", trace(number), "traces", items, os.urandom(3000), 9000)])
    store.append(
        [Segment("acme", trace(1), "logs", (bytes(16),), b"\0\xff", 3)], [Refusal("acme", 5, "span", "no\0 good")]
    )
    for revision in (1, 2, 3):
        made = tuple(
            Made(
                Summary(
                    id=f"s{number}",
                    revision=revision,
                    at=100 + number,
                    kind="conversation",
                    key=f"key {number} \0 \ud800",
                    origin="recorded",
                    status="ok",
                    user=f"user-{number % 3}",
                    started=None if number == 7 else number,
                    agents=("planner", "wörld"),
                    cost=number / 7,
                ),
                f'{{"revision": {revision}}}'.encode() * 100,
                f"text {number} Größe 天気",
                frozenset({trace(number)}),
            )
            for number in range(20)
        )
        names = {trace(number): frozenset({f"name {number % 4}"}) for number in range(20)}
        marks = {trace(number): 2**62 if number < 15 else 0 for number in range(20)}
        store.save(Derived("default", marks, names, made, frozenset(), f"1.{revision}"))
    store.add_report("default", Report("r", "s3", 9, "PASS", b"{}"))
    store.erase("default", frozenset({"s19"}))


def everything(store: Store) -> list[Entry]:
    """All that is kept; numbers of a database's own are not in it."""
    return sorted(store.dump(), key=repr)


def answers(store: Store) -> object:
    """What the store says that it works out of what is kept."""
    return (
        [store.find("default", Filter(text=text), "cost").sessions for text in ("grosse tex", "天", "nothing")],
        store.find("default", Filter(agent="wörld", user="user-1")).sessions,
        store.facets("default"),
        store.claim(2**62, 0, 100),
        store.append([Segment("default", trace(3), "traces", ((2).to_bytes(12, "big"),), b"", 0)]),
        store.append([Segment("default", trace(19), "traces", (bytes(12),), b"", 0)]),
        store.size().items,
        store.tenants(),
        store.refusals("acme"),
        store.session("default", "s3", 2),
    )


def test_a_backup_restored_is_the_same_in_any_kind_of_store(
    filled: tuple[str, Store], target: NewStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url, store = filled
    file, there = tmp_path / "backup", target()
    assert main(["backup", "--store", url, str(file)]) == 0
    assert main(["restore", "--store", there, str(file)]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said == [
        f"spanreel: backed up 19 sessions, 57 revisions, 30 traces, 30 segments to {str(file)!r}",
        f"spanreel: restored 19 sessions, 57 revisions, 30 traces, 30 segments from {str(file)!r}",
    ]
    restored = open_store(there)
    assert everything(restored) == everything(store)
    assert answers(restored) == answers(store)
    restored.close()


def test_a_backup_is_as_private_as_a_store_and_replaces_what_was_there(
    filled: tuple[str, Store], tmp_path: Path
) -> None:
    file = tmp_path / "backup"
    file.write_text("older")
    assert main(["backup", "--store", filled[0], str(file)]) == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.glob(".*")) == []


def test_a_backup_is_of_one_moment_while_others_write(filled: tuple[str, Store], tmp_path: Path) -> None:
    url, store = filled
    done = threading.Event()
    counts: list[int] = []

    def write() -> None:
        number = 100
        while not done.is_set():
            # Two traces in one transaction: a backup has both or none.
            store.append(
                [
                    Segment("default", trace(one), "traces", (bytes(12),), os.urandom(2000), 1)
                    for one in (number, number + 1)
                ]
            )
            number += 2
            counts.append(number)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        while len(counts) < 20:
            done.wait(0.001)
        assert main(["backup", "--store", url, str(tmp_path / "backup")]) == 0
    finally:
        done.set()
        thread.join()
    there = f"sqlite:///{tmp_path}/restored.db"
    assert main(["restore", "--store", there, str(tmp_path / "backup")]) == 0
    restored = open_store(there)
    size = restored.size()
    assert size.traces % 2 == 0
    assert size.traces >= 30 + 20
    restored.close()


ZSTD = b"\x28\xb5\x2f\xfd"


def test_a_backup_that_is_cut_or_damaged_or_foreign_changes_nothing(
    filled: tuple[str, Store], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, there = tmp_path / "backup", tmp_path / "new.db"
    main(["backup", "--store", filled[0], str(file)])
    whole = file.read_bytes()
    middle = len(whole) // 2
    wrong = {
        "cut": [whole[: len(whole) * tenths // 10] for tenths in range(1, 10)] + [whole[:-1], whole[:5]],
        "damaged": [whole[:middle] + bytes((whole[middle] ^ 0xFF,)) + whole[middle + 1 :]],
        "no backup": [
            b"",
            b"PK\3\4 a zip",
            b'{"resourceSpans": []}',
            ZSTD,
            ZSTD + b"x" * 9,
        ],
    }
    capsys.readouterr()
    for reason, contents in wrong.items():
        for content in contents:
            file.write_bytes(content)
            assert main(["restore", "--store", f"sqlite:///{there}", str(file)]) == 1
            said = capsys.readouterr().err
            assert str(file) in said
            assert "nothing was changed" in said
            assert (reason in said) or reason != "damaged"
            assert not there.exists()
    assert main(["restore", "--store", f"sqlite:///{there}", str(tmp_path / "absent")]) == 1
    assert "No such file" in capsys.readouterr().err


def test_a_backup_of_another_format_names_the_release_to_use(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header = json.dumps([{"format": "spanreel.archive", "version": 2, "release": "9.1"}]).encode()
    file = tmp_path / "backup"
    file.write_bytes(zstandard.compress(len(header).to_bytes(4, "big") + header))
    assert main(["restore", "--store", f"sqlite:///{tmp_path}/new.db", str(file)]) == 1
    said = capsys.readouterr().err
    assert "is of release '9.1' and format 2; this release reads format 1" in said


def test_where_a_backup_cannot_be_written_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    open_store(f"sqlite:///{tmp_path}/a.db").close()
    assert main(["backup", "--store", f"sqlite:///{tmp_path}/a.db", str(tmp_path / "no" / "backup")]) == 1
    assert "cannot write the backup" in capsys.readouterr().err


def test_only_an_empty_store_takes_a_backup(
    filled: tuple[str, Store], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url, store = filled
    main(["backup", "--store", url, str(tmp_path / "backup")])
    before = everything(store)
    assert main(["restore", "--store", url, str(tmp_path / "backup")]) == 1
    assert "not empty" in capsys.readouterr().err
    assert everything(store) == before


def test_a_restore_that_ends_early_says_what_is_there(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/a.db")
    fill(store)
    store.append(
        [Segment("default", trace(500 + n), "traces", (bytes(12),), os.urandom(200_000), 1) for n in range(40)]
    )
    store.close()
    assert main(["backup", "--store", f"sqlite:///{tmp_path}/a.db", str(tmp_path / "backup")]) == 0
    script = (
        "import resource, sys\n"
        "from spanreel.cli import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, resource.RLIM_INFINITY))\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    words = ["restore", "--store", f"sqlite:///{tmp_path}/b.db", str(tmp_path / "backup")]
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "restoring ended at about entry" in done.stderr
    assert "has a part of the backup now" in done.stderr


def test_erasing_prints_what_is_gone_and_what_is_not_covered(
    filled: tuple[str, Store], capsys: pytest.CaptureFixture[str]
) -> None:
    url, store = filled
    assert main(["erase", "--store", url, "--session", "s3"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "erased: 1 sessions, 3 revisions, 1 traces, 5 items, 1 reports",
        "not covered: backups, exports and what was passed on before; remove the person's data there too",
    ]
    assert store.session("default", "s3") is None
    assert main(["erase", "--store", url, "--user", "user-1"]) == 0
    assert capsys.readouterr().out.startswith("erased: 6 sessions, 18 revisions, 6 traces, 30 items, 0 reports")
    assert store.find("default", Filter(user="user-1")).sessions == ()


def test_erasing_what_is_not_there_fails_and_says_so(
    filled: tuple[str, Store], capsys: pytest.CaptureFixture[str]
) -> None:
    url, store = filled
    before = everything(store)
    assert main(["erase", "--store", url, "--session", "s3", "--tenant", "acme"]) == 1
    assert main(["erase", "--store", url, "--user", "nobody"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "spanreel: tenant 'acme' has nothing of session 's3'; nothing was erased",
        (
            "spanreel: 14 traces of which no session was made yet may be of them too: "
            "erase again when a service has made it"
        ),
        "spanreel: tenant 'default' has nothing of user 'nobody'; nothing was erased",
    ]
    assert everything(store) == before


PASSWORD = "hush" + "hush"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("store.db", "a store is sqlite:///PATH"),
        (f"mysql://me:{PASSWORD}@host/db", "a store is sqlite:///PATH"),
        ("sqlite:///", "names no file"),
        ("sqlite://host/file", "names no file"),
        ("sqlite:////nowhere/at/all/x.db", "there is no folder '/nowhere/at/all'"),
        ("sqlite:////", "is a folder"),
        (f"postgresql://me:{PASSWORD}@127.0.0.1:1/db", "port=1 dbname=db user=me"),
        (f"postgresql://me:{PASSWORD}@[127.0.0.1/db", "cannot be read"),
        (f"postgresql://me:{PASSWORD}/%zz@127.0.0.1/db", "cannot be read"),
        (f"postgresql://127.0.0.1:1/db?password={PASSWORD}&nonsense=1", "cannot be read"),
    ],
)
def test_a_store_that_cannot_be_opened_is_told_without_its_password(
    url: str, told: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert main(["erase", "--store", url, "--session", "s"]) == 1
    said = capsys.readouterr().err
    assert told in said
    assert PASSWORD not in said + caplog.text


def test_what_is_no_store_of_ours_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import sqlite3

    text, other, absent = tmp_path / "text", tmp_path / "other.db", tmp_path / "absent.db"
    text.write_text("not a database, but long enough to look at " * 100)
    with sqlite3.connect(other) as file:
        file.execute("CREATE TABLE theirs (x)")
    file.close()
    before = text.read_bytes(), other.read_bytes()
    for path in (text, other, absent):
        assert main(["erase", "--store", f"sqlite:///{path}", "--session", "s"]) == 1
    assert [line.split(";")[0].split("' ", 1)[1:] for line in capsys.readouterr().err.splitlines()] == [
        ["is no SQLite file"],
        ["is a database of something else"],
        [],
    ]
    assert (text.read_bytes(), other.read_bytes()) == before
    assert not absent.exists()


def test_a_store_that_was_cut_off_is_told_with_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cut.db"
    with closing(open_store(f"sqlite:///{path}")):
        pass
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert main(["backup", "--store", f"sqlite:///{path}", str(tmp_path / "none.backup")]) == 1
    said = capsys.readouterr().err
    assert "malformed; keep the file, and restore a backup into another" in said
    assert path.read_bytes() == whole[: len(whole) // 2]


def test_help_needs_no_database_client() -> None:
    script = (
        "import sys\nfrom spanreel.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print(sorted({'psycopg', 'zstandard', 'fastapi'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"
