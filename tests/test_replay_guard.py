"""The guard: what goes past every point is stopped before a byte leaves, and named."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import platform
import socket
import subprocess
import sys
import threading
import types
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import aiohttp
import psycopg
import pytest

from replaying import Book, pay, pay_in_child
from spanreel.errors import ReplayStop
from spanreel.replay.guarding import guard
from spanreel.replay.judging.verdict import Report, Verdict
from spanreel.replay.running.runner import replay
from spanreel.session import Session
from spanreel.settings import REPLAY_REPORT

grpc: Any = pytest.importorskip("grpc")


def recording() -> Session:
    book = Book()
    run = book.run(agent=None, implicit=True)
    book.tool(run, "pay", {"amount": 1}, "recorded")
    return book.session()


class _Handler(BaseHTTPRequestHandler):
    seen = 0

    def do_GET(self) -> None:
        _Handler.seen += 1
        self.send_response(204)
        self.end_headers()

    def log_message(self, *arguments: Any) -> None:
        """Nothing."""


@pytest.fixture
def server() -> Iterator[int]:
    _Handler.seen = 0
    with HTTPServer(("127.0.0.1", 0), _Handler) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield http.server_port
        http.shutdown()
        thread.join()


def reason(report: Report | None) -> str:
    assert report is not None
    assert (report.verdict, report.exit_code) == (Verdict.NOT_INTERCEPTED, 4)
    return report.reasons[0]


def test_an_unknown_client_is_stopped_before_a_byte_leaves(server: int) -> None:
    with replay(recording(), check=False) as playing:
        urllib.request.urlopen(f"http://127.0.0.1:{server}/v1/chat/completions")
    assert _Handler.seen == 0
    said = reason(playing.report)
    assert said.startswith(f"a connection to 127.0.0.1:{server} from tests/test_replay_guard.py:")
    assert said.endswith("(test_an_unknown_client_is_stopped_before_a_byte_leaves) would have gone past the replay")


def test_an_allowed_address_is_reached_by_its_name_too(server: int) -> None:
    with replay(recording(), allow=[f"localhost:{server}"]):
        urllib.request.urlopen(f"http://127.0.0.1:{server}/").close()
        urllib.request.urlopen(f"http://localhost:{server}/").close()
        assert pay(1) == "recorded"
    assert _Handler.seen == 2


def test_another_port_is_not_allowed(server: int) -> None:
    with replay(recording(), check=False, allow=[f"127.0.0.1:{server + 1}"]) as playing:
        urllib.request.urlopen(f"http://127.0.0.1:{server}/").close()
    reason(playing.report)


def test_names_are_not_looked_up() -> None:
    with replay(recording(), check=False) as playing:
        socket.getaddrinfo("api.example.com", 443)
    assert "a connection to api.example.com from" in reason(playing.report)
    with replay(recording(), check=False) as playing:
        socket.getaddrinfo(b"api.example.com", 443)
    assert "a connection to api.example.com from" in reason(playing.report)


def test_datagrams_are_stopped() -> None:
    with replay(recording(), check=False) as playing, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.sendto(b"x", ("127.0.0.1", 53))
    assert "127.0.0.1:53" in reason(playing.report)


def test_what_stays_in_the_process_or_is_its_log_passes() -> None:
    with replay(recording()):
        one, other = socket.socketpair()
        one.close()
        other.close()
        socket.getaddrinfo("127.0.0.1", 80)
        socket.getaddrinfo("::1", 80)
        socket.getaddrinfo("localhost", 80)
        socket.getaddrinfo(None, 80)
        socket.gethostbyaddr("127.0.0.1")
        socket.getnameinfo(("127.0.0.1", 80), socket.NI_NUMERICHOST)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log, contextlib.suppress(OSError):
            log.connect("/dev/log")
        with socket.create_server(("127.0.0.1", 0)):
            pass
        asyncio.run(asyncio.sleep(0))
        pay(1)


@pytest.fixture
def local(tmp_path: Path) -> Iterator[str]:
    """A server's socket of this machine."""
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        yield path


