"""Content that was kept beside the telemetry: ``*_ref`` attributes, read from nearby files and from the offload.

Only files inside the folder of the telemetry are read, and those at ``SPANREEL_OFFLOAD``, where spanreel keeps content
by its digest: what a span says must not make us open anything else.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from spanreel.conventions import INPUT_MESSAGES, OUTPUT_MESSAGES, SYSTEM_INSTRUCTIONS, TOOL_DEFINITIONS
from spanreel.offload_places import SUFFIX, read_kept
from spanreel.settings import OFFLOAD
from spanreel_collector.span import Batch, RawLog, RawSpan

LARGEST = 64 * 1024 * 1024
"""Bytes of one referenced file that are read; a larger one is left alone."""
_REFERRED = frozenset({INPUT_MESSAGES, OUTPUT_MESSAGES, SYSTEM_INSTRUCTIONS, TOOL_DEFINITIONS})
_KEPT = re.compile(r"(?:.*/)?([0-9a-f]{64}\.(?:json|txt))")
"""References to what spanreel keeps: any attribute may be kept so."""

Item = TypeVar("Item", RawSpan, RawLog)


def resolve(batch: Batch, folder: Path | None) -> Batch:
    """The batch with the content of referenced files in the attributes that would have held it."""
    return replace(
        batch,
        spans=tuple(_resolved(span, folder) for span in batch.spans),
        logs=tuple(_resolved(log, folder) for log in batch.logs),
    )


def _resolved(item: Item, folder: Path | None) -> Item:
    attributes, found = item.attributes, {}
    for reference_name in _reference_names(tuple(attributes)):
        reference = attributes[reference_name]
        if not isinstance(reference, str):
            continue
        name = reference_name.removesuffix(SUFFIX)
        if attributes.get(name) is not None:
            continue
        kept = _KEPT.fullmatch(reference)
        content = None
        if kept is not None:
            content = _kept(reference, kept[1], folder)
        elif folder is not None and name in _REFERRED:
            content = _content(reference, folder)
        if content is not None:
            found[name] = content
    return replace(item, attributes={**attributes, **found}) if found else item


@lru_cache(maxsize=4096)
def _reference_names(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Those of an item's attributes that may refer to others' content; few items have any."""
    return tuple(key for key in keys if key.endswith(SUFFIX))


def _kept(reference: str, name: str, folder: Path | None) -> str | None:
    """What spanreel has kept: where it still keeps it, or in a folder that was brought along with the telemetry."""
    places = [os.environ.get(OFFLOAD, "").strip()]
    if folder is not None:
        home = reference.removesuffix(name).rstrip("/").rpartition("/")[2]
        places += [str(folder), *([str(folder / home)] if home not in {"", ".", ".."} else [])]
    contents = (read_kept(place, name, LARGEST) for place in places if place)
    content = next((one for one in contents if one is not None), None)
    return None if content is None else content.decode("utf-8", "replace")


def _content(reference: str, folder: Path) -> str | None:
    """The text of a referenced file; None where it is elsewhere, too large or unreadable."""
    try:
        home = folder.resolve()
        path = (home / reference.removeprefix("file://")).resolve()
        if not path.is_relative_to(home) or not path.is_file() or path.stat().st_size > LARGEST:
            return None
        text = path.read_text(encoding="utf-8")
        return _listed(text) if path.suffix == ".jsonl" else text
    except (OSError, ValueError):
        return None


def _listed(text: str) -> str:
    """The list that stands in a file line by line, each item with its index."""
    items = [json.loads(line) for line in text.splitlines() if line.strip()]
    bare = [{key: one for key, one in item.items() if key != "index"} for item in items if isinstance(item, dict)]
    return json.dumps(bare, ensure_ascii=False)
