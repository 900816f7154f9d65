"""The policies that are here from the start, and policies made of rules of the user's own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from spanreel.detectors import Kind
from spanreel.errors import SettingsError
from spanreel.keyring import Digests
from spanreel.policy import Policy, compile_policy
from spanreel.rules import Form, Rule

_CREDENTIALS: Final = Rule(Form.MASK, "credentials", detectors=(Kind.CREDENTIAL,))
_PERSONAL: Final = Rule(Form.DIGEST, "personal data", detectors=(Kind.PERSONAL,))
_INFRASTRUCTURE: Final = Rule(
    Form.KEEP,
    "addresses of servers",
    pointers=tuple(
        f"/{name}"
        for name in ("server.address", "network.peer.address", "network.local.address", "host.ip", "net.peer.ip")
    ),
)


def make_policy(
    name: str,
    rules: Sequence[Rule] = (),
    *,
    extends: str | None = "default",
    digests: Digests | None = None,
    domain: str = "",
) -> Policy:
    """A policy of these rules and, after them, those of a preset.

    What it says is part of its name, so that a recording made by other rules is not taken for one made by these.

    Raises:
        SettingsError: a rule that cannot be; says which, and what to do.
    """
    own = tuple(replace(rule, name=rule.name or f"rule {number}") for number, rule in enumerate(rules, 1))
    inherited: tuple[Rule, ...] = ()
    if extends is not None:
        if extends not in _PRESETS:
            raise SettingsError(f"extends {extends!r}: there is no such preset; there are {', '.join(_PRESETS)}")
        extends, inherited = _PRESETS[extends]
    said = repr([*map(_said, own), extends, domain]).encode()
    version = f"{name}+{hashlib.sha256(said).hexdigest()[:8]}"
    return compile_policy(version, (*own, *inherited), digests=digests, domain=domain)


def preset(name: str, digests: Digests | None = None) -> Policy | None:
    """A policy of ours by its name, as the environment or as a recording names it."""
    short = next((short for short, (version, _) in _PRESETS.items() if name in (short, version)), None)
    return None if short is None else compile_preset(short, digests)


def compile_preset(short: str, digests: Digests | None = None) -> Policy:
    """A policy of ours by its short name, which is among `PRESETS`."""
    return compile_policy(*_PRESETS[short], digests=digests)


_PRESETS: Final[Mapping[str, tuple[str, tuple[Rule, ...]]]] = {
    # The number grows with every change in what is found: placeholders of another version are not comparable.
    "default": ("spanreel.default/2", (_INFRASTRUCTURE, _CREDENTIALS, _PERSONAL)),
    "mask": ("spanreel.mask/1", (_INFRASTRUCTURE, _CREDENTIALS, replace(_PERSONAL, form=Form.MASK))),
    "credentials": ("spanreel.credentials/1", (_CREDENTIALS,)),
}
PRESETS: Final = tuple(_PRESETS)


def _said(rule: Rule) -> str:
    """What a rule says; of a function, its name is all that can be compared."""
    find = f"{rule.find.__module__}:{rule.find.__qualname__}" if rule.find is not None else ""
    return repr((replace(rule, name="", find=None), find))


DEFAULT: Final = compile_policy(*_PRESETS["default"])
"""Credentials are masked, personal data digested; masked too where no key can be kept."""
