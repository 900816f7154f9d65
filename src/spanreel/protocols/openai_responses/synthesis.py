"""The events that OpenAI would send for a response that was not recorded as a stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from spanreel.model import Json
from spanreel.protocols.joining import slices, words

_TEXTS = {
    "function_call": ("arguments", "function_call_arguments"),
    "custom_tool_call": ("input", "custom_tool_call_input"),
}
_STATES = {
    "web_search_call": ("in_progress", "searching", "completed"),
    "file_search_call": ("in_progress", "searching", "completed"),
    "code_interpreter_call": ("in_progress", "interpreting", "completed"),
    "image_generation_call": ("in_progress", "generating", "completed"),
    "mcp_call": ("in_progress", "completed"),
}
_ENTRIES = {
    "output_text": ("text", "output_text"),
    "refusal": ("refusal", "refusal"),
    "reasoning_text": ("text", "reasoning_text"),
}


def cut(body: Mapping[str, Json]) -> Iterator[dict[str, Json]]:
    """The events of a response, numbered."""
    for number, event in enumerate(_events(body)):
        yield {**event, "sequence_number": number}


def _events(body: Mapping[str, Json]) -> Iterator[dict[str, Json]]:
    begun = {**body, "status": "in_progress", "output": [], "usage": None, "error": None, "incomplete_details": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    output = body.get("output")
    for index, item in enumerate(output if isinstance(output, list) else []):
        if isinstance(item, dict):
            yield from _item_events(item, index)
    status = body.get("status")
    end = status if status in ("incomplete", "failed", "cancelled") else "completed"
    yield {"type": f"response.{end}", "response": body}


def _item_events(item: Mapping[str, Json], index: int) -> Iterator[dict[str, Json]]:
    kind = item.get("type")
    place = {"output_index": index, "item_id": item.get("id") or f"item_{index}"}
    # Clients keep what comes in pieces by the item's id, which answers made by hand or of another protocol lack.
    begun = {"id": place["item_id"], **item}
    middle: list[dict[str, Json]] = []
    if kind == "message":
        begun |= {"status": "in_progress", "content": []}
        middle = list(_content_events(item, place))
    elif kind == "reasoning":
        begun |= {"summary": []}
        begun.pop("content", None)
        middle = [*_summary_events(item, place), *_content_events(item, place)]
    elif kind in _TEXTS and isinstance(item.get(_TEXTS[kind][0]), str):
        field, stem = _TEXTS[kind]
        begun |= {"status": "in_progress", field: ""}
        name = {"name": item["name"]} if kind == "function_call" and "name" in item else {}
        text = item[field]
        middle += [{"type": f"response.{stem}.delta", **place, "delta": piece} for piece in slices(text)]
        middle.append({"type": f"response.{stem}.done", **place, **name, field: text})
    elif kind in _STATES:
        begun |= {"status": "in_progress"}
        middle = [{"type": f"response.{kind}.{state}", **place} for state in _STATES[kind]]
    yield {"type": "response.output_item.added", "output_index": index, "item": begun}
    yield from middle
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _content_events(item: Mapping[str, Json], place: Mapping[str, Json]) -> Iterator[dict[str, Json]]:
    content = item.get("content")
    for index, part in enumerate(content if isinstance(content, list) else []):
        here: dict[str, Any] = {**place, "content_index": index}
        entry = _ENTRIES.get(str(part.get("type"))) if isinstance(part, dict) else None
        if entry is None or not isinstance(part.get(entry[0]), str):
            continue
        field, stem = entry
        extra: dict[str, Json] = {"logprobs": []} if stem == "output_text" else {}
        yield {"type": "response.content_part.added", **here, "part": {**part, field: "", **_without_annotations(part)}}
        for piece in words(part[field]):
            yield {"type": f"response.{stem}.delta", **here, "delta": piece, **extra}
        annotations = part.get("annotations")
        for number, annotation in enumerate(annotations if isinstance(annotations, list) else []):
            added = {"annotation_index": number, "annotation": annotation}
            yield {"type": "response.output_text.annotation.added", **here, **added}
        yield {"type": f"response.{stem}.done", **here, field: part[field], **extra}
        yield {"type": "response.content_part.done", **here, "part": part}


def _without_annotations(part: Mapping[str, Json]) -> dict[str, Json]:
    return {"annotations": []} if "annotations" in part else {}


def _summary_events(item: Mapping[str, Json], place: Mapping[str, Json]) -> Iterator[dict[str, Json]]:
    summary = item.get("summary")
    for index, part in enumerate(summary if isinstance(summary, list) else []):
        if not isinstance(part, dict) or not isinstance(part.get("text"), str):
            continue
        here = {**place, "summary_index": index}
        yield {"type": "response.reasoning_summary_part.added", **here, "part": {**part, "text": ""}}
        for piece in words(part["text"]):
            yield {"type": "response.reasoning_summary_text.delta", **here, "delta": piece}
        yield {"type": "response.reasoning_summary_text.done", **here, "text": part["text"]}
        yield {"type": "response.reasoning_summary_part.done", **here, "part": part}