def test_a_server_of_this_machine_is_not_reached_unless_it_is_allowed(local: str) -> None:
    with replay(recording(), check=False) as playing, socket.socket(socket.AF_UNIX) as client:
        client.connect(local)
    assert f"a connection to unix:{local} from" in reason(playing.report)
    with replay(recording(), allow=[f"unix:{local}"]), socket.socket(socket.AF_UNIX) as client:
        client.connect(local)
        pay(1)


def test_addresses_are_not_asked_for_their_names() -> None:
    for ask in (lambda: socket.gethostbyaddr("192.0.2.1"), lambda: socket.getnameinfo(("192.0.2.1", 80), 0)):
        with replay(recording(), check=False) as playing:
            ask()
        assert "(<lambda>) would have gone past the replay" in reason(playing.report)


async def test_a_connection_of_asyncio_is_stopped(server: int) -> None:
    with replay(recording(), check=False) as playing:
        await asyncio.open_connection("127.0.0.1", server)
    assert "asyncio_is_stopped" in reason(playing.report)


def test_after_the_replay_connections_pass(server: int) -> None:
    with replay(recording()):
        pay(1)
    urllib.request.urlopen(f"http://127.0.0.1:{server}/").close()
    assert _Handler.seen == 1


def test_telemetry_is_held_back_and_the_replay_goes_on(server: int) -> None:
    exporter = types.ModuleType("opentelemetry.exporter.otlp.mine")
    exec("def send(url):\n    import urllib.request\n    urllib.request.urlopen(url)", exporter.__dict__)
    with replay(recording()) as playing:
        with pytest.raises(OSError, match="a replay sends no telemetry"):
            exporter.send(f"http://127.0.0.1:{server}/v1/traces")
        assert pay(1) == "recorded"
    assert _Handler.seen == 0
    assert playing.report is not None
    assert playing.report.notes == (f"telemetry to 127.0.0.1:{server} was held back",)


def test_a_grpc_call_is_stopped(server: int) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{server}") as channel:
        ask = channel.unary_unary("/model.Service/Ask")
        with replay(recording(), check=False) as playing:
            ask(b"hello")
    assert f"a connection to 127.0.0.1:{server}" in reason(playing.report)


async def test_an_asynchronous_grpc_call_is_stopped(server: int) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server}") as channel:
        ask = channel.unary_unary("/model.Service/Ask")
        with replay(recording(), check=False) as playing:
            await ask(b"hello")
    assert "would have gone past" in reason(playing.report)


def test_a_loop_of_uvloop_is_stopped(server: int) -> None:
    uvloop = pytest.importorskip("uvloop", reason="uvloop is not installed")

    async def work() -> None:
        await asyncio.open_connection("127.0.0.1", server)

    with replay(recording(), check=False) as playing:
        uvloop.run(work())
    assert _Handler.seen == 0
    assert f"a connection to 127.0.0.1:{server}" in reason(playing.report)


@pytest.mark.parametrize("way", ["datagrams", "unix"])
def test_uvloop_s_other_sockets_are_stopped(way: str, local: str, server: int) -> None:
    uvloop = pytest.importorskip("uvloop")

    async def reach() -> None:
        loop = asyncio.get_running_loop()
        if way == "unix":
            await asyncio.open_unix_connection(local)
        else:
            await loop.create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=("127.0.0.1", server))

    with replay(recording(), check=False) as playing:
        uvloop.run(reach())
    assert (f"unix:{local}" if way == "unix" else f"127.0.0.1:{server}") in reason(playing.report)


def test_a_grpc_channel_does_not_connect_by_itself(server: int) -> None:
    with replay(recording(), check=False) as playing, grpc.insecure_channel(f"127.0.0.1:{server}") as channel:
        grpc.channel_ready_future(channel).result(timeout=60)
    assert f"127.0.0.1:{server}" in reason(playing.report)


