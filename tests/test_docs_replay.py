"""docs/replay.md is true: its file is one that a replay takes, and its options are those of the command."""

from __future__ import annotations

import re
from pathlib import Path

from spanreel.cli import build_parser
from spanreel.replay.changing.change_files import read_changes
from spanreel.replay.changing.changes import Settings

PAGE = (Path(__file__).parent.parent / "docs" / "replay.md").read_text()


def test_the_changes_file_is_one_that_a_replay_takes(tmp_path: Path) -> None:
    told, *_ = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    file = tmp_path / "changes.toml"
    file.write_text(told)
    changes = read_changes(file)
    assert changes.overrides[0].model == "gpt-5-mini"
    assert set(changes.tool_policy.tools) == {"search_*", "refund"}
    assert changes.tool_policy.normal_forms["search_orders"].unordered == ("/tags",)


def test_every_setting_is_named_and_every_option_exists() -> None:
    assert all(f"`{name}`" in PAGE for name in Settings.model_fields)
    parser = build_parser(["replay"])
    known = parser.format_help()
    for action in parser._subparsers._group_actions:  # type: ignore[union-attr]
        known += action.choices["replay"].format_help()  # type: ignore[index]
    for option in re.findall(r"(?<=`)--[a-z-]+|(?<= )--[a-z-]+", PAGE):
        assert option in known, option
