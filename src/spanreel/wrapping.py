"""Put the wraps in place, before or after a library is imported, and take them away. The one door to wrapt's patching.

Holds the process-wide list of what is wrapped.
"""

from __future__ import annotations

import importlib.metadata
import inspect
import os
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import wrapt

from spanreel import boundary as boundaries
from spanreel import draws, driving, exchanging
from spanreel.boundary import Boundary
from spanreel.carrying import CARRIERS
from spanreel.clients import CLIENTS
from spanreel.errors import SettingsError
from spanreel.exchange import ClientPoint
from spanreel.frameworks import FRAMEWORKS
from spanreel.native import TRACER_METHOD, TRACER_MODULE, silencer
from spanreel.playing import current_player
from spanreel.point import Injection, Point
from spanreel.protocols import protocol_named
from spanreel.quiet import LOG, listen, log_once, quietly, say
from spanreel.recording_errors import Hook, RecordingErrors
from spanreel.settings import PATHS, REDACTION, Capture, Log, Native, Settings, read_native, read_settings
from spanreel.slips import find_slips
from spanreel.tracing import TracerSource

if TYPE_CHECKING:  # as `settings`
    from spanreel.policy import Policy


@dataclass(frozen=True, slots=True)
class Target:
    """Something to wrap: ``module:attribute.path``, how, and the library it belongs to.

    ``trigger`` is the module whose import puts the wrap in place, where it is not the same.
    """

    library: str
    module: str
    path: str
    wrap: Callable[[Any], Any]
    trigger: str | None = None


@dataclass(frozen=True, slots=True)
class Wrapped:
    """Something that is wrapped: where, what was put there, and what had been there."""

    target: Target
    owner: Any
    name: str
    wrapper: Any
    original: Any


class Installation:
    """The wraps of one `instrument`, until its `uninstrument`."""

    def __init__(self, targets: Iterable[Target]) -> None:
        self.active = True
        self.wrapped: list[Wrapped] = []
        self.missed: list[Target] = []
        self._lock = threading.RLock()
        awaited: dict[tuple[str, str], list[Target]] = {}
        for target in targets:
            awaited.setdefault((target.library, target.trigger or target.module), []).append(target)
        for (library, module), wanted in awaited.items():
            wrapt.register_post_import_hook(partial(self._imported, library, wanted), module)

    def _imported(self, library: str, wanted: Iterable[Target], module: Any) -> None:
        """The targets' module is there; what it lacks is told in one line."""
        missed = [f"{target.module}:{target.path}" for target in wanted if not self._wrap(target, module)]
        if missed:
            log_once(
                f"{library} has no {', '.join(missed)} in this release; what passes there is not recorded, all else is"
            )

    def _wrap(self, target: Target, module: Any) -> bool:
        """Whether the target is there, be it wrapped or not. Runs inside the user's import: it must not raise."""
        with quietly(f"wrap {target.module}:{target.path}"), self._lock:
            if not self.active:
                return True
            try:
                owner, name, original = wrapt.resolve_path(target.module if target.trigger else module, target.path)
            except AttributeError:
                self.missed.append(target)
                return False
            wrapper = target.wrap(original)
            if wrapper is not None:
                wrapt.apply_patch(owner, name, wrapper)
                self.wrapped.append(Wrapped(target, owner, name, wrapper, original))
        return True

    def undo(self) -> None:
        """Put back what is still ours; what others have wrapped since stays, and ours inside it passes through."""
        with self._lock:
            self.active = False
            for one in reversed(self.wrapped):
                if inspect.getattr_static(one.owner, one.name, None) is one.wrapper:
                    setattr(one.owner, one.name, one.original)
            self.wrapped.clear()


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
        _installation = Installation(target for target in _targets(settings) if _is_chosen(target.library, chosen))


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
    if settings.log is not Log.OFF and settings.capture is not Capture.OFF:
        from spanreel.exporters import describe  # noqa: PLC0415 - who is told nothing need not pay for the words

        say(describe(settings))
        for slip in find_slips():
            say(f"spanreel: {slip}")


def _check_redaction(settings: Settings) -> None:
    """Look at once whether a policy, or a key, that is asked for is there: later, what it should spare would wait."""
    if settings.redaction != "default" or any(name.startswith(REDACTION) for name in os.environ):
        from spanreel.redaction import policy_of  # noqa: PLC0415 - who asks for nothing need not wait for it here

        policy_of(settings).digests.check()


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


