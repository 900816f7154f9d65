"""Clients that are slow, silent or many, at both doors: they take nothing from the others."""

from __future__ import annotations

import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import grpc  # type: ignore[import-untyped]  # it ships no types
import pytest

from otel_collector import wait_until
from otlp_doors import SERVICES, Doors, doors, request, span
from spanreel_collector.access import Access
from spanreel_collector.rates import Rates, TooOften
from spanreel_collector.receiver.connections import BoundedConnections, bounded_connections

pytestmark = pytest.mark.slow

ONE = request(span(1))
HEAD = b"POST /v1/traces HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-protobuf\r\n"


class Patient(BoundedConnections):
    most = 5


class Impatient(Patient):
    head_seconds = 0.5


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Doors]:
    with doors(tmp_path, connections=Impatient, body_seconds=0.5) as made:
        yield made


def connect(door: Doors, *pieces: bytes) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", int(door.url.rpartition(":")[2])), timeout=60)
    with suppress(ConnectionError):  # it may have been ended before the last piece, which is seen at the next `recv`
        for piece in pieces:
            made.sendall(piece)
    return made


def used(door: Doors, whole: bytes) -> socket.socket:
    """A connection on which a request was answered: another one, where the machine was too slow for one door's time."""

    def answered() -> socket.socket | None:
        made = connect(door, whole)
        with suppress(ConnectionError):
            if made.recv(1000).startswith(b"HTTP/1.1 200"):
                return made
        made.close()
        return None

    made: socket.socket = wait_until(answered)
    return made


def is_ended(connection: socket.socket) -> bool:
    """Whether the service ends it, without an answer."""
    try:
        return connection.recv(1000) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("pieces", [[], [b"P"], [HEAD], [HEAD, b"x-more: 1\r\n"]], ids=["silent", "P", "head", "more"])
def test_who_sends_no_whole_head_is_left(pieces: list[bytes], door: Doors) -> None:
    began = time.monotonic()
    with connect(door, *pieces) as connection:
        assert is_ended(connection)
    assert time.monotonic() - began > 0.4
    assert door.serves(ONE)


def test_a_head_that_comes_a_byte_at_a_time_is_left_too(door: Doors) -> None:
    with connect(door) as connection, pytest.raises(OSError):
        for _ in range(1200):  # a minute
            connection.sendall(b"x")
            time.sleep(0.05)


def test_a_connection_that_was_used_may_be_idle_and_its_next_head_takes_no_longer(door: Doors) -> None:
    whole = HEAD + b"content-length: 0\r\n\r\n"
    with used(door, whole) as connection:
        time.sleep(1)
        connection.sendall(whole)
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")
        connection.sendall(HEAD)
        assert is_ended(connection)


def test_what_follows_a_body_is_no_header(tmp_path: Path) -> None:
    chunked = b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n" % (len(ONE), ONE)
    trailers = b"host: evil.example\r\ncontent-type: text/plain\r\nauthorization: Bearer none\r\n\r\n"
    with doors(tmp_path, body_seconds=600) as door, connect(door, HEAD + chunked + trailers) as connection:
        assert connection.recv(10_000).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("times", [1, 3])
def test_who_says_that_nothing_more_comes_gets_their_answers(times: int, tmp_path: Path) -> None:
    whole = HEAD + b"content-length: %d\r\n\r\n" % len(ONE) + ONE
    with doors(tmp_path) as door, connect(door, whole * times) as connection:
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := connection.recv(10_000):
            answer += piece
        assert answer.count(b"HTTP/1.1 200 OK") == times
        assert len(door.spans()) == 1


def test_who_goes_before_their_request_is_whole_is_not_awaited(tmp_path: Path) -> None:
    with doors(tmp_path, body_seconds=600) as door:
        with connect(door, HEAD + b"content-length: 99\r\n\r\nsome") as connection:
            connection.shutdown(socket.SHUT_WR)
            assert is_ended(connection)
        assert door.receiver.counts.read() == {}


