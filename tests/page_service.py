"""A real `spanreel serve` with a store of its own, and a real browser to look at it with."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Dialog, Page, Request, expect, sync_playwright

from conftest import CHROMIUM_ABSENT
from otel_collector import wait_until
from served import served

expect.set_options(timeout=60_000)  # a slow machine is no failure
CHROMIUM = os.environ.get("SPANREEL_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


@dataclass(frozen=True, slots=True)
class Served:
    """A service that runs: its address, and what is sent to it."""

    url: str
    token: str | None = None

    def send(self, *requests: dict[str, Any]) -> None:
        """Export these requests to it, as any agent's exporter does."""
        for request in requests:
            httpx.post(f"{self.url}/v1/traces", json=request, headers=self.headers, timeout=60).raise_for_status()

    def read(self, path: str, **query: str) -> Any:
        """What its API says."""
        answer = httpx.get(f"{self.url}/api/v1/{path}", params=query, headers=self.headers, timeout=60)
        answer.raise_for_status()
        return answer.json()

    def wait(self, holds: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
        """The sessions, once this holds of them."""

        def found() -> Any:
            listed = self.read("sessions", limit="500")["sessions"]
            return listed if holds(listed) else None

        return list(wait_until(found))

    @property
    def headers(self) -> dict[str, str]:
        """What lets a request in."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


@contextlib.contextmanager
def serving(folder: Path, token: str | None = None, more: Mapping[str, str] | None = None) -> Iterator[Served]:
    """A service that asks for this token, or for none; with more environment."""
    environment = {
        "SPANREEL_SERVE_QUIET_SECONDS": "0.3",
        "SPANREEL_INGEST_TOKEN": "",
        "SPANREEL_TOKEN": token or "",
        **(more or {}),
    }
    with served(folder, f"sqlite:///{folder / 'page.db'}", name="page", environment=environment) as service:
        yield Served(service.endpoint, token)


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """The browser of this machine; skips the test where there is none."""
    if CHROMIUM is None:
        pytest.skip(f"{CHROMIUM_ABSENT}: apt-get install chromium, or $SPANREEL_CHROMIUM")
    # A sandbox of its own is what the browser cannot have as root, in a container.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Watched:
    """A page of the browser, and whatever went wrong in it."""

    page: Page
    served: Served
    faults: list[str] = field(default_factory=list)

    def open(self, query: str = "") -> Page:
        """Go to a state of the page."""
        self.page.goto(f"{self.served.url}/{query}")
        return self.page


@contextlib.contextmanager
def watched(
    browser: Browser, served: Served, width: int = 1280, height: int = 800, **options: Any
) -> Iterator[Watched]:
    """A window on the service; errors, dialogs, refused contents and requests to elsewhere fail the test."""
    context = browser.new_context(viewport={"width": width, "height": height}, **options)
    context.set_default_timeout(60_000)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    seen = Watched(context.new_page(), served)

    def asked(request: Request) -> None:
        if not request.url.startswith((served.url, f"blob:{served.url}")):
            seen.faults.append(f"asked for {request.url}")

    def dismissed(dialog: Dialog) -> None:
        seen.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    seen.page.on("pageerror", lambda error: seen.faults.append(f"error: {error}"))
    seen.page.on("console", lambda said: seen.faults.extend([said.text] * (said.type in ("error", "warning"))))
    seen.page.on("dialog", dismissed)
    seen.page.on("popup", lambda popup: seen.faults.append(f"window: {popup.url}"))
    context.on("request", asked)
    try:
        yield seen
        assert not seen.faults, seen.faults
    finally:
        context.close()
