"""Exceptions of tools in a replay: of their class, with their text, what they were made of, and their attributes."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import urllib.error
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pydantic
import pytest
import requests
from pydantic_core import PydanticCustomError

import spanreel
from kinds import KINDS, Kind, Scene, hand_written, play, record, script
from spanreel.errors import RecordedFailure
from spanreel.replay.judging.verdict import Verdict
from spanreel.session import Session
from spanreel.session_files import read_session, write_session
from wire_server import calls, completion


@dataclass
class Limit:
    seconds: float
    of: Decimal


class Refused(Exception):
    def __init__(self, code: int, *, limit: Limit, until: dt.datetime) -> None:
        super().__init__(f"refused with {code}")
        self.code, self.limit, self.until = code, limit, until


class Unreachable(OSError):
    retry_after = 0.0


def refused() -> Exception:
    return Refused(429, limit=Limit(1.5, Decimal("2.50")), until=dt.datetime(2026, 3, 1, tzinfo=dt.UTC))


def noted() -> Exception:
    error = ValueError("no such city")
    error.add_note("asked for Rom")
    return error


def unreachable() -> Exception:
    error = Unreachable(111, "Connection refused", "/run/shop.sock")
    error.retry_after = 2.5
    return error


def unreadable() -> Exception:
    return json.JSONDecodeError("Expecting value", "{oh}", 1)


def several() -> Exception:
    return LookupError("shelf", 3, (1, 2), {"a": 1})


class Booking(pydantic.BaseModel):
    nights: int
    guests: list[str]

    @pydantic.field_validator("nights")
    @classmethod
    def few(cls, nights: int) -> int:
        if nights > 5:
            raise ValueError("too {many} nights")
        return nights

    @pydantic.model_validator(mode="after")
    def somebody(self) -> Booking:
        if not self.guests:
            raise PydanticCustomError("nobody", "nobody stays {nights} nights", {"nights": self.nights})
        return self


@pytest.mark.parametrize("booking", [{"nights": "x"}, {"nights": 9, "guests": [1]}, {"nights": 1, "guests": []}])
def test_a_models_validation_fails_again_as_itself(booking: dict[str, Any], tmp_path: Path) -> None:
    @spanreel.tool()
    def book() -> str:
        return str(Booking(**booking))

    _, (first, second) = replayed(book, tmp_path)
    assert isinstance(first, pydantic.ValidationError)
    assert isinstance(second, pydantic.ValidationError)
    assert (str(second), second.title) == (str(first), first.title)
    assert repr(second.errors()) == repr(first.errors())


def test_what_an_exception_was_raised_from_is_there_too(tmp_path: Path) -> None:
    @spanreel.tool()
    def look() -> str:
        try:
            raise refused()
        except Refused as error:
            raise LookupError("nothing found") from error

    _, (first, second) = replayed(look, tmp_path)
    assert (type(second), str(second)) == (LookupError, "nothing found")
    assert second.__cause__ is not first.__cause__
    assert isinstance(first.__cause__, Refused)
    assert isinstance(second.__cause__, Refused)
    assert all_of(second.__cause__) == all_of(first.__cause__)


SECRET = "sk-" + "proj-abcdefghij1234567890ABCDEFGHIJ"


@pytest.mark.parametrize("library", [httpx, httpx2])
def test_the_answer_that_an_exception_was_raised_for_is_there_too(library: Any, tmp_path: Path) -> None:
    @spanreel.tool()
    def look() -> str:
        request = library.Request("GET", "http://shop.example/a?b=1", headers={"authorization": f"Bearer {SECRET}"})
        headers = {"x-shop": "7", "content-type": "text/plain; charset=latin-1", "set-cookie": f"id={SECRET}"}
        response = library.Response(404, content="nö".encode("latin-1"), headers=headers, request=request)
        response.raise_for_status()
        return response.text  # type: ignore[no-any-return]  # of either library

    session, caught = replayed(look, tmp_path)
    first, second = [
        (str(error), error.response.status_code, error.response.text, str(error.request.url), error.request.method)
        for error in caught
        if isinstance(error, library.HTTPStatusError)
    ]
    assert second == first
    assert caught[1].response.headers["x-shop"] == "7"  # type: ignore[attr-defined]  # as told above
    assert SECRET not in write_session(session)


def test_the_answer_that_an_exception_of_requests_was_raised_for_is_there_too(tmp_path: Path) -> None:
    @spanreel.tool()
    def look() -> str:
        response = requests.Response()
        response.status_code, response.url, response.encoding = 503, "http://shop.example/a", "utf-8"
        response._content = b"closed"  # as a session sets it
        response.request = requests.Request("GET", response.url, headers={"authorization": SECRET}).prepare()
        response.raise_for_status()
        return response.text

    _, caught = replayed(look, tmp_path)
    first, second = [
        (str(error), error.response.status_code, error.response.text, error.response.url, error.request.method)
        for error in caught
        if isinstance(error, requests.HTTPError) and error.request is not None
    ]
    assert second == first


FAILURES: list[Callable[[], Exception]] = [refused, noted, unreachable, unreadable, several]


def all_of(error: Exception) -> tuple[Any, ...]:
    fields = {name: value for name, value in vars(error).items() if name != "spanreel"}
    return type(error).__qualname__, str(error), error.args, fields


def replayed(tool: Callable[[], Any], tmp_path: Path, **settings: Any) -> tuple[Session, list[Exception]]:
    """The failures that an agent's own code caught, when it was recorded and in the replay."""
    caught: list[Exception] = []

    def before() -> None:
        try:
            tool()
        except Exception as error:  # noqa: BLE001 - each test looks at what it is
            caught.append(error)

    scene = Scene(script(completion("Done.")), before=before)
    session = record(lambda: hand_written(scene), tmp_path, **settings)
    report = play(read_session(write_session(session)), hand_written, scene)
    assert report.verdict is Verdict.PASS, report.reasons
    return session, caught


