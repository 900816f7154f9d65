"""A model request's settings as attributes, both ways: those the GenAI conventions name, the rest as one JSON text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from spanreel import conventions as names
from spanreel import json_text
from spanreel.model import Json

ATTRIBUTES: Final = {
    "temperature": (names.REQUEST_TEMPERATURE, float),
    "top_p": (names.REQUEST_TOP_P, float),
    "top_k": (names.REQUEST_TOP_K, float),
    "max_tokens": (names.REQUEST_MAX_TOKENS, int),
    "stop_sequences": (names.REQUEST_STOP_SEQUENCES, list),
    "seed": (names.REQUEST_SEED, int),
    "frequency_penalty": (names.REQUEST_FREQUENCY_PENALTY, float),
    "presence_penalty": (names.REQUEST_PRESENCE_PENALTY, float),
    "choice_count": (names.REQUEST_CHOICE_COUNT, int),
    "reasoning_effort": (names.REQUEST_REASONING_LEVEL, str),
    "previous_response_id": (names.REQUEST_PREVIOUS_RESPONSE_ID, str),
    "dimensions": (names.EMBEDDINGS_DIMENSION_COUNT, int),
    "encoding_formats": (names.REQUEST_ENCODING_FORMATS, list),
}
"""Setting to its attribute and the type it has there; a value of another type goes with the rest."""

_JSON_FORMATS: Final = ("json_object", "json_schema")  # a tuple: what is looked for may be no text, nor hashable


def write_settings(settings: Mapping[str, Json]) -> dict[str, Any]:
    """The attributes of the settings; None where there is nothing to say."""
    attributes: dict[str, Any] = {}
    rest = {}
    for setting, value in settings.items():
        attribute, kind = ATTRIBUTES.get(setting, (None, object))
        if attribute is not None and _fits(value, kind):
            attributes[attribute] = value
        else:
            rest[setting] = value
    attributes[names.REQUEST_SETTINGS] = json_text.encode(rest) if rest else None
    attributes[names.OUTPUT_TYPE] = _output_type(settings.get("response_format"))
    return attributes


def read_settings(attributes: Mapping[str, Any], rest: Mapping[str, Json]) -> dict[str, Json]:
    """The settings of these attributes; ``rest`` is what stood in the JSON text."""
    settings = {
        setting: list(attributes[attribute]) if kind is list else attributes[attribute]
        for setting, (attribute, kind) in ATTRIBUTES.items()
        if attribute in attributes
    }
    return {**settings, **rest}


def _fits(value: Any, kind: type) -> bool:
    """Whether the value comes back from an attribute as it went in: OTLP has 64-bit integers, and lists of one type."""
    if kind is list:
        return isinstance(value, list) and bool(value) and all(_is_text(item) for item in value)
    if kind is str:
        return _is_text(value)
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    return kind is float and isinstance(value, float) and value - value == 0  # neither NaN nor infinite


def _is_text(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _output_type(response_format: Json) -> str | None:
    kind = response_format.get("type") if isinstance(response_format, dict) else None
    if kind in _JSON_FORMATS:
        return "json"
    return "text" if kind == "text" else None
