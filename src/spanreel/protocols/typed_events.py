"""Server-sent events whose data is JSON that names its own type, as OpenAI responses and Anthropic stream them."""

from __future__ import annotations

from collections.abc import Mapping

from spanreel.model import Json
from spanreel.protocols.residue import EXACT, read_json
from spanreel.protocols.sse import Event


def kind_of(fields: Mapping[str, Json]) -> str:
    """The event's type; empty where it has none."""
    kind = fields.get("type")
    return kind if isinstance(kind, str) else ""


def read_fields(event: Event) -> dict[str, Json] | None:
    """The event's fields, whatever its name says (a gateway may send none); None where it is something else.

    One that has a key of ours is: what is recorded with events stands under it.
    """
    if event.data is None:
        return None
    try:
        fields = read_json(event.data)
    except ValueError:
        return None
    if not isinstance(fields, dict) or EXACT in fields:
        return None
    return fields if kind_of(fields) or event.name is None else None
