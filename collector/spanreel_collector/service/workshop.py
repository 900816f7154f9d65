"""Processes beside the service in which segments become sessions: the service answers on while they work.

A trace on which it fails, hangs or dies costs only its own job. Run as a module, this is such a process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from multiprocessing import Pipe
from multiprocessing.connection import Connection

from spanreel_collector.conversion.remembering import Remembered
from spanreel_collector.conversion.streaming import seldom_collect
from spanreel_collector.service.retelling import Job, Told, retell

_START = 120.0
_END = 5.0
_READY = "ready"
_IDLE = 30.0
_NICE = 5


class Unmade(Exception):
    """A job that came to nothing; says why."""


class Died(Unmade):
    """The process ended while it worked: by the job, or by somebody who knows nothing of it."""


class Closed(Exception):
    """The workshop was closed while it worked; nothing is known of the job."""


class NotStarted(Exception):
    """There is no process to work in, whatever the job."""


class Workshop:
    """Takes one job at a time. Its process is started when there is one, and started again after it died."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self.process: subprocess.Popen[bytes] | None = None
        self._line: Connection | None = None
        self._closed = False

    def open(self) -> None:
        """Start the process now, so that the first job need not wait for it.

        Raises:
            Closed, NotStarted: as `make`.
        """
        self._opened()

    def make(self, job: Job) -> Told:
        """What comes of a job.

        Raises:
            Unmade: it failed, died, or was not done in time.
            Closed: this is closed.
            NotStarted: the process cannot be started.
        """
        line = self._opened()
        try:
            line.send(job)
            if not line.poll(self._patience):
                self._ended()
                raise self._unless_closed(Unmade(f"not done after {self._patience:g} seconds"))
            told = line.recv()
        except (OSError, EOFError) as error:
            code = self._ended()
            raise self._unless_closed(Died(f"the process that works on it ended with {code}")) from error
        if isinstance(told, Told):
            return told
        raise Unmade(told)

    def rest(self) -> None:
        """End the process, which has no job, until there is one again."""
        self._ended()

    def close(self) -> None:
        """End the process, done or not, and start no other. May be called from another thread."""
        self._closed = True
        if (process := self.process) is not None:
            process.kill()
            process.wait(_END)

    def _unless_closed(self, error: Exception) -> Exception:
        return Closed() if self._closed else error

    def _opened(self) -> Connection:
        if self._closed:
            raise Closed
        if self.process is not None and self.process.poll() is not None:
            self._ended()  # while it had nothing to do: no job is to blame
        if self._line is None:
            self._start()
        assert self._line is not None
        return self._line

    def _start(self) -> None:
        self._line, theirs = Pipe()
        # Neither a fork, which would share what this one has open, nor another run of the program that this is in.
        command = [sys.executable, "-P", "-m", "spanreel_collector.service.workshop", str(theirs.fileno())]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
        theirs.close()
        try:
            if self._line.poll(_START) and self._line.recv() == _READY and not self._closed:
                return
        except (OSError, EOFError):
            pass
        code = self._ended()
        raise self._unless_closed(NotStarted(f"the process that makes sessions does not start; it ended with {code}"))

    def _ended(self) -> int | None:
        """End the process, if it has not; its exit code."""
        code = None
        if (process := self.process) is not None:
            try:
                # One that closed its end is about to end by itself, and its code says why.
                code = process.wait(_END if self._line is None or self._line.poll(0) else 0)
            except (OSError, EOFError, subprocess.TimeoutExpired):
                process.kill()
                code = process.wait(_END)
        if self._line is not None:
            self._line.close()
        self.process = self._line = None
        return code


class Workshops:
    """Several, each of which takes a job when the others have one; all but one end when they had none for a while."""

    def __init__(self, number: int, patience: float, idle_seconds: float = _IDLE) -> None:
        self._all = tuple(Workshop(patience) for _ in range(number))
        self._idle = list(reversed(self._all))  # whoever takes one takes the last
        self._idle_seconds = idle_seconds
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    @property
    def processes(self) -> int:
        """How many run."""
        return sum(one.process is not None and one.process.poll() is None for one in self._all)

    def open(self) -> None:
        """As `Workshop.open`, of the first."""
        self._all[0].open()

    def make(self, job: Job) -> Told:
        """As `Workshop.make`; at most as many threads call this as there are workshops."""
        with self._lock:
            workshop = self._idle.pop()
        try:
            return workshop.make(job)
        finally:
            with self._lock:
                # The first is taken before the others, which so come to have nothing to do.
                self._idle.append(workshop)
                self._idle.sort(key=self._all.index, reverse=True)
                self._watch()

    def _watch(self) -> None:
        """Let those end that nobody takes for a while from now on; called with the lock."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if self.processes > 1:
            self._timer = threading.Timer(self._idle_seconds, self._rest)
            self._timer.daemon = True
            self._timer.start()

    def _rest(self) -> None:
        with self._lock:
            for workshop in self._idle:
                if workshop is not self._all[0]:
                    workshop.rest()

    def close(self) -> None:
        """As `Workshop.close`, of all."""
        for workshop in self._all:
            workshop.close()
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()


def main(handle: int) -> None:
    """Do jobs until the other side is gone, which ends this too."""
    # Who sends spans and who reads go first.
    os.nice(_NICE)
    seldom_collect()
    # The service is told to stop, and says when this is to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    line = Connection(handle)
    remembered = Remembered()
    line.send(_READY)
    while True:
        try:
            job = line.recv()
        except (OSError, EOFError):
            return
        told: Told | str
        try:
            told = retell(job, remembered)
        except Exception as error:  # noqa: BLE001 - what strangers wrote may fail anywhere: a job costs only itself
            told = f"{type(error).__name__}: {error}"
        try:
            line.send(told)
        except OSError:
            return


if __name__ == "__main__":
    main(int(sys.argv[1]))