@pytest.mark.parametrize(
    "where", ["host=127.0.0.1 port={} dbname=shop password=x", "postgresql://someone:x@127.0.0.1:{}/shop"]
)
def test_a_database_s_driver_in_c_is_stopped_and_no_password_is_told(where: str, server: int) -> None:
    with replay(recording(), check=False) as playing:
        psycopg.connect(where.format(server), connect_timeout=60)
    assert reason(playing.report).startswith(f"a connection to 127.0.0.1:{server} from tests/test_replay_guard.py:")
    assert _Handler.seen == 0


def _fork(child: Callable[[], object]) -> None:
    process = os.fork()
    if process == 0:
        try:
            child()
        finally:
            os._exit(0)
    os.waitpid(process, 0)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["fork", "spawn", "program"])
def test_what_a_child_would_have_done_is_told_where_there_is_no_command(way: str, server: int) -> None:
    url = f"http://127.0.0.1:{server}/"
    with replay(recording(), check=False) as playing:
        if way == "program":
            script = f"import urllib.request; urllib.request.urlopen({url!r})"
            subprocess.run([sys.executable, "-c", script], check=False, capture_output=True)
        elif way == "fork":
            _fork(lambda: urllib.request.urlopen(url))
        else:
            process = multiprocessing.get_context("spawn").Process(target=urllib.request.urlopen, args=(url,))
            process.start()
            process.join()
        pay(1)
    assert f"a connection to 127.0.0.1:{server} from" in reason(playing.report)
    assert _Handler.seen == 0
    assert REPLAY_REPORT not in os.environ


def test_a_fork_that_was_to_become_a_program_goes_on_with_nothing_else(tmp_path: Path) -> None:
    went_on = tmp_path / "went on"

    def become() -> None:
        with contextlib.suppress(BaseException):
            os.execv("/bin/true", ["true"])
        went_on.touch()

    with replay(recording(), check=False) as playing:
        _fork(become)
        pay(1)
    assert "the program 'true', started by" in reason(playing.report)
    assert not went_on.exists()


def test_a_connection_that_was_open_before_sends_nothing(server: int) -> None:
    connection = HTTPConnection("127.0.0.1", server)
    connection.connect()
    try:
        with replay(recording(), check=False) as playing:
            connection.request("GET", "/")
        assert f"a connection to 127.0.0.1:{server}" in reason(playing.report)
        assert _Handler.seen == 0
    finally:
        connection.close()


async def test_a_session_of_aiohttp_that_was_open_before_sends_nothing(server: int) -> None:
    async with aiohttp.ClientSession(f"http://127.0.0.1:{server}") as session:
        async with session.get("/"):
            pass
        with replay(recording(), check=False) as playing:
            await session.get("/")
    assert f"a connection to 127.0.0.1:{server}" in reason(playing.report)
    assert _Handler.seen == 1


# -- other processes -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "fork"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_tool_in_a_process_pool_does_not_run(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.platform == "win32":
        pytest.skip("no fork on this system")
    monkeypatch.setenv("LEDGER", str(tmp_path / "ledger"))
    tests = str(Path(__file__).parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([tests, *(path for path in sys.path if path)]))
    with (
        replay(recording(), check=False),
        ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as pool,
    ):
        stopped = pool.submit(pay_in_child, 1).exception()
    assert isinstance(stopped, ReplayStop)
    assert not (tmp_path / "ledger").exists()


@pytest.mark.slow
def test_a_tool_in_a_child_process_does_not_run_and_its_network_is_closed(server: int, tmp_path: Path) -> None:
    code = (
        "import spanreel.auto, spanreel, urllib.request\n"
        "@spanreel.tool()\n"
        "def pay(amount):\n"
        f"    open({str(tmp_path / 'ledger')!r}, 'w')\n"
        "for work in (lambda: pay(1), lambda: urllib.request.urlopen('http://127.0.0.1:%d/')):\n"
        % server
        + "    try:\n        work()\n        print('ran')\n    except BaseException as error:\n        print(error)\n"
    )
    with replay(recording(), check=False):
        pay(1)
        path = os.pathsep.join([os.environ["PYTHONPATH"], *(path for path in sys.path if path)])
        environment = {"PYTHONPATH": path, "SPANREEL_REPLAY": "session.json"}
        done = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=True
        )
    lines = done.stdout.splitlines()
    assert lines[0] == "this process was started by a replayed one (SPANREEL_REPLAY_GUARD); nothing runs live in it"
    assert lines[1].startswith(f"a connection to 127.0.0.1:{server} from ")
    assert _Handler.seen == 0
    assert not (tmp_path / "ledger").exists()


