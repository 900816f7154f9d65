"""The command ``rebuild``: sessions made again of what is kept, by this release. A service may run at the same time."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from spanreel.errors import SettingsError
from spanreel.subcommand import FAILED, OK, Command
from spanreel_collector.access import DEFAULT_TENANT
from spanreel_collector.commands.with_settings import run_with_settings
from spanreel_collector.service.settings import ServiceSettings, add_flags

if TYPE_CHECKING:
    from spanreel_collector.service.derivation import Derivation

_ABOUT = """\
Make the sessions again that another release of spanreel has made, or other code that reads spans, of the spans that are
kept as they came. A session that says something else then gets a new revision; older revisions stay readable.
"""


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.description = _ABOUT
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add_flags(parser, "store", "derive_patience", "derive_bytes")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--all", action="store_true", help="all sessions, whatever code has made them")
    which.add_argument("--session", metavar="ID", action="append", help="this session; may be given several times")
    parser.add_argument("--tenant", metavar="T", help="whose, with --session (default: default)")


def _run(options: argparse.Namespace) -> int:
    return run_with_settings("rebuild", options, lambda settings: _rebuild(settings, options))


def _rebuild(settings: ServiceSettings, options: argparse.Namespace) -> int:
    from spanreel_collector.service.derivation import Derivation  # noqa: PLC0415 - the help of all commands needs none of it
    from spanreel_collector.service.workshop import Workshop  # noqa: PLC0415
    from spanreel_collector.stores.opening import open_store, shown  # noqa: PLC0415
    from spanreel_collector.stores.store import StoreError  # noqa: PLC0415

    workshop = Workshop(settings.derive_patience)
    try:
        store = open_store(settings.store, make=False)
        try:
            derivation = Derivation(store, workshop.make, _nobody, most_bytes=settings.derive_bytes)
            if options.session:
                done = _rebuild_sessions(derivation, options.tenant or DEFAULT_TENANT, options.session)
            else:
                done = derivation.rebuild(_tell, everything=options.all)
        finally:
            workshop.close()
            store.close()
    except StoreError as error:
        print(f"spanreel: the store {shown(settings.store)} cannot be used: {error}", file=sys.stderr)
        return FAILED
    made, failed = derivation.progress.sessions, derivation.progress.failed
    print(f"spanreel: {done} traces read again, {made} sessions changed, {failed} traces not readable", file=sys.stderr)
    return OK


def _rebuild_sessions(derivation: Derivation, tenant: str, sessions: list[str]) -> int:
    """How many traces were read."""
    traces = {session: derivation.store.traces_of(tenant, session) for session in sessions}
    if missing := [session for session, found in traces.items() if not found]:
        raise SettingsError(f"tenant {tenant!r} has no session {', '.join(map(repr, missing))}; nothing was rebuilt")
    wanted = frozenset[bytes]().union(*traces.values())
    derivation.derive(tenant, dict.fromkeys(wanted, 0))
    return len(wanted)


def _tell(count: int) -> None:
    print(f"spanreel: {count} traces read", file=sys.stderr)


def _nobody(tenant: str, session: str, revision: int) -> None:
    """Events are the service's."""


REBUILD = Command("rebuild", "make sessions again that other code has made", _configure, _run)
