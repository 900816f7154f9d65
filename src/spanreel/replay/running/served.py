"""Sessions that a service keeps (`spanreel serve`): one is fetched to be replayed, and the report given back.

Only the host that the person named is spoken to, and led nowhere else; `SPANREEL_TOKEN` goes there.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

import httpx

from spanreel.errors import ReplayRefused
from spanreel.fetched import LARGEST, TooLarge, read_body
from spanreel.session_files import split_address

TOKEN: Final = "SPANREEL_TOKEN"  # noqa: S105 - the name of a variable
_TIMEOUT: Final = httpx.Timeout(60.0, connect=10.0)
_PLACE: Final = "/api/v1/sessions/"


@dataclass(frozen=True, slots=True)
class Brought:
    """Sources of which each is a file here; and where the reports of those go that came from a service, by file."""

    sources: tuple[str, ...]
    homes: Mapping[str, str]
    faults: Mapping[str, str] = field(default_factory=dict)
    """Why a session cannot be had, by the file that it would be; only where it is one of several."""


def is_served(source: object) -> bool:
    """Whether this is the address of a session that a service keeps."""
    return isinstance(source, str) and source.startswith(("http://", "https://"))


@contextmanager
def brought(sources: Sequence[str]) -> Iterator[Brought]:
    """These sources; those that a service keeps as files, for as long as this lasts.

    Raises:
        ReplayRefused: one is no session's address, or the only one cannot be had.
    """
    if not any(map(is_served, sources)):
        yield Brought(tuple(sources), {})
        return
    with tempfile.TemporaryDirectory(prefix="spanreel-") as folder:
        here: list[str] = []
        homes: dict[str, str] = {}
        faults: dict[str, str] = {}
        for number, source in enumerate(sources):
            url, run = split_address(source)
            if is_served(url):
                file = Path(folder) / str(number) / f"{_identity(url)}.json"
                file.parent.mkdir()
                homes[str(file)] = url
                try:
                    file.write_bytes(fetch(url))
                except ReplayRefused as refused:
                    if len(sources) == 1:
                        raise
                    faults[str(file)] = str(refused)
                source = str(file) + (f"#{run}" if run is not None else "")  # noqa: PLW2901 - the same, here
            here.append(source)
        yield Brought(tuple(here), homes, faults)


def fetch(url: str) -> bytes:
    """The document of a session.

    Raises:
        ReplayRefused: it cannot be had; says why, and what to do.
    """
    with _client(url) as client, _explained(url), client.stream("GET", _document_of(url)) as answer:
        _check(answer, url)
        try:
            return read_body(answer.iter_bytes(), LARGEST)
        except TooLarge as error:
            raise ReplayRefused(f"{url!r} answers with {error}") from None


def post_report(url: str, report: bytes) -> None:
    """Give a replay's report to the service that keeps the session.

    Raises:
        ReplayRefused: it was not taken.
    """
    with _client(url) as client, _explained(url):
        headers = {"content-type": "application/json"}
        # Of whichever revision it is, a report is the session's.
        home = _document_of(url).partition("?")[0]
        with client.stream("POST", f"{home}/reports", content=report, headers=headers) as answer:
            _check(answer, url)


def _document_of(url: str) -> str:
    """Where the service has a session; the address of its page, which is what people have at hand, will do."""
    parts = urlsplit(url)
    asked = parse_qs(parts.query)
    if parts.path not in ("", "/") or "session" not in asked:
        return url
    revision = f"?revision={quote(asked['revision'][0], safe='')}" if "revision" in asked else ""
    return f"{parts.scheme}://{parts.netloc}{_PLACE}{quote(asked['session'][0], safe='')}{revision}"


def _identity(url: str) -> str:
    """The session's id, as a name for a file.

    Raises:
        ReplayRefused: this is no session's address.
    """
    parts = urlsplit(_document_of(url))
    before, place, identity = parts.path.partition(_PLACE)
    if before or not place or not identity or "/" in identity or not parts.hostname:
        raise ReplayRefused(
            f"{url!r} is no session's address; they look like http://127.0.0.1:4318{_PLACE}ID, "
            "or as the page of the session has it"
        )
    if parts.username or parts.password:
        raise ReplayRefused(f"the address holds credentials, which others can read on a command line; set {TOKEN}")
    name = "".join(one if one.isalnum() or one in "-_." else "-" for one in unquote(identity))
    return name.lstrip(".")[:100] or "session"


def _client(url: str) -> httpx.Client:
    _identity(url)
    token = os.environ.get(TOKEN, "").strip()
    headers = {"authorization": f"Bearer {token}"} if token else {}
    # Neither a proxy nor a .netrc nor a redirect: what is sent goes to the host that was named.
    return httpx.Client(headers=headers, timeout=_TIMEOUT, trust_env=False, follow_redirects=False)


@contextmanager
def _explained(url: str) -> Iterator[None]:
    try:
        yield
    except httpx.HTTPError as error:
        raise ReplayRefused(
            f"{url!r} cannot be reached: {str(error) or type(error).__name__}; is the service up?"
        ) from error


def _check(answer: httpx.Response, url: str) -> None:
    if answer.is_success:
        return
    advice = {
        401: f"; set {TOKEN}",
        403: f"; the token in {TOKEN} does not allow it",
        404: "; there is no such session",
    }
    raise ReplayRefused(f"{url!r} answers with status {answer.status_code}{advice.get(answer.status_code, '')}")
