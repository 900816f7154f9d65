"""Evaluations, which stand beside calls in any dialect: events and logs of the GenAI conventions, and attributes.

Attributes are those of the conventions on spans of their own (Strands Evals), OpenInference's lists, Braintrust's
scores, Pydantic Evals' cases and what evaluators of Laminar's give back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from spanreel import conventions as names
from spanreel.model import Json
from spanreel_collector import json_text
from spanreel_collector.dialects import values
from spanreel_collector.dialects.content import costs
from spanreel_collector.dialects.content.indexed import nested
from spanreel_collector.evaluation import Evaluation, Scope, Told
from spanreel_collector.span import Attributes, RawLog, RawSpan

_PREFIX: Final = "gen_ai.evaluation."
RESULT: Final = f"{_PREFIX}result"
"""The name of an evaluation's event."""
NAME: Final = f"{_PREFIX}name"
SCORE: Final = f"{_PREFIX}score.value"
LABEL: Final = f"{_PREFIX}score.label"
EXPLANATION: Final = f"{_PREFIX}explanation"
_SCORES: Final = (SCORE, f"{_PREFIX}score")
"""Azure's portal wrote the second before the conventions had the first."""
_NO_FIELDS: Final = frozenset(
    {NAME, *_SCORES, LABEL, EXPLANATION, names.ERROR_TYPE, names.RESPONSE_ID, "event.name"}
    | {names.EVALUATION_OF, names.EVALUATION_BY}
)
_LISTS: Final = {
    "evaluations": Scope.SPAN,
    "annotations": Scope.SPAN,
    "trace.evaluations": Scope.TRACE,
    "trace.annotations": Scope.TRACE,
    "session.evaluations": Scope.SESSION,
    "session.annotations": Scope.SESSION,
}
"""OpenInference's, by what they are of; an item's members stand below the singular of its list's name."""
_BRAINTRUST: Final = "braintrust.scores"
_LAMINAR, _LAMINAR_EVALUATORS = "lmnr.span.type", ("EVALUATOR", "HUMAN_EVALUATOR")
_CASES: Final = ("scores", "labels", "assertions")
_PYDANTIC: Final = "pydantic-evals"


def gather(spans: Iterable[RawSpan], logs: Sequence[RawLog]) -> tuple[list[Told], list[RawLog]]:
    """The evaluations that a trace's spans and logs tell, each once; and the logs that are none."""
    told: list[Told] = []
    left: list[RawLog] = []
    for log in logs:
        if _is_event(log.event_name):
            told.append((log.span_id, _of_event(log.event_name, log.attributes, log.time)))
        else:
            left.append(log)
    told += [(span.span_id, one) for span in spans for one in read(span)]
    distinct = {repr(one): one for one in told}
    return list(distinct.values()), left


def read(span: RawSpan) -> Iterator[Evaluation]:
    """What a span's events and attributes tell."""
    for event in span.events:
        if _is_event(event.name):
            yield _of_event(event.name, event.attributes, event.time)
    if _may_tell(tuple(span.attributes)):
        for found in _of_attributes(span):
            yield replace(found, time=found.time or span.start)


def _is_event(name: str) -> bool:
    return name.startswith(_PREFIX)


@lru_cache(maxsize=4096)
def _may_tell(keys: tuple[str, ...]) -> bool:
    """Whether attributes of these names can hold an evaluation."""
    lists = tuple(f"{name}." for name in _LISTS)
    return any(
        key in (NAME, _BRAINTRUST, _LAMINAR) or key in _CASES or key.startswith((*lists, *_SCORES)) for key in keys
    )


def _of_attributes(span: RawSpan) -> Iterator[Evaluation]:
    attributes = span.attributes
    if any(attributes.get(key) is not None for key in (*_SCORES, LABEL)):
        own = {key: value for key, value in attributes.items() if key.startswith(_PREFIX) or key in _NO_FIELDS}
        yield replace(_of_event(span.name, own, span.start), scope=Scope.AROUND)
    for name, scope in _LISTS.items():
        kind = name.rpartition(".")[2].removesuffix("s")
        for item in nested(attributes, name):
            yield from _of_item(item.get(kind), scope)
    for name, value in values.members(attributes.get(_BRAINTRUST)).items():
        yield from _of_value(name, value)
    if attributes.get(_LAMINAR) in _LAMINAR_EVALUATORS:
        yield from _of_laminar(span)
    if span.origin.scope == _PYDANTIC:
        for key in _CASES:
            for name, value in values.members(attributes.get(key)).items():
                yield from _of_value(name, value)


def _of_event(event: str, attributes: Attributes, time: int) -> Evaluation:
    """An evaluation in the conventions' names; some put the evaluator's name into the event's."""
    named = event.removeprefix(_PREFIX) if _is_event(event) and event != RESULT else None
    scope = attributes.get(names.EVALUATION_OF)
    return Evaluation(
        name=values.text(attributes, NAME) or named,
        score=next((score for key in _SCORES if (score := costs.amount(attributes.get(key))) is not None), None),
        label=_label(attributes.get(LABEL)),
        explanation=values.text(attributes, EXPLANATION),
        error_type=values.text(attributes, names.ERROR_TYPE),
        evaluator=values.text(attributes, names.EVALUATION_BY),
        response_id=values.text(attributes, names.RESPONSE_ID),
        time=time,
        fields=json_text.plain(
            {key: value for key, value in attributes.items() if key not in _NO_FIELDS and value is not None}
        ),
        scope=Scope(scope) if scope in list(Scope) else Scope.SPAN,
    )


def _of_item(item: Any, scope: Scope) -> Iterator[Evaluation]:
    """One of OpenInference's."""
    if not isinstance(item, dict):
        return
    score, label = costs.amount(item.get("score")), _label(item.get("label"))
    explanation = item.get("explanation")
    if score is None and label is None and not isinstance(explanation, str):
        return
    rest = {key: item[key] for key in ("identifier", "metadata") if item.get(key) is not None}
    yield Evaluation(
        name=_text(item.get("name")),
        score=score,
        label=label,
        explanation=_text(explanation),
        evaluator=_text(item.get("annotator_kind")),
        fields=json_text.plain({key: values.decode(value)[0] for key, value in rest.items()}),
        scope=scope,
    )


def _of_value(name: str, value: Json) -> Iterator[Evaluation]:
    """A score or a label, alone or with its reason, as Pydantic Evals and Braintrust's scorers have it."""
    found: Mapping[str, Any] = value if isinstance(value, dict) else {"value": value}
    told = found.get("value", found.get("score"))
    if isinstance(told, bool):
        yield Evaluation(name, float(told), "pass" if told else "fail", _text(found.get("reason")))
    elif isinstance(told, int | float | str):
        score = None if isinstance(told, str) else costs.amount(told)
        yield Evaluation(name, score, _label(told) if score is None else None, _text(found.get("reason")))


def _of_laminar(span: RawSpan) -> Iterator[Evaluation]:
    """What an evaluator gave back: a number by its own name, or several by theirs."""
    given, _ = values.decode(span.attributes.get("lmnr.span.output"))
    told = given if isinstance(given, dict) else {span.name: given}
    for name, value in told.items():
        score = costs.amount(value)
        if score is not None:
            yield Evaluation(name, score, scope=Scope.AROUND)


def _label(value: Json) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _text(value)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