TOUCH = "import pathlib; pathlib.Path({!r}).touch()"


def _start_in_asyncio(file: str) -> None:
    async def start() -> None:
        await (await asyncio.create_subprocess_exec("touch", file)).wait()

    asyncio.run(start())


def _start_in_uvloop(file: str) -> None:
    uvloop = pytest.importorskip("uvloop", reason="uvloop is not installed")

    async def start() -> None:
        await (await asyncio.create_subprocess_exec("touch", file)).wait()

    uvloop.run(start())


@pytest.mark.skipif(sys.platform == "win32", reason="no such programs on this system")
@pytest.mark.parametrize(
    ("start", "name"),
    [
        (lambda file: subprocess.run(["touch", file], check=True), "touch"),
        (lambda file: subprocess.run(f"FOO=1 touch '{file}'", shell=True, check=True), "touch"),
        (lambda file: subprocess.run(f"true && touch '{file}'", shell=True, check=True), "sh"),
        (lambda file: os.system(f"touch '{file}'"), "touch"),
        (lambda file: os.posix_spawnp("touch", ["touch", file], os.environ), "touch"),
        (_start_in_asyncio, "touch"),
        (_start_in_uvloop, "touch"),
        # Pythons that would not load us.
        (lambda file: subprocess.run([sys.executable, "-I", "-c", TOUCH.format(file)], check=True), None),
        (lambda file: subprocess.run([sys.executable, "-c", TOUCH.format(file)], check=True, env={}), None),
    ],
)
def test_a_program_is_not_started(start: Any, name: str | None, tmp_path: Path) -> None:
    with replay(recording(), check=False) as playing:
        start(str(tmp_path / "started"))
    name = name or Path(sys.executable).name
    assert reason(playing.report).startswith(f"the program {name!r}, started by tests/test_replay_guard.py:")
    assert not (tmp_path / "started").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no such programs on this system")
def test_a_program_that_is_allowed_is_started_and_listed(tmp_path: Path) -> None:
    with replay(recording(), allow=["program:touch"]) as playing:
        subprocess.run(["touch", str(tmp_path / "started")], check=True)
        pay(1)
    assert (tmp_path / "started").exists()
    assert playing.report is not None
    (note,) = playing.report.notes
    assert note.startswith("the program 'touch' was started by tests/test_replay_guard.py:")


def test_a_look_at_the_machine_passes() -> None:
    with replay(recording()):
        platform.processor()
        pay(1)


@pytest.mark.slow
def test_a_python_that_loads_us_is_started_and_runs_nothing_live(server: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    code = f"print('on'); import urllib.request; urllib.request.urlopen('http://127.0.0.1:{server}/')"
    with replay(recording(), check=False) as playing:
        pay(1)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("on\n", 1)
    assert f"a connection to 127.0.0.1:{server} from" in reason(playing.report)
    assert _Handler.seen == 0


def test_the_guard_is_put_in_place_once(monkeypatch: pytest.MonkeyPatch) -> None:
    guard.install()
    again: list[object] = []
    monkeypatch.setattr(sys, "addaudithook", again.append)
    guard.install()
    assert again == []


def test_a_thread_that_outlives_its_replay_reaches_nothing(server: int) -> None:
    over, said = threading.Event(), []

    def late() -> None:
        over.wait(60)
        try:
            socket.create_connection(("127.0.0.1", server)).close()
            said.append("connected")
        except ReplayStop as stop:
            said.append(str(stop))

    with replay(recording(), check=False):
        thread = threading.Thread(target=late)
        thread.start()
    over.set()
    thread.join()
    assert len(said) == 1
    assert f"a connection to 127.0.0.1:{server}" in said[0]
