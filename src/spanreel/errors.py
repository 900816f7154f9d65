"""Every error spanreel raises of its own accord.

SpanreelError
├── SettingsError          a setting that cannot be read
├── SessionError           a session document that cannot be read
├── ReplayError            a replay that cannot go on
│   ├── ReplayRefused      refused before anything ran (exit code 3)
│   └── NotIntercepted     something would have been, or was, out of reach (exit code 4)
└── ReplayFailed           the verdict is not PASS; also an AssertionError, so that pytest shows it well

ReplayStop                 ends the replayed run; a BaseException, since SDKs retry and frameworks swallow others
"""


class SpanreelError(Exception):
    """Anything spanreel itself has to complain about."""


class SettingsError(SpanreelError):
    """A setting (environment variable or argument) that cannot be read."""


class SessionError(SpanreelError):
    """A session document that cannot be read, or does not hold what was asked for."""


class ReplayError(SpanreelError):
    """A replay that cannot go on."""


class ReplayRefused(ReplayError):
    """The replay was refused before anything ran; the message says why and what to do."""


class NotIntercepted(ReplayError):
    """A call went, or would have gone, past the replay."""


class ReplayFailed(SpanreelError, AssertionError):
    """The verdict of a replay is not PASS; the message is the report for people."""


class RecordedFailure(SpanreelError):
    """A recorded failure raised again with its recorded text; its own class (``recorded_type``) is not at hand."""

    def __init__(self, recorded_type: str, message: str) -> None:
        super().__init__(message)
        self.recorded_type = recorded_type


class ReplayStop(BaseException):
    """Ends the replayed run at a divergence.

    Derives from BaseException: an SDK would retry an Exception after a sleep, and a framework would show it to the
    model as a tool's answer.
    """
