"""JSON over HTTP from the one host that a person named: retried with patience, bounded in size, never led elsewhere."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

from spanreel.fetched import LARGEST, TooLarge, read_body
from spanreel.model import Json
from spanreel_collector import json_text

ATTEMPTS = 6
_LONGEST_WAIT = 30.0
_FIRST_WAIT = 0.5
_PASSES = (429, 500, 502, 503, 504)
_TIMEOUT = httpx.Timeout(60.0, connect=10.0)
_MOST_REDIRECTS = 3


class FetchError(Exception):
    """What was asked for could not be had; says why."""


class Client:
    """A connection to one host. What the environment holds for it is sent there and nowhere else."""

    def __init__(self, base: str, headers: Mapping[str, str]) -> None:
        self._base = _checked(base)
        # Neither a proxy nor a .netrc: what is sent goes to the host that was named.
        self._http = httpx.Client(headers=dict(headers), timeout=_TIMEOUT, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def get(self, path: str, parameters: Mapping[str, Any]) -> tuple[Json, bytes]:
        """What is under this path, read and as it came.

        Raises:
            FetchError: it cannot be had, or is no JSON.
        """
        url = self._base.join(self._base.path.rstrip("/") + path).copy_merge_params(dict(parameters))
        body = self._patiently(url)
        try:
            return json_text.parse(body), body
        except ValueError as error:
            raise FetchError(f"{_named(url)} did not answer in JSON: {error}") from error

    def _patiently(self, url: httpx.URL) -> bytes:
        """The answer, asked for again while the host only says that it cannot just now."""
        for attempt in range(1, ATTEMPTS + 1):
            wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** (attempt - 1)) * random.uniform(0.5, 1.0)  # noqa: S311
            try:
                status, body, asked = self._once(url)
            except httpx.TransportError as error:
                problem = f"{type(error).__name__}: {error}"
            else:
                if status == 200:
                    return body
                problem = f"status {status}: {body[:200].decode('utf-8', 'replace')!r}"
                if status not in _PASSES:
                    raise FetchError(f"{_named(url)} answered with {problem}{_advice(status)}")
                wait = asked if asked is not None else wait
            if attempt < ATTEMPTS:
                time.sleep(wait)
        raise FetchError(f"{_named(url)} could not be read in {ATTEMPTS} attempts; the last: {problem}")

    def _once(self, url: httpx.URL) -> tuple[int, bytes, float | None]:
        """One answer: its status and body, and how long the host asks to wait."""
        for _ in range(_MOST_REDIRECTS):
            with self._http.stream("GET", url) as response:
                if response.is_redirect:
                    url = self._led_to(url, response)
                    continue
                return response.status_code, _bounded(response, url), _retry_after(response)
        raise FetchError(f"{_named(url)} leads on and on")

    def _led_to(self, url: httpx.URL, response: httpx.Response) -> httpx.URL:
        target = url.join(response.headers.get("location", ""))
        if (target.scheme, target.host, target.port) != (url.scheme, url.host, url.port):
            raise FetchError(f"{_named(url)} leads to another host, which is not followed: {target.host!r}")
        return target


def token_headers(*names: str) -> dict[str, str]:
    """The header that carries a token, from the first of these environment variables that is set; empty without."""
    token = next((os.environ[name] for name in names if os.environ.get(name)), None)
    return {"authorization": f"Bearer {token}"} if token else {}


def _checked(base: str) -> httpx.URL:
    parts = urlsplit(base)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise FetchError(f"{base!r} is not an address: http:// or https://, and a host")
    if parts.username or parts.password:
        raise FetchError(
            "the address holds credentials, which others can read on a command line; set them as variables"
        )
    if parts.query or parts.fragment:
        raise FetchError(f"{base!r}: the address ends with the path; what to fetch is said by options")
    return httpx.URL(base)


def _bounded(response: httpx.Response, url: httpx.URL) -> bytes:
    try:
        return read_body(response.iter_bytes(), LARGEST)
    except TooLarge as error:
        raise FetchError(f"{_named(url)} answered with {error}") from None


def _retry_after(response: httpx.Response) -> float | None:
    said = response.headers.get("retry-after", "")
    return min(_LONGEST_WAIT, float(said)) if said.isdecimal() else None


def _advice(status: int) -> str:
    return "; the variables for credentials are named in spanreel convert --help" if status in (401, 403) else ""


def _named(url: httpx.URL) -> str:
    return f"{url.scheme}://{url.netloc.decode('ascii')}{url.path}"
