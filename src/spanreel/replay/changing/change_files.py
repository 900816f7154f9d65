"""Changes as people write them: a TOML or JSON file, the options of the command line; refused where they cannot be."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from spanreel.errors import ReplayRefused
from spanreel.model import Json
from spanreel.replay.changing.change_faults import faults, shown
from spanreel.replay.changing.changes import Changes, Settings
from spanreel.replay.changing.kitaru_changes import from_kitaru, is_kitaru


def read_changes(path: str | Path) -> Changes:
    """The changes that a TOML or JSON file asks for.

    Raises:
        ReplayRefused: the file cannot be read, or asks for what cannot be; says where, and what is expected.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        value = json.loads(text) if Path(path).suffix == ".json" else tomllib.loads(text)
    except (OSError, ValueError) as error:
        raise ReplayRefused(f"cannot read the changes in {str(path)!r}: {error}") from error
    return parse_changes(value, str(path))


def parse_changes(value: Any, source: str) -> Changes:
    """Changes from a JSON value; ``source`` says in errors where it comes from.

    Raises:
        ReplayRefused: it asks for what cannot be.
    """
    if not isinstance(value, Mapping):
        raise ReplayRefused(f"{source}: a table (an object) is expected, not {shown(value)}")
    try:
        return Changes.model_validate(from_kitaru(value, source) if is_kitaru(value) else dict(value))
    except ValidationError as error:
        raise ReplayRefused(f"{source}: {'; '.join(faults(error, Changes))}") from error


def from_options(options: Mapping[str, Any]) -> Changes:
    """The changes that the command line's options ask for, on top of those of their file.

    Raises:
        ReplayRefused: they ask for what cannot be.
    """
    base = read_changes(options["changes"]) if options.get("changes") else Changes()
    override: dict[str, Any] = {"settings": dict(map(parse_setting, options["set"]))}
    if options.get("model"):
        old, equals, new = options["model"].partition("=")
        override |= {"of_model": old, "model": new} if equals else {"model": old}
    if options.get("base_url"):
        override["base_url"] = options["base_url"]
    if options.get("instructions"):
        try:
            override["instructions"] = Path(options["instructions"]).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise ReplayRefused(f"cannot read the instructions in {options['instructions']!r}: {error}") from error
    edits = [dict(zip(("call", "value"), parse_edit(text), strict=True)) for text in options["edit"]]
    told = base.model_dump(mode="json", exclude_none=True)
    if override != {"settings": {}}:
        told["overrides"] = [*told["overrides"], {"agent": options["agent"], **override}]
    told["edits"] = [*told["edits"], *edits]
    told |= {
        name: options[name]
        for name in ("from_turn", "input", "pace", "freeze", "recovered", "map_ids")
        if options.get(name) not in (None, False)
    }
    return parse_changes(told, "what becomes different")


def parse_edit(text: str) -> tuple[str, Json]:
    """``CALL=VALUE`` of a command line; the value is JSON, or a text where it is none.

    Raises:
        ReplayRefused: there is no value.
    """
    call, equals, written = text.partition("=")
    if not equals:
        raise ReplayRefused(f"{text!r} is not CALL=VALUE")
    return call, _value(written)


def parse_setting(text: str) -> tuple[str, Json]:
    """``NAME=VALUE`` of a command line; the value is JSON, or a text where it is none.

    Raises:
        ReplayRefused: there is no such setting, or no value.
    """
    name, equals, written = text.partition("=")
    if not equals or name not in Settings.model_fields:
        known = ", ".join(Settings.model_fields)
        raise ReplayRefused(f"{text!r} is not NAME=VALUE with one of the settings {known}")
    return name, _value(written)


def _value(written: str) -> Json:
    try:
        return json.loads(written)
    except ValueError:
        return written
