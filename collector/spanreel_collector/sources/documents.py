"""JSON documents as sources give them: OTLP, or one of the forms in the table below, told apart by what they hold."""

from __future__ import annotations

from typing import Protocol

from spanreel.model import Json
from spanreel_collector import json_text
from spanreel_collector.otlp import read_request
from spanreel_collector.sources import jaeger, kitaru, mastra, phoenix, readable_spans, sessions
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


FORMS: tuple[Form, ...] = (sessions, kitaru, mastra, jaeger, phoenix, readable_spans)


def read_document(document: Json, place: str) -> Batch:
    """The spans of one document.

    Raises:
        ValueError: it is of no form that is known.
    """
    for form in FORMS:
        if form.recognises(document):
            return form.read(document, place)
    return read_request(document, place)


def read_line(text: bytes, place: str) -> Batch:
    """The spans of one JSON text."""
    try:
        return read_document(_parse(text), place)
    except ValueError as error:
        reason = f"cut off after {len(text)} bytes: {error}" if json_text.is_cut(error) else str(error)
        return Batch(faults=(Fault(place, reason),))


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
