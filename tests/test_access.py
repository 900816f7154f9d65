"""Who may do what: tokens and where they come from, addresses, and both doors of the receiver behind them."""

from __future__ import annotations

import hashlib
import logging
import ssl
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]  # it ships no types
import httpx
import pytest
from google.rpc.status_pb2 import Status

from certificates import make_tls
from otlp_doors import JSON, PROTOBUF, SERVICES, Doors, doors, request, span, status_of
from spanreel.errors import SettingsError
from spanreel_collector.access import (
    ANYBODY,
    Access,
    Caller,
    Denied,
    Scope,
    Tls,
    admit,
    check_address,
    read_access,
    read_tokens,
)
from spanreel_collector.rates import TooOften
from spanreel_collector.receiver.grpc import start_grpc

WRITES, READS = "writes-" + "w" * 20, "reads-" + "r" * 20
ONE = request(span(1))


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tokens.toml"
    path.write_text(
        f'[[token]]\nname = "agents"\ntenant = "acme"\nscopes = ["ingest"]\nsha256 = "{digest(WRITES)}"\n'
        f'[[token]]\nname = "people"\nscopes = ["read", "erase"]\nsha256 = "{digest(READS).upper()}"\n',
        encoding="utf-8",
    )
    return path


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


# -- tokens ----------------------------------------------------------------------------------------------------------


def test_a_token_says_who_asks_and_what_they_may(file: Path) -> None:
    access = read_access(str(file), {})
    agents = Caller("acme", frozenset({Scope.INGEST}), "agents")
    assert admit(access, bearer(WRITES), Scope.INGEST) == agents
    assert admit(access, {"authorization": f"bearer   {WRITES} "}, Scope.INGEST) == agents
    people = admit(access, bearer(READS), Scope.ERASE)
    assert people == Caller("default", frozenset({Scope.READ, Scope.ERASE}), "people")
    assert admit(access, {}, None).scopes == frozenset()


@pytest.mark.parametrize(
    ("headers", "scope", "status"),
    [
        ({}, Scope.INGEST, 401),
        (bearer(""), Scope.INGEST, 401),
        (bearer(WRITES + "x"), Scope.INGEST, 401),
        (bearer(digest(WRITES)), Scope.INGEST, 401),
        ({"authorization": f"Basic {WRITES}"}, Scope.INGEST, 401),
        ({"authorization": WRITES}, Scope.INGEST, 401),
        ({"authorization": "Bearer \udcff\xff"}, Scope.INGEST, 401),
        (bearer(WRITES), Scope.READ, 403),
        (bearer(WRITES), Scope.ERASE, 403),
        (bearer(READS), Scope.INGEST, 403),
    ],
)
def test_whoever_is_not_known_or_may_not_is_denied(
    headers: dict[str, str], scope: Scope, status: int, file: Path
) -> None:
    with pytest.raises(Denied) as denied:
        admit(read_access(str(file), {}), headers, scope)
    assert denied.value.status == status
    assert WRITES not in str(denied.value)


def test_tokens_come_from_the_environment_too(file: Path) -> None:
    environment = {"SPANREEL_TOKEN": "all-" + "x" * 20, "SPANREEL_INGEST_TOKEN": "in-" + "y" * 20}
    access = read_access(str(file), environment)
    assert [token.name for token in access.tokens] == ["agents", "people", *environment]
    assert admit(access, bearer("all-" + "x" * 20), Scope.ERASE).scopes == set(Scope)
    assert admit(access, bearer("in-" + "y" * 20), Scope.INGEST).scopes == {Scope.INGEST}
    assert all("x" * 20 not in repr(token) for token in access.tokens)


