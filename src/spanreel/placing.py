"""Where a call is put: the span that its own stands under, and the context that it works in. Opens no spans."""

from __future__ import annotations

from opentelemetry.context import Context, set_value
from opentelemetry.trace import NonRecordingSpan, Span

from spanreel.contexts import SPAN_KEY
from spanreel.native import is_same, live_span
from spanreel.scope import BUSY_KEY, SCOPE_KEY, SESSION_KEY, FailedAttempt, OpenTurn, RunScope, Scope, scope_in


def parent_context(context: Context) -> Context:
    """The context to start a span in: an empty one where all that is left in it is a run that has ended."""
    scope = context.get(SCOPE_KEY)
    if isinstance(scope, RunScope) and scope.ended and is_same(live_span(context), scope.span):
        return Context()
    return context


def stepped_in(called: Context, stepped: Context) -> Context:
    """Where a generator works that was called in one context and is stepped through in another.

    A web server sends what a handler has given it after that has returned: where nothing is under way by then, the
    generator belongs to where it was called, and in any case to the session there.
    """
    if called is stepped or scope_in(stepped) is not None:
        return stepped
    if not live_span(stepped).get_span_context().is_valid:
        return called if SESSION_KEY not in stepped or SESSION_KEY in called else stepped
    if SESSION_KEY in called and SESSION_KEY not in stepped:
        return set_value(SESSION_KEY, called[SESSION_KEY], stepped)
    return stepped


def model_parent(
    current: Context, run: RunScope | None, turn: OpenTurn | None, failure: FailedAttempt | None
) -> Context:
    """Under the turn; under the user's own span where one stands between; a loose retry under what it retries."""
    if turn is not None and run is not None and current.get(SPAN_KEY) is run.span:
        return turn.context
    context = parent_context(current) if current else current
    if turn is not None and run is not None and _nothing_between(context, run):
        return turn.context
    if failure is not None and not live_span(context).get_span_context().is_valid:
        return with_span(context, NonRecordingSpan(failure.origin))
    return context


def tool_parent(current: Context, run: RunScope | None, turn: OpenTurn | None) -> Context:
    """Under the turn that asked; under the user's own span where one stands between."""
    if turn is not None and run is not None and current.get(SPAN_KEY) is run.span:
        return turn.context
    context = parent_context(current)
    return turn.context if turn is not None and run is not None and _nothing_between(context, run) else context


def _nothing_between(context: Context, run: RunScope) -> bool:
    """Whether the current span is the run's own, or that of the run it was handed over from."""
    span = live_span(context)
    scope: RunScope | None = run
    while scope is not None:
        if is_same(span, scope.span):
            return True
        scope = scope.parent if scope.parent is not None and scope.parent.delegate is scope else None
    return False


def with_scope(context: Context, span: Span, scope: Scope | None) -> Context:
    """The context inside a crossing."""
    return Context(context, **{SPAN_KEY: span, SCOPE_KEY: scope})


def busy(context: Context, span: Span, scope: Scope | None) -> Context:
    """The context inside the crossing of an exchange."""
    return Context(context, **{SPAN_KEY: span, SCOPE_KEY: scope, BUSY_KEY: True})


def with_span(context: Context, span: Span) -> Context:
    """The context with this span current in it."""
    return Context(context, **{SPAN_KEY: span})
