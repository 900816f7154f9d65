"""JSON documents as sources give them: OTLP, or one of the forms in the table below, told apart by what they hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Protocol

from spanreel.model import Json
from spanreel_collector import json_text
from spanreel_collector.otlp import read_request
from spanreel_collector.sources import jaeger, kitaru, mastra, phoenix, readable_spans, sessions, tempo
from spanreel_collector.span import Batch, Fault


class Form(Protocol):
    """A form of documents that is not OTLP: a module that recognises it, and turns it into spans."""

    def recognises(self, document: Json) -> bool:
        """Whether the document is of this form."""
        ...

    def read(self, document: Json, place: str) -> Batch:
        """The document's spans; what cannot be read comes as faults.

        Raises:
            ValueError: nothing of it can be read.
        """
        ...


FORMS: tuple[Form, ...] = (sessions, kitaru, mastra, jaeger, phoenix, tempo, readable_spans)
_LONGEST_PREFIX = 200
"""Bytes of a line before the document in it, as loggers put them there."""


def read_document(document: Json, place: str) -> Batch:
    """The spans of one document, or of a list of export requests.

    Raises:
        ValueError: it is of no form that is known.
    """
    for form in FORMS:
        if form.recognises(document):
            return form.read(document, place)
    if isinstance(document, list) and all(isinstance(one, dict) for one in document):
        return together(read_request(one, place) for one in document)
    return read_request(document, place)


def read_line(text: bytes, place: str) -> Batch:
    """The spans of one JSON text; of several in a line, and of one that a logger wrote something before."""
    try:
        document = _parse(text)
    except ValueError as error:
        inside = _inside(text)
        if inside is not None:
            return together(read_line(one, place) for one in inside)
        reason = f"cut off after {len(text)} bytes: {error}" if json_text.is_cut(error) else f"not JSON: {error}"
        return Batch(faults=(Fault(place, reason),))
    try:
        return read_document(document, place)
    except ValueError as error:
        return Batch(faults=(Fault(place, str(error)),))


def _inside(text: bytes) -> list[bytes] | None:
    """The documents in a text that is none itself; None where there is one alone, or what is before it is no prefix."""
    found = json_text.documents(text)
    if not found or (len(found) == 1 and found[0][0] == 0 and len(found[0][1]) == len(text)):
        return None
    first, (last, ending) = found[0][0], found[-1]
    rest = text[last + len(ending) :].strip(b", \t\r\n")
    return None if first > _LONGEST_PREFIX or rest else [one for _, one in found]


def together(batches: Iterable[Batch]) -> Batch:
    """All that batches hold, in their order, as one."""
    read = list(batches)
    skipped = Counter[str]()
    for batch in read:
        skipped.update(batch.skipped)
    return Batch(
        spans=tuple(span for batch in read for span in batch.spans),
        logs=tuple(log for batch in read for log in batch.logs),
        faults=tuple(fault for batch in read for fault in batch.faults),
        skipped=skipped,
    )


def is_json(text: bytes) -> bool:
    """Whether the text is one JSON value."""
    try:
        _parse(text)
    except ValueError:
        return False
    return True


def _parse(text: bytes) -> Json:
    try:
        return json_text.parse(text)
    except ValueError as error:
        if "recursion limit" not in str(error) and "deeply" not in str(error):
            raise
    # One value nested too deeply must not cost the line its other spans.
    return json_text.parse(json_text.prune(text.decode("utf-8", "replace")))
