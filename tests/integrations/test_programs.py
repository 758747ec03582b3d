"""How our calls are written, and told from others'."""

from __future__ import annotations

from pathlib import Path

import pytest

from stillroom.config import default_home
from stillroom.integrations.programs import Programs, installed_programs, is_our_hook, is_our_server, is_temporary


@pytest.mark.parametrize(
    ("command", "ours"),
    [
        ("/a b/stillroom-hook codex session-start", False),  # two words that name another program
        ("'/a b/stillroom-hook' codex session-start", True),
        ("stillroom-hook --home /x claude-code session-end", True),
        ("/v/bin/python -P -m stillroom.integrations.hook codex session-start", True),
        ("echo stillroom-hook", False),
        ("/usr/bin/other-hook", False),
        ("echo 'open", False),
        ("", False),
        (3, False),
        (None, False),
    ],
)
def test_a_hook_is_ours_by_the_program_that_it_calls(command: object, ours: bool) -> None:
    assert is_our_hook(command) == ours


def test_a_server_is_ours_by_its_program_and_its_first_word() -> None:
    assert is_our_server("/v/bin/stillroom", ["mcp", "--home", "/x"])
    assert is_our_server("/v/bin/python", ["-P", "-m", "stillroom", "mcp"])
    assert not is_our_server("/v/bin/stillroom", ["run"])
    assert not is_our_server("stillroom-like", ["mcp"])
    assert not is_our_server(None, None)


def test_the_default_home_is_not_named(tmp_path: Path) -> None:
    assert "--home" not in installed_programs(default_home({}).absolute()).hook
    assert installed_programs(tmp_path).hook[-2:] == ("--home", str(tmp_path))


def test_a_program_in_a_cache_is_temporary() -> None:
    def at(path: str) -> bool:
        return is_temporary(Programs(hook=(path,), stillroom=()))

    assert at("/home/u/.cache/uv/archive-v0/x1/bin/stillroom-hook")
    assert not at("/home/u/.local/share/uv/tools/stillroom/bin/stillroom-hook")
