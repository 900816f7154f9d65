"""Content that an instrumentation uploaded beside its telemetry: ``gen_ai.*_ref`` attributes, read from nearby files.

Only files inside the folder of the telemetry are read: what a span says must not make us open anything else.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from spanreel.conventions import INPUT_MESSAGES, OUTPUT_MESSAGES, SYSTEM_INSTRUCTIONS, TOOL_DEFINITIONS
from spanreel_collector.span import Batch, RawLog, RawSpan

LARGEST = 64 * 1024 * 1024
"""Bytes of one referenced file that are read; a larger one is left alone."""
_REFERRED = {name: f"{name}_ref" for name in (INPUT_MESSAGES, OUTPUT_MESSAGES, SYSTEM_INSTRUCTIONS, TOOL_DEFINITIONS)}

Item = TypeVar("Item", RawSpan, RawLog)


def resolve(batch: Batch, folder: Path) -> Batch:
    """The batch with the content of referenced files in the attributes that would have held it."""
    return replace(
        batch,
        spans=tuple(_resolved(span, folder) for span in batch.spans),
        logs=tuple(_resolved(log, folder) for log in batch.logs),
    )


def _resolved(item: Item, folder: Path) -> Item:
    attributes, found = item.attributes, {}
    for name, reference_name in _REFERRED.items():
        reference = attributes.get(reference_name)
        if isinstance(reference, str) and attributes.get(name) is None:
            content = _content(reference, folder)
            if content is not None:
                found[name] = content
    return replace(item, attributes={**attributes, **found}) if found else item


def _content(reference: str, folder: Path) -> str | None:
    """The text of a referenced file; None where it is elsewhere, too large or unreadable."""
    try:
        home = folder.resolve()
        path = (home / reference.removeprefix("file://")).resolve()
        if not path.is_relative_to(home) or not path.is_file() or path.stat().st_size > LARGEST:
            return None
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
