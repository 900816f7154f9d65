"""Policies in files: TOML, checked by pydantic, as `docs/redaction.md` describes it."""

from __future__ import annotations

import importlib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from spanreel.errors import SettingsError
from spanreel.keyring import Digests, Keyring
from spanreel.policy import Policy
from spanreel.presets import PRESETS, make_policy, preset
from spanreel.rules import Find, Form, Rule

Texts = tuple[Annotated[str, Field(min_length=1)], ...]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Key(_Strict):
    """Where the keys of digests are: a variable of the environment, or a file beside the policy's."""

    env: str | None = None
    file: str | None = None


class _Places(_Strict):
    """Where something stands."""

    keys: Texts = ()
    detectors: Texts = ()
    pointers: Texts = ()
    tools: Texts = ()


class _Rule(_Places):
    """One rule."""

    form: Form
    name: str = ""
    function: str | None = None
    field_class: str | None = Field(default=None, alias="class", pattern=r"^[a-z0-9_]{1,64}$")


class _Allow(_Places):
    """What stays."""

    values: Texts = ()


class _File(_Strict):
    """A policy's file."""

    name: str = Field(pattern=r"^[A-Za-z0-9_.-]+/[0-9]+$")
    extends: str | None = "default"
    domain: str = ""
    key: _Key = _Key()
    allow: _Allow | None = None
    rules: tuple[_Rule, ...] = ()


def find_policy(source: str, digests: Digests | None = None) -> Policy:
    """The policy of a preset's name, or of a file.

    Raises:
        SettingsError: there is no such policy; says what, where, and what to do.
    """
    found = preset(source, digests)
    if found is not None:
        return found
    if source.endswith(".toml") or "/" in source or os.sep in source:
        return read_policy(source, digests)
    raise SettingsError(f"no redaction policy {source!r}: give {', '.join(PRESETS)}, or a file that ends in .toml")


def read_policy(path: str | Path, digests: Digests | None = None) -> Policy:
    """The policy of a TOML file; ``digests`` in the place of the keys that it names.

    Raises:
        SettingsError: the file cannot be read, or says what no policy can; names the place, and what is allowed.
    """
    file = Path(path)
    try:
        said = tomllib.loads(file.read_text(encoding="utf-8"))
        document = _File.model_validate(said)
    except OSError as error:
        raise SettingsError(f"the redaction policy {str(file)!r} cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"the redaction policy {str(file)!r} is no TOML: {error}") from error
    except ValidationError as error:
        raise SettingsError(f"the redaction policy {str(file)!r}: {_explain(error, said)}") from error
    try:
        rules = [*([_allow(document.allow)] if document.allow is not None else []), *map(_rule, document.rules)]
        ring = digests if digests is not None else _keyring(document.key, file.parent)
        return make_policy(document.name, rules, extends=document.extends, digests=ring, domain=document.domain)
    except SettingsError as error:
        raise SettingsError(f"the redaction policy {str(file)!r}: {error}") from error


def _allow(allow: _Allow) -> Rule:
    return Rule(
        Form.KEEP,
        "allow",
        keys=allow.keys,
        detectors=allow.detectors,
        pointers=allow.pointers,
        tools=allow.tools,
        values=allow.values,
    )


def _rule(rule: _Rule) -> Rule:
    return Rule(
        rule.form,
        rule.name,
        keys=rule.keys,
        detectors=rule.detectors,
        pointers=rule.pointers,
        tools=rule.tools,
        find=_load(rule.function) if rule.function is not None else None,
        field_class=rule.field_class,
    )


def _load(function: str) -> Find:
    module, _, name = function.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for step in name.split("."):
            found = getattr(found, step)
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingsError(f"function {function!r} is not here, as module:name: {error}") from error
    if not callable(found):
        raise SettingsError(f"function {function!r} is a {type(found).__name__}, which cannot be called")
    return found  # type: ignore[no-any-return]  # what getattr finds has no type


def _keyring(key: _Key, folder: Path) -> Keyring:
    file = str(folder / Path(key.file).expanduser()) if key.file is not None else None
    return Keyring(key.env, file)


def _explain(error: ValidationError, said: Mapping[str, Any]) -> str:
    """The first fault: where, what, and what is allowed there. What stands there may be a secret, and is not told."""
    first = error.errors(include_url=False)[0]
    place = ".".join(str(step) for step in first["loc"])
    if first["type"] == "extra_forbidden":
        known = _known_at(first["loc"][:-1])
        return f"{place}: there is no such setting; there are {', '.join(known)}"
    if first["loc"] == ("name",):
        return f'{place}: {first["msg"]}; it is to be a name and a version, as in "acme/1"'
    return f"{place}: {first['msg']}"


def _known_at(loc: tuple[int | str, ...]) -> list[str]:
    parts: dict[str, type[BaseModel]] = {"key": _Key, "allow": _Allow, "rules": _Rule}
    kind = parts.get(str(next(iter(loc), "")), _File)
    return [field.alias or name for name, field in kind.model_fields.items()]
