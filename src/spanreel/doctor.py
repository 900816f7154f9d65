"""What would be recorded here, where it would go, and what is out of reach: the lines of `spanreel doctor`.

It imports the libraries it knows, to see whether what it wraps is still where it was. It records and sends nothing.
"""

from __future__ import annotations

import importlib
import platform
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, distributions, packages_distributions, version
from typing import Final

from spanreel.clients import CLIENTS
from spanreel.exporters import describe
from spanreel.frameworks import FRAMEWORKS
from spanreel.instrumenting import instrument, missed_targets, uninstrument, wrapped_targets
from spanreel.keyring import Keyring
from spanreel.redaction import policy_of
from spanreel.settings import read_settings
from spanreel.slips import find_slips

OUT_OF_REACH: Final = (
    ("botocore", "model calls over it by other means than Bedrock's Converse and invoke"),
    ("claude-agent-sdk", "agents, which run in a process of their own,"),
    ("websockets", "realtime model APIs over it"),
)
"""Distributions over which models are called and which are not wrapped, and what of them is missed."""

PEERS: Final = ("opentelemetry-instrumentation-", "openinference-instrumentation-")
"""How names of distributions begin that may record the same calls."""

PEER_SUBJECTS: Final = ("openai", "agents", "genai", "mcp", "langchain", "anthropic", "litellm")
"""What such a name speaks of where it is about agents, and not about databases and web servers."""


def examine() -> Iterator[str]:
    """The report, line by line.

    Raises:
        SettingsError: a setting of the environment that cannot be read, which is the first thing to mend.
    """
    settings = read_settings()
    yield describe(settings)
    yield from (f"  {slip}" for slip in find_slips())
    yield f"  by Python {platform.python_version()} at {sys.executable}"
    policy = policy_of(settings)
    kept = f", its digests with the key of {policy.digests.where}" if isinstance(policy.digests, Keyring) else ""
    yield f"  redacted by policy {policy.name}{kept}"
    instrument(settings=settings)
    try:
        for library, targets in known_targets().items():
            yield from examine_library(library, targets)
    finally:
        uninstrument()
    for library, missed in OUT_OF_REACH:
        if (release := installed_release(library)) is not None:
            yield f"  out of reach: {library} {release}: {missed} are not recorded, and an offline replay refuses them"
    for peer in sorted(peers()):
        yield f"  also here: {peer} may record the same calls; its spans stay, ours say that they are a second view"


def known_targets() -> dict[str, list[str]]:
    """What is wrapped, as ``module:path``, by library."""
    targets: dict[str, list[str]] = {}
    for client in CLIENTS:
        targets.setdefault(client.library, []).append(client.target)
    for framework in FRAMEWORKS:
        targets.setdefault(framework.library, []).extend(point.target for point in framework.points)
        targets[framework.library].extend(injection.target for injection in framework.injections)
    return targets


def examine_library(library: str, targets: Iterable[str]) -> Iterator[str]:
    """One library's lines: its release and what is wrapped in it, or that it is not installed."""
    targets = list(targets)
    release = installed_release(library) or release_with_module(targets[0].partition(":")[0].partition(".")[0])
    if release is None:
        yield f"  absent: {library}"
        return
    faults = []
    for module in dict.fromkeys(target.partition(":")[0] for target in targets):
        try:
            importlib.import_module(module)
        except ImportError as error:
            faults.append(f"{module} cannot be imported: {error}")
    wrapped = set(wrapped_targets()).intersection(targets)
    faults += [f"{target} is not there in this release" for target in missed_targets() if target in set(targets)]
    yield f"  wrapped: {library} {release}: {len(wrapped)} of {len(set(targets))} points"
    yield from (f"    {fault}; what passes there is not recorded" for fault in faults)


def installed_release(distribution: str) -> str | None:
    """The installed release of a distribution, None where it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def release_with_module(module: str) -> str | None:
    """The installed release that brings a module: pydantic-ai comes as pydantic-ai-slim too."""
    return next((installed_release(name) for name in packages_distributions().get(module, ())), None)


def peers() -> set[str]:
    """Installed distributions that may record the same calls."""
    names = {distribution.metadata["Name"] for distribution in distributions()}
    return {name for name in names if name.startswith(PEERS) and any(subject in name for subject in PEER_SUBJECTS)}
