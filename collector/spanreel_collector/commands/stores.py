"""The commands on a store: ``backup``, ``restore`` and ``erase``. A service may use the store at the same time.

What they need is imported when they run: the command line's help asks for none of it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from spanreel.errors import SpanreelError
from spanreel.subcommand import FAILED, OK, Command
from spanreel_collector.service.settings import add_flags, read_settings

if TYPE_CHECKING:
    from spanreel_collector.service.archive import Contents
    from spanreel_collector.stores.store import Store

_NOT_COVERED: Final = "not covered: backups, exports and what was passed on before; remove the person's data there too"


@contextmanager
def _opened(options: argparse.Namespace, *, make: bool = False) -> Iterator[Store]:
    """The store that is meant; what it cannot do is said like any other error of ours."""
    from spanreel_collector.stores.opening import open_store  # noqa: PLC0415 - as said above
    from spanreel_collector.stores.store import StoreError  # noqa: PLC0415

    try:
        store = open_store(read_settings(os.environ, vars(options)).store, make=make)
        try:
            yield store
        finally:
            store.close()
    except StoreError as error:
        raise SpanreelError(str(error)) from error


def _add_store(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add_flags(parser, "store")


# -- backup ----------------------------------------------------------------------------------------------------------

_BACKUP: Final = """\
Write all that a store holds, of all tenants and as of one moment, to a file: raw spans, sessions with their revisions,
replay reports, what was erased and refused. The service may go on. A backup is of no kind of store: what was in SQLite
can be restored into PostgreSQL. It is as private as the store, and readable by its owner alone.
"""


def _configure_backup(parser: argparse.ArgumentParser) -> None:
    parser.description = _BACKUP
    _add_store(parser)
    parser.add_argument("file", metavar="FILE", type=Path, help="where to; a file that is there is replaced at the end")


def _run_backup(options: argparse.Namespace) -> int:
    from spanreel_collector.service.archive import write_archive  # noqa: PLC0415

    with _opened(options) as store:
        contents = write_archive(store, options.file)
    print(f"spanreel: backed up {_contents(contents)} to {str(options.file)!r}", file=sys.stderr)
    return OK


# -- restore ---------------------------------------------------------------------------------------------------------

_RESTORE: Final = """\
Take a backup into a store that is empty (a file that is not there yet, a new database). The file is checked to its end
first: one that is cut off or damaged changes nothing.
"""


def _configure_restore(parser: argparse.ArgumentParser) -> None:
    parser.description = _RESTORE
    _add_store(parser)
    parser.add_argument("file", metavar="FILE", type=Path, help="what `spanreel backup` wrote")


def _run_restore(options: argparse.Namespace) -> int:
    from spanreel_collector.service.archive import check_archive, read_archive  # noqa: PLC0415

    check_archive(options.file)  # before a store is made for it
    with _opened(options, make=True) as store:
        contents = read_archive(store, options.file)
    print(f"spanreel: restored {_contents(contents)} from {str(options.file)!r}", file=sys.stderr)
    return OK


def _contents(contents: Contents) -> str:
    kinds = (("session", "sessions"), ("revision", "revisions"), ("trace", "traces"), ("segment", "segments"))
    return ", ".join(f"{contents.entries.get(kind, 0)} {several}" for kind, several in kinds)


# -- erase -----------------------------------------------------------------------------------------------------------

_ERASE: Final = """\
Remove a session, or all that a user is named in, with everything it was made of and everything that was made of it,
replays and reports too, and from the disk. Of several users of a session, the wish of one removes all of it. Traces are
remembered by id, so that a late delivery does not bring them back. Prints what was removed.
"""


def _configure_erase(parser: argparse.ArgumentParser) -> None:
    parser.description = _ERASE
    _add_store(parser)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--session", metavar="ID", help="this session")
    which.add_argument("--user", metavar="USER", help="all that names this user")
    parser.add_argument("--tenant", metavar="T", default=None, help="whose (default: default)")


def _run_erase(options: argparse.Namespace) -> int:
    from spanreel_collector.access import DEFAULT_TENANT  # noqa: PLC0415
    from spanreel_collector.house import erase_session, erase_user  # noqa: PLC0415

    tenant = options.tenant or DEFAULT_TENANT
    with _opened(options) as store:
        if options.user is not None:
            receipt = erase_user(store, tenant, options.user)
        else:
            receipt = erase_session(store, tenant, options.session)
        pending = store.pending(tenant, time.time_ns()) if options.user is not None else 0
    if pending:
        said = "of which no session was made yet may be of them too: erase again when a service has made it"
        print(f"spanreel: {pending} traces {said}", file=sys.stderr)
    if not receipt.sessions and not receipt.traces:
        which = f"user {options.user!r}" if options.user is not None else f"session {options.session!r}"
        print(f"spanreel: tenant {tenant!r} has nothing of {which}; nothing was erased", file=sys.stderr)
        return FAILED
    print("erased: " + ", ".join(f"{count} {kind}" for kind, count in asdict(receipt).items()))
    print(_NOT_COVERED)
    return OK


BACKUP: Final = Command("backup", "write all that a store holds to a file", _configure_backup, _run_backup)
RESTORE: Final = Command("restore", "take a backup into an empty store", _configure_restore, _run_restore)
ERASE: Final = Command("erase", "remove a session, or all of a user, from a store", _configure_erase, _run_erase)