def not_intercepted() -> list[str]:
    """Clients that are loaded and whose `send` is not ours: none, or a replay must not start."""
    found = []
    for client in CLIENTS:
        module, _, path = client.target.partition(":")
        if module in sys.modules:
            try:
                _, _, current = wrapt.resolve_path(sys.modules[module], path)
            except AttributeError:
                continue
            if not isinstance(current, _ClientWrapper):
                found.append(client.target)
    return found


def _check_paths(settings: Settings) -> None:
    for path, name in settings.paths.items():
        try:
            protocol_named(name)
        except ValueError as error:
            raise SettingsError(f"{PATHS} says {path}={name}: {error}") from error


def _is_chosen(library: str, chosen: set[str] | None) -> bool:
    return chosen is None or library == "python" or library in chosen or library.replace("-", "_") in chosen


def _targets(settings: Settings) -> Iterable[Target]:
    for client in CLIENTS:
        module, _, path = client.target.partition(":")
        yield Target(client.library, module, path, partial(_wrap_client, client))
    for framework in FRAMEWORKS:
        for point in framework.points:
            module, _, path = point.target.partition(":")
            yield Target(framework.library, module, path, partial(_wrap_point, point))
        for injection in framework.injections:
            module, _, path = injection.target.partition(":")
            yield Target(framework.library, module, path, partial(_wrap_injection, injection))
        for trigger, scopes in framework.native_scopes.items() if settings.native is Native.SILENCE else ():
            wrap = partial(_wrap_tracer, scopes)
            yield Target(framework.library, TRACER_MODULE, TRACER_METHOD, wrap, trigger)
    for module, path, wrapper in CARRIERS:
        yield Target("python", module, path, partial(_wrap_plain, wrapper))


class _ClientWrapper(wrapt.FunctionWrapper):  # type: ignore[type-arg]  # generic to type checkers only
    """A client's wrapped `send`; a class of its own so that a replay can prove that it is in place."""


def _wrap_client(client: ClientPoint, original: Any) -> Any:
    def plain(wrapped: Any, _instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return exchanging.send(client, wrapped, args, kwargs)

    async def asynchronous(wrapped: Any, _instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return await exchanging.send_async(client, wrapped, args, kwargs)

    return _ClientWrapper(original, asynchronous if client.is_async else plain)


def _wrap_point(point: Point, original: Any) -> Any:
    return wrapt.FunctionWrapper(original, driving.wrapper_of(point, original))


def _wrap_injection(injection: Injection, original: Any) -> Any:
    parameters = list(inspect.signature(original).parameters)
    if injection.argument not in parameters:
        log_once(
            f"{injection.target} takes no {injection.argument!r} in this release; what stands there is not recorded"
        )
        return None
    position = parameters.index(injection.argument)

    def inject(wrapped: Any, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with quietly(f"inject {injection.argument} into {injection.target}"):
            place = position - (instance is not None)
            if 0 <= place < len(args):
                made = injection.factory(args[place], driving.cross)
                args = (*args[:place], made, *args[place + 1 :])
            else:
                made = injection.factory(kwargs.get(injection.argument), driving.cross)
                kwargs = {**kwargs, injection.argument: made}
        return wrapped(*args, **kwargs)

    return wrapt.FunctionWrapper(original, inject)


def _wrap_tracer(scopes: tuple[str, ...], original: Any) -> Any:
    return silencer(original, scopes, _is_at_work)


def _is_at_work() -> bool:
    """Whether calls are recorded or replayed now, so that they have spans of ours or need none."""
    boundary = boundaries.installed()
    return boundary is not None and (boundary.records or current_player() is not None)


def _wrap_plain(wrapper: driving.Wrapper, original: Any) -> Any:
    def switched(wrapped: Any, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if boundaries.installed() is None:
            return wrapped(*args, **kwargs)
        return wrapper(wrapped, instance, args, kwargs)

    return wrapt.FunctionWrapper(original, switched)


def version() -> str:
    """The installed release of spanreel."""
    try:
        return importlib.metadata.version("spanreel")
    except importlib.metadata.PackageNotFoundError:
        LOG.debug("spanreel is not installed as a distribution")
        return "0"