def test_of_too_many_connections_the_longest_idle_makes_room(tmp_path: Path) -> None:
    whole = HEAD + b"content-length: 0\r\n\r\n"
    with doors(tmp_path, connections=Patient) as door, ExitStack() as held:
        idle = []
        for _ in range(Patient.most):  # one after the other: which is idle longest is sure then
            time.sleep(0.02)  # the loop's clock may count in milliseconds
            idle.append(held.enter_context(connect(door, whole)))
            assert idle[-1].recv(1000).startswith(b"HTTP/1.1 200")
        idle[0].sendall(whole)
        assert idle[0].recv(1000).startswith(b"HTTP/1.1 200")
        assert door.post(ONE).status_code == 200
        assert is_ended(idle[1])
        idle[0].sendall(whole)
        assert idle[0].recv(1000).startswith(b"HTTP/1.1 200")


def test_of_connections_that_all_work_none_is_ended_for_another(tmp_path: Path) -> None:
    with doors(tmp_path, connections=Patient, body_seconds=60) as door:
        head = HEAD + b"expect: 100-continue\r\ncontent-length: %d\r\n\r\n" % len(ONE)
        busy = [connect(door, head) for _ in range(Patient.most)]
        for connection in busy:  # which says that the request is at work, and waits for its body
            assert connection.recv(1000).startswith(b"HTTP/1.1 100")
        with connect(door) as another:
            assert is_ended(another)
        for connection in busy:
            connection.sendall(ONE)
            assert connection.recv(1000).startswith(b"HTTP/1.1 200")
            connection.close()


def test_there_are_no_more_connections_than_files_may_be_open() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert bounded_connections(10).most == 10
    most = bounded_connections(hard).most
    assert most <= hard - 256
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > most
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# -- gRPC ------------------------------------------------------------------------------------------------------------


def test_calls_whose_message_does_not_come_leave_their_threads_to_others(door: Doors) -> None:
    silent = threading.Event()

    def nothing() -> Iterator[bytes]:
        silent.wait(60)
        yield from ()

    with grpc.insecure_channel(f"127.0.0.1:{door.port}") as channel:
        slow = channel.stream_unary(f"/{SERVICES['traces']}/Export")
        calls = [slow.future(nothing(), timeout=60) for _ in range(40)]
        time.sleep(0.2)  # so that they have come before it, which nothing depends on

        def answered() -> bool:
            try:
                return door.call(ONE) == b""
            except grpc.RpcError as error:
                if error.code() is grpc.StatusCode.CANCELLED:  # on a machine that stopped, its message is late too
                    return False
                raise

        assert wait_until(answered)
        assert {call.code() for call in calls[:16]} == {grpc.StatusCode.CANCELLED}
        silent.set()


def test_a_call_without_a_message_is_an_invalid_argument(tmp_path: Path) -> None:
    with doors(tmp_path) as door, grpc.insecure_channel(f"127.0.0.1:{door.port}") as channel:
        with pytest.raises(grpc.RpcError) as error:
            channel.stream_unary(f"/{SERVICES['traces']}/Export")(iter(()), timeout=60)
        assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT


# -- how often -------------------------------------------------------------------------------------------------------


def test_a_caller_may_ask_so_often_and_some_more_at_once() -> None:
    now = 100.0
    rates = Rates(2.0, lambda: now)
    for _ in range(10):
        rates.take("a")
    with pytest.raises(TooOften) as error:
        rates.take("a")
    assert error.value.seconds == pytest.approx(0.5)
    rates.take("b")
    now += 0.5
    rates.take("a")
    with pytest.raises(TooOften):
        rates.take("a")
    now += 1000
    for _ in range(10):
        rates.take("a")
    with pytest.raises(TooOften):
        rates.take("a")


def test_a_rate_of_less_than_one_in_the_time_of_a_burst_admits_one() -> None:
    now = 0.0
    rates = Rates(0.01, lambda: now)
    rates.take("a")
    with pytest.raises(TooOften) as error:
        rates.take("a")
    now += error.value.seconds
    rates.take("a")


def test_who_asks_too_often_is_told_when_to_come_again(tmp_path: Path) -> None:
    with doors(tmp_path, access=Access(rates=Rates(0.4, lambda: 100.0))) as door:
        assert door.post(ONE).status_code == 200
        assert door.call(ONE) == b""
        answer = door.post(ONE)
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "3")
        with pytest.raises(grpc.RpcError) as error:
            door.call(ONE)
        assert error.value.code() is grpc.StatusCode.UNAVAILABLE
