"""Spans that libraries make of the very calls that are ours: not made, so that there is one set of spans, and whole.

What a library would have put below such a span comes to be below the span around it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import Any

from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, NonRecordingSpan, Span

from spanreel import contexts
from spanreel.quiet import quietly

TRACER_MODULE = "opentelemetry.sdk.trace"
TRACER_METHOD = "Tracer.start_span"
"""Where every span of the SDK begins, whichever provider it goes to and whenever its tracer was made."""


class SilencedSpan(NonRecordingSpan):
    """Stands where a span was not made; ``above`` is the one that it would have been a child of."""

    def __init__(self, above: Span) -> None:
        super().__init__(above.get_span_context())
        self.above = above


def live_span(context: Context | None = None) -> Span:
    """The span that is current in a context, silenced ones looked through."""
    span: Any = (contexts.current() if context is None else context).get(contexts.SPAN_KEY)
    while type(span) is SilencedSpan:
        span = span.above
    return INVALID_SPAN if span is None else span


def is_same(one: Span, other: Span) -> bool:
    """Whether two are one span; one that a tracer which is off has put in another's place has its identity."""
    return one is other or (not one.is_recording() and one.get_span_context() == other.get_span_context())


def silencer(original: Callable[..., Any], scopes: Collection[str], applies: Callable[[], bool]) -> Callable[..., Any]:
    """``TRACER_METHOD`` without the spans of these instrumentation scopes, and of those below them.

    A plain function: every span of the process passes here, and wrapt's wrapper costs as much again.
    """
    names = tuple(scopes)
    below = tuple(f"{name}." for name in names)

    @functools.wraps(original)
    def start(tracer: Any, *args: Any, **kwargs: Any) -> Any:
        scope = getattr(getattr(tracer, "_instrumentation_scope", None), "name", None)
        if type(scope) is str and (scope in names or scope.startswith(below)):
            with quietly("silence a library's own span"):
                if applies():
                    return SilencedSpan(live_span(args[1] if len(args) > 1 else kwargs.get("context")))
        return original(tracer, *args, **kwargs)

    return start