@pytest.mark.parametrize("failure", FAILURES)
def test_an_exception_is_raised_again_with_what_it_was_made_of(
    failure: Callable[[], Exception], tmp_path: Path
) -> None:
    @spanreel.tool()
    def look() -> str:
        raise failure()

    session, (first, second) = replayed(look, tmp_path)
    assert session.replay.eligible, session.replay.reasons
    assert first is not second
    assert type(second) is type(first)
    assert all_of(second) == all_of(first) == all_of(failure())


def test_the_fields_that_python_keeps_itself_are_there_too(tmp_path: Path) -> None:
    @spanreel.tool()
    def look() -> str:
        raise unreachable()

    _, (_, second) = replayed(look, tmp_path)
    assert isinstance(second, OSError)
    assert (second.errno, second.strerror, second.filename) == (111, "Connection refused", "/run/shop.sock")


def test_an_object_that_is_no_value_comes_back_as_a_text(tmp_path: Path) -> None:
    class Response:
        status = 503

    @spanreel.tool()
    def look() -> str:
        error = RuntimeError("unavailable")
        error.response = Response()  # type: ignore[attr-defined]  # as clients do
        error.status = 503  # type: ignore[attr-defined]
        raise error

    _, (_, second) = replayed(look, tmp_path)
    assert vars(second)["status"] == 503
    assert "Response" in vars(second)["response"]


def test_a_class_that_makes_its_text_of_its_fields_says_the_same(tmp_path: Path) -> None:
    @spanreel.tool()
    def look() -> str:
        raise urllib.error.HTTPError("http://shop.test/orders", 404, "Not Found", None, None)  # type: ignore[arg-type]

    _, (first, second) = replayed(look, tmp_path)
    assert isinstance(second, urllib.error.HTTPError)
    assert (second.code, second.msg, str(second)) == (404, "Not Found", str(first))
    first.close()  # type: ignore[attr-defined]


def test_a_class_that_is_not_at_hand_has_its_attributes_all_the_same(tmp_path: Path) -> None:
    class Hidden(Exception):
        def __init__(self, code: int) -> None:
            super().__init__(f"failed with {code}")
            self.code = code

    @spanreel.tool()
    def look() -> str:
        raise Hidden(503)

    _, (_, second) = replayed(look, tmp_path)
    assert isinstance(second, RecordedFailure)
    assert vars(second)["code"] == 503


def test_a_class_that_cannot_be_made_is_caught_as_what_stands_behind_it(tmp_path: Path) -> None:
    class Order(pydantic.BaseModel):
        number: int

    @spanreel.tool()
    def look() -> str:
        return str(Order.model_validate({"number": "seventeen"}).number)

    _, (first, second) = replayed(look, tmp_path)
    assert isinstance(first, pydantic.ValidationError)
    assert isinstance(second, ValueError)
    assert str(second) == str(first)


def test_the_exceptions_of_a_group_are_raised_again(tmp_path: Path) -> None:
    @spanreel.tool()
    def look() -> str:
        raise ExceptionGroup("both", [refused(), ExceptionGroup("inner", [KeyError("Oslo"), unreachable()])])

    _, (first, second) = replayed(look, tmp_path)
    assert isinstance(second, ExceptionGroup)
    assert str(second) == str(first)
    told, inner = second.exceptions
    assert all_of(told) == all_of(refused())
    assert isinstance(inner, ExceptionGroup)
    assert [all_of(error) for error in inner.exceptions] == [all_of(KeyError("Oslo")), all_of(unreachable())]


def test_a_class_whose_text_is_of_what_was_not_recorded_is_its_own_all_the_same(tmp_path: Path) -> None:
    @spanreel.tool()
    def look() -> str:
        raise subprocess.CalledProcessError(3, ["make"], b"\xff\x00\x01", b"no rule")  # bytes are not recorded

    _, (first, second) = replayed(look, tmp_path)
    assert isinstance(second, subprocess.CalledProcessError)
    assert str(second) == str(first)
    assert vars(second) == {"returncode": 3, "cmd": ["make"]}


def test_what_was_redacted_is_no_part_of_an_exception(tmp_path: Path) -> None:
    address = "jane.roe" + "@example.com"

    @spanreel.tool()
    def look() -> str:
        error = KeyError("no such customer")
        error.customer = address  # type: ignore[attr-defined]
        raise error

    session, (_, second) = replayed(look, tmp_path)
    assert address not in write_session(session)
    assert isinstance(second, KeyError)
    assert vars(second) == {}


def test_without_content_nothing_of_an_exception_is_kept(tmp_path: Path) -> None:
    @spanreel.tool()
    def look() -> str:
        raise refused()

    def before() -> None:
        with pytest.raises(Refused):
            look()

    scene = Scene(script(completion("Done.")), before=before)
    session = record(
        lambda: hand_written(scene), tmp_path, settings=spanreel.read_settings({"SPANREEL_CAPTURE": "metadata"})
    )
    (call,) = (call for run in session.runs for call in run.tool_calls())
    assert call.raised is None


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_hears_of_an_exception_what_it_heard(kind: Kind, tmp_path: Path) -> None:
    def look(order: str) -> str:
        """Look an order up."""
        raise TimeoutError(f"no answer about {order}", 30)

    scene = Scene(script(calls(("c1", "look", {"order": "A"})), completion("Done.")), [look])
    session = record(lambda: kind(scene), tmp_path)
    report = play(read_session(write_session(session)), kind, scene)
    assert report.verdict is Verdict.PASS, report.reasons
