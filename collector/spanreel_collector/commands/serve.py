"""The command ``serve``: the service, as a process.

What it needs is imported when it runs: the command line's help asks for none of it.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import closing
from pathlib import Path

from spanreel.errors import SettingsError
from spanreel.subcommand import FAILED, OK, Command
from spanreel_collector.commands.with_settings import run_with_settings
from spanreel_collector.service.settings import ServiceSettings, add_flags, default_store

_ABOUT = """\
Receive OpenTelemetry traces and logs of agents (OTLP over HTTP and gRPC), keep them, and serve the sessions made of
them: by an HTTP API (described at /api/openapi.json) and on a page for people.
"""
_NOTES = """\
Record into it:   OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 spanreel run -- python app.py
Replay from it:   spanreel replay http://127.0.0.1:4318/api/v1/sessions/ID -- python app.py

Without tokens it answers this machine only. For others, give it tokens: in a file (--tokens; TOML, [[token]] with name,
sha256 of the token in hex, scopes of "ingest", "read", "erase", "operate" (what counts all tenants), and tenant), or in
SPANREEL_TOKEN (all scopes), SPANREEL_INGEST_TOKEN, SPANREEL_READ_TOKEN.

A setting is a flag or a variable; flags beat variables. SIGTERM and SIGINT end it, after what was begun.

Exit codes: 0, it was told to stop; 1, it failed; 64, wrong usage or settings.
"""


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _ABOUT, _NOTES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add_flags(parser)


def _run(options: argparse.Namespace) -> int:
    return run_with_settings("serve", options, _serve)


def _serve(settings: ServiceSettings) -> int:
    from spanreel_collector.access import read_access  # noqa: PLC0415 - as said above
    from spanreel_collector.service.life import serve  # noqa: PLC0415
    from spanreel_collector.service.logs import configure  # noqa: PLC0415
    from spanreel_collector.stores.opening import open_store, serving, shown  # noqa: PLC0415
    from spanreel_collector.stores.store import StoreError  # noqa: PLC0415

    def started(http: str, grpc: str | None) -> None:
        print(f"page, API     {http}/")
        print(f"OTLP/HTTP     {http}")
        print(f"OTLP/gRPC     {grpc or 'off'}")
        print(f"store         {shown(settings.store)}", flush=True)

    make_home(settings.store)
    configure(settings.log_format, settings.log_level)
    access = read_access(settings.tokens, os.environ, settings.hosts, settings.rate)
    with serving(settings.store):
        try:
            store = open_store(settings.store)
        except StoreError as error:
            print(f"spanreel: the store {shown(settings.store)} cannot be opened: {error}", file=sys.stderr)
            return FAILED
        with closing(store):
            serve(settings, access, store, started)
    return OK


def make_home(store: str) -> None:
    """Make the folder of the default store, for this user alone; of any other, its user makes it.

    Raises:
        SettingsError: it cannot be made.
    """
    if store == default_store():
        home = Path(store.removeprefix("sqlite:///")).parent
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(f"cannot make {str(home)!r}: {error.strerror}; choose another with --store") from error


SERVE = Command("serve", "receive traces, keep them, and serve the sessions made of them", _configure, _run)
