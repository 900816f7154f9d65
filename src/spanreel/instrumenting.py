"""Start recording and stop it: settings are read and checked, the boundary is made, the wraps are put in place.

Holds the process-wide installation. How something is wrapped is `wrapping`'s.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from spanreel import boundary as boundaries
from spanreel import draws
from spanreel.boundary import Boundary
from spanreel.errors import SettingsError
from spanreel.protocols import protocol_named
from spanreel.quiet import listen, say
from spanreel.recording_errors import Hook, RecordingErrors
from spanreel.settings import PATHS, REDACTION, CaptureLevel, Log, Settings, read_native, read_settings
from spanreel.slips import find_slips
from spanreel.tracing import TracerSource
from spanreel.wrapping import Installation, targets

if TYPE_CHECKING:  # as `settings`
    from spanreel.policy import Policy


_installation: Installation | None = None
_lock = threading.RLock()


def instrument(  # noqa: PLR0913 - each is a question of its own, and has a default
    *,
    tracer_provider: Any = None,
    only: Iterable[str] | None = None,
    settings: Settings | None = None,
    native: str | None = None,
    redaction: str | Policy | None = None,
    on_recording_error: Hook | None = None,
) -> None:
    """Start recording: wrap what is imported already and what will be. A second call changes nothing but the provider.

    ``tracer_provider`` is where spans go; without one, the global provider as soon as the user has one, until then our
    own pipeline by the ``OTEL_*`` variables. ``only`` names the libraries to wrap (``["openai-agents", "httpx2"]``).
    ``settings`` are read from the environment where none are given. ``native="keep"`` keeps the spans that libraries
    make of the same calls by themselves; they are silenced by default (``SPANREEL_NATIVE``).
    ``redaction`` is a policy of `spanreel.redaction`, the name of one or a TOML file (``SPANREEL_REDACTION``).
    ``on_recording_error(stage, session_id)`` is told of faults of ours, once a run, from a thread of its own; it gets
    no content.
    """
    global _installation  # noqa: PLW0603 - the holder that the module docstring names
    with _lock:
        settings = settings or read_settings()
        _check_paths(settings)
        if native is not None:
            settings = replace(settings, native=read_native(native))
        if redaction is not None:
            settings = replace(settings, redaction=redaction)
        _check_redaction(settings)
        if _installation is not None:
            if tracer_provider is None:
                return
            uninstrument()
        listen(RecordingErrors(on_recording_error) if on_recording_error is not None else None)
        boundaries.install(Boundary(settings, TracerSource(settings, tracer_provider)))
        if settings.freeze and settings.content:
            draws.install()
        chosen = set(only) if only is not None else None
        _installation = Installation(one for one in targets(settings.native) if _is_chosen(one.library, chosen))


def start_recording(tracer_provider: Any = None) -> None:
    """Instrument as the environment says, and say so in one line; where it cannot be read, only say that.

    For the doors through which programs are instrumented from outside, which must not end them.
    """
    try:
        settings = read_settings()
        instrument(tracer_provider=tracer_provider, settings=settings)
    except SettingsError as error:
        from spanreel.redaction import redact_text  # noqa: PLC0415 - as below

        say(f"spanreel: nothing is recorded: {redact_text(str(error))}")
        return
    if settings.log is not Log.OFF and settings.capture is not CaptureLevel.OFF:
        from spanreel.exporters import describe  # noqa: PLC0415 - who is told nothing need not pay for the words

        say(describe(settings))
        for slip in find_slips():
            say(f"spanreel: {slip}")


def uninstrument() -> None:
    """Stop recording and put everything back; what is under way ends its spans."""
    global _installation  # noqa: PLW0603 - the holder that the module docstring names
    with _lock:
        if _installation is not None:
            _installation.undo()
            _installation = None
        boundary = boundaries.installed()
        boundaries.install(None)
        if boundary is not None:
            if boundary.settings.freeze and boundary.settings.content:
                draws.uninstall()
            boundary.source.shutdown()


def flush(timeout: float = 5.0) -> bool:
    """Export what has ended so far; True where all of it left within so many seconds."""
    boundary = boundaries.installed()
    return boundary.source.flush(timeout) if boundary is not None else True


def is_instrumented() -> bool:
    """Whether `instrument` is in force."""
    return _installation is not None


def wrapped_targets() -> list[str]:
    """What is wrapped now, as ``module:path``."""
    return [f"{one.target.module}:{one.target.path}" for one in _installation.wrapped] if _installation else []


def missed_targets() -> list[str]:
    """What should have been wrapped and is not there in the installed release."""
    return [f"{target.module}:{target.path}" for target in _installation.missed] if _installation else []


def _check_paths(settings: Settings) -> None:
    for path, name in settings.paths.items():
        try:
            protocol_named(name)
        except ValueError as error:
            raise SettingsError(f"{PATHS} says {path}={name}: {error}") from error


def _check_redaction(settings: Settings) -> None:
    """Look at once whether a policy, or a key, that is asked for is there: later, what it should spare would wait."""
    if settings.redaction != "default" or any(name.startswith(REDACTION) for name in os.environ):
        from spanreel.redaction import policy_of  # noqa: PLC0415 - who asks for nothing need not wait for it here

        policy_of(settings).digests.check()


def _is_chosen(library: str, chosen: set[str] | None) -> bool:
    return chosen is None or library == "python" or library in chosen or library.replace("-", "_") in chosen