def test_a_short_token_is_refused_without_being_said() -> None:
    with pytest.raises(SettingsError, match="fewer than 16 characters") as error:
        read_access("", {"SPANREEL_READ_TOKEN": "hunter2"})
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[[token]]\nname=", "is not TOML (at end of document)"),
        ("", "token: Field required"),
        ('[[token]]\nname = "a"\nscopes = ["ingest"]\nsha256 = "the-token-itself"\n', "token.0.sha256"),
        ('[[token]]\nname = "a"\nscopes = ["write"]\nsha256 = "' + "0" * 64 + '"\n', "token.0.scopes.0"),
        ('[[token]]\nname = "a"\nscopes = []\nsha256 = "' + "0" * 64 + '"\n', "token.0.scopes"),
        ('[[token]]\nname = "a"\ntoken = "the-token-itself"\nscopes = ["read"]\n', "token.0.token"),
    ],
)
def test_a_token_file_that_is_wrong_is_told_by_its_place_alone(content: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(SettingsError) as error:
        read_tokens(path)
    assert said in str(error.value)
    assert "the-token-itself" not in str(error.value)


def test_a_digest_that_is_none_is_told_with_how_to_make_one_and_nothing_that_follows_from_it(tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    path.write_text('[[token]]\nname = "a"\nscopes = ["ingest"]\nsha256 = "the-token-itself"\n', encoding="utf-8")
    with pytest.raises(SettingsError, match=r"token\.0\.sha256: expected .* sha256sum; a token is written as") as error:
        read_tokens(path)
    assert "item" not in str(error.value)


def test_no_token_is_two_that_may_not_do_the_same(file: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="'people' and 'SPANREEL_INGEST_TOKEN' are the same token") as error:
        read_access(str(file), {"SPANREEL_INGEST_TOKEN": READS})
    assert READS not in str(error.value)
    with pytest.raises(SettingsError, match="'SPANREEL_TOKEN' and 'SPANREEL_READ_TOKEN'"):
        read_access("", {"SPANREEL_TOKEN": WRITES, "SPANREEL_READ_TOKEN": WRITES})
    # One that is written twice does no harm: while it is moved from a file to the environment.
    again = tmp_path / "again.toml"
    again.write_text(file.read_text(encoding="utf-8") * 2, encoding="utf-8")
    assert len(read_tokens(again)) == 4
    read_access(str(again), {})


def test_two_tenants_that_name_their_tokens_alike_are_counted_apart(tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    said = '[[token]]\nname = "agents"\ntenant = "{0}"\nscopes = ["ingest"]\nsha256 = "{1}"\n'
    path.write_text(said.format("a", digest(WRITES)) + said.format("b", digest(READS)), encoding="utf-8")
    access = read_access(str(path), {}, rate=0.001)
    admit(access, bearer(WRITES), Scope.INGEST)
    admit(access, bearer(READS), Scope.INGEST)
    with pytest.raises(TooOften):
        admit(access, bearer(READS), Scope.INGEST)


def test_a_token_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        read_tokens(tmp_path / "none.toml")


# -- without tokens --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "[::1]", "127.8.0.1"])
def test_this_machine_alone_needs_no_tokens(host: str) -> None:
    check_address(Access(), host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.168.1.5", "example.test"])
def test_other_machines_need_tokens(host: str, file: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no tokens"):
        check_address(Access(), host)
    check_address(read_access(str(file), {}), host)


def test_grpc_does_not_start_where_it_must_not(tmp_path: Path) -> None:
    with doors(tmp_path) as door, pytest.raises(SettingsError, match="no tokens"):
        start_grpc(door.receiver, Access(), ("0.0.0.0", 0))


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"host": "localhost:4318"},
        {"host": "127.0.0.1"},
        {"host": "[::1]:4318"},
        {"host": "LOCALHOST."},
        {"host": "agents.test:80"},
        {"host": "localhost:4318", "origin": "http://localhost:4318"},
        {"host": "localhost:4318", "sec-fetch-site": "same-origin"},
        {"host": "localhost:4318", "sec-fetch-site": "none", "sec-fetch-mode": "navigate"},
        {"host": "localhost:4318", "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
    ],
)
def test_anybody_on_this_machine_may(headers: dict[str, str]) -> None:
    assert admit(Access(hosts=frozenset({"agents.test"})), headers, Scope.ERASE) is ANYBODY


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.test:4318"},
        {"host": "localhost.evil.test"},
        {"host": "127.0.0.1.evil.test"},
        {"host": "[broken"},
        {"host": ""},
        {"host": "localhost:4318", "origin": "http://evil.test"},
        {"host": "localhost:4318", "origin": "http://localhost:3000"},
        {"host": "localhost:4318", "origin": "null"},
        {"host": "localhost:4318", "origin": "http://["},
        {"host": "localhost:4318", "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
        {"host": "localhost:4318", "sec-fetch-site": "same-site", "sec-fetch-mode": "cors"},
    ],
)
def test_a_page_of_another_site_may_not(headers: dict[str, str]) -> None:
    with pytest.raises(Denied) as denied:
        admit(Access(), headers, Scope.READ)
    assert denied.value.status == 403


# -- both doors ------------------------------------------------------------------------------------------------------


def called(door: Doors, **options: Any) -> tuple[grpc.StatusCode, int]:
    with pytest.raises(grpc.RpcError) as error:
        door.call(ONE, **options)
    details = dict(error.value.trailing_metadata())["grpc-status-details-bin"]
    return error.value.code(), Status.FromString(details).code


def test_both_doors_ask_for_a_token_and_keep_what_comes_for_its_tenant(
    file: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with doors(tmp_path, access=read_access(str(file), {})) as door:
        for kind in (PROTOBUF, JSON):
            none = door.post(ONE, kind)
            assert (none.status_code, status_of(none)[0]) == (401, 16)
            assert none.headers["www-authenticate"] == 'Bearer realm="spanreel"'
            assert none.headers["content-type"] == kind
            wrong = door.post(ONE, kind, authorization=f"Bearer {READS}")
            assert (wrong.status_code, status_of(wrong)[0]) == (403, 7)
        assert door.post(ONE, signal="elsewhere").status_code == 401
        assert called(door) == (grpc.StatusCode.UNAUTHENTICATED, 16)
        assert called(door, metadata=(("authorization", f"Bearer {READS}"),)) == (grpc.StatusCode.PERMISSION_DENIED, 7)
        assert called(door, signal="metrics")[0] is grpc.StatusCode.UNAUTHENTICATED
        assert door.traces() == frozenset()
        assert door.post(ONE, authorization=f"Bearer {WRITES}").status_code == 200
        assert door.call(request(span(2)), metadata=(("authorization", f"Bearer {WRITES}"),)) == b""
        traces = door.traces()
        assert door.segments("default", traces) == []
        assert [len(segment.items) for segment in door.segments("acme", traces)] == [1, 1]
    assert WRITES not in caplog.text
    assert READS not in caplog.text


def test_the_body_of_whoever_may_not_is_not_read(file: Path, tmp_path: Path) -> None:
    with doors(tmp_path, access=read_access(str(file), {})) as door:
        response = door.post(b"garbage" * 1_000_000)
        assert response.status_code == 401
        assert door.receiver.committer.waiting == 0
        assert door.store.refusals("default") == ()


def test_a_page_of_another_site_cannot_send_spans(tmp_path: Path) -> None:
    with doors(tmp_path) as door:
        assert door.post(ONE, origin="http://evil.test").status_code == 403
        assert door.post(ONE, host="evil.test").status_code == 403
        assert door.post(ONE).status_code == 200


def test_tls_is_spoken_and_callers_show_their_certificate(tmp_path: Path) -> None:
    tls, authority, (certificate, key) = make_tls(tmp_path)
    with doors(tmp_path, tls=tls) as door:
        context = ssl.create_default_context(cafile=str(authority))
        with httpx.Client(verify=context, timeout=60) as client, pytest.raises(httpx.TransportError):
            client.post(f"{door.url}/v1/traces", content=ONE, headers={"content-type": PROTOBUF})
        context.load_cert_chain(certificate, key)
        with httpx.Client(verify=context, timeout=60) as client:
            response = client.post(f"{door.url}/v1/traces", content=ONE, headers={"content-type": PROTOBUF})
        assert response.status_code == 200

        def call(*pair: bytes) -> bytes:
            shown = {"private_key": pair[1], "certificate_chain": pair[0]} if pair else {}
            credentials = grpc.ssl_channel_credentials(authority.read_bytes(), **shown)
            with grpc.secure_channel(f"localhost:{door.port}", credentials) as channel:
                export = channel.unary_unary(f"/{SERVICES['traces']}/Export")
                answer: bytes = export(ONE, timeout=60)
                return answer

        with pytest.raises(grpc.RpcError):
            call()
        assert call(certificate.read_bytes(), key.read_bytes()) == b""


def test_a_file_of_tls_that_is_not_there_is_told(tmp_path: Path) -> None:
    with doors(tmp_path) as door, pytest.raises(SettingsError, match="a file of TLS cannot be read"):
        start_grpc(door.receiver, Access(), ("127.0.0.1", 0), Tls("none.pem", "none.key"))
