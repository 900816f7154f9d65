"""Evaluations put on what they are of, in a trace that has been put right."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from spanreel.conventions import RESPONSE_ID
from spanreel.records import ModelRecord, RunRecord, ToolRecord
from spanreel_collector.evaluation import Evaluation, Scope, Told
from spanreel_collector.span import RawSpan
from spanreel_collector.trace import Forest, Placed, Trace

_TELLING = (RunRecord, ModelRecord, ToolRecord)


def place_evaluations(trace: Trace, spans: Iterable[RawSpan], told: Iterable[Told]) -> tuple[Trace, int]:
    """The trace with each evaluation on the run or call that it is of, and how many there is nothing for.

    ``spans`` are as they came: what was folded away is found by its answer's id, else by what it stood in.
    """
    homes: dict[str, list[Evaluation]] = defaultdict(list)
    strangers = 0
    search = _Search(trace, spans)
    for span, evaluation in told:
        home, found = search.home(span, evaluation)
        if home is None:
            strangers += 1
        else:
            homes[home.id].append(found)
    if not homes:
        return trace, strangers
    return tuple(
        replace(placed, evaluations=tuple(sorted(homes[placed.id], key=lambda one: one.time)))
        if placed.id in homes
        else placed
        for placed in trace
    ), strangers


class _Search:
    """Where evaluations of one trace belong."""

    def __init__(self, trace: Trace, spans: Iterable[RawSpan]) -> None:
        self._forest = Forest(trace)
        self._came: Mapping[str, RawSpan] = {span.span_id: span for span in spans}
        self._answers = {
            placed.record.answer.response_id: placed
            for placed in trace
            if isinstance(placed.record, ModelRecord) and placed.record.answer and placed.record.answer.response_id
        }
        self._outermost = [
            placed for placed in trace if isinstance(placed.record, _TELLING) and self._telling_above(placed) is None
        ]
        self._beneath: dict[str, list[Placed]] = defaultdict(list)
        for placed in self._outermost:
            for above in self._up(placed):
                self._beneath[above.id].append(placed)

    def home(self, span: str | None, evaluation: Evaluation) -> tuple[Placed | None, Evaluation]:
        """What the evaluation is to stand on, and the evaluation: the session's, where it can be of several runs."""
        around = self._around(span, evaluation.response_id)
        if around is not None and evaluation.scope in (Scope.SPAN, Scope.AROUND):
            told = around if isinstance(around.record, _TELLING) else self._telling_above(around)
            if told is not None:
                return told, evaluation
        found, top = self._near(around, evaluation.scope)
        if len(found) == 1 and evaluation.scope is not Scope.SESSION:
            return found[0], evaluation
        calls = all(isinstance(placed.record, (ModelRecord, ToolRecord)) for placed in found)
        if found and calls and top is not None and evaluation.scope is not Scope.SESSION:
            return top, evaluation  # of calls without an agent, the span around them is their run
        return (found[0] if found else None), replace(evaluation, scope=Scope.SESSION)

    def _near(self, around: Placed | None, scope: Scope) -> tuple[list[Placed], Placed | None]:
        """The outermost runs and calls near a span, and the span around all, where it is none: first those inside it.

        What an evaluator asked inside its own span is not what it judged.
        """
        if around is None:
            return self._outermost, None
        own = {placed.id for placed in self._beneath[around.id]} if scope is Scope.AROUND else set[str]()
        top = self._forest.top(around)
        for above in self._up(around) if scope in (Scope.SPAN, Scope.AROUND) else (top,):
            found = [placed for placed in self._beneath[above.id] if placed.id not in own]
            if found:
                return found, None if isinstance(top.record, _TELLING) else top
        return self._outermost, None

    def _around(self, span: str | None, answer: str | None) -> Placed | None:
        """The span itself if it is still there, else what has its answer, else what it stood in."""
        seen = set[str]()
        while span is not None and span not in seen:
            if span in self._forest.by_id:
                here = self._forest.by_id[span]
                # An evaluator's own span may say which answer it judged.
                return here if isinstance(here.record, _TELLING) else self._answers.get(answer or "", here)
            came = self._came.get(span)
            if came is None:
                break
            told = came.attributes.get(RESPONSE_ID)
            if isinstance(told, str) and told in self._answers:
                return self._answers[told]
            seen.add(span)
            span = came.parent_id
        return self._answers.get(answer) if answer is not None else None

    def _telling_above(self, placed: Placed) -> Placed | None:
        """The run or call that a span stands in."""
        return next((above for above in self._forest.records_above(placed) if isinstance(above.record, _TELLING)), None)

    def _up(self, placed: Placed) -> Iterator[Placed]:
        """The span, and all around it, innermost first."""
        current: Placed | None = placed
        while current is not None:
            yield current
            current = self._forest.by_id.get(current.parent or "")
