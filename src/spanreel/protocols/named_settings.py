"""Settings of a request under the names that a provider, its older forms and its imitators have for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spanreel.model import Json


def read_settings(
    wire: Mapping[str, Json], names: Mapping[str, Sequence[str]]
) -> tuple[dict[str, Json], dict[str, Json]]:
    """Settings by our names, and the fields that they stood in where these are not the first of theirs.

    ``names`` are the fields of each setting; the first that is there counts.
    """
    settings: dict[str, Json] = {}
    stood: dict[str, Json] = {}
    for setting, fields in names.items():
        field = next((field for field in fields if field in wire), None)
        if field is None:
            continue
        settings[setting] = wire[field]
        if field != fields[0]:
            stood[setting] = field
    return settings, stood
