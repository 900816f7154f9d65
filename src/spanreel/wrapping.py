"""Put the wraps in place, before or after a library is imported, and take them away. The one door to wrapt's patching.

When that is done, and by which settings, is `instrumenting`'s.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import wrapt

from spanreel import boundary as boundaries
from spanreel import driving, exchanging
from spanreel.carrying import CARRIERS
from spanreel.clients import CLIENTS
from spanreel.exchange import ClientPoint
from spanreel.frameworks import FRAMEWORKS
from spanreel.native import TRACER_METHOD, TRACER_MODULE, silencer
from spanreel.playing import current_player
from spanreel.point import Injection, Point
from spanreel.quiet import log_once, quietly
from spanreel.settings import Native
from spanreel.wrappers import WrappedFunction


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


def targets(native: Native) -> Iterable[Target]:
    """All that is wrapped where nothing else is asked for."""
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
        for trigger, scopes in framework.native_scopes.items() if native is Native.SILENCE else ():
            wrap = partial(_wrap_tracer, scopes)
            yield Target(framework.library, TRACER_MODULE, TRACER_METHOD, wrap, trigger)
    for module, path, wrapper in CARRIERS:
        yield Target("python", module, path, partial(_wrap_plain, wrapper))


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


class _ClientWrapper(WrappedFunction):
    """A client's wrapped `send`; a class of its own so that a replay can prove that it is in place."""


def _wrap_client(client: ClientPoint, original: Any) -> Any:
    def plain(wrapped: Any, _instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return exchanging.send(client, wrapped, args, kwargs)

    async def asynchronous(wrapped: Any, _instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return await exchanging.send_async(client, wrapped, args, kwargs)

    return _ClientWrapper(original, asynchronous if client.is_async else plain)


def _wrap_point(point: Point, original: Any) -> Any:
    return WrappedFunction(original, driving.wrapper_of(point, original))


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

    return WrappedFunction(original, inject)


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

    return WrappedFunction(original, switched)
