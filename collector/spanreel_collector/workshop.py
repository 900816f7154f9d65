"""A process beside the service in which segments become sessions: the service answers on while it works.

A trace on which it fails, hangs or dies costs only its own job.
"""

from __future__ import annotations

import multiprocessing
import signal
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from spanreel_collector.retelling import Job, Told, retell

_END = 5.0


class Unmade(Exception):
    """A job that came to nothing; says why."""


class Closed(Exception):
    """The workshop was closed while it worked; nothing is known of the job."""


class Workshop:
    """Takes one job at a time. Its process is started when there is one, and started again after it died."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._process: BaseProcess | None = None
        self._line: Connection | None = None
        self._closed = False

    def make(self, job: Job) -> Told:
        """What comes of a job.

        Raises:
            Unmade: it failed, died, or was not done in time.
            Closed: this is closed.
        """
        line = self._opened()
        try:
            line.send(job)
            if not line.poll(self._patience):
                self._kill()
                raise Unmade(f"not done after {self._patience:g} seconds")
            told = line.recv()
        except (OSError, EOFError) as error:
            code = self._ended()
            if self._closed:
                raise Closed from error
            raise Unmade(f"the process that works on it ended with {code}") from error
        if isinstance(told, Told):
            return told
        raise Unmade(told)

    def close(self) -> None:
        """End the process, done or not, and start no other. May be called from another thread."""
        self._closed = True
        if (process := self._process) is not None:
            process.kill()

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
        self._ended()

    def _opened(self) -> Connection:
        if self._closed:
            raise Closed
        if self._line is None:
            # A fresh process: one that is forked would share what this one has open.
            context = multiprocessing.get_context("spawn")
            self._line, theirs = context.Pipe()
            self._process = context.Process(target=_work, args=(theirs,), name="spanreel-derivation", daemon=True)
            self._process.start()
            theirs.close()
        return self._line

    def _ended(self) -> int | None:
        code = None
        if self._process is not None:
            self._process.join(_END)
            code = self._process.exitcode
        if self._line is not None:
            self._line.close()
        self._process = self._line = None
        return code


def _work(line: Connection) -> None:
    """Do jobs until the other side is gone, which ends it too."""
    # The service is told to stop, and says when this is to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        try:
            job = line.recv()
        except (OSError, EOFError):
            return
        told: Told | str
        try:
            told = retell(job)
        except Exception as error:  # noqa: BLE001 - what strangers wrote may fail anywhere: a job costs only itself
            told = f"{type(error).__name__}: {error}"
        try:
            line.send(told)
        except OSError:
            return
