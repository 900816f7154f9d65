"""The command ``rebuild``: sessions made again of what is kept, by this release. A service may run at the same time."""

from __future__ import annotations

import argparse
import sys

from spanreel_collector.commands.command import FAILED, OK, Command
from spanreel_collector.commands.with_settings import run_with_settings
from spanreel_collector.service.settings import ServiceSettings, add_flags

_ABOUT = """\
Make the sessions again that another release of spanreel has made, of the spans that are kept as they came. A session
that says something else then gets a new revision; older revisions stay readable.
"""


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.description = _ABOUT
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add_flags(parser, "store", "derive_patience")


def _run(options: argparse.Namespace) -> int:
    return run_with_settings("rebuild", options, _rebuild)


def _rebuild(settings: ServiceSettings) -> int:
    from spanreel_collector.service.derivation import Derivation  # noqa: PLC0415 - the help of all commands needs none of it
    from spanreel_collector.service.workshop import Workshop  # noqa: PLC0415
    from spanreel_collector.stores.opening import open_store, shown  # noqa: PLC0415
    from spanreel_collector.stores.store import StoreError  # noqa: PLC0415

    workshop = Workshop(settings.derive_patience)
    try:
        store = open_store(settings.store, make=False)
        try:
            derivation = Derivation(store, workshop.make, _nobody)
            done = derivation.rebuild(lambda count: print(f"spanreel: {count} traces read", file=sys.stderr))
        finally:
            workshop.close()
            store.close()
    except StoreError as error:
        print(f"spanreel: the store {shown(settings.store)} cannot be used: {error}", file=sys.stderr)
        return FAILED
    made, failed = derivation.progress.sessions, derivation.progress.failed
    print(f"spanreel: {done} traces read again, {made} sessions changed, {failed} traces not readable", file=sys.stderr)
    return OK


def _nobody(tenant: str, session: str, revision: int) -> None:
    """Events are the service's."""


REBUILD = Command("rebuild", "make sessions again that another release has made", _configure, _run)
